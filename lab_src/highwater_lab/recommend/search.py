"""The search for the cheapest plan that keeps throttling within a limit, and the candidates that it simulated."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from multiprocessing.pool import Pool
from operator import attrgetter
from typing import Final, TypeVar

from highwater.core import Capacity, Dimension, HighwaterError, Plan, Window, check
from highwater.core.bucket import BURST_SECONDS
from highwater.core.findings import Severity
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.zones import find_zone
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.recommend.candidates import Candidate, Choice, frontier, plan_of, units_for
from highwater_lab.recommend.surges import find_surges, round_up, windows_for
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.plans import declared_plan, table_of
from highwater_lab.traffic import Stream, Traffic

# Target utilizations in percent, the most promising first, because the search can be interrupted
_TARGETS = (70, 50, 90, 60, 80, 40, 30)
# Of these a search for the cheapest plan alone tries the first three, and then the neighbours of the best of them
_COARSE = (70, 90, 50)
# Each floor tried is enough, at the target utilization, for the demand of this percentage of all minutes
_FLOOR_PERCENTS = (0, 25, 50, 75, 90, 99)
# A capacity unit serves at most this many units in an hour: a full burst bucket, and each second's own
_UNITS_OF_AN_HOUR = 3600 + BURST_SECONDS
# The number of complete plans to simulate after each dimension was searched separately
_MOST_JOINT = 12
# The policies with the scaler to simulate; with the scaler, target tracking uses 90 %
_SCALERS, _SCALED_TARGET = ("highwater-floor", "highwater-floor-pulse", "highwater-direct-pulse"), 90
DECLARED_NOW: Final = "declared now"
_Item = TypeVar("_Item")


class RecommendError(HighwaterError, ValueError):
    """The search cannot run with these arguments, or was interrupted before it had any result."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The result of `recommend`.

    Attributes:
        best: The cheapest candidate within the limit; if there is none, the candidate with the least throttling.
        is_within_limit: Whether *best* is within the limit.
        curve: The trade-off: the candidates for which no other is both cheaper and less throttled, cheapest first.
        tried: The number of plans simulated.
        was_stopped: Whether the search was interrupted before its end.
        scaled: The results of Highwater's scaler with the lowest floors, with and without pulses, by policy; empty if
            the search was interrupted before, or left them out.
        on_demand: On-demand capacity, `None` if the search was interrupted before.
        declared: What the table has now, simulated as it is deployed, with its scheduled actions and its scaler; `None`
            without a table, or if the search was interrupted before. It is not among the candidates.
        units_per_month: Units that a month of the traffic requests; an index's share of a write is not counted again.
    """

    best: Candidate
    is_within_limit: bool
    curve: tuple[Candidate, ...]
    tried: int
    was_stopped: bool
    scaled: Mapping[str, Candidate] = field(default_factory=dict)
    on_demand: Candidate | None = None
    declared: Candidate | None = None
    units_per_month: float = 0.0

    @property
    def rows(self) -> tuple[tuple[str, Candidate], ...]:
        """What to show beside each other: the curve, on-demand, and by name what is declared and the scaler's results.

        These are there where they are worse, too.
        """
        plans = [*self.curve, *(each for each in (self.on_demand,) if each is not None and each not in self.curve)]
        declared = [] if self.declared is None else [(DECLARED_NOW, self.declared)]
        return (*(("", each) for each in plans), *declared, *self.scaled.items())

    @property
    def present(self) -> Candidate | None:
        """What a change is compared with: what is declared, or on-demand where nothing is known to be."""
        return self.declared or self.on_demand

    @property
    def gain(self) -> float | None:
        """What the best plan costs less than on-demand, in USD a month; `None` if on-demand was not simulated."""
        return None if self.on_demand is None else self.on_demand.cost_per_month - self.best.cost_per_month

    def advised(self, limit_percent: float, least_gain: float) -> Candidate:
        """Return what to deploy: what is declared if it keeps the limit and the best plan gains less than *least_gain*.

        Where nothing is known to be declared, on-demand takes its place. Otherwise, and of a search that was
        interrupted, it is the best plan.

        Args:
            limit_percent: The percentage of requested units that may be throttled.
            least_gain: The USD a month for which a change is worth it.
        """
        present = self.present
        if present is None or self.was_stopped or present.throttled_percent > limit_percent:
            return self.best
        if not self.is_within_limit:
            return self.best if self.declared is None else self.declared
        return present if present.cost_per_month - self.best.cost_per_month < least_gain else self.best

    @property
    def last_step(self) -> LastStep | None:
        """What the last step of the trade-off to the best plan costs; `None` if no plan throttles more."""
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
        usd_per_month: What the plan costs more.
        percent: The percentage points of requested units that it throttles less.
        usd_per_million: The price of a million units that are not throttled.
    """

    usd_per_month: float
    percent: float
    usd_per_million: float


def without_windows(table: TableSetup) -> str:
    """Return why no windows are tried for a table; empty if they are."""
    if table.known is None or not table.known.is_global:
        return ""
    return (
        "no windows are tried: CloudFormation makes the scalable targets of this table, and they cannot have scheduled "
        "actions; a ThrottleAwareScaler opens windows, with windows_held_by= of manage_capacity"
    )


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

    The search tries windows for surges that recur at about the same time on at least two days, except for a global
    table, whose scalable targets CloudFormation makes and which cannot have scheduled actions. A ceiling is 25 % above
    the capacity that the busiest minute needs at the target utilization. Indexes in the traffic follow the table's
    capacity. In addition, Highwater's scaler is simulated with the lowest floors, but not recommended, as it requires a
    function, and pulses require metered clients. On KeyboardInterrupt the search returns the best result so far.

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
    if find_zone(timezone) is None:
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
    simulator = _Simulator(traffic, timezone, table_quota_units, prices, timing or Timing(), table)
    only = None if below_usd is None else _OnlyBest(traffic, prices, max_throttled_percent, below_usd)
    scalers = _SCALERS if with_scaler and only is None else ()
    return _Search(simulator, processes, progress, only, scalers).run(max_throttled_percent)


class _OnlyBest:
    """What a search for the cheapest plan alone leaves out: what bounds of the cost exclude."""

    def __init__(self, traffic: Traffic, prices: Prices, limit_percent: float, below_usd: float) -> None:
        self._allowed = {each: units * limit_percent / 100 for each, units in _arriving(traffic).items()}
        self._most_throttled = dict.fromkeys(Dimension, 0.0)
        for stream in traffic.rates:
            self._most_throttled[stream.dimension] += traffic.total_units(stream) * limit_percent / 100
        self._below_usd = below_usd
        self._prices = prices
        self._needs = {stream: _hourly_needs(traffic, stream) for stream in traffic.rates}

    def least_usd(self, floors: Mapping[Dimension, int]) -> dict[Dimension, float]:
        """Return by dimension the USD a month below which no capacity with these floors keeps the limit."""
        found = dict.fromkeys(Dimension, 0.0)
        for stream, needs in self._needs.items():
            floor, dimension = floors.get(stream.dimension, 1), stream.dimension
            missed = self._most_throttled[dimension] / _UNITS_OF_AN_HOUR
            # reserved capacity costs nothing more; here each index has all of it, which only lowers the bound
            reserved = self._prices.commitments.reserved_units(dimension)
            units = max(0.0, sum(max(0.0, max(floor, need) - reserved) for need in needs) - missed)
            price = self._prices.throughput().unit_hour(dimension) * self._prices.commitments.provisioned_factor
            found[dimension] += price * units / len(needs) * HOURS_PER_MONTH
        return found

    def is_hopeless(self, dimension: Dimension, floor: int, choices: Sequence[Choice]) -> bool:
        """Whether a floor costs more than what is looked for, or than a choice that keeps the limit."""
        least = self.least_usd({dimension: floor})
        best = min((each.cost for each in choices if self.is_enough(dimension, each.throttled_units)), default=None)
        return sum(least.values()) >= self._below_usd or (best is not None and least[dimension] >= best)

    def is_enough(self, dimension: Dimension, throttled_units: float) -> bool:
        """Whether a dimension by itself keeps the limit."""
        return throttled_units <= self._allowed[dimension]


def _arriving(traffic: Traffic) -> dict[Dimension, float]:
    """Return the units that applications ask for; as in a run, an index's share of a write is not counted again."""
    units = dict.fromkeys(Dimension, 0.0)
    for stream in traffic.rates:
        if stream.index is None or stream.dimension is Dimension.READ:
            units[stream.dimension] += traffic.total_units(stream)
    return units


def _hourly_needs(traffic: Traffic, stream: Stream) -> list[float]:
    """Return for each clock hour the capacity that serves its units from a full burst bucket, whenever they come."""
    rates, step = traffic.rates[stream], 3600 // traffic.bin_seconds
    first = step - int(traffic.start.timestamp()) % 3600 // traffic.bin_seconds
    cuts = [0, *range(first, len(rates), step), len(rates)]
    per_unit = QUANTA_PER_UNIT * _UNITS_OF_AN_HOUR
    return [sum(rates[start:end]) * traffic.bin_seconds / per_unit for start, end in pairwise(cuts)]


def least_usd(traffic: Traffic, prices: Prices, max_throttled_percent: float) -> float:
    """Return USD a month below which no provisioned capacity keeps the limit of throttled units under *traffic*.

    An hour is billed at its highest capacity, and at most serves 3,600 seconds of it and a full burst bucket.
    """
    return sum(_OnlyBest(traffic, prices, max_throttled_percent, 0.0).least_usd({}).values())


@dataclass(frozen=True, slots=True)
class _Simulator:
    """Simulates plans under the traffic; picklable, as other processes do so too."""

    traffic: Traffic
    timezone: str
    quota_units: int
    prices: Prices
    timing: Timing
    table: TableSetup | None

    def plan(self, read: Choice | None, write: Choice | None) -> Plan:
        """Return the plan with these choices."""
        own = () if self.table is None else self.table.indexes
        indexes = dict.fromkeys((*own, *(stream.index for stream in self.traffic.rates if stream.index is not None)))
        plan = plan_of(read, write, list(indexes), self.quota_units)
        if self.table is None or self.table.is_on_demand:
            return plan
        # what the traffic does not know of stays as it is, which is not the same as what it knows to be idle
        known = {stream.dimension for stream in self.traffic.rates}
        kept = {each: self.table.resources[0].target(each).capacity for each in Dimension if each not in known}
        return replace(plan, read=kept.get(Dimension.READ, plan.read), write=kept.get(Dimension.WRITE, plan.write))

    def try_plan(self, plan: Plan | None, policy: str = Declared.name) -> Candidate:
        """Simulate a plan, or without one on-demand."""
        name = OnDemandMode.name if plan is None else policy
        return Candidate.of_run(plan, self._simulate(plan or self.plan(None, None), name, self.traffic))

    def try_declared(self) -> Candidate | None:
        """Simulate the table as it is deployed; `None` without one."""
        if self.table is None:
            return None
        table = _with_quotas(self.table, self.quota_units)
        run = simulate(table, self.traffic, Declared(), timing=self.timing, prices=self.prices)
        return Candidate.of_run(None if table.is_on_demand else declared_plan(table, attrgetter("capacity")), run)

    def choices(self, dimension: Dimension, target: int) -> list[Choice]:
        """Return what a target utilization has to offer, with rising floors, before it is simulated."""
        demand = sorted(_minutes(self.traffic, dimension))
        needed = (units_for(_quantile(demand, percent), target) for percent in _FLOOR_PERCENTS)
        ceiling = min(self.quota_units, round_up(units_for(demand[-1], target) * 5 // 4))
        return [
            Choice(
                capacity=Capacity.autoscaled(
                    min_capacity=floor, max_capacity=ceiling, target_utilization_percent=target
                ),
                windows=(),
                cost=0.0,
                throttled_units=0.0,
            )
            for floor in sorted({min(ceiling, round_up(units)) for units in needed})
        ]

    def explore(
        self, dimension: Dimension, target: int, only: _OnlyBest | None = None, known: Sequence[Choice] = ()
    ) -> Iterator[Choice]:
        """Simulate a target utilization with rising floors until nothing is throttled.

        With the two lowest floors, windows for recurring surges are tried as well. If *only* the best plan is looked
        for, it ends where a floor is enough or can be no better than what is *known*.
        """
        traffic = _only(self.traffic, dimension)
        for number, choice in enumerate(self.choices(dimension, target)):
            if only is not None and only.is_hopeless(dimension, int(choice.capacity.min_capacity), known):
                break
            tried, run = self._try(dimension, traffic, choice)
            yield tried
            if run.throttled_units == 0 or (only is not None and only.is_enough(dimension, tried.throttled_units)):
                break
            windows = self._windows(run, dimension, int(choice.capacity.max_capacity)) if number < 2 else ()
            if windows:
                tried, _ = self._try(dimension, traffic, replace(choice, windows=windows))
                yield tried
                if only is not None and only.is_enough(dimension, tried.throttled_units):
                    break

    def explore_all(self, what: tuple[Dimension, int]) -> list[Choice]:
        """Return all of `explore`, for another process."""
        return list(self.explore(*what))

    def _windows(self, run: Run, dimension: Dimension, ceiling: int) -> tuple[Window, ...]:
        if self.table is not None and without_windows(self.table):
            return ()
        zone = find_zone(self.timezone)
        assert zone is not None  # noqa: S101 - `recommend` has checked the name
        windows = windows_for(find_surges(run, dimension, zone), dimension, self.timezone)
        return tuple(
            replace(w, read_min=_capped(w.read_min, ceiling), write_min=_capped(w.write_min, ceiling)) for w in windows
        )

    def _try(self, dimension: Dimension, traffic: Traffic, choice: Choice) -> tuple[Choice, Run]:
        plan = self.plan(
            choice if dimension is Dimension.READ else None, choice if dimension is Dimension.WRITE else None
        )
        # `check` rejects some combinations of windows, of monthly ones above all; such a plan could not be deployed
        for windows in (tuple(w for w in choice.windows if not w.weeks_differ), ()):
            if any(finding.severity is Severity.ERROR for finding in check(plan)):
                plan, choice = replace(plan, windows=windows), replace(choice, windows=windows)
        run = self._simulate(plan, Declared.name, traffic)
        return replace(choice, cost=run.bill.per_month, throttled_units=run.throttled_units), run

    def _simulate(self, plan: Plan, policy: str, traffic: Traffic) -> Run:
        setup = table_of(plan, "table")
        if self.table is not None:
            setup = _in_place_of(self.table, setup)
        return simulate(setup, traffic, find_policy(policy), timing=self.timing, prices=self.prices)


def _with_quotas(table: TableSetup, quota_units: int) -> TableSetup:
    """Return a table in an account with a quota per table, which is no higher than that of the account."""
    return replace(table, quota_units=quota_units, account_quota_units=max(quota_units, table.account_quota_units))


def _in_place_of(table: TableSetup, planned: TableSetup) -> TableSetup:
    """Return a table with the capacity that is planned for it."""
    own = {resource.index: resource for resource in table.resources}
    resources = tuple(
        replace(each, keys=own[each.index].keys, write_share_percent=own[each.index].write_share_percent)
        if each.index in own
        else each
        for each in planned.resources
    )
    # the reads of other replicas are not known, and so they are at their floors
    floors = sum(resource.read.units for resource in resources)
    return replace(
        table,
        resources=resources,
        replicas=tuple(replace(replica, read_units=floors) for replica in table.replicas),
        is_on_demand=False,
        scaler=None,
        quota_units=planned.quota_units,
        account_quota_units=planned.account_quota_units,
    )


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
        simulator: _Simulator,
        processes: int,
        progress: Callable[[int, int], None] | None,
        only: _OnlyBest | None,
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
        plans = len(self._dimensions) * len(_TARGETS) * (len(_FLOOR_PERCENTS) + 2)
        self._expected = 2 + plans + _MOST_JOINT + len(scalers)
        self._choices: dict[Dimension, list[Choice]] = {dimension: [] for dimension in self._dimensions}
        self._candidates: list[Candidate] = []
        self._declared: Candidate | None = None
        self._scaled: dict[str, Candidate] = {}

    def run(self, limit: float) -> Recommendation:
        with _pool(self._processes) as pool:
            was_stopped = self._search(limit, pool)
        if not self._candidates:
            raise RecommendError(
                "the search was interrupted before it had simulated a complete plan; let it run longer"
            )
        within = [c for c in self._candidates if c.throttled_percent <= limit]
        best = (
            min(within, key=lambda c: (c.cost_per_month, c.throttled_percent))
            if within
            else min(self._candidates, key=lambda c: (c.throttled_percent, c.cost_per_month))
        )
        units = sum(_arriving(self._traffic).values())
        return Recommendation(
            best=best,
            is_within_limit=bool(within),
            curve=tuple(frontier(self._candidates, attrgetter("cost_per_month", "throttled_percent"))),
            tried=self._tried,
            was_stopped=was_stopped,
            scaled=self._scaled,
            on_demand=next((each for each in self._candidates if each.plan is None), None),
            declared=self._declared,
            units_per_month=units * HOURS_PER_MONTH * 60 / self._traffic.minutes,
        )

    def _search(self, limit: float, pool: Pool | None) -> bool:
        """Simulate everything, and return whether it was interrupted."""
        was_stopped = False
        try:
            # the scaler's simulations take longest: where there are processes, they begin first
            scaled = self._start_scaler(pool)
            self._candidates.append(self._simulator.try_plan(None))
            self._tell()
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
            plans = self._plans_to_join(limit)
            for candidate in (pool.imap if pool else map)(self._simulator.try_plan, plans):
                self._candidates.append(candidate)
                self._tell()
                if self._only is not None and candidate.throttled_percent <= limit:
                    break
            if not was_stopped:
                for name, result in scaled.items():
                    self._scaled[name] = result()
                    self._tell()
        except KeyboardInterrupt:
            was_stopped = True
        return was_stopped

    def _start_scaler(self, pool: Pool | None) -> dict[str, Callable[[], Candidate]]:
        """Have the scaler simulated with the lowest floors, at the target utilization for which it is designed."""
        if not self._dimensions or not self._scalers:
            return {}
        lowest = {dimension: self._simulator.choices(dimension, _SCALED_TARGET)[0] for dimension in self._dimensions}
        plan = self._simulator.plan(lowest.get(Dimension.READ), lowest.get(Dimension.WRITE))
        if pool is None:
            return {name: partial(self._simulator.try_plan, plan, name) for name in self._scalers}
        begun = {name: pool.apply_async(self._simulator.try_plan, (plan, name)) for name in reversed(self._scalers)}
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

    def _promising(self, only: _OnlyBest) -> Iterator[tuple[Dimension, Iterable[Choice]]]:
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
        requested_units = sum(_arriving(self._traffic).values())
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


def _only(traffic: Traffic, dimension: Dimension) -> Traffic:
    return replace(traffic, rates={s: rates for s, rates in traffic.rates.items() if s.dimension is dimension})


def _minutes(traffic: Traffic, dimension: Dimension) -> Iterator[int]:
    """Yield for each minute the units per second requested from the table or its busiest index, whichever is more."""
    streams = [stream for stream in traffic.rates if stream.dimension is dimension]
    step = 60 // traffic.bin_seconds
    for at in range(0, traffic.minutes * step, step):
        most = max(sum(traffic.rates[stream][at : at + step]) for stream in streams)
        yield -(-most * traffic.bin_seconds // 3600)


def _quantile(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _capped(units: int | None, ceiling: int) -> int | None:
    return None if units is None else min(units, ceiling)


def _samples(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return *count* items at even distances, or all if there are fewer."""
    return [items[number * len(items) // count] for number in range(min(count, len(items)))]
