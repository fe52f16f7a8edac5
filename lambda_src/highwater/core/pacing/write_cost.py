"""What writing new items costs a table and its indexes, before any of them is written.

Rules of the DynamoDB Developer Guide, "DynamoDB read and write operations" and "Using Global Secondary Indexes in
DynamoDB" (provisioned throughput considerations), read 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from highwater.core.pacing.items import item_bytes, write_units_of


@dataclass(frozen=True, slots=True)
class IndexParts:
    """The part of an item that an index has.

    Attributes:
        name: The index.
        keys: Attributes that an item must have to be in the index: the index's own keys.
        projected: The attributes that are copied, those keys and the table's among them; `None` for all.
        is_local: Whether it is a local index, whose writes the table pays for.
    """

    name: str
    keys: frozenset[str]
    projected: frozenset[str] | None
    is_local: bool

    def units_for(self, item: Mapping[str, Mapping[str, Any]]) -> int:
        """Return what a new item costs the index: nothing where it lacks one of the keys."""
        if not self.keys <= item.keys():
            return 0
        if self.projected is None:
            return write_units_of(item_bytes(item))
        return write_units_of(item_bytes({name: item[name] for name in self.projected & item.keys()}))


@dataclass(slots=True)
class WriteCost:
    """What new items cost, added up; an item that replaces another costs more where that was larger, or had other keys.

    Attributes:
        indexes: The table's.
        items: How many.
        size_bytes: All of them.
        table_units: Write units of the table, with those of its local indexes.
        index_units: Write units of each global index.
    """

    indexes: Sequence[IndexParts]
    items: int = 0
    size_bytes: int = 0
    table_units: int = 0
    index_units: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing for each global index."""
        self.index_units = {index.name: 0 for index in self.indexes if not index.is_local}

    def add(self, item: Mapping[str, Mapping[str, Any]]) -> None:
        """Count an item in DynamoDB's own form, `{"name": {"S": "value"}}`."""
        size = item_bytes(item)
        self.items += 1
        self.size_bytes += size
        self.table_units += write_units_of(size)
        for index in self.indexes:
            units = index.units_for(item)
            if index.is_local:
                self.table_units += units
            else:
                self.index_units[index.name] += units

    @property
    def units(self) -> int:
        """The units of the table and all of its indexes."""
        return self.table_units + sum(self.index_units.values())

    def seconds_at(self, rate: float) -> int:
        """Return how long it takes at least, at *rate* units per second for the table and for each index."""
        dearest = max([self.table_units, *self.index_units.values()])
        return -(-dearest * 1_000_000 // round(rate * 1_000_000))
