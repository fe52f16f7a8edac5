"""Boosts: leases of capacity that jobs request before they start, and the units that live leases add to a floor."""

from highwater.core.boosts.lease import (
    Boosts,
    Grant,
    GrantLimit,
    Lease,
    LeaseError,
    boosted_floor,
    boosts_at,
    ceiling_with_boosts,
    grant,
)
from highwater.core.boosts.request import (
    BoostCap,
    BoostRequest,
    Caller,
    Hold,
    find_cap,
    index_shares_percent,
    units_for_deadline,
    units_for_rate,
)

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
    "units_for_deadline",
    "units_for_rate",
]
