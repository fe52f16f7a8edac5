"""Hooks of a boto3 client that count for pulses what each request consumes, or for what it is throttled."""

from __future__ import annotations

import functools
import logging
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from highwater.client.sessions import Place, events_of
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS
from highwater.core.throttles import ThrottleCause, find_reason
from highwater.core.units import Dimension

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_STATEMENTS: Final = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_WITH_CAPACITY: Final = _READS | _WRITES | _STATEMENTS
PAGED: Final = frozenset({"Query", "Scan"})
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"})
# of one item of a transaction, or one statement of a batch, for want of the capacity of its table or index
ITEM_THROTTLED: Final = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
# the table of a PartiQL statement, which may be followed by an index
_TABLE: Final = re.compile(r"""\b(?:FROM|INTO|UPDATE)\s+(?:"([^"]+)"|([\w.-]+))""", re.IGNORECASE)
_INDEX: Final = re.compile(r":table/[^/]+/index/(.+)")
_ASKED, _CONSUMED = "highwater-asked", "highwater-consumed"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why a request was throttled.

    Attributes:
        cause: The limit that it exceeded.
        index: The index whose limit that is, `None` for the table.
        resource: The ARN of that table or index, empty if DynamoDB did not name it.
    """

    cause: ThrottleCause
    index: str | None = None
    resource: str = ""

    def tables(self, request: Request, label: Callable[[str], str]) -> Mapping[str, int]:
        """Return how many items of each throttled table *request* names: of the one that is named, otherwise of all.

        A batch or a transaction of several tables is rejected as a whole, although one of them was out of capacity.
        """
        named = label(self.resource)
        return {named: request.items[named]} if named in request.items else request.items


@dataclass(slots=True)
class Request:
    """One request that consumes capacity.

    Attributes:
        operation: Its name in the API, such as `PutItem`.
        dimension: Whether it reads or writes.
        items: How many items of each table the request names; `Query`, `Scan` and each PartiQL statement count as one.
        order: The table of each item of a transaction, or statement, in their order; empty where it is not known.
    """

    operation: str
    dimension: Dimension
    items: dict[str, int]
    order: tuple[str, ...] = ()


def read_request(operation: str, params: Mapping[str, Any], label: Callable[[str], str]) -> Request | None:
    """Return the request, `None` if it consumes no capacity or if botocore is going to reject it.

    Args:
        operation: Its name in the API.
        params: Its parameters.
        label: Returns what to call a table, from its name or ARN.
    """
    if operation not in _WITH_CAPACITY:
        return None
    try:
        table = params.get("TableName")
        if table is not None:
            return Request(operation, _dimension(operation, params), {label(table): 1})
        order = tuple("" if each is None else label(each) for each in _order_of(params))
        items = {label(each): number for each, number in _batch_of(params)}
        for each in filter(None, order):
            items[each] = items.get(each, 0) + 1
        return Request(operation, _dimension(operation, params), items, order)
    except (TypeError, AttributeError, KeyError, ValueError):
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
    whole = _units(consumed)
    for index, each in indexes.items():
        units = _units(each)
        whole -= units
        yield (index, dimension), units
    yield (None, dimension), max(whole, 0.0)


def _units(consumed: Mapping[str, Any]) -> float:
    units = float(consumed.get("CapacityUnits") or 0)
    return units if 0 <= units < math.inf else 0.0


def items_left(parsed: Mapping[str, Any], request: Request, label: Callable[[str], str]) -> dict[str, int]:
    """Return how many items of each table a batch left unprocessed, or how many of its statements were throttled."""
    found = {label(table): len(asked) for table, asked in (parsed.get("UnprocessedItems") or {}).items()}
    keys = (parsed.get("UnprocessedKeys") or {}).items()
    found |= {label(table): len(asked.get("Keys", ())) for table, asked in keys}
    if request.operation == "BatchExecuteStatement":
        answers = parsed.get("Responses") or ()
        _count(found, zip(request.order, (each.get("Error") or {} for each in answers), strict=False))
    return found


def items_canceled(parsed: Mapping[str, Any], request: Request) -> dict[str, int]:
    """Return how many items of each table were throttled in a canceled transaction; empty for other answers."""
    found: dict[str, int] = {}
    if (parsed.get("Error") or {}).get("Code") == "TransactionCanceledException":
        _count(found, zip(request.order, parsed.get("CancellationReasons") or (), strict=False))
    return found


def _count(found: dict[str, int], answers: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    for table, error in answers:
        if table and error.get("Code") in ITEM_THROTTLED:
            found[table] = found.get(table, 0) + 1


def refusals_of(parsed: Mapping[str, Any]) -> list[Throttle]:
    """Return why an attempt was throttled; empty for one that was not."""
    code = (parsed.get("Error") or {}).get("Code")
    if code not in _THROTTLED:
        return []
    found = []
    # the second is ThrottlingException's, which batches may get for want of capacity as well
    for each in parsed.get("ThrottlingReasons") or parsed.get("throttlingReasons") or ():
        reason = find_reason(str(each.get("reason", "")))
        if reason is not None:
            resource = str(each.get("resource", ""))
            index = _INDEX.search(resource) if reason.is_of_index else None
            found.append(Throttle(reason.cause, index[1] if index else None, resource))
    # DynamoDB has sent reasons since 2025; without one that is known here, the first error means insufficient capacity
    unknown = ThrottleCause.PROVISIONED if code == "ProvisionedThroughputExceededException" else ThrottleCause.ACCOUNT
    return found or [Throttle(unknown)]


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


def _batch_of(params: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield each table of a batch, by name or ARN, and how many items of it the batch names."""
    for table, asked in (params.get("RequestItems") or {}).items():
        yield table, len(asked["Keys"]) if isinstance(asked, Mapping) else len(asked)


def _order_of(params: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the table of each item of a transaction and of each statement, in order; `None` where it is not known."""
    if params.get("RequestItems"):
        return
    for item in params.get("TransactItems") or ():
        (action,) = item.values()
        yield action["TableName"]
    if not params.get("TransactItems"):
        for statement in _statements(params):
            named = _TABLE.search(statement)
            yield None if named is None else named[1] or named[2]


# (slot since 1970, target, whether refused): units
Amounts = dict[tuple[int, TargetKey, bool], float]


@dataclass(slots=True)
class Counts:
    """Units by table. Any thread may add, a signal handler too, and never waits for it."""

    _added: deque[tuple[str, tuple[int, TargetKey, bool], float]] = field(default_factory=deque)
    _by_table: dict[str, Amounts] = field(default_factory=dict)
    # a signal handler may read while the thread that it interrupts does
    _lock: Any = field(default_factory=threading.RLock)

    def add(self, table: str, slot: int, key: TargetKey, units: float, *, refused: bool = False) -> None:
        """Count units consumed, or throttled, in a slot."""
        self._added.append((table, (slot, key, refused), units))
        # whoever finds the lock free sums up, so that the queue stays short; the others leave that to them
        if self._lock.acquire(blocking=False):
            try:
                self._sum_up()
            finally:
                self._lock.release()

    def tables(self) -> list[str]:
        """Tables with unreported counts."""
        with self._lock:
            self._sum_up()
            return list(self._by_table)

    def peek(self, table: str) -> Mapping[tuple[int, TargetKey, bool], float]:
        """Return the unreported counts of a table, without removing them."""
        with self._lock:
            self._sum_up()
            return dict(self._by_table.get(table, {}))

    def take(self, table: str, before_slot: int | None = None) -> Amounts:
        """Remove and return the unreported counts of a table: all, or those of slots before *before_slot*."""
        with self._lock:
            self._sum_up()
            found = self._by_table.pop(table, {})
            if before_slot is None:
                return found
            left = {at: units for at, units in found.items() if at[0] >= before_slot}
            if left:
                self._by_table[table] = left
            return {at: units for at, units in found.items() if at[0] < before_slot}

    def end_at(self, table: str, slot: int) -> None:
        """Count what was counted for later slots in this one, as the clock was set back."""
        for (at, key, refused), units in self.take(table).items():
            self.add(table, min(at, slot), key, units, refused=refused)

    def put_back(self, table: str, amounts: Amounts) -> None:
        """Add counts that certainly were not reported back, for the next pulse."""
        for (slot, key, refused), units in amounts.items():
            self.add(table, slot, key, units, refused=refused)

    def forget(self) -> None:
        """Drop all counts, in a forked process: its parent reports them."""
        self._lock, self._added, self._by_table = threading.RLock(), deque(), {}

    def _sum_up(self) -> None:
        for _ in range(len(self._added)):
            try:
                table, at, units = self._added.popleft()
            except IndexError:
                # a signal handler was faster
                return
            amounts = self._by_table.setdefault(table, {})
            amounts[at] = amounts.get(at, 0.0) + units


_LOG: Final = logging.getLogger("highwater.hooks")
_KEY: Final = "highwater-meter"
# Weight of a new request in the mean from which throttled requests are estimated
_WEIGHT: Final = 0.1


@dataclass(slots=True)
class _Metered:
    """A request, whether an attempt of it was throttled, and whether it goes to the place of the pulses."""

    request: Request
    is_refused: bool = False
    is_here: bool = True


def quietly(hook: Callable[..., None]) -> Callable[..., None]:
    """Let no error of a hook reach the request, such as that of an answer that DynamoDB cannot have given."""

    @functools.wraps(hook)
    def quiet(*positional: Any, **named: Any) -> None:
        try:
            hook(*positional, **named)
        except Exception:
            _LOG.debug("what a request consumed is not known", exc_info=True)

    return quiet


@dataclass(slots=True)
class Meter:
    """Hooks for a boto3 session or client that count units for pulses.

    Units are counted by table, index, dimension and slot of ten seconds. A request throttled because of insufficient
    provisioned capacity is counted once, however often it is retried, with the mean units of requests of its kind;
    of a canceled transaction, and of a batch of statements, the throttled items count. Requests throttled because of a
    hot key or a limit of the account are not counted, as more capacity would not help them.

    Counted requests are sent with `ReturnConsumedCapacity=INDEXES`; the caller's response has only what the caller
    asked for. No hook raises, and none waits.

    Attributes:
        counts: The unreported counts.
        is_told: Says whether a table's requests are counted.
        notice: Called after something was counted.
        clock: Seconds since 1970.
        place: Where the tables are: requests to other regions, accounts and endpoints are not counted. `None` counts
            them all.

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
    place: Place | None = None
    _means: dict[tuple[str, TargetKey], float] = field(default_factory=dict)

    def install(self, session_or_client: Any) -> None:
        """Meter a client, or the clients and resources that a session makes from now on.

        Raises `TypeError` for what is neither a boto3 session nor one of its DynamoDB clients.
        """
        events = events_of(session_or_client, "Meter.install: session_or_client")
        for event, hook in self._hooks():
            events.register(event, hook, unique_id=f"highwater-meter-{event}")

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "before-call.dynamodb", self._address
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    @quietly
    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self.place is not None and context.get("client_region", self.place.region) != self.place.region:
            return
        request = read_request(model.name, params, self._label)
        if request is None or (request.items and not any(self._is_counted(table) for table in request.items)):
            return
        ask_for_consumption(params, context)
        context[_KEY] = _Metered(request)

    @quietly
    def _address(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.get(_KEY)
        if metered is not None and self.place is not None:
            metered.is_here = self.place.is_reached_by(params["url"])

    @quietly
    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.get(_KEY) if context else None
        if metered is None or metered.is_refused or not metered.is_here or not parsed_response:
            return
        request = metered.request
        for table, number in items_canceled(parsed_response, request).items():
            metered.is_refused = True
            self._refuse(table, (None, request.dimension), number)
        refused: dict[str, tuple[str | None, int]] = {}
        for each in refusals_of(parsed_response):
            if each.cause is ThrottleCause.PROVISIONED:
                for table, items in each.tables(request, self._label).items():
                    refused.setdefault(table, (each.index, items))
        for table, (index, items) in refused.items():
            metered.is_refused = True
            self._refuse(table, (index, request.dimension), items)

    @quietly
    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.pop(_KEY, None) if context else None
        if metered is None:
            return
        request, consumption = metered.request, take_consumption(parsed, context)
        if not metered.is_here:
            return
        left = items_left(parsed, request, self._label)
        slot = int(self.clock()) // SLOT_SECONDS
        for each in consumption:
            table = self._label(each.get("TableName", ""))
            items = max(request.items.get(table, 1) - left.get(table, 0), 1)
            for key, units in units_of(each, request.dimension):
                if units:
                    self._count(table, slot, key, units)
                    self._learn(table, key, units / items)
        for table, number in left.items():
            self._refuse(table, (None, request.dimension), number)
        self.notice()

    def _label(self, table: str) -> str:
        """A table's name, nothing for a table of another region or account, of which nobody is told."""
        return table_name(table) if self.place is None or self.place.has(table) else ""

    def _is_counted(self, table: str) -> bool:
        return bool(table) and self.is_told(table)

    def _refuse(self, table: str, key: TargetKey, number: int) -> None:
        units = self._means.get((table, key), 1.0) * number
        if self._is_counted(table):
            self.counts.add(table, int(self.clock()) // SLOT_SECONDS, key, units, refused=True)
            self.notice()

    def _count(self, table: str, slot: int, key: TargetKey, units: float) -> None:
        if self._is_counted(table):
            self.counts.add(table, slot, key, units)

    def _learn(self, table: str, key: TargetKey, units: float) -> None:
        mean = self._means.get((table, key))
        self._means[table, key] = units if mean is None else mean + _WEIGHT * (units - mean)
