"""Windows: named time intervals in which a floor or ceiling is higher."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from highwater.core.plan.month_days import DAYS, Last, MonthDay
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

DEFAULT_LEAD = timedelta(minutes=5)
_DAY = timedelta(days=1)
_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_LOCAL = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 2000, 2199


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time interval with a higher floor or ceiling; created by `weekly`, `daily`, `monthly` or `once`.

    A window is open from *lead* before *start* until *end*, excluding *end*. Where windows overlap, each bound is the
    highest of the open windows and the base, so the order of declaration has no effect. A recurring window whose *end*
    is not later than its *start* closes on the next day; if both are equal, the window is open for 24 hours. *lead* is
    subtracted from the local time. A local time that a clock change skips means the moment of the change; a local time
    that occurs twice means its first occurrence.

    The constructor does not validate; `check` does.

    Attributes:
        name: The window's name in findings and reports, unique within a resource.
        days: Days of the week on which the window starts, `None` for a monthly or one-off window.
        start: Local time: `HH:MM` for a recurring window, `YYYY-MM-DDTHH:MM` for a one-off window.
        end: Local time, in the same formats. `24:00` is the end of the day.
        timezone: IANA name of the time zone of *start* and *end*.
        read_min: Floor while the window is open, in read units per second. `None` does not change the floor.
        write_min: Floor while the window is open, in write units per second, or `None`.
        read_max: Ceiling while the window is open, in read units per second, or `None`.
        write_max: Ceiling while the window is open, in write units per second, or `None`.
        lead: How long before *start* the window opens, in whole minutes from 0 to 24 hours.
        month_day: The day of the month on which a monthly window starts, `None` for other windows.

    Example:
        ```python
        business = Window.weekly(
            "business", days="MON-FRI", start="08:00", end="18:00", timezone="Europe/Berlin", write_min=4_000
        )
        ```
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
    month_day: MonthDay | None = None

    def __post_init__(self) -> None:
        # a tuple, because windows are dictionary keys and a list has no hash
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
        """Create a window on given days of the week: `days="MON-FRI"`, `"SAT,SUN"` or `["MON", "THU"]`."""
        return cls(
            name=name,
            days=days,  # type: ignore[arg-type] # __post_init__ makes it a tuple
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
        """Create a window on every day of the week."""
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
    def monthly(
        cls,
        name: str,
        *,
        day: int | Last | None = None,
        weekday: str | None = None,
        nth: int | Last | None = None,
        start: str | time,
        end: str | time,
        timezone: str,
        read_min: int | None = None,
        write_min: int | None = None,
        read_max: int | None = None,
        write_max: int | None = None,
        lead: timedelta | Duration = DEFAULT_LEAD,
    ) -> Window:
        """Create a window on one day of each month: `day=1`, `day="last"`, or `weekday="FRI", nth="last"`.

        *day* 29 to 31 means the last day in a month that has no such day. *nth* is 1 to 4, or `"last"`.

        Example:
            ```python
            payday = Window.monthly(
                "payday", day="last", start="06:00", end="20:00", timezone="Europe/Berlin", write_min=9_000
            )
            reports = Window.monthly(
                "reports", weekday="MON", nth=1, start="08:00", end="12:00", timezone="Europe/Berlin", read_min=3_000
            )
            ```
        """
        return cls(
            name=name,
            days=None,
            month_day=MonthDay(day=day, weekday=weekday, nth=nth),
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
        """Create a window that opens once: `start="2026-11-27T00:00"`, local to *timezone*."""
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
        """Whether the window opens every week or every month."""
        return self.days is not None or self.month_day is not None

    @property
    def weeks_differ(self) -> bool:
        """Whether it is open in some weeks and not in others, or on other days: a week does not repeat itself."""
        return self.month_day is not None

    @property
    def days_text(self) -> str:
        """The days on which a recurring window starts: `MON-FRI`, `last day of the month`; empty for a one-off one."""
        if self.month_day is not None:
            return str(self.month_day)
        return self.days if isinstance(self.days, str) else ",".join(self.days or ())

    @property
    def zone(self) -> ZoneInfo:
        """The window's time zone; raises `ValueError` if its name is unknown."""
        zone = find_zone(self.timezone)
        if zone is None:
            raise ValueError(f"unknown timezone {self.timezone!r}")
        return zone


def parse_days(days: str | tuple[str, ...]) -> tuple[int, ...]:
    """Return weekday numbers, Monday 0 to Sunday 6, sorted. A range may cross the weekend, such as `SAT-MON`.

    Raises:
        ValueError: A part is not a day or range of days, or there is none.
    """
    numbers: set[int] = set()
    for part in days.split(",") if isinstance(days, str) else days:
        if not isinstance(part, str):
            raise ValueError(part)
        first, is_range, last = part.strip().upper().partition("-")
        if first not in DAYS or (is_range and last not in DAYS):
            raise ValueError(part)
        low, high = DAYS.index(first), DAYS.index(last or first)
        numbers.update((low + step) % 7 for step in range((high - low) % 7 + 1))
    if not numbers:
        raise ValueError("")
    return tuple(sorted(numbers))


def parse_time_of_day(text: str, *, is_end: bool = True) -> int:
    """Return the minutes from midnight to `HH:MM`. Only an end may be `24:00`, the end of the day.

    Raises:
        ValueError: *text* is not such a time.
    """
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match else -1
    if not 0 <= minutes < MINUTES_PER_DAY + is_end:
        raise ValueError(text)
    return minutes


def parse_local(text: str) -> datetime:
    """Return a naive local time in whole minutes, in the years 2000 to 2199.

    Raises:
        ValueError: *text* is not `YYYY-MM-DDTHH:MM`, or has a UTC offset.
    """
    match = _LOCAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    midnight = datetime.combine(date.fromisoformat(match[1]), time())
    if not _FIRST_YEAR <= midnight.year <= _LAST_YEAR:
        raise ValueError(text)
    return midnight + timedelta(minutes=parse_time_of_day(match[2]))


def _span_of_day(window: Window) -> tuple[int, int]:
    """Return when a recurring window opens and closes, in minutes from midnight of the day of its start."""
    start, end = parse_time_of_day(window.start, is_end=False), parse_time_of_day(window.end)
    return start - window.lead // timedelta(minutes=1), end if end > start else end + MINUTES_PER_DAY


@lru_cache(maxsize=4096)
def weekly_spans(window: Window) -> tuple[tuple[int, int], ...]:
    """Return a weekly window's openings: the minute of the week at which each begins, and its length in minutes.

    The lead is included. The minute may be negative and the interval may pass the end of the week: both wrap around.
    """
    assert window.days is not None  # noqa: S101 - callers pass weekly windows only
    opens, closes = _span_of_day(window)
    return tuple((day * MINUTES_PER_DAY + opens, closes - opens) for day in parse_days(window.days))


def local_openings(window: Window, low: datetime, high: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield each opening of a recurring window that overlaps or touches [*low*, *high*], in order; local times."""
    opens, closes = (timedelta(minutes=minute) for minute in _span_of_day(window))
    # an opening begins up to a day before the day of its start, and ends up to a day after
    first, last = low.date() - 2 * _DAY, high.date() + 2 * _DAY
    if window.month_day is not None:
        days = window.month_day.between(first, last)
    else:
        of_week = parse_days(window.days or ())
        days = (
            first + number * _DAY for number in range((last - first).days) if (first.weekday() + number) % 7 in of_week
        )
    for day in days:
        midnight = datetime.combine(day, time())
        if midnight + closes >= low and midnight + opens <= high:
            yield midnight + opens, midnight + closes


@lru_cache(maxsize=4096)
def once_span(window: Window) -> tuple[datetime, datetime]:
    """Return the instants at which a one-off window opens and closes."""
    return (
        instant(parse_local(window.start) - window.lead, window.zone),
        instant(parse_local(window.end), window.zone),
    )


def openings(window: Window, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield each opening of the window that overlaps [*start*, *end*): begin and end in UTC, in order."""
    if not window.is_recurring:
        opens, closes = once_span(window)
        if opens < end and closes > start and opens < closes:
            yield opens, closes
        return
    zone = window.zone
    # local time differs from UTC by less than a day: openings outside these limits need no costly conversion to UTC
    low, high = (aware(edge).replace(tzinfo=None) + margin for edge, margin in ((start, -_DAY), (end, _DAY)))
    for opens_at, closes_at in local_openings(window, low, high):
        opens, closes = instant(opens_at, zone), instant(closes_at, zone)
        if opens < end and closes > start and opens < closes:
            yield opens, closes


def is_open(window: Window, at: datetime) -> bool:
    """Whether the window is open at the aware instant *at*: open at its opening instant, closed at its closing one."""
    if not window.is_recurring:
        opens, closes = once_span(window)
        return opens <= at < closes
    wall = latest_shown(at, window.zone)
    if window.month_day is not None:
        return any(opens <= wall < closes for opens, closes in local_openings(window, wall, wall))
    minute = minute_of_week(wall)
    return any((minute - opens) % MINUTES_PER_WEEK < length for opens, length in weekly_spans(window))


def _as_text(value: str | time | datetime) -> str:
    """Return a time as text. Seconds and offsets stay in the text, so that `check` reports them."""
    if not isinstance(value, time | datetime):
        return value
    if value.fold:
        return f"{value.isoformat()} (fold=1)"
    is_plain = value.tzinfo is None and not value.second and not value.microsecond
    return value.isoformat(timespec="minutes") if is_plain else value.isoformat()
