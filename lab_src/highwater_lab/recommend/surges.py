"""Finds surges of demand that recur at the same time of day, and windows that raise the floor for them.

They are on days of the week, or on a day of the month if each surge, in at least three months, is on that day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from highwater.core import Dimension, Window
from highwater.core.plan.month_days import DAYS, LAST, LAST_OF_SHORTEST_MONTH, MOST_NTH, MonthDay
from highwater_lab.simulation import Run

# Throttled minutes at most this far apart belong to one surge
_ONE_SURGE_MINUTES = 45
# Surges on different days recur if their times of day are at most this far apart
_SAME_TIME_MINUTES = 45
_STEP_MINUTES = 5
_MOST_WINDOWS = 6
# Twice may be chance: two Mondays, say, that are the first of their months
_LEAST_MONTHS = 3
_LONGEST_MINUTES = 20 * 60


@dataclass(frozen=True, slots=True)
class Surge:
    """A period in which demand exceeded the capacity.

    Attributes:
        start: The local time at which demand rose above the capacity before the surge.
        end: The local time at which demand fell to that capacity again.
        units: The demand of the busiest minute, in units per second.
        throttled: The units throttled.
    """

    start: datetime
    end: datetime
    units: int
    throttled: float


def find_surges(run: Run, dimension: Dimension, zone: ZoneInfo) -> list[Surge]:
    """Return the surges in which a run throttled the table's *dimension*, in order of time; local times in *zone*."""
    target = run.target(dimension)
    capacity = list(target.capacity_by_minute())
    episodes: list[list[int]] = []
    for minute in sorted(target.throttled):
        if episodes and minute - episodes[-1][-1] <= _ONE_SURGE_MINUTES:
            episodes[-1].append(minute)
        else:
            episodes.append([minute])
    surges = []
    for minutes in episodes:
        quanta_before = capacity[max(0, minutes[0] - 1)] * 3600
        start = minutes[0]
        while start > 0 and target.demand_quanta(start - 1) > quanta_before:
            start -= 1
        end = minutes[-1] + 1
        while end < run.minutes and target.demand_quanta(end) > quanta_before:
            end += 1
        peak = max(target.demand_quanta(minute) for minute in range(start, end))
        surges.append(
            Surge(
                (run.start + timedelta(minutes=start)).astimezone(zone),
                (run.start + timedelta(minutes=end)).astimezone(zone),
                -(-peak // 3600),
                sum(sum(target.throttled[minute].values()) for minute in minutes) / 60,
            )
        )
    return surges


def windows_for(surges: list[Surge], dimension: Dimension, timezone: str) -> tuple[Window, ...]:
    """Return at most six windows for surges that recur at about the same time on at least two days.

    The window for the most throttled units is first. A surge of more than 20 hours gets no window.
    """
    groups: list[list[Surge]] = []
    for surge in sorted(surges, key=lambda surge: _minute_of_day(surge.start)):
        if groups and _minute_of_day(surge.start) - _minute_of_day(groups[-1][0].start) <= _SAME_TIME_MINUTES:
            groups[-1].append(surge)
        else:
            groups.append([surge])
    recurring = [group for group in groups if len({surge.start.date() for surge in group}) >= 2]
    recurring.sort(key=lambda group: -sum(surge.throttled for surge in group))
    windows = (_window(group, dimension, timezone, number) for number, group in enumerate(recurring[:_MOST_WINDOWS], 1))
    return tuple(window for window in windows if window is not None)


def _window(group: list[Surge], dimension: Dimension, timezone: str, number: int) -> Window | None:
    days = {surge.start.date() for surge in group}
    start = min(_minute_of_day(surge.start) for surge in group) // _STEP_MINUTES * _STEP_MINUTES
    lengths = [
        _minute_of_day(surge.start) - start + int((surge.end - surge.start).total_seconds()) // 60 for surge in group
    ]
    length = -(-max(lengths) // _STEP_MINUTES) * _STEP_MINUTES
    if length > _LONGEST_MINUTES:
        return None
    units = round_up(max(surge.units for surge in group))
    month_day = find_month_day(days)
    return Window(
        name=f"{dimension}-surge-{number}",
        days=_days_text(sorted({day.weekday() for day in days})) if month_day is None else None,
        month_day=month_day,
        start=_clock(start),
        end=_clock((start + length) % 1440),
        timezone=timezone,
        read_min=units if dimension is Dimension.READ else None,
        write_min=units if dimension is Dimension.WRITE else None,
    )


def find_month_day(days: Iterable[date]) -> MonthDay | None:
    """Return the day of the month that each of *days* is, `None` if there is none, or fewer than three months.

    A number comes before the last day, and this before a weekday.
    """
    days = sorted(days)
    if len({(day.year, day.month) for day in days}) < _LEAST_MONTHS:
        return None
    rules = [MonthDay(day=number) for number in range(1, LAST_OF_SHORTEST_MONTH + 1)]
    rules.append(MonthDay(day=LAST))
    rules += [MonthDay(weekday=DAYS[days[0].weekday()], nth=nth) for nth in (*range(1, MOST_NTH + 1), LAST)]
    return next((rule for rule in rules if all(rule.of(day.year, day.month) == day for day in days)), None)


def _minute_of_day(at: datetime) -> int:
    return at.hour * 60 + at.minute


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _days_text(days: list[int]) -> str:
    is_run = len(days) > 2 and all(after == before + 1 for before, after in pairwise(days))
    return f"{DAYS[days[0]]}-{DAYS[days[-1]]}" if is_run else ",".join(DAYS[day] for day in days)


def round_up(units: int) -> int:
    """Round up to two significant digits, because people read and edit the recommended numbers."""
    step = int(10 ** max(0, len(str(units)) - 2))
    return -(-units // step) * step
