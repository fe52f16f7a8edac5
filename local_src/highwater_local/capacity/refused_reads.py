"""Queries and scans that DynamoDB refuses and MiniStack answers: what an index does not project, filters on keys."""

from __future__ import annotations

import re
from typing import Any, Final

from highwater_local.capacity.call import meters_of

Document = dict[str, Any]
_INVALID: Final = "One or more parameter values were invalid: "
# the first name of each path: not within one, no value, no function
_NAMES: Final = re.compile(r"(?<![\w.:#\]])(#?[A-Za-z_][\w-]*)(?!\s*\()")
_WORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"})


def read_refusal(operation: str, table: Document, request: Document, second: int) -> str | None:
    """The text with which DynamoDB refuses a Query or Scan in that *second*, `None` where it does not."""
    name = request.get("IndexName")
    if (refusal := building_refusal(table, name, second)) is not None:
        return refusal
    index = _find_index(table, name)
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
    """The text with which DynamoDB refuses to read an index that is being built, `None` for any other."""
    if index is None or meters_of(table).building(second) != index:
        return None
    return f"Cannot read from backfilling global secondary index: {index}"


def _projection_refusal(table: Document, index: Document, request: Document) -> str | None:
    """What a global secondary index cannot give, as it has only a part of each item."""
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


def _find_index(table: Document, name: object) -> Document | None:
    """The global secondary index of that name."""
    found: list[Document] = [each for each in table.get("GlobalSecondaryIndexes") or [] if each["IndexName"] == name]
    return found[0] if found else None


def projected_attributes(table: Document, index: Document) -> set[str] | None:
    """The attributes that an index contains, `None` for one that contains whole items."""
    projection = index.get("Projection") or {}
    if projection.get("ProjectionType", "ALL") == "ALL":
        return None
    keys = {str(each["AttributeName"]) for each in (*table["KeySchema"], *index["KeySchema"])}
    return keys | set(projection.get("NonKeyAttributes") or [])


def attributes_of(expression: object, request: Document) -> list[str]:
    """The top-level attributes that an expression names."""
    if not isinstance(expression, str):
        return []
    names = request.get("ExpressionAttributeNames") or {}
    found = (name for name in _NAMES.findall(expression) if name.upper() not in _WORDS)
    return list(dict.fromkeys(str(names.get(name, name)) for name in found))
