"""Application Auto Scaling's ten operations, through boto3."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest

from tests.local.world import (
    DAY,
    HOUR,
    IDLE,
    LATE,
    MINUTE,
    NIGHTLY,
    READ,
    WRITE,
    World,
    at_expression,
    budget_text,
    invalid,
    key,
    refused,
    wording,
)

_NAME_PATTERN = (
    "satisfy regular expression pattern: "
    r"(?!((^[ ]+.*)|(.*([\u0000-\u001f]|[\u007f-\u009f]|[:/|])+.*)|(.*[ ]+$))).+"
)


def _wrong_name(name: str, *constraints: str) -> str:
    """The refusal of a scheduled action's name, by the constraints that it does not meet."""
    return invalid(*((name, "scheduledActionName", each) for each in constraints))


# PutScheduledAction, DescribeScheduledActions, DeleteScheduledAction


def test_put_action_when_new_is_described_with_all_its_members(world: World, resource: str) -> None:
    start = world.now() + DAY
    world.put_action(
        resource, "nightly", NIGHTLY, 9, 90, Timezone="Europe/Berlin", StartTime=start, EndTime=start + DAY
    )
    action = world.action(resource, "nightly")
    arn = action.pop("ScheduledActionARN")
    assert arn.startswith("arn:aws:autoscaling:us-east-1:000000000000:scheduledAction:")
    assert arn.endswith(f":resource/dynamodb/{resource}:scheduledActionName/nightly"), arn
    assert abs(action.pop("CreationTime").astimezone(UTC) - world.now()) < MINUTE
    assert (action.pop("StartTime"), action.pop("EndTime")) == (start, start + DAY)
    assert action == {
        **key(resource),
        "ScheduledActionName": "nightly",
        "Schedule": NIGHTLY,
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 9, "MaxCapacity": 90},
    }


def test_put_action_again_drops_start_and_end_and_keeps_all_else(world: World, resource: str) -> None:
    start = world.now() + DAY
    world.put_action(
        resource, "nightly", NIGHTLY, 9, 90, Timezone="Europe/Berlin", StartTime=start, EndTime=start + DAY
    )
    before = world.action(resource, "nightly")
    world.put_action(resource, "nightly", None)
    after = world.action(resource, "nightly")
    assert after == {name: value for name, value in before.items() if name not in ("StartTime", "EndTime")}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        pytest.param({"schedule": "rate(3 days)"}, {"Schedule": "rate(3 days)"}, id="schedule"),
        pytest.param({"Timezone": "Asia/Tokyo"}, {"Timezone": "Asia/Tokyo"}, id="zone"),
        pytest.param(
            {"minimum": 11, "maximum": 110},
            {"ScalableTargetAction": {"MinCapacity": 11, "MaxCapacity": 110}},
            id="bounds",
        ),
    ],
)
def test_put_action_again_changes_only_what_is_given(
    world: World, resource: str, change: dict[str, Any], changed: dict[str, Any]
) -> None:
    world.put_action(resource, "nightly", NIGHTLY, 9, 90, Timezone="Europe/Berlin")
    before = world.action(resource, "nightly")
    world.put_action(resource, "nightly", **{"schedule": None, **change})
    assert world.action(resource, "nightly") == before | changed


@pytest.mark.parametrize(
    ("members", "text"),
    [
        pytest.param(
            {}, "At least one of minimum capacity and maximum capacity should be provided", id="neither-bound"
        ),
        pytest.param(
            {"minimum": 91, "maximum": 90}, "Maximum capacity cannot be less than minimum capacity",
            id="minimum-above-maximum",
        ),
        pytest.param(
            {"schedule": None, "minimum": 9}, "Schedule is required for a new scheduled action", id="no-schedule"
        ),
        *(
            pytest.param({"minimum": 9, "Timezone": zone}, f"Invalid timezone: {zone}", id=zone)
            for zone in ("Europe/Belrin", "../../etc/passwd")
        ),
        *(
            pytest.param(
                {"schedule": schedule, "minimum": 9, "Timezone": "Asia/Tokyo"},
                f"Invalid schedule expression: {schedule}",
                id=schedule,
            )
            for schedule in (
                "cron(0 3 * * *)",
                "every night",
                "rate(99999999999999 days)",
                # in Tokyo that is before the beginning of time
                "at(0001-01-01T00:00:00)",
            )
        ),
        *(
            pytest.param({"name": name, "minimum": 9}, _wrong_name(name, _NAME_PATTERN), id=repr(name))
            for name in ("a:b", "a/b", "a|b", " a", "a ", "a\nb")
        ),
        pytest.param(
            {"name": "n" * 257, "minimum": 9},
            _wrong_name("n" * 257, "have length less than or equal to 256"),
            id="a-name-too-long",
        ),
        pytest.param(
            {"name": "", "minimum": 9},
            _wrong_name("", "have length greater than or equal to 1", _NAME_PATTERN),
            id="no-name",
        ),
    ],
)  # fmt: skip
def test_put_action_that_cannot_be_is_refused_and_makes_nothing(
    world: World, resource: str, members: dict[str, Any], text: str
) -> None:
    with refused("ValidationException", text):
        world.put_action(resource, **({"name": "x", "schedule": NIGHTLY} | members))
    assert world.autoscaling.describe_scheduled_actions(**key(resource))["ScheduledActions"] == []


def test_put_action_that_ends_before_it_starts_is_refused(world: World, resource: str) -> None:
    start = world.now() + DAY
    with refused("ValidationException", "End time must be after start time"):
        world.put_action(resource, "x", NIGHTLY, 9, StartTime=start, EndTime=start - MINUTE)


@pytest.mark.parametrize("name", ["a", "a b", "ä-1", "n" * 256, "a.b_c-d"], ids=["one", "blank", "ä", "256", "signs"])
def test_put_action_with_a_fair_name_is_accepted(world: World, resource: str, name: str) -> None:
    world.put_action(resource, name, NIGHTLY, 9)
    assert world.action(resource, name)["ScheduledActionName"] == name


def test_put_action_refused_leaves_the_old_one(world: World, resource: str) -> None:
    world.put_action(resource, "nightly", NIGHTLY, 9, 90)
    before = world.action(resource, "nightly")
    with pytest.raises(world.autoscaling.exceptions.ValidationException):
        world.put_action(resource, "nightly", "cron(61 * * * ? *)", 10)
    assert world.action(resource, "nightly") == before


def test_put_action_number_201_is_refused_and_an_update_at_200_is_not(world: World, resource: str) -> None:
    for number in range(200):
        world.put_action(resource, f"action-{number}", NIGHTLY, 9)
    text = f"Maximum number of scheduled actions (200) exceeded for {wording(resource)}"
    with refused("LimitExceededException", text):
        world.put_action(resource, "one-more", NIGHTLY, 9)
    world.put_action(resource, "action-7", NIGHTLY, 10)
    world.register(resource, 7, 900, WRITE)
    world.put_action(resource, "one-more", NIGHTLY, 9, dim=WRITE)


def test_put_action_without_a_target_is_refused(world: World) -> None:
    resource = world.resource()
    with refused("ObjectNotFoundException", f"No scalable target registered for {wording(resource)}"):
        world.put_action(resource, "nightly", NIGHTLY, 9)


def test_describe_actions_keeps_to_its_filters(world: World) -> None:
    first, second = world.resource(), world.resource()
    for resource, dim, name in ((first, READ, "a"), (first, WRITE, "b"), (second, READ, "a"), (second, READ, "c")):
        world.register(resource, 7, 900, dim)
        world.put_action(resource, name, NIGHTLY, 9, dim=dim)

    def found(**members: Any) -> list[tuple[str, str, str]]:
        answer = world.autoscaling.describe_scheduled_actions(ServiceNamespace="dynamodb", **members)
        return sorted(
            (one["ResourceId"], one["ScalableDimension"], one["ScheduledActionName"])
            for one in answer["ScheduledActions"]
        )

    assert len(found()) == 4
    assert found(ResourceId=first) == [(first, READ, "a"), (first, WRITE, "b")]
    assert found(ResourceId=first, ScalableDimension=WRITE) == [(first, WRITE, "b")]
    assert found(ScheduledActionNames=["a"]) == sorted([(first, READ, "a"), (second, READ, "a")])
    assert found(ResourceId=second, ScheduledActionNames=["c", "none"]) == [(second, READ, "c")]
    assert found(ResourceId="table/none") == []


def test_delete_action_removes_that_one_alone(world: World, resource: str) -> None:
    for name in ("a", "b"):
        world.put_action(resource, name, NIGHTLY, 9)
    world.autoscaling.delete_scheduled_action(**key(resource), ScheduledActionName="a")
    found = world.autoscaling.describe_scheduled_actions(**key(resource))["ScheduledActions"]
    assert [action["ScheduledActionName"] for action in found] == ["b"]


@pytest.mark.parametrize("is_registered", [True, False], ids=["of-a-target", "of-no-target"])
@pytest.mark.parametrize(
    ("kind", "operation", "member"),
    [
        ("scheduled action", "delete_scheduled_action", "ScheduledActionName"),
        ("scaling policy", "delete_scaling_policy", "PolicyName"),
    ],
    ids=["action", "policy"],
)
def test_delete_of_what_is_not_there_is_refused(
    world: World, is_registered: bool, kind: str, operation: str, member: str
) -> None:
    resource = world.resource()
    if is_registered:
        world.register(resource, 7, 900)
    name = kind if member == "ScheduledActionName" else "policy"
    with refused("ObjectNotFoundException", f"No {kind} found for {wording(resource)}, {name} name: none"):
        getattr(world.autoscaling, operation)(**key(resource), **{member: "none"})


# PutScalingPolicy, DescribeScalingPolicies, DeleteScalingPolicy


def test_put_policy_when_new_is_described_with_its_four_alarms(world: World, resource: str) -> None:
    put = world.put_policy(resource, "tracking", 55.5, ScaleInCooldown=61)
    found = world.autoscaling.describe_scaling_policies(**key(resource))["ScalingPolicies"]
    assert len(found) == 1
    policy = found[0]
    assert policy["PolicyARN"] == put["PolicyARN"]
    assert policy["PolicyARN"].startswith("arn:aws:autoscaling:us-east-1:000000000000:scalingPolicy:")
    assert policy["PolicyARN"].endswith(f":resource/dynamodb/{resource}:policyName/tracking"), policy["PolicyARN"]
    assert (policy["PolicyName"], policy["PolicyType"]) == ("tracking", "TargetTrackingScaling")
    assert policy["TargetTrackingScalingPolicyConfiguration"] == {
        "TargetValue": 55.5,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"},
        "ScaleInCooldown": 61,
    }
    assert policy["Alarms"] == put["Alarms"]
    kinds = [alarm["AlarmName"].removeprefix(f"TargetTracking-{resource}-").split("-")[0] for alarm in put["Alarms"]]
    assert sorted(kinds) == ["AlarmHigh", "AlarmLow", "ProvisionedCapacityHigh", "ProvisionedCapacityLow"]


def test_put_policy_again_under_its_name_updates_it(world: World, resource: str) -> None:
    """Its alarms get new names, and the old ones are gone; the same settings change nothing.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/alarm_authorization and dynamodb_maintenance.
    """
    first = world.put_policy(resource, "tracking", 55)
    assert world.put_policy(resource, "tracking", 55)["Alarms"] == first["Alarms"]
    again = world.put_policy(resource, "tracking", 65)
    assert again["PolicyARN"] == first["PolicyARN"]
    names = [{alarm["AlarmName"] for alarm in put["Alarms"]} for put in (first, again)]
    assert names[0].isdisjoint(names[1])
    found = world.autoscaling.describe_scaling_policies(**key(resource))["ScalingPolicies"]
    assert [policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for policy in found] == [65]
    cloudwatch = world.cloud.client("cloudwatch")
    kept = cloudwatch.describe_alarms(AlarmNamePrefix=f"TargetTracking-{resource}-")["MetricAlarms"]
    assert {alarm["AlarmName"] for alarm in kept} == names[1]


@pytest.mark.parametrize("value", [20, 90, 70.25])
def test_put_policy_with_a_target_value_in_range_is_accepted(world: World, resource: str, value: float) -> None:
    world.put_policy(resource, "tracking", value)


@pytest.mark.parametrize("value", [19.9, 90.1, 0, -5, 100, 0.7])
def test_put_policy_with_a_target_value_out_of_range_is_refused(world: World, resource: str, value: float) -> None:
    with refused("ValidationException", "Target utilization must be between 20 and 90 for DynamoDB"):
        world.put_policy(resource, "tracking", value)
    assert world.autoscaling.describe_scaling_policies(**key(resource))["ScalingPolicies"] == []


@pytest.mark.parametrize("kind", [{"PolicyType": "StepScaling"}, {}], ids=["step-scaling", "left-out"])
def test_put_policy_of_another_type_is_refused(world: World, resource: str, kind: dict[str, str]) -> None:
    with refused("ValidationException", f"StepScaling is not supported for {wording(resource)}"):
        world.autoscaling.put_scaling_policy(**key(resource), PolicyName="steps", **kind)


def test_put_policy_without_settings_is_refused(world: World, resource: str) -> None:
    with refused("ValidationException", "Target tracking scaling policy configuration is required"):
        world.autoscaling.put_scaling_policy(**key(resource), PolicyName="tracking", PolicyType="TargetTrackingScaling")


def test_put_policy_without_a_target_is_refused(world: World) -> None:
    resource = world.resource()
    with refused("ObjectNotFoundException", f"No scalable target registered for {wording(resource)}"):
        world.put_policy(resource, "tracking")


def test_describe_policies_keeps_to_its_filters(world: World) -> None:
    first, second = world.resource(), world.resource()
    for resource, dim, name in ((first, READ, "a"), (first, WRITE, "b"), (second, READ, "a")):
        world.register(resource, 7, 900, dim)
        world.put_policy(resource, name, dim=dim)

    def found(**members: Any) -> list[tuple[str, str]]:
        answer = world.autoscaling.describe_scaling_policies(ServiceNamespace="dynamodb", **members)
        return [(one["ResourceId"], one["PolicyName"]) for one in answer["ScalingPolicies"]]

    assert found() == [(first, "a"), (first, "b"), (second, "a")]
    assert found(ResourceId=first) == [(first, "a"), (first, "b")]
    assert found(ResourceId=first, ScalableDimension=WRITE) == [(first, "b")]
    assert found(PolicyNames=["a"]) == [(first, "a"), (second, "a")]


def test_delete_policy_ends_its_scaling(world: World) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    world.autoscaling.delete_scaling_policy(**key(resource), PolicyName="tracking")
    world.cloud.advance(2 * IDLE)
    assert world.capacity(table) == (40, 41)


# DescribeScalingActivities, and target tracking on an idle table


def test_activities_tell_what_was_done_and_why_newest_first(world: World) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.register(resource, 7, 45)
    at = world.now().replace(second=0) + 8 * MINUTE
    world.put_action(resource, "night shift", at_expression(at), 60, 70)
    world.advance_to(at + LATE)
    found = world.activities(resource)
    own = found.pop(1)
    assert own["Cause"] == "scheduled action name night shift was triggered"
    assert [(one["Description"], one["Cause"], one["StatusCode"], one["StatusMessage"]) for one in found] == [
        (
            f"Setting read capacity units to {units}.",
            cause,
            "Successful",
            f"Successfully set read capacity units to {units}. Change successfully fulfilled by dynamodb.",
        )
        for units, cause in (
            (60, "minimum capacity was set to 60"),
            (45, "maximum capacity was set to 45"),
            (50, "minimum capacity was set to 50"),
        )
    ]
    assert found[0]["StartTime"] > found[1]["StartTime"] >= found[2]["StartTime"]
    assert len({one["ActivityId"] for one in found}) == 3
    assert {one["ScalableDimension"] for one in found} == {READ}


def test_activities_of_writes_are_worded_for_writes_and_kept_to_their_filters(world: World) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.register(resource, 51, 900, WRITE)
    found = world.activities(resource, ScalableDimension=WRITE)
    assert [one["Description"] for one in found] == ["Setting write capacity units to 51."]
    assert len(world.activities(resource)) == 2
    assert world.activities("table/none") == []


def test_idle_table_is_scaled_in_to_its_minimum_by_the_low_alarm(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    put = world.put_policy(resource, "tracking")
    world.cloud.advance(15 * MINUTE)
    assert world.capacity(table) == (40, 41), "fifteen low minutes are needed"
    world.cloud.advance(IDLE - 15 * MINUTE)
    assert (world.capacity(table), world.decreases(table)) == ((7, 41), 1)
    low = next(alarm["AlarmName"] for alarm in put["Alarms"] if "-AlarmLow-" in alarm["AlarmName"])
    (activity,) = world.activities(resource)
    assert activity["Cause"] == f"monitor alarm {low} in state ALARM triggered policy tracking"
    assert activity["Description"] == "Setting read capacity units to 7."


def test_capacity_raised_by_hand_on_an_idle_table_is_undone_within_minutes_and_uses_a_decrease(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.cloud.advance(IDLE)
    world.change(table, 300, 41)
    world.cloud.advance(3 * MINUTE)
    assert (world.capacity(table), world.decreases(table)) == ((7, 41), 2)


@pytest.mark.parametrize(
    "prevent",
    [
        lambda world, resource: world.put_policy(resource, "tracking", DisableScaleIn=True),
        lambda world, resource: world.register(
            resource, None, None, SuspendedState={"DynamicScalingInSuspended": True}
        ),
    ],
    ids=["scale-in-disabled", "scale-in-suspended"],
)
def test_idle_table_when_scale_in_is_off_keeps_its_capacity(
    world: World, prevent: Callable[[World, str], object]
) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    prevent(world, resource)
    world.cloud.advance(2 * IDLE)
    assert world.capacity(table) == (40, 41)
    world.put_policy(resource, "tracking")
    world.register(resource, None, None, SuspendedState={"DynamicScalingInSuspended": False})
    world.cloud.advance(2 * MINUTE)
    assert world.capacity(table) == (7, 41), "the alarm is in breach already: it acts at once"


def test_scale_in_when_decreases_are_used_up_fails_each_minute_and_succeeds_when_one_is_allowed(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    world.cloud.advance(10 * MINUTE)
    world.use_decreases(table)
    last = world.last_decrease(table)
    world.cloud.advance(20 * MINUTE)
    failed = world.activities(resource)
    text = f"Failed to set read capacity units to 7. Reason: Failed updating table: {budget_text(4, last)}"
    assert {(one["StatusCode"], one["StatusMessage"]) for one in failed} == {("Failed", text)}
    assert 5 <= len(failed) <= 15, "one a minute since the fifteenth low minute"
    gaps = [a["StartTime"] - b["StartTime"] for a, b in itertools.pairwise(failed)]
    # the alarms are replaced once, as the capacity has been another for three of their datapoints
    assert sum(gap != MINUTE for gap in gaps) <= 1
    assert world.decreases(table) == 4
    world.advance_to(last + HOUR - 2 * timedelta(seconds=1))
    assert world.capacity(table) == (36, 41)
    world.advance_to(last + HOUR + MINUTE + timedelta(seconds=1))
    assert (world.capacity(table), world.decreases(table)) == ((7, 41), 5)
    newest = world.activities(resource, MaxResults=1)[0]
    assert newest["StatusCode"] == "Successful"
    assert timedelta(0) <= newest["StartTime"].astimezone(UTC) - last - HOUR <= MINUTE
    world.cloud.advance(5 * MINUTE)
    assert world.activities(resource, MaxResults=1)[0]["ActivityId"] == newest["ActivityId"], "nothing is left to do"
