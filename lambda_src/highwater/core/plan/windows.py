"""Windows: named stretches of time in which a floor or ceiling is higher."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from highwater.core.plan.zones import (
    MINUTES_PER_DAY,
    MINUTES_PER_WEEK,
    aware,
    find_zone,
    instant,
    latest_shown,
    minute_of_week,
)
from highwater.core.units import Duration, as_timedelta

DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
DEFAULT_LEAD = timedelta(minutes=5)
_DAY = timedelta(days=1)
_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_LOCAL = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 2000, 2199


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time, recurring or one-off, with a higher floor or ceiling; made with `weekly`, `daily` or `once`.

    Open from *start* less *lead* up to, not including, *end*. Where windows overlap, each bound is the highest of the
    open windows and the base; the order in which they are declared means nothing. A window whose *end* is not later
    than its *start* closes on the next day; the same time twice is a whole day. *lead* is counted on the wall clock.
    A local time that a clock change skips means the moment of the change, one that comes twice its first coming.

    Holds what was declared, right or wrong; `check` judges it.

    Attributes:
        name: Unique within a resource; the findings and reports speak of the window by it.
        days: Days of the week on which the window starts, `None` for a one-off window.
        start: `HH:MM` of a recurring window, `YYYY-MM-DDTHH:MM` of a one-off one, both local.
        end: Likewise; here `24:00` is the end of the day.
        timezone: IANA name of the zone that the times are local to.
        read_min: Floor while open, in read units per second; `None` leaves the floor alone. Likewise the others.
        write_min: Floor in write units per second.
        read_max: Ceiling in read units per second.
        write_max: Ceiling in write units per second.
        lead: How long before *start* the rise comes, whole minutes up to a day.
    """

    name: str
    days: str | tuple[str, ...] | None
    start: str
    end: str
    timezone: str
    read_min: int | None = None
    write_min: int | None = None
    read_max: int | None = None
    write_max: int | None = None
    lead: timedelta = DEFAULT_LEAD

    def __post_init__(self) -> None:
        # a list would do for a person, but not for a value that is compared and looked up
        if self.days is not None and not isinstance(self.days, str):
            days = self.days if isinstance(self.days, Iterable) else (self.days,)
            object.__setattr__(self, "days", tuple(days))

    @classmethod
    def weekly(
        cls,
        name: str,
        *,
        days: str | Sequence[str],
        start: str | time,
        end: str | time,
        timezone: str,
        read_min: int | None = None,
        write_min: int | None = None,
        read_max: int | None = None,
        write_max: int | None = None,
        lead: timedelta | Duration = DEFAULT_LEAD,
    ) -> Window:
        """A window on given days of the week: `days="MON-FRI"`, `"SAT,SUN"` or `["MON", "THU"]`."""
        return cls(
            name=name,
            days=days,  # type: ignore[arg-type] # made a tuple above
            start=_as_text(start),
            end=_as_text(end),
            timezone=timezone,
            read_min=read_min,
            write_min=write_min,
            read_max=read_max,
            write_max=write_max,
            lead=as_timedelta(lead),
        )

    @classmethod
    def daily(
        cls,
        name: str,
        *,
        start: str | time,
        end: str | time,
        timezone: str,
        read_min: int | None = None,
        write_min: int | None = None,
        read_max: int | None = None,
        write_max: int | None = None,
        lead: timedelta | Duration = DEFAULT_LEAD,
    ) -> Window:
        """A window on every day of the week."""
        return cls.weekly(
            name,
            days=DAYS,
            start=start,
            end=end,
            timezone=timezone,
            read_min=read_min,
            write_min=write_min,
            read_max=read_max,
            write_max=write_max,
            lead=as_timedelta(lead),
        )

    @classmethod
    def once(
        cls,
        name: str,
        *,
        start: str | datetime,
        end: str | datetime,
        timezone: str,
        read_min: int | None = None,
        write_min: int | None = None,
        read_max: int | None = None,
        write_max: int | None = None,
        lead: timedelta | Duration = DEFAULT_LEAD,
    ) -> Window:
        """A window that opens a single time: `start="2026-11-27T00:00"`, local to *timezone*."""
        return cls(
            name=name,
            days=None,
            start=_as_text(start),
            end=_as_text(end),
            timezone=timezone,
            read_min=read_min,
            write_min=write_min,
            read_max=read_max,
            write_max=write_max,
            lead=as_timedelta(lead),
        )

    @property
    def is_recurring(self) -> bool:
        """Whether the window comes again every week."""
        return self.days is not None

    @property
    def zone(self) -> ZoneInfo:
        """The zone; raises `ValueError` for an unknown name."""
        zone = find_zone(self.timezone)
        if zone is None:
            raise ValueError(f"unknown timezone {self.timezone!r}")
        return zone


def parse_days(days: str | tuple[str, ...]) -> tuple[int, ...]:
    """Days as numbers from Monday 0, sorted; raises `ValueError` for what is no day. Ranges may pass the weekend."""
    found: set[int] = set()
    for part in days.split(",") if isinstance(days, str) else days:
        if not isinstance(part, str):
            raise ValueError(part)
        first, is_range, last = part.strip().upper().partition("-")
        if first not in DAYS or (is_range and last not in DAYS):
            raise ValueError(part)
        low, high = DAYS.index(first), DAYS.index(last or first)
        found.update((low + step) % 7 for step in range((high - low) % 7 + 1))
    if not found:
        raise ValueError("")
    return tuple(sorted(found))


def parse_time_of_day(text: str, *, is_end: bool = True) -> int:
    """Minutes from midnight of `HH:MM`; raises `ValueError`. Only an end may be `24:00`, the end of the day."""
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match else -1
    if not 0 <= minutes < MINUTES_PER_DAY + is_end:
        raise ValueError(text)
    return minutes


def parse_local(text: str) -> datetime:
    """A naive local time in whole minutes; raises `ValueError`, also for one that brings an offset of its own."""
    match = _LOCAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    midnight = datetime.combine(date.fromisoformat(match[1]), time())
    if not _FIRST_YEAR <= midnight.year <= _LAST_YEAR:
        raise ValueError(text)
    return midnight + timedelta(minutes=parse_time_of_day(match[2]))


@lru_cache(maxsize=4096)
def weekly_spans(window: Window) -> tuple[tuple[int, int], ...]:
    """A recurring window's openings: minute of the week at which it opens, lead taken off, and its length in minutes.

    The minute may be negative or the span pass the week's end: both wrap.
    """
    assert window.days is not None  # noqa: S101 - callers pass recurring windows only
    start, end = parse_time_of_day(window.start, is_end=False), parse_time_of_day(window.end)
    length = end - start if end > start else end - start + MINUTES_PER_DAY
    lead = window.lead // timedelta(minutes=1)
    return tuple((day * MINUTES_PER_DAY + start - lead, length + lead) for day in parse_days(window.days))


@lru_cache(maxsize=4096)
def once_span(window: Window) -> tuple[datetime, datetime]:
    """A one-off window's opening and closing instants."""
    return (
        instant(parse_local(window.start) - window.lead, window.zone),
        instant(parse_local(window.end), window.zone),
    )


def openings(window: Window, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Each opening of the window that touches [*start*, *end*): opening and closing instants in UTC, in order."""
    if not window.is_recurring:
        opens, closes = once_span(window)
        if opens < end and closes > start and opens < closes:
            yield opens, closes
        return
    zone = window.zone
    # no wall clock is a whole day away from UTC: what is farther away is left out before it costs a conversion
    low, high = (aware(edge).replace(tzinfo=None) + away for edge, away in ((start, -_DAY), (end, _DAY)))
    # an opening may reach two days into the next week, and with its lead begin in the week before its own
    midnight, last = _monday(low - 2 * _DAY), high + _DAY
    while midnight < last:
        for minute, length in weekly_spans(window):
            opens_at = midnight + timedelta(minutes=minute)
            closes_at = opens_at + timedelta(minutes=length)
            if closes_at > low and opens_at < high:
                opens, closes = instant(opens_at, zone), instant(closes_at, zone)
                if opens < end and closes > start and opens < closes:
                    yield opens, closes
        midnight += 7 * _DAY


def is_open(window: Window, at: datetime) -> bool:
    """Whether the window is open at the aware instant *at*; openings are half-open."""
    if not window.is_recurring:
        opens, closes = once_span(window)
        return opens <= at < closes
    return covers_minute(window, minute_of_week(latest_shown(at, window.zone)))


def covers_minute(window: Window, minute: int, shift_minutes: int = 0) -> bool:
    """Whether a recurring window is open at that minute of an ordinary week, told in a zone *shift_minutes* behind."""
    return any((minute - (opens - shift_minutes)) % MINUTES_PER_WEEK < length for opens, length in weekly_spans(window))


def _monday(at: datetime) -> datetime:
    return datetime.combine(at.date() - timedelta(days=at.weekday()), time())


def _as_text(value: str | time | datetime) -> str:
    """Times as text; what cannot be kept, seconds or an offset, stays to be seen and refused."""
    if not isinstance(value, time | datetime):
        return value
    if value.fold:
        return f"{value.isoformat()} (the second coming)"
    is_plain = value.tzinfo is None and not value.second and not value.microsecond
    return value.isoformat(timespec="minutes") if is_plain else value.isoformat()
