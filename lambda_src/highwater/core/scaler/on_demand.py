"""Whether a table is one of those that idle and then burst, which on-demand serves better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from highwater.core.scaler.demand import MINUTES_PER_DAY
from highwater.core.units import Dimension

# Requests that cost as much as one unit provisioned for an hour: 0.00065 USD for a write unit, 0.625 for a million
# requests; 0.00013 and 0.125 for reads (us-east-1, 2026-11; the ratio is nearly the same in all regions)
_REQUESTS_PER_UNIT_HOUR: Final = 1_040
# A write costs five times a read, either way
_WEIGHT: Final = {Dimension.READ: 1, Dimension.WRITE: 5}
_HOUR_MINUTES: Final = 60


def on_demand_percent(days: Iterable[tuple[Dimension, Sequence[int | None]]]) -> int | None:
    """What the last day of a table would cost on demand, in percent of the least that provisioned capacity could cost.

    The least is capacity for just the highest minute of each hour: no scaler pays less without relying on burst
    capacity. Under 100 the table is better off on demand.

    Args:
        days: For the table and each index, reads and writes: units consumed by minute, oldest first.

    Returns:
        A whole percentage, rounded up; `None` where an hour and more of the day is not known, or nothing was asked for.
    """
    asked = held = 0
    for dimension, consumed in days:
        day = consumed[-MINUTES_PER_DAY:]
        known = [units for units in day if units is not None]
        if len(known) < MINUTES_PER_DAY - _HOUR_MINUTES:
            return None
        asked += _WEIGHT[dimension] * sum(known)
        for start in range(0, len(day), _HOUR_MINUTES):
            peak = max((units for units in day[start : start + _HOUR_MINUTES] if units is not None), default=0)
            # capacity is at least one unit
            held += _WEIGHT[dimension] * max(1, -(-peak // 60)) * _REQUESTS_PER_UNIT_HOUR
    return -(-asked * 100 // held) if asked else None
