"""The number of items and bytes of a table and each of its indexes, updated with every write.

DynamoDB updates these counts about every six hours (API reference, `TableDescription`); here they are always current,
so that scans of data that was just loaded can be planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater_local import ministack
from highwater_local.dynamodb.call import size_of
from highwater_local.dynamodb.resources import every_index
from highwater_local.ministack import Document

_SIZES: Final = "_highwater_sizes"


@dataclass(slots=True)
class Held:
    """The number of items and bytes of a table or index."""

    items: int = 0
    size_bytes: int = 0


def note_write(table: Document, old: Document | None, new: Document | None) -> None:
    """Record that an item of one of MiniStack's tables has changed from *old* to *new*; `None` is no item."""
    held = _counted(table)
    if held is not None:
        _add(held, table, old, -1)
        _add(held, table, new, 1)


def forget_sizes(table: Document) -> None:
    """Discard the counts, as all items were replaced at once: they are counted again at the next request."""
    table.pop(_SIZES, None)


def sizes_of(table: Document) -> dict[str | None, Held]:
    """Return the counts of the table (`None`) and its indexes, by index name."""
    held = _counted(table)
    if held is None:
        held = table[_SIZES] = {name: Held() for name in _names(table)}
        for partition in table["items"].values():
            for item in partition.values():
                _add(held, table, item, 1)
    return held


def _counted(table: Document) -> dict[str | None, Held] | None:
    """Return the counts, `None` if there are none, or if an index was added or deleted since."""
    held: dict[str | None, Held] | None = table.get(_SIZES)
    return None if held is None or held.keys() != _names(table) else held


def _names(table: Document) -> set[str | None]:
    return {None, *(index["IndexName"] for index in every_index(table))}


def _add(held: dict[str | None, Held], table: Document, item: Document | None, sign: int) -> None:
    if item is None:
        return
    held[None].items += sign
    held[None].size_bytes += sign * size_of(item)
    for index in every_index(table):
        if all(key["AttributeName"] in item for key in index["KeySchema"]):
            name = index["IndexName"]
            held[name].items += sign
            held[name].size_bytes += sign * size_of(ministack.projected(item, table, name))
