"""The most frequent keys of a stream in bounded memory: the Space-Saving sketch, with weights.

Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

# Counters of a sketch, so that a key with two hundredths of the weight is found
COUNTERS: Final = 100


@dataclass(slots=True)
class Sketch:
    """Counts the weight of keys with a fixed number of counters.

    A key without a counter takes the one with the lowest count, and begins with that count as its possible error. So
    with a total of N and k counters

    - the true weight of a key that has a counter is at least its count less its error, and at most its count;
    - no error is greater than N / k;
    - every key with a weight of more than N / k has a counter.

    Attributes:
        total: The weight of all keys together, N.
        counters: The number of counters, k.
    """

    total: float = 0.0
    counters: int = COUNTERS
    _counts: dict[str, float] = field(default_factory=dict)
    # of the keys that took another key's counter
    _errors: dict[str, float] = field(default_factory=dict)
    # keys that had the lowest count when it was last looked for
    _lowest: list[str] = field(default_factory=list)
    _lowest_count: float = 0.0

    def add(self, key: str, weight: float) -> None:
        """Count a weight, 0 or more, for a key."""
        self.total += weight
        counts = self._counts
        if key in counts:
            counts[key] += weight
        elif len(counts) < self.counters:
            counts[key] = weight
        else:
            lowest = self._take_lowest()
            error = counts.pop(lowest)
            self._errors.pop(lowest, None)
            counts[key] = error + weight
            self._errors[key] = error

    def _take_lowest(self) -> str:
        # counts only rise, so a key that still has what was the lowest count has the lowest count
        while self._lowest:
            key = self._lowest.pop()
            if self._counts.get(key) == self._lowest_count:
                return key
        self._lowest_count = min(self._counts.values())
        self._lowest = [key for key, count in self._counts.items() if count == self._lowest_count]
        return self._lowest.pop()

    def bounds(self, key: str) -> tuple[float, float]:
        """Return what a key has counted for at least, and at most; zeros for a key without a counter."""
        count = self._counts.get(key, 0.0)
        return count - self._errors.get(key, 0.0), count

    def frequent(self) -> Iterator[str]:
        """Yield each key that certainly has N / k of the weight or more, among them each that has 2 N / k or more."""
        least = self.total / self.counters
        for key, count in self._counts.items():
            if 0 < count - self._errors.get(key, 0.0) >= least:
                yield key
