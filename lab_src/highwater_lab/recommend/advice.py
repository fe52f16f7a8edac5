"""The result of a search, and the rule by which one of its plans is advised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from highwater.core import Dimension
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.days import Rise

DECLARED_NOW: Final = "declared now"
LIMIT_PERCENT: Final = 0.01
# that of the scaler (docs/decisions/0038)
THROTTLE_PRICE: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The rule by which a plan is advised.

    Attributes:
        limit_percent: The percentage of requested units that may be throttled, 0 to 100.
        is_stated: Whether the user has stated that limit; it is then kept at any price.
        least_gain_usd: The USD a month for which a change is worth it.
        throttle_price: The price of a throttled unit, in requests on demand for a unit.
    """

    limit_percent: float = LIMIT_PERCENT
    is_stated: bool = False
    least_gain_usd: float = 20.0
    throttle_price: float = THROTTLE_PRICE


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The result of `recommend`.

    Attributes:
        best: The cheapest candidate that keeps the limit in the days that it was chosen on and in those that it was
            judged on; if there is none, the candidate with the least throttling.
        is_within_limit: Whether *best* keeps the limit.
        curve: The trade-off: the candidates for which no other is both cheaper and less throttled, cheapest first.
        tried: The number of plans simulated.
        was_stopped: Whether the search was interrupted before its end.
        broken: The plan that kept the limit in the days that it was chosen on, and broke it in the days that it was
            judged on; `None` if that of *best* held.
        remark: The limits of the judgement, such as few days of traffic; empty for none.
        rise: A rise of requests that auto scaling cannot follow, in the traffic; `None` for none.
        unknown: The dimensions that the traffic does not have, and the table has: a change of the billing mode is not
            advised.
        scaled: The results of Highwater's scaler with the lowest floors, with and without pulses, by policy; empty if
            the search was interrupted before, or left them out.
        on_demand: On-demand capacity, `None` if the search was interrupted before.
        marked: On-demand capacity with the high-water mark a quarter above the busiest minute; `None` if that of every
            table on demand is as high.
        declared: What the table has now, simulated as it is deployed, with its scheduled actions and its scaler; `None`
            without a table, or if the search was interrupted before. It is not among the candidates.
        units_per_month: Units that a month of the traffic requests; an index's share of a write is not counted again.
        request_usd: By dimension the price of a request unit on demand, in USD.
        ceiling_usd: The cost of a month in which *best* is at its ceilings all the time, in USD; 0 for on demand.
    """

    best: Candidate
    is_within_limit: bool
    curve: tuple[Candidate, ...]
    tried: int
    was_stopped: bool
    broken: Candidate | None = None
    remark: str = ""
    rise: Rise | None = None
    unknown: tuple[Dimension, ...] = ()
    scaled: Mapping[str, Candidate] = field(default_factory=dict)
    on_demand: Candidate | None = None
    marked: Candidate | None = None
    declared: Candidate | None = None
    units_per_month: float = 0.0
    request_usd: Mapping[Dimension, float] = field(default_factory=dict)
    ceiling_usd: float = 0.0

    @property
    def rows(self) -> tuple[tuple[str, Candidate], ...]:
        """The rows to show: the curve, on-demand, and by name what is declared and the scaler's results.

        On-demand and the named ones are rows also where they are worse.
        """
        modes = [each for each in (self.on_demand, self.marked) if each is not None and each not in self.curve]
        declared = [] if self.declared is None else [(DECLARED_NOW, self.declared)]
        return (*(("", each) for each in (*self.curve, *modes)), *declared, *self.scaled.items())

    @property
    def present(self) -> Candidate | None:
        """The plan that a change is compared with: what is declared, or on-demand where nothing is known to be."""
        return self.declared or self.on_demand

    @property
    def gain(self) -> float | None:
        """The USD a month that the best plan costs less than on-demand; `None` if on-demand was not simulated."""
        return None if self.on_demand is None else self.on_demand.cost_per_month - self.best.cost_per_month

    def throttle_usd(self, rule: Rule) -> dict[Dimension, float]:
        """Return the price of a throttled unit, in USD."""
        return {each: rule.throttle_price * usd for each, usd in self.request_usd.items()}

    def advised(self, rule: Rule) -> Candidate:
        """Return the plan to deploy.

        1. Of the plans that keep the limit the cheapest is the best.
        2. If it costs more than what is declared, or more than on demand, or if no plan keeps the limit, these are
           compared by bill plus the price of throttled units, and the least sum wins. A limit that the user has
           stated is kept. A plan that throttles more than what is declared, and breaks the limit, is left out.
        3. What is declared stays if it keeps the limit and the winner gains less than `least_gain_usd`. Where nothing
           is known to be declared, on-demand takes its place.
        4. If the traffic lacks a dimension of the table, the billing mode stays.
        """
        present = self.present
        if present is None or self.was_stopped:
            return self.best
        others = [each for each in (self.declared, self.on_demand, self.marked) if each is not None]
        winner = self.best
        is_dear = any(self.best.cost_per_month > each.cost_per_month for each in others)
        if not self.is_within_limit or (is_dear and not rule.is_stated):
            usd, limit = self.throttle_usd(rule), rule.limit_percent
            most = None if self.declared is None else self.declared.throttled_percent
            allowed = [
                each
                for each in (self.best, *others)
                if each.keeps(limit) or most is None or each.throttled_percent <= most
            ]
            if rule.is_stated:
                allowed = [min(allowed, key=lambda each: each.throttled_percent)]
            winner = min(allowed, key=lambda each: each.with_throttles(usd))
        winner = self._in_its_mode(winner)
        gains = present.cost_per_month - winner.cost_per_month
        return present if present.keeps(rule.limit_percent) and gains < rule.least_gain_usd else winner

    def _in_its_mode(self, winner: Candidate) -> Candidate:
        """Return the winner, or what is declared if it changes the mode and the traffic lacks a dimension."""
        if not self.unknown or self.declared is None or (winner.plan is None) == (self.declared.plan is None):
            return winner
        return self.declared

    @property
    def last_step(self) -> LastStep | None:
        """The price of the last step of the trade-off to the best plan; `None` if no plan throttles more."""
        cheaper = [each for each in self.curve if each.cost_per_month < self.best.cost_per_month]
        if self.best not in self.curve or not cheaper:
            return None
        usd = self.best.cost_per_month - cheaper[-1].cost_per_month
        percent = cheaper[-1].throttled_percent - self.best.throttled_percent
        units = percent / 100 * self.units_per_month
        return LastStep(usd, percent, usd / units * 1e6) if units else None


@dataclass(frozen=True, slots=True)
class LastStep:
    """The difference between a plan and the next cheaper one of the trade-off.

    Attributes:
        usd_per_month: The USD a month that the plan costs more.
        percent: The percentage points of requested units that it throttles less.
        usd_per_million: The price of a million units that are not throttled.
    """

    usd_per_month: float
    percent: float
    usd_per_million: float
