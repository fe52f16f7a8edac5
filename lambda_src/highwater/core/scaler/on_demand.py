"""What a table's last day would have cost on demand, beside the least that provisioned capacity can have cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_HOUR
from highwater.core.prices import COST_WEIGHT
from highwater.core.scaler.regret import REQUESTS_PER_UNIT_HOUR
from highwater.core.units import Dimension


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
        if len(known) < MINUTES_PER_DAY - MINUTES_PER_HOUR:
            return None
        on_demand_cost += COST_WEIGHT[dimension] * sum(known)
        for start in range(0, len(day), MINUTES_PER_HOUR):
            peak = max((units for units in day[start : start + MINUTES_PER_HOUR] if units is not None), default=0)
            # capacity is at least one unit
            provisioned_cost += COST_WEIGHT[dimension] * max(1, -(-peak // 60)) * REQUESTS_PER_UNIT_HOUR
    return -(-on_demand_cost * 100 // provisioned_cost) if on_demand_cost else None
