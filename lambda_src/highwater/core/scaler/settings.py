"""What the scaler moves, and what its user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from highwater.core.plan.zones import MINUTES_PER_HOUR


class Mode(StrEnum):
    """What the scaler moves."""

    FLOOR = "floor"  # MinCapacity of a target that auto scaling tracks
    DIRECT = "direct"  # provisioned capacity, by UpdateTable, where no policy of auto scaling is
    BOOSTS = "boosts"  # MinCapacity, for boosts alone: demand is left to target tracking

    @property
    def moves_floors(self) -> bool:
        """Whether floors of scalable targets are moved, not capacity itself."""
        return self is not Mode.DIRECT

    @property
    def follows_demand(self) -> bool:
        """Whether decisions look at consumption and throttles."""
        return self is not Mode.BOOSTS


# In this minute of the hour every table has a tick that lowers. Two minutes are enough for the run, for a change of
# capacity, which takes seconds, and for auto scaling, which takes half a minute (docs/decisions/0030).
LOWERED_FROM_MINUTE: Final = 58
# How far back jumps are counted.
JUMP_MINUTES: Final = 8 * MINUTES_PER_HOUR
# For how long a peak counts, and a throttle: a load that pauses for a quarter of an hour is not lowered in between, nor
# is its next part met by a bucket that may still be empty (pays most on tweets_cvs).
HOLD_MINUTES: Final = 30
# Capacity is full at this share of itself: what is raised leaves the rest as room, so that the bucket fills again; an
# alarm starts a review there; and what would fall by less than the room is left, as each change is a call, and in
# DIRECT mode one of the day's decreases (pays most on aws_ec2_diskwrite_kb).
FULL_PERCENT: Final = 97
# What it is worth that a unit is not throttled, in request units on demand: docs/decisions/0038.
THROTTLE_PRICE_REQUESTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerSettings:
    """What a user may choose; all else is a constant of the folder's files.

    Attributes:
        mode: What is moved.
        throttle_price_requests: What it is worth that a unit is not throttled, in request units on demand. Where the
            last day cost a tenth more than target tracking would have, and more than the throttles are worth that it
            prevented, no more is granted than target tracking would. From 0 to a million.
    """

    mode: Mode = Mode.FLOOR
    throttle_price_requests: int = THROTTLE_PRICE_REQUESTS

    def __post_init__(self) -> None:
        """Raises `ValueError` for a price outside its range."""
        if not 0 <= self.throttle_price_requests <= 1_000_000:
            message = f"throttle_price_requests must be from 0 to 1,000,000, got {self.throttle_price_requests:,}"
            raise ValueError(message)

    @property
    def cautious_percent(self) -> int:
        """The share of its capacity that a table with headroom uses: 70 at the default price.

        Headroom is worth its price while throttles are: ten times the price of a throttle buys ten percent more.
        """
        return 100 - 10 * len(str(self.throttle_price_requests))
