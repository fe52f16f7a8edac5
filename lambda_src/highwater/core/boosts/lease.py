"""Leases: units for a time; what is granted of a lease; the floor with live leases; and the leases' JSON documents."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from operator import index as whole
from types import SimpleNamespace
from typing import Any, Final

from highwater.core.codec import INSTANT, Codec, Field, one_of, or_none
from highwater.core.errors import HighwaterError
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.schedule.bounds import Bounds, Timeline
from highwater.core.units import Dimension

# A lease is for one job; capacity for longer is declared as a window
LONGEST_BOOST = timedelta(days=1)


class LeaseError(HighwaterError, ValueError):
    """A lease without units, or with a time that is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Capacity that a job requested: of a table or index, in one dimension, for a time.

    Nothing has to be restored when a lease ends, because floors are computed from the live leases.

    Attributes:
        id: Unique; requests are idempotent by it: one that arrives twice is one lease.
        table: Name of the table.
        index: Name of the index, `None` for the table itself.
        dimension: READ or WRITE.
        units: Units per second, 1 or more.
        is_total: Whether *units* are the total that the floor has to reach. By default they are added to the floor.
        start: The aware instant from which the units count.
        end: The aware instant at which the lease expires, after *start* and at most a day later.
        owner: The caller, as AWS authenticated it.
        reason: The reason in the job's own words. By default empty.
        asked: The units per second that the job requested, if fewer were granted; `None` if all were granted.
        released: The aware instant at which the job released the lease, `None` if it has not.

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
        if not timedelta(0) < self.end - self.start <= LONGEST_BOOST:
            raise LeaseError(
                f"{self.label}: a boost from {self.start.isoformat()} until {self.end.isoformat()}; allowed: up to "
                f"{LONGEST_BOOST // timedelta(hours=1)} hours; declare a window for what lasts longer"
            )

    @property
    def key(self) -> TargetKey:
        """The index and dimension, which identify the target within its table."""
        return self.index, self.dimension

    @property
    def label(self) -> str:
        """The boosted target, in messages: `orders, table write`."""
        return f"{self.table}, {target_label(self.index, self.dimension)}"

    @property
    def ends(self) -> datetime:
        """The instant at which it expires, or was released if that is earlier."""
        return self.end if self.released is None else min(self.end, self.released)

    def is_live(self, now: datetime) -> bool:
        """Whether its units count at the aware instant *now*."""
        return self.start <= now < self.ends

    def renewed(self, end: datetime) -> Lease:
        """Return the same lease until *end*, or its present end if that is later; a released lease stays released.

        A lease ends at most a day after its start, however often it is renewed.
        """
        return replace(self, end=max(self.end, min(end, self.start + LONGEST_BOOST)))

    def released_at(self, now: datetime) -> Lease:
        """Return the same lease, released at *now*, or earlier if it was released before."""
        return replace(self, released=now if self.released is None else min(self.released, now))


@dataclass(frozen=True, slots=True)
class Boosts:
    """The units that the live leases of one target ask for, in units per second.

    Attributes:
        added: Units to add to the floor of plan and demand: the sum of concurrent boosts.
        total: Total that the floor has to reach, 0 for none: the highest of concurrent boosts.
    """

    added: int = 0
    total: int = 0


def ceiling_with_boosts(bounds: Bounds, max_with_boosts: int | None) -> int:
    """Return the ceiling while a boost is live: the plan's present ceiling, or the one for boosts if it is higher."""
    return max(bounds.max, max_with_boosts or 0)


def boosted_floor(bounds: Bounds, boosts: Boosts, quota_units: int, max_with_boosts: int | None = None) -> int:
    """Return the floor of plan and boosts, without demand; never above the ceiling."""
    ceiling = ceiling_with_boosts(bounds, max_with_boosts)
    return max(1, min(max(min(bounds.min, bounds.max) + boosts.added, boosts.total), ceiling, quota_units))


def boosts_at(leases: Iterable[Lease], target: TargetKey, now: datetime) -> Boosts:
    """Return the sum of the live leases of *target* at the aware instant *now*; *leases* may be of any target."""
    live = [lease for lease in leases if lease.key == target and lease.is_live(now)]
    return Boosts(
        added=sum(lease.units for lease in live if not lease.is_total),
        total=max((lease.units for lease in live if lease.is_total), default=0),
    )


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
    planned: Timeline,
    others: Iterable[Lease],
    *,
    max_with_boosts: int | None = None,
    demand_units: int = 0,
    demand_until: datetime | None = None,
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    cap_units: int | None = None,
) -> Grant:
    """Answer a request with the most units that the target can have in every minute of the lease.

    Args:
        asked: The lease as it was requested.
        planned: The target's bounds by its plan, at least for the time of the lease.
        others: The other leases of the table, of any owner; booked leases count for the time of their booking.
        max_with_boosts: The plan's ceiling for boosts, if it has one of its own. By default none.
        demand_units: The floor that demand alone asks for now, assumed to stay for the lease. By default 0.
        demand_until: The aware instant from which demand may ask for less, for the reasons of a refusal. By default
            that is not known.
        quota_units: The account's quota per table and index.
        cap_units: The most units of all the caller's leases of the target together. By default without a limit.
    """
    others = [
        lease for lease in others if lease.key == asked.key and (lease.owner, lease.id) != (asked.owner, asked.id)
    ]
    own = [lease for lease in others if lease.owner == asked.owner]

    def rooms(at: datetime, demand: int) -> Iterator[tuple[GrantLimit, int, int]]:
        """Yield each limit at an instant, with its units and the units that it leaves."""
        bounds = planned[max(bisect_right(planned, at, key=lambda change: change[0]) - 1, 0)][1]
        # demand has no part of the room between the plan's ceiling and that for boosts
        floor = max(bounds.min, min(demand, bounds.max))
        there = 0 if asked.is_total else floor + boosts_at(others, asked.key, at).added
        ceiling = ceiling_with_boosts(bounds, max_with_boosts)
        yield GrantLimit.CEILING, ceiling, ceiling - there
        yield GrantLimit.QUOTA, quota_units, quota_units - there
        if cap_units is not None:
            used = boosts_at(own, asked.key, at)
            yield GrantLimit.CAP, cap_units, cap_units - max(used.added, 0 if asked.is_total else used.total)

    def more_from(at: datetime, limit: GrantLimit, left: int) -> datetime | None:
        """Return the first instant at which a limit leaves more than at the instant *at*, if that is known."""
        ends = {*(lease.ends for lease in others), *(change for change, _ in planned)}
        later = {end for end in ends if end > at} | ({demand_until} if demand_until else set())
        for end in sorted(later):
            # a lease that is booked for later is granted by the demand of now
            found = rooms(max(at, end), 0 if demand_until and end >= demand_until else demand_units)
            if any(each is limit and room > left for each, _, room in found):
                return end
        return None

    found = (
        (room, limit, of, at)
        for at in _changes(asked, planned, others)
        for limit, of, room in rooms(at, demand_units)
        if room < asked.units
    )
    tightest: dict[GrantLimit, tuple[int, str]] = {}
    for room, limit, of, at in sorted(found, key=lambda each: each[0]):
        if limit not in tightest:
            left = max(room, 0)
            tightest[limit] = left, _sentence(limit, of, at, left, more_from(at, limit, left))
    units = min([asked.units, *(room for room, _ in tightest.values())])
    return Grant(asked, units, tuple((limit, sentence) for limit, (_, sentence) in tightest.items()))


def _changes(asked: Lease, planned: Timeline, others: Iterable[Lease]) -> list[datetime]:
    """Return the instants within the lease at which the plan's bounds or other leases change, its start included."""
    edges = {asked.start, *(at for at, _ in planned)}
    edges |= {edge for lease in others for edge in (lease.start, lease.ends)}
    return sorted({max(at, asked.start) for at in edges if at < asked.end})


_NAMES: Final = {
    GrantLimit.CEILING: "the plan's ceiling",
    GrantLimit.QUOTA: "the account's quota",
    GrantLimit.CAP: "the caller's cap",
}


def _sentence(limit: GrantLimit, units: int, at: datetime, left: int, more_at: datetime | None) -> str:
    """Return why a boost gets no more, and when and how it may get more."""
    parts = [f"{_NAMES[limit]} of {units:,} units/s at {_minute(at)} leaves {left:,} units/s"]
    if more_at is not None:
        parts.append(f"more may be free from {_minute(more_at)}")
    if limit is GrantLimit.CEILING:
        parts.append("for more, raise the ceiling or set max_with_boosts=")
    return "; ".join(parts)


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


# What the leases of a boost have in common
_SHARED: Final = (
    *map(Field, ("id", "table", "owner")),
    Field("start", form=INSTANT),
    Field("end", form=INSTANT),
    Field("reason", left_out=""),
    Field("released", form=or_none(INSTANT), left_out=None),
)
_BOOST: Final = Codec(dict[str, Any], Field("targets"), *_SHARED)
_LEASE: Final = Codec(
    Lease,
    *map(Field, ("id", "table", "index")),
    Field("dimension", form=one_of(Dimension)),
    *map(Field, ("units", "is_total")),
    Field("start", form=INSTANT),
    Field("end", form=INSTANT),
    *map(Field, ("owner", "reason", "asked")),
    Field("released", form=or_none(INSTANT)),
)
# Returns a lease as JSON-ready values.
lease_document = _LEASE.write


def boost_documents(leases: Iterable[Lease]) -> list[dict[str, Any]]:
    """Return leases as JSON-ready values, one for each boost with its targets; `leases_of_document` reads one.

    A boost of a table has a lease for each of its indexes, which differ in their units alone.
    """
    boosts: dict[tuple[Any, ...], SimpleNamespace] = {}
    for lease in leases:
        shared = {each.attribute: getattr(lease, each.attribute) for each in _SHARED}
        boost = boosts.setdefault(tuple(shared.values()), SimpleNamespace(targets={}, **shared))
        boost.targets[target_text(lease.key)] = [lease.units, lease.is_total, lease.asked]
    return list(map(_BOOST.write, boosts.values()))


def leases_of_document(document: dict[str, Any]) -> tuple[Lease, ...]:
    """Read one boost of `boost_documents`; raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    shared = _BOOST.read(document)
    rows = [(target_of_text(text), row) for text, row in shared.pop("targets").items()]
    return tuple(
        Lease(index=index, dimension=dimension, units=whole(units), is_total=is_total, asked=asked, **shared)
        for (index, dimension), (units, is_total, asked) in rows
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
    """Return the lease as JSON-ready values for answers and the command, with the target's name in words."""
    return lease_document(lease) | {"target": target_label(lease.index, lease.dimension)}
