"""How the scaler sizes a target. The defaults were chosen over the open traces: docs/decisions/0013."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final


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
JUMP_HISTORY: Final = timedelta(hours=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerSettings:
    """Percentages and minutes; every default is a choice of its own in the decision record.

    `make benchmark NAME=settings` prints what each buys. What buys nothing there is a constant of `decide`, no setting.

    Attributes:
        mode: What is moved.
        hold: How long a peak counts: capacity is the highest demand of so long. It counts longer within an hour that
            is paid for anyway.
        cautious_target_percent: Demand in percent of capacity for a table that jumped lately, or of which less than
            an hour is known, so that it has headroom for the next jump.
        jump_percent: Consumption jumps where four minutes average more than this share of the highest of the fifteen
            minutes before.
        forecast_target_percent: Capacity for the next hour is what it brought yesterday divided by this; `None` for no
            forecast. Above 100, the burst bucket serves the rest until consumption itself raises capacity.
        lower_from_minute: From this minute of the hour on a value may fall to what the next hour needs, and caution
            raises nothing, as an hour is billed at its highest value. With 0 only the minutes of *hold* count.
        pulsed_lower_from_minute: The same for a table whose fleet reports pulses. It is as late as runs and changes
            allow: the next surge is met within seconds, so that the fewest minutes of this hour count for the next one.
        throttle_price_requests: What it is worth that a unit is not throttled, in request units on demand. Where the
            last day cost a tenth more than target tracking would have, and more than the throttles are worth that it
            prevented, no more is granted than target tracking would.
    """

    mode: Mode = Mode.FLOOR
    hold: timedelta = timedelta(minutes=30)
    cautious_target_percent: int = 70
    jump_percent: int = 160
    forecast_target_percent: int | None = None
    lower_from_minute: int = 50
    pulsed_lower_from_minute: int = LOWERED_FROM_MINUTE
    throttle_price_requests: int = 100

    def __post_init__(self) -> None:
        """Raises `ValueError` for a setting outside its range."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                message = f"{name} must be from {low} to {high}, got {value}"
                raise ValueError(message)
        if not timedelta(minutes=1) <= self.hold <= timedelta(days=1):
            message = f"hold must be from a minute to a day, got {self.hold}"
            raise ValueError(message)

    @classmethod
    def floor(cls) -> ScalerSettings:
        """The defaults for targets that auto scaling tracks."""
        return cls()

    @classmethod
    def direct(cls) -> ScalerSettings:
        """The defaults for tables that nothing else scales."""
        return cls(mode=Mode.DIRECT, cautious_target_percent=60, forecast_target_percent=200)

    @classmethod
    def of(cls, mode: Mode) -> ScalerSettings:
        """The defaults of a mode."""
        return cls.floor() if mode.moves_floors else cls.direct()

    @property
    def history(self) -> timedelta:
        """How much of the past a decision looks at."""
        longest = max(self.hold, JUMP_HISTORY)
        return longest if self.forecast_target_percent is None else max(longest, timedelta(days=1))


_RANGES = (
    ("cautious_target_percent", 20, 200),
    ("jump_percent", 101, 10_000),
    ("forecast_target_percent", 20, 1_000),
    ("lower_from_minute", 0, 59),
    ("pulsed_lower_from_minute", 0, 59),
    ("throttle_price_requests", 0, 1_000_000),
)
