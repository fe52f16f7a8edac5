"""Local time and instants: the one place that knows how clock changes are read.

The rule: a local time that the clocks skip means the moment they change; a local time that comes twice means its
first coming. Application Auto Scaling documents only that its schedules adjust for daylight saving time; the nearest
documented rule, of EventBridge Scheduler ("Schedule types", read 2026-11), skips a skipped time and runs a repeated
one once. The compiler therefore adds an action at the end of a skipped hour that an edge may fall into.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from highwater.core.limits import FIRST_ZONE_YEAR, LAST_ZONE_YEAR

_MINUTE = timedelta(minutes=1)
MINUTES_PER_DAY = 24 * 60
MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY


# Names of the zone database that name no place, and that AAS would refuse
_LONGEST_ABBREVIATION = 5
_NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_PLACES


@lru_cache(maxsize=256)
def find_zone(name: str) -> ZoneInfo | None:
    """The zone of that IANA name, or `None` where there is none."""
    return ZoneInfo(name) if name in _zone_names() else None


def aware(at: datetime) -> datetime:
    """The instant in UTC; raises `ValueError` for a time without a zone, which would mean this machine's."""
    if at.tzinfo is None:
        message = f"an aware datetime is needed, got {at.isoformat()} without a zone; add tzinfo=UTC or a ZoneInfo"
        raise ValueError(message)
    return at.astimezone(UTC)


def similar_zone(name: str) -> str:
    """The best guess at what *name* was meant to be; UTC where there is none."""
    wanted = name.strip().replace(" ", "_").lower()
    by_name = {zone.lower(): zone for zone in sorted(_zone_names(), reverse=True)}
    by_place = {zone.lower().rsplit("/", 1)[-1]: zone for zone in sorted(_zone_names(), reverse=True) if "/" in zone}
    for names in (by_name, by_place):
        if wanted in names:
            return names[wanted]
    # abbreviations and offsets are near to many names and meant by none
    near = difflib.get_close_matches(wanted, by_name, n=1, cutoff=0.75) if len(wanted) > _LONGEST_ABBREVIATION else []
    return by_name[near[0]] if near else "UTC"


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The UTC instant of the local time *wall* (naive), by the rule at the top of this module."""
    before, after = _offsets(wall, zone)
    as_utc = wall.replace(tzinfo=UTC)
    # a time that is skipped or comes twice has two offsets; the first of the two is the one before the change
    return as_utc - before if before >= after else _change_between(as_utc - after, as_utc - before, zone)


def latest_shown(at: datetime, zone: ZoneInfo) -> datetime:
    """The latest local time (naive, whole minutes) that the zone's clocks have shown by the aware instant *at*.

    What they show at *at*, except in a stretch that comes for the second time: there it is the stretch's last minute.
    So a local time has come by *at* if, and only if, it is not later than this.
    """
    local = at.astimezone(zone).replace(second=0, microsecond=0)
    wall = local.replace(tzinfo=None, fold=0)
    if not local.fold:
        return wall
    before, after = _offsets(wall, zone)
    as_utc = wall.replace(tzinfo=UTC)
    change = _change_between(as_utc - before, as_utc - after, zone)
    return (change + before - _MINUTE).replace(tzinfo=None)


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """The offsets of a local time: the same twice, or those before and after the change that skips or repeats it."""
    before, after = zone.utcoffset(wall.replace(fold=0)), zone.utcoffset(wall.replace(fold=1))
    assert before is not None  # noqa: S101 - a zone always has an offset; tells the type checker
    assert after is not None  # noqa: S101
    return before, after


def _change_between(early: datetime, late: datetime, zone: ZoneInfo) -> datetime:
    """The minute after *early*, up to *late*, from which on the zone's offset is no longer that of *early*."""
    early = early.replace(second=0, microsecond=0)
    offset = _offset(early, zone)
    low, high = 0, -((early - late) // _MINUTE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(early + middle * _MINUTE, zone) == offset else (low, middle)
    return early + high * _MINUTE


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of local time that the clocks skip, as minutes of the week from Monday 00:00; *end* is not in it."""

    start_minute: int
    end_minute: int


@lru_cache(maxsize=256)
def changes(zone: ZoneInfo) -> tuple[tuple[datetime, timedelta, timedelta], ...]:
    """Each clock change of the zone in the years looked at: instant, offset before, offset after."""
    found = []
    at, last = datetime(FIRST_ZONE_YEAR, 1, 1, tzinfo=UTC), datetime(LAST_ZONE_YEAR, 12, 31, tzinfo=UTC)
    offset = _offset(at, zone)
    while at < last:
        following = at + timedelta(days=1)
        new_offset = _offset(following, zone)
        if new_offset != offset:
            found.append((_change_between(at, following, zone), offset, new_offset))
            offset = new_offset
        at = following
    return tuple(found)


@lru_cache(maxsize=256)
def gaps(zone: ZoneInfo) -> tuple[Gap, ...]:
    """The stretches of the week that the zone's clocks skip in some year, without repeats."""
    found = set()
    for at, before, after in changes(zone):
        if after > before:
            start = minute_of_week((at + before).replace(tzinfo=None))
            found.add(Gap(start, start + int((after - before) / _MINUTE)))
    return tuple(sorted(found, key=lambda gap: (gap.start_minute, gap.end_minute)))


@lru_cache(maxsize=256)
def constant_shift(zone: ZoneInfo, reference: ZoneInfo) -> timedelta | None:
    """How far *zone* is ahead of *reference*, where that never changes; `None` where it does."""
    start = datetime(FIRST_ZONE_YEAR, 1, 1, tzinfo=UTC)
    shift = _offset(start, zone) - _offset(start, reference)
    for at, _, _ in changes(zone) + changes(reference):
        if _offset(at, zone) - _offset(at, reference) != shift:
            return None
    return shift


def minute_of_week(wall: datetime) -> int:
    """Minutes from Monday 00:00 to the local time *wall*."""
    return wall.weekday() * MINUTES_PER_DAY + wall.hour * 60 + wall.minute


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101 - tells the type checker
    return offset
