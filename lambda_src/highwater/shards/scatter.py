"""`highwater.shards.scatter_query` and `scatter_get`: read what a sharded key holds, as if it were in one partition."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from highwater.bulk.budget import Pacer, Retries, check_workers
from highwater.client.hooks import refusals_of
from highwater.core.errors import did_you_mean
from highwater.core.items import PAGE_BYTES, page_units
from highwater.core.units import Dimension
from highwater.shards.key import Hashed, Shard, ShardedKey, ShardError
from highwater.shards.merge import (
    Item,
    Position,
    ShardStream,
    merged,
    query_digest,
    read_cursor,
    write_cursor,
)

# as many connections as a boto3 client has unless it is configured otherwise
_WORKERS: Final = 10
# what stands in a key condition for the attributes of the partition key, and for their values
_PLACEHOLDERS: Final = ("hw_key", "hw_shard")
# a shard's partition key: attributes and their values in DynamoDB's JSON
_Key = Mapping[str, Mapping[str, str]]
_LEAST_PAGE, _LEAST_FILTERED_PAGE = 10, 100
_OF_GET: Final = frozenset({"ProjectionExpression", "ExpressionAttributeNames"})
_OF_QUERY: Final = _OF_GET | {"FilterExpression", "ExpressionAttributeValues"}
_FROM_CLIENT: Final = 'make one with session.client("dynamodb"); a table resource and its client have other values'


def scatter_query(
    client: Any,
    table: str,
    key: ShardedKey,
    plain: str,
    *,
    partition_key: str | Sequence[str],
    sort_key: str | Sequence[str] | None,
    sort_condition: str | None = None,
    index: str | None = None,
    table_keys: Sequence[str] = (),
    is_forward: bool = True,
    is_consistent: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
    written_from: datetime | None = None,
    written_to: datetime | None = None,
    now: datetime | None = None,
    page_items: int | None = None,
    workers: int = _WORKERS,
    pacer: Pacer | None = None,
    **request: Any,
) -> ScatterQuery:
    """Query all shards of a key at once, and yield their items in the order of the sort key.

    Nothing is read before the first item is requested. At most two pages of each shard are in memory, one if there is a
    *limit*. A query costs at least one request and half a read unit for each shard, one unit if it is consistent.

    Args:
        client: A DynamoDB client of boto3. It may be shared with other threads.
        table: The table's name.
        key: The declaration of the shards.
        plain: The key without a shard, such as `TENANT#1`.
        partition_key: The attribute that holds the shard's key: the partition key of the table, or of *index*. For an
            index with a partition key of two attributes, their names: that of *plain*, and that of the shard's number,
            which is a number as `shard_for` returns it.
        sort_key: The sort key of the table, or of *index*, with several attributes their names in their order; `None`
            if there is none.
        sort_condition: The part of the `KeyConditionExpression` that concerns the sort key, such as `#at > :since`. By
            default none.
        index: The index to query instead of the table.
        table_keys: With an index, the names of the table's key attributes.
        is_forward: Whether the order rises.
        is_consistent: Whether each page is strongly consistent; not possible for a global index.
        limit: The most items to yield, 1 or more; the cursor continues behind them. By default all.
        cursor: The cursor of an earlier query with the same arguments, which is continued. By default the query begins.
        written_from: The earliest time at which the wanted items were first written; shards that were not in use since
            are not read. By default the beginning of time.
        written_to: The latest such time. By default there is none.
        now: The present time, which decides whether the plain key is still read. By default that of the machine.
        page_items: The most items that a request reads, before a filter, 1 or more. By default a megabyte; with a
            *limit*, twice each shard's part of it, but 10 or more, and 100 or more with a filter.
        workers: The number of requests that are sent at once, 1 to 64. By default 10; for more, give the client a
            `max_pool_connections` of as many.
        pacer: Has a budget for the table's or index's reads, within which the query keeps. By default there is none.
        **request: `FilterExpression`, `ProjectionExpression`, `ExpressionAttributeNames` and
            `ExpressionAttributeValues`, as `Query` has them, in DynamoDB's JSON.

    Returns:
        An iterator of the items in DynamoDB's JSON.

    Raises:
        ShardError: An argument is not valid, or the cursor is of another query or declaration.
        PacedWorkError: While items are read: DynamoDB rejects a request, or throttles or fails it eight times; with a
            budget, a throttled request is retried for as long as it takes. The cursor then continues where it stopped.

    Example:
        ```python
        found = highwater.shards.scatter_query(
            client, "orders", orders, "TENANT#1", partition_key="pk", sort_key="sk", limit=50, is_forward=False
        )
        newest = list(found)
        print(f"{len(newest)} orders, {found.units} read units, continues at {found.cursor}")
        ```
    """
    _check_names(client, request, _OF_QUERY, "scatter_query")
    for what, number in (("limit", limit), ("page_items", page_items)):
        if number is not None and number < 1:
            raise ShardError(f"scatter_query: {what}: got {number}, allowed: 1 or more")
    if index is not None and not table_keys:
        raise ShardError(
            f"scatter_query: table_keys: got none with index {index!r}, allowed: the names of the table's key "
            "attributes, such as ('pk', 'sk')"
        )
    check_workers(workers, "scatter_query")
    partition_keys, sort_keys = _names(partition_key), _names(sort_key)
    _check_partition_keys(partition_keys, key, index)
    conditions = [f"#{placeholder} = :{placeholder}" for placeholder in _PLACEHOLDERS[: len(partition_keys)]]
    conditions += [] if sort_condition is None else [f"({sort_condition})"]
    arguments: dict[str, Any] = {"TableName": table, "KeyConditionExpression": " AND ".join(conditions), **request}
    arguments |= {"ScanIndexForward": is_forward, "ConsistentRead": is_consistent}
    arguments |= {} if index is None else {"IndexName": index}
    digest = query_digest(
        {"key": key.document(), "plain": plain, "keys": (partition_key, sort_key, *table_keys)}
        | {name: value for name, value in arguments.items() if name != "ConsistentRead"}
    )
    if cursor is None:
        shards = key.shards_of(now=now or datetime.now(UTC), written_from=written_from, written_to=written_to)
        positions: dict[Shard, Position] = dict.fromkeys(shards)
    else:
        positions = read_cursor(cursor, digest)
    names = tuple(dict.fromkeys(name for name in (*sort_keys, *table_keys) if name not in partition_keys))
    added = _complete(arguments, partition_keys, names)
    size = page_items
    if size is None and limit is not None:
        part = -(-2 * limit // max(len(positions), 1))
        is_filtered = "FilterExpression" in request
        size = max(part, _LEAST_FILTERED_PAGE) if is_filtered else min(max(part, _LEAST_PAGE), limit)
    return ScatterQuery(
        reader=_Reader(client, table, index, pacer or Pacer(), "scatter_query"),
        arguments=arguments | ({} if size is None else {"Limit": size}),
        keys={shard: key.attributes_of(plain, shard, partition_keys) for shard in positions},
        positions=positions,
        digest=digest,
        sort_keys=sort_keys,
        position_names=names,
        added=added,
        limit=limit,
        workers=workers,
    )


def scatter_get(
    client: Any,
    table: str,
    key: ShardedKey,
    plain: str,
    *,
    partition_key: str,
    sort: Mapping[str, Any] | None = None,
    hashed: Hashed | None = None,
    at: datetime | None = None,
    is_consistent: bool = False,
    now: datetime | None = None,
    pacer: Pacer | None = None,
    **request: Any,
) -> dict[str, Any] | None:
    """Get one item of a sharded key from the shards that may hold it, one after the other, the likeliest first.

    The answer has the item's own partition key, which an update of the item names. With a hash there is one request for
    each number of shards that there was, and one for the plain key while it is read; for a random key, one for each
    shard until the item is found.

    Args:
        client: A DynamoDB client of boto3.
        table: The table's name.
        key: The declaration of the shards.
        plain: The key without a shard.
        partition_key: The table's partition key.
        sort: The table's sort key and its value in DynamoDB's JSON, such as `{"sk": {"S": "o-17"}}`. By default none.
        hashed: The value by whose hash the item was written. By default none, for a random key.
        at: When the item was first written; with a hash, only its shard of then is read, and the plain key while that
            is read. By default not known.
        is_consistent: Whether the read is strongly consistent.
        now: The present time. By default that of the machine.
        pacer: Has a budget for the table's reads. By default there is none.
        **request: `ProjectionExpression` and `ExpressionAttributeNames`, as `GetItem` has them.

    Returns:
        The item in DynamoDB's JSON, `None` if there is none.

    Raises:
        ShardError: An argument is not valid.
        PacedWorkError: As for `scatter_query`.

    Example:
        ```python
        order = highwater.shards.scatter_get(
            client, "orders", orders, "TENANT#1", partition_key="pk", sort={"sk": {"S": "o-17"}}, hashed="o-17"
        )
        ```
    """
    _check_names(client, request, _OF_GET, "scatter_get")
    shards: Sequence[Shard] = key.shards_with(hashed, now=now or datetime.now(UTC))
    if at is not None and not key.is_random:
        own = key.shard_for(at=at, hashed=hashed)
        # while items are moved into shards an old one is at either place, and not all writers may use shards yet
        shards = [own, *(shard for shard in shards if own is None or shard is None)]
    reader = _Reader(client, table, None, pacer or Pacer(), "scatter_get")
    least = page_units(0, is_consistent=is_consistent)
    for shard in shards:
        own_key = key.attributes_of(plain, shard, (partition_key,))
        asked = {"TableName": table, "Key": {**own_key, **(sort or {})}, **request}
        answer, _ = reader.ask("get_item", asked | {"ConsistentRead": is_consistent}, own_key, least)
        if "Item" in answer:
            found: dict[str, Any] = answer["Item"]
            return found
    return None


@dataclass(kw_only=True)
class ScatterQuery:
    """The items of a sharded key, as an iterator; made by `scatter_query`.

    Attributes:
        units: The read units consumed so far, of all shards together.
        requests: The number of pages read so far.
        scanned: The number of items read so far, before a filter.

    Example:
        ```python
        found = highwater.shards.scatter_query(client, "orders", orders, "TENANT#1", partition_key="pk", sort_key="sk")
        for item in found:
            print(item["sk"]["S"])
        print(f"{found.requests} requests, {found.units} read units")
        ```
    """

    units: float = 0.0
    requests: int = 0
    scanned: int = 0
    reader: _Reader = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)
    keys: Mapping[Shard, _Key] = field(repr=False)
    positions: Mapping[Shard, Position] = field(repr=False)
    digest: str = field(repr=False)
    sort_keys: tuple[str, ...] = field(repr=False)
    position_names: tuple[str, ...] = field(repr=False)
    added: tuple[str, ...] = field(repr=False)
    limit: int | None = field(repr=False)
    workers: int = field(repr=False)
    _streams: dict[Shard, ShardStream] = field(init=False, repr=False)
    _pages: dict[int, Future[_Page]] = field(default_factory=dict, init=False, repr=False)
    _items: Generator[Item, None, None] = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin each shard at its position."""
        self._streams = {
            # the plain key first
            shard: ShardStream(-1 if shard is None else shard, position, position)
            for shard, position in self.positions.items()
        }
        self._items = self._read()

    def __iter__(self) -> Iterator[Item]:
        """Return the items that are not yielded yet."""
        return self._items

    def __next__(self) -> Item:
        """Return the next item."""
        return next(self._items)

    def close(self) -> None:
        """End the query before its end; what is under way is dropped. The cursor continues it."""
        self._items.close()

    @property
    def cursor(self) -> str | None:
        """What continues the query behind the last item that was yielded; `None` if nothing is left.

        It is text for `scatter_query`, and holds no partition key, but the sort key of an item of each shard.
        """
        left = {shard: stream.position for shard, stream in self._streams.items() if not stream.is_over}
        return write_cursor(self.digest, left) if left else None

    def _read(self) -> Generator[Item, None, None]:
        streams = [stream for stream in self._streams.values() if not stream.is_over]
        if not streams:
            return
        pool = ThreadPoolExecutor(min(self.workers, len(streams)))
        try:
            for stream in streams:
                self._begin_page(pool, stream)
            items = merged(
                streams,
                sort_keys=self.sort_keys,
                is_forward=bool(self.arguments["ScanIndexForward"]),
                fill=lambda stream: self._fill(pool, stream),
                position_of=self._position_of,
            )
            for given, item in enumerate(items, 1):
                yield {name: value for name, value in item.items() if name not in self.added} if self.added else item
                if given == self.limit:
                    return
        finally:
            self.reader.is_stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _begin_page(self, pool: ThreadPoolExecutor, stream: ShardStream) -> None:
        shard = None if stream.order < 0 else stream.order
        # in a copy of the caller's context, so that tracing attributes the request to the caller
        run = copy_context().run
        self._pages[stream.order] = pool.submit(run, self._read_page, self.keys[shard], stream.following)

    def _fill(self, pool: ThreadPoolExecutor, stream: ShardStream) -> None:
        if stream.order not in self._pages:
            self._begin_page(pool, stream)
        page = self._pages.pop(stream.order).result()
        stream.take_page(page.items, page.following, is_last=page.following is None)
        if page.following is not None and self.limit is None:
            self._begin_page(pool, stream)

    def _read_page(self, key: _Key, position: Position) -> _Page:
        """Return the next page with an item, or the last one."""
        own = {f":{placeholder}": value for placeholder, value in zip(_PLACEHOLDERS, key.values(), strict=False)}
        while True:
            arguments = dict(self.arguments)
            arguments["ExpressionAttributeValues"] = arguments.get("ExpressionAttributeValues", {}) | own
            if position is not None:
                arguments["ExclusiveStartKey"] = {**key, **position}
            most = page_units(PAGE_BYTES, is_consistent=bool(arguments["ConsistentRead"]))
            answer, units = self.reader.ask("query", arguments, key, min(most, arguments.get("Limit", most)))
            with self._lock:
                self.units += units
                self.requests += 1
                self.scanned += int(answer["ScannedCount"])
            last = answer.get("LastEvaluatedKey")
            position = None if last is None else {name: last[name] for name in last if name not in key}
            if answer["Items"] or position is None:
                return _Page(answer["Items"], position)

    def _position_of(self, item: Item) -> Position:
        return {name: item[name] for name in self.position_names}


@dataclass(frozen=True, slots=True)
class _Page:
    """The items of a page, and the position of the next one, `None` behind the last."""

    items: Sequence[Item]
    following: Position


@dataclass(slots=True)
class _Reader:
    """Sends the requests; may be used from several threads. Once *is_stopped* is set, nothing more is sent."""

    client: Any
    table: str
    index: str | None
    pacer: Pacer
    what: str
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def ask(
        self, operation: str, arguments: Mapping[str, Any], key: _Key, expected: float
    ) -> tuple[dict[str, Any], float]:
        """Return the answer and its read units; *expected* units are paid for until they are known."""
        at = (self.table, (self.index, Dimension.READ))
        has_budget = self.pacer.rate(self.table, self.index, Dimension.READ) is not None
        retries = Retries(lambda error: self._why(key, error), is_patient=has_budget)
        while True:
            paid = self.pacer.wait({at: expected}, is_retry=retries.has_failed, is_stopped=self.is_stopped)
            try:
                answer: dict[str, Any] = getattr(self.client, operation)(**arguments, ReturnConsumedCapacity="TOTAL")
            except (ClientError, BotoCoreError) as error:
                refusals = refusals_of(error.response) if isinstance(error, ClientError) else []
                if refusals:
                    self.pacer.refund(paid, self.table, Dimension.READ, refusals)
                self.pacer.pause(retries.pause_after(error, is_throttled=bool(refusals)))
            else:
                units = float((answer.get("ConsumedCapacity") or {}).get("CapacityUnits") or 0)
                self.pacer.settle(paid, {at: units})
                return answer, units

    def _why(self, key: _Key, error: Exception) -> str:
        return f"{self._where(key)}: {' '.join(str(error).split())}"

    def _where(self, key: _Key) -> str:
        plain, *shard = (held for value in key.values() for held in value.values())
        return ", ".join([f"{self.what} of {self.table}, key {plain!r}", *(f"shard {number}" for number in shard)])


def _check_names(client: Any, request: Mapping[str, Any], passed_on: frozenset[str], what: str) -> None:
    # a table resource has a query of its own
    if not callable(getattr(client, "query", None)) or hasattr(client, "table_name"):
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        raise TypeError(f"{what}: client: got {kind}, allowed: a DynamoDB client of boto3; {_FROM_CLIENT}")
    unknown = sorted(set(request) - passed_on)
    if unknown:
        raise ShardError(
            f"{what}: {', '.join(unknown)} cannot be passed on; allowed: {', '.join(sorted(passed_on))}"
            f"{did_you_mean(unknown[0], passed_on)}"
        )


def _names(attributes: str | Sequence[str] | None) -> tuple[str, ...]:
    return (attributes,) if isinstance(attributes, str) else tuple(attributes or ())


def _check_partition_keys(names: Sequence[str], key: ShardedKey, index: str | None) -> None:
    if not 1 <= len(names) <= len(_PLACEHOLDERS):
        raise ShardError(
            f"scatter_query: partition_key: got {len(names)} attributes, allowed: one, or for an index two, the key "
            "and the shard's number"
        )
    if len(names) == 1:
        return
    if index is None:
        raise ShardError(
            "scatter_query: partition_key: got two attributes without index=, allowed: one; only an index has two"
        )
    if key.unsharded_until is not None:
        raise ShardError(
            f"scatter_query: key: got unsharded_until {key.unsharded_until.isoformat()}, allowed for a partition key "
            "of two attributes: None, as items without a shard's number are not in the index; give them one"
        )


def _complete(arguments: dict[str, Any], partition_keys: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Name the partition key, and add what the merge needs to a projection; return the attributes that were added."""
    names = dict(arguments.get("ExpressionAttributeNames", {}))
    added: list[str] = []
    projection = arguments.get("ProjectionExpression")
    if projection is not None:
        there = {names.get(path.strip(), path.strip()) for path in projection.split(",")}
        added = [name for name in wanted if name not in there]
        more = {f"#hw_{number}": name for number, name in enumerate(added)}
        arguments["ProjectionExpression"] = ", ".join([projection, *more])
        names |= more
    own = {f"#{placeholder}": name for placeholder, name in zip(_PLACEHOLDERS, partition_keys, strict=False)}
    arguments["ExpressionAttributeNames"] = names | own
    return tuple(added)
