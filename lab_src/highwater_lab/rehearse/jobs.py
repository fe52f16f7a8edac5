"""Boosts and background work in a rehearsal: what a job requests, reads or writes, once or every day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from highwater.core import Dimension
from highwater.core.boosts import Lease, units_for_rate
from highwater.core.boosts.lease import LONGEST_BOOST
from highwater.core.pacing.following import RateGoal, Start
from highwater_lab.simulation import JobSetup, TableSetup
from highwater_lab.traffic import Traffic

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBoost:
    """A boost that a job requests.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        units: Units per second, 1 or more.
        is_total: Whether *units* are the total that the floor has to reach; by default they are added.
        at: The time of the request: a time of day in UTC for a daily job, or an aware instant.
        length: The length of the lease, up to a day.
    """

    index: str | None = None
    dimension: Dimension
    units: int
    is_total: bool = False
    at: time | datetime
    length: timedelta

    @property
    def label(self) -> str:
        """The boost in the form of the command line."""
        amount = f"{self.units}{' in total' if self.is_total else ''}"
        return f"{_asked(self, amount)} for {self.length // timedelta(minutes=1)}m"


def leases_of(boosts: Sequence[PlannedBoost], table: str, traffic: Traffic) -> tuple[Lease, ...]:
    """Return the leases of *boosts* while *traffic* lasts, in the order of their starts.

    Raises `LeaseError` for a boost whose lease is not allowed.
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
        if isinstance(boost.at, datetime) or start + boost.length > traffic.start
    ]
    return tuple(sorted(leases, key=lambda lease: lease.start))


_SOME_DAY: Final = date(2027, 3, 4)
# From the request until a quiet table has the capacity
_UNTIL_READY: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """Background work within a budget.

    Attributes:
        index: Name of the index that is read, `None` for the table. Writes are always to the table.
        dimension: READ or WRITE.
        rate: Its rate in units per second, 1 or more; 0 if *percent* is given.
        percent: Its rate as a share of the provisioned capacity instead.
        units: The units that it has to consume in all.
        start: How it starts.
        allow_throttles: Whether it keeps its rate when it is throttled.
        workers: How many workers share its rate, 1 or more.
        at: When it starts: a time of day in UTC for a daily job, or an aware instant.
    """

    index: str | None = None
    dimension: Dimension
    rate: int = 0
    percent: int | None = None
    units: int
    start: Start = Start.FULL
    allow_throttles: bool = False
    workers: int = 1
    at: time | datetime

    @property
    def label(self) -> str:
        """The job in the form of the command line."""
        asked = _asked(self, str(self.rate) if self.percent is None else f"{self.percent}%")
        how = "" if self.start is Start.FULL else f" {self.start}"
        how = f" by {self.workers} workers{how}" if self.workers > 1 else how
        return f"{asked} for {self.units} units{how}{' throttled' if self.allow_throttles else ''}"

    def boost(self, target_percent: int) -> PlannedBoost | None:
        """Return the boost of a boosted job, from two minutes before its start until its end at its rate.

        It is as large as needed to keep the headroom of a table with *target_percent* as target utilization.
        """
        if self.start is not Start.BOOSTED:
            return None
        at = datetime.combine(_SOME_DAY, self.at, UTC) if isinstance(self.at, time) else self.at
        asked_at = at - _UNTIL_READY
        return PlannedBoost(
            index=self.index,
            dimension=self.dimension,
            units=units_for_rate(self.rate, target_percent),
            at=asked_at.time() if isinstance(self.at, time) else asked_at,
            length=min(_UNTIL_READY + timedelta(seconds=-(-self.units // self.rate)), LONGEST_BOOST),
        )


def jobs_of(planned: Sequence[PlannedJob], traffic: Traffic) -> tuple[JobSetup, ...]:
    """Return the jobs that start while *traffic* lasts, in the order of their starts."""
    end = traffic.start + timedelta(minutes=traffic.minutes)
    jobs = [
        JobSetup(
            name=each.label if isinstance(each.at, datetime) else f"{each.label}, {at:%Y-%m-%d}",
            index=each.index,
            dimension=each.dimension,
            goal=RateGoal(
                milliunits=None if each.percent is not None else each.rate * 1_000,
                percent=each.percent,
                is_slow=each.start is not Start.FULL,
            ),
            units=each.units,
            at=at,
            allow_throttles=each.allow_throttles,
            workers=each.workers,
        )
        for each in planned
        for at in _starts(each, traffic)
        if traffic.start <= at < end
    ]
    return tuple(sorted(jobs, key=lambda job: job.at))


def boosts_of(planned: Sequence[PlannedJob], setup: TableSetup) -> list[PlannedBoost]:
    """Return the boosts of those jobs that start boosted."""
    targets = {
        (resource.index, dimension): resource.target(dimension).tracking
        for resource in setup.resources
        for dimension in Dimension
    }
    found = []
    for each in planned:
        tracking = targets.get((each.index, each.dimension))
        found.append(each.boost(100 if tracking is None else tracking.target_percent))
    return [boost for boost in found if boost is not None]


def _asked(planned: PlannedBoost | PlannedJob, amount: str) -> str:
    """Return target, amount and time in the form of the command line."""
    name = f"{planned.index}.{planned.dimension}" if planned.index else str(planned.dimension)
    when = f"{planned.at:%H:%M}" if isinstance(planned.at, time) else f"{planned.at:%Y-%m-%dT%H:%M}"
    return f"{name}={amount} at {when}"


def _starts(planned: PlannedBoost | PlannedJob, traffic: Traffic) -> Iterator[datetime]:
    """Yield when it starts; a daily one from the day before *traffic*, as it may still last when the traffic begins."""
    if isinstance(planned.at, datetime):
        yield planned.at
        return
    day = (traffic.start.astimezone(UTC) - _DAY).date()
    while (start := datetime.combine(day, planned.at, UTC)) < traffic.start + timedelta(minutes=traffic.minutes):
        yield start
        day += _DAY
