"""One data-plane call in the making: what it was charged so far, and with what it is admitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_local import ministack
from highwater_local.capacity.charges import Charge, consumed_capacity, read_units, write_units
from highwater_local.capacity.meter import hash_of
from highwater_local.capacity.table_meters import TableMeters
from highwater_local.capacity.throttled import Throttled
from highwater_local.resources import Document

_METERS = "_highwater_meters"
Hashes = dict[str | None, int]
# The call under way, if any: what MiniStack does on its own, such as expiring items, is not charged
CURRENT: ContextVar[Call | None] = ContextVar("call", default=None)


def meters_of(table: Document, second: int | None = None) -> TableMeters:
    """The meters of a table as MiniStack keeps it, begun at *second*, or when it was created."""
    if _METERS not in table:
        created = int(table.get("CreationDateTime") or 0)
        table[_METERS] = TableMeters(table, created if second is None else second)
    found: TableMeters = table[_METERS]
    return found


@dataclass(slots=True)
class Call:
    """What a call took, table by table.

    Attributes:
        operation: Its name, such as `PutItem`.
        second: The cloud's second in which it came.
        table: The table that it is for, where it is for one.
        is_consistent: Whether it reads strongly consistent.
        is_strict: Whether it is held back where capacity is missing. A transaction is judged before it begins, and
            then charged whatever it took.
        factor: 2 in transactions, for the table itself.
        segments: Of a parallel scan.
        request: The members of a statement's request, which say how much of its answer is wanted.
        has_to_fetch: Whether it has to fetch its items from the table, as a local index has less than it asks for.
        is_fetching: Whether it has found them in the index, and now does so.
        effects: How many writes were carried out.
        charges: By table name and dimension.
    """

    operation: str
    second: int
    table: Document | None = None
    is_consistent: bool = False
    is_strict: bool = True
    factor: int = 1
    segments: int = 1
    request: Document = field(default_factory=dict)
    has_to_fetch: bool = False
    is_fetching: bool = False
    effects: int = 0
    charges: dict[tuple[str, Dimension], Charge] = field(default_factory=dict)

    def write(self, table: Document, old: Document | None, new: Document | None) -> None:
        """Charge a write that turns item *old* into *new*; raises `Throttled`."""
        charge, hashes = write_charge(table, old, new, self.factor)
        self.take(table, charge, hashes)
        self.effects += 1

    def read(self, table: Document, item: Document | None, key: object) -> None:
        """Charge the read of one item, or of none where there is none; raises `Throttled`."""
        self.take(table, self.read_charge(item), {None: hash_of(key)})

    def read_charge(self, item: Document | None) -> Charge:
        """What reading one item costs."""
        amount = read_units(size_of(item), is_consistent=self.is_consistent)
        return Charge(Dimension.READ, amount * self.factor)

    def take(self, table: Document, charge: Charge, hashes: Hashes) -> None:
        """Take *charge* of a table's capacity; raises `Throttled` where it is missing and the call is strict."""
        meters = meters_of(table)
        if self.is_strict:
            held = self.judge(table, charge, hashes)
            if held is not None:
                raise held
        meters.spend(charge, hashes, self.second)
        name = str(table["TableName"])
        known = self.charges.get((name, charge.dimension))
        if known is None:
            self.charges[name, charge.dimension] = charge
        else:
            known.add(charge)

    def judge(self, table: Document, charge: Charge, hashes: Hashes) -> Throttled | None:
        """Why *charge* cannot be had, recorded as throttled; `None` where it can."""
        meters = meters_of(table)
        refusals = meters.refusals(charge, hashes, self.second)
        if not refusals:
            return None
        meters.refuse(refusals, charge, hashes, self.second)
        return Throttled(refusals, str(table["TableArn"]))

    def join(self, other: Call) -> None:
        """Put another call's charges on top of this one's."""
        for key, charge in other.charges.items():
            known = self.charges.setdefault(key, Charge(charge.dimension))
            known.add(charge)

    def consumed(self, level: str, *, is_transaction: bool = False) -> list[Document]:
        """The members `ConsumedCapacity`, one for each table."""
        return [
            consumed_capacity(
                name, [c for (n, _), c in self.charges.items() if n == name], level, is_transaction=is_transaction
            )
            for name in dict.fromkeys(name for name, _ in self.charges)
        ]


@contextmanager
def charging(call: Call | None) -> Iterator[None]:
    """Charge what MiniStack does meanwhile to *call*; to nobody where it is `None`."""
    token = CURRENT.set(call)
    try:
        yield
    finally:
        CURRENT.reset(token)


def size_of(item: Document | None) -> int:
    """An item's bytes, names and values."""
    return int(ministack.item_bytes(item)) if item else 0


def write_charge(table: Document, old: Document | None, new: Document | None, factor: int = 1) -> tuple[Charge, Hashes]:
    """What a write costs the table and each index whose part of the item changes, and where its keys lie."""
    item = new or old or {}
    hashes: Hashes = {None: hash_of(item.get(table["pk_name"]))}
    charge = Charge(Dimension.WRITE, factor * write_units(max(size_of(old), size_of(new))))
    for index in table.get("LocalSecondaryIndexes") or ():
        units = ministack.index_write_units(table, index, old, new)
        if units:
            charge.local_indexes[index["IndexName"]] = int(units * QUANTA_PER_UNIT)
    for index in table.get("GlobalSecondaryIndexes") or ():
        units = ministack.index_write_units(table, index, old, new)
        if units:
            name = index["IndexName"]
            charge.indexes[name] = int(units * QUANTA_PER_UNIT)
            key = next(part["AttributeName"] for part in index["KeySchema"] if part["KeyType"] == "HASH")
            hashes[name] = hash_of((new or {}).get(key) or (old or {}).get(key))
    return charge, hashes


def page_charge(
    call: Call, table: Document, index: str | None, page: Iterable[Document], *, is_last: bool
) -> tuple[Charge, Hashes]:
    """What a page of a query or a scan costs, rounded once: on the table, or on the index that is read.

    A scan also pays the least there is for each partition without items: with its last page.
    """
    items = list(page)
    key = _hash_attribute(table, index)
    least = read_units(0, is_consistent=call.is_consistent)
    amount = read_units(sum(size_of(item) for item in items), is_consistent=call.is_consistent)
    if is_last and call.operation == "Scan" and index not in _local_indexes(table):
        partitions = meters_of(table).partitions(index, call.second)
        filled = {
            partitions.find(hash_of(item[key]))
            for own in table["items"].values()
            for item in own.values()
            if key in item
        }
        # a table without items has paid for its first partition as a page of nothing
        empty = partitions.count - max(1, len(filled))
        amount += -(-empty // call.segments) * least
    charge = Charge(Dimension.READ)
    if index is None:
        charge.table = amount
    elif index in _local_indexes(table):
        charge.local_indexes[index] = amount
    else:
        charge.indexes[index] = amount
    first = hash_of(items[0].get(key)) if items else 0
    return charge, {None: first, index: first}


def _local_indexes(table: Document) -> list[str]:
    return [index["IndexName"] for index in table.get("LocalSecondaryIndexes") or ()]


def _hash_attribute(table: Document, index: str | None) -> str:
    if index is None:
        return str(table["pk_name"])
    indexes = [*(table.get("GlobalSecondaryIndexes") or []), *(table.get("LocalSecondaryIndexes") or [])]
    schema = next(found["KeySchema"] for found in indexes if found["IndexName"] == index)
    return next(str(part["AttributeName"]) for part in schema if part["KeyType"] == "HASH")
