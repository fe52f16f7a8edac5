"""Hooks of a boto3 client that count for pulses what each request consumes, or for what it is throttled."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS
from highwater.core.units import Dimension

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_STATEMENTS: Final = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_WITH_CAPACITY: Final = _READS | _WRITES | _STATEMENTS
PAGED: Final = frozenset({"Query", "Scan"})
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"})
_REASON: Final = re.compile(
    r"(Table|Index)(?:Read|Write)(ProvisionedThroughput|KeyRangeThroughput|AccountLimit|MaxOnDemandThroughput)Exceeded"
)
# the table of a PartiQL statement, which may be followed by an index
_TABLE: Final = re.compile(r"""\b(?:FROM|INTO|UPDATE)\s+(?:"([^"]+)"|([\w.-]+))""", re.IGNORECASE)
_INDEX: Final = re.compile(r":table/[^/]+/index/(.+)")
_ASKED, _CONSUMED = "highwater-asked", "highwater-consumed"


class RefusalKind(StrEnum):
    """The limit that throttled a request (DynamoDB Developer Guide, "Troubleshooting throttling", read 2026-11)."""

    PROVISIONED = "ProvisionedThroughput"
    KEY_RANGE = "KeyRangeThroughput"
    ACCOUNT = "AccountLimit"
    ON_DEMAND = "MaxOnDemandThroughput"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why a request was throttled.

    Attributes:
        kind: The limit that it exceeded.
        index: The index whose limit that is, `None` for the table.
    """

    kind: RefusalKind
    index: str | None = None


@dataclass(slots=True)
class Request:
    """One request that consumes capacity.

    Attributes:
        operation: Its name in the API, such as `PutItem`.
        dimension: Whether it reads or writes.
        items: How many items of each table the request names; `Query`, `Scan` and each PartiQL statement count as one.
    """

    operation: str
    dimension: Dimension
    items: dict[str, int]


def read_request(operation: str, params: Mapping[str, Any]) -> Request | None:
    """Return the request, `None` if it consumes no capacity or if botocore is going to reject it."""
    if operation not in _WITH_CAPACITY:
        return None
    try:
        table = params.get("TableName")
        items = {table_name(table): 1} if table is not None else _items_of(params)
        return Request(operation, _dimension(operation, params), items)
    except (TypeError, AttributeError, KeyError):
        return None


def ask_for_consumption(params: dict[str, Any], context: dict[str, Any]) -> None:
    """Set ReturnConsumedCapacity=INDEXES and remember the caller's own setting."""
    # several hooks may handle one request; only the first one reads the caller's own setting
    context.setdefault(_ASKED, params.get("ReturnConsumedCapacity", "NONE"))
    params["ReturnConsumedCapacity"] = "INDEXES"


def take_consumption(parsed: dict[str, Any], context: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ConsumedCapacity of a response, by table, and leave in the response only what the caller asked for."""
    known: list[Mapping[str, Any]] | None = context.get(_CONSUMED)
    if known is not None:
        return known
    consumed = parsed.pop("ConsumedCapacity", None)
    found = [] if consumed is None else consumed if isinstance(consumed, list) else [consumed]
    context[_CONSUMED] = found
    asked = context.get(_ASKED, "NONE")
    if consumed is not None and asked != "NONE":
        seen = found if asked == "INDEXES" else [_total(each) for each in found]
        parsed["ConsumedCapacity"] = seen if isinstance(consumed, list) else seen[0]
    return found


def units_of(consumed: Mapping[str, Any], dimension: Dimension) -> Iterator[tuple[TargetKey, float]]:
    """Yield each target's units; the units of local indexes count as the table's."""
    indexes = consumed.get("GlobalSecondaryIndexes") or {}
    whole = float(consumed.get("CapacityUnits") or 0)
    for index, each in indexes.items():
        units = float(each.get("CapacityUnits") or 0)
        whole -= units
        yield (index, dimension), units
    yield (None, dimension), max(whole, 0.0)


def items_left(parsed: Mapping[str, Any]) -> dict[str, int]:
    """Return how many items of each table a batch left unprocessed."""
    found = {table_name(table): len(asked) for table, asked in (parsed.get("UnprocessedItems") or {}).items()}
    keys = (parsed.get("UnprocessedKeys") or {}).items()
    return found | {table_name(table): len(asked.get("Keys", ())) for table, asked in keys}


def refusals_of(parsed: Mapping[str, Any]) -> list[Throttle]:
    """Return why an attempt was throttled; empty for one that was not."""
    code = (parsed.get("Error") or {}).get("Code")
    if code not in _THROTTLED:
        return []
    reasons = parsed.get("ThrottlingReasons") or parsed.get("throttlingReasons")
    if not reasons:
        # DynamoDB has sent reasons since 2025; without them, this error means insufficient provisioned capacity
        if code == "ProvisionedThroughputExceededException":
            return [Throttle(RefusalKind.PROVISIONED)]
        return [Throttle(RefusalKind.ACCOUNT)]
    found = []
    for each in reasons:
        named = _REASON.search(str(each.get("reason", "")))
        if named is not None:
            index = _INDEX.search(str(each.get("resource", "")))
            found.append(Throttle(RefusalKind(named[2]), index[1] if named[1] == "Index" and index else None))
    return found


def table_name(table: str) -> str:
    """Return a table's name from its name or ARN."""
    return table.rpartition(":table/")[2].partition("/")[0]


def _total(consumed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what DynamoDB would have answered to ReturnConsumedCapacity=TOTAL."""
    return {name: value for name, value in consumed.items() if not isinstance(value, Mapping)}


def _dimension(operation: str, params: Mapping[str, Any]) -> Dimension:
    if operation in _STATEMENTS:
        return Dimension.READ if _statements(params)[0].lstrip()[:6].upper() == "SELECT" else Dimension.WRITE
    return Dimension.READ if operation in _READS else Dimension.WRITE


def _statements(params: Mapping[str, Any]) -> list[str]:
    """The PartiQL statements of a request, at least one."""
    several: list[dict[str, Any]] = params.get("Statements") or params.get("TransactStatements") or [params]
    return [str(each.get("Statement", "")) for each in several]


def _items_of(params: Mapping[str, Any]) -> dict[str, int]:
    """Return how many items of each table a batch or transaction names; each statement counts as one."""
    found: dict[str, int] = {}
    for statement in _statements(params):
        named = _TABLE.search(statement)
        if named is not None:
            table = table_name(named[1] or named[2])
            found[table] = found.get(table, 0) + 1
    for table, asked in (params.get("RequestItems") or {}).items():
        found[table_name(table)] = len(asked["Keys"]) if isinstance(asked, Mapping) else len(asked)
    for item in params.get("TransactItems") or ():
        for action in item.values():
            table = table_name(action["TableName"])
            found[table] = found.get(table, 0) + 1
    return found


# (slot since 1970, target, whether refused): units
Amounts = dict[tuple[int, TargetKey, bool], float]


@dataclass(slots=True)
class Counts:
    """Units by table; may be added to from several threads."""

    _by_table: dict[str, Amounts] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, table: str, slot: int, key: TargetKey, units: float, *, refused: bool = False) -> None:
        """Count units consumed, or throttled, in a slot."""
        at = (slot, key, refused)
        with self._lock:
            amounts = self._by_table.setdefault(table, {})
            amounts[at] = amounts.get(at, 0.0) + units

    def tables(self) -> list[str]:
        """Tables with unreported counts."""
        with self._lock:
            return list(self._by_table)

    def peek(self, table: str) -> Mapping[tuple[int, TargetKey, bool], float]:
        """Return the unreported counts of a table, without removing them."""
        with self._lock:
            return dict(self._by_table.get(table, {}))

    def take(self, table: str, before_slot: int | None = None) -> Amounts:
        """Remove and return the unreported counts of a table: all, or those of slots before *before_slot*."""
        with self._lock:
            found = self._by_table.pop(table, {})
            if before_slot is None:
                return found
            left = {at: units for at, units in found.items() if at[0] >= before_slot}
            if left:
                self._by_table[table] = left
            return {at: units for at, units in found.items() if at[0] < before_slot}

    def put_back(self, table: str, amounts: Amounts) -> None:
        """Add counts that certainly were not reported back, for the next pulse."""
        for (slot, key, refused), units in amounts.items():
            self.add(table, slot, key, units, refused=refused)

    def forget(self) -> None:
        """Drop all counts, in a forked process: its parent reports them."""
        self._lock = threading.Lock()
        self._by_table = {}


_KEY: Final = "highwater-meter"
# Weight of a new request in the mean from which throttled requests are estimated
_WEIGHT: Final = 0.1


@dataclass(slots=True)
class _Metered:
    """A request, and whether an attempt of it was throttled."""

    request: Request
    is_refused: bool = False


@dataclass(slots=True)
class Meter:
    """Hooks for a boto3 session or client that count units for pulses.

    Units are counted by table, index, dimension and slot of ten seconds. A request throttled because of insufficient
    provisioned capacity is counted once, however often it is retried, with the mean units of requests of its kind.
    Requests throttled because of a hot key or a limit of the account are not counted, as more capacity would not help
    them.

    Counted requests are sent with `ReturnConsumedCapacity=INDEXES`; the caller's response has only what the caller
    asked for. No hook raises, and none waits.

    Attributes:
        counts: The unreported counts.
        is_told: Says whether a table's requests are counted.
        notice: Called after something was counted.
        clock: Seconds since 1970.

    Example:
        ```python
        pulse = highwater.pulse(session)
        # a client of another session, counted for the same pulses
        pulse.meter.install(other_session.client("dynamodb"))
        ```
    """

    counts: Counts
    is_told: Callable[[str], bool] = lambda _: True
    notice: Callable[[], None] = lambda: None
    clock: Callable[[], float] = lambda: time.time()
    _means: dict[tuple[str, TargetKey], float] = field(default_factory=dict)

    def install(self, session_or_client: Any) -> None:
        """Meter a client, or the clients and resources that a session makes from now on."""
        events = getattr(session_or_client, "events", None) or session_or_client.meta.events
        for event, hook in self._hooks():
            events.register(event, hook, unique_id=f"highwater-meter-{event}")

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        request = read_request(model.name, params)
        if request is None or (request.items and not any(self.is_told(table) for table in request.items)):
            return
        ask_for_consumption(params, context)
        context[_KEY] = _Metered(request)

    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.get(_KEY) if context else None
        if metered is None or metered.is_refused or not parsed_response:
            return
        refused = [each for each in refusals_of(parsed_response) if each.kind is RefusalKind.PROVISIONED]
        if refused:
            metered.is_refused = True
            for table, items in metered.request.items.items():
                self._refuse(table, (refused[0].index, metered.request.dimension), items)

    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.pop(_KEY, None) if context else None
        if metered is None:
            return
        request, left = metered.request, items_left(parsed)
        slot = int(self.clock()) // SLOT_SECONDS
        for each in take_consumption(parsed, context):
            table = table_name(each.get("TableName", ""))
            items = max(request.items.get(table, 1) - left.get(table, 0), 1)
            for key, units in units_of(each, request.dimension):
                if units:
                    self._count(table, slot, key, units)
                    self._learn(table, key, units / items)
        for table, number in left.items():
            self._refuse(table, (None, request.dimension), number)
        self.notice()

    def _refuse(self, table: str, key: TargetKey, number: int) -> None:
        units = self._means.get((table, key), 1.0) * number
        if self.is_told(table):
            self.counts.add(table, int(self.clock()) // SLOT_SECONDS, key, units, refused=True)
            self.notice()

    def _count(self, table: str, slot: int, key: TargetKey, units: float) -> None:
        if self.is_told(table):
            self.counts.add(table, slot, key, units)

    def _learn(self, table: str, key: TargetKey, units: float) -> None:
        mean = self._means.get((table, key))
        self._means[table, key] = units if mean is None else mean + _WEIGHT * (units - mean)
