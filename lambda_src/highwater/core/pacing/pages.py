"""The size of a scan's pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.core.items import PAGE_BYTES, READ_BLOCK_BYTES, bytes_per_unit

_USUAL_MILLIUNITS: Final = 25_000
# 800 KB of the megabyte that a page may have; 400 KB of strongly consistent reads
_MOST_MILLIUNITS: Final = 100_000
_LEAST_MILLIUNITS: Final = 1_000
# Weight of the newest page in the mean size of an item
_WEIGHT_PERCENT: Final = 30


@dataclass(slots=True)
class PageSize:
    """Chooses how many items to request, from the size of the items in earlier pages.

    Attributes:
        rate: The budget in thousandths of a unit per second.
        is_consistent: Whether reads are strongly consistent.
        item_bytes: The mean size of an item, in thousandths of a byte; `None` before the first page.
    """

    rate: int
    is_consistent: bool
    item_bytes: int | None = None

    @property
    def milliunits(self) -> int:
        """The wanted cost of a page: a quarter of a second of the budget, from 1 to 25 units; for a large budget a
        twentieth of a second, up to 100 units.
        """
        most = min(max(self.rate // 20, _USUAL_MILLIUNITS), _MOST_MILLIUNITS)
        return min(max(self.rate // 4, _LEAST_MILLIUNITS), most)

    @property
    def limit(self) -> int:
        """The number of items to request: the `Limit` of Scan and Query. One while their size is unknown."""
        if self.item_bytes is None:
            return 1
        wanted = self.milliunits * bytes_per_unit(is_consistent=self.is_consistent)
        return max(wanted // max(self.item_bytes, 1), 1)

    def expect(self, size_bytes: int, items: int) -> None:
        """Use the table's or index's mean item size until a page was read.

        DynamoDB's counts are some hours old, so this is done only if the largest possible page, of a megabyte, would
        cost no more than a second of the budget.
        """
        dearest = PAGE_BYTES * 1_000 // bytes_per_unit(is_consistent=self.is_consistent)
        if self.item_bytes is None and items > 0 and self.rate >= dearest:
            self.item_bytes = max(size_bytes * 1_000 // items, 1)

    def learn(self, units: float, scanned: int) -> None:
        """Learn the mean item size from the cost of a page of *scanned* items, filtered ones included."""
        if scanned < 1:
            return
        blocks = units if self.is_consistent else 2 * units
        # the last block of a page is half full on average
        size = int(max(blocks - 0.5, 0.5) * READ_BLOCK_BYTES * 1_000) // scanned
        if self.item_bytes is None:
            self.item_bytes = size
        else:
            self.item_bytes += (size - self.item_bytes) * _WEIGHT_PERCENT // 100
