"""How many items a table and each of its indexes hold, and how many bytes, kept up with every write.

DynamoDB brings these counts up to date about every six hours (API reference, `TableDescription`); here they are always
those of now, so that what was just loaded can be planned with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from highwater_local import ministack
from highwater_local.dynamodb.call import size_of
from highwater_local.dynamodb.resources import Document

_SIZES: Final = "_highwater_sizes"


@dataclass(slots=True)
class Held:
    """What a table or an index holds."""

    items: int = 0
    size_bytes: int = 0


def note_write(table: Document, old: Document | None, new: Document | None) -> None:
    """An item of a table, as MiniStack keeps it, has turned from *old* into *new*; `None` is no item."""
    held = _counted(table)
    if held is not None:
        _add(held, table, old, -1)
        _add(held, table, new, 1)


def forget_sizes(table: Document) -> None:
    """The items were put in place all at once: count again when next asked."""
    table.pop(_SIZES, None)


def sizes_of(table: Document) -> dict[str | None, Held]:
    """What the table (`None`) and its indexes hold, by index name."""
    held = _counted(table)
    if held is None:
        held = table[_SIZES] = {name: Held() for name in _names(table)}
        for partition in table["items"].values():
            for item in partition.values():
                _add(held, table, item, 1)
    return held


def _counted(table: Document) -> dict[str | None, Held] | None:
    """What was counted, `None` where nothing was, or where an index has come or gone since."""
    held: dict[str | None, Held] | None = table.get(_SIZES)
    return None if held is None or held.keys() != _names(table) else held


def _names(table: Document) -> set[str | None]:
    return {None, *(index["IndexName"] for index in _indexes(table))}


def _add(held: dict[str | None, Held], table: Document, item: Document | None, sign: int) -> None:
    if item is None:
        return
    held[None].items += sign
    held[None].size_bytes += sign * size_of(item)
    for index in _indexes(table):
        if all(key["AttributeName"] in item for key in index["KeySchema"]):
            name = index["IndexName"]
            held[name].items += sign
            held[name].size_bytes += sign * size_of(ministack.projected(item, table, name))


def _indexes(table: Document) -> Iterator[Document]:
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        yield from table.get(kind) or ()
