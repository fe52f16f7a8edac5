"""Partitions: what limits a table whose capacity would suffice."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from highwater.core import Dimension
from highwater_lab.physics.bucket import QUANTA_PER_UNIT
from highwater_lab.physics.keys import HASHES, WHOLE, KeyDistribution

# Amazon DynamoDB Developer Guide, "Best practices for designing and using partition keys effectively", read 2026-11
PARTITION_READ_UNITS: Final = 3_000
PARTITION_WRITE_UNITS: Final = 1_000
PARTITION_GB: Final = 10

PARTITION_UNITS: Final = {Dimension.READ: PARTITION_READ_UNITS, Dimension.WRITE: PARTITION_WRITE_UNITS}
# The same in quanta per second
PARTITION_QUANTA: Final = {dimension: units * QUANTA_PER_UNIT for dimension, units in PARTITION_UNITS.items()}


def partitions_for(read_units: int, write_units: int, size_gb: int = 0) -> int:
    """Partitions that so much throughput and data need at least.

    Amazon DynamoDB Developer Guide of 2017, "Guidelines for working with tables": reads over 3,000 plus writes over
    1,000, rounded up; or one for each 10 GB, whichever is more.
    """
    throughput = -(-(read_units + 3 * write_units) // PARTITION_READ_UNITS)
    return max(1, throughput, -(-size_gb // PARTITION_GB))


class Partitions:
    """The partitions of one table or index: their ranges of hashes, never merged.

    Each takes up to 3,000 read and 1,000 write units per second, whatever is provisioned: adaptive capacity gives a hot
    partition at once what the table has, and nothing gives it more.
    """

    __slots__ = ("_bounds", "_keys", "_shares", "hot_rate")

    def __init__(self, count: int, keys: KeyDistribution) -> None:
        self._keys = keys
        self._bounds = [HASHES * number // count for number in range(count + 1)]
        self._measure()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._bounds) - 1

    def find(self, key_hash: int) -> int:
        """The number of the partition that a hash lies in."""
        return bisect_right(self._bounds, key_hash) - 1

    def observe(self, keys: KeyDistribution) -> None:
        """Take another distribution of keys for what follows."""
        self._keys = keys
        self._measure()

    def grow(self, count: int) -> None:
        """Double, as long as there are fewer than *count* (Developer Guide of 2017, as above)."""
        while self.count < count:
            halves = [(low + high) // 2 for low, high in zip(self._bounds, self._bounds[1:], strict=False)]
            self._bounds = sorted({*self._bounds, *halves})
        self._measure()

    def grow_by_size(self, size_gb: int) -> None:
        """Split one partition after another until none holds more than 10 GB of evenly spread data."""
        while self.count * PARTITION_GB < size_gb:
            widest = max(range(self.count), key=lambda number: self._bounds[number + 1] - self._bounds[number])
            self._bounds.insert(widest + 1, (self._bounds[widest] + self._bounds[widest + 1]) // 2)
        self._measure()

    def split_for_heat(self, rate: int, dimension: Dimension) -> int:
        """Split every partition that *rate* fills to its limit, where a split helps; how many were split."""
        limit = PARTITION_QUANTA[dimension]
        points = []
        for number, share in enumerate(self._shares):
            if rate * share >= limit * WHOLE:
                middle = self._keys.middle(self._bounds[number], self._bounds[number + 1])
                if middle is not None:
                    points.append(middle)
        self._bounds = sorted({*self._bounds, *points})
        self._measure()
        return len(points)

    def refused(self, rate: int, dimension: Dimension) -> int:
        """How much of *rate* the partitions refuse, in quanta per second."""
        limit = PARTITION_QUANTA[dimension]
        if rate <= self.hot_rate[dimension]:
            return 0
        return sum(over for share in self._shares if (over := rate * share // WHOLE - limit) > 0)

    def _measure(self) -> None:
        self._shares = [self._keys.share(low, high) for low, high in zip(self._bounds, self._bounds[1:], strict=False)]
        # up to this rate no partition is over its limit
        highest = max(1, *self._shares, 1)
        self.hot_rate = {dimension: limit * WHOLE // highest for dimension, limit in PARTITION_QUANTA.items()}
