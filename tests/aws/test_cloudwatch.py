"""CloudWatch's adapter: thresholds of alarms that move, and calls that keep to the rate of its datapoints."""

from __future__ import annotations

from dataclasses import dataclass, field

from highwater.aws.cloudwatch import DatapointRate, metrics_per_call, move_threshold, read_alarms
from highwater.core.names import TargetName
from highwater.core.units import Dimension
from tests.aws.bench import Bench

_NAME = TargetName("orders-with-alarm", None, Dimension.WRITE)


def test_threshold_moves_and_nothing_else_and_a_deleted_alarm_is_not_made_anew(bench: Bench) -> None:
    """A run may be under way while CloudFormation deletes the alarm; nothing would ever delete a new one."""
    cloudwatch = bench.cloud.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=_NAME.alarm,
        AlarmDescription="of a test",
        Namespace="AWS/DynamoDB",
        MetricName="ConsumedWriteCapacityUnits",
        Dimensions=[{"Name": "TableName", "Value": _NAME.table}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1_200,
        ComparisonOperator="GreaterThanThreshold",
    )
    seen = read_alarms(cloudwatch, [_NAME])[_NAME]
    move_threshold(cloudwatch, seen, 3_600)
    moved = read_alarms(cloudwatch, [_NAME])[_NAME]
    assert (seen.threshold, moved.threshold) == (1_200, 3_600)
    assert moved.document["AlarmDescription"] == "of a test"

    cloudwatch.delete_alarms(AlarmNames=[_NAME.alarm])
    move_threshold(cloudwatch, moved, 4_800)
    assert read_alarms(cloudwatch, [_NAME]) == {}


@dataclass
class _Clock:
    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


def test_calls_wait_until_those_before_have_had_their_time() -> None:
    clock = _Clock()
    rate = DatapointRate(lambda: clock.now, clock.sleep)
    for datapoints in (100_800, 100_800, 330_000, 480):
        rate.wait_for(datapoints)
        clock.now += 0.1
    assert clock.slept == [0.205, 0.205, 0.9]


def test_calls_that_come_slowly_never_wait() -> None:
    clock = _Clock()
    rate = DatapointRate(lambda: clock.now, clock.sleep)
    for _ in range(5):
        rate.wait_for(330_000)
        clock.now += 1.0
    assert clock.slept == []


def test_call_has_no_more_metrics_than_its_page_has_room_for() -> None:
    """A day and an hour of minutes, eight hours, a quarter of an hour, one minute."""
    assert [metrics_per_call(minutes) for minutes in (1_500, 480, 15, 1)] == [67, 210, 500, 500]
