"""What the live leases of a target ask for at an instant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from highwater.core.boosts.lease import Lease
from highwater.core.plan.plan import TargetKey
from highwater.core.schedule.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Boosts:
    """What the live leases of one target ask for, in units per second.

    Attributes:
        added: Added to what plan and demand ask for: concurrent boosts add up.
        total: The least that there is to be in total, 0 for none: of several the highest.
    """

    added: int = 0
    total: int = 0


def ceiling_with_boosts(bounds: Bounds, max_with_boosts: int | None) -> int:
    """Return the ceiling while a boost is live: the plan's now, or that for boosts where it is higher."""
    return max(bounds.max, max_with_boosts or 0)


def boosted_floor(bounds: Bounds, boosts: Boosts, quota_units: int, max_with_boosts: int | None = None) -> int:
    """Return the floor that plan and boosts ask for, without a scaler that knows of demand: never above the ceiling."""
    ceiling = ceiling_with_boosts(bounds, max_with_boosts)
    return max(1, min(max(min(bounds.min, bounds.max) + boosts.added, boosts.total), ceiling, quota_units))


def boosts_at(leases: Iterable[Lease], target: TargetKey, now: datetime) -> Boosts:
    """Return what the leases of *target* ask for at the aware instant *now*; *leases* may be of any target."""
    live = [lease for lease in leases if lease.key == target and lease.is_live(now)]
    return Boosts(
        added=sum(lease.units for lease in live if not lease.is_total),
        total=max((lease.units for lease in live if lease.is_total), default=0),
    )
