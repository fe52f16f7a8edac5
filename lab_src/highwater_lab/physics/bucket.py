"""The burst bucket of provisioned capacity, and the causes of throttling with their remedies."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """A cause of throttling: the four that DynamoDB reports, and INDEX.

    DynamoDB reports the first four in its throttle metrics and in `ThrottlingReasons` (Amazon DynamoDB Developer Guide,
    "Metrics and dimensions", read 2026-11). If an index throttles a write to the table, DynamoDB reports the index's
    cause. This model counts that write as INDEX on the table, and under the index's own cause on the index.
    """

    PROVISIONED = "provisioned"
    KEY_RANGE = "key-range"
    ACCOUNT = "account"
    MAX_ON_DEMAND = "max-on-demand"
    INDEX = "index"

    @property
    def remedy(self) -> str:
        """What an operator can do about throttling of this cause, as a short sentence for reports."""
        return _REMEDIES[self]


_REMEDIES = {
    Cause.PROVISIONED: "raise the floor ahead of the surge, or lower the target utilization",
    Cause.KEY_RANGE: "a partition is at its limit: if keys are evenly spread, raise the high-water mark; a hot key "
    "needs another key design",
    Cause.ACCOUNT: "have AWS raise the account's quota, then give the new quota with --table-quota",
    Cause.MAX_ON_DEMAND: "raise or remove the table's maximum on-demand throughput",
    Cause.INDEX: "an index throttles the table's writes: raise the index's write capacity",
}


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
