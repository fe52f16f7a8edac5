"""Simulates what a search tries: choices of capacity, plans, on-demand, and what is declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from highwater.core import Capacity, Dimension, Plan, Units, Window, check
from highwater.core.findings import Severity
from highwater.core.plan.zones import find_zone
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.recommend.bounds import OnlyBest
from highwater_lab.recommend.candidates import Candidate, Choice, merged_windows, plan_of, units_for
from highwater_lab.recommend.days import Days
from highwater_lab.recommend.surges import find_surges, round_up, windows_for
from highwater_lab.services.prices import Prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, simulate
from highwater_lab.simulation.plans import declared_plan, table_of
from highwater_lab.simulation.simulator import mark_price
from highwater_lab.traffic import Stream, Traffic

# Each floor tried is enough, at the target utilization, for the demand of this percentage of all minutes
FLOOR_PERCENTS = (0, 25, 50, 75, 90, 99)
# A ceiling costs nothing until it is used, and the next week may bring more than the busiest minute seen so far
# (docs/decisions/0011)
_CEILING_TIMES = 3


def without_windows(table: TableSetup) -> str:
    """Return why no windows are tried for a table; empty if they are."""
    if table.known is None or not table.known.is_global:
        return ""
    return (
        "no windows are tried: CloudFormation makes the scalable targets of this table, and they cannot have scheduled "
        "actions; a ThrottleAwareScaler opens windows, with windows_held_by= of manage_capacity"
    )


@dataclass(frozen=True, slots=True)
class Trials:
    """Simulates plans under the traffic of a table; picklable, as other processes do so too."""

    days: Days
    timezone: str
    quota_units: int
    prices: Prices
    timing: Timing
    table: TableSetup | None

    @property
    def traffic(self) -> Traffic:
        """The days that a plan is chosen on."""
        return self.days.chosen

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

    def try_plan(self, plan: Plan) -> Candidate:
        """Simulate a plan in the days that it is chosen on."""
        return Candidate.of_run(plan, self._simulate(plan, Declared.name, self.traffic))

    def judge(self, plan: Plan, policy: str = Declared.name) -> Candidate:
        """Simulate a plan in all days."""
        setup = self._setup(plan)
        run = self._run(setup, policy, self.days.whole)
        return replace(Candidate.of_run(plan, run, self.days.cut), once_usd=mark_price(setup, self.prices))

    def fitted(self, plan: Plan) -> Plan | None:
        """Return a plan with windows for the surges of all days; `None` without windows, or if they stay the same.

        The days that a plan is chosen on may lack days of the week.
        """
        if not plan.windows or self.days.cut is None:
            return None
        bare = replace(plan, windows=())
        run = self._simulate(bare, Declared.name, self.days.whole)
        windows: tuple[Window, ...] = ()
        for dimension, capacity in ((Dimension.READ, plan.read), (Dimension.WRITE, plan.write)):
            if any((w.read_min, w.write_min)[dimension is Dimension.WRITE] for w in plan.windows):
                windows += self._windows(run, dimension, int(capacity.max_capacity))
        fitted = replace(plan, windows=merged_windows(windows))
        is_valid = all(finding.severity is not Severity.ERROR for finding in check(fitted))
        return fitted if is_valid and fitted != plan and windows else None

    def judge_on_demand(self, *, is_marked: bool = False) -> Candidate | None:
        """Simulate on-demand in all days, as it is, or with a high-water mark a quarter above the busiest minute.

        `None` for a mark that every table on demand has.
        """
        setup = self._setup(self.plan(None, None))
        if self.table is not None and self.table.is_on_demand:
            # an on-demand maximum stays
            setup = replace(setup, resources=self.table.resources)
        setup = replace(setup, resources=tuple(map(self._as_warm_as_it_is, setup.resources)))
        marks = self._marks(setup) if is_marked else {}
        if is_marked and not marks:
            return None
        warmed = (
            each.warmed(marks[each.index], each.warm_on_demand) if each.index in marks else each
            for each in setup.resources
        )
        setup = OnDemandMode().arrange(replace(setup, resources=tuple(warmed)), self.days.whole)
        run = self._run(setup, OnDemandMode.name, self.days.whole)
        once = mark_price(setup, self.prices)
        return replace(Candidate.of_run(None, run, self.days.cut), mark=marks, once_usd=once)

    def _as_warm_as_it_is(self, resource: ResourceSetup) -> ResourceSetup:
        """Return a resource with at least the warm throughput that it is known to have, which never falls."""
        for own in () if self.table is None else self.table.resources:
            if own.index == resource.index:
                warm = own.warm_on_demand
                return replace(
                    resource,
                    warm_read_units=max(resource.warm_read_units, warm.read),
                    warm_write_units=max(resource.warm_write_units, warm.write),
                )
        return resource

    def _marks(self, setup: TableSetup) -> dict[str | None, Units]:
        """Return by resource the mark a quarter above its busiest minute, where it is not as warm without."""
        marks = {}
        for resource in setup.resources:
            wanted = dict.fromkeys(Dimension, 0)
            for dimension in Dimension:
                rates = self.days.whole.rates.get(Stream(resource.index, dimension))
                if rates is not None:
                    busiest = max(_minute_peaks(rates, self.days.whole.bin_seconds), default=0)
                    wanted[dimension] = min(self.quota_units, round_up(busiest * 5 // 4))
            warm = resource.warm_on_demand
            mark = Units(max(warm.read, wanted[Dimension.READ]), max(warm.write, wanted[Dimension.WRITE]))
            if mark != warm:
                marks[resource.index] = mark
        return marks

    def try_declared(self) -> Candidate | None:
        """Simulate the table as it is deployed, in all days; `None` without one."""
        if self.table is None:
            return None
        table = _with_quotas(self.table, self.quota_units)
        run = simulate(table, self.days.whole, Declared(), timing=self.timing, prices=self.prices)
        plan = None if table.is_on_demand else declared_plan(table, attrgetter("capacity"))
        return Candidate.of_run(plan, run, self.days.cut)

    def ceiling_usd(self, plan: Plan | None) -> float:
        """Return the cost of a month in which all capacity of a plan is at its ceilings, in USD; 0 for on demand."""
        if plan is None:
            return 0.0
        prices, setup = self.prices.throughput(), self._setup(plan)
        hour = sum(
            prices.unit_hour(dimension) * resource.target(dimension).max
            for resource in setup.resources
            for dimension in Dimension
        )
        return hour * HOURS_PER_MONTH * self.prices.commitments.provisioned_factor

    def choices(self, dimension: Dimension, target: int) -> list[Choice]:
        """Return what a target utilization has to offer, with rising floors, before it is simulated."""
        demand = sorted(_minutes(self.traffic, dimension))
        needed = (units_for(_quantile(demand, percent), target) for percent in FLOOR_PERCENTS)
        ceiling = min(self.quota_units, round_up(units_for(demand[-1], target) * _CEILING_TIMES))
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
        self, dimension: Dimension, target: int, only: OnlyBest | None = None, known: Sequence[Choice] = ()
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

    def _setup(self, plan: Plan) -> TableSetup:
        setup = table_of(plan, "table")
        return setup if self.table is None else _in_place_of(self.table, setup)

    def _run(self, setup: TableSetup, policy: str, traffic: Traffic) -> Run:
        return simulate(setup, traffic, find_policy(policy), timing=self.timing, prices=self.prices)

    def _simulate(self, plan: Plan, policy: str, traffic: Traffic) -> Run:
        return self._run(self._setup(plan), policy, traffic)


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


def _only(traffic: Traffic, dimension: Dimension) -> Traffic:
    return replace(traffic, rates={s: rates for s, rates in traffic.rates.items() if s.dimension is dimension})


def _minutes(traffic: Traffic, dimension: Dimension) -> Iterator[int]:
    """Yield for each minute the units per second requested from the table or its busiest index, whichever is more."""
    streams = [stream for stream in traffic.rates if stream.dimension is dimension]
    step = 60 // traffic.bin_seconds
    for at in range(0, traffic.minutes * step, step):
        most = max(sum(traffic.rates[stream][at : at + step]) for stream in streams)
        yield -(-most * traffic.bin_seconds // 3600)


def _minute_peaks(rates: Sequence[int], bin_seconds: int) -> Iterator[int]:
    """Yield for each minute the units per second that are requested, rounded up."""
    step = 60 // bin_seconds
    for at in range(0, len(rates), step):
        yield -(-sum(rates[at : at + step]) * bin_seconds // 3600)


def _quantile(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _capped(units: int | None, ceiling: int) -> int | None:
    return None if units is None else min(units, ceiling)
