"""The same load sent to the local cloud and given to the simulator: they agree."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.local_day import make_tracked_table, run_day
from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic
from tests.local.world import world_of

pytestmark = pytest.mark.xdist_group("cloud-speed")
WRITE = Dimension.WRITE
FLOOR, CEILING, UNITS = 20, 900, 65
RATES = [45] * 3 + [180] * 10


def _sent() -> tuple[LoadReport, Traffic, list[dict[str, Any]]]:
    with LocalCloud(clock="driven") as cloud:
        make_tracked_table(cloud, floor=FLOOR, ceiling=CEILING, units=UNITS, reads=5)
        start = cloud.step(60).now
        counts = {Stream(None, WRITE): [rate * 60.0 for rate in RATES]}
        traffic = Traffic.from_counts("surge", counts, bin_seconds=60, start=start)
        # of 45 units each, one in a second of the base
        report = Load(cloud.control, "orders", traffic, requests_per_second=4).run()
        activities = world_of(cloud).activities("table/orders")
    return report, traffic, activities[::-1]


def _simulated(traffic: Traffic) -> Run:
    write = TargetSetup(units=UNITS, min=FLOOR, max=CEILING, tracking=TargetTracking(target_percent=70))
    table = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=write, warm_write_units=CEILING)
    return run_policy("declared", TableSetup(name="orders", resources=(table,)), traffic)


def test_load_in_lock_step_meets_what_the_simulator_says() -> None:
    report, traffic, activities = _sent()
    run = _simulated(traffic)
    simulated = run.target(WRITE)
    asked = sum(RATES) * 60
    assert report.total(WRITE, "asked") == asked
    # the alarm acts at a second of its own, less than a minute from the simulator's
    a_minute = 60 * (max(RATES) - UNITS)
    assert report.total(WRITE, "throttled") == pytest.approx(simulated.throttled_units, abs=a_minute)
    first = next(minute for minute, told in enumerate(report.minutes[WRITE]) if told.throttled)
    assert abs(first - run.throttled_minutes()[0]) <= 1
    # at the target to the unit, a request that slips into the next minute sets off a step of one or two units
    seen = [(UNITS, traffic.start)]
    for activity in activities:
        units = int(activity["Description"].removeprefix("Setting write capacity units to ").rstrip("."))
        if abs(units - seen[-1][0]) > 0.05 * units:
            seen.append((units, activity["StartTime"]))
    changes = simulated.capacity[1:]
    assert len(seen) - 1 == len(changes) == 1
    for (at, units), (got, when) in zip(changes, seen[1:], strict=True):
        assert abs((when - traffic.start).total_seconds() - at) <= 60
        assert got == pytest.approx(units, rel=0.05)


def test_hours_of_auto_scaling_are_billed_as_the_simulator_bills_them() -> None:
    # the whole day is `make benchmark NAME=day`; these have a surge, its throttles and its decrease
    day = run_day(3)
    assert day.agrees, day
    assert day.local.decreases >= 1
    assert min(day.local.throttled, day.simulated.throttled) > 0
