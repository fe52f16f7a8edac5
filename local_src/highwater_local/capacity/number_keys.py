"""Sort keys that are numbers, in the order of numbers: MiniStack keeps them as text, where 16 comes before 3."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from highwater_local import ministack

Document = dict[str, Any]


class NumberKey(str):
    """The text of a number, equal to other texts as text, and ordered as a number."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        """Whether this number is less than *other*."""
        return Decimal(self) < Decimal(other)

    def __gt__(self, other: str) -> bool:
        """Whether this number is greater than *other*."""
        return Decimal(self) > Decimal(other)


def sort_key(table: Document, value: Any) -> Any:
    """The value of an item's sort key as the table's items are to be kept under it."""
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
    """The items of a scan that come after the key *start*."""
    first = _key_of(start, table)
    return [item for item in items if _key_of(item, table) > first]


def _key_of(item: Document, table: Document) -> tuple[Any, Any]:
    pk, sk = table["pk_name"], table["sk_name"]
    value = ministack.key_value(item[sk]) if sk and sk in item else ""
    return ministack.key_value(item.get(pk, {})), sort_key(table, value)
