"""The clairvoyant bound: the lowest cost of provisioned capacity without throttling, if all demand is known before."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator

from highwater.core import Dimension
from highwater_lab.physics import Bucket, Cause
from highwater_lab.services.billing import bill
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.simulation.queue import drained
from highwater_lab.simulation.run import Change, Run, TargetRun
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.simulation.simulator import billed_replicas
from highwater_lab.simulation.table import rates_of
from highwater_lab.traffic.series import Traffic

NAME = "clairvoyant"
SOURCE = "the lowest capacity for each hour that throttles nothing"


def clairvoyant(setup: TableSetup, traffic: Traffic, *, prices: Prices | None = None) -> Run:
    """Return the run with the lowest cost of provisioned capacity without throttling, if all demand is known before.

    For each target and each clock hour, the run has the lowest constant capacity that serves the hour's demand from a
    full burst bucket. Each assumption only lowers the cost, so no provisioned policy without throttling costs less:

    - Changes take no time and happen on the hour. AWS bills an hour at its highest capacity anyway.
    - The burst bucket is full at the start of every hour.
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
            hours = [
                (second, _lowest_capacity(part, traffic.bin_seconds, setup.quota_units))
                for second, part in _hours(rates, base, traffic)
            ]
            consumed = _by_minute(rates, traffic)
            throttled = _above_quota(rates, hours, setup.quota_units, traffic)
            for minute, causes in throttled.items():
                consumed[minute] -= sum(causes.values())
            targets.append(_record(resource.index, dimension, consumed, throttled, hours))
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


def _lowest_capacity(rates: array[int], bin_seconds: int, quota: int) -> int:
    """Return the fewest units that serve these rates from a full burst bucket, at most *quota*."""
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
    """Return, by minute, the quanta that hours with capacity at the quota cannot serve."""
    throttled: dict[int, dict[Cause, int]] = {}
    step = traffic.bin_seconds
    ends = [at for at, _ in hours[1:]] + [traffic.minutes * 60]
    for (start, units), end in zip(hours, ends, strict=True):
        if rates is None or units < quota:
            continue
        bucket = Bucket(units)
        for second in range(start, end, step):
            rate = rates[second // step]
            refused = rate * step - bucket.serve(rate, step)
            if refused:
                causes = throttled.setdefault(second // 60, {Cause.PROVISIONED: 0})
                causes[Cause.PROVISIONED] += refused
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
    ceiling = max(units for _, units in hours)
    return TargetRun(
        index, dimension, consumed, throttled, tuple(changes), ((0, 1, ceiling),), tuple(units for _, units in hours)
    )
