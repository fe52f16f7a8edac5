"""How requests spread over keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The space of key hashes, and the whole of a distribution
HASHES: Final = 1 << 32
WHOLE: Final = 1_000_000
# Knuth's multiplicative hash: spreads ranks over the hash space, the same each time
_SPREAD: Final = 2_654_435_761
_HEAVIEST: Final = 200


@dataclass(frozen=True, slots=True)
class KeyDistribution:
    """Which share of the requests goes to which part of the hash space; made with the factories.

    Attributes:
        name: For reports.
        heavy: Single keys that matter by themselves: hash and share in millionths. The rest of the requests is spread
            evenly.
        is_sequential: Whether the traffic moves along with time, so that no split of a partition ever helps.
    """

    name: str
    heavy: tuple[tuple[int, int], ...] = ()
    is_sequential: bool = False

    @classmethod
    def uniform(cls) -> KeyDistribution:
        """Every key as often as any other."""
        return cls("uniform")

    @classmethod
    def zipf(cls, exponent: float = 0.99, keys: int = 100_000) -> KeyDistribution:
        """The key of rank r as often as r to the power of minus *exponent*, over *keys* keys.

        The heaviest 200 keys are placed singly, the rest is even.
        """
        if not 0 < exponent <= 4 or keys < 1:
            raise ValueError(f"zipf needs an exponent above 0 up to 4 and at least one key, got {exponent}, {keys}")
        weights = [rank**-exponent for rank in range(1, keys + 1)]
        total = sum(weights)
        heavy = (
            (rank * _SPREAD % HASHES, int(weight * WHOLE / total)) for rank, weight in enumerate(weights[:_HEAVIEST], 1)
        )
        return cls(f"zipf {exponent:g}", tuple(sorted(heavy)))

    @classmethod
    def single_hot_key(cls, share_percent: int = 100) -> KeyDistribution:
        """One key takes *share_percent* of all requests, the others share the rest evenly."""
        if not 1 <= share_percent <= 100:
            raise ValueError(f"the hot key's share must be between 1 and 100 percent, got {share_percent}")
        return cls(f"hot key {share_percent} %", ((HASHES // 3, share_percent * WHOLE // 100),))

    @classmethod
    def rolling(cls) -> KeyDistribution:
        """Keys ordered by time: all requests go to the newest partition, which no split relieves."""
        return cls("rolling", ((HASHES - 1, WHOLE),), is_sequential=True)

    def share(self, low: int, high: int) -> int:
        """Millionths of the requests that go to hashes in [*low*, *high*)."""
        rest = WHOLE - sum(weight for _, weight in self.heavy)
        return sum(weight for at, weight in self.heavy if low <= at < high) + rest * (high - low) // HASHES

    def middle(self, low: int, high: int) -> int | None:
        """Where a split of [*low*, *high*) halves its load best; `None` where a split moves nothing."""
        whole = self.share(low, high)
        if self.is_sequential or high - low < 2:
            return None
        first, last = low + 1, high - 1
        while first < last:
            at = (first + last) // 2
            if 2 * self.share(low, at) < whole:
                first = at + 1
            else:
                last = at
        # a heavy key lies on one side or the other: the better of both
        best = min((at for at in (first - 1, first) if low < at < high), key=lambda at: self._heavier(low, at, high))
        return best if self._heavier(low, best, high) < whole else None

    def _heavier(self, low: int, at: int, high: int) -> int:
        return max(self.share(low, at), self.share(at, high))
