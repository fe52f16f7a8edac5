"""What the hooks of a boto3 client can see of one request: its tables, what it consumed, and why it was refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from highwater.core.plan.plan import TargetKey
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
    """What a refused request lacked (DynamoDB Developer Guide, "Troubleshooting throttling", read 2026-11)."""

    PROVISIONED = "ProvisionedThroughput"
    KEY_RANGE = "KeyRangeThroughput"
    ACCOUNT = "AccountLimit"
    ON_DEMAND = "MaxOnDemandThroughput"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused.

    Attributes:
        kind: What it lacked.
        index: The index that lacked it, `None` for the table.
    """

    kind: RefusalKind
    index: str | None = None


@dataclass(slots=True)
class Request:
    """One request that consumes capacity.

    Attributes:
        operation: Its name in the API, such as `PutItem`.
        dimension: Whether it reads or writes.
        items: How many items of each table it is about, as far as the request says; `Query`, `Scan` and each
            PartiQL statement count as one.
    """

    operation: str
    dimension: Dimension
    items: dict[str, int]


def read_request(operation: str, params: Mapping[str, Any]) -> Request | None:
    """Return what a request asks for, `None` for one that consumes no capacity or that botocore will refuse."""
    if operation not in _WITH_CAPACITY:
        return None
    try:
        table = params.get("TableName")
        items = {table_name(table): 1} if table is not None else _items_of(params)
        return Request(operation, _dimension(operation, params), items)
    except (TypeError, AttributeError, KeyError):
        return None


def ask_for_consumption(params: dict[str, Any], context: dict[str, Any]) -> None:
    """Have DynamoDB answer with what each index consumes, and keep what the caller wants to see of that."""
    # several hooks may see one request; the first knows the caller's wish
    context.setdefault(_ASKED, params.get("ReturnConsumedCapacity", "NONE"))
    params["ReturnConsumedCapacity"] = "INDEXES"


def take_consumption(parsed: dict[str, Any], context: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Return what an answer says of consumption, by table, and leave in it what the caller asked for."""
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
    """Each target's units; what local indexes consume is the table's."""
    indexes = consumed.get("GlobalSecondaryIndexes") or {}
    whole = float(consumed.get("CapacityUnits") or 0)
    for index, each in indexes.items():
        units = float(each.get("CapacityUnits") or 0)
        whole -= units
        yield (index, dimension), units
    yield (None, dimension), max(whole, 0.0)


def items_left(parsed: Mapping[str, Any]) -> dict[str, int]:
    """How many items of each table a batch leaves to be asked for again."""
    found = {table_name(table): len(asked) for table, asked in (parsed.get("UnprocessedItems") or {}).items()}
    keys = (parsed.get("UnprocessedKeys") or {}).items()
    return found | {table_name(table): len(asked.get("Keys", ())) for table, asked in keys}


def refusals_of(parsed: Mapping[str, Any]) -> list[Refusal]:
    """Why an attempt was refused; nothing for one that was not throttled."""
    code = (parsed.get("Error") or {}).get("Code")
    if code not in _THROTTLED:
        return []
    reasons = parsed.get("ThrottlingReasons") or parsed.get("throttlingReasons")
    if not reasons:
        # DynamoDB names its reasons since 2025; before, this error meant capacity
        if code == "ProvisionedThroughputExceededException":
            return [Refusal(RefusalKind.PROVISIONED)]
        return [Refusal(RefusalKind.ACCOUNT)]
    found = []
    for each in reasons:
        named = _REASON.search(str(each.get("reason", "")))
        if named is not None:
            index = _INDEX.search(str(each.get("resource", "")))
            found.append(Refusal(RefusalKind(named[2]), index[1] if named[1] == "Index" and index else None))
    return found


def table_name(table: str) -> str:
    """A table's name, also where a request gives its ARN."""
    return table.rpartition(":table/")[2].partition("/")[0]


def _total(consumed: Mapping[str, Any]) -> dict[str, Any]:
    """What DynamoDB answers where totals are asked for."""
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
    """How many items of each table a batch or transaction is about; each statement counts as one."""
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
