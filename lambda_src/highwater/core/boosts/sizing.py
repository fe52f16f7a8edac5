"""How many units a job needs, from what it knows of itself."""

from __future__ import annotations

from datetime import timedelta

from highwater.core.boosts.lease import LeaseError
from highwater.core.units import Dimension

# DynamoDB Developer Guide, "Read and write operations": a unit writes up to 1 KB, and reads up to 4 KB consistently or
# twice that eventually.
_BYTES_PER_WRITE, _BYTES_PER_READ = 1_024, 4_096


def units_for_rate(units_per_second: int, target_percent: int) -> int:
    """Return the capacity of which a rate of consumption is *target_percent*, 1 to 100: what a job adds to traffic.

    At the target utilization of the table the job leaves the table's headroom as it is.
    """
    if units_per_second < 1 or not 1 <= target_percent <= 100:
        raise LeaseError(
            f"a rate of {units_per_second:,} units/s at {target_percent} %; allowed: 1 or more, at 1 to 100 %"
        )
    return -(-units_per_second * 100 // target_percent)


def units_for_deadline(
    dimension: Dimension,
    items: int,
    bytes_per_item: int,
    within: timedelta,
    *,
    until_ready: timedelta = timedelta(0),
    is_consistent: bool = False,
) -> int:
    """Return the capacity with which a job is done in time.

    Args:
        dimension: READ for a scan, WRITE for a load.
        items: How many items it reads or writes, 1 or more.
        bytes_per_item: The size of an item, names of attributes included, from 1 byte to 400 KB. Every write costs
            whole units; a scan's pages round up only once, which is not counted.
        within: How long the job may take from now on.
        until_ready: How long of that passes before the capacity is there. By default nothing.
        is_consistent: Whether a scan reads consistently, at twice the price. By default it does not.

    Raises:
        LeaseError: There is nothing to do, or no time to do it in.
    """
    if items < 1 or not 1 <= bytes_per_item <= 400 * 1_024:
        raise LeaseError(f"{items:,} items of {bytes_per_item:,} bytes; allowed: 1 item or more of 1 to 409,600 bytes")
    seconds = (within - until_ready) // timedelta(seconds=1)
    if seconds < 1:
        raise LeaseError(
            f"a job of {within} of which {until_ready} pass before the capacity is there; give it more time"
        )
    if dimension is Dimension.WRITE:
        units = items * -(-bytes_per_item // _BYTES_PER_WRITE)
    else:
        per_unit = _BYTES_PER_READ if is_consistent else 2 * _BYTES_PER_READ
        units = -(-items * bytes_per_item // per_unit)
    return -(-units // seconds)
