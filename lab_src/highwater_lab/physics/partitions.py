"""Partitions, whose throughput limits can throttle requests of any table, and the spread of requests over keys."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS

# With 60 quanta to a unit, a whole number of units per minute is a whole number of quanta per second
QUANTA_PER_UNIT: Final = 60
# Key hashes are the numbers from 0 to HASHES - 1
HASHES: Final = 1 << 32
# Shares of the requests are in millionths
WHOLE: Final = 1_000_000
# Knuth's multiplicative hash spreads the ranks of keys over the hash space deterministically
_SPREAD: Final = 2_654_435_761
_HEAVIEST: Final = 200
_MOST_SHARDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class KeyDistribution:
    """The share of the requests that goes to each part of the hash space; create it with one of the class methods.

    Attributes:
        name: The name for reports.
        heavy: The frequent keys, each with hash and share in millionths. The rest of the requests is spread evenly over
            the hash space.
        is_sequential: Whether requests always go to the newest keys, so that splitting a partition does not help.
        shards: Over how many keys the hot key is spread.
    """

    name: str
    heavy: tuple[tuple[int, int], ...] = ()
    is_sequential: bool = False
    shards: int = 1

    @classmethod
    def uniform(cls) -> KeyDistribution:
        """Return the distribution in which all keys are equally frequent."""
        return cls("uniform")

    @classmethod
    def zipf(cls, exponent: float = 0.99, keys: int = 100_000) -> KeyDistribution:
        """Return a Zipf distribution: the key of rank r has a frequency proportional to r ** -*exponent*.

        *exponent* is above 0 and at most 4, *keys* the number of keys, at least 1. Only the 200 most frequent keys are
        modelled singly; the others are spread evenly. Raises `ValueError` for arguments out of range.
        """
        if not 0 < exponent <= 4 or keys < 1:
            raise ValueError(
                f"zipf needs an exponent above 0 and at most 4 and at least one key, got exponent {exponent} and "
                f"{keys} keys"
            )
        weights = [rank**-exponent for rank in range(1, keys + 1)]
        total = sum(weights)
        heavy = (
            (rank * _SPREAD % HASHES, int(weight * WHOLE / total)) for rank, weight in enumerate(weights[:_HEAVIEST], 1)
        )
        return cls(f"zipf {exponent:g}", tuple(sorted(heavy)))

    @classmethod
    def single_hot_key(cls, share_percent: int = 100, shards: int = 1) -> KeyDistribution:
        """Return the distribution in which one key gets *share_percent* (1 to 100) of the requests, the rest is even.

        With *shards*, 1 to 1,000, the key is spread evenly over so many, each with a hash of its own: two or three of
        them may be in one partition. Raises `ValueError` for arguments out of range.
        """
        if not 1 <= share_percent <= 100:
            raise ValueError(f"the hot key's share must be between 1 and 100 percent, got {share_percent}")
        if not 1 <= shards <= _MOST_SHARDS:
            raise ValueError(f"a hot key has from 1 to {_MOST_SHARDS:,} shards, got {shards:,}")
        weight = share_percent * WHOLE // 100
        if shards == 1:
            return cls(f"hot key {share_percent} %", ((HASHES // 3, weight),))
        heavy = (
            (hash_of(f"hot#s{number:02}"), weight * (number + 1) // shards - weight * number // shards)
            for number in range(shards)
        )
        return cls(f"hot key {share_percent} % in {shards} shards", tuple(sorted(heavy)), shards=shards)

    def without_shards(self) -> KeyDistribution:
        """Return the same with one hot key in the place of its shards."""
        if self.shards == 1:
            return self
        return KeyDistribution.single_hot_key(sum(weight for _, weight in self.heavy) * 100 // WHOLE)

    @classmethod
    def rolling(cls) -> KeyDistribution:
        """Return the distribution of keys in order of time: all requests go to the newest partition, split or not."""
        return cls("rolling", ((HASHES - 1, WHOLE),), is_sequential=True)

    def share(self, low: int, high: int) -> int:
        """Return the share of the requests, in millionths, whose hashes are in [*low*, *high*)."""
        rest = WHOLE - sum(weight for _, weight in self.heavy)
        return sum(weight for at, weight in self.heavy if low <= at < high) + rest * (high - low) // HASHES

    def middle(self, low: int, high: int) -> int | None:
        """Return the hash at which a split of [*low*, *high*) halves its load best, `None` if no split relieves it."""
        total = self.share(low, high)
        if self.is_sequential or high - low < 2:
            return None
        first, last = low + 1, high - 1
        while first < last:
            at = (first + last) // 2
            if 2 * self.share(low, at) < total:
                first = at + 1
            else:
                last = at
        # a frequent key at the split point belongs to one of the two halves; the better choice is taken
        best = min(
            (at for at in (first - 1, first) if low < at < high), key=lambda at: self._larger_share(low, at, high)
        )
        return best if self._larger_share(low, best, high) < total else None

    def _larger_share(self, low: int, at: int, high: int) -> int:
        return max(self.share(low, at), self.share(at, high))


def hash_of(value: object) -> int:
    """Return the hash of a partition key's value or of a name, the same in every run, from 0 to `HASHES` - 1.

    It is that of the model and of the local cloud; DynamoDB's own is not published.
    """
    return int.from_bytes(hashlib.md5(str(value).encode(), usedforsecurity=False).digest()[:4], "big")


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
        """Replace the distribution of keys; the partitions' ranges do not change."""
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
