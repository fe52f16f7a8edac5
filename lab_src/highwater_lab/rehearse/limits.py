"""Limits on throttling and cost that a rehearsal must stay within, for continuous integration."""

from __future__ import annotations

from dataclasses import dataclass

from highwater_lab.rehearse.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit that a rehearsal exceeded.

    Attributes:
        what: The limited value: `throttled` or `cost`.
        got: The value: percent of the units requested, or USD a month.
        allowed: The limit, in the same unit.
        text: The finding as a sentence.
    """

    what: str
    got: float
    allowed: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the run of the policy `declared`.

    Attributes:
        max_throttled_percent: The highest percentage of requested units that may be throttled; `None` for no limit.
        max_cost_per_month: The highest cost in USD a month; `None` for no limit.
    """

    max_throttled_percent: float | None = None
    max_cost_per_month: float | None = None

    def passed(self, rehearsal: Rehearsal) -> tuple[Passed, ...]:
        """Return the limits that the rehearsal exceeded."""
        exceeded = []
        throttled, cost = rehearsal.throttled_percent, rehearsal.cost_per_month
        if self.max_throttled_percent is not None and throttled > self.max_throttled_percent:
            exceeded.append(
                Passed(
                    "throttled",
                    throttled,
                    self.max_throttled_percent,
                    f"{throttled:.4g} % of the requested units are throttled, the limit is "
                    f"{self.max_throttled_percent:g} %",
                )
            )
        if self.max_cost_per_month is not None and cost > self.max_cost_per_month:
            exceeded.append(
                Passed(
                    "cost",
                    cost,
                    self.max_cost_per_month,
                    f"the cost is ${cost:,.2f} a month, the limit is ${self.max_cost_per_month:,.2f}",
                )
            )
        return tuple(exceeded)
