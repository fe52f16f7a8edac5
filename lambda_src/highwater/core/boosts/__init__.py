"""Boosts: leases of capacity that jobs ask for before they start, and what the live ones add to a floor."""

from highwater.core.boosts.callers import BoostCap, Caller, find_cap
from highwater.core.boosts.grant import Grant, GrantLimit, grant
from highwater.core.boosts.lease import Lease, LeaseError, merged
from highwater.core.boosts.live import Boosts, boosted_floor, boosts_at, ceiling_with_boosts
from highwater.core.boosts.request import BoostRequest, Hold
from highwater.core.boosts.shares import index_shares_percent
from highwater.core.boosts.sizing import units_for_deadline, units_for_rate

__all__ = [
    "BoostCap",
    "BoostRequest",
    "Boosts",
    "Caller",
    "Grant",
    "GrantLimit",
    "Hold",
    "Lease",
    "LeaseError",
    "boosted_floor",
    "boosts_at",
    "ceiling_with_boosts",
    "find_cap",
    "grant",
    "index_shares_percent",
    "merged",
    "units_for_deadline",
    "units_for_rate",
]
