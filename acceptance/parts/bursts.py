"""Burst capacity: how long it lasts, whether a raise keeps it, and when the alarms of auto scaling are judged."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Final

from acceptance.sending import Levels, check_sent, load_of, reads, whole_minute
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import BURST_UNITS, read_resource, read_units, register
from highwater.core import Dimension
from highwater.core.bucket import BURST_SECONDS, Bucket, OnRaise
from highwater.core.names import TargetName
from highwater_lab.local.load import LoadReport
from highwater_lab.services.timing import Timing

# A minute more than DynamoDB needs to keep the unused capacity of five minutes
_FILLED_WITHIN: Final = 6 * MINUTE
# Minutes just below the capacity, which a bucket stays full in and a window of five minutes forgets; then minutes at
# twice the capacity, in which all is used up
_HELD, _EMPTIED = 6, 7
# Minutes at twice the capacity, which leave something; at the capacity, in which it is doubled; at thrice the first one
_DRAINED, _RAISED, _LOADED = 3, 1, 11
_REQUESTS_PER_SECOND: Final = 50
# A batch has at most so many keys: a local cloud gets few large requests
_MOST_KEYS, _LEAST_REQUESTS_PER_SECOND = 100, 3
# Answers whose seconds are nearer to each other cannot be told apart
_LEAST_GAP_SECONDS: Final = 30
_NONE: Final = "none of them"
# As in an alarm's reason: 180.0 (17/09/26 16:33:00)
_DATE: Final = re.compile(r"\((\d\d/\d\d/\d\d \d\d:\d\d:\d\d)\)")


def expected_seconds(burst_seconds: int, raised_after: int) -> dict[OnRaise, int]:
    """For each rule of a raise, how many seconds of the earlier capacity there are to use up after it.

    Args:
        burst_seconds: How many seconds of capacity the full bucket was measured to have.
        raised_after: How many seconds after it was asked for the capacity was doubled.
    """
    found, held = {}, min(max(raised_after, 1), _RAISED * 60 - 1)
    for rule in OnRaise:
        bucket = Bucket(1, burst_seconds, rule)
        bucket.serve(2, _DRAINED * 60)
        bucket.serve(1, held)
        bucket.resize(2)
        bucket.serve(1, _RAISED * 60 - held)
        found[rule] = bucket.serve(3, _LOADED * 60) - 2 * _LOADED * 60
    return found


def judge(seconds: float, expected: Mapping[OnRaise, int]) -> OnRaise | None:
    """The rule whose seconds were measured, within a third of the smallest gap between rules; `None` if none is."""
    in_order = sorted(expected.values())
    gap = min(after - before for before, after in pairwise(in_order))
    nearest = min(expected, key=lambda rule: abs(expected[rule] - seconds))
    return nearest if gap >= _LEAST_GAP_SECONDS and abs(expected[nearest] - seconds) <= gap / 3 else None


# reads, as they cost a fifth of writes, and a partition serves three times as many; doubled at the end
@part(minutes=45, units=len(BURST_UNITS), read_units=2 * sum(BURST_UNITS))
def burst(stage: Stage) -> None:
    """Burst capacity: how long it lasts, what a raise makes of it; when alarms of auto scaling are judged."""
    tables = {
        read_units(stage.place, name): name
        for name in (TargetName(each.table, None, Dimension.READ) for each in stage.deploy("Burst"))
    }
    names = [tables[units] for units in BURST_UNITS]
    for units, name in zip(BURST_UNITS, names, strict=True):
        _track(stage, name, units)
    held = _use_up(stage, names)
    _measure_alarms(stage, names)
    for name in names:
        # otherwise the raise would be undone
        stage.place.client("application-autoscaling").deregister_scalable_target(**_key_of(name))
    _raise(stage, names, held)


def _use_up(stage: Stage, names: list[TargetName]) -> list[float]:
    """Use up what tables have after idle minutes and some just below their capacity; return it in seconds of that."""
    levels = [((_HELD, 0.9 * units), (_EMPTIED, 2.0 * units)) for units in BURST_UNITS]
    reports = _send(stage, names, levels)
    held = [_spent(report, units, _HELD, _EMPTIED) for units, report in zip(BURST_UNITS, reports, strict=True)]
    stage.measure(
        "burst_held_seconds", _listed(held), assumed=f"{BURST_SECONDS}; under {BURST_SECONDS / 10:.0f} of a window"
    )
    return held


def _raise(stage: Stage, names: list[TargetName], held: list[float]) -> None:
    levels = [((_DRAINED, 2.0 * units), (_RAISED, 1.0 * units), (_LOADED, 3.0 * units)) for units in BURST_UNITS]
    watches = [partial(_double, stage, name, units) for units, name in zip(BURST_UNITS, names, strict=True)]
    reports_and_seconds = _send(stage, names, levels, *watches)
    reports, seconds = reports_and_seconds[: len(names)], reports_and_seconds[len(names) :]
    idle = [_spent(report, units, 0, _DRAINED) for units, report in zip(BURST_UNITS, reports, strict=True)]
    stage.measure("burst_idle_seconds", _listed(idle), assumed=f"all {_DRAINED * 60}")
    answers = []
    for units, report, full, took in zip(BURST_UNITS, reports, held, seconds, strict=True):
        stage.check(f"capacity of {units} units doubled", f"within {_RAISED * 60} s", took, holds=took is not None)
        left = _spent(report, units, _DRAINED + _RAISED, _LOADED, capacity=2)
        expected = expected_seconds(max(1, round(full)), took or 0)
        told = ", ".join(f"{value} ({rule})" for rule, value in expected.items())
        stage.measure(f"burst_raised_{units}_seconds", round(left), assumed=f"the first of {told}")
        answers.append(None if took is None else judge(left, expected))
    stage.measure("burst_raise_answer", ", ".join(answer or _NONE for answer in answers), assumed=OnRaise.KEEP)


def _send(stage: Stage, names: list[TargetName], levels: Sequence[Levels], *watches: Any) -> list[Any]:
    """Send reads to all tables once their buckets are full; return the reports, and what the watches return."""
    start = whole_minute(stage.now() + _FILLED_WITHIN)
    stage.wait_until(start, "burst capacity is saved")
    loads = [
        load_of(stage, name.table, reads(each, start), requests_per_second=_rate(stage, each))
        for name, each in zip(names, levels, strict=True)
    ]
    minutes = sum(length for length, _ in levels[0])
    with stage.busy(f"{minutes} minutes of reads of {len(names)} tables"):
        found = stage.place.side_by_side(loads, *watches)
    for units, each, report in zip(BURST_UNITS, levels, found[: len(names)], strict=True):
        check_sent(stage, report, each, f"the table of {units} units")
    return found


def _rate(stage: Stage, levels: Levels) -> int:
    most = math.ceil(max(rate for _, rate in levels) / _MOST_KEYS)
    return _REQUESTS_PER_SECOND if stage.place.is_real else max(most, _LEAST_REQUESTS_PER_SECOND)


def _spent(report: LoadReport, units: int, begin: int, minutes: int, *, capacity: int = 1) -> float:
    """What was granted above the capacity in minutes of a load, in seconds of *units*."""
    granted = sum(minute.granted for minute in report.minutes[Dimension.READ][begin : begin + minutes])
    return granted / units - capacity * minutes * 60


def _double(stage: Stage, name: TargetName, units: int) -> int | None:
    """Double the capacity once the table has been drained; return the seconds until it is there."""
    stage.place.let_pass(_DRAINED * MINUTE)
    throughput = {"ReadCapacityUnits": 2 * units, "WriteCapacityUnits": 1}
    stage.place.client("dynamodb").update_table(TableName=name.table, ProvisionedThroughput=throughput)

    def is_there() -> bool:
        table = read_resource(stage.place, name.table, None)
        return bool(table["ProvisionedThroughput"]["ReadCapacityUnits"] == 2 * units)

    return stage.place.seconds_until(is_there, _RAISED * MINUTE, MINUTE / 60)


def _listed(seconds: list[float]) -> str:
    return ", ".join(f"{each:.0f}" for each in seconds)


def _key_of(name: TargetName) -> dict[str, str]:
    return {
        "ServiceNamespace": "dynamodb",
        "ResourceId": name.resource_id,
        "ScalableDimension": name.scalable_dimension,
    }


def _track(stage: Stage, name: TargetName, units: int) -> None:
    """Have auto scaling watch a table that it can neither raise nor lower."""
    register(stage.place, name, units, units)
    stage.place.client("application-autoscaling").put_scaling_policy(
        **_key_of(name),
        PolicyName="tracking",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 70.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"},
        },
    )


def _measure_alarms(stage: Stage, names: list[TargetName]) -> None:
    """Measure when the alarms of tables that were busy went off, and how old their newest datapoint was then."""
    seconds, ages = [], []
    for name in names:
        prefix = f"TargetTracking-{name.resource_id}-AlarmHigh"
        found = stage.place.client("cloudwatch").describe_alarms(AlarmNamePrefix=prefix, StateValue="ALARM")
        for alarm in found["MetricAlarms"]:
            at: datetime = alarm["StateUpdatedTimestamp"].astimezone(UTC)
            seconds.append(f"{at.second + at.microsecond / 1e6:.1f}")
            ages.append(f"{datapoint_age(alarm['StateReason'], at).total_seconds():.1f}")
    stage.measure("alarm_seconds", ", ".join(seconds) or "no alarm", assumed="a second of each alarm's own")
    assumed = f"{Timing().metric_delay} or more, by that second"
    stage.measure("alarm_datapoint_ages_seconds", ", ".join(ages) or "no alarm", assumed=assumed)


def datapoint_age(reason: str, at: datetime) -> timedelta:
    """How long before *at* the minute of the newest datapoint in an alarm's *reason* ended."""
    dates = [datetime.strptime(text, "%d/%m/%y %H:%M:%S").replace(tzinfo=UTC) for text in _DATE.findall(reason)]
    return at - max(dates) - MINUTE
