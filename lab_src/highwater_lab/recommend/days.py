"""Parts the days of traffic: those that a plan is chosen on, and those that it is judged on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from highwater_lab.traffic import Traffic

_DAY_MINUTES: Final = 1_440
# Shorter traffic has nothing to judge on
LEAST_DAYS: Final = 3
# and traffic of less than a fortnight does not show whether a week is like the one before
LEAST_DAYS_OF_WEEKS: Final = 14


@dataclass(frozen=True, slots=True)
class Days:
    """The parts of a traffic.

    Attributes:
        whole: All of it.
        chosen: The days that a plan is chosen on: the first two thirds, cut at midnight; all if there are fewer than
            three days.
        cut: The first minute of the days that it is judged on; `None` if there are none.
    """

    whole: Traffic
    chosen: Traffic
    cut: int | None

    @property
    def remark(self) -> str:
        """The limits of the judgement; empty for a fortnight or more."""
        days = self.whole.minutes / _DAY_MINUTES
        if self.cut is None:
            return f"{days:.1f} days of traffic: there is nothing to judge the plan on; give three days or more"
        if days < LEAST_DAYS_OF_WEEKS:
            return f"{days:.1f} days of traffic do not show what a week brings; give a fortnight or more"
        return ""


# Target tracking needs about four minutes to see a rise and to follow it (docs/model.md), so a rise like this throttles
# at any target utilization unless the capacity is there before
_RISE_MINUTES: Final = 5
_RISE_TIMES: Final = 10


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise of requests that auto scaling cannot follow.

    Attributes:
        at: The minute at which it ended, UTC.
        times: The ratio of the requests then to those five minutes before, or to a tenth of the mean if that is more.
    """

    at: datetime
    times: float


def sudden_rise(traffic: Traffic) -> Rise | None:
    """Return the steepest rise within five minutes of any stream, if it is at least tenfold."""
    step, steepest = 60 // traffic.bin_seconds, Rise(traffic.start, 0.0)
    for rates in traffic.rates.values():
        minutes = [sum(rates[at : at + step]) for at in range(0, len(rates), step)]
        least = sum(minutes) / len(minutes) / 10
        for number in range(_RISE_MINUTES, len(minutes)):
            before = max(minutes[number - _RISE_MINUTES], least)
            if before and minutes[number] > steepest.times * before:
                steepest = Rise(traffic.start + timedelta(minutes=number), minutes[number] / before)
    return steepest if steepest.times >= _RISE_TIMES else None


def split_days(traffic: Traffic, zone: ZoneInfo) -> Days:
    """Return the days to choose a plan on, and the minute from which it is judged; midnight is that of *zone*."""
    if traffic.minutes < LEAST_DAYS * _DAY_MINUTES:
        return Days(traffic, traffic, None)
    target = traffic.start + timedelta(minutes=traffic.minutes * 2 // 3)
    local = target.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    cut = int((midnight - traffic.start).total_seconds()) // 60
    if cut < _DAY_MINUTES:
        cut = traffic.minutes * 2 // 3
    bins = cut * 60 // traffic.bin_seconds
    rates = {stream: rates[:bins] for stream, rates in traffic.rates.items()}
    return Days(traffic, replace(traffic, rates=rates, counts=None, gaps=()), cut)
