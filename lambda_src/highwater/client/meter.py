"""Counts what requests to DynamoDB consume and what is refused, attempt by attempt, under an existing session."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from highwater.client.counts import Counts
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS
from highwater.core.units import Dimension

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_STATEMENTS: Final = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_METERED: Final = _READS | _WRITES | _STATEMENTS
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceededException", "ThrottlingException"})
_REASON: Final = re.compile(r"(Table|Index)(Read|Write)ProvisionedThroughputExceeded")
_INDEX: Final = re.compile(r":table/[^/]+/index/(.+)")
_KEY: Final = "highwater"
# How much of a new request goes into the mean that refused ones are estimated by
_WEIGHT: Final = 0.1


@dataclass(slots=True)
class _Request:
    """What the hooks know of one request."""

    dimension: Dimension
    # what the caller wants to see: NONE, TOTAL or INDEXES
    asked: str
    table: str | None
    items: dict[str, int]
    is_refused: bool = False


@dataclass(slots=True)
class Meter:
    """Hooks for a boto3 session or client.

    Requests are counted by table, index, dimension and slot of ten seconds. A request refused for want of provisioned
    capacity is counted once, however often it is sent again, by what requests of its kind consume on average. Requests
    that a hot key or a limit of the account refuses are not counted, as more capacity does not help them.

    `ReturnConsumedCapacity` is asked for by index where the caller does not, and the caller sees of it what it asked
    for. No hook raises, and none waits.

    Attributes:
        counts: What is counted.
        is_told: Which tables are counted.
        notice: Called after something was counted.
        clock: Seconds since 1970.
    """

    counts: Counts
    is_told: Callable[[str], bool] = lambda _: True
    notice: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.time
    _means: dict[tuple[str, TargetKey], float] = field(default_factory=dict)

    def install(self, session_or_client: Any) -> None:
        """Meter a client, or the clients and resources that a session makes from now on."""
        events = getattr(session_or_client, "events", None) or session_or_client.meta.events
        for event, hook in self._hooks():
            events.register(event, hook, unique_id=f"highwater-meter-{event}")

    def uninstall(self, session_or_client: Any) -> None:
        """Meter it no longer; clients that a session made meanwhile are metered on."""
        events = getattr(session_or_client, "events", None) or session_or_client.meta.events
        for event, hook in self._hooks():
            events.unregister(event, hook, unique_id=f"highwater-meter-{event}")

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if model.name not in _METERED:
            return
        try:
            items = _items_of(params)
            table = params.get("TableName")
            tables = [_name(table)] if table is not None else [_name(name) for name in items]
            if tables and not any(self.is_told(name) for name in tables):
                return
            asked = params.get("ReturnConsumedCapacity", "NONE")
            params["ReturnConsumedCapacity"] = "INDEXES"
            context[_KEY] = _Request(
                _dimension(model.name, params), asked, None if table is None else _name(table), items
            )
        except (TypeError, AttributeError, KeyError):
            # a request that is malformed is botocore's to refuse
            return

    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        request = context.get(_KEY) if context else None
        if request is None or request.is_refused or not parsed_response:
            return
        error = parsed_response.get("Error")
        if error and error.get("Code") in _THROTTLED:
            tables = [request.table] if request.table is not None else [_name(name) for name in request.items]
            for index in _refusing(parsed_response):
                request.is_refused = True
                for table in tables:
                    self._refuse(table, (index, request.dimension), request.items.get(table, 1))

    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        request = context.pop(_KEY, None) if context else None
        if request is None:
            return
        consumed = parsed.pop("ConsumedCapacity", None)
        if consumed is None:
            return
        if request.asked == "INDEXES":
            parsed["ConsumedCapacity"] = consumed
        elif request.asked == "TOTAL":
            parsed["ConsumedCapacity"] = (
                [_total(each) for each in consumed] if isinstance(consumed, list) else _total(consumed)
            )
        slot = int(self.clock()) // SLOT_SECONDS
        left = _left(parsed)
        for each in consumed if isinstance(consumed, list) else [consumed]:
            table = _name(each.get("TableName", ""))
            items = max(request.items.get(table, 1) - left.get(table, 0), 1)
            for key, units in _units_of(each, request.dimension):
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


def _total(consumed: Mapping[str, Any]) -> dict[str, Any]:
    """What DynamoDB answers where totals are asked for."""
    return {name: value for name, value in consumed.items() if not isinstance(value, Mapping)}


def _name(table: str) -> str:
    """A table's name, also where a request gives its ARN."""
    return table.rpartition(":table/")[2].partition("/")[0]


def _dimension(operation: str, params: Mapping[str, Any]) -> Dimension:
    if operation in _STATEMENTS:
        several: list[dict[str, Any]] = params.get("Statements") or params.get("TransactStatements") or [{}]
        first = params.get("Statement") or several[0].get("Statement", "")
        return Dimension.READ if str(first).lstrip()[:6].upper() == "SELECT" else Dimension.WRITE
    return Dimension.READ if operation in _READS else Dimension.WRITE


def _items_of(params: Mapping[str, Any]) -> dict[str, int]:
    """How many items of each table a batch or transaction is about; nothing for other requests."""
    found: dict[str, int] = {}
    for table, asked in (params.get("RequestItems") or {}).items():
        found[_name(table)] = len(asked["Keys"]) if isinstance(asked, Mapping) else len(asked)
    for item in params.get("TransactItems") or ():
        for action in item.values():
            table = _name(action["TableName"])
            found[table] = found.get(table, 0) + 1
    return found


def _left(parsed: Mapping[str, Any]) -> dict[str, int]:
    """How many items of each table a batch leaves to be asked for again."""
    found = {_name(table): len(asked) for table, asked in (parsed.get("UnprocessedItems") or {}).items()}
    keys = (parsed.get("UnprocessedKeys") or {}).items()
    return found | {_name(table): len(asked.get("Keys", ())) for table, asked in keys}


def _units_of(consumed: Mapping[str, Any], dimension: Dimension) -> Iterator[tuple[TargetKey, float]]:
    """Each target's units; what local indexes consume is the table's."""
    indexes = consumed.get("GlobalSecondaryIndexes") or {}
    whole = float(consumed.get("CapacityUnits") or 0)
    for index, each in indexes.items():
        units = float(each.get("CapacityUnits") or 0)
        whole -= units
        yield (index, dimension), units
    yield (None, dimension), max(whole, 0.0)


def _refusing(parsed: Mapping[str, Any]) -> Iterator[str | None]:
    """The table (`None`) or indexes whose provisioned capacity refused a request."""
    reasons = parsed.get("ThrottlingReasons") or parsed.get("throttlingReasons")
    if not reasons:
        # DynamoDB names its reasons since 2025; before, this error meant capacity
        if parsed["Error"]["Code"] == "ProvisionedThroughputExceededException":
            yield None
        return
    for each in reasons:
        found = _REASON.search(str(each.get("reason", "")))
        if found is not None:
            index = _INDEX.search(str(each.get("resource", "")))
            yield index[1] if found[1] == "Index" and index else None
            return
