"""The burst bucket: how much of it a table has shown to have, and the capacity that serves demand with it.

DynamoDB retains up to 300 seconds of unused capacity, and may use some of them itself without notice (Amazon DynamoDB
Developer Guide, "Burst capacity"). So only so much is believed as the table has shown. docs/decisions/0029 has the
reasons for every constant here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from highwater.core.bucket import BELIEVED_SECONDS, BURST_SECONDS, level_after
from highwater.core.plan.zones import MINUTES_PER_HOUR

# A drain that went well doubles what is believed (pays most on tweets_cvs).
_STEP_PERCENT: Final = 200
# CloudWatch has provisioned capacity every five minutes (Amazon DynamoDB Developer Guide, "DynamoDB metrics").
CAPACITY_MINUTES: Final = 5
# Capacity is sized to use this share of the seconds that are believed (pays most on az_http_spike).
_USED_PERCENT: Final = 85
# A spike is over within this time; what lasts longer is demand. So capacity is for the highest average of as many
# minutes, what is above that is for the bucket, and drains are added up no longer (pays most on
# tweets_cvs with pulses).
SPIKE_MINUTES: Final = 10
# A spike is above this share of the average; below it is noise, and noise is met as demand (pays most on
# tweets_cvs).
_SPIKE_PERCENT: Final = 150
# How long after a spike the next is expected: an hour, and what metrics and ticks are late (pays most on tweets_cvs).
_NEXT_SPIKE_MINUTES: Final = 75
# Between spikes the bucket fills faster than it must: those of every hour have an hour for it, and not 75 minutes
# (pays most on batches every 20 minutes).
_REFILL_PERCENT: Final = 135
# A drain is over, full bucket or not, after this many minutes within capacity (pays most on tweets_cvs).
_CALM_MINUTES: Final = 3
# A spike is expected to be like so many before it, and up to a tenth more (pay most on the random day 26 and on
# az_fn_bursty1).
_SPIKES_BEFORE: Final = 3
_MORE_PERCENT: Final = 110


class DrainSeries:
    """The drains of a target's burst bucket, which grow at the end; `burst_seconds` returns how much they justify.

    The simulator adds a minute at a time; the Lambda function adds the minutes of CloudWatch's answer.
    """

    __slots__ = ("_above", "_at", "_drains", "_length")

    def __init__(self) -> None:
        self._length = 0
        # units consumed above capacity in each of the last minutes; below zero where the bucket filled
        self._above: list[int] = []
        self._at: list[int] = []
        # seconds of capacity that a drain took, and whether requests were throttled
        self._drains: list[tuple[int, bool]] = []

    def __len__(self) -> int:
        """How many minutes were added."""
        return self._length

    def append(self, consumed_units: int, throttled_units: int, capacity_units: int | None) -> None:
        """Add the next minute.

        Args:
            consumed_units: Units consumed in it.
            throttled_units: Units or requests throttled in it for want of provisioned capacity.
            capacity_units: The most capacity that it may have had, in units per second, so that what it took from the
                bucket is a lower bound; `None` where that is not known.
        """
        if capacity_units is None:
            self._above = []
        else:
            above = consumed_units - 60 * capacity_units
            self._above = [*self._above[1 - SPIKE_MINUTES :], above]
            if above > 0 or throttled_units:
                drain = total = 0
                for each in reversed(self._above):
                    total += each
                    drain = max(drain, total)
                self._at.append(self._length)
                self._drains.append((drain // max(capacity_units, 1), throttled_units > 0))
        self._length += 1

    def burst_seconds(self, start: int) -> int:
        """Return how many seconds of burst the drains from the minute at *start* on justify, from 60 to 300.

        Each drain that went well doubles what is believed. After a throttle no more is believed than what was drained
        until then, for as long as the throttle is among the minutes.
        """
        believed, most = BELIEVED_SECONDS, BURST_SECONDS
        for seconds, is_throttled in self._drains[bisect_left(self._at, start) :]:
            if is_throttled:
                most = min(most, max(seconds, BELIEVED_SECONDS))
            elif seconds * _STEP_PERCENT < believed * 100:  # most drains justify nothing more
                continue
            believed = min(most, max(believed, seconds * _STEP_PERCENT // 100))
        return believed

    def most_seconds(self, start: int) -> int:
        """Return how many seconds of burst the throttles from the minute at *start* on allow, from 60 to 300."""
        throttled = (seconds for seconds, is_throttled in self._drains[bisect_left(self._at, start) :] if is_throttled)
        return max(min(throttled, default=BURST_SECONDS), BELIEVED_SECONDS)


class BucketDrain(NamedTuple):
    """A stretch of demand above a capacity.

    Attributes:
        excess_units: The units that it took from the bucket.
        minutes: How long it took them.
        units: The units consumed in these minutes.
        highest_units: Those of the highest minute.
    """

    excess_units: int
    minutes: int
    units: int
    highest_units: int

    def is_like(self, highest_units: int) -> bool:
        """Whether its highest minute is between two thirds and three halves of *highest_units*."""
        return 2 * highest_units <= 3 * self.highest_units and 2 * self.highest_units <= 3 * highest_units


def drains(demand: Sequence[int | None], capacity_units: int) -> list[BucketDrain]:
    """Return the stretches of *demand*, units by minute, above a capacity in units per second, oldest first.

    A drain begins with a minute above capacity. It ends when the bucket is full again, or after three minutes within
    capacity, or with the last minute.
    """
    found: list[BucketDrain] = []
    fill = 60 * capacity_units
    above = calm = 0
    for at, each in enumerate(demand):
        value = each or 0
        if not above:
            if value <= fill:
                continue
            start = at
            units = most = minutes = consumed = highest = 0
        calm = 0 if value > fill else calm + 1
        units += value
        above += value - fill
        if above > most:
            most, minutes, consumed = above, at - start + 1, units
            if value > highest:
                highest = value
        if above <= 0 or calm >= _CALM_MINUTES:
            found.append(BucketDrain(most, minutes, consumed, highest))
            above = calm = 0
    if above > 0:
        found.append(BucketDrain(most, minutes, consumed, highest))
    return found


def highest_average(demand: Sequence[int | None]) -> int:
    """Return the highest average of ten minutes in a row, in units per second; of all where there are fewer."""
    values = [each or 0 for each in demand]
    length = min(SPIKE_MINUTES, len(values))
    if not length:
        return 0
    total = highest = sum(values[:length])
    for newer, older in zip(values[length:], values, strict=False):
        total += newer - older
        if total > highest:  # faster than max() in this loop
            highest = total
    return -(-highest // (60 * length))


def capacity_to_carry(demand: Sequence[int | None], burst_seconds: int) -> int:
    """Return the least capacity, in units per second, that serves *demand* from a bucket that is full at its start.

    Args:
        demand: Units in each minute; `None` counts as none.
        burst_seconds: How many seconds of capacity are believed; 85 % of them are used.
    """
    seconds, capacity = _used(burst_seconds), 0
    while True:
        # the minutes in a row that exceed the capacity most
        units = minutes = 0
        worst, worst_units, worst_minutes = 0, 0, 0
        for each in demand:
            units += each or 0
            minutes += 1
            above = units - 60 * capacity * minutes
            if above <= 0:
                units = minutes = 0
            elif above > worst:
                worst, worst_units, worst_minutes = above, units, minutes
        if worst <= seconds * capacity:
            return capacity
        capacity = -(-worst_units // (60 * worst_minutes + seconds))


def capacity_for_spikes(
    consumed: Sequence[int | None], base_units: int, burst_seconds: int, times_before: int = 1
) -> int:
    """Return the least capacity, from *base_units* on, that serves the last spikes should they come again.

    Args:
        consumed: Units consumed in each known minute of the last hours, oldest first.
        base_units: Capacity for all but the spikes, in units per second.
        burst_seconds: How many seconds of burst are believed; 85 % of them are used.
        times_before: How often a spike must have come before, of about the same height, to be expected again.

    Spikes are the drains of the last 75 minutes at the base that were over within ten minutes. Between them the bucket
    must fill again.
    """
    recent = consumed[-_NEXT_SPIKE_MINUTES:]
    if max(filter(None, recent), default=0) <= 60 * base_units:
        return base_units
    spikes = [spike for spike in drains(recent, base_units) if spike.minutes <= SPIKE_MINUTES]
    found = drains(consumed, base_units) if times_before and spikes else []
    seconds, units, excess = _used(burst_seconds), base_units, 0
    for spike in spikes:
        if not times_before or sum(drain.is_like(spike.highest_units) for drain in found) > times_before:
            excess += spike.excess_units
            units = max(units, -(-spike.units // (60 * spike.minutes + seconds)))
    return max(units, base_units + excess * _REFILL_PERCENT // (100 * 60 * _NEXT_SPIKE_MINUTES))


def has_spikes(consumed: Sequence[int | None]) -> bool:
    """Whether a minute of the last 75 is above one and a half times the highest average of ten minutes.

    What rests on it pays most on batches of half a minute at ten times the base, once an hour.
    """
    recent = consumed[-_NEXT_SPIKE_MINUTES:]
    return max(filter(None, recent), default=0) > _spike_limit(highest_average(recent))


def without_spikes(consumed: Sequence[int | None], minutes: int) -> list[int | None] | None:
    """Return the last *minutes* without their spikes; `None` where there is none, or none like it before.

    A minute belongs to a spike if it is above one and a half times the highest ten-minute average. Pays most on
    az_fn_cron10m.
    """
    recent = consumed[-minutes:]
    highest, average = max(filter(None, recent), default=0), highest_average(recent)
    limit = _spike_limit(average)
    if highest <= limit or not _are_spikes(_last_like(drains(consumed[:-minutes], average), highest)):
        return None
    return [units for units in recent if (units or 0) <= limit]


def without_regular_spikes(consumed: Sequence[int | None], minutes: int) -> list[int | None]:
    """Return the last *minutes* without their spikes, if these are regular; otherwise all of the minutes.

    Spikes are regular if the newest and the three of about its height before it took the same units from the bucket,
    within a tenth. Pays most on batches of a minute at 5.5 times the base, once an hour.
    """
    recent = list(consumed[-minutes:])
    highest, average = max(filter(None, recent), default=0), highest_average(recent)
    limit = _spike_limit(average)
    if highest <= limit:
        return recent
    alike = _last_like(drains(consumed, average), highest, _SPIKES_BEFORE + 1)
    if len(alike) <= _SPIKES_BEFORE or not _are_spikes(alike):
        return recent
    excess = [drain.excess_units for drain in alike]
    if max(excess) * 100 > min(excess) * _MORE_PERCENT:
        return recent
    return [units for units in recent if (units or 0) <= limit]


def is_expected(consumed: Sequence[int | None], capacity_units: int, burst_seconds: int) -> bool:
    """Whether the drain that ends with the newest minute is like those before it, and the bucket serves these."""
    found = drains(consumed, capacity_units)
    if not found:
        return True
    now = found.pop()
    most = _most_of(_last_like(found, now.highest_units), now)
    return most is not None and most <= capacity_units * burst_seconds


def expected_drain(consumed: Sequence[int | None], later: Sequence[int], capacity_units: int) -> int | None:
    """Return the units that the drain under way will take from the bucket after the minutes *consumed*.

    It is expected to take as much as the largest of the last three, and a tenth more. Where no known minute was above
    the capacity, some of its seconds may have been, as in a spike of ten seconds. Then it is compared with the drains
    above the last hour's highest average of ten minutes. A full bucket serves such a spike, however short, as it holds
    at least a minute of capacity. Pays most on aws_ec2_diskwrite_kb.

    Args:
        consumed: Units consumed in each minute that CloudWatch has, oldest first.
        later: Units asked for in each minute after them, known from pulses; the newest minute is not over.
        capacity_units: Provisioned units per second.

    Returns:
        `None` for a drain that is larger or longer than these three, or if there were none that were over within ten
        minutes.
    """
    found = drains(consumed, capacity_units)
    if not found:
        capacity_units = min(capacity_units, highest_average(consumed[-MINUTES_PER_HOUR:]))
        found = drains(consumed, capacity_units)
    newest = consumed[-SPIKE_MINUTES:]
    taken, _ = _drain_so_far(newest, capacity_units)
    _, now = _drain_so_far((*newest, *later), capacity_units)
    most = _most_of(found[-_SPIKES_BEFORE:], now)
    return None if most is None else most - taken


def is_expected_so_far(
    consumed: Sequence[int | None], later: Sequence[int], capacity_units: int, burst_seconds: int
) -> bool:
    """Whether the drain under way is like the last three, and the bucket has what it is expected to take.

    Pays most on az_http_spike.

    Args:
        consumed: As for `expected_drain`. The bucket is assumed to have been full an hour before the newest of them.
        later: As for `expected_drain`.
        capacity_units: Provisioned units per second.
        burst_seconds: How many seconds of capacity the bucket is believed to hold.
    """
    expected = expected_drain(consumed, later, capacity_units)
    if expected is None:
        return False
    hour = [units or 0 for units in consumed[-MINUTES_PER_HOUR:]]
    return expected <= level_after(capacity_units * burst_seconds, capacity_units, hour, 60, burst_seconds)


def _drain_so_far(demand: Sequence[int | None], capacity_units: int) -> tuple[int, BucketDrain]:
    """Return the units that the bucket lacks at the end of *demand*, and the drain that goes on or is being filled up.

    That drain ends where the bucket lacks most: the minutes after it only fill the bucket, so they do not count.
    """
    excess = minutes = most = length = 0
    for units in demand:
        excess = max(0, excess + (units or 0) - 60 * capacity_units)
        minutes = minutes + 1 if excess else 0
        if not excess:
            most = length = 0
        elif excess > most:
            most, length = excess, minutes
    return excess, BucketDrain(most, length, 0, 0)


def _used(burst_seconds: int) -> int:
    return burst_seconds * _USED_PERCENT // 100


def _spike_limit(average: int) -> int:
    """Return the units in a minute above which it is a spike, over an average in units per second."""
    return 60 * average * _SPIKE_PERCENT // 100


def _last_like(found: Sequence[BucketDrain], highest_units: int, most: int = _SPIKES_BEFORE) -> list[BucketDrain]:
    """Return up to so many of the last drains that were about as high as *highest_units* in a minute."""
    return [drain for drain in found if drain.is_like(highest_units)][-most:]


def _are_spikes(found: Sequence[BucketDrain]) -> bool:
    return bool(found) and max(drain.minutes for drain in found) <= SPIKE_MINUTES


def _most_of(found: Sequence[BucketDrain], now: BucketDrain) -> int | None:
    """Return the most units that a drain like those *found* takes; `None` if they are no spikes, or *now* is larger."""
    if not _are_spikes(found):
        return None
    most = max(drain.excess_units for drain in found) * _MORE_PERCENT // 100
    longest = max(drain.minutes for drain in found)
    return most if now.minutes <= longest and now.excess_units <= most else None
