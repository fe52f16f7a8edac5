"""Leases: units that a job asked for, until when; what the live ones add to a floor; and their JSON documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from highwater.core.errors import HighwaterError
from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.schedule.bounds import Bounds
from highwater.core.units import Dimension

# A lease is for a job; what lasts longer is a window
LONGEST = timedelta(days=1)


class LeaseError(HighwaterError, ValueError):
    """A lease is for no units, or for a time that no lease may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Capacity that a job asked for: on a table or index, in one dimension, for a time.

    Nothing is ever restored when a lease ends: floors are computed from the leases that are live.

    Attributes:
        id: Unique; the same for every report of one lease, so that a request that arrives twice is one lease.
        table: Name of the table.
        index: Name of the index, `None` for the table itself.
        dimension: READ or WRITE.
        units: Units per second, 1 or more.
        is_total: Whether *units* are all that the job needs, together with what is there anyway. By default they are
            added to what is there.
        start: The aware instant at which the units are to be there.
        end: The aware instant at which the lease ends by itself, after *start* and at most a day later.
        owner: Who asked, as AWS authenticated it.
        reason: Why, in the job's own words. By default nothing.
        asked: The units per second that the job asked for, where it got fewer; `None` where it got all.
        released: The aware instant at which the job gave the units back, `None` while it has not.

    Raises:
        LeaseError: *units* is below 1, or *start* and *end* are not in order or more than a day apart.
    """

    id: str
    table: str
    index: str | None
    dimension: Dimension
    units: int
    is_total: bool = False
    start: datetime
    end: datetime
    owner: str
    reason: str = ""
    asked: int | None = None
    released: datetime | None = None

    def __post_init__(self) -> None:
        if self.units < 1:
            raise LeaseError(f"{self.label}: a boost of {self.units:,} units/s; allowed: 1 or more")
        if not timedelta(0) < self.end - self.start <= LONGEST:
            raise LeaseError(
                f"{self.label}: a boost from {self.start.isoformat()} until {self.end.isoformat()}; allowed: up to "
                f"{LONGEST // timedelta(hours=1)} hours; declare a window for what lasts longer"
            )

    @property
    def key(self) -> TargetKey:
        """The index and dimension, which identify the target within its table."""
        return self.index, self.dimension

    @property
    def label(self) -> str:
        """What it boosts, in messages: `orders, table write`."""
        return f"{self.table}, {target_label(self.index, self.dimension)}"

    @property
    def ends(self) -> datetime:
        """When it ends: by itself, or when it was released if that is earlier."""
        return self.end if self.released is None else min(self.end, self.released)

    def is_live(self, now: datetime) -> bool:
        """Whether its units count at the aware instant *now*."""
        return self.start <= now < self.ends

    def renewed(self, end: datetime) -> Lease:
        """Return the same lease until *end*, or until its present end if that is later; a released one stays so.

        No lease goes on for longer than a day after its start, however often it is renewed.
        """
        return replace(self, end=max(self.end, min(end, self.start + LONGEST)))

    def released_at(self, now: datetime) -> Lease:
        """Return the same lease, given back at *now*, or earlier if it was already."""
        return replace(self, released=now if self.released is None else min(self.released, now))


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


def lease_document(lease: Lease) -> dict[str, Any]:
    """Return the lease as JSON-ready values; `lease_of_document` reads them."""
    return {
        "id": lease.id,
        "table": lease.table,
        "index": lease.index,
        "dimension": str(lease.dimension),
        "units": lease.units,
        "is_total": lease.is_total,
        "start": _text(lease.start),
        "end": _text(lease.end),
        "owner": lease.owner,
        "reason": lease.reason,
        "asked": lease.asked,
        "released": None if lease.released is None else _text(lease.released),
    }


def lease_of_document(document: dict[str, Any]) -> Lease:
    """Read what `lease_document` wrote; raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    released = document["released"]
    return Lease(
        id=document["id"],
        table=document["table"],
        index=document["index"],
        dimension=Dimension(document["dimension"]),
        units=document["units"],
        is_total=document["is_total"],
        start=datetime.fromisoformat(document["start"]),
        end=datetime.fromisoformat(document["end"]),
        owner=document["owner"],
        reason=document["reason"],
        asked=document.get("asked"),
        released=None if released is None else datetime.fromisoformat(released),
    )


def target_text(key: TargetKey) -> str:
    """Return a target as the key of a JSON object: `write`, `by_status/write`."""
    index, dimension = key
    return str(dimension) if index is None else f"{index}/{dimension}"


def target_of_text(text: str) -> TargetKey:
    """Return the target that `target_text` wrote; raises `ValueError` for any other text."""
    index, _, dimension = text.rpartition("/")
    return index or None, Dimension(dimension)


def described_lease(lease: Lease) -> dict[str, Any]:
    """Return the lease as answers and the command show it, with the target's name in words."""
    return lease_document(lease) | {"target": target_label(lease.index, lease.dimension)}


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
