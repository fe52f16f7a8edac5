"""The cost of a request: capacity units by table and index, as DynamoDB counts them.

Sizes and rounding: Amazon DynamoDB Developer Guide, "DynamoDB read and write operations", read 2026-11. An index is
charged for writes that change the projected part of an item: the same guide, "Provisioned throughput considerations for
global secondary indexes". Amounts are quanta, sixtieths of a unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from highwater.core import Dimension
from highwater.core.items import page_units, write_units_of
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_local.ministack import Document


@dataclass(slots=True)
class Charge:
    """The cost of a request for one table, in one dimension.

    Attributes:
        dimension: READ or WRITE.
        table: Quanta of the table itself.
        local_indexes: Quanta by local secondary index; charged to the table.
        indexes: Quanta by global secondary index; charged to each index. 0 if a write leaves its part of the item as it
            is: then nothing is charged, but an exhausted index refuses the write all the same.
    """

    dimension: Dimension
    table: int = 0
    local_indexes: dict[str, int] = field(default_factory=dict)
    indexes: dict[str, int] = field(default_factory=dict)

    @property
    def of_table(self) -> int:
        """The quanta charged to the table's own capacity."""
        return self.table + sum(self.local_indexes.values())

    @property
    def whole(self) -> int:
        """The quanta charged to table and indexes together."""
        return self.of_table + sum(self.indexes.values())

    def add(self, other: Charge) -> None:
        """Add another charge of the same table and dimension."""
        self.table += other.table
        for mine, theirs in ((self.local_indexes, other.local_indexes), (self.indexes, other.indexes)):
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0) + amount


def write_units(size: int) -> int:
    """Return the quanta for a write of *size* bytes: a unit for each kilobyte, rounded up, at least one."""
    return write_units_of(size) * QUANTA_PER_UNIT


def read_units(size: int, *, is_consistent: bool) -> int:
    """Return the quanta for a read of *size* bytes: a unit for each 4 KB, rounded up; half if eventually consistent."""
    return int(page_units(size, is_consistent=is_consistent) * QUANTA_PER_UNIT)


def consumed_capacity(table: str, charges: Iterable[Charge], level: str, *, is_transaction: bool = False) -> Document:
    """Return the member `ConsumedCapacity` for one table: *level* is TOTAL or INDEXES.

    For transactions, further members have reads and writes separately.
    """
    charges = list(charges)
    document: Document = {"TableName": table, **_capacity((c.dimension, c.whole) for c in charges)}
    if not is_transaction:
        document = {"TableName": table, "CapacityUnits": document["CapacityUnits"]}
    if level != "INDEXES":
        return document
    document["Table"] = _of(((c.dimension, c.table) for c in charges), is_transaction)
    for member, parts in (
        ("LocalSecondaryIndexes", [(c.dimension, c.local_indexes) for c in charges]),
        ("GlobalSecondaryIndexes", [(c.dimension, c.indexes) for c in charges]),
    ):
        names = dict.fromkeys(name for _, amounts in parts for name, amount in amounts.items() if amount)
        if names:
            document[member] = {
                name: _of(((d, amounts[name]) for d, amounts in parts if name in amounts), is_transaction)
                for name in names
            }
    return document


def _of(amounts: Iterable[tuple[Dimension, int]], is_transaction: bool) -> Mapping[str, float]:
    document = _capacity(amounts)
    return document if is_transaction else {"CapacityUnits": document["CapacityUnits"]}


def _capacity(amounts: Iterable[tuple[Dimension, int]]) -> dict[str, float]:
    whole, document = 0, {}
    for dimension, amount in amounts:
        whole += amount
        document[f"{dimension.title()}CapacityUnits"] = amount / QUANTA_PER_UNIT
    return {"CapacityUnits": whole / QUANTA_PER_UNIT, **document}
