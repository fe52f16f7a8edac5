"""The burst bucket of provisioned capacity, and what the model counts throttles by."""

from __future__ import annotations

from typing import Final, Literal

from highwater.core.throttles import ThrottleCause

# Why a table throttles a write that one of its indexes throttles. DynamoDB reports such a write under the index's own
# cause; this model counts it as INDEX on the table, and under the index's cause on the index.
INDEX: Final = "index"
Cause = ThrottleCause | Literal["index"]

# With 60 quanta to a unit, a whole number of units per minute is a whole number of quanta per second
QUANTA_PER_UNIT: Final = 60

# Amazon DynamoDB Developer Guide, "Burst capacity": DynamoDB keeps up to five minutes of unused capacity. The guide
# leaves open whether that is a token bucket with this limit or the capacity left unused in the last five minutes;
# figures 2, 3 and 5 of "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (AWS Database Blog) fit a
# token bucket (docs/figures.md).
BURST_SECONDS: Final = 300


class Bucket:
    """A token bucket that refills at the provisioned rate and keeps up to *seconds* of it, by default `BURST_SECONDS`.

    Each second first adds one second's capacity, then serves requests as far as the tokens last. A new bucket is full.
    Amounts are in quanta, rates in quanta per second.

    Attributes:
        fill: The provisioned rate.
        cap: The most tokens that the bucket keeps.
        tokens: The tokens left.
    """

    __slots__ = ("_seconds", "cap", "fill", "tokens")

    def __init__(self, units: int, seconds: int = BURST_SECONDS) -> None:
        self._seconds = seconds
        self.fill = units * QUANTA_PER_UNIT
        self.cap = self.fill * seconds
        self.tokens = self.cap

    def resize(self, units: int) -> None:
        """Change the provisioned units per second; tokens above the new limit are lost, the others stay."""
        self.fill = units * QUANTA_PER_UNIT
        self.cap = self.fill * self._seconds
        self.tokens = min(self.tokens, self.cap)

    def available(self) -> int:
        """Return the most that the next second can serve."""
        return min(self.cap, self.tokens + self.fill)

    def holds(self, rate: int, seconds: int) -> bool:
        """Return whether a constant *rate* would be served for *seconds* without throttling."""
        return rate <= self.fill or self.available() - (seconds - 1) * (rate - self.fill) >= rate

    def take(self, amount: int) -> None:
        """Advance by one second that serves *amount*, which must not exceed `available()`."""
        self.tokens = self.available() - amount

    def serve(self, rate: int, seconds: int) -> int:
        """Advance by *seconds*, at least one, at a constant *rate*; return the quanta served.

        A closed form of the second-by-second steps, with the same result.
        """
        fill = self.fill
        level = self.tokens + fill
        if level > self.cap:  # faster than min() in this loop
            level = self.cap
        if rate <= fill:
            level += (seconds - 1) * (fill - rate)
            self.tokens = (level if level < self.cap else self.cap) - rate
            return rate * seconds
        drain = rate - fill
        full_seconds = (level - rate) // drain + 1 if level >= rate else 0
        if full_seconds >= seconds:
            self.tokens = level - (seconds - 1) * drain - rate
            return rate * seconds
        # after the seconds served in full, one second serves the tokens left, and each later one a second's capacity
        self.tokens = 0
        return full_seconds * rate + (level - full_seconds * drain) + (seconds - full_seconds - 1) * fill
