"""The condition key `dynamodb:LeadingKeys`: the partition keys that a request names.

Source: Amazon DynamoDB Developer Guide, "Using IAM policy conditions for fine-grained access control", read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from highwater_local import ministack

Document = dict[str, Any]
# A partition key is compared for equality only: `name = :value`, either way round
_EQUALITY: Final = re.compile(r"([#\w.-]+)\s*=\s*(:\w+)|(:\w+)\s*=\s*([#\w.-]+)", re.ASCII)


def partition_key(table: object, index: object = None) -> str | None:
    """The partition key of the table of that name, or of its index; `None` where there is no such table or index."""
    found = ministack.find_table(table)
    if found is None:
        return None
    schema = found["KeySchema"]
    if index is not None:
        indexes = [*(found.get("GlobalSecondaryIndexes") or []), *(found.get("LocalSecondaryIndexes") or [])]
        schema = next((each["KeySchema"] for each in indexes if each["IndexName"] == index), [])
    return next((str(key["AttributeName"]) for key in schema if key["KeyType"] == "HASH"), None)


def keys_of_items(table: object, items: Iterable[Any]) -> list[str]:
    """The partition keys of some items of a table, or of their keys."""
    name = partition_key(table)
    values = (item.get(name) for item in items if isinstance(item, dict))
    return [text for value in values if (text := _text(value)) is not None]


def keys_of_query(request: Document) -> list[str]:
    """The partition key that a Query is for, which is that of the index if it reads one."""
    name = partition_key(request.get("TableName"), request.get("IndexName"))
    names, values = (_members(request.get(f"ExpressionAttribute{kind}")) for kind in ("Names", "Values"))
    older = _members(_members(request.get("KeyConditions")).get(name or ""))
    found = [_text(value) for value in older.get("AttributeValueList") or []]
    for match in _EQUALITY.finditer(str(request.get("KeyConditionExpression") or "")):
        attribute, value = match[1] or match[4], match[2] or match[3]
        if names.get(attribute, attribute) == name:
            found.append(_text(values.get(value)))
    return [text for text in found if text is not None]


def keys_of_statement(statement: Document) -> list[str]:
    """The partition keys that a PartiQL statement names, as MiniStack parses it."""
    name = partition_key(statement["table"], statement.get("index"))
    if "item" in statement:
        return keys_of_items(statement["table"], [statement["item"]])
    found: list[Any] = []
    for attribute, comparison, value in statement.get("conditions") or []:
        if attribute == name and comparison in ("=", "IN"):
            found += value if comparison == "IN" else [value]
    return [text for value in found if (text := _text(value)) is not None]


def _members(value: Any) -> Document:
    """The members of an object, none of what is no object."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    """The text of an attribute's value, `None` for what is none."""
    return str(next(iter(value.values()))) if isinstance(value, dict) and value else None
