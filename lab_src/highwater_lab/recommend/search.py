"""The search for the cheapest plan that keeps throttles under a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from highwater.core import Capacity, Dimension, HighwaterError, Plan, Window, check
from highwater.core.findings import Severity
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.zones import find_zone
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.on_demand import OnDemandMode
from highwater_lab.recommend.candidates import Candidate, Choice, frontier, plan_of
from highwater_lab.recommend.surges import find_surges, round_up, windows_for
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.plans import table_of
from highwater_lab.simulation.policy import Policy
from highwater_lab.traffic import Traffic

_TARGETS = (70, 50, 90, 60, 80, 40, 30)
# Floors tried: what the demand of so many percent of all minutes needs at the target
_FLOOR_PERCENTS = (0, 25, 50, 75, 90, 99)
_MOST_JOINT = 12
_Item = TypeVar("_Item")


class RecommendError(HighwaterError, ValueError):
    """A recommendation that cannot be worked out as asked."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the search found.

    Attributes:
        best: The cheapest candidate within the limit; where none is, the one that throttles least.
        is_within_limit: Whether the best keeps the limit.
        curve: The trade-off: what no other candidate beats in both cost and throttles, the cheapest first.
        tried: How many plans were simulated.
        was_stopped: Whether the search was stopped before its end.
    """

    best: Candidate
    is_within_limit: bool
    curve: tuple[Candidate, ...]
    tried: int
    was_stopped: bool


def recommend(
    traffic: Traffic,
    *,
    max_throttled_percent: float = 0.01,
    timezone: str = "UTC",
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    prices: Prices | None = None,
    timing: Timing | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recommendation:
    """Search target utilizations, floors, windows and on-demand for the cheapest plan for *traffic*.

    Windows are tried for surges that come again at about the same time on at least two days, told in *timezone*.
    Ceilings are a quarter above what the busiest minute needs at the target, within *table_quota_units*. Indexes that
    the traffic names follow the table. The search can be interrupted (KeyboardInterrupt) and then answers with its
    best so far. *progress* is called with the plans simulated and about how many there will be. Raises
    `RecommendError` for an unknown zone and a limit that is none.
    """
    if find_zone(timezone) is None:
        raise RecommendError(f"unknown timezone {timezone!r}; use an IANA name such as 'Europe/Berlin'")
    if not 0 <= max_throttled_percent <= 100:
        raise RecommendError(f"the limit must be between 0 and 100 percent, got {max_throttled_percent:g}")
    search = _Search(traffic, timezone, table_quota_units, prices or load_prices(), timing or Timing(), progress)
    return search.run(max_throttled_percent)


class _Search:
    def __init__(
        self,
        traffic: Traffic,
        timezone: str,
        quota_units: int,
        prices: Prices,
        timing: Timing,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._traffic = traffic
        self._timezone = timezone
        self._quota_units = quota_units
        self._prices = prices
        self._timing = timing
        self._progress = progress
        self._indexes = tuple(dict.fromkeys(s.index for s in traffic.rates if s.index is not None))
        self._dimensions = [
            d for d in Dimension if any(s.dimension is d and any(rates) for s, rates in traffic.rates.items())
        ]
        self._tried = 0
        self._all = 1 + len(self._dimensions) * len(_TARGETS) * (len(_FLOOR_PERCENTS) + 2) + _MOST_JOINT
        self._choices: dict[Dimension, list[Choice]] = {dimension: [] for dimension in self._dimensions}
        self._candidates: list[Candidate] = []

    def run(self, limit: float) -> Recommendation:
        was_stopped = False
        try:
            self._try_on_demand()
            for dimension in self._dimensions:
                self._explore(dimension)
        except KeyboardInterrupt:
            was_stopped = True
        try:
            self._join(limit)
        except KeyboardInterrupt:
            was_stopped = True
        if not self._candidates:
            raise RecommendError("stopped before a single plan was simulated")
        within = [c for c in self._candidates if c.throttled_percent <= limit]
        best = (
            min(within, key=lambda c: (c.cost_per_month, c.throttled_percent))
            if within
            else min(self._candidates, key=lambda c: (c.throttled_percent, c.cost_per_month))
        )
        return Recommendation(best, bool(within), _curve(self._candidates), self._tried, was_stopped)

    def _try_on_demand(self) -> None:
        plan = self._plan(None, None)
        run = self._simulate(table_of(plan, "table"), OnDemandMode(), self._traffic)
        self._candidates.append(_candidate(None, run))

    def _explore(self, dimension: Dimension) -> None:
        """Every target, floors from low to high until nothing is throttled, then windows in place of floors."""
        traffic = _only(self._traffic, dimension)
        demand = sorted(_minutes(traffic, dimension))
        for target in _TARGETS:
            needed = (_units_for(_quantile(demand, percent), target) for percent in _FLOOR_PERCENTS)
            ceiling = min(self._quota_units, round_up(_units_for(demand[-1], target) * 5 // 4))
            floors = sorted({min(ceiling, round_up(units)) for units in needed})
            for floor in floors:
                capacity = Capacity.autoscaled(min=min(floor, ceiling), max=ceiling, target_utilization_percent=target)
                run = self._try(dimension, traffic, capacity, ())
                if run.throttled_units == 0:
                    break
                if floor in floors[:2]:
                    windows = self._windows(run, dimension, ceiling)
                    if windows:
                        self._try(dimension, traffic, capacity, windows)

    def _windows(self, run: Run, dimension: Dimension, ceiling: int) -> tuple[Window, ...]:
        zone = find_zone(self._timezone)
        assert zone is not None  # noqa: S101 - `recommend` has looked
        found = windows_for(find_surges(run, dimension, zone), dimension, self._timezone)
        capped = (
            replace(w, read_min=_capped(w.read_min, ceiling), write_min=_capped(w.write_min, ceiling)) for w in found
        )
        return tuple(capped)

    def _try(self, dimension: Dimension, traffic: Traffic, capacity: Capacity, windows: tuple[Window, ...]) -> Run:
        one = Choice(capacity=capacity, windows=windows, cost=0.0, throttled_units=0.0)
        plan = self._plan(one if dimension is Dimension.READ else None, one if dimension is Dimension.WRITE else None)
        # windows that cannot be declared together are no plan
        if any(finding.severity is Severity.ERROR for finding in check(plan)):
            plan, one = replace(plan, windows=()), replace(one, windows=())
        run = self._simulate(table_of(plan, "table"), Declared(), traffic)
        self._choices[dimension].append(replace(one, cost=run.bill.per_month, throttled_units=run.throttled_units))
        return run

    def _join(self, limit: float) -> None:
        """Simulate whole plans: the cheapest pairs first, until some keep the limit."""
        # stopped early, a dimension has none, and then there is no whole plan either
        pairs = list(product(*(frontier(self._choices[dimension]) for dimension in self._dimensions)))
        if not self._dimensions:
            return
        asked = sum(self._traffic.total_units(stream) for stream in self._traffic.rates)
        pairs.sort(key=lambda pair: sum(choice.cost for choice in pair))
        promising = [p for p in pairs if sum(c.throttled_units for c in p) <= limit / 100 * asked]
        # some that are cheaper and throttle more, for the curve; then those that should keep the limit
        others = [p for p in pairs if p not in promising]
        chosen = [*_spread(others, _MOST_JOINT // 2), *_spread(promising[1:], _MOST_JOINT // 3)]
        for pair in [*promising[:3], *chosen]:
            by_dimension = dict(zip(self._dimensions, pair, strict=True))
            plan = self._plan(by_dimension.get(Dimension.READ), by_dimension.get(Dimension.WRITE))
            run = self._simulate(table_of(plan, "table"), Declared(), self._traffic)
            self._candidates.append(_candidate(plan, run))

    def _plan(self, read: Choice | None, write: Choice | None) -> Plan:
        return plan_of(read, write, self._indexes, self._quota_units)

    def _simulate(self, setup: TableSetup, policy: Policy, traffic: Traffic) -> Run:
        run = simulate(setup, traffic, policy, timing=self._timing, prices=self._prices)
        self._tried += 1
        if self._progress is not None:
            self._progress(min(self._tried, self._all), self._all)
        return run


def _candidate(plan: Plan | None, run: Run) -> Candidate:
    return Candidate(
        plan=plan,
        cost_per_month=run.bill.per_month,
        throttled_percent=run.throttled_per_million / 10_000,
        utilization_percent=run.utilization_percent,
    )


def _curve(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.cost_per_month, c.throttled_percent)):
        if not kept or candidate.throttled_percent < kept[-1].throttled_percent:
            kept.append(candidate)
    return tuple(kept)


def _only(traffic: Traffic, dimension: Dimension) -> Traffic:
    return replace(traffic, rates={s: rates for s, rates in traffic.rates.items() if s.dimension is dimension})


def _minutes(traffic: Traffic, dimension: Dimension) -> Iterator[int]:
    """Units per second asked of the table, or of its busiest index, in each minute."""
    streams = [stream for stream in traffic.rates if stream.dimension is dimension]
    step = 60 // traffic.bin_seconds
    for at in range(0, traffic.minutes * step, step):
        most = max(sum(traffic.rates[stream][at : at + step]) for stream in streams)
        yield -(-most * traffic.bin_seconds // 3600)


def _quantile(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _units_for(demand: int, target_percent: int) -> int:
    return max(1, -(-demand * 100 // target_percent))


def _capped(units: int | None, ceiling: int) -> int | None:
    return None if units is None else min(units, ceiling)


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    return [items[number * len(items) // count] for number in range(min(count, len(items)))]
