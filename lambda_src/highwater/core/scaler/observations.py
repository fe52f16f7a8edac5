"""What CloudWatch has of one target: minutes of consumption and of throttles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from highwater.core.pulses import Slots

_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Observation:
    """Whole minutes up to the newest whose datapoint is due, oldest first; both series have the same length.

    Attributes:
        newest: The last minute, counted since 1970.
        consumed_units: Capacity units consumed in each minute, rounded up; `None` where CloudWatch has no datapoint.
        throttled_units: Units throttled for want of provisioned capacity in each minute, estimated from throttle
            events; 0 where there is no datapoint, as CloudWatch publishes none without throttles.
        hot_key_events: Throttle events of the cause KEY_RANGE in those minutes. More capacity does not help there.
        lacks_throttles: Whether throttles are likely and CloudWatch could not be asked for them.
        pulses: What the fleet told of these minutes and of those that CloudWatch does not have yet; `None` for a fleet
            that tells nothing.
    """

    newest: int
    consumed_units: Sequence[int | None]
    throttled_units: Sequence[int]
    hot_key_events: int = 0
    lacks_throttles: bool = False
    pulses: Slots | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` for series of two lengths, and for amounts below zero."""
        if len(self.consumed_units) != len(self.throttled_units):
            message = f"{len(self.consumed_units)} minutes consumed and {len(self.throttled_units)} throttled"
            raise ValueError(message)
        if (
            any(units is not None and units < 0 for units in self.consumed_units)
            or min(self.throttled_units, default=0) < 0
        ):
            message = "units below zero"
            raise ValueError(message)

    @classmethod
    def nothing(cls) -> Observation:
        """No datapoint at all: an outage of CloudWatch, or a table that was just made."""
        return cls(0, (), ())

    @property
    def is_empty(self) -> bool:
        """Whether there is no datapoint of consumption."""
        return all(units is None for units in self.consumed_units)

    @property
    def pending_minutes(self) -> int:
        """How many of the newest minutes have no datapoint yet: all of them where none has one."""
        for back, units in enumerate(reversed(self.consumed_units)):
            if units is not None:
                return back
        return len(self.consumed_units)

    @property
    def known_units(self) -> Sequence[int | None]:
        """Units consumed up to the newest minute with a datapoint: one still to come is not a quiet minute."""
        return self.consumed_units[: len(self.consumed_units) - self.pending_minutes]

    def age(self, now: datetime) -> timedelta:
        """How long ago the newest minute that has a datapoint ended; not below zero."""
        if self.is_empty:
            return timedelta.max
        return max(timedelta(0), now - _EPOCH - (self.newest - self.pending_minutes + 1) * _MINUTE)
