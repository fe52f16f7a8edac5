"""Boosts: leases of capacity that jobs ask for before they start, and what the live ones add to a floor."""

from highwater.core.boosts.grant import Grant, GrantLimit, grant
from highwater.core.boosts.lease import Lease, LeaseError, merged
from highwater.core.boosts.live import Boosts, boosted_floor, boosts_at
from highwater.core.boosts.sizing import units_for_deadline, units_for_rate

__all__ = [
    "Boosts",
    "Grant",
    "GrantLimit",
    "Lease",
    "LeaseError",
    "boosted_floor",
    "boosts_at",
    "grant",
    "merged",
    "units_for_deadline",
    "units_for_rate",
]
