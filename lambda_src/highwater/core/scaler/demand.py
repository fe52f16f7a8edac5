"""Demand of a target by minute, as CloudWatch has it: consumed, and refused for want of provisioned capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from highwater.core.plan.zones import MINUTES_PER_DAY
from highwater.core.scaler.inputs import Observation


@dataclass(frozen=True, slots=True)
class DemandAlone:
    """The capacity that demand requires by itself, without capacity that the scaler keeps for other reasons.

    Attributes:
        units: Units per second, 0 or more.
        minutes: Minutes until demand requires less, unless as much is demanded again; from 1 to a day.
    """

    units: int
    minutes: int

    def __post_init__(self) -> None:
        """Raises `ValueError` for units or minutes out of range."""
        if self.units < 0 or not 1 <= self.minutes <= MINUTES_PER_DAY:
            message = f"a demand of {self.units} units/s for {self.minutes} minutes"
            raise ValueError(message)


def demand_by_minute(seen: Observation, minutes: int | None = None) -> list[int | None]:
    """Return the units demanded in each of the last *minutes*, by default all: consumed plus throttled, oldest first.

    `None` is a minute without a datapoint and without throttles.
    """
    consumed = seen.consumed_units[-minutes:] if minutes else seen.consumed_units[:]
    # earlier minutes had no throttles
    for back, throttled in enumerate(islice(reversed(seen.throttled_units), len(consumed)), 1):
        if throttled:
            consumed[-back] = (consumed[-back] or 0) + throttled
    return consumed


def peak(demand: Sequence[int | None], minutes: int) -> int:
    """Return the highest known demand of the last *minutes*, 0 if none is known."""
    return max(filter(None, demand[-minutes:]), default=0) if minutes > 0 else 0
