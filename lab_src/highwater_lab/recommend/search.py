"""The search for the cheapest plan that keeps throttling within a limit, and the candidates that it simulated."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from multiprocessing.pool import Pool
from operator import attrgetter
from typing import TypeVar

from highwater.core import Dimension, HighwaterError, Plan
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.zones import find_zone
from highwater_lab.recommend.advice import Recommendation
from highwater_lab.recommend.bounds import OnlyBest, arriving_units
from highwater_lab.recommend.candidates import MINUTES_PER_MONTH, Candidate, Choice, frontier
from highwater_lab.recommend.days import split_days, sudden_rise
from highwater_lab.recommend.trials import FLOOR_PERCENTS, Trials
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import TableSetup
from highwater_lab.traffic import Traffic

# Target utilizations in percent, the most promising first, because the search can be interrupted
_TARGETS = (70, 50, 90, 60, 80, 40, 30)
# Of these a search for the cheapest plan alone tries the first three, and then the neighbours of the best of them
_COARSE = (70, 90, 50)
# The number of complete plans to simulate after each dimension was searched separately
_MOST_JOINT = 12
# The most that a plan may cost, relative to the cheapest, for leaving half of the limit to days that were not seen
_SPARE_COST_PERCENT = 120
# The policies with the scaler to simulate; with the scaler, target tracking uses 90 %
_SCALERS, _SCALED_TARGET = ("highwater-floor", "highwater-floor-pulse", "highwater-direct-pulse"), 90
_Item = TypeVar("_Item")


class RecommendError(HighwaterError, ValueError):
    """The search cannot run with these arguments, or was interrupted before it had any result."""


def recommend(
    traffic: Traffic,
    *,
    table: TableSetup | None = None,
    max_throttled_percent: float = 0.01,
    timezone: str = "UTC",
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    prices: Prices | None = None,
    timing: Timing | None = None,
    below_usd: float | None = None,
    with_scaler: bool = True,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Recommendation:
    """Search target utilizations, floors, windows and on-demand for the cheapest plan for *traffic*.

    A plan is chosen on the first two thirds of the days and judged on the last third; traffic of less than three days
    is not parted. The search tries windows for surges that recur at about the same time on at least two days, except
    for a global table, whose scalable targets CloudFormation makes and which cannot have scheduled actions. A ceiling
    is three times the capacity that the busiest minute needs at the target utilization, at most the quota. Indexes in
    the traffic follow the table's capacity. Highwater's scaler is simulated too, with the lowest floors, but not
    recommended, as it requires a function, and pulses require metered clients. On KeyboardInterrupt the search returns
    the best result so far.

    Args:
        traffic: The requests to the table and its indexes.
        table: The table that the plan is for, of which everything but its capacity counts: its indexes, which follow
            its capacity also where they have no traffic, its table class, the replicas of a global table, its queue.
            What it has now is simulated too, as it is. By default a table of the class Standard with the indexes of the
            traffic.
        max_throttled_percent: The limit: the percentage of requested units that may be throttled, 0 to 100.
        timezone: The IANA time zone in which surges recur, and of the windows.
        table_quota_units: The account's quota of units per table, which no ceiling exceeds.
        prices: By default the prices of us-east-1.
        timing: The delays of the AWS services; by default those of `Timing`.
        below_usd: Look only for the cheapest plan within the limit, and only for one that costs less than this a month:
            what bounds exclude, plans for the trade-off and the scaler are not simulated. The search is then much
            faster, and may miss a plan that is a little cheaper. By default everything is searched.
        with_scaler: Whether to simulate Highwater's scaler as well, which takes six times as long as everything else.
        processes: How many processes simulate at once. With more than the one of the default, the result is the same;
            they import the program's main module, which must not call `recommend` when it is imported.
        progress: Called with the number of plans simulated and their approximate total.

    Raises:
        RecommendError: The time zone is unknown, the limit is out of range, the traffic has a column of an index that
            *table* does not have, or no plan was simulated yet when the search was interrupted.
    """
    zone = find_zone(timezone)
    if zone is None:
        raise RecommendError(f"unknown timezone {timezone!r}; use an IANA name such as 'Europe/Berlin'")
    if not 0 <= max_throttled_percent <= 100:
        raise RecommendError(
            f"the limit of throttled units must be between 0 and 100 percent, got {max_throttled_percent:g}"
        )
    for stream in traffic.rates:
        if table is not None and stream.index is not None and stream.index not in table.indexes:
            raise RecommendError(
                f"traffic {traffic.name} has a column {stream.label}, and the indexes of {table.name} are "
                f"{', '.join(table.indexes) or 'none'}; remove the column"
            )
    prices = prices or load_prices()
    days = split_days(traffic, zone)
    simulator = Trials(days, timezone, table_quota_units, prices, timing or Timing(), table)
    only = None if below_usd is None else OnlyBest(days, prices, max_throttled_percent, below_usd)
    scalers = _SCALERS if with_scaler and only is None else ()
    return _Search(simulator, processes, progress, only, scalers).run(max_throttled_percent)


@contextmanager
def _pool(processes: int) -> Iterator[Pool | None]:
    """Start processes, and end them whatever they are at; `None` for one alone, which is this one."""
    if processes == 1:
        yield None
        return
    # a fork would copy the locks of the thread that draws the progress; Ctrl-C is for this process alone
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield pool


class _Search:
    def __init__(
        self,
        simulator: Trials,
        processes: int,
        progress: Callable[[int, int], None] | None,
        only: OnlyBest | None,
        scalers: Sequence[str],
    ) -> None:
        self._simulator = simulator
        self._traffic = simulator.traffic
        self._processes = processes
        self._progress = progress
        self._only = only
        self._scalers = scalers
        self._dimensions = [
            d for d in Dimension if any(s.dimension is d and any(rates) for s, rates in self._traffic.rates.items())
        ]
        self._tried = 0
        plans = len(self._dimensions) * len(_TARGETS) * (len(FLOOR_PERCENTS) + 2)
        self._expected = 3 + plans + 2 * _MOST_JOINT + len(_TARGETS) + len(scalers)
        self._choices: dict[Dimension, list[Choice]] = {dimension: [] for dimension in self._dimensions}
        self._finals: list[Candidate] = []
        self._on_demand: Candidate | None = None
        self._marked: Candidate | None = None
        self._declared: Candidate | None = None
        self._scaled: dict[str, Candidate] = {}

    def run(self, limit: float) -> Recommendation:
        with _pool(self._processes) as pool:
            was_stopped = self._search(limit, pool)
        finals = [each for each in (*self._finals, self._on_demand, self._marked) if each is not None]
        if not finals:
            raise RecommendError(
                "the search was interrupted before it had simulated a complete plan; let it run longer"
            )
        figures: Callable[[Candidate], tuple[float, float]] = attrgetter("cost_per_month", "throttled_percent")
        kept = [each for each in finals if each.keeps(limit)]
        chosen = [each for each in finals if (each.parts or (each.throttled_percent,))[0] <= limit]
        best = _best_of(kept, limit) if kept else min(finals, key=lambda each: figures(each)[::-1])
        first = min(chosen, key=figures, default=None)
        days, prices = self._simulator.days, self._simulator.prices.throughput()
        return Recommendation(
            best=best,
            is_within_limit=bool(kept),
            curve=tuple(frontier(finals, figures)),
            tried=self._tried,
            was_stopped=was_stopped,
            broken=first if first is not None and not first.keeps(limit) else None,
            remark=days.remark,
            rise=sudden_rise(days.whole),
            unknown=tuple(
                each for each in Dimension if all(stream.dimension is not each for stream in days.whole.rates)
            ),
            scaled=self._scaled,
            on_demand=self._on_demand,
            marked=self._marked,
            declared=self._declared,
            units_per_month=sum(arriving_units(days.whole).values()) * MINUTES_PER_MONTH / days.whole.minutes,
            request_usd={each: prices.on_demand_million(each) / 1e6 for each in Dimension},
            ceiling_usd=self._simulator.ceiling_usd(best.plan),
        )

    def _search(self, limit: float, pool: Pool | None) -> bool:
        """Simulate everything, and return whether it was interrupted."""
        was_stopped = False
        scaled: dict[str, Callable[[], Candidate]] = {}
        try:
            # the scaler's simulations take longest: where there are processes, they begin first
            scaled = self._start_scaler(pool)
            self._on_demand = self._simulator.judge_on_demand()
            self._tell()
            self._marked = self._simulator.judge_on_demand(is_marked=True)
            if self._only is None and self._simulator.table is not None:
                self._declared = self._simulator.try_declared()
                self._tell()
            for dimension, choices in self._explorations(pool):
                for choice in choices:
                    self._choices[dimension].append(choice)
                    self._tell()
        except KeyboardInterrupt:
            was_stopped = True
            pool = None
        try:
            self._judge(limit, pool)
            if not was_stopped:
                for name, result in scaled.items():
                    self._scaled[name] = result()
                    self._tell()
        except KeyboardInterrupt:
            was_stopped = True
        return was_stopped

    def _judge(self, limit: float, pool: Pool | None) -> None:
        """Simulate complete plans in the days that they are chosen on, and those worth it in all days."""
        each_of: Callable[..., Iterable[Candidate]] = pool.imap if pool else map
        if self._only is not None:
            for plan in self._plans_to_join(limit):
                for each in (plan, self._simulator.fitted(plan)):
                    if each is None:
                        continue
                    self._finals.append(self._simulator.judge(each))
                    self._tell()
                    if self._finals[-1].keeps(limit):
                        return
            return
        tried = []
        for candidate in each_of(self._simulator.try_plan, self._plans_to_join(limit)):
            tried.append(candidate)
            self._tell()
        figures: Callable[[Candidate], tuple[float, float]] = attrgetter("cost_per_month", "throttled_percent")
        plans = [each.plan for each in frontier(tried, figures) if each.plan is not None]
        plans += self._steady_plans(plans)
        plans += [fitted for each in plans if (fitted := self._simulator.fitted(each)) is not None]
        for candidate in each_of(self._simulator.judge, plans):
            self._finals.append(candidate)
            self._tell()

    def _steady_plans(self, others: Sequence[Plan]) -> list[Plan]:
        """Return for each target utilization the cheapest plan that throttles least in the days that it is chosen on.

        In these days a plan of a higher target may do as well for less, so it is not on their trade-off. It may break
        the limit later.
        """
        plans: list[Plan] = []
        for target in sorted(_TARGETS, reverse=True):
            least: dict[Dimension, Choice] = {}
            for dimension in self._dimensions:
                own = [c for c in self._choices[dimension] if c.capacity.target_utilization_percent == target]
                if own:
                    least[dimension] = min(own, key=attrgetter("throttled_units", "cost"))
            plan = self._simulator.plan(least.get(Dimension.READ), least.get(Dimension.WRITE))
            if least.keys() == set(self._dimensions) and least and plan not in (*others, *plans):
                plans.append(plan)
        return plans

    def _start_scaler(self, pool: Pool | None) -> dict[str, Callable[[], Candidate]]:
        """Have the scaler simulated with the lowest floors, at the target utilization for which it is designed."""
        if not self._dimensions or not self._scalers:
            return {}
        lowest = {dimension: self._simulator.choices(dimension, _SCALED_TARGET)[0] for dimension in self._dimensions}
        plan = self._simulator.plan(lowest.get(Dimension.READ), lowest.get(Dimension.WRITE))
        if pool is None:
            return {name: partial(self._simulator.judge, plan, name) for name in self._scalers}
        begun = {name: pool.apply_async(self._simulator.judge, (plan, name)) for name in reversed(self._scalers)}
        return {name: begun[name].get for name in self._scalers}

    def _explorations(self, pool: Pool | None) -> Iterator[tuple[Dimension, Iterable[Choice]]]:
        if self._only is not None:
            yield from self._promising(self._only)
            return
        pairs = list(product(self._dimensions, _TARGETS))
        found: Iterable[Iterable[Choice]] = (
            pool.imap(self._simulator.explore_all, pairs)
            if pool
            else (self._simulator.explore(*pair) for pair in pairs)
        )
        yield from zip((dimension for dimension, _ in pairs), found, strict=True)

    def _promising(self, only: OnlyBest) -> Iterator[tuple[Dimension, Iterable[Choice]]]:
        """Yield what is worth a simulation for the best plan alone: few targets, then the neighbours of the best."""
        for dimension in self._dimensions:
            known = self._choices[dimension]
            for target in _COARSE:
                yield dimension, self._simulator.explore(dimension, target, only, known)
            if known:
                enough = [each for each in known if only.is_enough(dimension, each.throttled_units)]
                best = min(enough or known, key=lambda choice: choice.cost)
                near = best.capacity.target_utilization_percent or 0
                for target in sorted(set(_TARGETS) - set(_COARSE)):
                    if abs(target - near) <= 10:
                        yield dimension, self._simulator.explore(dimension, target, only, known)

    def _plans_to_join(self, limit: float) -> Iterator[Plan]:
        """Yield complete plans: the best choices for reads combined with the best for writes.

        They are the three cheapest that should keep the limit, and samples of the others.
        """
        # if the search was interrupted early, a dimension may have no choices yet, and then there are no pairs
        figures: Callable[[Choice], tuple[float, float]] = attrgetter("cost", "throttled_units")
        pairs = list(product(*(frontier(self._choices[dimension], figures) for dimension in self._dimensions)))
        if not self._dimensions:
            return
        requested_units = sum(arriving_units(self._traffic).values())
        pairs.sort(key=lambda pair: sum(choice.cost for choice in pair))
        promising = [p for p in pairs if sum(c.throttled_units for c in p) <= limit / 100 * requested_units]
        # pairs above the limit are simulated too, so that the curve shows plans that are cheaper and throttle more
        others = [p for p in pairs if p not in promising]
        samples = [*_samples(others, _MOST_JOINT // 2), *_samples(promising[1:], _MOST_JOINT // 3)]
        for pair in [*promising[:3], *(samples if self._only is None else ())]:
            by_dimension = dict(zip(self._dimensions, pair, strict=True))
            yield self._simulator.plan(by_dimension.get(Dimension.READ), by_dimension.get(Dimension.WRITE))

    def _tell(self) -> None:
        self._tried += 1
        if self._progress is not None:
            self._progress(min(self._tried, self._expected), self._expected)


def _best_of(kept: Sequence[Candidate], limit: float) -> Candidate:
    """Return the cheapest of the plans that keep the limit.

    If it uses more than half of the limit, days that were not seen may break it: then it is the cheapest that leaves
    half, unless that costs more than a fifth more.
    """
    figures: Callable[[Candidate], tuple[float, float]] = attrgetter("cost_per_month", "throttled_percent")
    best = min(kept, key=figures)
    spare = min((each for each in kept if each.keeps(limit / 2)), key=figures, default=best)
    return spare if 100 * spare.cost_per_month <= _SPARE_COST_PERCENT * best.cost_per_month else best


def _samples(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return *count* items at even distances, or all if there are fewer."""
    return [items[number * len(items) // count] for number in range(min(count, len(items)))]
