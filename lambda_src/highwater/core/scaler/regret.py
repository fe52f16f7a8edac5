"""Regret: what a target cost and throttled over the last day, beside what native target tracking would have.

The scaler buys capacity so that requests are not throttled. Where it spent clearly more than target tracking would
have, for throttles that are not worth it, it grants no more than these are worth. docs/decisions/0038 has the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from highwater.core.bucket import BURST_SECONDS, settle
from highwater.core.plan.plan import Target
from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_HOUR
from highwater.core.prices import prices_or_usual
from highwater.core.scaler.burst import CAPACITY_MINUTES, DrainSeries
from highwater.core.schedule.bounds import Bounds, bounds_with, timeline
from highwater.core.tracking import NATIVE_TARGET_PERCENT, Alarm, TargetTracking
from highwater.core.units import Dimension

_NATIVE: Final = TargetTracking(target_percent=NATIVE_TARGET_PERCENT)
# From the end of the minute that sets off an alarm until capacity is there: 120 s for the datapoint, up to 60 until the
# alarm is judged, and the change.
_LAG_MINUTES: Final = 3
# Regret is what is spent above this share of what target tracking would have cost (pays most on az_fn_cron10m).
MOST_COST_PERCENT: Final = 110
# On-demand request units that cost as much as one unit provisioned for an hour: 1,040 in us-east-1, for reads and for
# writes. It is within one percent of that in all other regions, so that decisions need not depend on the region.
REQUESTS_PER_UNIT_HOUR: Final = prices_or_usual(None).requests_per_unit_hour(Dimension.WRITE)


@dataclass(frozen=True, slots=True)
class Regret:
    """One target's last day, and the same day with target tracking at 70 % in its place.

    Attributes:
        capacity_units: What target tracking would ask for now, in units per second.
        spent_unit_hours: The target's capacity, in units that are provisioned for an hour. An hour counts with its
            highest capacity, as it is billed.
        native_unit_hours: The same with target tracking.
        native_throttled_units: Units that would have been throttled with target tracking.
        hours: How many hours are known, from 1 to 25: the first and the last may be parts of one.
        highest_units: The units consumed in the busiest minute.
    """

    capacity_units: int
    spent_unit_hours: int
    native_unit_hours: int
    native_throttled_units: int
    hours: int = 24
    highest_units: int = 0

    @property
    def over_percent(self) -> int:
        """By how much more was spent than target tracking would have cost, in percent, rounded down."""
        return self.spent_unit_hours * 100 // max(self.native_unit_hours, 1) - 100

    def most_units(self, throttle_price_requests: int, newest: Sequence[int] = ()) -> int | None:
        """Return the most capacity that is worth its price, in units per second; `None` for no limit.

        There is no limit if the last day cost at most a tenth more than target tracking would have, or no more above it
        than the throttles of target tracking are worth. Otherwise the limit is target tracking's capacity, and as much
        more as these throttles are worth in an hour.

        Args:
            throttle_price_requests: What it is worth that a unit is not throttled, in request units on demand.
            newest: Units asked for in each of the newest minutes, oldest first; some of them may be in the day already.
                Target tracking would raise for what is above its target for two of them. Pulses have them minutes
                before CloudWatch.

        The tenth is of a whole day: of a table that has existed for some hours, the rest of the day is taken to cost as
        much an hour.
        """
        extra = self.spent_unit_hours - self.native_unit_hours
        allowance = self.native_unit_hours * (MOST_COST_PERCENT - 100) * max(24, self.hours)
        worth = self.native_throttled_units * throttle_price_requests // REQUESTS_PER_UNIT_HOUR
        if extra * 100 * self.hours <= allowance or extra <= worth:
            return None
        return self._raised_for(newest) + worth // self.hours

    def _raised_for(self, newest: Sequence[int]) -> int:
        """Return what target tracking asks for after these minutes, if it only raises."""
        asked = self.capacity_units
        for at in range(len(newest)):
            if _NATIVE.alarm(newest, at, asked) is Alarm.HIGH:
                asked = _NATIVE.wanted(Alarm.HIGH, newest, at)
        return asked


class PastSeries:
    """The minutes of a target: its drains, and how target tracking at 70 % would have met them.

    It grows at its end. The simulator adds a minute at a time; the Lambda function adds the minutes of CloudWatch's
    answer. What a turn needs of them is worked out as they are added.

    Args:
        first: The first minute that is added, counted since 1970, so that hours are known.
    """

    __slots__ = ("_burst", "_capacity", "_demand", "_drains", "_first", "_hours", "_length", "_level", "_pending")

    def __init__(self, first: int) -> None:
        self._first, self._length = first, 0
        self._drains = DrainSeries()
        self._burst = BURST_SECONDS
        self._capacity = self._level = 0
        self._demand: list[int] = []
        # changes under way: the minute from which on capacity is there, and the capacity
        self._pending: list[tuple[int, int]] = []
        # for each hour: highest capacity, the same with target tracking, units throttled with target tracking, and
        # units consumed in the busiest minute
        self._hours: list[list[int]] = []

    def __len__(self) -> int:
        """How many minutes were added."""
        return self._length

    def append(self, consumed_units: int, throttled_units: int, capacity_units: int | None, planned: Bounds) -> None:
        """Add the next minute.

        Args:
            consumed_units: Units consumed in it.
            throttled_units: Units or requests throttled in it for want of provisioned capacity.
            capacity_units: The most capacity that it may have had, in units per second; `None` where that is not known.
                It then counts as no drain, and is taken to have cost what target tracking would have.
            planned: The floor and ceiling of the plan.
        """
        self._drains.append(consumed_units, throttled_units, capacity_units)
        # a throttle is forgotten after a day
        if throttled_units or self._length % MINUTES_PER_HOUR == 0:
            self._burst = self._drains.most_seconds(max(0, self._length - MINUTES_PER_DAY))
        demand = consumed_units + throttled_units
        self._demand = [*self._demand[1 - _NATIVE.low_periods :], demand]
        native_throttled = self._meet(demand, planned)
        hour = (self._first + self._length) // MINUTES_PER_HOUR - self._first // MINUTES_PER_HOUR
        if hour == len(self._hours):
            self._hours.append([0, 0, 0, 0])
        row = self._hours[hour]
        row[0] = max(row[0], self._capacity if capacity_units is None else capacity_units)
        row[1] = max(row[1], self._capacity)
        row[2] += native_throttled
        row[3] = max(row[3], consumed_units)
        self._track(planned)
        self._length += 1

    def _meet(self, demand: int, planned: Bounds) -> int:
        """Return the units of a minute's demand that target tracking's capacity and bucket would not have served."""
        while self._pending and self._pending[0][0] <= self._length:
            self._capacity = self._pending.pop(0)[1]
        if self._length < _NATIVE.low_periods:
            # nobody knows what came before: capacity for the usual minute so far, and at first a full bucket
            self._capacity = _NATIVE.wanted(Alarm.HIGH, sorted(self._demand), len(self._demand) // 2)
        self._capacity = min(max(self._capacity, planned.min), planned.max)
        most = self._burst * self._capacity
        level = self._level if self._length else most
        self._level, refused = settle(level, 60 * self._capacity, demand, most)
        return refused

    def _track(self, planned: Bounds) -> None:
        """Decide as target tracking does once this minute's datapoint is known."""
        asked = self._pending[-1][1] if self._pending else self._capacity
        decided = _NATIVE.decide(self._demand, len(self._demand) - 1, asked, (planned.min, planned.max))
        if decided is not None:
            self._pending.append((self._length + 1 + _LAG_MINUTES, decided[1]))

    def burst_seconds(self, minutes: int) -> int:
        """Return how many seconds of burst the drains of the last so many *minutes* justify, from 60 to 300."""
        return self._drains.burst_seconds(max(0, self._length - minutes))

    def regret(self, minutes: int) -> Regret | None:
        """Sum up the hours in which the last so many *minutes* are; `None` while there are none."""
        if not self._hours:
            return None
        first = max(0, self._length - minutes) + self._first
        hours = self._hours[first // MINUTES_PER_HOUR - self._first // MINUTES_PER_HOUR :]
        spent, native, throttled, _ = (sum(column) for column in zip(*hours, strict=True))
        capacity = self._pending[-1][1] if self._pending else self._capacity
        return Regret(capacity, spent, native, throttled, len(hours), max(hour[3] for hour in hours))


def planned_by_minute(target: Target, first: int, minutes: int) -> list[Bounds]:
    """Return the plan's floor and ceiling in each of so many *minutes* from the minute *first* since 1970 on."""
    if not target.windows:
        return [bounds_with(target, ())] * minutes
    start = datetime.fromtimestamp(first * 60, UTC)
    planned: list[Bounds] = []
    for at, bounds in reversed(timeline(target, start, start + timedelta(minutes=minutes))):
        planned += [bounds] * (minutes - len(planned) - (at - start) // timedelta(minutes=1))
    return planned[::-1]


def past_of(
    first: int,
    consumed_units: Sequence[int | None],
    throttled_units: Sequence[int],
    provisioned_units: Sequence[int | None],
    planned: Sequence[Bounds],
) -> PastSeries:
    """Return the minutes of a target as a series.

    Args:
        first: The oldest minute, counted since 1970.
        consumed_units: Units consumed in each minute, oldest first; `None` for no datapoint, which counts as none.
        throttled_units: Units or requests throttled in each.
        provisioned_units: Its capacity in units per second at some minutes, at least every five; `None` at the others.
            The capacity of a minute without such a datapoint within five minutes before it, and after it, is not known.
        planned: The plan's floor and ceiling in each.
    """
    series = PastSeries(first)
    for at, (consumed, throttled, bounds) in enumerate(zip(consumed_units, throttled_units, planned, strict=True)):
        before = provisioned_units[max(0, at - CAPACITY_MINUTES + 1) : at + 1]
        # a datapoint is up to five minutes older than its label says, so that the second one may be this minute's
        after = provisioned_units[at + 1 : at + 1 + 2 * CAPACITY_MINUTES]
        known = [units for units in (*before, *after) if units is not None]
        is_known = any(u is not None for u in before) and any(u is not None for u in after)
        series.append(consumed or 0, throttled, max(known) if is_known else None, bounds)
    return series
