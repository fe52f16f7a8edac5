"""Compares a day of native auto scaling in the local cloud, on a driven clock, with the simulator.

Run it with `make benchmark NAME=day`. Exits with status 1 if the two differ by more than 5 % in billed unit-hours, by
more than two changes of capacity, or by more than one decrease.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic

WRITE: Final = Dimension.WRITE
FLOOR, CEILING, UNITS, READS = 4, 60, 9, 3
# Write units per second: the lowest at night, the highest by day, and the rate of the two surges
LOW, HIGH, SURGE = 3, 12, 18
_HOUR = 60
BILLED_TOLERANCE_PERCENT: Final = 5
CHANGES_TOLERANCE: Final = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one side: changes of capacity (second, units), decreases, billed unit-hours, throttled units."""

    changes: tuple[tuple[int, int], ...]
    decreases: int
    refused_decreases: int
    unit_hours: int
    throttled: float


@dataclass(frozen=True, slots=True)
class Day:
    """The results of both sides under the same traffic.

    Attributes:
        local: The local cloud's result.
        simulated: The simulator's result.
    """

    local: Seen
    simulated: Seen

    @property
    def agrees(self) -> bool:
        """Whether billed unit-hours, changes of capacity and decreases agree within the tolerances."""
        difference = abs(self.local.unit_hours - self.simulated.unit_hours)
        billed = 100 * difference <= BILLED_TOLERANCE_PERCENT * self.simulated.unit_hours
        changes = abs(len(self.local.changes) - len(self.simulated.changes)) <= CHANGES_TOLERANCE
        decreases = abs(self.local.decreases - self.simulated.decreases) <= 1
        return billed and changes and decreases


def curve(minutes: int) -> list[float]:
    """Return the units per second of each minute: quiet at midnight, busy at noon, two surges of 40 minutes."""
    rates = []
    for minute in range(minutes):
        middle, swing = (LOW + HIGH) / 2, (HIGH - LOW) / 2
        rate = middle - swing * math.cos(2 * math.pi * minute / (24 * _HOUR))
        if 2 * _HOUR <= minute < 2 * _HOUR + 40 or 13 * _HOUR <= minute < 13 * _HOUR + 40:
            rate = SURGE
        rates.append(rate)
    return rates


def run_day(hours: int) -> Day:
    """Send *hours* of load, from midnight UTC, to a table in a new local cloud; then simulate the same load."""
    with LocalCloud(clock="driven") as cloud:
        make_tracked_table(cloud, floor=FLOOR, ceiling=CEILING, units=UNITS, reads=READS)
        autoscaling = cloud.client("application-autoscaling")
        midnight = cloud.advance(timedelta(days=1)).now
        counts = {Stream(None, WRITE): [rate * 60 for rate in curve(hours * _HOUR)]}
        traffic = Traffic.from_counts("a day", counts, bin_seconds=60, start=midnight)
        report = Load(cloud.control, "orders", traffic, requests_per_second=1).run()
        pages = autoscaling.get_paginator("describe_scaling_activities").paginate(ServiceNamespace="dynamodb")
        activities = [activity for page in pages for activity in page["ScalingActivities"]]
        autoscaling.close()
    local = _local_result(report, activities[::-1], midnight, hours)
    return Day(local, _simulated_result(report, midnight, hours, local.changes[0][1]))


def make_tracked_table(cloud: LocalCloud, *, floor: int, ceiling: int, units: int, reads: int) -> None:
    """Create a table `orders` with target tracking at 70 % for its writes, warmed up to its ceiling."""
    dynamodb, autoscaling = cloud.client("dynamodb"), cloud.client("application-autoscaling")
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": reads, "WriteCapacityUnits": units},
        WarmThroughput={"ReadUnitsPerSecond": reads, "WriteUnitsPerSecond": ceiling},
    )
    target = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/orders",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    }
    autoscaling.register_scalable_target(**target, MinCapacity=floor, MaxCapacity=ceiling)
    metric = {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}
    autoscaling.put_scaling_policy(
        **target,
        PolicyName="tracking",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 70.0, "PredefinedMetricSpecification": metric},
    )
    dynamodb.close()
    autoscaling.close()


def _local_result(report: LoadReport, activities: list[dict[str, Any]], midnight: datetime, hours: int) -> Seen:
    changes, refused = [(0, UNITS)], 0
    for activity in activities:
        match = re.fullmatch(r"Setting write capacity units to (\d+)\.", activity["Description"])
        second = int((activity["StartTime"] - midnight).total_seconds())
        if match is None or second >= hours * 3600:
            continue
        if activity["StatusCode"] != "Successful":
            refused += 1
        elif second < 0:
            # a change before midnight, while the table was idle, sets the capacity at the start
            changes = [(0, int(match[1]))]
        else:
            changes.append((second + Timing().autoscaling_update, int(match[1])))
    decreases = sum(after < before for (_, before), (_, after) in itertools.pairwise(changes))
    throttled = report.total(WRITE, "throttled")
    return Seen(tuple(changes), decreases, refused, _unit_hours(changes, hours), throttled)


def _simulated_result(report: LoadReport, midnight: datetime, hours: int, units: int) -> Seen:
    # what the clients sent in each minute, in whole requests
    counts = [minute.asked for minute in report.minutes[WRITE][: hours * _HOUR]]
    traffic = Traffic.from_counts("a day", {Stream(None, WRITE): counts}, bin_seconds=60, start=midnight)
    write = TargetSetup(units=units, min=FLOOR, max=CEILING, tracking=TargetTracking(target_percent=70))
    table = ResourceSetup(index=None, read=TargetSetup.fixed(READS), write=write, warm_write_units=CEILING)
    run: Run = run_policy("declared", TableSetup(name="orders", resources=(table,), starts_settled=False), traffic)
    target = run.target(WRITE)
    return Seen(target.capacity, run.decreases, run.refused_decreases, sum(target.hour_peaks), target.throttled_units)


def _unit_hours(changes: list[tuple[int, int]], hours: int) -> int:
    """Return the billed unit-hours: each clock hour counts with its highest capacity."""
    peaks = [0] * hours
    for (begun, units), (ended, _) in itertools.pairwise([*changes, (hours * 3600, 0)]):
        for hour in range(begun // 3600, min(hours, -(-ended // 3600))):
            peaks[hour] = max(peaks[hour], units)
    return sum(peaks)


def main() -> int:
    """Run the day and print both results; return 1 if they do not agree, else 0."""
    parser = argparse.ArgumentParser(prog="day", description=__doc__)
    parser.add_argument("--hours", type=int, default=24, help="hours on the cloud's clock (default: 24)")
    options = parser.parse_args()
    day = run_day(options.hours)
    print(f"{'':24}{'local cloud':>14}{'simulator':>14}")
    for label, member in (
        ("decreases", "decreases"),
        ("refused decreases", "refused_decreases"),
        ("billed WCU-hours", "unit_hours"),
        ("units throttled", "throttled"),
    ):
        print(f"{label:24}{getattr(day.local, member):>14,.0f}{getattr(day.simulated, member):>14,.0f}")
    print(f"{'changes of capacity':24}{len(day.local.changes) - 1:>14}{len(day.simulated.changes) - 1:>14}")
    for local, simulated in itertools.zip_longest(day.local.changes, day.simulated.changes):
        print(f"{'':24}{_text(local):>14}{_text(simulated):>14}")
    return 0 if day.agrees else 1


def _text(change: tuple[int, int] | None) -> str:
    if change is None:
        return ""
    second, units = change
    return f"{second // 3600:02}:{second // 60 % 60:02} {units:>4}"


if __name__ == "__main__":
    sys.exit(main())
