"""What single rules ask for, and how many units a peak of demand comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from highwater.core.scaler.demand import peak
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.settings import ScalerSettings

_MINUTE: Final = timedelta(minutes=1)
# Throttles may be retries of few requests, so capacity is asked for at most a hundred times what was consumed.
STEP_PERCENT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """The units that one rule asks for.

    Attributes:
        units: What it asks for, in units per second.
        most: What the step limit allows it to ask for.
        reason: Where the units come from, in a sentence.
    """

    units: int
    most: int
    reason: str

    def or_higher(self, other: Proposal | None) -> Proposal:
        """The proposal that asks for more, this one where both ask for the same; with the wider of the two limits."""
        if other is None:
            return self
        higher = other if other.units > self.units else self
        return replace(higher, most=max(self.most, other.most))


def minutes_that_count(settings: ScalerSettings, hold: timedelta, now: datetime) -> int:
    """For how many minutes a peak counts: *hold*, and at least back to when the last hour's lowering began.

    An hour is billed at its highest value, so lowering within it saves nothing until the next one comes near.
    """
    minutes = hold // _MINUTE
    if now.minute >= settings.lower_from_minute:
        return minutes
    return max(minutes, now.minute + 60 - settings.lower_from_minute)


def capacity_for_peak(demand: Sequence[int | None], seen: Observation, minutes: int, percent: int) -> Proposal:
    """Capacity of which the highest demand of the last known *minutes* is *percent*."""
    # throttles of a minute may be known before its consumption is
    window = minutes + seen.pending_minutes
    highest = peak(demand, window)
    # capacity is at least one unit per second, so a step from nothing starts there
    most = max(peak(seen.consumed_units, window), 60) * STEP_PERCENT // 100
    time = "minute" if minutes == 1 else f"{minutes} minutes"
    reason = f"peak of {-(-highest // 60):,} units/s in the last {time} at {percent} %"
    return Proposal(per_second(highest, percent), per_second(most, percent), reason)


def per_second(units_per_minute: int, percent: int) -> int:
    """Capacity, in units per second, of which *units_per_minute* are so many percent."""
    return -(-units_per_minute * 100 // (60 * percent))
