"""A small model of Application Auto Scaling's scheduled actions, written apart from the compiler that it judges.

It knows nothing of windows. It steps through UTC minute by minute, looks at the local clock of the action's zone, and
runs what matches. A local time that the clocks skip never shows on the clock and so never runs; one that comes twice
runs on its first coming. Instants and local times are both counted in minutes from 1970.
"""

from __future__ import annotations

import calendar
import itertools
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from zoneinfo import ZoneInfo

from highwater.core import Bounds, ScheduledAction

DAY = 24 * 60
DAYS_OF_CRON = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS_OF_CRON = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)\)")
_CRON = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")

Change = tuple[int, Bounds]


def day_minute(day: date) -> int:
    """Midnight of *day*, local or UTC."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY


# the days looked at: 2027, and what a window or a lead may reach into
FIRST_DAY, LAST_DAY = date(2026, 12, 1), date(2028, 3, 1)
FIRST, LAST = day_minute(FIRST_DAY), day_minute(LAST_DAY)


def minute_of(at: datetime) -> int:
    """The aware instant *at* in minutes; it must be a whole one."""
    seconds = at.timestamp()
    assert seconds % 60 == 0, f"{at} is no whole minute"
    return int(seconds) // 60


def instant_at(minute: int) -> datetime:
    """The UTC instant at *minute*."""
    return datetime.fromtimestamp(minute * 60, UTC)


@dataclass(frozen=True)
class Clock:
    """What the wall clock of a zone shows at each minute of UTC, and the latest that it has ever shown by then."""

    walls: Sequence[int]
    latest: Sequence[int]

    def when(self, wall: int) -> int:
        """The first minute at which the clock shows *wall*; where it skips *wall*, the first one past it."""
        position = bisect_left(self.latest, wall)
        assert 0 < position < len(self.latest), "a local time outside the days looked at"
        return FIRST + position

    def shows(self, wall: int) -> bool:
        """Whether the clock ever shows *wall*."""
        return self.walls[self.when(wall) - FIRST] == wall


@lru_cache(maxsize=64)
def clock_of(timezone: str) -> Clock:
    """The clock of *timezone* at every minute from `FIRST` to `LAST`."""
    zone = ZoneInfo(timezone)
    walls, latest, offset = array("i"), array("i"), _offset_minutes(FIRST, zone)
    for start in range(FIRST, LAST, DAY):
        next_offset = _offset_minutes(start + DAY, zone)
        # clocks change once a day at most: between two days that begin alike, no minute differs
        day: Sequence[int] = range(start + offset, start + offset + DAY)
        if offset != next_offset:
            day = [minute + _offset_minutes(minute, zone) for minute in range(start, start + DAY)]
        highest = max([day[0], *latest[-1:]])
        walls.extend(day)
        latest.extend(day if offset == next_offset and highest == day[0] else accumulate((highest, *day[1:]), max))
        offset = next_offset
    return Clock(walls, latest)


@lru_cache(maxsize=64)
def clock_changes(timezone: str) -> tuple[tuple[int, int, int], ...]:
    """Each clock change: the minute, what the clock would have shown, and what it shows instead."""
    walls = clock_of(timezone).walls
    days = (first for first in range(0, len(walls) - DAY, DAY) if walls[first + DAY] != walls[first] + DAY)
    steps = ((at, walls[at - 1] + 1, walls[at]) for first in days for at in range(first + 1, first + DAY + 1))
    return tuple((FIRST + at, expected, shown) for at, expected, shown in steps if shown != expected)


def _offset_minutes(minute: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) // 60


def run_minutes(action: ScheduledAction, start: int, end: int) -> Iterator[int]:
    """The minutes of [*start*, *end*) at which the action runs, not necessarily in order."""
    clock = clock_of(action.timezone)
    if once := _AT.fullmatch(action.schedule):
        assert action.start is action.end is None, "a single run has neither start nor end"
        assert once[4] == "00", "a single run at no whole minute"
        walls = [day_minute(date.fromisoformat(once[1])) + int(once[2]) * 60 + int(once[3])]
    else:
        walls = list(_matching_walls(action.schedule))
        if action.start is not None and start <= minute_of(action.start) < end and _is_within(action, action.start):
            yield minute_of(action.start)
    # a wall clock is never a whole day away from UTC
    for wall in walls[bisect_left(walls, start - DAY) : bisect_left(walls, end + DAY)]:
        minute = clock.when(wall)
        if clock.shows(wall) and start <= minute < end and _is_within(action, instant_at(minute)):
            yield minute


def play(actions: Iterable[ScheduledAction], initial: Bounds, start: int, end: int) -> tuple[Change, ...]:
    """The bounds over [*start*, *end*): those at *start*, then every change, as the actions make them.

    No two actions may run at the same minute: nothing says which is first, and of 52 that were due in one second at
    least eight were never carried out (recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle).
    """
    runs: dict[int, ScheduledAction] = {}
    for action in actions:
        for minute in run_minutes(action, start, end):
            other = runs.setdefault(minute, action)
            assert other is action, f"{other.name!r} and {action.name!r} both run at {instant_at(minute)}"
    return changes_only([(start, initial), *((minute, runs[minute].bounds) for minute in sorted(runs))])


def changes_only(steps: Iterable[Change]) -> tuple[Change, ...]:
    """The steps that differ from the one before; of two at the same minute the later one counts."""
    kept: list[Change] = []
    for minute, bounds in steps:
        if kept and kept[-1][0] == minute:
            kept.pop()
        if not kept or kept[-1][1] != bounds:
            kept.append((minute, bounds))
    return tuple(kept)


def _is_within(action: ScheduledAction, at: datetime) -> bool:
    return (action.start is None or at >= action.start) and (action.end is None or at <= action.end)


@lru_cache(maxsize=20_000)
def _matching_walls(schedule: str) -> tuple[int, ...]:
    """Every local minute that a cron schedule matches on the days looked at."""
    return tuple(walls_of_cron(schedule, FIRST_DAY + timedelta(days=1), LAST_DAY - timedelta(days=1)))


def walls_of_cron(schedule: str, first: date, last: date) -> Iterator[int]:
    """Every local minute that a cron schedule matches from *first* up to, and not including, *last*."""
    fields = _CRON.fullmatch(schedule)
    assert fields is not None, f"no schedule that the service reads: {schedule!r}"
    assert [fields[3], fields[5]].count("?") == 1, f"just one of the two day fields must be '?': {schedule!r}"
    minutes, hours = _numbers(fields[1], range(60)), _numbers(fields[2], range(24))
    months, years = _numbers(fields[4], range(1, 13), MONTHS_OF_CRON), _numbers(fields[6], range(1970, 2200))
    for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        year, number = month // 12, month % 12 + 1
        if number in months and year in years:
            days = [date(year, number, day) for day in _days_in(fields[3], fields[5], year, number)]
            for day, hour, minute in itertools.product(days, sorted(hours), sorted(minutes)):
                if first <= day < last:
                    yield day_minute(day) + hour * 60 + minute


@lru_cache(maxsize=20_000)
def _days_in(of_month: str, of_week: str, year: int, month: int) -> tuple[int, ...]:
    """The days of a month that the two fields of days match."""
    weeks = calendar.monthcalendar(year, month)
    days = range(1, max(weeks[-1]) + 1)
    if of_month == "L":
        return (days[-1],)
    if of_month != "?":
        return tuple(day for day in days if day in _numbers(of_month, range(1, 32)))
    # `6#2` is the second Friday, `6L` the last one
    if found := re.fullmatch(r"([1-7])(?:#([1-5])|L)", of_week):
        of_that_weekday = [day for week in weeks if (day := week[(int(found[1]) + 5) % 7])]
        return tuple(of_that_weekday[int(found[2]) - 1 if found[2] else -1 :][:1])
    numbers = _numbers(of_week, range(1, 8), DAYS_OF_CRON)
    return tuple(day for day in days if date(year, month, day).isoweekday() % 7 + 1 in numbers)


def _numbers(field: str, allowed: range, names: tuple[str, ...] = ()) -> frozenset[int]:
    """The values of one cron field: `*`, `?`, numbers, names, ranges that may wrap, steps, and lists of these."""
    if field in ("*", "?"):
        return frozenset(allowed)
    found: set[int] = set()
    for part in field.split(","):
        begin, is_step, step = part.partition("/")
        if is_step:
            found.update(range(int(begin), allowed.stop, int(step)))
            continue
        first, _, last = part.partition("-")
        low, high = (
            allowed.start + names.index(text) if text in names else int(text) for text in (first, last or first)
        )
        assert {low, high} <= set(allowed), f"{part!r} is out of range"
        # SAT-MON and the like wrap
        found.update(
            range(low, high + 1) if low <= high else {*range(low, allowed.stop), *range(allowed.start, high + 1)}
        )
    return frozenset(found)
