"""How the scaler sizes a target. The defaults were chosen over the open traces: docs/decisions/0013."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Mode(StrEnum):
    """What the scaler moves."""

    FLOOR = "floor"  # MinCapacity of a target that auto scaling tracks
    DIRECT = "direct"  # provisioned capacity, by UpdateTable, where no policy of auto scaling is


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerSettings:
    """Percentages and minutes; every default is a choice of its own in the decision record.

    Attributes:
        mode: What is moved.
        target_percent: Demand in percent of capacity: capacity is the peak of the last *hold* divided by this.
        hold: How long a peak counts. It counts longer within an hour that is paid for anyway.
        cautious_target_percent: The same for a table that jumped lately, so that it has headroom for the next jump.
        cautious_hold: How long a peak counts for that headroom.
        jump_percent: Consumption jumps where four minutes average more than this share of the highest of the fifteen
            minutes before.
        jump_level_percent: Only jumps to above this share of the average over *jump_history* count.
        jump_history: How far back jumps are counted.
        most_jumps: With more jumps than this in that time caution is off: the peak that is held covers them already.
        forecast_target_percent: Capacity for the next hour is what it brought yesterday divided by this; `None` for no
            forecast.
        retry_percent: Attempts per throttled request, in percent. Throttles are divided by it, since a client that
            sends a request again is counted again. 100 for clients that never do.
        step_percent: Capacity is asked for at most so much of the highest consumption that the peak is taken of.
        tolerance_percent: A value lower than the current one by at most this much leaves the current one.
        lower_from_minute: From this minute of the hour on a value may fall to what the next hour needs, and caution
            raises nothing, as an hour is billed at its highest value. With 0 only the minutes of *hold* count.
        missing_after: Consumption is missing once its newest datapoint is older than this.
    """

    mode: Mode = Mode.FLOOR
    target_percent: int = 100
    hold: timedelta = timedelta(minutes=30)
    cautious_target_percent: int = 68
    cautious_hold: timedelta = timedelta(minutes=3)
    jump_percent: int = 160
    jump_level_percent: int = 100
    jump_history: timedelta = timedelta(hours=8)
    most_jumps: int = 4
    forecast_target_percent: int | None = None
    retry_percent: int = 100
    step_percent: int = 800
    tolerance_percent: int = 3
    lower_from_minute: int = 50
    missing_after: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        """Raises `ValueError` for a setting outside its range."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                message = f"{name} must be from {low} to {high}, got {value}"
                raise ValueError(message)
        for name in ("hold", "cautious_hold", "jump_history", "missing_after"):
            if not timedelta(minutes=1) <= getattr(self, name) <= timedelta(days=1):
                message = f"{name} must be from a minute to a day, got {getattr(self, name)}"
                raise ValueError(message)

    @classmethod
    def floor(cls) -> ScalerSettings:
        """The defaults for targets that auto scaling tracks."""
        return cls()

    @classmethod
    def direct(cls) -> ScalerSettings:
        """The defaults for tables that nothing else scales."""
        return cls(mode=Mode.DIRECT, target_percent=95, forecast_target_percent=120)

    @classmethod
    def of(cls, mode: Mode) -> ScalerSettings:
        """The defaults of a mode."""
        return cls.floor() if mode is Mode.FLOOR else cls.direct()

    @property
    def history(self) -> timedelta:
        """How much of the past a decision looks at."""
        # an hour at least, through which peaks are held
        longest = max(self.hold, self.cautious_hold, self.jump_history, timedelta(hours=1))
        return longest if self.forecast_target_percent is None else max(longest, timedelta(days=1))


_RANGES = (
    ("target_percent", 20, 200),
    ("cautious_target_percent", 20, 200),
    ("jump_percent", 101, 10_000),
    ("jump_level_percent", 0, 1_000),
    ("most_jumps", 0, 1_000),
    ("forecast_target_percent", 20, 1_000),
    ("retry_percent", 100, 2_000),
    ("step_percent", 110, 10_000),
    ("tolerance_percent", 0, 50),
    ("lower_from_minute", 0, 59),
)
