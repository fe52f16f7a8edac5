"""Live throughput of a table and its indexes: whether a request's units are admitted, and what throttles it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT, KeyDistribution, OnDemandThroughput, Partitions, Provisioned
from highwater_lab.physics.partitions import PARTITION_QUANTA
from highwater_lab.physics.throughput import PEAK_AGE_MINUTES
from highwater_lab.services.update_table import CapacityControl, ChangeKind
from highwater_local.dynamodb.charges import Charge
from highwater_local.dynamodb.resources import indexes_of, is_on_demand, resource_of, units_of
from highwater_local.ministack import Document

# Whole minutes in which a partition throttled requests, until it is split: as `Timing.heat_split_minutes`
_HEAT_SPLIT_MINUTES: Final = 10
# The retention of one-minute datapoints in CloudWatch
MINUTES_KEPT: Final = 15 * 24 * 60
_MOST_KEYS: Final = 10_000
_WHOLE: Final = 1_000_000


class ThroughputMeter:
    """The available throughput of one dimension of one resource in this second, and its consumption by minute.

    All requests of a second share the throughput available at its start, so a second here is like a second of the
    simulator. Times are seconds since 1970 of the cloud's clock, amounts quanta.

    Attributes:
        consumed: Quanta by minute.
        requests: The number of requests that consumed them, by minute.
        events: Throttle events by minute and cause.
        all_events: Throttle events by cause, of all minutes.
    """

    def __init__(
        self, dimension: Dimension, throughput: Provisioned | OnDemandThroughput, partitions: Partitions, second: int
    ) -> None:
        self.dimension = dimension
        self.throughput = throughput
        self.consumed: Counter[int] = Counter()
        self.requests: Counter[int] = Counter()
        self.events: dict[int, Counter[ThrottleCause]] = {}
        self.all_events: Counter[ThrottleCause] = Counter()
        self._partitions = partitions
        self._changes = [(second, throughput.units)]
        self._second = second
        self._spent = 0
        self._by_partition: Counter[int] = Counter()
        self._asked: Counter[int] = Counter()
        self._refused = 0
        self._peak = 0
        self._hot_minutes = 0

    def pass_to(self, second: int) -> None:
        """Advance to *second*; an earlier one has no effect."""
        gap = second - self._second
        if gap <= 0:
            return
        if isinstance(self.throughput, Provisioned):
            self.throughput.bucket.take(self._spent)
            if gap > 1:
                self.throughput.bucket.serve(0, gap - 1)
        self._peak = max(self._peak, self._spent + self._refused)
        self._spent = self._refused = 0
        self._by_partition.clear()
        first, last = self._second // 60, second // 60
        self._second = second
        if last > first:
            self._end_minutes(first, last)

    def resize(self, units: int) -> None:
        """Set the provisioned units from now on."""
        if isinstance(self.throughput, Provisioned) and units != self.throughput.units:
            self.throughput.resize(units)
            self._changes.append((self._second, units))

    def warm_to(self, units: int) -> None:
        """On demand, serve at least *units* at once from now on."""
        if isinstance(self.throughput, OnDemandThroughput):
            self.throughput.warm_to(units)

    def units_at(self, second: int) -> int:
        """Return the units provisioned in that second; 0 on demand and before the table existed."""
        return next((units for at, units in reversed(self._changes) if at <= second), 0)

    def refusal(self, parts: Iterable[tuple[int, int]]) -> ThrottleCause | None:
        """Return the cause with which a request would be throttled now, `None` if it would be admitted.

        *parts* are amounts and hashes of keys, which are admitted together. A request for more than the capacity of a
        full bucket, or of a partition, is admitted if nothing was taken yet.
        """
        by_place: Counter[int] = Counter()
        for amount, key_hash in parts:
            by_place[self._partitions.find(key_hash)] += amount
        for place, asked in by_place.items():
            taken = self._by_partition[place]
            if taken and taken + asked > PARTITION_QUANTA[self.dimension]:
                return ThrottleCause.KEY_RANGE
        amount = by_place.total()
        if isinstance(self.throughput, OnDemandThroughput):
            most, cause = self.throughput.room()
            return cause if self._spent and self._spent + amount > most else None
        bucket = self.throughput.bucket
        left = bucket.available() - self._spent
        return ThrottleCause.PROVISIONED if amount > left and left < bucket.cap else None

    def spend(self, amount: int, key_hash: int, *, is_counted: bool = False) -> None:
        """Consume *amount* for a request, which may be counted already."""
        self._spent += amount
        self._by_partition[self._partitions.find(key_hash)] += amount
        self.consumed[self._second // 60] += amount
        self.requests[self._second // 60] += not is_counted
        if self._hot_minutes or self._second // 60 in self.events:
            self._asked[key_hash] += amount

    def refuse(self, cause: ThrottleCause, amount: int, key_hash: int) -> None:
        """Record that *amount* was throttled."""
        minute = self._second // 60
        self.events.setdefault(minute, Counter())[cause] += 1
        self.all_events[cause] += 1
        self._refused += amount
        if cause is ThrottleCause.KEY_RANGE and len(self._asked) < _MOST_KEYS:
            self._asked[key_hash] += amount

    def _end_minutes(self, first: int, last: int) -> None:
        """Close the minutes from *first* to before *last*."""
        if isinstance(self.throughput, OnDemandThroughput):
            # after this many idle minutes nothing changes any more
            for minute in range(first, min(last, first + PEAK_AGE_MINUTES + 2)):
                self.throughput.end_minute(self.consumed[minute])
        is_hot = ThrottleCause.KEY_RANGE in self.events.get(first, ()) and last == first + 1
        self._hot_minutes = self._hot_minutes + 1 if is_hot else 0
        if self._hot_minutes >= _HEAT_SPLIT_MINUTES:
            self._split()
            self._hot_minutes = 0
        if not self._hot_minutes:
            self._asked.clear()
            self._peak = 0
        for kept in (self.consumed, self.requests, self.events):
            while kept and (oldest := next(iter(kept))) < last - MINUTES_KEPT:
                del kept[oldest]

    def _split(self) -> None:
        """Split the partitions that were at their limit in the last minutes, if that helps."""
        whole = sum(self._asked.values())
        heavy = tuple(sorted((key, amount * _WHOLE // whole) for key, amount in self._asked.items()))
        self._partitions.observe(KeyDistribution("observed", heavy))
        self._partitions.split_for_heat(self._peak, self.dimension)


_NOTHING = dict.fromkeys(Dimension, 0)
# The lowest throughput that an on-demand table serves at once
_WARM = {Dimension.READ: ON_DEMAND_WARM_READ_UNITS, Dimension.WRITE: ON_DEMAND_WARM_WRITE_UNITS}
_MOST = {Dimension.READ: "MaxReadRequestUnits", Dimension.WRITE: "MaxWriteRequestUnits"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The resource that throttles a request, and the cause: `index` is `None` for the table."""

    index: str | None
    dimension: Dimension
    cause: ThrottleCause
    is_on_demand: bool


@dataclass(slots=True)
class _ResourceMeters:
    """Reads and writes of one resource, and the control of its capacity."""

    control: CapacityControl
    is_on_demand: bool
    meters: dict[Dimension, ThroughputMeter]


@dataclass(frozen=True, slots=True)
class ModeSwitch:
    """A switch of the billing mode in progress: when it takes effect, and the mode until then."""

    at: int
    is_on_demand: bool


class TableMeters:
    """The meters of one of MiniStack's tables; changes of its capacity in MiniStack have to be passed to its controls.

    Attributes:
        begun: The second in which measuring began.
        published: The last minute published to CloudWatch.
        throttled_requests: Throttled requests, by minute and operation.
        failed_conditions: Conditions of writes that failed, by minute.
        was_on_demand: Whether the table was ever on demand, or is being switched to it.
        has_returned: Whether it was ever switched to provisioned capacity, which takes longer the first time.
        switches: When switches to on-demand took effect or will, the table's creation included if it was on demand.
        switch: The switch of the billing mode that is in progress.
        built: The time at which each added index is built.
        active_from: When the table, which counts as deployed, is no longer being created.
    """

    def __init__(self, table: Document, second: int) -> None:
        self._table = table
        self.begun = second
        self.published = second // 60 - 1
        self._resources: dict[str | None, _ResourceMeters] = {}
        self.throttled_requests: dict[int, dict[str, int]] = {}
        self.failed_conditions: Counter[int] = Counter()
        self.was_on_demand = is_on_demand(table)
        self.has_returned = False
        self.switches = [second] if self.was_on_demand else []
        self.switch: ModeSwitch | None = None
        self.built: dict[str, int] = {}
        self.active_from = 0

    def is_on_demand(self, second: int) -> bool:
        """Whether the table is on demand in that second: a switch of the mode takes some time."""
        if self.switch is not None and self.switch.at <= second:
            self.switch = None
        return is_on_demand(self._table) if self.switch is None else self.switch.is_on_demand

    def building(self, second: int) -> str | None:
        """Return the index that is being built, of which a table has at most one."""
        return next((index for index, at in self.built.items() if second < at), None)

    def units(self, index: str | None, second: int) -> dict[Dimension, int]:
        """Return the provisioned units that DescribeTable shows: those in effect, 0 on demand.

        During a switch of the mode they are those to come (recorded: radkawar/stackd 9dc356f,
        dynamodb/billing_mode_limits).
        """
        meters = self.of(index, second)
        if self.switch is not None:
            return self._resources[index].control.granted
        if self._resources[index].is_on_demand:
            return dict.fromkeys(Dimension, 0)
        return {dimension: meter.throughput.units for dimension, meter in meters.items()}

    def is_changing(self, index: str | None, second: int) -> bool:
        """Whether a change of provisioned units or of the billing mode is in progress."""
        return self.control(index, second).is_changing(second) or self.switch is not None

    def each(self, second: int) -> Iterator[tuple[str | None, Dimension, ThroughputMeter]]:
        """Yield every meter of the table and its indexes, advanced to *second*."""
        for index in (None, *indexes_of(self._table)):
            for dimension, meter in self.of(index, second).items():
                yield index, dimension, meter

    def of(self, index: str | None, second: int) -> Mapping[Dimension, ThroughputMeter]:
        """Return the meters of the table (`None`) or of an index, advanced to *second*."""
        record = self._record(index)
        found = self._resources.get(index)
        has_no_capacity = self.is_on_demand(second)
        changes = found.control.settle(second) if found else []
        if found is None or found.is_on_demand is not has_no_capacity:
            found = self._resources[index] = self._make(record, has_no_capacity, second, found)
        for change in changes:
            for dimension, meter in found.meters.items():
                meter.pass_to(change.at)
                if change.kind is ChangeKind.CAPACITY:
                    meter.resize(change.units[dimension])
                meter.warm_to(found.control.mark[dimension])
        for dimension, meter in found.meters.items():
            meter.pass_to(second)
            if isinstance(meter.throughput, OnDemandThroughput):
                # a change takes effect at once (Amazon DynamoDB Developer Guide, on-demand maximum throughput)
                most = record.get("OnDemandThroughput") or {}
                meter.throughput.limit_to(_limit(most.get(_MOST[dimension])))
        return found.meters

    def control(self, index: str | None, second: int) -> CapacityControl:
        """Return the control of a resource's capacity, with all changes due by *second* in effect."""
        self.of(index, second)
        return self._resources[index].control

    def all_throttles(self) -> Iterator[tuple[str | None, Dimension, ThrottleCause, int]]:
        """Yield the throttle events of each resource, dimension and cause since the table or index was made.

        A write that only an index throttles is a throttle event of the index alone.
        """
        for index, resource in self._resources.items():
            for dimension, meter in resource.meters.items():
                for cause, count in meter.all_events.items():
                    yield index, dimension, cause, count

    def forget(self, index: str) -> None:
        """Remove the meters of a deleted index."""
        self._resources.pop(index, None)
        self.built.pop(index, None)

    def switch_mode(self, second: int, at: int) -> None:
        """Make the requested billing mode take effect at *at*.

        A switch to on-demand is a decrease of each index, even of one that has used up its decreases, and none of the
        table (recorded: radkawar/stackd 9dc356f, dynamodb/decrease_limits).
        """
        self.was_on_demand = True
        to_on_demand = is_on_demand(self._table)
        if to_on_demand:
            self.switches.append(at)
        if at > second:
            self.switch = ModeSwitch(at, not to_on_demand)
        for index, resource in self._resources.items():
            control = resource.control
            increased = control.last_increase
            if to_on_demand:
                control.restart(second, at, _NOTHING)
                # the mark remains when the table switches back
                control.raise_mark(at, _WARM)
                if index is not None:
                    control.budget = control.budget.after(datetime.fromtimestamp(second, UTC))
                    control.decreases += 1
            else:
                record = resource_of(self._table, index) or {}
                control.restart(second, at, units_of(record.get("ProvisionedThroughput")))
                if index is None:
                    control.last_increase = increased

    def refusals(self, charges: Iterable[tuple[Charge, Mapping[str | None, int]]], second: int) -> list[Refusal]:
        """Return the resources that would throttle these charges together now; with each, the hashes of its keys.

        *hashes* are by index and `None`. An exhausted index also refuses a write that leaves it as it is (recorded:
        radkawar/stackd 9dc356f, dynamodb/write_throttling).
        """
        asked: dict[tuple[str | None, Dimension], list[tuple[int, int]]] = {}
        for charge, hashes in charges:
            for index, amount in _parts(charge):
                part = (amount or QUANTA_PER_UNIT, hashes.get(index, hashes[None]))
                asked.setdefault((index, charge.dimension), []).append(part)
        found = []
        for (index, dimension), parts in asked.items():
            cause = self.of(index, second)[dimension].refusal(parts)
            if cause is not None:
                found.append(Refusal(index, dimension, cause, self._resources[index].is_on_demand))
        return found

    def spend(
        self, charge: Charge, hashes: Mapping[str | None, int], second: int, before: Charge | None = None
    ) -> None:
        """Consume each resource's part of *charge*; the request is counted already where it consumed *before*."""
        counted = {} if before is None else dict(_parts(before))
        for index, amount in _parts(charge):
            if amount:
                meter = self.of(index, second)[charge.dimension]
                meter.spend(amount, hashes.get(index, hashes[None]), is_counted=bool(counted.get(index)))

    def refuse(
        self, refusals: list[Refusal], charges: Iterable[tuple[Charge, Mapping[str | None, int]]], second: int
    ) -> None:
        """Record a throttled request for the resources that throttled it."""
        asked: dict[tuple[str | None, Dimension], tuple[int, int]] = {}
        for charge, hashes in charges:
            for index, amount in _parts(charge):
                before, _ = asked.get((index, charge.dimension), (0, 0))
                asked[index, charge.dimension] = before + amount, hashes.get(index, hashes[None])
        for refusal in refusals:
            meter = self.of(refusal.index, second)[refusal.dimension]
            meter.refuse(refusal.cause, *asked[refusal.index, refusal.dimension])

    def count_throttled_request(self, operation: str, second: int) -> None:
        """Count a throttled request."""
        by_operation = self.throttled_requests.setdefault(second // 60, {})
        by_operation[operation] = by_operation.get(operation, 0) + 1

    def _record(self, index: str | None) -> Document:
        record = resource_of(self._table, index)
        if record is None:
            raise KeyError(index)
        return record

    def _make(
        self, record: Document, has_no_capacity: bool, second: int, before: _ResourceMeters | None
    ) -> _ResourceMeters:
        if before:
            control = before.control
        else:
            units = _NOTHING if has_no_capacity else units_of(record.get("ProvisionedThroughput"))
            control = CapacityControl(units, _WARM if has_no_capacity else None)
        throughput: dict[Dimension, Provisioned | OnDemandThroughput]
        if has_no_capacity:
            throughput = {d: OnDemandThroughput(d, control.partitions, control.mark[d]) for d in Dimension}
        else:
            throughput = {d: Provisioned(d, control.units[d], control.partitions) for d in Dimension}
        meters = {d: ThroughputMeter(d, throughput[d], control.partitions, second) for d in Dimension}
        for dimension, old in before.meters.items() if before else ():
            # measurements are kept when the billing mode changes
            meter = meters[dimension]
            meter.consumed, meter.requests = old.consumed, old.requests
            meter.events, meter.all_events = old.events, old.all_events
        return _ResourceMeters(control, has_no_capacity, meters)


def _parts(charge: Charge) -> Iterator[tuple[str | None, int]]:
    if charge.of_table:
        yield None, charge.of_table
    yield from charge.indexes.items()


def _limit(units: object) -> int | None:
    return int(units) if isinstance(units, int) and units > 0 else None
