"""The budget of one table or index: units are paid for before they are asked for, and settled afterwards.

Amounts are thousandths of a capacity unit, as reads cost halves and rates may be below one unit per second; times are
nanoseconds of a clock that does not go back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MILLIUNITS: Final = 1_000
NANOSECONDS: Final = 1_000_000_000


@dataclass(slots=True)
class PacingBucket:
    """Fills at *rate* up to *burst*, and may be in debt, which is never forgiven.

    What is asked for in any window of W seconds is at most rate * W + burst, and what single requests cost above the
    burst and above what was paid for them. Requests are served in the order in which they reserve.

    Attributes:
        rate: Thousandths of a unit per second, at least 1.
        burst: The most that it holds, in thousandths of a unit, at least 1.
        empty_at: When it was, or will be, empty: what it holds is what has come in since. By default it is full.
    """

    rate: int
    burst: int
    empty_at: int = -(10**30)

    def __post_init__(self) -> None:
        """Refuse a bucket that nothing comes out of; raises `ValueError`."""
        if self.rate < 1 or self.burst < 1:
            message = f"pacing needs a rate and a burst above 0, got {self.rate / 1000:g} and {self.burst / 1000:g}"
            raise ValueError(message)

    def starts_at(self, now: int, cost: int) -> int:
        """Return the earliest time at which a request of that cost may start: when it is paid, or the bucket full."""
        return max(now, self._empty_at(now) + self._time_for(min(cost, self.burst)))

    def reserve(self, start: int, cost: int) -> None:
        """Pay for a request that starts at *start*, which `starts_at` has returned, or later."""
        self.empty_at = self._empty_at(start) + self._time_for(cost)

    def settle(self, now: int, paid: int, cost: int) -> None:
        """Correct what was paid for a request by what it really cost, once that is known."""
        self.empty_at = self._empty_at(now)
        if cost >= paid:
            self.empty_at += self._time_for(cost - paid)
        else:
            # rounded so that less is given back
            self.empty_at -= (paid - cost) * NANOSECONDS // self.rate

    def change(self, now: int, rate: int, burst: int) -> None:
        """Fill at another rate from *now* on. Debt stays what it is in units; what is above the new burst is lost."""
        changed = PacingBucket(rate, burst)
        held = (now - self._empty_at(now)) * self.rate
        changed.empty_at = now - min(held, burst * NANOSECONDS) // rate
        self.rate, self.burst, self.empty_at = changed.rate, changed.burst, changed.empty_at

    def held(self, now: int) -> int:
        """Return what it holds in thousandths of a unit, below zero if it is in debt."""
        return (now - self._empty_at(now)) * self.rate // NANOSECONDS

    def _empty_at(self, now: int) -> int:
        return max(self.empty_at, now - self.burst * NANOSECONDS // self.rate)

    def _time_for(self, cost: int) -> int:
        return -(-cost * NANOSECONDS // self.rate)
