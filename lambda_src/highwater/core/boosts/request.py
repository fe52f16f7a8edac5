"""Requests for boosts as jobs send them: their content, the resulting units, and which callers are allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from highwater.core.boosts.lease import LONGEST_BOOST, Lease, LeaseError
from highwater.core.codec import WHOLE, Codec, Field, Form, instant_of_text, many, or_none
from highwater.core.documents import read_document
from highwater.core.errors import did_you_mean
from highwater.core.items import MOST_ITEM_BYTES, bytes_per_unit, write_units_of
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.names import table_of_label, target_label
from highwater.core.plan.plan import Plan, Target, TargetKey
from highwater.core.units import Dimension


def units_for_rate(units_per_second: int, target_percent: int) -> int:
    """Return the capacity at which consuming *units_per_second* is a utilization of *target_percent*, 1 to 100.

    With the table's target utilization, a job that consumes this rate leaves the table's headroom unchanged.
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
    """Return the capacity with which a job meets its deadline, in units per second.

    Args:
        dimension: READ for a scan, WRITE for a load.
        items: How many items it reads or writes, 1 or more.
        bytes_per_item: The size of an item, names of attributes included, from 1 byte to 400 KB. Every write costs
            whole units; a scan's pages round up only once, which is not counted.
        within: How long the job may take from now on.
        until_ready: The part of that time before the capacity can be used. By default none.
        is_consistent: Whether a scan's reads are strongly consistent, which costs twice as much. By default they are
            not.

    Raises:
        LeaseError: There is nothing to do, or no time to do it in.
    """
    if items < 1 or not 1 <= bytes_per_item <= MOST_ITEM_BYTES:
        raise LeaseError(f"{items:,} items of {bytes_per_item:,} bytes; allowed: 1 item or more of 1 to 409,600 bytes")
    seconds = (within - until_ready) // timedelta(seconds=1)
    if seconds < 1:
        raise LeaseError(
            f"a job of {within} of which {until_ready} pass before the capacity is there; give it more time"
        )
    if dimension is Dimension.WRITE:
        units = items * write_units_of(bytes_per_item)
    else:
        per_unit = bytes_per_unit(is_consistent=is_consistent)
        units = -(-items * bytes_per_item // per_unit)
    return -(-units // seconds)


# The floor rises this long before the start of a booked boost, as before a window: capacity takes minutes to come.
LEAD: Final = timedelta(minutes=5)
# With `hold="start"` the lease ends this long after the job's start; after that, consumption keeps the capacity up.
START_HOLD: Final = timedelta(minutes=10)
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{8,100}")
_LONGEST_REASON: Final = 200
# How far ahead a boost may be booked: what is known longer before is better declared as a window, and a booking takes
# room in the table's item until it is over.
FURTHEST: Final = timedelta(days=7)
# Far above any quota
_MOST_UNITS: Final = 1_000 * DEFAULT_TABLE_QUOTA_UNITS
_KINDS: Final = {"": "units", "_total": "total", "_rate": "rate"}


class Hold(StrEnum):
    """How long a boost lasts."""

    LEASE = "lease"  # until the lease expires or is released
    START = "start"  # until the job's traffic has arrived; its consumption then keeps the capacity up


class SizeKind(StrEnum):
    """The meaning of a request's units."""

    UNITS = "units"  # capacity to add to the floor
    TOTAL = "total"  # capacity that the floor has to reach in total
    RATE = "rate"  # consumption, on top of the present traffic


@dataclass(frozen=True, slots=True)
class Size:
    """The request for one dimension: *units* per second, 1 or more, and their meaning."""

    units: int
    kind: SizeKind = SizeKind.UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostRequest:
    """A request for a boost.

    Attributes:
        id: Chosen by the job: a request that arrives twice with one id is one boost.
        table: The table's label, as `highwater status` prints it.
        index: Name of the index, `None` for the table.
        sizes: The requested units, by dimension; at least one.
        duration: The length of the lease, up to a day.
        at: The aware instant at which the job starts, `None` for now.
        sent: The aware instant from which the lease lasts, if the request comes late, as an event may: it then gets
            what is left of the lease. `None` for now.
        hold: How long the boost lasts.
        reason: The reason in the job's own words.
        is_all_or_nothing: Whether to grant nothing if not all can be granted.
    """

    id: str
    table: str
    index: str | None = None
    sizes: Mapping[Dimension, Size]
    duration: timedelta
    at: datetime | None = None
    sent: datetime | None = None
    hold: Hold = Hold.LEASE
    reason: str = ""
    is_all_or_nothing: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> BoostRequest:
        """Parse a request; raises `LeaseError` with the problem, the value and the allowed values."""
        unknown = sorted(set(document) - set(_MEMBERS))
        if unknown:
            allowed = ", ".join(sorted(_MEMBERS)) + did_you_mean(unknown[0][:40], sorted(_MEMBERS))
            raise LeaseError(f"boost: unknown member {unknown[0][:40]!r}; allowed: {allowed}")
        found = {name: read_member(document, name) for name in _MEMBERS}
        sizes = {name: found.pop(name) for name in _SIZES}
        return cls(sizes=_sizes(sizes), duration=timedelta(minutes=found.pop("minutes")), **found)

    @property
    def boosts_indexes(self) -> bool:
        """Whether the table's indexes are boosted with it, as each of its writes may also write to them."""
        return self.index is None and Dimension.WRITE in self.sizes

    def leases(
        self, plan: Plan, owner: str, now: datetime, shares_percent: Mapping[TargetKey, int] | None = None
    ) -> tuple[Lease, ...]:
        """Return the leases that the request asks for at the aware instant *now*, the table's own first.

        Args:
            plan: The table's plan. Its indexes are boosted with the table's writes.
            owner: The caller, as AWS authenticated it.
            now: The present.
            shares_percent: Each index's share of the table's consumed write units, in percent. By default 100 each.

        Raises:
            LeaseError: The table has no such index, the requested capacity is fixed, the job starts in more than seven
                days, or the request comes so late that its lease is over.
        """
        targets = {target.key: target for target in plan.targets()}
        start, end = self._span(now)
        leases = []
        for dimension, size in self.sizes.items():
            target = targets.get((self.index, dimension))
            if target is None:
                raise LeaseError(f"{self.table}: has no {target_label(self.index, dimension)}; allowed: {_known(plan)}")
            units = _capacity_units(size, target)
            leases.append(self._lease(target, units, size, owner, start, end))
            if self.index is None and dimension is Dimension.WRITE:
                for other in targets.values():
                    share = 100 if shares_percent is None else shares_percent.get(other.key, 100)
                    follows = other.index is not None and other.dimension is Dimension.WRITE and share > 0
                    if follows and other.capacity.is_autoscaled:
                        leases.append(self._lease(other, -(-units * share // 100), size, owner, start, end))
        return tuple(leases)

    def _span(self, now: datetime) -> tuple[datetime, datetime]:
        sent = now if self.sent is None else min(self.sent, now)
        at = sent if self.at is None else max(self.at, sent)
        if at - now > FURTHEST:
            raise LeaseError(
                f"{self.table}: a boost at {at:%Y-%m-%d %H:%M} UTC; allowed: up to {FURTHEST.days} days ahead; "
                "declare a window for what is known longer before"
            )
        end = at + min(self.duration, START_HOLD if self.hold is Hold.START else LONGEST_BOOST - LEAD)
        if end <= now:
            raise LeaseError(
                f"{self.table}: a boost from {at:%Y-%m-%d %H:%M} until {end:%Y-%m-%d %H:%M} UTC, which arrived at "
                f"{now.astimezone(UTC):%Y-%m-%d %H:%M} UTC, is over; send a new event if the job still needs it"
            )
        return max(now, at - LEAD), end

    def _lease(self, target: Target, units: int, size: Size, owner: str, start: datetime, end: datetime) -> Lease:
        if not target.capacity.is_autoscaled:
            raise LeaseError(f"{self.table}: the capacity of {target.label} is fixed; give it Capacity.autoscaled")
        return Lease(
            id=self.id,
            table=self.table,
            index=target.index,
            dimension=target.dimension,
            units=units,
            is_total=size.kind is SizeKind.TOTAL,
            start=start,
            end=end,
            owner=owner,
            reason=self.reason,
        )


def read_member(document: Mapping[str, Any], name: str) -> Any:
    """Return the value of a member of a request; raises `LeaseError` for one that is not allowed."""
    given = document.get(name, _DEFAULTS.get(name))
    read, allowed = _MEMBERS[name]
    try:
        return read(given)
    except (OverflowError, ValueError):
        shown = "missing" if given is None else repr(given)[:60]
        raise LeaseError(f"boost: {name} is {shown}; allowed: {allowed}") from None


def _if(is_allowed: Callable[[Any], object]) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        if not is_allowed(given):
            raise ValueError
        return given

    return read


def _if_whole(most: int) -> Callable[[Any], Any]:
    return _if(lambda given: isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= most)


def _if_text(is_allowed: Callable[[str], object]) -> Callable[[Any], Any]:
    return _if(lambda given: isinstance(given, str) and is_allowed(given))


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: None if given is None else read(given)


_NAME: Final = _if_text(lambda text: 1 <= len(text) <= 300 and text.isprintable())
# the first or the last day of the calendar may be none in UTC, which overflows
_INSTANT: Final = _or_none(lambda given: instant_of_text(str(given)).astimezone(UTC))
_A_MOMENT: Final = "an instant with its zone, such as 2027-03-04T05:06Z"
_MOST_MINUTES: Final = LONGEST_BOOST // timedelta(minutes=1)
_SIZES: Final = {f"{each}{suffix}": (each, kind) for each in Dimension for suffix, kind in _KINDS.items()}
# The members of a request: what reads each, and what is allowed
_MEMBERS: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "hold": (Hold, " or ".join(Hold)),
    "is_all_or_nothing": (_if(lambda given: isinstance(given, bool)), "true or false"),
    # what cannot be printed could forge lines of the log
    "reason": (
        _if_text(lambda text: len(text) <= _LONGEST_REASON and text.isprintable()),
        f"a line of up to {_LONGEST_REASON} characters",
    ),
    "id": (_if_text(_ID.fullmatch), "8 to 100 letters, digits, dots, colons and dashes"),
    "table": (_NAME, "a name"),
    "index": (_or_none(_NAME), "a name"),
    **{name: (_or_none(_if_whole(_MOST_UNITS)), f"1 to {_MOST_UNITS:,} units/s") for name in _SIZES},
    "minutes": (
        _if_whole(_MOST_MINUTES),
        f"1 to {_MOST_MINUTES:,}; declare a window for what lasts longer",
    ),
    "at": (_INSTANT, _A_MOMENT),
    "sent": (_INSTANT, _A_MOMENT),
}
_DEFAULTS: Final = {"hold": Hold.LEASE, "is_all_or_nothing": False, "reason": ""}


def _sizes(units: Mapping[str, int | None]) -> dict[Dimension, Size]:
    found: dict[Dimension, Size] = {}
    for name, (dimension, kind) in _SIZES.items():
        asked = units[name]
        if asked is None:
            continue
        if dimension in found:
            raise LeaseError(f"boost: {dimension} is asked for twice; give one of {_names_of(dimension)}")
        found[dimension] = Size(asked, SizeKind(kind))
    if not found:
        raise LeaseError(f"boost: asks for no units; give one of {', '.join(map(_names_of, Dimension))}")
    return found


def _names_of(dimension: Dimension) -> str:
    return ", ".join(f"{dimension}{kind}" for kind in _KINDS)


def _capacity_units(size: Size, target: Target) -> int:
    if size.kind is not SizeKind.RATE:
        return size.units
    return units_for_rate(size.units, int(target.capacity.target_utilization_percent or 100))


def _known(plan: Plan) -> str:
    return ", ".join(target.label for target in plan.targets())


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


# An assumed role, followed by the session's name, which the caller chooses itself
_SESSION: Final = re.compile(r"arn:[^:]+:sts::(\d{12}):assumed-role/([^/]+)/(.+)")
_PRINCIPAL: Final = re.compile(r"arn:[^:]+:iam::(\d{12}):(role|user)/(?:.*/)?([^/]+)")
_EVENTS: Final = "events"


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity that requests a boost.

    Attributes:
        name: `role/Name` or `user/Name` with the account in front, or `events/source`, as authenticated by AWS.
        session: The session's name, which the caller chooses, such as a Lambda function's name; only for the log.
    """

    name: str
    session: str = ""

    @classmethod
    def of_arn(cls, arn: str) -> Caller | None:
        """Return the caller with the ARN that AWS gives to a function behind a URL; `None` for the account's root."""
        session = _SESSION.fullmatch(arn)
        if session is not None:
            return cls(f"{session[1]}:role/{session[2]}", session[3])
        principal = _PRINCIPAL.fullmatch(arn)
        return None if principal is None else cls(f"{principal[1]}:{principal[2]}/{principal[3]}")

    @classmethod
    def of_events(cls, source: str) -> Caller:
        """Return the caller of events with this source; IAM policies decide which identities may put them."""
        return cls(f"{_EVENTS}/{source}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostCap:
    """The grant of one caller.

    Attributes:
        caller: The caller's name, as `Caller.name`.
        max_read: The most read units per second of all the caller's live boosts of one table or index together; for
            an index that is boosted with its table, times its share of the table's writes where it is written more.
        max_write: The same for writes. 0 for none.
        tables: Labels of the tables, `None` for all tables of the coordinator.
    """

    caller: str
    max_read: int
    max_write: int
    tables: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, text: str) -> BoostCap:
        """Parse a grant written by the constructs; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        return _CAP.read(read_document(text))

    def covers(self, table: str) -> bool:
        """Whether the grant is for the table with that label."""
        return self.tables is None or table in self.tables or table_of_label(table)[0] in self.tables

    @property
    def is_for_boosts(self) -> bool:
        """Whether the caller may boost, not only report demand by pulses."""
        return self.max_read > 0 or self.max_write > 0

    def of(self, dimension: Dimension) -> int:
        """Return the most units per second in one dimension."""
        return self.max_read if dimension is Dimension.READ else self.max_write

    def of_lease(self, lease: Lease, boost: Iterable[Lease]) -> int:
        """Return the most units per second for the target of a lease; *boost* are all leases of its boost.

        An index that is boosted with its table may exceed the cap by as much as it is written more than the table.
        """
        units = self.of(lease.dimension)
        table = next((each for each in boost if each.index is None and each.dimension is lease.dimension), None)
        if lease.index is None or table is None:
            return units
        return max(units, -(-units * (lease.asked or lease.units) // (table.asked or table.units)))


def _name_of_caller(text: str) -> str:
    found = Caller.of_arn(text)
    return text if found is None else found.name


_CAP: Final = Codec(
    BoostCap,
    Field("caller", form=Form(read=_name_of_caller)),
    Field("max_read", form=WHOLE),
    Field("max_write", form=WHOLE),
    Field("tables", form=or_none(many()), left_out=None),
)


def find_cap(caps: Iterable[BoostCap], caller: Caller, table: str) -> BoostCap | None:
    """Return the grant of *caller* for a table, `None` for none; several grants count with their highest figures."""
    found = [cap for cap in caps if cap.caller == caller.name and cap.covers(table)]
    if not found:
        return None
    return BoostCap(
        caller=caller.name,
        max_read=max(cap.max_read for cap in found),
        max_write=max(cap.max_write for cap in found),
        tables=(table,),
    )
