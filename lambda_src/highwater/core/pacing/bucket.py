"""The bucket of one table's or index's budget, with debt."""

from __future__ import annotations

from dataclasses import dataclass

from highwater.core.units import NANOSECONDS


@dataclass(slots=True)
class PacingBucket:
    """A token bucket: fills at *rate* up to *burst*, and may be in debt, which is never forgiven.

    In any window of W seconds, requests cost at most rate * W + burst. Single requests may exceed that by their cost
    above the burst, and by their cost above the amount paid for them. Requests are served in the order in which they
    reserve.

    Attributes:
        rate: Thousandths of a unit per second, at least 1.
        burst: The bucket's capacity in thousandths of a unit, at least 1.
        empty_at: When it was, or will be, empty: its level is what has flowed in since. By default it is full.
        fills_from: The time before which nothing has flowed in. By default none.
        fills_until: The time after which nothing flows in, neither a level nor against a debt. By default none.
    """

    rate: int
    burst: int
    empty_at: int = -(10**30)
    fills_from: int = -(10**30)
    fills_until: int = 10**30

    def __post_init__(self) -> None:
        """Raise `ValueError` for a rate or burst below 1, with which no request could start."""
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
        """Replace the amount paid for a request by its actual cost, once that is known."""
        self.empty_at = self._empty_at(now)
        if cost >= paid:
            self.empty_at += self._time_for(cost - paid)
        else:
            # rounded so that less is given back
            self.empty_at -= (paid - cost) * NANOSECONDS // self.rate

    def change(self, now: int, rate: int, burst: int) -> None:
        """Fill at another rate from *now* on. Debt in units does not change; a level above the new burst is cut."""
        changed = PacingBucket(rate, burst)
        now = min(now, self.fills_until)
        held = (now - self._empty_at(now)) * self.rate
        changed.empty_at = now - min(held, burst * NANOSECONDS) // rate
        self.rate, self.burst, self.empty_at = changed.rate, changed.burst, changed.empty_at

    def begin(self, now: int, until: int) -> None:
        """Fill from *now* on, until another time, with nothing but the debt that was left when it last filled."""
        debt = max(-self._flowed(now), 0)
        self.empty_at, self.fills_from, self.fills_until = now + debt, now, until

    def held(self, now: int) -> int:
        """Return the level in thousandths of a unit, below zero if the bucket is in debt."""
        return self._flowed(now) * self.rate // NANOSECONDS

    def _flowed(self, now: int) -> int:
        """Return for how long it has filled since it was empty, below zero if it is in debt."""
        now = min(now, self.fills_until)
        return now - self._empty_at(now)

    def _empty_at(self, now: int) -> int:
        filled = min(now, self.fills_until) - self.burst * NANOSECONDS // self.rate
        return max(self.empty_at, self.fills_from, filled)

    def _time_for(self, cost: int) -> int:
        return -(-cost * NANOSECONDS // self.rate)
