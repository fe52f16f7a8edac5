"""The state of a table that may be boosted: its plan, targets and capacity, and what it can grant and say of boosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from highwater.aws.autoscaling import RegisteredTargets, read_failures, read_targets
from highwater.aws.cloudwatch import read_consumption, with_past, with_throttles
from highwater.aws.coordinator_table import TableLeases
from highwater.aws.parameters import ScaledPlans, read_plans, read_plans_of
from highwater.aws.region import AwsRegion
from highwater.aws.tables import (
    DescribedTable,
    TableBusyError,
    TableNotFoundError,
    TableRefusedError,
    describe_table,
)
from highwater.core.boosts import BoostCap, Grant, Lease, boosted_floor, boosts_at, grant, index_shares_percent
from highwater.core.boosts.lease import LONGEST_BOOST, described_lease, target_text
from highwater.core.boosts.request import FURTHEST
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.prices import find_prices
from highwater.core.scaler import Mode, ScaledPlan
from highwater.core.scaler.attention import THROTTLE_MINUTES, needs_past
from highwater.core.scaler.demand import DemandAlone
from highwater.core.scaler.settings import JUMP_MINUTES, LOWERED_FROM_MINUTE
from highwater.core.scaler.stages import demand_alone
from highwater.core.schedule.bounds import Bounds, Timeline, bounds_at, timeline
from highwater.core.units import Dimension, Units
from highwater.handlers.coordinator import refusals

T = TypeVar("T")

# Cached as long as the grants. Every job that waits for its capacity sends a request every two seconds, and an account
# may read parameters 40 times a second in total (AWS General Reference, Systems Manager quotas, read 2026-11).
_PLANS_SECONDS = 30.0
# A plan that was read this lately is new enough for a grant too, and a state for a poll.
_ANEW_SECONDS = 2.0
# Shares of the last day change little within it, and CloudWatch has another minute of demand after it.
_METRICS_SECONDS = 60.0


@dataclass(slots=True)
class Cache(Generic[T]):
    """What a warm function has read, by name.

    Attributes:
        clock: Monotonic clock, in seconds.
    """

    clock: Callable[[], float]
    _found: dict[str, tuple[float, T]] = field(default_factory=dict)

    def get(self, name: str, seconds: float, read: Callable[[], T], is_kept: Callable[[T], bool] = lambda _: True) -> T:
        """Return what was read within the last *seconds*, or else what *read* returns, which is cached if *is_kept*."""
        now = self.clock()
        known = self._found.get(name)
        if known is not None and now - known[0] < seconds:
            return known[1]
        self._found.pop(name, None)
        value = read()
        if is_kept(value):
            self._found[name] = (now, value)
        return value


@dataclass(slots=True)
class KeptTables:
    """What a warm function caches of tables: plans, states for polls, the shares of indexes, and demand.

    Attributes:
        clock: Monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _plans: Cache[ScaledPlans] = field(init=False)
    _labels: Cache[tuple[str, ...]] = field(init=False)
    _states: Cache[TableState] = field(init=False)
    _shares: Cache[dict[TargetKey, int] | None] = field(init=False)
    _demands: Cache[DemandAlone | None] = field(init=False)

    def __post_init__(self) -> None:
        """Make the caches."""
        self._plans, self._labels = Cache(self.clock), Cache(self.clock)
        self._states, self._shares, self._demands = Cache(self.clock), Cache(self.clock), Cache(self.clock)

    def plan(self, home: AwsRegion, scaler: str, label: str, *, is_anew: bool) -> ScaledPlans:
        """Return the plan of one table of *scaler*, read again after half a minute, or after two seconds if *is_anew*.

        New grants must follow the plan of a deploy that has just ended. Only a readable plan is cached: a table that
        was just added to the scaler, or whose plan was just repaired, is found at the next request.
        """
        return self._plans.get(
            label,
            _ANEW_SECONDS if is_anew else _PLANS_SECONDS,
            lambda: read_plans_of(home.ssm, scaler, [label]),
            # by another name, such as that of one of its versions, a parameter is not cached
            lambda found: any(plan.label == label and not plan.is_released for plan in found.plans),
        )

    def labels(self, home: AwsRegion, scaler: str) -> tuple[str, ...]:
        """Return the labels of the tables of *scaler*, read again after half a minute."""

        def read() -> tuple[str, ...]:
            return tuple(sorted(plan.label for plan in read_plans(home.ssm, scaler).plans if not plan.is_released))

        return self._labels.get(scaler, _PLANS_SECONDS, read)

    def state(self, scaled: ScaledPlan, region: AwsRegion) -> TableState:
        """Return a table's state for a poll, read again after two seconds.

        Raises `RefusedError` if the table does not exist or AWS does not answer.
        """
        return self._states.get(
            scaled.label, _ANEW_SECONDS, lambda: TableState.read(scaled, region).with_failures(region)
        )

    def shares(self, state: TableState, region: AwsRegion) -> dict[TargetKey, int] | None:
        """Return `TableState.index_shares`, read again after a minute."""
        return self._shares.get(
            state.scaled.label,
            _METRICS_SECONDS,
            lambda: state.index_shares(region),
            lambda found: found is not None,
        )

    def demand(self, state: TableState, region: AwsRegion, key: TargetKey) -> DemandAlone | None:
        """Return `TableState.demand_alone`, read again after a minute, also where it was not known."""
        name = f"{state.scaled.label} {target_text(key)}"
        return self._demands.get(name, _METRICS_SECONDS, lambda: state.demand_alone(key, region))


# Returns the demand of a target as CloudWatch has it, `None` where it is not known.
ReadDemand = Callable[[TargetKey], DemandAlone | None]

# The time over which the writes of a table and its indexes are compared
_SHARES_MINUTES = 24 * 60
# the least throughput that any table supports without adding partitions
_PARTITION: Final = Units(PARTITION_READ_UNITS, PARTITION_WRITE_UNITS)
# AWS does not document how long adding partitions takes; docs/decisions/0009 has what is known.
_GROWTH: Final = (
    "DynamoDB adds partitions first, which takes minutes; a high-water mark in the plan has them added before"
)


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that may be boosted.

    Attributes:
        scaled: Its plan.
        registered: Its targets in Application Auto Scaling, with AWS's time.
        described: The answer of DescribeTable.
        planned: What the plan asks for of each target, for as long as a lease may last that is live now or booked now.
        failures: Why auto scaling could not raise the capacity of targets to their floors; empty if that was not read.
    """

    scaled: ScaledPlan
    registered: RegisteredTargets
    described: DescribedTable
    planned: Mapping[TargetKey, Timeline]
    failures: Mapping[TargetKey, str] = field(default_factory=dict)

    @classmethod
    def read(cls, scaled: ScaledPlan, region: AwsRegion) -> TableState:
        """Read a table's state; raises `RefusedError` if the table does not exist or AWS does not answer."""
        try:
            described = describe_table(region.dynamodb, scaled.table)
        except TableNotFoundError:
            raise refusals.table_gone(scaled.label) from None
        except (TableBusyError, TableRefusedError) as error:
            raise refusals.table_silent(scaled.label, error) from error
        if scaled.is_tagged:
            scaled = scaled.with_indexes(index for index in described.capacities if index is not None)
        names = [TargetName(scaled.table, *target.key) for target in scaled.plan.targets()]
        registered = read_targets(region.autoscaling, names)
        first, end = registered.at - LONGEST_BOOST, registered.at + FURTHEST + LONGEST_BOOST
        planned = {target.key: timeline(target, first, end) for target in scaled.plan.targets()}
        return cls(scaled, registered, described, planned)

    def with_failures(self, region: AwsRegion) -> TableState:
        """Return the state with `failures`, where capacity is below its floor; without, if AWS does not answer."""
        below = {
            TargetName(self.scaled.table, *each.key): each.key
            for each in self.scaled.plan.targets()
            if self.provisioned(each.key) < (self.floor(each.key) or 0)
        }
        try:
            found = read_failures(region.autoscaling, below, self.now)
        except Exception:
            return self
        return replace(self, failures={below[name]: why for name, why in found.items()})

    @property
    def now(self) -> datetime:
        """AWS's time at which the state was read."""
        return self.registered.at

    def has_target(self, key: TargetKey) -> bool:
        """Whether the plan has a target: an index may have left it since a boost began."""
        return any(each.key == key for each in self.scaled.plan.targets())

    def target(self, key: TargetKey) -> Target:
        """Return one target of the plan."""
        return next(each for each in self.scaled.plan.targets() if each.key == key)

    def provisioned(self, key: TargetKey) -> int:
        """Return the capacity of a target, in units per second; 0 where the table has no such index."""
        capacity = self.described.capacities.get(key[0])
        return 0 if capacity is None else capacity.of(key[1])

    def floor(self, key: TargetKey) -> int | None:
        """Return the floor of a target in units per second, `None` where none is registered."""
        bounds = self.registered.of(TargetName(self.scaled.table, *key))
        return None if bounds is None else bounds.min

    def is_paused(self, key: TargetKey) -> bool:
        """Whether scaling of a target is suspended, so that no floor is set."""
        return self.registered.is_suspended(TargetName(self.scaled.table, *key))

    def check_can_be_boosted(self, key: TargetKey) -> None:
        """Raise `RefusedError` for a target whose floor or capacity cannot be set."""
        label = f"{self.scaled.label}, {self.target(key).label}"
        if key[0] not in self.described.capacities:
            raise refusals.index_missing(label)
        if self.provisioned(key) == 0:
            raise refusals.on_demand(label)
        if key[1] is Dimension.WRITE and self.described.replica_regions:
            raise refusals.replicated_writes(label, self.described.replica_regions)
        if self.scaled.mode is Mode.DIRECT and self.floor(key) is not None:
            raise refusals.second_owner(label)
        if self.scaled.mode.moves_floors and self.floor(key) is None:
            raise refusals.no_target(label)

    def demand(self, key: TargetKey, known: TableLeases) -> int:
        """Return the floor that demand and plan account for, as the turn that recorded the boosts' part says.

        Where no boost is recorded, it is the present floor. 0 if the scaler does not follow demand: target tracking
        then raises capacity above the floor by itself.
        """
        if not self.scaled.mode.follows_demand:
            return 0
        floor = self.floor(key)
        present = self.provisioned(key) if floor is None else floor
        # a part is recorded before its floor is raised, so the present floor may not have it yet
        return known.demands.get(key, max(present - known.boosted.get(key, 0), 0))

    def wanted(self, key: TargetKey, known: TableLeases, at: datetime | None = None) -> int:
        """Return the floor of a target that plan, demand and boosts ask for *at* a time, in units per second.

        By default now. Demand is always that of now.
        """
        at = at or self.now
        planned = bounds_at(self.target(key), at)
        low = max(planned.min, min(self.demand(key, known), planned.max))
        ceiling = self.target(key).capacity.max_with_boosts
        boosts = boosts_at(known.leases, key, at)
        return boosted_floor(Bounds(low, planned.max), boosts, self.scaled.plan.table_quota_units, ceiling)

    def is_ready(self, key: TargetKey, known: TableLeases) -> bool:
        """Whether a target's floor and capacity have reached `wanted`, and its table is ACTIVE."""
        wanted, floor = self.wanted(key, known), self.floor(key)
        has_floor = floor is None or floor >= wanted
        return has_floor and self.provisioned(key) >= wanted and self.described.is_active

    def index_shares(self, region: AwsRegion) -> dict[TargetKey, int] | None:
        """Return each index's share of the table's consumed write units in the last day, in percent.

        `None` if the table has no indexes, or CloudWatch does not answer: each index is then boosted like its table,
        which is enough for any load.
        """
        indexes = [index for index, *_ in self.scaled.plan.resources() if index is not None]
        if not indexes:
            return None
        names = {
            (index, Dimension.WRITE): TargetName(self.scaled.table, index, Dimension.WRITE)
            for index in (None, *indexes)
        }
        try:
            consumed = read_consumption(region.cloudwatch, names.values(), _SHARES_MINUTES, self.now, region.rate)
        except Exception:
            return None
        return index_shares_percent(
            {key: sum(units or 0 for units in consumed[name].consumed_units) for key, name in names.items()}
        )

    def demand_alone(self, key: TargetKey, region: AwsRegion) -> DemandAlone | None:
        """Return the demand of a target by itself; `None` if CloudWatch has no minute of it, or does not answer."""
        name = TargetName(self.scaled.table, *key)
        try:
            seen = read_consumption(region.cloudwatch, [name], JUMP_MINUTES, self.now, region.rate)
            seen = with_throttles(region.cloudwatch, seen, THROTTLE_MINUTES, self.now)
            if needs_past(seen[name], has_pulses=False):
                seen = with_past(region.cloudwatch, seen, {name: self.target(key)}, self.now, region.rate)
        except Exception:
            return None
        return demand_alone(self.scaled.settings, seen[name])

    def grant(
        self,
        asked: Lease,
        known: TableLeases,
        cap: BoostCap,
        read_demand: ReadDemand,
        *,
        boost: Iterable[Lease] = (),
        own_units: int = 0,
    ) -> Grant:
        """Return the grant of a lease, given the known leases.

        Demand is as the last turn recorded it. Without a record it is the floor that the scaler holds, and where this
        would reduce the grant, the demand that *read_demand* returns.

        *boost* are the leases of its boost, if they are not known; *own_units* of the demand are of the boost itself.
        """
        boost = boost or known.of(asked.owner, asked.id)

        def granted(demand: DemandAlone) -> Grant:
            return grant(
                asked,
                self.planned[asked.key],
                known.leases,
                max_with_boosts=self.target(asked.key).capacity.max_with_boosts,
                demand_units=max(demand.units - own_units, 0),
                demand_until=self.now + timedelta(minutes=demand.minutes),
                quota_units=self.scaled.plan.table_quota_units,
                cap_units=cap.of_lease(asked, boost),
            )

        recorded = known.demand_alone(asked.key, self.now)
        if recorded is not None:
            return granted(recorded)
        held = DemandAlone(self.demand(asked.key, known), max(LOWERED_FROM_MINUTE - self.now.minute, 1))
        found = granted(held)
        if not held.units or found.is_whole or granted(replace(held, units=0)).units == found.units:
            return found
        read = read_demand(asked.key)
        return found if read is None else granted(read)

    def grant_of_known(self, lease: Lease, known: TableLeases, cap: BoostCap, read_demand: ReadDemand) -> Grant:
        """Return the earlier grant of a lease whose request arrives again, with the limits as they are now."""
        if lease.asked is None:
            return Grant(lease, lease.units)
        asked = replace(lease, units=lease.asked, asked=None)
        return Grant(asked, lease.units, self.grant(asked, known, cap, read_demand).limits)

    def check_room(self, more: Lease, known: TableLeases, cap: BoostCap, read_demand: ReadDemand) -> None:
        """Raise `RefusedError` if a lease cannot be extended: others are booked, or the caller's cap was lowered."""
        # the scaler may have seen the traffic of the boost's own job meanwhile, which is no reason to end it
        found = self.grant(more, known, cap, read_demand, own_units=0 if more.is_total else more.units)
        if not found.is_whole:
            why = "; ".join(sentence for _, sentence in found.limits)
            raise refusals.no_room_to_renew(more.label, more.id, why)

    def grant_documents(self, grants: Iterable[Grant], region: str) -> list[dict[str, Any]]:
        """Return the grant of each target of a request, with its limits and the price of an hour in US dollars."""
        prices = find_prices(region, is_infrequent_access=self.described.is_infrequent_access)
        found = []
        for each in grants:
            usd = None if prices is None else float(prices.provisioned(each.units, each.asked.dimension))
            found.append(
                described_lease(each.asked)
                | {
                    "asked": each.asked.units,
                    "units": each.units,
                    "limits": [{"code": str(code), "sentence": sentence} for code, sentence in each.limits],
                    "usd_per_hour": usd,
                }
            )
        return found

    def notes_on(self, keys: Iterable[TargetKey], known: TableLeases, at: datetime | None = None) -> list[str]:
        """Return remarks on the targets of a boost: partitions to add first, failed or suspended auto scaling.

        *at* is the time for which the floor is judged, by default now.
        """
        notes = []
        for key in keys:
            label, wanted = self.target(key).label, self.wanted(key, known, at)
            mark = self.described.marks.get(key[0])
            warm = None if mark is None else mark.of(key[1])
            if warm is not None and wanted > max(warm, _PARTITION.of(key[1])):
                notes.append(f"{label}: {wanted:,} units/s is above the high-water mark of {warm:,}; {_GROWTH}")
            if key in self.failures:
                notes.append(f"{label}: {self.failures[key]}")
            if self.is_paused(key):
                notes.append(f"{label}: scaling is suspended, so no floor is set; highwater resume {self.scaled.table}")
        return notes

    def target_documents(self, keys: Iterable[TargetKey], known: TableLeases) -> list[dict[str, Any]]:
        """Return the state of each target: wanted floor, present floor and capacity, in units per second."""
        return [
            {
                "target": self.target(key).label,
                "wanted": self.wanted(key, known),
                "floor": self.floor(key),
                "provisioned": self.provisioned(key),
                "is_ready": self.is_ready(key, known),
            }
            for key in keys
        ]
