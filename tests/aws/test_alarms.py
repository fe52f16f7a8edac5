"""The scaler's alarms on the local cloud: their thresholds move, and one that was deleted stays so."""

from __future__ import annotations

from highwater.aws.cloudwatch import move_threshold, read_alarms
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
