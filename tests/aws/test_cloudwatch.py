"""CloudWatch's adapter: thresholds of alarms that move, and calls that keep to the rate of its datapoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from highwater.aws.cloudwatch import (
    DatapointRate,
    TargetAlarm,
    client,
    metrics_per_call,
    move_threshold,
    read_alarms,
    with_throttles,
)
from highwater.core.names import TargetName
from highwater.core.scaler.inputs import Observation
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


def test_threshold_moves_and_all_that_boto3_knows_of_the_alarm_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """PutMetricAlarm replaces the whole alarm: a setting that the request leaves out is gone."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    cloudwatch = client()
    model: Any = cloudwatch.meta.service_model
    put = model.operation_model("PutMetricAlarm").input_shape
    alarm = _value(model.shape_for("MetricAlarm"), "alarm")
    alarm |= {"Threshold": 1_261.0, "ActionsEnabled": False, "OKActions": [], "StateValue": "OK"}
    kept = {name: alarm[name] for name in put.members if name in alarm and name != "OKActions"}
    newer = {
        "EvaluationWindow",
        "EvaluationCriteria",
        "EvaluationInterval",
        "WarmUpConfiguration",
        "ActionConfiguration",
    }
    assert newer < kept.keys()
    with Stubber(cloudwatch) as stub:
        stub.add_response("describe_alarms", {"MetricAlarms": [alarm]}, {"AlarmNames": [alarm["AlarmName"]]})
        stub.add_response("put_metric_alarm", {}, kept | {"Threshold": 3_723.0})
        move_threshold(cloudwatch, TargetAlarm(is_in_alarm=False, threshold=1_261, document=alarm), 3_723)
        stub.assert_no_pending_responses()


def _value(shape: Any, name: str) -> Any:
    """A value of a type of botocore's service model."""
    if shape.type_name == "structure":
        members = list(shape.members)[:1] if shape.is_tagged_union else shape.members
        return {member: _value(shape.members[member], member) for member in members}
    if shape.type_name == "list":
        return [_value(shape.member, name)]
    known = {"boolean": True, "integer": 61, "double": 67.5, "timestamp": datetime(2027, 3, 4, tzinfo=UTC)}
    return known.get(shape.type_name, f"{name}-{'x' * shape.metadata.get('min', 0)}")


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


@pytest.mark.parametrize(
    ("units", "samples", "expected"),
    [
        pytest.param(128, 2, 7 * 128, id="one-request-and-the-zero"),
        pytest.param(128, 1, 7 * 128, id="one-request-in-a-minute-without-the-zero"),
        pytest.param(630, 22, 7 * 30, id="many-requests-and-the-zero"),
        pytest.param(0, 1, 7, id="the-zero-alone"),
        pytest.param(None, None, 7, id="no-datapoint-yet"),
    ],
)
def test_throttled_request_counts_as_a_mean_request_and_the_sample_of_zero_as_none(
    units: int | None, samples: int | None, expected: int
) -> None:
    """One request of 5 units has two samples, with a minimum of 0 and a mean of 2.5.

    Recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics, 2026-09.
    """
    now = datetime(2026, 11, 28, 9, 30, 20, tzinfo=UTC)
    at = now.replace(second=0) - timedelta(minutes=1)

    def answer(*values: int | None) -> dict[str, Any]:
        return {
            "MetricDataResults": [
                {
                    "Id": f"q{number}",
                    "Timestamps": [] if value is None else [at.timestamp()],
                    "Values": [] if value is None else [float(value)],
                }
                for number, value in enumerate(values)
            ]
        }

    cloudwatch = client("eu-central-1")
    with Stubber(cloudwatch) as stub:
        stub.add_response("get_metric_data", answer(7))
        stub.add_response("get_metric_data", answer(samples, 7, 0))
        seen = {_NAME: Observation.of(int(at.timestamp()) // 60, (units,))}
        found = with_throttles(cloudwatch, seen, 1, now)[_NAME]
    assert found.throttled_units == (expected,)
