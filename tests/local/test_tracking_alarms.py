"""The alarms of target tracking policies, in CloudWatch's DescribeAlarms."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.local.world import World, key


def test_alarms_of_a_tracking_policy_are_among_cloudwatchs(world: World) -> None:
    """Thresholds follow the capacity: 60 % and 40 % of 50 units, in units a minute."""
    cloudwatch = world.cloud.client("cloudwatch")
    table = world.table(read=50, write=3)
    world.register(f"table/{table}", 50, 900)
    put = world.put_policy(f"table/{table}", "tracking", 60)
    names = [alarm["AlarmName"] for alarm in put["Alarms"]]
    found = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]}
    assert [found[name]["AlarmArn"] for name in names] == [alarm["AlarmARN"] for alarm in put["Alarms"]]
    members = ("MetricName", "Statistic", "Period", "EvaluationPeriods", "ComparisonOperator", "Threshold")
    shown = [tuple(found[name][member] for member in members) for name in names]
    consumed, provisioned = "ConsumedReadCapacityUnits", "ProvisionedReadCapacityUnits"
    assert shown == [
        (consumed, "Sum", 60, 2, "GreaterThanThreshold", 1800.0),
        (consumed, "Sum", 60, 15, "LessThanThreshold", 1200.0),
        (provisioned, "Average", 300, 3, "GreaterThanThreshold", 50.0),
        (provisioned, "Average", 300, 3, "LessThanThreshold", 50.0),
    ]
    assert {alarm["AlarmActions"][0] for alarm in found.values()} == {put["PolicyARN"]}
    world.register(f"table/{table}", 70, 900)
    world.cloud.advance(timedelta(minutes=25))
    by_name = cloudwatch.describe_alarms(AlarmNamePrefix=f"TargetTracking-table/{table}-")["MetricAlarms"]
    low = next(alarm for alarm in by_name if "-AlarmLow-" in alarm["AlarmName"])
    # nothing was read for 25 minutes
    assert (low["Threshold"], low["StateValue"]) == (1680.0, "ALARM")
    world.autoscaling.delete_scaling_policy(**key(f"table/{table}"), PolicyName="tracking")
    assert cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"] == []


def test_alarms_of_a_policy_on_a_metric_of_its_own_are_among_cloudwatchs(world: World) -> None:
    """They go by the target itself, as nothing about them depends on the capacity."""
    cloudwatch = world.cloud.client("cloudwatch")
    table = world.table(read=50, write=3)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    jobs: dict[str, Any] = {"MetricName": "jobs", "Namespace": "mine", "Statistic": "Average", "Unit": "Count"}
    jobs |= {"Dimensions": [{"Name": "Queue", "Value": table}]}
    math = {"Metrics": [{"Id": "m", "Expression": "TIME_SERIES(7)", "ReturnData": True}]}

    def put(name: str, metric: dict[str, Any]) -> list[dict[str, Any]]:
        put = world.put_policy(resource, name, 60, CustomizedMetricSpecification=metric)
        names = [alarm["AlarmName"] for alarm in put["Alarms"]]
        found = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]}
        assert [name.removeprefix(f"TargetTracking-{resource}-").split("-")[0] for name in names] == [
            "AlarmHigh",
            "AlarmLow",
        ]
        return [found[name] for name in names]

    high, low = put("own", jobs)
    watched = ("MetricName", "Namespace", "Statistic", "Unit", "Dimensions", "Period")
    for alarm in (high, low):
        assert {member: alarm[member] for member in watched} == jobs | {"Period": 60}
    compared = ("EvaluationPeriods", "ComparisonOperator", "Threshold")
    assert [high[member] for member in compared] == [3, "GreaterThanThreshold", 60.0]
    assert [low[member] for member in compared] == [15, "LessThanThreshold", 54.0]
    # CloudWatch judges them like any other
    cloudwatch.put_metric_data(
        Namespace="mine",
        MetricData=[
            {
                "MetricName": "jobs",
                "Dimensions": jobs["Dimensions"],
                "Value": 61,
                "Unit": "Count",
                "Timestamp": world.now() + timedelta(minutes=minute),
            }
            for minute in range(3)
        ],
    )
    world.cloud.advance(timedelta(minutes=4))
    described = cloudwatch.describe_alarms(AlarmNames=[high["AlarmName"]])["MetricAlarms"]
    assert [alarm["StateValue"] for alarm in described] == ["ALARM"]
    assert [alarm["Threshold"] for alarm in put("math", math)] == [60.0, 54.0]
    # another metric, other alarms
    names = [alarm["AlarmName"] for alarm in world.put_policy(resource, "own", 60)["Alarms"]]
    assert len(names) == len(cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]) == 4
    assert cloudwatch.describe_alarms(AlarmNames=[high["AlarmName"], low["AlarmName"]])["MetricAlarms"] == []
