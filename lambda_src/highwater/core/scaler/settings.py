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
        target_percent: Demand over capacity that is held: capacity is the peak of the last *hold* over this.
        hold: How long a peak counts at least: through an hour that is paid for anyway it does.
        cautious_target_percent: The same where jumps were seen, but few: headroom has to catch the next.
        cautious_hold: How long a peak counts then, at least.
        jump_percent: Four minutes on average above so much of the highest of the quarter of an hour before are a jump.
        jump_level_percent: Only jumps to so much of the average of the *jump_history* count.
        jump_history: How far back jumps count.
        most_jumps: More of them in that time are covered by peaks that are held.
        forecast_target_percent: Capacity for the next hour is yesterday's peak of it over this; `None` for no forecast.
        retry_percent: Attempts per request while it is throttled, in percent: throttles are divided by it, as a
            client that sends a request again counts it again. 100 for clients that never do.
        step_percent: At most so much of the current value after one decision.
        tolerance_percent: A lower value this near to the current one leaves it.
        late_minute: From this minute of the hour on it is lowered to what the next hour needs, and caution raises no
            more: hours are billed at their highest value. With 0 the minutes of *hold* alone count.
        patience: Data older than this is missing.
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
    late_minute: int = 50
    patience: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        """Raises `ValueError` for a setting outside its range."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                message = f"{name} must be from {low} to {high}, got {value}"
                raise ValueError(message)
        for name in ("hold", "cautious_hold", "jump_history", "patience"):
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
    ("late_minute", 0, 59),
)
