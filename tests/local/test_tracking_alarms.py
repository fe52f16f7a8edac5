"""The alarms of target tracking policies: what they are, when they are replaced, and what sets them off."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.local.world import IDLE, INDEX_WRITE, MINUTE, SECOND, World, key

MEMBERS = ("MetricName", "Statistic", "Period", "EvaluationPeriods", "ComparisonOperator", "Threshold")


@pytest.fixture
def cloudwatch(world: World) -> Any:
    return world.cloud.client("cloudwatch")


def _alarms(cloudwatch: Any, resource: str) -> dict[str, dict[str, Any]]:
    """The alarms of a target's only policy, by what they watch."""
    prefix = f"TargetTracking-{resource}-"
    found = cloudwatch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    return {alarm["AlarmName"].removeprefix(prefix).split("-")[0]: alarm for alarm in found}


def _names(cloudwatch: Any, resource: str) -> set[str]:
    return {alarm["AlarmName"] for alarm in _alarms(cloudwatch, resource).values()}


def test_alarms_of_a_tracking_policy_are_among_cloudwatchs(world: World, cloudwatch: Any) -> None:
    """60 % and 40 % of 50 units, in units a minute; their actions name the policy by another ARN than the policy's own.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    table = world.table(read=50, write=3)
    world.register(f"table/{table}", 50, 900)
    put = world.put_policy(f"table/{table}", "tracking", 60)
    names = [alarm["AlarmName"] for alarm in put["Alarms"]]
    found = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]}
    assert [found[name]["AlarmArn"] for name in names] == [alarm["AlarmARN"] for alarm in put["Alarms"]]
    shown = [tuple(found[name][member] for member in MEMBERS) for name in names]
    consumed, provisioned = "ConsumedReadCapacityUnits", "ProvisionedReadCapacityUnits"
    assert shown == [
        (consumed, "Sum", 60, 2, "GreaterThanThreshold", 1800.0),
        (consumed, "Sum", 60, 15, "LessThanThreshold", 1200.0),
        (provisioned, "Average", 300, 3, "GreaterThanThreshold", 50.0),
        (provisioned, "Average", 300, 3, "LessThanThreshold", 50.0),
    ]
    ((action,),) = {tuple(alarm["AlarmActions"]) for alarm in found.values()}
    arn, created_by, number = action.rpartition(":createdBy/")
    assert (arn, created_by, len(number)) == (put["PolicyARN"], ":createdBy/", 36)
    for alarm in found.values():
        assert alarm["AlarmDescription"] == f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {action}."
        assert not alarm.keys() & {"TreatMissingData", "DatapointsToAlarm"}
    (policy,) = world.policies(f"table/{table}").values()
    assert (policy["PolicyARN"], policy["Alarms"]) == (put["PolicyARN"], put["Alarms"])
    world.autoscaling.delete_scaling_policy(**key(f"table/{table}"), PolicyName="tracking")
    assert cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"] == []


def test_alarms_of_a_policy_that_does_not_scale_in_are_three(world: World, cloudwatch: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_metrics."""
    resource = f"table/{world.table(read=50, write=3)}"
    world.register(resource, 50, 900)
    put = world.put_policy(resource, "tracking", 60, DisableScaleIn=True)
    assert list(_alarms(cloudwatch, resource)) == ["AlarmHigh", "ProvisionedCapacityHigh", "ProvisionedCapacityLow"]
    assert {alarm["AlarmName"] for alarm in put["Alarms"]} == _names(cloudwatch, resource)


def test_alarms_of_an_index_are_on_the_metrics_of_the_index(world: World, cloudwatch: Any) -> None:
    table = world.table(5, 6, {"by-city": (7, 8)})
    resource = f"table/{table}/index/by-city"
    world.register(resource, 8, 900, INDEX_WRITE)
    world.put_policy(resource, "tracking", 60, INDEX_WRITE)
    dimensions = [{"Name": "GlobalSecondaryIndexName", "Value": "by-city"}, {"Name": "TableName", "Value": table}]
    assert [alarm["Dimensions"] for alarm in _alarms(cloudwatch, resource).values()] == [dimensions] * 4


def test_alarms_are_replaced_when_auto_scaling_changes_the_capacity(world: World, cloudwatch: Any) -> None:
    """Those with the new thresholds have new names, and know nothing yet.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    resource = f"table/{world.table(read=50, write=3)}"
    world.register(resource, 50, 900)
    world.put_policy(resource, "tracking", 60)
    before = _alarms(cloudwatch, resource)
    world.register(resource, 70, 900)
    after = _alarms(cloudwatch, resource)
    assert {alarm["AlarmName"] for alarm in before.values()}.isdisjoint(_names(cloudwatch, resource))
    assert [alarm["Threshold"] for alarm in after.values()] == [2520.0, 1680.0, 70.0, 70.0]
    assert {(alarm["StateValue"], alarm["StateReason"]) for alarm in after.values()} == {
        ("INSUFFICIENT_DATA", "Unchecked: Initial alarm creation")
    }
    assert {tuple(alarm["AlarmActions"]) for alarm in after.values()} == {tuple(before["AlarmLow"]["AlarmActions"])}


def test_new_alarm_is_judged_within_86_seconds_by_what_was_before_it(world: World, cloudwatch: Any) -> None:
    """It needs no fifteen minutes of its own.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    resource = f"table/{world.table(read=50, write=3)}"
    world.register(resource, 50, 900)
    world.cloud.advance(IDLE)
    world.put_policy(resource, "tracking", 60)
    world.cloud.advance(27 * SECOND)
    assert _alarms(cloudwatch, resource)["AlarmLow"]["StateValue"] == "INSUFFICIENT_DATA"
    world.cloud.advance(61 * SECOND)
    low = _alarms(cloudwatch, resource)["AlarmLow"]
    assert low["StateValue"] == "ALARM"
    values = low["StateReason"].removeprefix("Threshold Crossed: 15 datapoints [").partition("]")
    assert values[2] == " were less than the threshold (1200.0)."
    assert [value.split()[0] for value in values[0].split(", ")] == ["0.0"] * 15
    assert json.loads(low["StateReasonData"])["recentDatapoints"] == [0.0] * 15


def test_alarm_on_capacity_counts_its_five_minutes_back_from_the_minute_before_it_is_judged(
    world: World, cloudwatch: Any
) -> None:
    """One judged at 16:34 has periods that begin at 16:28 and 16:23, whatever minute the datapoints are of.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    table = world.table(read=50, write=3)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.put_policy(resource, "tracking", 60, DisableScaleIn=True)
    # the third or the fourth minute of five
    now = world.now()
    world.advance_to(now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0) + 33 * MINUTE)
    world.register(resource, 80, 900)
    world.cloud.advance(90 * SECOND)
    low = _alarms(cloudwatch, resource)["ProvisionedCapacityLow"]
    assert low["StateValue"] == "ALARM", "by three datapoints of before the change"
    judged = low["StateUpdatedTimestamp"].astimezone(UTC).replace(second=0, microsecond=0)
    told = re.findall(r"50\.0 \((.{17})\)", low["StateReason"])
    ages = [judged - datetime.strptime(begins, "%d/%m/%y %H:%M:%S").replace(tzinfo=UTC) for begins in told]
    assert len(ages) == 3
    assert {age % (5 * MINUTE) for age in ages} == {MINUTE}


def test_action_of_an_alarm_is_in_its_history_and_its_repeats_are_not(world: World, cloudwatch: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance."""
    resource = f"table/{world.table(read=50, write=3)}"
    world.register(resource, 50, 900)
    world.cloud.advance(IDLE)
    world.put_policy(resource, "tracking", 60)
    low = _alarms(cloudwatch, resource)["AlarmLow"]
    # at its minimum, so that the alarm stays and acts in every minute
    world.cloud.advance(5 * MINUTE)
    items = cloudwatch.describe_alarm_history(AlarmName=low["AlarmName"])["AlarmHistoryItems"]
    (action,) = low["AlarmActions"]
    assert [(item["HistoryItemType"], item["HistorySummary"]) for item in items[:2]] == [
        ("Action", f"Successfully executed action {action}"),
        ("StateUpdate", "Alarm updated from INSUFFICIENT_DATA to ALARM"),
    ]
    done = [item for item in items if item["HistoryItemType"] == "Action"]
    assert len(done) == 1
    updated = cloudwatch.describe_alarms(AlarmNames=[low["AlarmName"]])["MetricAlarms"][0]["StateUpdatedTimestamp"]
    data = json.loads(done[0]["HistoryData"])
    assert data.pop("stateUpdateTimestamp") // 1000 == int(updated.timestamp())
    assert data == {
        "actionState": "Succeeded",
        "notificationResource": action,
        "publishedMessage": None,
        "error": None,
        "muteWindowEndTimestamp": None,
    }


def test_thresholds_stay_old_after_a_change_by_hand_until_three_datapoints_have_shown_it(
    world: World, cloudwatch: Any
) -> None:
    """Putting the same policy again does not refresh them, and no activity tells of the replacement.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    table = world.table(read=50, write=3)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.put_policy(resource, "tracking", 60, DisableScaleIn=True)
    world.cloud.advance(IDLE)
    before = _names(cloudwatch, resource)
    world.change(table, 80, 3)
    world.cloud.advance(12 * MINUTE)
    world.put_policy(resource, "tracking", 60, DisableScaleIn=True)
    assert _names(cloudwatch, resource) == before
    assert [alarm["Threshold"] for alarm in _alarms(cloudwatch, resource).values()] == [1800.0, 50.0, 50.0]
    world.cloud.advance(13 * MINUTE)
    assert _names(cloudwatch, resource).isdisjoint(before)
    assert [alarm["Threshold"] for alarm in _alarms(cloudwatch, resource).values()] == [2880.0, 80.0, 80.0]
    assert world.activities(resource, IncludeNotScaledActivities=True) == []


@pytest.mark.parametrize(
    ("told", "units"),
    [
        (None, 50),
        ({"queryDate": 0, "recentDatapoints": []}, 50),
        ({"queryDate": -16, "recentDatapoints": [3000.0, 3600.0]}, 50),
        ({"queryDate": -6, "RecentDatapoints": [3000.0, 3600.0]}, 50),
        ({"queryDate": -6, "recentDatapoints": [3000.0, 3600.0]}, 100),
    ],
    ids=["no-data", "no-datapoints", "stale", "not-lowercase", "fresh"],
)
def test_state_set_by_hand_scales_only_with_fresh_datapoints(
    world: World, cloudwatch: Any, told: dict[str, Any] | None, units: int
) -> None:
    """3,600 units a minute at 60 % are 100 units; seconds are those before now.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/alarm_signals.
    """
    table = world.table(read=50, write=3)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.put_policy(resource, "tracking", 60)
    if told is not None:
        queried = world.now() + told["queryDate"] * SECOND
        told |= {"version": "1.0", "queryDate": f"{queried:%Y-%m-%dT%H:%M:%S.000+0000}"}
    name = _alarms(cloudwatch, resource)["AlarmHigh"]["AlarmName"]
    cloudwatch.set_alarm_state(
        AlarmName=name,
        StateValue="ALARM",
        StateReason="by hand",
        **({} if told is None else {"StateReasonData": json.dumps(told)}),
    )
    assert world.capacity(table) == (units, 3)
    actions = cloudwatch.describe_alarm_history(AlarmName=name, HistoryItemType="Action")["AlarmHistoryItems"]
    assert len(actions) == (units != 50)
