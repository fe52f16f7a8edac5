"""Boosts: leases of capacity that jobs ask for before they start, and what the live ones add to a floor."""

from highwater.core.boosts.lease import Lease, LeaseError, merged
from highwater.core.boosts.live import Boosts, boosts_at

__all__ = ["Boosts", "Lease", "LeaseError", "boosts_at", "merged"]
