"""The meters of one table and its indexes: whether a request's charge can be had, and by whom it is held back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater_lab.local.capacity.charges import Charge
from highwater_lab.local.capacity.meter import Meter
from highwater_lab.local.resources import Document, is_on_demand, resource_of, state_of
from highwater_lab.physics import Cause, KeyDistribution, OnDemand, Pace, Partitions, Provisioned
from highwater_lab.physics.partitions import partitions_for

_UNITS = {Dimension.READ: "ReadCapacityUnits", Dimension.WRITE: "WriteCapacityUnits"}
_EVEN = KeyDistribution.uniform()
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
    """Reads and writes of one resource, with the partitions that they share."""

    is_on_demand: bool
    partitions: Partitions
    meters: dict[Dimension, Meter]
    # provisioned units to come, and when they are there; in the order of the times
    coming: list[tuple[int, dict[Dimension, int]]] = field(default_factory=list)
    # when a mark rises without them
    warmer_at: int | None = None


@dataclass(frozen=True, slots=True)
class ModeSwitch:
    """A switch of the billing mode under way: when it is there, and the mode and its summary until then."""

    at: int
    is_on_demand: bool
    summary: Document


class TableMeters:
    """The meters of a table as MiniStack keeps it; changes of capacity there have to be announced.

    Attributes:
        begun: The second in which measuring began.
        published: The last minute that CloudWatch was told of.
        throttled_requests: Requests refused, by minute and operation.
        was_on_demand: Whether the table ever was.
        switch: The switch of the billing mode that is under way.
    """

    def __init__(self, table: Document, second: int) -> None:
        self._table = table
        self.begun = second
        self.published = second // 60 - 1
        self._resources: dict[str | None, _ResourceMeters] = {}
        self.throttled_requests: dict[int, dict[str, int]] = {}
        self.was_on_demand = is_on_demand(table)
        self.switch: ModeSwitch | None = None

    def is_on_demand(self, second: int) -> bool:
        """Whether the table is billed by request then: a new mode comes into force in its time."""
        if self.switch is not None and self.switch.at <= second:
            self.switch = None
        return is_on_demand(self._table) if self.switch is None else self.switch.is_on_demand

    def units(self, index: str | None, second: int) -> dict[Dimension, int]:
        """Provisioned units in force, 0 on demand."""
        meters = self.of(index, second)
        if self._resources[index].is_on_demand:
            return dict.fromkeys(Dimension, 0)
        return {dimension: meter.throughput.units for dimension, meter in meters.items()}

    def is_changing(self, index: str | None, second: int) -> bool:
        """Whether provisioned units or a billing mode are still to come into force."""
        self.of(index, second)
        return bool(self._resources[index].coming) or self.switch is not None

    def each(self, second: int) -> Iterator[tuple[str | None, Dimension, Meter]]:
        """Every meter of the table and its indexes, with the time until *second* passed."""
        indexes = [index["IndexName"] for index in self._table.get("GlobalSecondaryIndexes") or []]
        for index in (None, *indexes):
            for dimension, meter in self.of(index, second).items():
                yield index, dimension, meter

    def of(self, index: str | None, second: int) -> Mapping[Dimension, Meter]:
        """The meters of the table (`None`) or of an index, with the time until *second* passed."""
        record = self._record(index)
        found = self._resources.get(index)
        has_no_capacity = self.is_on_demand(second)
        if found is None or found.is_on_demand is not has_no_capacity:
            found = self._resources[index] = self._make(record, index, has_no_capacity, second, found)
        while found.coming and found.coming[0][0] <= second:
            at, units = found.coming.pop(0)
            for dimension, meter in found.meters.items():
                meter.pass_to(at)
                meter.resize(units[dimension])
            self._grow(found, record, at)
        if found.warmer_at is not None and found.warmer_at <= second:
            found.warmer_at = None
            self._grow(found, record, second)
        for meter in found.meters.values():
            meter.pass_to(second)
        return found.meters

    def announce(self, index: str | None, second: int, pace: Pace) -> int:
        """Have the capacity that was just asked for come into force in the time that an update takes; when it will."""
        record = self._record(index)
        self.of(index, second)
        found = self._resources[index]
        if found.is_on_demand or is_on_demand(self._table):
            return second if self.switch is None else self.switch.at
        units = _provisioned(record)
        takes = pace.update_seconds if self._has_room(found, units) else pace.growth_seconds
        last = found.coming[-1][0] if found.coming else 0
        at = max(second + takes, last)
        found.coming.append((at, units))
        return at

    def has_earlier_changes(self, index: str | None) -> bool:
        """Whether the last change announced waits for another."""
        return len(self._resources[index].coming) > 1

    def announce_mode(self, second: int, at: int, summary: Document) -> None:
        """Have the billing mode that was just asked for come into force at *at*; until then *summary* is told."""
        was_on_demand = summary.get("BillingMode") == "PAY_PER_REQUEST"
        self.was_on_demand = self.was_on_demand or was_on_demand or is_on_demand(self._table)
        if at > second:
            self.switch = ModeSwitch(at, was_on_demand, summary)
        for resource in self._resources.values():
            # what was under way is not, whatever the mode
            resource.coming.clear()

    def announce_warmth(self, index: str | None, warm: Mapping[str, int], second: int, takes: tuple[int, int]) -> int:
        """When the mark may rise to *warm*: after the first of *takes* where partitions are there, else the second."""
        self.of(index, second)
        found = self._resources[index]
        has_room = self._has_room(found, {dimension: warm[dimension] for dimension in Dimension})
        at = second + (takes[0] if has_room else takes[1])
        found.warmer_at = max(at, found.warmer_at or 0)
        return at

    def _has_room(self, resource: _ResourceMeters, units: Mapping[Dimension, int]) -> bool:
        return partitions_for(units[Dimension.READ], units[Dimension.WRITE]) <= resource.partitions.count

    def partitions(self, index: str | None, second: int) -> Partitions:
        """The partitions of a resource."""
        self.of(index, second)
        return self._resources[index].partitions

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
        units = _provisioned(record)
        if has_no_capacity:
            most = (record.get("OnDemandThroughput") or {}) if index is None else {}
            warm = self._warm(index, second)
            count = partitions_for(warm[Dimension.READ], warm[Dimension.WRITE])
            partitions = before.partitions if before else Partitions(count, _EVEN)
            throughput: dict[Dimension, Provisioned | OnDemand] = {
                d: OnDemand(d, partitions, warm[d], _limit(most.get(member))) for d, member in _MOST.items()
            }
        else:
            count = partitions_for(units[Dimension.READ], units[Dimension.WRITE])
            partitions = before.partitions if before else Partitions(count, _EVEN)
            throughput = {d: Provisioned(d, units[d], partitions) for d in Dimension}
        meters = {d: Meter(d, throughput[d], partitions, second) for d in Dimension}
        if before is not None:
            for dimension, meter in meters.items():
                # what was measured stays, whatever the billing mode
                old = before.meters[dimension]
                meter.consumed, meter.requests = old.consumed, old.requests
                meter.throttled, meter.events = old.throttled, old.events
        made = _ResourceMeters(has_no_capacity, partitions, meters)
        self._grow(made, record, second)
        return made

    def _grow(self, resource: _ResourceMeters, record: Document, second: int) -> None:
        """As many partitions as the highest capacity ever asks for."""
        warm = self._warm(None if record is self._table else record["IndexName"], second)
        needed = partitions_for(warm[Dimension.READ], warm[Dimension.WRITE])
        if needed > resource.partitions.count:
            resource.partitions.grow(needed)

    def _warm(self, index: str | None, second: int) -> dict[Dimension, int]:
        warm = state_of(self._table, index).warm_at(second)
        least = (
            {Dimension.READ: ON_DEMAND_WARM_READ_UNITS, Dimension.WRITE: ON_DEMAND_WARM_WRITE_UNITS}
            if self.is_on_demand(second)
            else dict.fromkeys(Dimension, 0)
        )
        return {dimension: max(warm[dimension], least[dimension]) for dimension in Dimension}


def _parts(charge: Charge) -> Iterator[tuple[str | None, int]]:
    if charge.of_table:
        yield None, charge.of_table
    yield from charge.indexes.items()


def _provisioned(record: Document) -> dict[Dimension, int]:
    throughput = record.get("ProvisionedThroughput") or {}
    return {dimension: int(throughput.get(member) or 0) for dimension, member in _UNITS.items()}


def _limit(units: object) -> int | None:
    return int(units) if isinstance(units, int) and units > 0 else None
