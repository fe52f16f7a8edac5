"""Live throughput of a table and its indexes: whether a request's units are admitted, and what throttles it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater_lab.physics import Cause, KeyDistribution, OnDemand, Partitions, Provisioned
from highwater_lab.physics.partitions import PARTITION_QUANTA
from highwater_lab.physics.throughput import PEAK_AGE_MINUTES
from highwater_lab.services.update_table import CapacityControl, ChangeKind
from highwater_local.dynamodb.charges import Charge
from highwater_local.dynamodb.resources import Document, indexes_of, is_on_demand, resource_of, units_of

# Whole minutes in which a partition refused, until it is split: as `Timing.heat_split_minutes`
_HEAT_SPLIT_MINUTES: Final = 10
# As long as CloudWatch keeps minutes
MINUTES_KEPT: Final = 15 * 24 * 60
_MOST_KEYS: Final = 10_000
_WHOLE: Final = 1_000_000


def hash_of(key: object) -> int:
    """Where a partition key's value lies in the space of hashes."""
    digest = hashlib.md5(str(key).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


class Meter:
    """What one dimension of one resource has left in this second, and what it gave in each minute.

    Requests of one second draw on what the second began with, so a second here is a second of the simulator. Times are
    seconds since 1970 of the cloud's clock, amounts quanta.

    Attributes:
        consumed: Quanta by minute.
        requests: How many requests that were, by minute.
        throttled: Quanta by minute and cause.
        events: Throttle events by minute and cause.
    """

    def __init__(
        self, dimension: Dimension, throughput: Provisioned | OnDemand, partitions: Partitions, second: int
    ) -> None:
        self.dimension = dimension
        self.throughput = throughput
        self.consumed: Counter[int] = Counter()
        self.requests: Counter[int] = Counter()
        self.throttled: dict[int, Counter[Cause]] = {}
        self.events: dict[int, Counter[Cause]] = {}
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
        """Let the time until *second* pass; earlier ones change nothing."""
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
        """Other provisioned units from now on."""
        if isinstance(self.throughput, Provisioned) and units != self.throughput.units:
            self.throughput.resize(units)
            self._changes.append((self._second, units))

    def warm_to(self, units: int) -> None:
        """On demand, take at least *units* at once from now on."""
        if isinstance(self.throughput, OnDemand):
            self.throughput.warm_to(units)

    def units_at(self, second: int) -> int:
        """Units that were provisioned then; 0 on demand and before there was a table."""
        return next((units for at, units in reversed(self._changes) if at <= second), 0)

    def refusal(self, amount: int, key_hash: int) -> Cause | None:
        """Why *amount* could not be given now, `None` where it could.

        A request for more than a full bucket, or than a partition, ever holds goes through when nothing was taken.
        """
        place = self._partitions.find(key_hash)
        taken = self._by_partition[place]
        if taken and taken + amount > PARTITION_QUANTA[self.dimension]:
            return Cause.KEY_RANGE
        if isinstance(self.throughput, OnDemand):
            most, cause = self.throughput.room()
            return cause if self._spent and self._spent + amount > most else None
        bucket = self.throughput.bucket
        left = bucket.available() - self._spent
        return Cause.PROVISIONED if amount > left and left < bucket.cap else None

    def spend(self, amount: int, key_hash: int) -> None:
        """Give *amount*."""
        self._spent += amount
        self._by_partition[self._partitions.find(key_hash)] += amount
        self.consumed[self._second // 60] += amount
        self.requests[self._second // 60] += 1
        if self._hot_minutes or self._second // 60 in self.events:
            self._asked[key_hash] += amount

    def refuse(self, cause: Cause, amount: int, key_hash: int) -> None:
        """Record that *amount* was refused."""
        minute = self._second // 60
        self.throttled.setdefault(minute, Counter())[cause] += amount
        self.events.setdefault(minute, Counter())[cause] += 1
        self._refused += amount
        if cause is Cause.KEY_RANGE and len(self._asked) < _MOST_KEYS:
            self._asked[key_hash] += amount

    def _end_minutes(self, first: int, last: int) -> None:
        """Close the minutes from *first* to before *last*."""
        if isinstance(self.throughput, OnDemand):
            # after so many idle minutes nothing changes any more
            for minute in range(first, min(last, first + PEAK_AGE_MINUTES + 2)):
                self.throughput.end_minute(self.consumed[minute])
        is_hot = Cause.KEY_RANGE in self.events.get(first, ()) and last == first + 1
        self._hot_minutes = self._hot_minutes + 1 if is_hot else 0
        if self._hot_minutes >= _HEAT_SPLIT_MINUTES:
            self._split()
            self._hot_minutes = 0
        if not self._hot_minutes:
            self._asked.clear()
            self._peak = 0
        for kept in (self.consumed, self.requests, self.throttled, self.events):
            while kept and (oldest := next(iter(kept))) < last - MINUTES_KEPT:
                del kept[oldest]

    def _split(self) -> None:
        """Split the partitions that the keys of the last minutes filled, where that helps."""
        whole = sum(self._asked.values())
        heavy = tuple(sorted((key, amount * _WHOLE // whole) for key, amount in self._asked.items()))
        self._partitions.observe(KeyDistribution("observed", heavy))
        self._partitions.split_for_heat(self._peak, self.dimension)


_NOTHING = dict.fromkeys(Dimension, 0)
# What on-demand takes at once at least
_WARM = {Dimension.READ: ON_DEMAND_WARM_READ_UNITS, Dimension.WRITE: ON_DEMAND_WARM_WRITE_UNITS}
_MOST = {Dimension.READ: "MaxReadRequestUnits", Dimension.WRITE: "MaxWriteRequestUnits"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which resource holds a request back, and why: `index` is `None` for the table."""

    index: str | None
    dimension: Dimension
    cause: Cause
    is_on_demand: bool


@dataclass(slots=True)
class _ResourceMeters:
    """Reads and writes of one resource, and the control of its capacity."""

    control: CapacityControl
    is_on_demand: bool
    meters: dict[Dimension, Meter]


@dataclass(frozen=True, slots=True)
class ModeSwitch:
    """A switch of the billing mode under way: when it is there, and the mode and its summary until then."""

    at: int
    is_on_demand: bool
    summary: Document


class TableMeters:
    """The meters of a table as MiniStack keeps it; its controls have to be told of changes of capacity there.

    Attributes:
        begun: The second in which measuring began.
        published: The last minute that CloudWatch was told of.
        throttled_requests: Requests refused, by minute and operation.
        was_on_demand: Whether the table ever was.
        switch: The switch of the billing mode that is under way.
        built: When each index that was added is built.
    """

    def __init__(self, table: Document, second: int) -> None:
        self._table = table
        self.begun = second
        self.published = second // 60 - 1
        self._resources: dict[str | None, _ResourceMeters] = {}
        self.throttled_requests: dict[int, dict[str, int]] = {}
        self.was_on_demand = is_on_demand(table)
        self.switch: ModeSwitch | None = None
        self.built: dict[str, int] = {}

    def is_on_demand(self, second: int) -> bool:
        """Whether the table is billed by request then: a new mode comes into force in its time."""
        if self.switch is not None and self.switch.at <= second:
            self.switch = None
        return is_on_demand(self._table) if self.switch is None else self.switch.is_on_demand

    def building(self, second: int) -> str | None:
        """The index that is being built, of which a table has one at most."""
        return next((index for index, at in self.built.items() if second < at), None)

    def units(self, index: str | None, second: int) -> dict[Dimension, int]:
        """Provisioned units in force, 0 on demand."""
        meters = self.of(index, second)
        if self._resources[index].is_on_demand:
            return dict.fromkeys(Dimension, 0)
        return {dimension: meter.throughput.units for dimension, meter in meters.items()}

    def is_changing(self, index: str | None, second: int) -> bool:
        """Whether provisioned units or a billing mode are still to come into force."""
        return self.control(index, second).is_changing(second) or self.switch is not None

    def each(self, second: int) -> Iterator[tuple[str | None, Dimension, Meter]]:
        """Every meter of the table and its indexes, with the time until *second* passed."""
        for index in (None, *indexes_of(self._table)):
            for dimension, meter in self.of(index, second).items():
                yield index, dimension, meter

    def of(self, index: str | None, second: int) -> Mapping[Dimension, Meter]:
        """The meters of the table (`None`) or of an index, with the time until *second* passed."""
        record = self._record(index)
        found = self._resources.get(index)
        has_no_capacity = self.is_on_demand(second)
        changes = found.control.settle(second) if found else []
        if found is None or found.is_on_demand is not has_no_capacity:
            found = self._resources[index] = self._make(record, index, has_no_capacity, second, found)
        for change in changes:
            for dimension, meter in found.meters.items():
                meter.pass_to(change.at)
                if change.kind is ChangeKind.CAPACITY:
                    meter.resize(change.units[dimension])
                meter.warm_to(found.control.mark[dimension])
        for meter in found.meters.values():
            meter.pass_to(second)
        return found.meters

    def control(self, index: str | None, second: int) -> CapacityControl:
        """The control of a resource's capacity, with all that is due by *second* in force."""
        self.of(index, second)
        return self._resources[index].control

    def forget(self, index: str) -> None:
        """Drop what is known of an index that is gone."""
        self._resources.pop(index, None)
        self.built.pop(index, None)

    def switch_mode(self, second: int, at: int, summary: Document) -> None:
        """Have the billing mode that was just asked for come into force at *at*; until then *summary* is told."""
        was_on_demand = summary.get("BillingMode") == "PAY_PER_REQUEST"
        self.was_on_demand = self.was_on_demand or was_on_demand or is_on_demand(self._table)
        if at > second:
            self.switch = ModeSwitch(at, was_on_demand, summary)
        for index, resource in self._resources.items():
            if is_on_demand(self._table):
                resource.control.restart(second, at, _NOTHING)
                # it stays when the table goes back
                resource.control.raise_mark(at, _WARM)
            else:
                record = resource_of(self._table, index) or {}
                resource.control.restart(second, at, units_of(record.get("ProvisionedThroughput")))

    def partitions(self, index: str | None, second: int) -> Partitions:
        """The partitions of a resource."""
        return self.control(index, second).partitions

    def refusals(self, charge: Charge, hashes: Mapping[str | None, int], second: int) -> list[Refusal]:
        """Who could not give their part of *charge* now; *hashes* are of the keys, by index and `None`."""
        found = []
        for index, amount in _parts(charge):
            meter = self.of(index, second)[charge.dimension]
            cause = meter.refusal(amount, hashes.get(index, hashes[None]))
            if cause is not None:
                found.append(Refusal(index, charge.dimension, cause, self._resources[index].is_on_demand))
        return found

    def spend(self, charge: Charge, hashes: Mapping[str | None, int], second: int) -> None:
        """Have everybody give their part."""
        for index, amount in _parts(charge):
            self.of(index, second)[charge.dimension].spend(amount, hashes.get(index, hashes[None]))

    def refuse(
        self,
        refusals: list[Refusal],
        charge: Charge,
        hashes: Mapping[str | None, int],
        second: int,
    ) -> None:
        """Record a refused request with those who held it back, and with the table where only indexes did."""
        parts = dict(_parts(charge))
        for refusal in refusals:
            meter = self.of(refusal.index, second)[charge.dimension]
            meter.refuse(refusal.cause, parts[refusal.index], hashes.get(refusal.index, hashes[None]))
        if charge.dimension is Dimension.WRITE and all(refusal.index is not None for refusal in refusals):
            meter = self.of(None, second)[charge.dimension]
            meter.refuse(Cause.INDEX, charge.of_table, hashes[None])

    def count_throttled_request(self, operation: str, second: int) -> None:
        """Count a request that got nothing."""
        by_operation = self.throttled_requests.setdefault(second // 60, {})
        by_operation[operation] = by_operation.get(operation, 0) + 1

    def _record(self, index: str | None) -> Document:
        record = resource_of(self._table, index)
        if record is None:
            raise KeyError(index)
        return record

    def _make(
        self, record: Document, index: str | None, has_no_capacity: bool, second: int, before: _ResourceMeters | None
    ) -> _ResourceMeters:
        if before:
            control = before.control
        else:
            units = _NOTHING if has_no_capacity else units_of(record.get("ProvisionedThroughput"))
            control = CapacityControl(units, _WARM if has_no_capacity else None)
        throughput: dict[Dimension, Provisioned | OnDemand]
        if has_no_capacity:
            most = (record.get("OnDemandThroughput") or {}) if index is None else {}
            throughput = {
                d: OnDemand(d, control.partitions, control.mark[d], _limit(most.get(_MOST[d]))) for d in Dimension
            }
        else:
            throughput = {d: Provisioned(d, control.units[d], control.partitions) for d in Dimension}
        meters = {d: Meter(d, throughput[d], control.partitions, second) for d in Dimension}
        for dimension, old in before.meters.items() if before else ():
            # what was measured stays, whatever the billing mode
            meter = meters[dimension]
            meter.consumed, meter.requests = old.consumed, old.requests
            meter.throttled, meter.events = old.throttled, old.events
        return _ResourceMeters(control, has_no_capacity, meters)


def _parts(charge: Charge) -> Iterator[tuple[str | None, int]]:
    if charge.of_table:
        yield None, charge.of_table
    yield from charge.indexes.items()


def _limit(units: object) -> int | None:
    return int(units) if isinstance(units, int) and units > 0 else None
