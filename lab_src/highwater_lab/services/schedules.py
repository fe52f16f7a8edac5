"""Schedule expressions of Application Auto Scaling: `at(...)`, `rate(...)` and `cron(...)` with six fields.

The syntax is from the Amazon EventBridge User Guide, "Cron expressions reference", to which the Application Auto
Scaling User Guide refers. A cron schedule does not run at a local time that a clock change skips; at a local time that
occurs twice it runs once, the first time.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from highwater.core.plan.zones import instant

_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
# AWS numbers weekdays from 1 for Sunday
_WEEKDAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
_HORIZON = timedelta(days=366 * 8)
_LONGEST_CHANGE = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class At:
    """A schedule that runs once, at *when*."""

    when: datetime

    def next_run(self, after: datetime) -> datetime | None:
        """Return the time of the run if it is later than *after*, else `None`."""
        return self.when if self.when > after else None


@dataclass(frozen=True, slots=True)
class Rate:
    """A schedule that runs at *origin* plus each multiple, from one, of the interval *every*."""

    every: timedelta
    origin: datetime

    def next_run(self, after: datetime) -> datetime | None:
        """Return the time of the first run later than *after*, `None` if it is beyond year 9999."""
        past_runs = max(0, (after - self.origin) // self.every)
        try:
            return self.origin + self.every * (past_runs + 1)
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule that runs at each minute of a zone's local time that all its fields match.

    *days* are the fields day of month, month, day of week and year, as text, so that equal schedules are equal and can
    be handed to another process.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[str, str, str, str]
    zone: ZoneInfo

    def next_run(self, after: datetime) -> datetime | None:
        """Return the time of the first run later than *after*, `None` if there is none within eight years."""
        # When clocks go back, a local time before that of *after* can be a later instant; no change is this long
        earliest = after.astimezone(self.zone).replace(tzinfo=None) - _LONGEST_CHANGE
        day = earliest.date()
        matches_day = _day_test(self.days)
        while day < after.date() + _HORIZON:
            if matches_day(day):
                for hour in self.hours:
                    if datetime.combine(day, time(hour, 59)) < earliest:
                        continue
                    for minute in self.minutes:
                        wall = datetime.combine(day, time(hour, minute))
                        at = instant(wall, self.zone)
                        if at > after and at.astimezone(self.zone).replace(tzinfo=None) == wall:
                            return at
            day += timedelta(days=1)
        return None


Expression = At | Rate | Cron


def parse_expression(text: str, zone: ZoneInfo, origin: datetime) -> Expression:
    """Parse a schedule expression in local time of *zone*; a rate counts its intervals from *origin*.

    Raises `ValueError` if the text is not a schedule expression.
    """
    match = re.fullmatch(r"(at|rate|cron)\((.*)\)", text.strip())
    if match is None:
        raise ValueError(text)
    kind, body = match.groups()
    try:
        if kind == "at":
            return At(instant(datetime.strptime(body, "%Y-%m-%dT%H:%M:%S"), zone))  # noqa: DTZ007 - local to the zone
        if kind == "rate":
            return Rate(_parse_rate(body), origin)
        return _parse_cron(body, zone)
    except OverflowError as error:
        raise ValueError(text) from error


def _parse_rate(body: str) -> timedelta:
    match = re.fullmatch(r"([1-9]\d*) (minute|hour|day)s?", body.strip())
    if match is None:
        raise ValueError(body)
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _parse_cron(body: str, zone: ZoneInfo) -> Cron:
    fields = body.upper().split()
    if len(fields) == 7:  # Application Auto Scaling accepts a leading field of seconds, but ignores it
        fields = fields[1:]
    if len(fields) != 6:
        raise ValueError(body)
    minute, hour, day_of_month, month, day_of_week, year = fields
    if (day_of_month == "?") == (day_of_week == "?") or "?" in (minute, hour, month, year):
        raise ValueError(body)
    days = (day_of_month, month, day_of_week, year)
    _day_test(days)  # raises for a field that is invalid
    return Cron(_parse_field(minute, 0, 59, {}), _parse_field(hour, 0, 23, {}), days, zone)


@lru_cache(maxsize=512)
def _day_test(days: tuple[str, str, str, str]) -> Callable[[date], bool]:
    """Return the test of a day for the fields day of month, month, day of week and year; raises `ValueError`."""
    day_of_month, month, day_of_week, year = days
    months, years = _parse_field(month, 1, 12, _MONTHS), _parse_field(year, 1970, 2199, {})
    matches_day_of_month, matches_weekday = _month_day_test(day_of_month), _weekday_test(day_of_week)
    return lambda day: day.month in months and day.year in years and matches_day_of_month(day) and matches_weekday(day)


def _parse_field(field: str, low: int, high: int, names: dict[str, int]) -> tuple[int, ...]:
    """Return the numbers that a cron field matches, in ascending order; raises `ValueError` for an invalid field."""
    if field in ("*", "?"):
        return tuple(range(low, high + 1))
    numbers: set[int] = set()
    for part in field.split(","):
        span, has_step, step_text = part.partition("/")
        step = int(step_text) if has_step else 1
        if step < 1:
            raise ValueError(field)
        first_text, has_last, last_text = span.partition("-")
        if has_last and (first_text == "*" or not last_text):
            raise ValueError(field)
        first = low if first_text == "*" else names.get(first_text) or int(first_text)
        last = names.get(last_text) or int(last_text) if last_text else (high if step_text or span == "*" else first)
        if not (low <= first <= high and low <= last <= high):
            raise ValueError(field)
        values = range(first, last + 1) if first <= last else [*range(first, high + 1), *range(low, last + 1)]
        numbers.update(list(values)[::step])
    return tuple(sorted(numbers))


def _month_day_test(field: str) -> Callable[[date], bool]:
    if field == "L":
        return lambda day: day.day == calendar.monthrange(day.year, day.month)[1]
    if nearest := re.fullmatch(r"(\d{1,2})W", field, re.ASCII):
        number = int(nearest[1])
        if not 1 <= number <= 31:
            raise ValueError(field)
        return lambda day: day.day == _nearest_workday(day, number)
    days = _parse_field(field, 1, 31, {})
    return lambda day: day.day in days


def _nearest_workday(day: date, number: int) -> int:
    """Return the workday nearest to day *number* in the month of *day*; 0 if the month has no such day."""
    last = calendar.monthrange(day.year, day.month)[1]
    if number > last:
        return 0
    weekday = date(day.year, day.month, number).weekday()
    if weekday == calendar.SATURDAY:
        return number - 1 if number > 1 else number + 2
    if weekday == calendar.SUNDAY:
        return number + 1 if number < last else number - 2
    return number


def _weekday_test(field: str) -> Callable[[date], bool]:
    if field == "L":
        return lambda day: _aws_weekday(day) == _WEEKDAYS["SAT"]
    if last := re.fullmatch(r"(\w+?)L", field):
        number = _parse_weekday(last[1])
        return lambda day: _aws_weekday(day) == number and day.day + 7 > calendar.monthrange(day.year, day.month)[1]
    if nth := re.fullmatch(r"(\w+)#([1-5])", field):
        number = _parse_weekday(nth[1])
        return lambda day: _aws_weekday(day) == number and (day.day - 1) // 7 + 1 == int(nth[2])
    days = _parse_field(field, 1, 7, _WEEKDAYS)
    return lambda day: _aws_weekday(day) in days


def _parse_weekday(text: str) -> int:
    number = _WEEKDAYS.get(text) or int(text)
    if not 1 <= number <= 7:
        raise ValueError(text)
    return number


def _aws_weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1
