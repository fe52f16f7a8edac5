"""Tables by time: the periods of a time series in UTC, and the table of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

# How far the clocks of writers may be apart
CLOCKS_APART: Final = timedelta(minutes=5)
# Tables are made so many periods ahead
AHEAD: Final = 2
_FORMS: Final = {
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII),
    "month": re.compile(r"(\d{4})-(\d\d)", re.ASCII),
}
# DynamoDB Developer Guide, "Quotas": 3 to 255 characters; the longest ending is that of a day
_PREFIX: Final = re.compile(r"[a-zA-Z0-9_.-]{2,240}", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


class PeriodError(ValueError):
    """A declaration of tables by time, an instant or a query of them that is not valid."""


@dataclass(frozen=True, slots=True)
class Periods:
    """A table for each day or month of a time series, in UTC, and a default table for what has no other place.

    Every program that writes, reads or rotates the tables declares the same.

    Attributes:
        prefix: Begins the tables' names: with `events` they are `events-2026-03`, or `events-2026-03-14` for days, and
            `events-default`.
        every: The length of a period, `"month"` or `"day"`. By default a month.
        late: How long after the end of its period a table still takes items, 0 to 31 days. By default a day. Items that
            are written later than that go to the default table, as the table may have been exported.

    Raises:
        PeriodError: A value is not valid.

    Example:
        ```python
        events = Periods("events", every="month", late=timedelta(days=2))
        assert events.name_for(datetime(2026, 3, 14, tzinfo=UTC)) == "events-2026-03"
        ```
    """

    prefix: str
    every: Literal["day", "month"] = field(default="month", kw_only=True)
    late: timedelta = field(default=timedelta(days=1), kw_only=True)

    def __post_init__(self) -> None:
        """Check the declaration."""
        if not isinstance(self.prefix, str) or not _PREFIX.fullmatch(self.prefix):
            raise PeriodError(
                f"periods: prefix: got {self.prefix!r}, allowed: 2 to 240 letters, digits, '_', '.' and '-'; give "
                "the beginning of the tables' names, such as 'events'"
            )
        if self.every not in _FORMS:
            raise PeriodError(f"periods: every: got {self.every!r}, allowed: 'day', 'month'")
        if not timedelta(0) <= self.late <= timedelta(days=31):
            raise PeriodError(f"periods: late: got {self.late}, allowed: 0 to 31 days")

    @property
    def default(self) -> str:
        """The name of the default table."""
        return f"{self.prefix}-default"

    def name_for(self, at: datetime) -> str:
        """Return the name of the table of an instant, whether that table exists or not.

        Args:
            at: The instant, with a time zone, of the years 1970 to 9998.

        Raises:
            PeriodError: It has no time zone, or is of another year.
        """
        start = self.start_of_period(at)
        day = f"-{start.day:02d}" if self.every == "day" else ""
        return f"{self.prefix}-{start.year:04d}-{start.month:02d}{day}"

    def home_of(self, at: datetime, now: datetime) -> str | None:
        """Return the name of the table to which an item of the instant *at* is written at the time *now*.

        It is `None`, for the default table, once the table of *at* takes no more items, and as long as it is not made.
        """
        last = self.upcoming(now)[-1]
        start = self.start_of_period(at)
        is_open = start <= last and _in_utc("now", now) < self.next_period(start) + self.late
        return self.name_for(at) if is_open else None

    def upcoming(self, now: datetime) -> Sequence[datetime]:
        """Return when the periods begin that have a table at the time *now*: the current one, and those ahead."""
        starts = [self.start_of_period(now)]
        while len(starts) <= AHEAD:
            starts.append(self.next_period(starts[-1]))
        return starts

    def closes(self, start: datetime) -> datetime:
        """Return when no writer writes any more to the table of the period that begins at *start*."""
        return self.next_period(start) + self.late + CLOCKS_APART

    def names(self, start: datetime, end: datetime, *, is_forward: bool = True) -> Iterator[str]:
        """Yield the names of the tables with items from *start* to before *end*, the oldest first.

        Args:
            start: The first instant, with a time zone.
            end: The first instant that is not in the span. With *end* not later than *start*, the span is empty.
            is_forward: Whether the oldest is first; otherwise the newest is.

        Raises:
            PeriodError: An instant is not valid.
        """
        first, stop = _in_utc("start", start), _in_utc("end", end)
        starts = []
        at = self.start_of_period(first)
        while first < stop and at < stop:
            starts.append(at)
            at = self.next_period(at)
        return (self.name_for(each) for each in (starts if is_forward else reversed(starts)))

    def start_of(self, name: str) -> datetime | None:
        """Return when the period of the table of that name begins, `None` for any other table."""
        found = _FORMS[self.every].fullmatch(name.removeprefix(f"{self.prefix}-"))
        if found is None or not name.startswith(f"{self.prefix}-"):
            return None
        year, month, day = (int(part) for part in (*found.groups(), "1")[:3])
        try:
            start = datetime(year, month, day, tzinfo=UTC)
        except ValueError:
            return None
        return start if _FIRST_YEAR <= year <= _LAST_YEAR else None

    def start_of_period(self, at: datetime) -> datetime:
        """Return when the period of an instant begins."""
        start = _in_utc("at", at).replace(hour=0, minute=0, second=0, microsecond=0)
        return start if self.every == "day" else start.replace(day=1)

    def next_period(self, start: datetime) -> datetime:
        """Return when the period after the one that begins at *start* begins."""
        if self.every == "day":
            return start + timedelta(days=1)
        return (start + timedelta(days=31)).replace(day=1)


def _in_utc(name: str, at: datetime) -> datetime:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise PeriodError(f"periods: {name}: got {at!r}, allowed: a datetime with a time zone, such as UTC")
    # the first and the last year of Python's are not converted, as they may have no time in UTC
    found = at.astimezone(UTC) if 1 < at.year < _LAST_YEAR + 1 else at
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise PeriodError(f"periods: {name}: got {at.isoformat()}, allowed: years {_FIRST_YEAR} to {_LAST_YEAR} in UTC")
    return found
