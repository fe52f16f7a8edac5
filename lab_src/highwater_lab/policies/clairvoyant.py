"""The clairvoyant bound: what no scaler can beat without throttling."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator

from highwater.core import Dimension
from highwater_lab.physics import Bucket, Cause
from highwater_lab.services.billing import bill
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.simulation.run import Change, Run, TargetRun
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.simulation.table import rates_of
from highwater_lab.traffic.series import Traffic

NAME = "clairvoyant"
SOURCE = "the cheapest hourly capacities that throttle nothing"


def clairvoyant(setup: TableSetup, traffic: Traffic, *, prices: Prices | None = None) -> Run:
    """The least that provisioned capacity could cost without a throttle, had all been known ahead.

    For each hour of the clock and each target, the lowest capacity that, constant and with a full burst bucket at the
    hour's beginning, serves all of it. It assumes changes that take no time and come on the hour, where AWS bills the
    hour's highest value anyway; a bucket that is full again each hour; no limits of partitions and no floor. Each of
    these only helps, so no provisioned policy without throttles costs less. Where even the quota does not suffice, what
    it cannot serve is throttled. The decrease budget does not bind it: one call for
    reads and writes each hour is what the budget allows all day.
    """
    prices = prices or load_prices()
    base = int(traffic.start.timestamp())
    targets = []
    for resource in setup.resources:
        for dimension in Dimension:
            rates = rates_of(traffic, resource, dimension)
            hours = [
                (second, _least(part, traffic.bin_seconds, setup.quota_units))
                for second, part in _hours(rates, base, traffic)
            ]
            consumed = _by_minute(rates, traffic)
            throttled = _above_quota(rates, hours, setup.quota_units, traffic)
            for minute, causes in throttled.items():
                consumed[minute] -= sum(causes.values())
            targets.append(_record(resource.index, dimension, consumed, throttled, hours))
    downs = {
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
        decreases=len(downs),
        refused_decreases=0,
        bill=bill(
            prices,
            [(target.dimension, target.hour_peaks) for target in targets],
            [],
            hours=len(targets[0].hour_peaks),
            seconds=traffic.minutes * 60,
            policies=0,
            metrics_requested=0,
            is_infrequent_access=setup.is_infrequent_access,
            warm_up=0.0,
        ),
    )


def _hours(rates: array[int] | None, base: int, traffic: Traffic) -> Iterator[tuple[int, array[int]]]:
    """Each hour of the clock: the second at which it begins, and its rates."""
    start, end = 0, traffic.minutes * 60
    while start < end:
        stop = min(end, start + 3600 - (base + start) % 3600)
        part = rates[start // traffic.bin_seconds : stop // traffic.bin_seconds] if rates else array("q")
        yield start, part
        start = stop


def _least(rates: array[int], bin_seconds: int, quota: int) -> int:
    """The fewest units that serve these rates from a full bucket, at most *quota*."""
    low, high = 1, max(1, min(quota, -(-max(rates, default=0) // 60)))
    while low < high:
        units = (low + high) // 2
        if _serves(units, rates, bin_seconds):
            high = units
        else:
            low = units + 1
    return low


def _serves(units: int, rates: array[int], bin_seconds: int) -> bool:
    bucket = Bucket(units)
    return all(bucket.serve(rate, bin_seconds) == rate * bin_seconds for rate in rates)


def _by_minute(rates: array[int] | None, traffic: Traffic) -> array[int]:
    if rates is None:
        return array("q", bytes(8 * traffic.minutes))
    step = 60 // traffic.bin_seconds
    return array("q", [sum(rates[at : at + step]) * traffic.bin_seconds for at in range(0, len(rates), step)])


def _above_quota(
    rates: array[int] | None, hours: list[Change], quota: int, traffic: Traffic
) -> dict[int, dict[Cause, int]]:
    """What the hours at the quota cannot serve, by minute."""
    throttled: dict[int, dict[Cause, int]] = {}
    step = traffic.bin_seconds
    ends = [at for at, _ in hours[1:]] + [traffic.minutes * 60]
    for (start, units), end in zip(hours, ends, strict=True):
        if rates is None or units < quota:
            continue
        bucket = Bucket(units)
        for second in range(start, end, step):
            rate = rates[second // step]
            lost = rate * step - bucket.serve(rate, step)
            if lost:
                causes = throttled.setdefault(second // 60, {Cause.PROVISIONED: 0})
                causes[Cause.PROVISIONED] += lost
    return throttled


def _record(
    index: str | None,
    dimension: Dimension,
    consumed: array[int],
    throttled: dict[int, dict[Cause, int]],
    hours: list[Change],
) -> TargetRun:
    changes = [
        hours[0],
        *((at, units) for (_, last), (at, units) in itertools.pairwise(hours) if units != last),
    ]
    most = max(units for _, units in hours)
    return TargetRun(
        index, dimension, consumed, throttled, tuple(changes), ((0, 1, most),), tuple(units for _, units in hours)
    )
