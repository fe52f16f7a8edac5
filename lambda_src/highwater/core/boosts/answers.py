"""Answers to requests, before anything changes: all units, a part with the limits that apply, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from highwater.core.boosts.lease import Lease, boosts_at, ceiling_with_boosts
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.schedule.bounds import timeline
from highwater.core.units import Dimension

# An update that moves an item within an index deletes and writes its entry, so an index consumes at most twice the
# table's writes.
_MOST_PERCENT = 200
# Fewer writes than this do not predict the writes of a load.
_FEWEST_UNITS = 1_000


def index_shares_percent(consumed_units: Mapping[TargetKey, int]) -> dict[TargetKey, int]:
    """Return each index's share of its table's consumed write units, in percent, rounded up.

    *consumed_units* are sums over the same hours, by target. The share is unknown if the table consumed too little, or
    there are no datapoints. It is then 100, as an item has at most one entry in each index.
    """
    table = consumed_units.get((None, Dimension.WRITE), 0)
    shares: dict[TargetKey, int] = {}
    for (index, dimension), units in consumed_units.items():
        if index is not None and dimension is Dimension.WRITE:
            known = table >= _FEWEST_UNITS
            shares[index, dimension] = min(-(-units * 100 // table), _MOST_PERCENT) if known else 100
    return shares


class GrantLimit(StrEnum):
    """The limits of a boost."""

    CEILING = "ceiling"
    QUOTA = "quota"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to a request for a boost.

    Attributes:
        asked: The lease as it was requested.
        units: The units per second granted, 0 if the boost is refused.
        limits: Why less was granted than requested, with a sentence each, the tightest first. Empty if all was granted.
    """

    asked: Lease
    units: int
    limits: tuple[tuple[GrantLimit, str], ...] = ()

    @property
    def lease(self) -> Lease | None:
        """The lease that is granted, `None` if it is refused."""
        if not self.units:
            return None
        return replace(self.asked, units=self.units, asked=None if self.is_whole else self.asked.units)

    @property
    def is_whole(self) -> bool:
        """Whether all units that the job requested are granted."""
        return self.units == self.asked.units


def grant(
    asked: Lease,
    target: Target,
    others: Iterable[Lease],
    *,
    demand_units: int = 0,
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    cap_units: int | None = None,
) -> Grant:
    """Answer a request with the most units that the target can have in every minute of the lease.

    Args:
        asked: The lease as it was requested.
        target: The target's plan, with its windows.
        others: The other leases of the table, of any owner; booked leases count for the time of their booking.
        demand_units: The floor that demand alone asks for now, assumed to stay for the lease. By default 0.
        quota_units: The account's quota per table and index.
        cap_units: The most units of all the caller's leases of the target together. By default without a limit.
    """
    others = [
        lease for lease in others if lease.key == asked.key and (lease.owner, lease.id) != (asked.owner, asked.id)
    ]
    own = [lease for lease in others if lease.owner == asked.owner]
    rooms: list[tuple[int, GrantLimit, str]] = []
    for at in _changes(asked, target, others):
        bounds = timeline(target, at, asked.end)[0][1]
        there = 0 if asked.is_total else max(bounds.min, demand_units) + boosts_at(others, asked.key, at).added
        ceiling = ceiling_with_boosts(bounds, target.capacity.max_with_boosts)
        rooms.append((ceiling - there, GrantLimit.CEILING, _sentence("the plan's ceiling", ceiling, at)))
        rooms.append((quota_units - there, GrantLimit.QUOTA, _sentence("the account's quota", quota_units, at)))
        if cap_units is not None:
            used = boosts_at(own, asked.key, at)
            left = cap_units - max(used.added, 0 if asked.is_total else used.total)
            rooms.append((left, GrantLimit.CAP, _sentence("the caller's cap", cap_units, at)))
    tightest: dict[GrantLimit, tuple[int, str]] = {}
    for room, limit, sentence in sorted(rooms, key=lambda found: found[0]):
        if room < asked.units:
            tightest.setdefault(limit, (max(room, 0), f"{sentence} leaves {max(room, 0):,} units/s"))
    units = min([asked.units, *(room for room, _ in tightest.values())])
    return Grant(asked, units, tuple((limit, sentence) for limit, (_, sentence) in tightest.items()))


def _changes(asked: Lease, target: Target, others: Iterable[Lease]) -> list[datetime]:
    """Return the instants within the lease at which the plan's bounds or other leases change, its start included."""
    edges = {at for at, _ in timeline(target, asked.start, asked.end)}
    edges |= {edge for lease in others for edge in (lease.start, lease.ends)}
    return sorted({max(at, asked.start) for at in edges if at < asked.end})


def _sentence(what: str, units: int, at: datetime) -> str:
    return f"{what} of {units:,} units/s at {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
