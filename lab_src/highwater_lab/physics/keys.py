"""Distributions of requests over partition keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Key hashes are the numbers from 0 to HASHES - 1
HASHES: Final = 1 << 32
# Shares of the requests are in millionths
WHOLE: Final = 1_000_000
# Knuth's multiplicative hash spreads the ranks of keys over the hash space deterministically
_SPREAD: Final = 2_654_435_761
_HEAVIEST: Final = 200


@dataclass(frozen=True, slots=True)
class KeyDistribution:
    """The share of the requests that goes to each part of the hash space; create it with one of the class methods.

    Attributes:
        name: The name for reports.
        heavy: The frequent keys, each with hash and share in millionths. The rest of the requests is spread evenly over
            the hash space.
        is_sequential: Whether requests always go to the newest keys, so that splitting a partition does not help.
    """

    name: str
    heavy: tuple[tuple[int, int], ...] = ()
    is_sequential: bool = False

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
    def single_hot_key(cls, share_percent: int = 100) -> KeyDistribution:
        """Return the distribution in which one key gets *share_percent* (1 to 100) of the requests, the rest is even.

        Raises `ValueError` for a share out of range.
        """
        if not 1 <= share_percent <= 100:
            raise ValueError(f"the hot key's share must be between 1 and 100 percent, got {share_percent}")
        return cls(f"hot key {share_percent} %", ((HASHES // 3, share_percent * WHOLE // 100),))

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
