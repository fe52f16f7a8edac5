"""What the indexes of a table consume of its writes."""

from __future__ import annotations

from collections.abc import Mapping

from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension

# An update that moves an item within an index deletes and writes it there, so twice the table's writes is the most.
_MOST_PERCENT = 200
# Fewer writes than this say nothing of what a load will do.
_FEWEST_UNITS = 1_000


def index_shares_percent(consumed_units: Mapping[TargetKey, int]) -> dict[TargetKey, int]:
    """Return what each index consumed of its table's writes, in percent, rounded up.

    *consumed_units* are sums over the same hours, by target. An index whose share is not known gets 100, as an item has
    at most one entry in each index: the table consumed too little, or there are no datapoints.
    """
    table = consumed_units.get((None, Dimension.WRITE), 0)
    shares: dict[TargetKey, int] = {}
    for (index, dimension), units in consumed_units.items():
        if index is not None and dimension is Dimension.WRITE:
            known = table >= _FEWEST_UNITS
            shares[index, dimension] = min(-(-units * 100 // table), _MOST_PERCENT) if known else 100
    return shares
