"""The burst bucket of provisioned capacity: one model for scaler, pulses, pacing, simulator and local cloud.

DynamoDB keeps up to five minutes of unused capacity (Amazon DynamoDB Developer Guide, "Burst capacity"). The guide
leaves open whether that is a token bucket with this limit or the capacity left unused in the last five minutes; figures
2, 3 and 5 of "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (AWS Database Blog) fit a token bucket
(docs/figures.md). After a raise the tokens stay: figure 6 excludes that a raise empties the bucket, and of the rules
that are left this one promises least.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

# What DynamoDB documents, and what the bucket of a simulated table keeps.
BURST_SECONDS: Final = 300
# What is believed of a table that has not shown more. Chosen over the open traces: docs/decisions/0021.
BELIEVED_SECONDS: Final = 60


class OnRaise(StrEnum):
    """What becomes of the tokens when capacity is raised; nobody has measured it on AWS."""

    KEEP = "keep"
    """They stay: what this project assumes."""
    SCALE = "scale"
    """They grow with the capacity, so that the bucket is as full as before."""
    EMPTY = "empty"
    """They are lost."""


class Bucket:
    """A token bucket that refills at the provisioned rate and keeps up to *seconds* of it, by default `BURST_SECONDS`.

    Each second first adds one second's capacity, then serves requests as far as the tokens last. A new bucket is full.
    Amounts are whole numbers: units, or the parts of a unit that the caller counts in.

    Attributes:
        fill: The provisioned rate, in amounts per second.
        cap: The most tokens that the bucket keeps.
        tokens: The tokens left.
    """

    __slots__ = ("_on_raise", "_seconds", "cap", "fill", "tokens")

    def __init__(self, fill: int, seconds: int = BURST_SECONDS, on_raise: OnRaise = OnRaise.KEEP) -> None:
        self._seconds = seconds
        self._on_raise = on_raise
        self.fill = fill
        self.cap = fill * seconds
        self.tokens = self.cap

    def resize(self, fill: int) -> None:
        """Change the provisioned rate. A decrease loses the tokens above the new limit; a raise goes by *on_raise*."""
        if fill > self.fill and self._on_raise is not OnRaise.KEEP:
            self.tokens = self.tokens * fill // self.fill if self._on_raise is OnRaise.SCALE else 0
        self.fill = fill
        self.cap = fill * self._seconds
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
        """Advance by *seconds*, at least one, at a constant *rate*; return the amount served.

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


def settle(level: int, fill: int, asked: int, most: int) -> tuple[int, int]:
    """Return the tokens left after a stretch of time, and what was refused in it.

    For a caller that knows only what was asked for in a minute or a slot together, and not second by second.

    Args:
        level: The tokens before it.
        fill: The capacity of the whole stretch.
        asked: What was asked for in it.
        most: The most tokens that the bucket keeps.
    """
    left = min(level + fill - asked, most)
    return (left, 0) if left >= 0 else (0, -left)


def level_after(
    level_units: int,
    capacity_units: int,
    asked_units: Iterable[int],
    seconds: int,
    burst_seconds: int = BELIEVED_SECONDS,
) -> int:
    """Return the tokens left after stretches in which so many units were asked for, each settled as by `settle`.

    Args:
        level_units: The tokens before them.
        capacity_units: Provisioned units per second.
        asked_units: The units asked for in each stretch.
        seconds: How long each is.
        burst_seconds: How many seconds of capacity the bucket keeps.
    """
    most, fill = capacity_units * burst_seconds, capacity_units * seconds
    level = min(level_units, most)
    for asked in asked_units:
        level += fill - asked
        if level < 0:  # faster than min() and max() in this loop
            level = 0
        elif level > most:
            level = most
    return level


def outlasts(level_units: int, capacity_units: int, rate: int, seconds: int) -> bool:
    """Whether a bucket of *level_units* serves *rate* units per second for so many seconds."""
    return (rate - capacity_units) * seconds <= level_units
