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
    # provisioned units to come, and when they are there
    coming: list[tuple[int, dict[Dimension, int]]] = field(default_factory=list)


class TableMeters:
    """The meters of a table as MiniStack keeps it; changes of capacity there have to be announced.

    Attributes:
        begun: The second in which measuring began.
        published: The last minute that CloudWatch was told of.
        throttled_requests: Requests refused, by minute and operation.
    """

    def __init__(self, table: Document, second: int) -> None:
        self._table = table
        self.begun = second
        self.published = second // 60 - 1
        self._resources: dict[str | None, _ResourceMeters] = {}
        self.throttled_requests: dict[int, dict[str, int]] = {}

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
        has_no_capacity = is_on_demand(self._table)
        if found is None or found.is_on_demand is not has_no_capacity:
            found = self._resources[index] = self._make(record, index, has_no_capacity, second, found)
        while found.coming and found.coming[0][0] <= second:
            at, units = found.coming.pop(0)
            for dimension, meter in found.meters.items():
                meter.pass_to(at)
                meter.resize(units[dimension])
            self._grow(found, record)
        for meter in found.meters.values():
            meter.pass_to(second)
        return found.meters

    def announce(self, index: str | None, second: int, pace: Pace) -> None:
        """Have the capacity that was just provisioned come into force in the time that an update takes."""
        record = self._record(index)
        self.of(index, second)
        found = self._resources[index]
        if found.is_on_demand:
            return
        units = _provisioned(record)
        needed = partitions_for(units[Dimension.READ], units[Dimension.WRITE])
        takes = pace.update_seconds if needed <= found.partitions.count else pace.growth_seconds
        last = found.coming[-1][0] if found.coming else 0
        found.coming.append((max(second + takes, last), units))

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
            warm = self._warm(index)
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
        self._grow(made, record)
        return made

    def _grow(self, resource: _ResourceMeters, record: Document) -> None:
        """As many partitions as the highest capacity ever asks for."""
        warm = self._warm(None if record is self._table else record["IndexName"])
        needed = partitions_for(warm[Dimension.READ], warm[Dimension.WRITE])
        if needed > resource.partitions.count:
            resource.partitions.grow(needed)

    def _warm(self, index: str | None) -> dict[Dimension, int]:
        warm = state_of(self._table, index).warm
        if is_on_demand(self._table):
            return {
                Dimension.READ: max(warm["read"], ON_DEMAND_WARM_READ_UNITS),
                Dimension.WRITE: max(warm["write"], ON_DEMAND_WARM_WRITE_UNITS),
            }
        return {Dimension.READ: warm["read"], Dimension.WRITE: warm["write"]}


def _parts(charge: Charge) -> Iterator[tuple[str | None, int]]:
    if charge.of_table:
        yield None, charge.of_table
    yield from charge.indexes.items()


def _provisioned(record: Document) -> dict[Dimension, int]:
    throughput = record.get("ProvisionedThroughput") or {}
    return {dimension: int(throughput.get(member) or 0) for dimension, member in _UNITS.items()}


def _limit(units: object) -> int | None:
    return int(units) if isinstance(units, int) and units > 0 else None
