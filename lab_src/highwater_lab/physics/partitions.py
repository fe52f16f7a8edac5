"""Partitions: their throughput limits can throttle requests even if the table's capacity is high enough."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater_lab.physics.bucket import QUANTA_PER_UNIT
from highwater_lab.physics.keys import HASHES, WHOLE, KeyDistribution

PARTITION_GB: Final = 10

PARTITION_UNITS: Final = {Dimension.READ: PARTITION_READ_UNITS, Dimension.WRITE: PARTITION_WRITE_UNITS}
# The limits of a partition in quanta per second
PARTITION_QUANTA: Final = {dimension: units * QUANTA_PER_UNIT for dimension, units in PARTITION_UNITS.items()}


def partitions_for(read_units: int, write_units: int, size_gb: int = 0) -> int:
    """Return the smallest number of partitions for this throughput (units per second) and data (GB).

    The number is ceil(reads / 3,000 + writes / 1,000) or ceil(GB / 10), whichever is more (Amazon DynamoDB Developer
    Guide of 2017, "Guidelines for working with tables").
    """
    throughput = -(-(read_units + 3 * write_units) // PARTITION_READ_UNITS)
    return max(1, throughput, -(-size_gb // PARTITION_GB))


class Partitions:
    """The partitions of one table or index, each a range of key hashes; partitions split but never merge.

    A partition serves up to 3,000 read and 1,000 write units per second. Within that limit adaptive capacity lets a
    hot partition use the table's whole capacity at once, so the model has no lower limit per partition.

    Attributes:
        hot_rate: By dimension, the table's highest request rate at which no partition exceeds its limit, in quanta per
            second.
    """

    __slots__ = ("_bounds", "_keys", "_shares", "hot_rate")

    def __init__(self, count: int, keys: KeyDistribution) -> None:
        self._keys = keys
        self._bounds = [HASHES * number // count for number in range(count + 1)]
        self._measure()

    @property
    def count(self) -> int:
        """The number of partitions."""
        return len(self._bounds) - 1

    def find(self, key_hash: int) -> int:
        """Return the number, from 0, of the partition whose range contains *key_hash*."""
        return bisect_right(self._bounds, key_hash) - 1

    def observe(self, keys: KeyDistribution) -> None:
        """Replace the distribution of keys; the ranges stay."""
        self._keys = keys
        self._measure()

    def grow(self, count: int) -> None:
        """Split every partition in two, repeatedly, until there are at least *count* (Developer Guide of 2017)."""
        while self.count < count:
            halves = [(low + high) // 2 for low, high in zip(self._bounds, self._bounds[1:], strict=False)]
            self._bounds = sorted({*self._bounds, *halves})
        self._measure()

    def grow_by_size(self, size_gb: int) -> None:
        """Split the widest partition, repeatedly, until there is one per 10 GB; data is spread evenly over hashes."""
        while self.count * PARTITION_GB < size_gb:
            widest = max(range(self.count), key=lambda number: self._bounds[number + 1] - self._bounds[number])
            self._bounds.insert(widest + 1, (self._bounds[widest] + self._bounds[widest + 1]) // 2)
        self._measure()

    def split_for_heat(self, rate: int, dimension: Dimension) -> int:
        """Split every partition that is at its limit under *rate*, if a split relieves it; return how many were split.

        *rate* is the table's, in quanta per second.
        """
        limit = PARTITION_QUANTA[dimension]
        split_points = []
        for number, share in enumerate(self._shares):
            if rate * share >= limit * WHOLE:
                middle = self._keys.middle(self._bounds[number], self._bounds[number + 1])
                if middle is not None:
                    split_points.append(middle)
        self._bounds = sorted({*self._bounds, *split_points})
        self._measure()
        return len(split_points)

    def refused(self, rate: int, dimension: Dimension) -> int:
        """Return how much of the table's *rate* exceeds the partitions' limits, in quanta per second."""
        limit = PARTITION_QUANTA[dimension]
        if rate <= self.hot_rate[dimension]:
            return 0
        return sum(over for share in self._shares if (over := rate * share // WHOLE - limit) > 0)

    def _measure(self) -> None:
        self._shares = [self._keys.share(low, high) for low, high in zip(self._bounds, self._bounds[1:], strict=False)]
        # the partition with the highest share of the requests reaches its limit first
        highest = max(1, *self._shares, 1)
        self.hot_rate = {dimension: limit * WHOLE // highest for dimension, limit in PARTITION_QUANTA.items()}
