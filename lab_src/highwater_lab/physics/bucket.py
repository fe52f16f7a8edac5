"""The burst bucket of provisioned capacity."""

from __future__ import annotations

from typing import Final

# A second of a rate given in units per minute is a whole number of these
QUANTA_PER_UNIT: Final = 60

# Amazon DynamoDB Developer Guide, "Burst capacity": up to five minutes of unused capacity are kept. That it is a
# bucket with this cap, and not what was unused in the last five minutes, is what figures 2, 3 and 5 of "Handle traffic
# spikes with Amazon DynamoDB provisioned capacity" (AWS Database Blog) fit: see docs/figures.md.
BURST_SECONDS: Final = 300


class Bucket:
    """Tokens that refill with the provisioned rate, kept for `BURST_SECONDS`, spent by requests.

    Each second first adds a second's capacity, then serves what the tokens allow. A new bucket is full. All amounts
    are quanta, rates quanta per second.
    """

    __slots__ = ("cap", "fill", "tokens")

    def __init__(self, units: int) -> None:
        self.fill = units * QUANTA_PER_UNIT
        self.cap = self.fill * BURST_SECONDS
        self.tokens = self.cap

    def resize(self, units: int) -> None:
        """Change the provisioned units per second: tokens stay, as far as the new cap holds them."""
        self.fill = units * QUANTA_PER_UNIT
        self.cap = self.fill * BURST_SECONDS
        self.tokens = min(self.tokens, self.cap)

    def available(self) -> int:
        """What the next second could serve."""
        return min(self.cap, self.tokens + self.fill)

    def holds(self, rate: int, seconds: int) -> bool:
        """Whether a constant *rate* would be served whole for *seconds*."""
        return rate <= self.fill or self.available() - (seconds - 1) * (rate - self.fill) >= rate

    def take(self, amount: int) -> None:
        """Pass one second in which *amount*, at most `available()`, is served."""
        self.tokens = self.available() - amount

    def serve(self, rate: int, seconds: int) -> int:
        """Pass *seconds*, at least one, of a constant *rate*; what was served. Just what stepping would give."""
        fill = self.fill
        level = self.tokens + fill
        if level > self.cap:  # faster than min() in this loop
            level = self.cap
        if rate <= fill:
            level += (seconds - 1) * (fill - rate)
            self.tokens = (level if level < self.cap else self.cap) - rate
            return rate * seconds
        drop = rate - fill
        whole = (level - rate) // drop + 1 if level >= rate else 0
        if whole >= seconds:
            self.tokens = level - (seconds - 1) * drop - rate
            return rate * seconds
        # one second serves what is left, each later one what it refills
        self.tokens = 0
        return whole * rate + (level - whole * drop) + (seconds - whole - 1) * fill
