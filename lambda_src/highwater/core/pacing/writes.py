"""What writes cost: the units of the table and of each index that an item is copied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from highwater.core.items import item_bytes, write_units_of


@dataclass(frozen=True, slots=True)
class IndexParts:
    """The part of an item that is copied to an index.

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
        """Return the index's write units for a new item: none if the item lacks one of the keys."""
        if not self.keys <= item.keys():
            return 0
        if self.projected is None:
            return write_units_of(item_bytes(item))
        return write_units_of(item_bytes({name: item[name] for name in self.projected & item.keys()}))


@dataclass(slots=True)
class WriteCost:
    """The sum of the cost of new items.

    An item that replaces a larger one, or one with other keys, costs more.

    Attributes:
        indexes: The table's indexes.
        items: The number of items.
        size_bytes: Their total size.
        table_units: Write units of the table, including its local indexes.
        index_units: Write units of each global index.
    """

    indexes: Sequence[IndexParts]
    items: int = 0
    size_bytes: int = 0
    table_units: int = 0
    index_units: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the units of each global index to 0."""
        self.index_units = {index.name: 0 for index in self.indexes if not index.is_local}

    def add(self, item: Mapping[str, Mapping[str, Any]]) -> None:
        """Add an item in DynamoDB's JSON, `{"name": {"S": "value"}}`."""
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

    @property
    def units_by_target(self) -> dict[str | None, int]:
        """The units of the table, `None`, and of each global index."""
        return dict([(None, self.table_units), *self.index_units.items()])

    def seconds_at(self, rates: Mapping[str | None, float]) -> int:
        """Return the lower bound of the duration, at a rate in units per second for the table and for each index."""
        return max(
            -(-units * 1_000_000 // round(rates[target] * 1_000_000)) for target, units in self.units_by_target.items()
        )
