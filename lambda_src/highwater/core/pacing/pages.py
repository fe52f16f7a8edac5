"""How much a page of a scan or query may hold: small enough for the budget, large enough to waste little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# A read unit is a strongly consistent read of up to 4 KB, or two that are not (DynamoDB Developer Guide, "DynamoDB
# read and write operations"); a page is rounded up to 4 KB once.
BLOCK_BYTES: Final = 4_096
PAGE_BYTES: Final = 1_048_576
_USUAL_MILLIUNITS: Final = 25_000
# 800 KB of the megabyte that a page may have; of consistent reads, half of that
_MOST_MILLIUNITS: Final = 100_000
_LEAST_MILLIUNITS: Final = 1_000
# How much of the newest page goes into the mean size of an item
_WEIGHT_PERCENT: Final = 30


def bytes_per_unit(*, is_consistent: bool) -> int:
    """Return how many bytes a read unit reads."""
    return BLOCK_BYTES if is_consistent else 2 * BLOCK_BYTES


def page_units(size_bytes: int, *, is_consistent: bool) -> float:
    """Return what a page of so many bytes costs: blocks of 4 KB begun, half as much unless it is consistent."""
    blocks = max(-(-size_bytes // BLOCK_BYTES), 1)
    return float(blocks) if is_consistent else blocks / 2


@dataclass(slots=True)
class PageSize:
    """Chooses how many items to ask for, from what the pages before held.

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
        """What a page should cost: a quarter of a second of the budget, from 1 to 25 units; of a large one a twentieth
        of a second, up to 100 units.
        """
        most = min(max(self.rate // 20, _USUAL_MILLIUNITS), _MOST_MILLIUNITS)
        return min(max(self.rate // 4, _LEAST_MILLIUNITS), most)

    @property
    def limit(self) -> int:
        """How many items to ask for: the `Limit` of Scan and Query. One before anything is known of their size."""
        if self.item_bytes is None:
            return 1
        wanted = self.milliunits * bytes_per_unit(is_consistent=self.is_consistent)
        return max(wanted // max(self.item_bytes, 1), 1)

    def expect(self, size_bytes: int, items: int) -> None:
        """Take the mean of a table or index for granted until a page was read, if nothing was learned yet.

        DynamoDB's counts are some hours old, so this is done only where the largest page that there is, of a megabyte,
        would cost no more than a second of the budget.
        """
        dearest = PAGE_BYTES * 1_000 // bytes_per_unit(is_consistent=self.is_consistent)
        if self.item_bytes is None and items > 0 and self.rate >= dearest:
            self.item_bytes = max(size_bytes * 1_000 // items, 1)

    def learn(self, units: float, scanned: int) -> None:
        """Note what a page cost that *scanned* so many items, filtered ones included."""
        if scanned < 1:
            return
        blocks = units if self.is_consistent else 2 * units
        # the last block of a page is half full on average
        size = int(max(blocks - 0.5, 0.5) * BLOCK_BYTES * 1_000) // scanned
        if self.item_bytes is None:
            self.item_bytes = size
        else:
            self.item_bytes += (size - self.item_bytes) * _WEIGHT_PERCENT // 100
