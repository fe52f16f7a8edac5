"""The day of a month on which a monthly window starts: by its number, the last one, or the nth of a weekday."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

DAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
LAST: Final = "last"
Last: TypeAlias = Literal["last"]
LAST_OF_SHORTEST_MONTH: Final = 28
_MOST_DAYS: Final = 31
# every month has four of each weekday; a fifth only some of them
MOST_NTH: Final = 4
_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", LAST: "last"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthDay:
    """One day of each month: either *day*, or *weekday* and *nth*.

    The constructor does not validate; `check` does.

    Attributes:
        day: 1 to 31 or `"last"`. In a month with fewer days, the last day of that month.
        weekday: `MON` to `SUN`.
        nth: Which one of the month's days of this weekday: 1 to 4, or `"last"`.
    """

    day: int | Last | None = None
    weekday: str | None = None
    nth: int | Last | None = None

    def __str__(self) -> str:
        if self.weekday is None:
            return "last day of the month" if self.day == LAST else f"day {self.day} of the month"
        return f"{_ORDINALS.get(self.nth or 0, self.nth)} {self.weekday.upper()} of the month"

    def of(self, year: int, month: int) -> date:
        """Return the day in one month."""
        first, days = monthrange(year, month)
        if self.weekday is None:
            return date(year, month, days if self.day == LAST else min(int(self.day or 0), days))
        first_one = 1 + (parse_weekday(self.weekday) - first) % 7
        if self.nth == LAST:
            return date(year, month, first_one + (days - first_one) // 7 * 7)
        return date(year, month, first_one + 7 * (int(self.nth or 0) - 1))

    def between(self, first: date, last: date) -> Iterator[date]:
        """Yield the day in each month from that of *first* to that of *last*, in order."""
        for months in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
            yield self.of(months // 12, months % 12 + 1)


def parse_weekday(text: str) -> int:
    """Return a weekday's number, Monday 0 to Sunday 6; raises `ValueError` if *text* is not `MON` to `SUN`."""
    return DAYS.index(text.strip().upper())


def is_weekday(weekday: object) -> bool:
    """Whether *weekday* is `MON` to `SUN`."""
    return isinstance(weekday, str) and weekday.strip().upper() in DAYS


def is_day(day: object) -> bool:
    """Whether *day* is 1 to 31 or `"last"`."""
    return day == LAST or (type(day) is int and 1 <= day <= _MOST_DAYS)


def is_nth(nth: object) -> bool:
    """Whether *nth* is 1 to 4 or `"last"`."""
    return nth == LAST or (type(nth) is int and 1 <= nth <= MOST_NTH)
