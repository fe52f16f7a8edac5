"""The cost of a table in on-demand mode, compared with provisioned capacity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from highwater.core.scaler.demand import MINUTES_PER_DAY
from highwater.core.units import Dimension

# On-demand request units that cost as much as one unit provisioned for an hour. Writes: 0.00065 USD an hour, 0.625 USD
# a million requests. Reads: 0.00013 and 0.125 USD (us-east-1, 2026-11; the ratio is nearly the same in all regions).
_REQUESTS_PER_UNIT_HOUR: Final = 1_040
# A write unit costs five times a read unit, both provisioned and on demand
_WEIGHT: Final = {Dimension.READ: 1, Dimension.WRITE: 5}
_HOUR_MINUTES: Final = 60


def on_demand_percent(days: Iterable[tuple[Dimension, Sequence[int | None]]]) -> int | None:
    """Return the cost of a table's last day on demand, in percent of the lowest possible cost of provisioned capacity.

    The lowest cost is that of the capacity for the highest minute of each hour: a scaler can only pay less by relying
    on burst capacity. Below 100, on-demand mode is cheaper.

    Args:
        days: For the table and each index, reads and writes: units consumed by minute, oldest first.

    Returns:
        A whole percentage, rounded up. `None` if more than an hour of the day is unknown, or nothing was consumed.
    """
    on_demand_cost = provisioned_cost = 0
    for dimension, consumed in days:
        day = consumed[-MINUTES_PER_DAY:]
        known = [units for units in day if units is not None]
        if len(known) < MINUTES_PER_DAY - _HOUR_MINUTES:
            return None
        on_demand_cost += _WEIGHT[dimension] * sum(known)
        for start in range(0, len(day), _HOUR_MINUTES):
            peak = max((units for units in day[start : start + _HOUR_MINUTES] if units is not None), default=0)
            # capacity is at least one unit
            provisioned_cost += _WEIGHT[dimension] * max(1, -(-peak // 60)) * _REQUESTS_PER_UNIT_HOUR
    return -(-on_demand_cost * 100 // provisioned_cost) if on_demand_cost else None
