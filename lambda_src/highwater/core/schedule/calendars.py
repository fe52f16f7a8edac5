"""Recurring windows as a calendar: the kinds of days in 28 years, and when bounds change on each of them.

All days of a kind have the same windows open at the same minutes. Weekly windows alone make seven kinds, the days of
the week; each monthly window adds some. No day has a clock change here: what a change skips is added afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import local_openings, weekly_spans
from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_WEEK, constant_shift, gaps
from highwater.core.schedule.bounds import Bounds, bounds_with
from highwater.core.schedule.cron_days import DAY_COUNT, EVERY_DAY, FIRST_DAY, OF_WEEK, DaySet, moved

_MINUTE = timedelta(minutes=1)
# windows, each with the minutes by which its own zone is ahead of the calendar's
Shifted: TypeAlias = tuple[tuple[TargetWindow, int], ...]


@dataclass(frozen=True, slots=True)
class Calendar:
    """Recurring windows of zones with a constant difference.

    Attributes:
        timezone: IANA name of the zone in which the days are expressed.
        zone: The zone of that name.
        windows: The windows, each with the minutes by which its own zone is ahead of *zone*.
    """

    timezone: str
    zone: ZoneInfo
    windows: Shifted

    @property
    def has_months(self) -> bool:
        """Whether some window is monthly, so that weeks differ."""
        return any(w.window.weeks_differ for w, _ in self.windows)


@dataclass(frozen=True, slots=True)
class DayKind:
    """Days on which the same windows are open at the same minutes.

    Attributes:
        days: The days.
        spans: Windows, each with the minutes from midnight at which it opens and closes; may be outside the day.
    """

    days: DaySet
    spans: tuple[tuple[TargetWindow, int, int], ...]

    def open_at(self, minute: int) -> tuple[TargetWindow, ...]:
        """Return the windows that are open at *minute* of the day, from -1 on."""
        return tuple(w for w, opens, closes in self.spans if opens <= minute < closes)

    @property
    def edges(self) -> frozenset[int]:
        """The minutes of the day at which a window opens or closes."""
        edges = frozenset(edge for _, *edges in self.spans for edge in edges)
        return edges & frozenset(range(MINUTES_PER_DAY))


@dataclass(frozen=True, slots=True)
class DayChange:
    """Bounds that actions must set at a minute of some days.

    Attributes:
        minute: The minute of the day.
        bounds: The bounds from then on.
        days: The days.
        owner: A window that opens or closes then, or in the time before that a clock change may skip.
    """

    minute: int
    bounds: Bounds
    days: DaySet
    owner: TargetWindow


def calendars_of(target: Target) -> tuple[Calendar, ...]:
    """Return the target's recurring windows, one calendar for each group of zones with a constant difference.

    A calendar is expressed in the zone of its group that is first in the alphabet.
    """
    by_zone: dict[str, list[tuple[TargetWindow, int]]] = {}
    recurring = [w for w in target.windows if w.window.is_recurring]
    for target_window in sorted(recurring, key=lambda w: w.window.timezone):
        zone = target_window.window.zone
        for reference in by_zone:
            shift = constant_shift(zone, ZoneInfo(reference))
            if shift is not None:
                by_zone[reference].append((target_window, shift // _MINUTE))
                break
        else:
            by_zone[target_window.window.timezone] = [(target_window, 0)]
    return tuple(Calendar(name, ZoneInfo(name), tuple(windows)) for name, windows in by_zone.items())


@lru_cache(maxsize=1024)
def day_kinds(windows: Shifted) -> tuple[DayKind, ...]:
    """Return the kinds of days that recurring windows make. Each day is of one kind."""
    of_week = [tuple(_weekly_spans_on(windows, weekday)) for weekday in range(7)]
    monthly: dict[int, list[tuple[TargetWindow, int, int]]] = {}
    for target_window, shift in windows:
        if target_window.window.month_day is not None:
            for opens, closes in _openings_in_cycle(target_window, shift):
                # the day of the close too: the bounds change then, even at its first minute
                for day in range(opens // MINUTES_PER_DAY, closes // MINUTES_PER_DAY + 1):
                    midnight = day * MINUTES_PER_DAY
                    spans = monthly.setdefault(day % DAY_COUNT, [])
                    spans.append((target_window, opens - midnight, closes - midnight))
    kinds: dict[tuple[int, tuple[tuple[TargetWindow, int, int], ...]], DaySet] = {}
    for day, spans in monthly.items():
        key = day % 7, tuple(spans)
        kinds[key] = kinds.get(key, 0) | 1 << day
    ordinary = EVERY_DAY & ~sum(kinds.values())
    found = [DayKind(OF_WEEK[weekday] & ordinary, of_week[weekday]) for weekday in range(7)]
    found += [DayKind(days, (*of_week[weekday], *spans)) for (weekday, spans), days in kinds.items()]
    return tuple(kind for kind in found if kind.days)


def _weekly_spans_on(windows: Shifted, weekday: int) -> Iterator[tuple[TargetWindow, int, int]]:
    for target_window, shift in windows:
        if target_window.window.days is None:
            continue
        for minute, length in weekly_spans(target_window.window):
            opens = minute - shift - weekday * MINUTES_PER_DAY
            for first in (opens - MINUTES_PER_WEEK, opens, opens + MINUTES_PER_WEEK):
                if first < MINUTES_PER_DAY and first + length >= 0:
                    yield target_window, first, first + length


def _openings_in_cycle(target_window: TargetWindow, shift: int) -> Iterator[tuple[int, int]]:
    """Yield the openings of a monthly window in the 28 years, in minutes from their first."""
    start = datetime.combine(FIRST_DAY, time())
    last = start + timedelta(days=DAY_COUNT)
    for opens, closes in local_openings(target_window.window, start, last):
        # those that reach into the years are left to the end of the years, which is like the end of the year before
        if start <= opens < last:
            yield (opens - start) // _MINUTE - shift, (closes - start) // _MINUTE - shift


def changes_of(target: Target, open_windows: tuple[TargetWindow, ...], calendar: Calendar) -> tuple[DayChange, ...]:
    """Return when actions must run while *open_windows* are open too.

    That is when the bounds change, and, where a clock change may skip such a minute, at the end of the skipped time.
    """
    kinds = day_kinds(calendar.windows)

    def bounds_from(kind: DayKind, minute: int) -> Bounds:
        return bounds_with(target, (*open_windows, *kind.open_at(minute)))

    found = []
    for kind in kinds:
        for minute in sorted(kind.edges):
            bounds = bounds_from(kind, minute)
            if bounds != bounds_from(kind, minute - 1):
                owner = next(w for w, *edges in kind.spans if minute in edges)
                found.append(DayChange(minute, bounds, kind.days, owner))
    repeats: dict[tuple[int, TargetWindow], DaySet] = {}
    for gap in gaps(calendar.zone):
        for change in found:
            for weekday in range(gap.start_minute // MINUTES_PER_DAY, (gap.end_minute - 1) // MINUTES_PER_DAY + 1):
                days = change.days & OF_WEEK[weekday % 7]
                if not days or not gap.start_minute <= weekday * MINUTES_PER_DAY + change.minute < gap.end_minute:
                    continue
                # AAS may run an action of a skipped time late, by the length of the gap: a second action corrects it
                for late in (0, gap.end_minute - gap.start_minute):
                    day, minute = divmod(gap.end_minute + late, MINUTES_PER_DAY)
                    key = minute, change.owner
                    repeats[key] = repeats.get(key, 0) | moved(days, day - weekday)
    for kind in kinds:
        for (minute, owner), days in repeats.items():
            if days & kind.days:
                found.append(DayChange(minute, bounds_from(kind, minute), days & kind.days, owner))
    return tuple(found)


def days_with(
    target: Target, open_windows: tuple[TargetWindow, ...], calendar: Calendar, minute: int, bounds: Bounds
) -> DaySet:
    """Return all days on which the bounds at *minute* are *bounds*: an action that sets them then changes nothing."""
    days = 0
    for kind in day_kinds(calendar.windows):
        if bounds_with(target, (*open_windows, *kind.open_at(minute))) == bounds:
            days |= kind.days
    return days
