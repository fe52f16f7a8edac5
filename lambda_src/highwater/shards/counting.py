"""`count_keys`: a bounded sketch of the partition keys that this process reads and writes, logged once a minute."""

from __future__ import annotations

import atexit
import hmac
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import boto3

from highwater.client.hooks import (
    ITEM_THROTTLED,
    ask_for_consumption,
    quietly,
    refusals_of,
    table_name,
    take_consumption,
    units_of,
)
from highwater.client.sessions import events_of, renewed_in_forks
from highwater.core.errors import did_you_mean
from highwater.core.findings import shown
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater.core.throttles import ThrottleCause
from highwater.core.units import Dimension
from highwater.shards.key import ShardError
from highwater.shards.key_log import KeyLine
from highwater.shards.request_keys import READS, TableKey, read_keys
from highwater.shards.sketch import Sketch

_LOG: Final = logging.getLogger("highwater.keys")
_SECONDS: Final = 60
_END_SECONDS: Final = 1
_MOST_LINES: Final = 10
_HASH_DIGITS: Final = 16
_SECRET_DIGITS: Final = 8
_LEAST_SECRET_BYTES: Final = 16
_PARTITION_UNITS: Final = {Dimension.READ: PARTITION_READ_UNITS, Dimension.WRITE: PARTITION_WRITE_UNITS}
# region, table, dimension
_Place = tuple[str, str, Dimension]


def count_keys(
    session_or_client: Any = None,
    *,
    keys: Mapping[str, str],
    secret: str | bytes | None = None,
    plain_tables: Iterable[str] = (),
) -> KeyCounts:
    """Count the partition keys that this process reads and writes, and log the most frequent ones once a minute.

    One call per process, before clients are made. The logger is `highwater.keys`; each line is a JSON object. Keys that
    were throttled are logged as warnings, others as infos. Requests never wait and never fail because of it.

    Args:
        session_or_client: A boto3 session, whose later clients and resources are counted, or a DynamoDB client. By
            default boto3's default session.
        keys: The tables to count, by name, and the attribute of the partition key of each, such as `{"orders": "pk"}`.
        secret: The secret of the keyed hashes (HMAC with SHA-256) that the lines have in the place of keys, at least 16
            bytes. With one secret for a fleet, the lines of its processes can be added up. By default one is drawn for
            this process and its forks.
        plain_tables: The tables whose keys are logged as they are. By default none.

    Returns:
        The counts, whose `stop` logs the minute that is under way and ends the counting. The end of the process logs it
        too.

    Raises:
        ShardError: An argument is not valid.
        TypeError: A session or client is not boto3's, or the client is one of another service.

    Example:
        ```python
        session = boto3.Session()
        highwater.shards.count_keys(session, keys={"orders": "pk"}, secret=os.environ["KEY_LOG_SECRET"])
        orders = session.resource("dynamodb").Table("orders")
        ```
    """
    attributes, plain = dict(keys), frozenset(plain_tables)
    _check(attributes, plain, secret)
    target = session_or_client
    if target is None:
        if boto3.DEFAULT_SESSION is None:
            boto3.setup_default_session()
        target = boto3.DEFAULT_SESSION
    given = secrets.token_bytes(32) if secret is None else secret.encode() if isinstance(secret, str) else secret
    made = KeyCounts(attributes=attributes, secret=given, plain_tables=plain)
    made.install(target)
    atexit.register(made.stop)
    return made


def _check(attributes: Mapping[str, str], plain: frozenset[str], secret: str | bytes | None) -> None:
    if not attributes:
        raise ShardError('count_keys: keys: got {}, allowed: at least one table, such as {"orders": "pk"}')
    for table, attribute in attributes.items():
        if not isinstance(table, str) or not isinstance(attribute, str) or not table or not attribute:
            raise ShardError(
                f"count_keys: keys: got {shown({table: attribute})}, allowed: a table's name and the name of its "
                'partition key, such as {"orders": "pk"}'
            )
        if table.startswith("arn:"):
            raise ShardError(
                f"count_keys: keys: got {table!r}, allowed: a table's name; write {table_name(table)!r}, which counts "
                "requests by name and by ARN"
            )
    unknown = sorted(plain - set(attributes))
    if unknown:
        raise ShardError(
            f"count_keys: plain_tables: got {unknown[0]!r}, allowed: tables of keys, {', '.join(sorted(attributes))}"
            f"{did_you_mean(unknown[0], attributes)}"
        )
    if secret is not None and len(secret if isinstance(secret, bytes) else secret.encode()) < _LEAST_SECRET_BYTES:
        # the value itself is secret
        raise ShardError(
            f"count_keys: secret: got {len(secret)} bytes, allowed: {_LEAST_SECRET_BYTES} or more; draw one with "
            "`openssl rand -hex 32`"
        )


@dataclass(slots=True)
class _Asked:
    """A request, its table and key for each item, and those that were counted as throttled so far."""

    dimension: Dimension
    region: str
    items: list[TableKey | None]
    throttled: list[TableKey] = field(default_factory=list)
    is_key_range_throttled: bool = False


@dataclass(slots=True)
class _Sketches:
    """What was counted for a table's reads or writes in a minute."""

    units: Sketch = field(default_factory=Sketch)
    throttled: Sketch = field(default_factory=Sketch)
    key_range_throttled: Sketch = field(default_factory=Sketch)


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class KeyCounts:
    """The partition keys that a process reads and writes in the present minute; made by `count_keys`.

    Attributes:
        attributes: The tables, and the attribute of the partition key of each.
        secret: The secret of the keyed hashes.
        plain_tables: The tables whose keys are logged as they are.
        clock: Seconds since 1970.

    Example:
        ```python
        counts = highwater.shards.count_keys(session, keys={"orders": "pk"})
        counts.install(other_session.client("dynamodb"))
        serve()
        counts.stop()
        ```
    """

    attributes: Mapping[str, str]
    secret: bytes = field(repr=False)
    plain_tables: frozenset[str] = frozenset()
    clock: Callable[[], float] = lambda: time.time()
    _began: float = field(init=False, repr=False)
    _sketches: dict[_Place, _Sketches] = field(default_factory=dict, init=False, repr=False)
    # (place, key, units, throttled requests, those throttled by a partition's limit)
    _added: deque[tuple[_Place, str, float, int, int]] = field(default_factory=deque, init=False, repr=False)
    # not one that its holder may acquire again: a signal handler that interrupts the holder leaves the work to it
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)
    _context_key: str = field(init=False, repr=False)
    _is_stopped: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin with the present minute."""
        self._context_key = f"highwater-keys-{id(self)}"
        self._began = self.clock() // _SECONDS * _SECONDS
        _COUNTS.add(self)

    def install(self, session_or_client: Any) -> None:
        """Count the requests of a client, or of the clients and resources that a session makes from now on.

        Raises `TypeError` for what is neither a boto3 session nor one of its DynamoDB clients.
        """
        events = events_of(session_or_client, "count_keys: session_or_client")
        for event, hook in self._hooks():
            events.register(event, hook, unique_id=f"{self._context_key}-{event}")

    def stop(self) -> None:
        """Log what was counted since the last minute ended, and count nothing any more."""
        if self._is_stopped:
            return
        self._is_stopped = True
        # a thread that counts holds the lock for microseconds; a signal handler may have interrupted it for good
        if self._lock.acquire(timeout=_END_SECONDS):
            try:
                self._sum_up()
                ended, self._sketches = self._sketches, {}
            finally:
                self._lock.release()
            self._log(self._began, ended)

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    @quietly
    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        items = [] if self._is_stopped else read_keys(model.name, params, self.attributes)
        if items:
            ask_for_consumption(params, context)
            dimension = Dimension.READ if model.name in READS else Dimension.WRITE
            context[self._context_key] = _Asked(dimension, context.get("client_region", ""), items)

    @quietly
    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        asked: _Asked | None = context.get(self._context_key) if context else None
        if asked is None or not parsed_response or "Error" not in parsed_response:
            return
        refusals = refusals_of(parsed_response)
        if refusals:
            self._throttle(
                asked,
                _named(asked.items, {table_name(each.resource) for each in refusals}),
                # the partition of an index's key is another one
                is_key_range=any(each.cause is ThrottleCause.KEY_RANGE and each.index is None for each in refusals),
            )
            return
        reasons = parsed_response.get("CancellationReasons") or ()
        throttled = [
            item for item, why in zip(asked.items, reasons, strict=False) if item and why.get("Code") in ITEM_THROTTLED
        ]
        if throttled:
            self._throttle(asked, throttled, is_key_range=False)

    def _throttle(self, asked: _Asked, items: list[TableKey], *, is_key_range: bool) -> None:
        """Count a throttled request once, and once as throttled by a partition's limit, however often it is retried."""
        once, once_by_key_range = not asked.throttled, is_key_range and not asked.is_key_range_throttled
        asked.throttled = asked.throttled or items
        asked.is_key_range_throttled |= is_key_range
        if once or once_by_key_range:
            for item in items:
                self._add(asked, item, 0.0, int(once), int(once_by_key_range))

    @quietly
    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        asked: _Asked | None = context.pop(self._context_key, None) if context else None
        if asked is None:
            return
        consumption = take_consumption(parsed, context)
        served = asked.items
        for member, operation in (("UnprocessedItems", "BatchWriteItem"), ("UnprocessedKeys", "BatchGetItem")):
            if parsed.get(member):
                left = read_keys(operation, {"RequestItems": parsed[member]}, self.attributes)
                served = _without(served, left)
                # earlier attempts may have been throttled as a whole
                for item in filter(None, _without(left, asked.throttled)):
                    self._add(asked, item, 0.0, 1, 0)
        if consumption:
            for each in consumption:
                table = table_name(each.get("TableName", ""))
                mine = served if len(served) == 1 else [item for item in served if item and item[0] == table]
                units = sum(found for (index, _), found in units_of(each, asked.dimension) if index is None)
                for item in filter(None, mine):
                    self._add(asked, item, units / len(mine), 0, 0)
        elif "Error" not in parsed or parsed["Error"].get("Code") == "ConditionalCheckFailedException":
            # a failed condition consumes write units as well, and the answer does not say how many (Amazon DynamoDB
            # Developer Guide, "Capacity unit consumption", read 2026-11)
            for item in filter(None, served):
                self._add(asked, item, 1.0, 0, 0)

    def _add(self, asked: _Asked, item: TableKey, units: float, throttled: int, key_range_throttled: int) -> None:
        table, key = item
        self._added.append(((asked.region, table, asked.dimension), key, units, throttled, key_range_throttled))
        # whoever finds the lock free sums up, so that the queue stays short; the others leave that to them
        if not self._lock.acquire(blocking=False):
            return
        try:
            now, ended = self.clock(), None
            # a clock that is set back by less than a minute ends no minute twice
            if not -_SECONDS <= now - self._began < _SECONDS:
                began, ended, self._sketches = self._began, self._sketches, {}
                self._began = now // _SECONDS * _SECONDS
            self._sum_up()
        finally:
            self._lock.release()
        if ended:
            self._log(began, ended)

    def _sum_up(self) -> None:
        for _ in range(len(self._added)):
            place, key, units, throttled, key_range_throttled = self._added.popleft()
            sketches = self._sketches.get(place)
            if sketches is None:
                sketches = self._sketches[place] = _Sketches()
            if units:
                sketches.units.add(key, units)
            if throttled:
                sketches.throttled.add(key, throttled)
            if key_range_throttled:
                sketches.key_range_throttled.add(key, key_range_throttled)

    def _log(self, began: float, ended: Mapping[_Place, _Sketches]) -> None:
        minute = datetime.fromtimestamp(began, UTC).isoformat().replace("+00:00", "Z")
        lines = [line for place, sketches in ended.items() for line in self._lines(minute, place, sketches)]
        lines.sort(key=lambda line: -(line.units + line.throttled) / _PARTITION_UNITS[line.dimension])
        for line in lines[:_MOST_LINES]:
            _LOG.log(logging.WARNING if line.throttled else logging.INFO, "%s", line.text())

    def _lines(self, minute: str, place: _Place, sketches: _Sketches) -> Iterator[KeyLine]:
        region, table, dimension = place
        found = (sketches.units, sketches.throttled, sketches.key_range_throttled)
        for key in dict.fromkeys(key for sketch in found for key in sketch.frequent()):
            least, most = sketches.units.bounds(key)
            is_plain = table in self.plain_tables
            yield KeyLine(
                minute=minute,
                region=region,
                table=table,
                dimension=dimension,
                key=key if is_plain else "",
                key_hash="" if is_plain else self._hash(key)[:_HASH_DIGITS],
                secret="" if is_plain else self._hash("highwater.keys")[:_SECRET_DIGITS],
                units=round(least, 1),
                units_error=round(most - least, 1),
                table_units=round(sketches.units.total, 1),
                throttled=int(sketches.throttled.bounds(key)[0]),
                key_range_throttled=int(sketches.key_range_throttled.bounds(key)[0]),
            )

    def _hash(self, text: str) -> str:
        return hmac.digest(self.secret, text.encode(errors="surrogatepass"), "sha256").hex()

    def _begin_anew(self) -> None:
        """Drop all counts, in a forked process: its parent logs them."""
        self._lock, self._added, self._sketches = threading.Lock(), deque(), {}
        self._began = self.clock() // _SECONDS * _SECONDS


def _named(items: list[TableKey | None], tables: set[str]) -> list[TableKey]:
    """Return the items of the throttled tables; all of them if DynamoDB named none that the request has."""
    found = [item for item in items if item is not None]
    return [item for item in found if item[0] in tables] or found


def _without(items: list[TableKey | None], left: Iterable[TableKey | None]) -> list[TableKey | None]:
    """Return the items of a batch without others of it, such as those that it left unprocessed."""
    served = list(items)
    for item in left:
        if item in served:
            served.remove(item)
    return served


_COUNTS: Final = renewed_in_forks(KeyCounts._begin_anew)
