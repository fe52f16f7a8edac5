"""Conversion between local time and instants, and the rule for local times around clock changes.

The rule: a local time that a clock change skips means the moment of the change; a local time that occurs twice means
its first occurrence. Application Auto Scaling documents only that its schedules adjust for daylight saving time. The
nearest documented rule is that of EventBridge Scheduler ("Schedule types", read 2026-11): it does not run a schedule
at a skipped time, and runs a schedule at a repeated time once. If a window may open or close in a skipped hour, the
compiler therefore adds an action at the end of that hour.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from highwater.core.limits import FIRST_ZONE_YEAR, LAST_ZONE_YEAR

_MINUTE = timedelta(minutes=1)
MINUTES_PER_HOUR = 60
MINUTES_PER_DAY = 24 * MINUTES_PER_HOUR
MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY


# Entries of the zone database that are not time zones of a place. AAS rejects the first three. The others are
# abbreviations: most of them are the same hour all year, although the places that use them change their clocks.
_LONGEST_ABBREVIATION = 5
_NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
_ABBREVIATIONS = frozenset(
    {"CET", "CST6CDT", "EET", "EST", "EST5EDT", "HST", "MET", "MST", "MST7MDT", "PST8PDT", "WET"}
)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_PLACES - _ABBREVIATIONS


@lru_cache(maxsize=256)
def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone with the IANA name *name*, or `None` if there is none."""
    return ZoneInfo(name) if name in _zone_names() else None


def aware(at: datetime) -> datetime:
    """Return the instant in UTC.

    Raises:
        ValueError: *at* has no time zone. Python would take it for local time of this machine.
    """
    if at.tzinfo is None:
        message = f"an aware datetime is needed, got {at.isoformat()} without a zone; add tzinfo=UTC or a ZoneInfo"
        raise ValueError(message)
    return at.astimezone(UTC)


def similar_zone(name: str) -> str:
    """Return the zone name that is most similar to *name*, or `UTC` if none is similar."""
    wanted = name.strip().replace(" ", "_").lower()
    by_name = {zone.lower(): zone for zone in _zone_names()}
    # of places with the same name, the first in the alphabet
    by_place = {zone.lower().rpartition("/")[2]: zone for zone in sorted(_zone_names(), reverse=True) if "/" in zone}
    for names in (by_name, by_place):
        if wanted in names:
            return names[wanted]
    # abbreviations such as CET and offsets resemble many names by chance
    is_long = len(wanted) > _LONGEST_ABBREVIATION
    similar = difflib.get_close_matches(wanted, by_name, cutoff=0.75) if is_long else []
    return by_name[similar[0]] if similar else "UTC"


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the UTC instant of the naive local time *wall*, by the rule at the top of this module."""
    before, after = _offsets(wall, zone)
    as_utc = wall.replace(tzinfo=UTC)
    # a skipped or repeated local time has two offsets, before and after the change
    return as_utc - before if before >= after else _change_between(as_utc - after, as_utc - before, zone)


def latest_shown(at: datetime, zone: ZoneInfo) -> datetime:
    """Return the latest local time (naive, whole minutes) that the zone's clocks have shown by the aware instant *at*.

    This is the local time at *at*, except during the second run of a repeated hour: there it is the last minute of that
    hour. A local time has been reached by *at* if, and only if, it is not later than the result.
    """
    local = at.astimezone(zone).replace(second=0, microsecond=0)
    wall = local.replace(tzinfo=None)
    if not local.fold:
        return wall
    before, after = _offsets(wall, zone)
    as_utc = wall.replace(tzinfo=UTC)
    change = _change_between(as_utc - before, as_utc - after, zone)
    return (change + before - _MINUTE).replace(tzinfo=None)


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets before and after the clock change that skips or repeats *wall*; equal if there is none."""
    before, after = zone.utcoffset(wall.replace(fold=0)), zone.utcoffset(wall.replace(fold=1))
    assert before is not None  # noqa: S101 - a zone always has an offset; narrows the type
    assert after is not None  # noqa: S101
    return before, after


def _change_between(early: datetime, late: datetime, zone: ZoneInfo) -> datetime:
    """Return the first minute after *early*, at most *late*, at which the zone's offset is not that of *early*."""
    early = early.replace(second=0, microsecond=0)
    offset = _offset(early, zone)
    low, high = 0, -((early - late) // _MINUTE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(early + middle * _MINUTE, zone) == offset else (low, middle)
    return early + high * _MINUTE


@dataclass(frozen=True, slots=True)
class Gap:
    """Local time that a clock change skips, in minutes of the week from Monday 00:00; `end_minute` is excluded."""

    start_minute: int
    end_minute: int


@lru_cache(maxsize=256)
def changes(zone: ZoneInfo) -> tuple[tuple[datetime, timedelta, timedelta], ...]:
    """Return the clock changes from `FIRST_ZONE_YEAR` to `LAST_ZONE_YEAR`: instant, offset before, offset after."""
    clock_changes = []
    at, last = datetime(FIRST_ZONE_YEAR, 1, 1, tzinfo=UTC), datetime(LAST_ZONE_YEAR, 12, 31, tzinfo=UTC)
    offset = _offset(at, zone)
    while at < last:
        following = at + timedelta(days=1)
        new_offset = _offset(following, zone)
        if new_offset != offset:
            clock_changes.append((_change_between(at, following, zone), offset, new_offset))
            offset = new_offset
        at = following
    return tuple(clock_changes)


@lru_cache(maxsize=256)
def gaps(zone: ZoneInfo) -> tuple[Gap, ...]:
    """Return the parts of the week that the zone's clocks skip in at least one year, without duplicates."""
    skipped = set()
    for at, before, after in changes(zone):
        if after > before:
            start = minute_of_week((at + before).replace(tzinfo=None))
            skipped.add(Gap(start, start + int((after - before) / _MINUTE)))
    return tuple(sorted(skipped, key=lambda gap: (gap.start_minute, gap.end_minute)))


@lru_cache(maxsize=256)
def constant_shift(zone: ZoneInfo, reference: ZoneInfo) -> timedelta | None:
    """Return how far *zone* is ahead of *reference*, or `None` if the difference changes during the year."""
    start = datetime(FIRST_ZONE_YEAR, 1, 1, tzinfo=UTC)
    shift = _offset(start, zone) - _offset(start, reference)
    for at, _, _ in changes(zone) + changes(reference):
        if _offset(at, zone) - _offset(at, reference) != shift:
            return None
    return shift


def minute_of_week(wall: datetime) -> int:
    """Return the minutes from Monday 00:00 to the local time *wall*."""
    return wall.weekday() * MINUTES_PER_DAY + wall.hour * 60 + wall.minute


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101 - a zone always has an offset; narrows the type
    return offset
