"""One data-plane call: its charges, its admission, and its answer or throttling error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause, ThrottleReason
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.physics.partitions import hash_of
from highwater_local import ministack
from highwater_local.dynamodb.charges import Charge, consumed_capacity, read_units, write_units
from highwater_local.dynamodb.meters import Refusal, TableMeters
from highwater_local.dynamodb.resources import key_schema
from highwater_local.ministack import Answer, Document

_OF_TABLE: Final = (
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning "
    "level with the UpdateTable API."
)
_OF_INDEX: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table was "
    "exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes with the "
    "UpdateTable API"
)
_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or "
    "index so please try again shortly."
)
_MAXIMUM: Final = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
_ACCOUNT: Final = "Throughput exceeds the current throughput limit for your account."
# Operations that answer every throttle on demand with a ThrottlingException
_TOGETHER: Final = frozenset({"TransactWriteItems", "ExecuteTransaction", "BatchExecuteStatement"})


class Throttled(Exception):
    """A throttled request: the operation, and the resources that throttled it, with the ARNs of their tables."""

    def __init__(self, operation: str, refusals: list[tuple[Refusal, str]]) -> None:
        super().__init__()
        self.operation = operation
        self._refusals = refusals

    @property
    def table_names(self) -> list[str]:
        """The tables that throttled it."""
        return list(dict.fromkeys(arn.rpartition("/")[2] for _, arn in self._refusals))

    @property
    def code(self) -> str:
        """The error code that clients get.

        The maximum of an index on demand refuses a single write with the code of provisioned capacity, and everything
        else with that of on demand (recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits).
        """
        if {refusal.cause for refusal, _ in self._refusals} == {ThrottleCause.ACCOUNT}:
            return "RequestLimitExceeded"
        is_on_demand = any(
            refusal.is_on_demand and not self._is_write_of_index(refusal) for refusal, _ in self._refusals
        )
        return "ThrottlingException" if is_on_demand else "ProvisionedThroughputExceededException"

    def _is_write_of_index(self, refusal: Refusal) -> bool:
        is_at_maximum = refusal.index is not None and refusal.cause is ThrottleCause.MAX_ON_DEMAND
        return is_at_maximum and refusal.dimension is Dimension.WRITE and self.operation not in _TOGETHER

    @property
    def message(self) -> str:
        """The error's message."""
        causes = {refusal.cause for refusal, _ in self._refusals}
        if causes == {ThrottleCause.ACCOUNT}:
            return _ACCOUNT
        if causes == {ThrottleCause.MAX_ON_DEMAND}:
            return _MAXIMUM
        if self.code == "ThrottlingException":
            return _ON_DEMAND
        return _OF_TABLE if any(refusal.index is None for refusal, _ in self._refusals) else _OF_INDEX

    @property
    def reasons(self) -> list[dict[str, str]]:
        """The reason and the ARN of each resource that throttled the request."""
        return [
            {
                "reason": ThrottleReason(refusal.cause, refusal.dimension, refusal.index is not None).name,
                "resource": arn if refusal.index is None else f"{arn}/index/{refusal.index}",
            }
            for refusal, arn in self._refusals
        ]

    def answer(self) -> Answer:
        """The HTTP answer."""
        member = "throttlingReasons" if self.code == "ThrottlingException" else "ThrottlingReasons"
        body = {"__type": self.code, "message": self.message, member: self.reasons}
        headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": self.code}
        return 400, headers, json.dumps(body).encode()


_METERS = "_highwater_meters"
Hashes = dict[str | None, int]
# A part of a request that is admitted or refused as a whole: a table, what the part costs it, and its keys' hashes
Part = tuple[Document, Charge, Hashes]
# The present call, if any: actions of MiniStack itself, such as expiring items, are not charged
CURRENT: ContextVar[MeteredCall | None] = ContextVar("call", default=None)


def throttles_of(name: str, table: Document) -> Iterator[dict[str, Any]]:
    """Yield how often a table and each of its indexes has throttled, by DynamoDB's names of the reasons."""
    meters: TableMeters | None = table.get(_METERS)
    for index, dimension, cause, count in () if meters is None else meters.all_throttles():
        reason = ThrottleReason(cause, dimension, index is not None).name
        yield {"table": name, "index": index, "reason": reason, "requests": count}


def _by_table(parts: Iterable[Part]) -> list[tuple[Document, list[tuple[Charge, Hashes]]]]:
    grouped: dict[str, tuple[Document, list[tuple[Charge, Hashes]]]] = {}
    for table, charge, hashes in parts:
        grouped.setdefault(str(table["TableArn"]), (table, []))[1].append((charge, hashes))
    return list(grouped.values())


def meters_of(table: Document, second: int | None = None) -> TableMeters:
    """Return the meters of one of MiniStack's tables, started at *second*, or when the table was created."""
    if _METERS not in table:
        created = int(table.get("CreationDateTime") or 0)
        table[_METERS] = TableMeters(table, created if second is None else second)
    found: TableMeters = table[_METERS]
    return found


def forget_meters(table: Document) -> None:
    """Begin to measure one of MiniStack's tables anew."""
    table.pop(_METERS, None)


@dataclass(slots=True)
class MeteredCall:
    """The units charged to a call, by table.

    Attributes:
        operation: Its name, such as `PutItem`.
        second: The second of the cloud's clock in which it was received.
        table: The table, if it is for one table.
        is_consistent: Whether its reads are strongly consistent.
        is_strict: Whether it is throttled if capacity is insufficient. A transaction is admitted before it begins, and
            then charged whatever it consumes.
        factor: 2 in transactions, for the table itself.
        segments: The number of segments of a parallel scan.
        request: The members of a statement's request, which say which part of its answer is wanted.
        has_to_fetch: Whether it has to fetch its items from the table, as a local index lacks requested attributes.
        is_fetching: Whether it has found the items in the index, and is now fetching them.
        effects: The number of writes carried out.
        charges: The charges by table name and dimension.
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

    def read(self, table: Document, key: Document) -> None:
        """Charge the read of the item with that key, which may be missing; raises `Throttled`."""
        self.take(*self.part_of_read(table, key))

    def part_of_read(self, table: Document, key: Document) -> Part:
        """Return the part of a request that reads the item with that key."""
        amount = read_units(size_of(ministack.find_item(table, key)), is_consistent=self.is_consistent)
        return table, Charge(Dimension.READ, amount * self.factor), {None: hash_of(key.get(table["pk_name"]))}

    def take(self, table: Document, charge: Charge, hashes: Hashes) -> None:
        """Take *charge* from a table's capacity; raises `Throttled` if it is insufficient and the call is strict."""
        if self.is_strict:
            held = self.judge([(table, charge, hashes)])
            if held is not None:
                raise held
        self._spend(table, charge, hashes)

    def _spend(self, table: Document, charge: Charge, hashes: Hashes) -> None:
        name = str(table["TableName"])
        known = self.charges.get((name, charge.dimension))
        # a transaction is one sample of each metric, the sum of its actions (recorded: radkawar/stackd 9dc356f,
        # dynamodb/capacity_metrics)
        meters_of(table).spend(charge, hashes, self.second, known if self.factor > 1 else None)
        if known is None:
            self.charges[name, charge.dimension] = charge
        else:
            known.add(charge)

    def take_together(self, parts: Sequence[Part]) -> Throttled | None:
        """Take *parts* from the capacity, all or none; return why nothing was taken, `None` if all was."""
        held = self.judge(parts)
        if held is None:
            for table, charge, hashes in parts:
                self._spend(table, charge, hashes)
        return held

    def is_short(self, parts: Iterable[Part]) -> bool:
        """Whether *parts* would be throttled together; records nothing."""
        return any(meters_of(table).refusals(charges, self.second) for table, charges in _by_table(parts))

    def judge(self, parts: Iterable[Part]) -> Throttled | None:
        """Return why *parts* are throttled together, and record that; `None` if they are admitted."""
        found: list[tuple[Refusal, str]] = []
        for table, charges in _by_table(parts):
            refusals = meters_of(table).refusals(charges, self.second)
            meters_of(table).refuse(refusals, charges, self.second)
            found += [(refusal, str(table["TableArn"])) for refusal in refusals]
        return Throttled(self.operation, found) if found else None

    def join(self, other: MeteredCall) -> None:
        """Add another call's charges to this call's."""
        for key, charge in other.charges.items():
            known = self.charges.setdefault(key, Charge(charge.dimension))
            known.add(charge)

    def consumed(self, level: str, *, is_transaction: bool = False) -> list[Document]:
        """Return the members `ConsumedCapacity`, one for each table."""
        return [
            consumed_capacity(
                name, [c for (n, _), c in self.charges.items() if n == name], level, is_transaction=is_transaction
            )
            for name in dict.fromkeys(name for name, _ in self.charges)
        ]


def charging(call: MeteredCall | None) -> AbstractContextManager[None]:
    """Charge MiniStack's reads and writes in a block to *call*; charge nothing if it is `None`."""
    return ministack.setting(CURRENT, call)


def size_of(item: Document | None) -> int:
    """Return an item's size in bytes, names and values."""
    return int(ministack.item_bytes(item)) if item else 0


def write_charge(table: Document, old: Document | None, new: Document | None, factor: int = 1) -> tuple[Charge, Hashes]:
    """Return the cost of a write for the table and each index that has the item, and its keys' hashes.

    An index whose part of the item stays as it is costs 0; one that does not have the item is left out.
    """
    item = new or old or {}
    hashes: Hashes = {None: hash_of(item.get(table["pk_name"]))}
    charge = Charge(Dimension.WRITE, factor * write_units(max(size_of(old), size_of(new))))
    for index in table.get("LocalSecondaryIndexes") or ():
        units = ministack.index_write_units(table, index, old, new)
        if units:
            charge.local_indexes[index["IndexName"]] = int(units * QUANTA_PER_UNIT)
    for index in table.get("GlobalSecondaryIndexes") or ():
        units = ministack.index_write_units(table, index, old, new)
        keys = _partition_attributes(index["KeySchema"])
        if units or _has_all(new, [str(part["AttributeName"]) for part in index["KeySchema"]]):
            name = index["IndexName"]
            charge.indexes[name] = int(units * QUANTA_PER_UNIT)
            # an item that leaves the index is charged in the partition that it leaves
            hashes[name] = _hash_of_item(new if _has_all(new, keys) else old, keys)
    return charge, hashes


def page_charge(
    call: MeteredCall, table: Document, index: str | None, page: Iterable[Document], *, is_last: bool
) -> tuple[Charge, Hashes]:
    """Return the cost of a page of a query or a scan, rounded once, for the table or the index that is read.

    A scan is also charged the minimum for each partition without items, with its last page.
    """
    items = list(page)
    keys = _partition_attributes(key_schema(table, index))
    least = read_units(0, is_consistent=call.is_consistent)
    amount = read_units(sum(size_of(item) for item in items), is_consistent=call.is_consistent)
    if is_last and call.operation == "Scan" and index not in _local_indexes(table):
        partitions = meters_of(table).control(index, call.second).partitions
        filled = {
            partitions.find(_hash_of_item(item, keys))
            for own in table["items"].values()
            for item in own.values()
            if _has_all(item, keys)
        }
        # an empty page of a table without items has already been charged for the first partition
        empty = partitions.count - max(1, len(filled))
        amount += -(-empty // call.segments) * least
    charge = Charge(Dimension.READ)
    if index is None:
        charge.table = amount
    elif index in _local_indexes(table):
        charge.local_indexes[index] = amount
    else:
        charge.indexes[index] = amount
    first = _hash_of_item(items[0], keys) if items else 0
    return charge, {None: first, index: first}


def _local_indexes(table: Document) -> list[str]:
    return [index["IndexName"] for index in table.get("LocalSecondaryIndexes") or ()]


def _partition_attributes(schema: Iterable[Document]) -> list[str]:
    """Return the attributes of a partition key: a global index has up to four."""
    return [str(part["AttributeName"]) for part in schema if part["KeyType"] == "HASH"]


def _has_all(item: Document | None, keys: Iterable[str]) -> bool:
    return item is not None and all(key in item for key in keys)


def _hash_of_item(item: Document | None, keys: Sequence[str]) -> int:
    """Return the hash of an item's partition key; one of several attributes is hashed as a whole."""
    values = [(item or {}).get(key) for key in keys]
    return hash_of(values[0] if len(values) == 1 else values)


Handler = Callable[[Document], Answer]
OK: Final = 200


def held_back(call: MeteredCall, held: Throttled) -> Answer:
    """Build the throttling error for a request that was not admitted."""
    for name in held.table_names:
        found = ministack.find_table(name)
        if found is not None:
            meters_of(found).count_throttled_request(call.operation, call.second)
    return held.answer()


def with_capacity(answer: Answer, data: Document, call: MeteredCall, *, is_list: bool = False, **more: bool) -> Answer:
    """Return the answer, with the consumed capacity if that was requested."""
    level = data.get("ReturnConsumedCapacity", "NONE")
    status, headers, body = answer
    if status != OK:
        return answer
    if level == "NONE" or not call.charges:
        return answer
    document = json.loads(body)
    consumed = call.consumed(level, **more)
    document["ConsumedCapacity"] = consumed if is_list else consumed[0]
    return status, headers, json.dumps(document, ensure_ascii=False).encode()
