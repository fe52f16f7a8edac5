"""Boosts in a rehearsal: what a job would ask for, once or every day, as leases over the traffic's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from highwater.core import Dimension
from highwater.core.boosts import Lease
from highwater_lab.traffic import Traffic

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBoost:
    """A boost that a job asks for.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        units: Units per second, 1 or more.
        is_total: Whether *units* are all that there is to be; by default they are added.
        at: When the job asks: a time of day in UTC for a job of every day, or an aware instant.
        length: How long the boost lasts, up to a day.
    """

    index: str | None = None
    dimension: Dimension
    units: int
    is_total: bool = False
    at: time | datetime
    length: timedelta

    @property
    def label(self) -> str:
        """The boost as it is written on the command line."""
        name = f"{self.index}.{self.dimension}" if self.index else str(self.dimension)
        when = f"{self.at:%H:%M}" if isinstance(self.at, time) else f"{self.at:%Y-%m-%dT%H:%M}"
        total = " in total" if self.is_total else ""
        return f"{name}={self.units}{total} at {when} for {self.length // timedelta(minutes=1)}m"


def leases_of(boosts: Sequence[PlannedBoost], table: str, traffic: Traffic) -> tuple[Lease, ...]:
    """Return the leases that *boosts* become while *traffic* lasts, in the order of their starts.

    Raises `LeaseError` for a boost that no lease can be.
    """
    leases = [
        Lease(
            id=f"{boost.label} {start:%Y-%m-%d}",
            table=table,
            index=boost.index,
            dimension=boost.dimension,
            units=boost.units,
            is_total=boost.is_total,
            start=start,
            end=start + boost.length,
            owner="rehearsal",
            reason=boost.label,
        )
        for boost in boosts
        for start in _starts(boost, traffic)
    ]
    return tuple(sorted(leases, key=lambda lease: lease.start))


def _starts(boost: PlannedBoost, traffic: Traffic) -> Iterator[datetime]:
    end = traffic.start + timedelta(minutes=traffic.minutes)
    if isinstance(boost.at, datetime):
        yield boost.at
        return
    # a boost of the day before may still be open when the traffic begins
    day = (traffic.start.astimezone(UTC) - _DAY).date()
    while (start := datetime.combine(day, boost.at, UTC)) < end:
        if start + boost.length > traffic.start:
            yield start
        day += _DAY
