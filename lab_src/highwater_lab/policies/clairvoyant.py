"""The clairvoyant bound: the lowest cost of provisioned capacity without throttling, if all demand is known before."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from highwater.core import Dimension
from highwater.core.bucket import Bucket
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.physics.throughput import Cause
from highwater_lab.rooms import drained
from highwater_lab.services.billing import bill
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.simulation.run import Change, Run, TargetRun
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.simulation.simulator import billed_replicas
from highwater_lab.simulation.table import rates_of
from highwater_lab.traffic.series import Traffic

NAME = "clairvoyant"
SOURCE = "the cheapest capacities of all hours that throttle nothing"
# The fill of the bucket at an hour's end is taken for one of so many levels, the next higher one. With more of them the
# bound is a little higher, and takes longer to find.
_LEVELS: Final = 16


def clairvoyant(setup: TableSetup, traffic: Traffic, *, prices: Prices | None = None) -> Run:
    """Return the run with the lowest cost of provisioned capacity without throttling, if all demand is known before.

    For each target, the run has the constant capacities of the clock hours that serve all demand at the lowest sum,
    while the burst bucket is carried from hour to hour. Each assumption only lowers the cost, so no provisioned policy
    without throttling costs less:

    - Changes take no time and happen on the hour. AWS bills an hour at its highest capacity anyway.
    - The burst bucket is full at the start, and what it holds at the end of an hour is rounded up, by at most a
      sixteenth of what the next hour can use.
    - Neither partition limits nor floors apply.
    - Writes that pass through a queue arrive as the queue lets them through.

    Demand above the table's quota is throttled. The decrease quota needs no check, because it allows one call per hour
    for reads and writes together. *prices* are those of us-east-1 by default.
    """
    prices = prices or load_prices()
    traffic = drained(setup, traffic)
    base = int(traffic.start.timestamp())
    targets = []
    for resource in setup.resources:
        for dimension in Dimension:
            rates = rates_of(traffic, resource, dimension)
            starts, parts = zip(*_hours(rates, base, traffic), strict=True)
            hours = list(zip(starts, _cheapest_capacities(parts, traffic.bin_seconds, setup), strict=True))
            consumed = _by_minute(rates, traffic)
            throttled = _above_quota(rates, hours, setup.quota_units, traffic)
            for minute, causes in throttled.items():
                consumed[minute] -= sum(causes.values())
            targets.append(_record(resource.index, dimension, consumed, throttled, hours, setup.quota_units))
    decreases = {
        (target.index, at)
        for target in targets
        for (_, before), (at, after) in itertools.pairwise(target.capacity)
        if after < before
    }
    return Run(
        table=setup.name,
        policy=NAME,
        start=traffic.start,
        minutes=traffic.minutes,
        targets=tuple(targets),
        events=(),
        decreases=len(decreases),
        refused_decreases=0,
        bill=bill(
            prices,
            [(target.dimension, target.hour_peaks) for target in targets],
            [],
            hours=len(targets[0].hour_peaks),
            seconds=traffic.minutes * 60,
            is_infrequent_access=setup.is_infrequent_access,
            replicas=billed_replicas(setup, prices),
        ),
    )


def _hours(rates: array[int] | None, base: int, traffic: Traffic) -> Iterator[tuple[int, array[int]]]:
    """Yield for each clock hour the second of the run at which it begins, and its rates."""
    start, end = 0, traffic.minutes * 60
    while start < end:
        stop = min(end, start + 3600 - (base + start) % 3600)
        part = rates[start // traffic.bin_seconds : stop // traffic.bin_seconds] if rates else array("q")
        yield start, part
        start = stop


@dataclass(frozen=True, slots=True)
class _Hour:
    """One hour's demand, in quanta, and what serving it takes.

    Attributes:
        seconds: The hour's length.
        demand: The demand until each point in time that can decide how much a bucket must hold at the start.
        demand_to_end: For each point that can decide what is left at the end: the seconds and the demand from it on.
        lowest: The fewest units that serve the hour from a full bucket, at most the quota.
        burst_seconds: How many seconds of capacity the bucket keeps.
    """

    seconds: int
    demand: Sequence[tuple[int, int]]
    demand_to_end: Sequence[tuple[int, int]]
    lowest: int
    burst_seconds: int

    @classmethod
    def of(cls, rates: array[int], bin_seconds: int, setup: TableSetup) -> Self:
        """Read an hour from its rates, in quanta per second."""
        sums = [0, *itertools.accumulate(rate * bin_seconds for rate in rates)]
        points = [(at * bin_seconds, units) for at, units in enumerate(sums)]
        end, total = points[-1]
        highest = [(seconds, units) for seconds, units in _hull(points, is_upper=True) if seconds]
        to_end = [(end - seconds, total - units) for seconds, units in _hull(points, is_upper=False)]
        return cls(end, highest, to_end, _lowest_capacity(rates, bin_seconds, setup), setup.burst_seconds)

    @property
    def levels(self) -> list[int]:
        """The quanta that the bucket may hold at the start: from nothing to all that is of use."""
        most = self.rate_from(0) * self.burst_seconds
        return [most * level // _LEVELS for level in range(_LEVELS + 1)]

    def rate_from(self, level: int) -> int:
        """The lowest rate, in quanta per second, that serves the hour if the bucket holds *level* at the start."""
        return max((-((level - units) // seconds) for seconds, units in self.demand), default=0)

    def rate_to(self, level: int) -> int:
        """The lowest rate that leaves *level* in a bucket that may have been full at any time in the hour."""
        # a full bucket cannot take the next second's capacity
        spans = ((self.burst_seconds + max(seconds - 1, 0), units) for seconds, units in self.demand_to_end)
        return max(-(-(level + units) // seconds) for seconds, units in spans)

    def units(self, rate: int) -> int:
        """The units of a rate, at least those that a full bucket needs."""
        return max(self.lowest, -(-rate // QUANTA_PER_UNIT))


def _cheapest_capacities(parts: Sequence[array[int]], bin_seconds: int, setup: TableSetup) -> list[int]:
    """Return each hour's capacity, so that their sum is the lowest; found hour by hour for each level of the bucket."""
    if not any(parts):
        return [1] * len(parts)
    hours = [_Hour.of(part, bin_seconds, setup) for part in parts]
    # for each level at the start of an hour, the lowest sum of the hours before it; the bucket is full at first
    costs: list[int | None] = [None] * _LEVELS + [0]
    choices: list[list[tuple[int, int]]] = []
    for number, hour in enumerate(hours):
        starts, total = hour.levels, hour.demand_to_end[0][1]
        served = [hour.rate_from(level) for level in starts]
        next_levels = hours[number + 1].levels if number + 1 < len(hours) else [0] * (_LEVELS + 1)
        reached: list[int | None] = [None] * (_LEVELS + 1)
        chosen = [(0, 0)] * (_LEVELS + 1)
        for level in range(1, _LEVELS + 1):
            # what is between two levels counts as the higher one
            left = next_levels[level - 1]
            ending = hour.rate_to(left)
            for start, before in enumerate(costs):
                if before is None:
                    continue
                filling = -((starts[start] - left - total) // hour.seconds)
                units = min(hour.units(max(served[start], ending, filling)), setup.quota_units)
                known = reached[level]
                if known is None or before + units < known:
                    reached[level], chosen[level] = before + units, (start, units)
        costs = reached
        choices.append(chosen)
    level = min((level for level, cost in enumerate(costs) if cost is not None), key=lambda each: costs[each] or 0)
    capacities = []
    for chosen in reversed(choices):
        level, units = chosen[level]
        capacities.append(units)
    return capacities[::-1]


def _hull(points: Sequence[tuple[int, int]], *, is_upper: bool) -> list[tuple[int, int]]:
    """Return the points of the convex hull on one side; the highest or lowest slope to any point is one to these."""
    hull: list[tuple[int, int]] = []
    sign = 1 if is_upper else -1
    for x, y in points:
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if sign * ((y2 - y1) * (x - x2) - (y - y2) * (x2 - x1)) > 0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _lowest_capacity(rates: array[int], bin_seconds: int, setup: TableSetup) -> int:
    """Return the fewest units that serve these rates from a full burst bucket, at most the quota."""
    low, high = 1, max(1, min(setup.quota_units, -(-max(rates, default=0) // QUANTA_PER_UNIT)))
    while low < high:
        units = (low + high) // 2
        if _serves(Bucket(units * QUANTA_PER_UNIT, setup.burst_seconds), rates, bin_seconds):
            high = units
        else:
            low = units + 1
    return low


def _serves(bucket: Bucket, rates: array[int], bin_seconds: int) -> bool:
    return all(bucket.serve(rate, bin_seconds) == rate * bin_seconds for rate in rates)


def _by_minute(rates: array[int] | None, traffic: Traffic) -> array[int]:
    if rates is None:
        return array("q", bytes(8 * traffic.minutes))
    step = 60 // traffic.bin_seconds
    return array("q", [sum(rates[at : at + step]) * traffic.bin_seconds for at in range(0, len(rates), step)])


def _above_quota(
    rates: array[int] | None, hours: list[Change], quota: int, traffic: Traffic
) -> dict[int, dict[Cause, int]]:
    """Return, by minute, the quanta that hours at the quota cannot serve, the first of them from a full bucket."""
    throttled: dict[int, dict[Cause, int]] = {}
    bucket: Bucket | None = None
    step = traffic.bin_seconds
    ends = [at for at, _ in hours[1:]] + [traffic.minutes * 60]
    for (start, units), end in zip(hours, ends, strict=True):
        if rates is None or units < quota:
            bucket = None
            continue
        bucket = bucket or Bucket(units * QUANTA_PER_UNIT)
        for second in range(start, end, step):
            rate = rates[second // step]
            refused = rate * step - bucket.serve(rate, step)
            if refused:
                causes = throttled.setdefault(second // 60, {ThrottleCause.PROVISIONED: 0})
                causes[ThrottleCause.PROVISIONED] += refused
    return throttled


def _record(
    index: str | None,
    dimension: Dimension,
    consumed: array[int],
    throttled: dict[int, dict[Cause, int]],
    hours: list[Change],
    quota_units: int,
) -> TargetRun:
    changes = [
        hours[0],
        *((at, units) for (_, last), (at, units) in itertools.pairwise(hours) if units != last),
    ]
    ceiling = max(units for _, units in hours)
    return TargetRun(
        index,
        dimension,
        consumed,
        throttled,
        tuple(changes),
        ((0, 1, ceiling),),
        tuple(units for _, units in hours),
        quota_units=quota_units,
    )
