"""Queries, scans and PartiQL's SELECT where DynamoDB differs from MiniStack: rejections, order, pages, charges."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from highwater_local import ministack
from highwater_local.dynamodb.call import CURRENT, OK, MeteredCall, charging, meters_of
from highwater_local.dynamodb.resources import key_schema, resource_of
from highwater_local.ministack import Answer, Document, rejected

_INVALID: Final = "One or more parameter values were invalid: "
# the first name of each path, but no later part of a path, no value and no function
_NAMES: Final = re.compile(r"(?<![\w.:#\]])(#?[A-Za-z_][\w-]*)(?![\w-]*\s*\()")
_WORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"})


def read_refusal(operation: str, table: Document, request: Document, second: int) -> str | None:
    """Return the text with which DynamoDB rejects a Query or Scan in that *second*, `None` if it accepts it."""
    name = request.get("IndexName")
    if (refusal := building_refusal(table, name, second)) is not None:
        return refusal
    index = resource_of(table, name) if name is not None else None
    if index is not None and (refusal := _projection_refusal(table, index, request)) is not None:
        return refusal
    if operation != "Query":
        return None
    keys = {each["AttributeName"] for each in (table if index is None else index)["KeySchema"]}
    for attribute in attributes_of(request.get("FilterExpression"), request):
        if attribute in keys:
            return f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {attribute}"
    return None


def building_refusal(table: Document, index: object, second: int) -> str | None:
    """Return the text with which DynamoDB rejects reads of an index that is being built, `None` for any other index."""
    if index is None or meters_of(table).building(second) != index:
        return None
    return f"Cannot read from backfilling global secondary index: {index}"


def _projection_refusal(table: Document, index: Document, request: Document) -> str | None:
    """Return the rejection of a read of attributes that a global secondary index does not contain, else `None`."""
    projected = projected_attributes(table, index)
    if projected is None:
        return None
    name = index["IndexName"]
    if request.get("Select") == "ALL_ATTRIBUTES":
        return (
            f"{_INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index {name} because its "
            "projection type is not ALL"
        )
    asked = request.get("AttributesToGet") or attributes_of(request.get("ProjectionExpression"), request)
    lacking = [attribute for attribute in asked if attribute not in projected]
    if lacking:
        return f"{_INVALID}Global secondary index {name} does not project [{', '.join(lacking)}]"
    return None


def projected_attributes(table: Document, index: Document) -> set[str] | None:
    """Return the attributes that an index contains, `None` for an index with whole items."""
    projection = index.get("Projection") or {}
    if projection.get("ProjectionType", "ALL") == "ALL":
        return None
    keys = {str(each["AttributeName"]) for each in (*table["KeySchema"], *index["KeySchema"])}
    return keys | set(projection.get("NonKeyAttributes") or [])


def attributes_of(expression: object, request: Document) -> list[str]:
    """Return the top-level attributes that an expression names."""
    if not isinstance(expression, str):
        return []
    names = request.get("ExpressionAttributeNames") or {}
    found = (name for name in _NAMES.findall(expression) if name.upper() not in _WORDS)
    return list(dict.fromkeys(str(names.get(name, name)) for name in found))


def has_to_fetch(table: Document, request: Document) -> bool:
    """Whether a Query or Scan of a local index has to fetch the items from the table."""
    if request.get("Select") == "ALL_ATTRIBUTES":
        return not contains(table, request.get("IndexName"), None)
    asked = request.get("AttributesToGet") or attributes_of(request.get("ProjectionExpression"), request)
    return not contains(table, request.get("IndexName"), asked)


def contains(table: Document, index: object, attributes: Iterable[str] | None) -> bool:
    """Whether the table or index contains these attributes, or all for `None`; may be false only for local indexes."""
    found = next((each for each in table.get("LocalSecondaryIndexes") or () if each["IndexName"] == index), None)
    projected = None if found is None else projected_attributes(table, found)
    return projected is None or (attributes is not None and projected.issuperset(attributes))


class NumberKey(str):
    """The text of a number, compared for equality as text, and ordered as a number."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        """Whether this number is less than *other*."""
        return Decimal(self) < Decimal(other)

    def __gt__(self, other: str) -> bool:
        """Whether this number is greater than *other*."""
        return Decimal(self) > Decimal(other)


def sort_key(table: Document, value: Any) -> Any:
    """Return the value of an item's sort key as the key under which the table's items are stored."""
    name = table.get("sk_name")
    types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions") or []}
    if name is None or types.get(name) != "N":
        return value
    try:
        Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return value
    return NumberKey(value)


def items_after(items: list[Document], start: Document, table: Document) -> list[Document]:
    """Return the items of a scan that come after the key *start*."""
    first = _key_of(start, table)
    return [item for item in items if _key_of(item, table) > first]


def _key_of(item: Document, table: Document) -> tuple[Any, Any]:
    # a typed value such as {"S": "a"}
    hashed, ranged = (next(iter(item.get(name, {}).values()), "") for name in (table["pk_name"], table["sk_name"]))
    return hashed, sort_key(table, ranged)


_WRONG_TOKEN: Final = "The provided NextToken is invalid"  # noqa: S105 - a text of DynamoDB's
Handler = Callable[..., Answer]
# Members that concern paging and the answer
_PAGING: Final = frozenset({"Limit", "NextToken", "ReturnConsumedCapacity"})


class Selects:
    """SELECT on tables and on indexes, wrapping MiniStack's."""

    def __init__(self) -> None:
        self._table: Handler = ministack.select.replace(self.of_table)
        self._index: Handler = ministack.select_of_index.replace(self.of_index)

    def of_table(self, table: Document, parsed: Document) -> Answer:
        """Carry out a SELECT on a table: one item if its key is given, else a page of a partition or of all items."""
        call = CURRENT.get()
        if call is None:
            return self._table(table, parsed)
        equal = {attr: value for attr, op, value in parsed.get("conditions") or [] if op == "="}
        keys = [name for name in (table["pk_name"], table["sk_name"]) if name]
        if call.operation == "ExecuteTransaction" or all(name in equal for name in keys):
            key = {name: equal[name] for name in keys}
            call.read(table, key)
            return self._table(table, parsed)
        return self._page(call, table, parsed, None, keys)

    def of_index(self, table: Document, parsed: Document, request: Document) -> Answer:
        """Carry out a SELECT on an index: a page of one of its partitions or of all its items."""
        whole = {name: value for name, value in request.items() if name not in _PAGING}
        # MiniStack's rejections do not depend on the items
        with charging(None):
            checked = self._index({**table, "items": {}}, parsed, whole)
        call = CURRENT.get()
        if checked[0] != OK or call is None:
            return checked
        building = building_refusal(table, parsed["index"], call.second)
        if building is not None:
            return rejected(building)
        asked = attributes_of(", ".join(parsed.get("projections") or ()), {})
        call.has_to_fetch = not contains(table, parsed["index"], asked)
        keys = [str(key["AttributeName"]) for key in key_schema(table, parsed["index"])]
        return self._page(call, table, parsed, parsed["index"], keys)

    def _page(self, call: MeteredCall, table: Document, parsed: Document, index: str | None, keys: list[str]) -> Answer:
        items = _read_items(table, parsed, keys)
        unique = [*keys, *(name for name in (table["pk_name"], table["sk_name"]) if name and name not in keys)]
        order, is_descending = parsed.get("order") or (None, False)
        is_by_key = order is not None and len(order) == 1 and order[0] in keys
        types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions") or ()}

        def place(item: Document) -> tuple[Any, ...]:
            return tuple(ministack.order_value(item, name, types.get(name)) for name in unique)

        # an ORDER BY another attribute than the key is applied by MiniStack, page by page
        is_backward = is_descending and is_by_key
        items.sort(key=place, reverse=is_backward)
        token = call.request.get("NextToken")
        if token:
            last = _read_token(token, table, index)
            if last is None or not set(unique).issubset(last):
                return rejected(_WRONG_TOKEN)
            passed = place(last)
            items = [item for item in items if (place(item) < passed if is_backward else place(item) > passed)]
        page, has_more = ministack.page_of(items, call.request.get("Limit"), table, index)
        shown = [ministack.projected(item, table, index) for item in page] if index else page
        # MiniStack iterates over a table in the order of its keys, which here are positions in the page
        own_order = None if is_by_key else parsed.get("order")
        paged = {**table, "items": {number: {0: item} for number, item in enumerate(shown)}}
        answer = self._table(paged, {**parsed, "order": own_order})
        if answer[0] != OK or not has_more:
            return answer
        document = json.loads(answer[2]) | {"NextToken": _token(table, index, {key: page[-1][key] for key in unique})}
        return answer[0], answer[1], json.dumps(document, ensure_ascii=False).encode()


def _read_items(table: Document, parsed: Document, keys: list[str]) -> list[Document]:
    """Return the items that are read: those with the keys that meet the key conditions, if one names a partition."""
    conditions = parsed.get("conditions") or []
    is_query = any(attr == keys[0] and op in ("=", "IN") for attr, op, _ in conditions)
    on_keys = [condition for condition in conditions if is_query and condition[0] in keys]
    return [
        item
        for partition in table["items"].values()
        for item in partition.values()
        if all(key in item for key in keys)
        and all(ministack.meets_condition(item, attr, op, value) for attr, op, value in on_keys)
    ]


def _token(table: Document, index: str | None, key: Document) -> str:
    """Return a token that continues after the item with that key, for statements on the same table and index."""
    return base64.b64encode(json.dumps([table["TableName"], index, key]).encode()).decode()


def _read_token(token: object, table: Document, index: str | None) -> Document | None:
    """Return the key of the previous page's last item, `None` for an invalid token or one of another table or index."""
    try:
        name, of_index, key = json.loads(base64.b64decode(str(token), validate=True))
    except (ValueError, TypeError):
        return None
    return key if (name, of_index) == (table["TableName"], index) and isinstance(key, dict) else None
