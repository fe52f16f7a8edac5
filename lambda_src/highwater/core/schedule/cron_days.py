"""Sets of days, and the days that the fields of a cron schedule can name.

Days of the week and of months repeat after 28 years, up to 2100, which is no leap year. So a set of days is a set of
the 10,227 days of 28 years: an integer, of which bit *n* is day *n* from Monday 2024-01-01.

The forms of the fields are from "Cron expressions reference" (Amazon EventBridge User Guide, read 2026-11), to which
the Application Auto Scaling User Guide refers: lists, ranges and steps, `L` for the last day of a month, `6#2` for its
second Friday. Of a day of month and a day of the week only one may be given. `6L`, a month's last Friday, is in
"Schedule types" (EventBridge Scheduler User Guide, read 2026-11).
"""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

from highwater.core.plan.month_days import DAYS

DaySet: TypeAlias = int

FIRST_DAY: Final = date(2024, 1, 1)
_LAST_YEAR: Final = 2051
_SHOWN_FROM: Final = date(2027, 1, 1)
DAY_COUNT: Final = (date(_LAST_YEAR + 1, 1, 1) - FIRST_DAY).days
EVERY_DAY: Final[DaySet] = (1 << DAY_COUNT) - 1
# the set of each day of the week, Monday first
OF_WEEK: Final[tuple[DaySet, ...]] = tuple(sum(1 << day for day in range(n, DAY_COUNT, 7)) for n in range(7))
_LAST: Final = -1
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
# 2100 counts as a leap year here: what depends on it comes a day late or early in that February
_YEARS: Final = {None: "*", True: "2024/4", False: "2025/4,2026/4,2027/4"}


@dataclass(frozen=True, slots=True)
class CronDays:
    """Days that one cron schedule can name.

    Attributes:
        of_week: Days of the week, Monday 0, or empty.
        nth: With *of_week* of one day: which one of the month's, from 1, or -1 for the last; 0 for all.
        of_month: Days of the month from 1, or -1 alone for the last; empty if *of_week* is given.
        months: Months from 1, empty for all.
        is_leap: Whether only in leap years, or only in others; `None` for all years.
    """

    of_week: tuple[int, ...] = ()
    nth: int = 0
    of_month: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    is_leap: bool | None = None

    def has(self, day: date) -> bool:
        """Whether *day* is one of them."""
        last = monthrange(day.year, day.month)[1]
        if (self.months and day.month not in self.months) or self.is_leap not in (None, isleap(day.year)):
            return False
        if self.of_month:
            return day.day in self.of_month or (self.of_month == (_LAST,) and day.day == last)
        if self.nth == _LAST and day.day + 7 <= last:
            return False
        return day.weekday() in self.of_week and self.nth in (0, _LAST, (day.day - 1) // 7 + 1)

    @property
    def fields(self) -> str:
        """The fields day of month, month, day of week and year."""
        months = _listed(self.months, [str(number) for number in range(13)]) or "*"
        if len(self.of_week) == len(DAYS):
            return "* * ? *"
        if self.nth:
            # AWS counts days of the week from Sunday 1
            number = (self.of_week[0] + 1) % 7 + 1
            return f"? {months} {number}{'L' if self.nth == _LAST else f'#{self.nth}'} {_YEARS[self.is_leap]}"
        if self.of_week:
            return f"? {months} {_listed(self.of_week, DAYS)} {_YEARS[self.is_leap]}"
        days = "L" if self.of_month == (_LAST,) else _listed(self.of_month, [str(number) for number in range(32)])
        return f"{days} {months} ? {_YEARS[self.is_leap]}"

    def __str__(self) -> str:
        """The days in the name of an action: `MON-FRI`, `last FRI`, `day 1`, `last day of FEB`."""
        if len(self.of_week) == len(DAYS):
            text = "daily"
        elif self.nth:
            text = f"last {DAYS[self.of_week[0]]}" if self.nth == _LAST else f"{DAYS[self.of_week[0]]} {self.nth}"
        elif self.of_week:
            text = _listed(self.of_week, DAYS)
        elif self.of_month == (_LAST,):
            text = "last day"
        else:
            text = f"day {_listed(self.of_month, [str(number) for number in range(32)])}"
        if self.months:
            text += f" of {_listed([month - 1 for month in self.months], _MONTHS)}"
        return text + {None: "", True: " leap years", False: " common years"}[self.is_leap]


def _listed(numbers: Sequence[int], names: Sequence[str]) -> str:
    """Return numbers in cron syntax: three or more consecutive ones as a range."""
    parts: list[str] = []
    run: list[int] = []
    for number in (*numbers, 99):
        if run and number != run[-1] + 1:
            parts.extend([f"{names[run[0]]}-{names[run[-1]]}"] if len(run) > 2 else [names[each] for each in run])
            run = []
        run.append(number)
    return ",".join(parts)


def moved(days: DaySet, by: int) -> DaySet:
    """Return the days that are *by* days later."""
    by %= DAY_COUNT
    return ((days << by) | (days >> (DAY_COUNT - by))) & EVERY_DAY


def number_of(day: date) -> int:
    """Return the number of *day* in a set."""
    return (day - FIRST_DAY).days % DAY_COUNT


def day_in(days: DaySet) -> date:
    """Return a day of a set that is not empty: the first from 2027 on, so that messages have no day long ago."""
    skipped = number_of(_SHOWN_FROM)
    later = days >> skipped << skipped or days
    return date.fromordinal(FIRST_DAY.toordinal() + (later & -later).bit_length() - 1)


@lru_cache(maxsize=1)
def _nameable() -> tuple[tuple[CronDays, DaySet], ...]:
    """Every set of days that is worth naming alone; of sets with the same days the simpler first."""
    of_month, of_last, of_months, nths, leap = [0] * 32, 0, [0] * 13, dict.fromkeys((1, 2, 3, 4, 5, _LAST), 0), 0
    first = 0
    for month in range(12 * (_LAST_YEAR + 1 - FIRST_DAY.year)):
        year, number = FIRST_DAY.year + month // 12, month % 12 + 1
        length = monthrange(year, number)[1]
        all_days = ((1 << length) - 1) << first
        of_months[number] |= all_days
        leap |= all_days if isleap(year) else 0
        of_last |= 1 << first + length - 1
        for day in range(1, length + 1):
            of_month[day] |= 1 << first + day - 1
            nths[(day - 1) // 7 + 1] |= 1 << first + day - 1
        nths[_LAST] |= ((1 << 7) - 1) << first + length - 7
        first += length
    named = [(CronDays(of_week=tuple(range(7))), EVERY_DAY)]
    named += [(CronDays(of_week=(day,)), OF_WEEK[day]) for day in range(7)]
    numbered = [*((number, of_month[number]) for number in range(1, 32)), (_LAST, of_last)]
    named += [(CronDays(of_month=(number,)), days) for number, days in numbered]
    named += [
        (CronDays(of_week=(day,), nth=nth), days & OF_WEEK[day]) for nth, days in nths.items() for day in range(7)
    ]
    named += [
        (CronDays(of_month=(number,), months=(month,)), days & of_months[month])
        for number, days in numbered
        for month in range(1, 13)
        if days & of_months[month]
    ]
    # the days around the last one of February
    for month, number in ((2, 26), (2, 27), (2, 28), (3, 1)):
        for is_leap, years in ((True, leap), (False, EVERY_DAY & ~leap)):
            days = of_month[number] & of_months[month] & years
            named.append((CronDays(of_month=(number,), months=(month,), is_leap=is_leap), days))
    return tuple(named)


@lru_cache(maxsize=1024)
def days_of_cron(needed: DaySet, permitted: DaySet) -> tuple[tuple[CronDays, ...], DaySet]:
    """Return schedules that together run on all *needed* days, each day at most once, and on *permitted* days only.

    If schedules can name the needed days exactly, they do. Among others the second value is the needed days that no
    schedule can name; it is empty if all can.
    """
    left = needed
    for allowed in (needed, permitted):
        fitting = [(rule, days) for rule, days in _nameable() if not days & ~allowed]
        chosen: list[CronDays] = []
        left, taken = needed, 0
        while left:
            free = [(rule, days) for rule, days in fitting if days & left and not days & taken]
            if not free:
                break
            rule, days = max(free, key=lambda each: ((each[1] & left).bit_count(), -each[1].bit_count()))
            chosen.append(rule)
            left, taken = left & ~days, taken | days
        if not left:
            return _merged(chosen), 0
    return (), left


def _merged(rules: Iterable[CronDays]) -> tuple[CronDays, ...]:
    """Return the same days in fewer schedules: first the months of a day together, then days of the same months."""
    months_of: dict[CronDays, set[int]] = {}
    for rule in rules:
        alone = CronDays(rule.of_week, rule.nth, rule.of_month, (), rule.is_leap)
        months_of.setdefault(alone, set()).update(rule.months)
    merged: dict[CronDays, set[int]] = {}
    others: list[CronDays] = []
    for rule, months in months_of.items():
        whole = CronDays(rule.of_week, rule.nth, rule.of_month, tuple(sorted(months)), rule.is_leap)
        if rule.nth or rule.of_month == (_LAST,) or len(rule.of_week) == len(DAYS):
            others.append(whole)
            continue
        kind = CronDays(of_week=(0,) if rule.of_week else (), months=whole.months, is_leap=whole.is_leap)
        merged.setdefault(kind, set()).update(rule.of_week or rule.of_month)
    for kind, numbers in merged.items():
        days = tuple(sorted(numbers))
        of_week, of_month = (days, ()) if kind.of_week else ((), days)
        others.append(CronDays(of_week=of_week, of_month=of_month, months=kind.months, is_leap=kind.is_leap))
    return tuple(others)
