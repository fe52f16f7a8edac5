"""The alarms of target tracking policies, in CloudWatch's DescribeAlarms."""

from __future__ import annotations

from datetime import timedelta

from tests.local.world import World, key


def test_alarms_of_a_tracking_policy_are_among_cloudwatchs(world: World) -> None:
    """Thresholds follow the capacity: 60 % and 40 % of 50 units, in units a minute."""
    cloudwatch = world.cloud.client("cloudwatch")
    table = world.table(read=50, write=3)
    world.register(f"table/{table}", 50, 900)
    put = world.put_policy(f"table/{table}", "tracking", 60)
    names = [alarm["AlarmName"] for alarm in put["Alarms"]]
    found = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]}
    shown = [
        (
            found[name]["AlarmArn"] == put["Alarms"][number]["AlarmARN"],
            found[name]["MetricName"],
            found[name]["Statistic"],
            found[name]["Period"],
            found[name]["EvaluationPeriods"],
            found[name]["ComparisonOperator"],
            found[name]["Threshold"],
        )
        for number, name in enumerate(names)
    ]
    consumed, provisioned = "ConsumedReadCapacityUnits", "ProvisionedReadCapacityUnits"
    assert shown == [
        (True, consumed, "Sum", 60, 2, "GreaterThanThreshold", 1800.0),
        (True, consumed, "Sum", 60, 15, "LessThanThreshold", 1200.0),
        (True, provisioned, "Average", 300, 3, "GreaterThanThreshold", 50.0),
        (True, provisioned, "Average", 300, 3, "LessThanThreshold", 50.0),
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
    cloudwatch.close()
