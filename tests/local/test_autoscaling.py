"""Application Auto Scaling's ten operations, through boto3."""

from __future__ import annotations

import base64
import functools
import itertools
import operator
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.world import (
    DAY,
    HOUR,
    INDEX_READ,
    INDEX_WRITE,
    MINUTE,
    READ,
    WRITE,
    World,
    at_expression,
    budget_text,
    key,
    refused,
    wording,
)

_NIGHTLY = "cron(0 3 * * ? *)"
_NAME_PATTERN = (
    "Member must satisfy regular expression pattern: "
    r"(?!((^[ ]+.*)|(.*([\u0000-\u001f]|[\u007f-\u009f]|[:/|])+.*)|(.*[ ]+$))).+"
)
_IDLE = 20 * MINUTE


def _wrong_name(name: str, *unmet: str) -> str:
    """The refusal of a scheduled action's name, by the constraints that it does not meet."""
    told = [f"Value '{name}' at 'scheduledActionName' failed to satisfy constraint: {each}" for each in unmet]
    return f"{len(told)} validation error{'s' if len(told) > 1 else ''} detected: {'; '.join(told)}"


def _resource(world: World, read: int = 40, write: int = 41) -> str:
    return f"table/{world.table(read, write)}"


# RegisterScalableTarget


def test_register_when_new_makes_a_target_with_all_its_members(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    target = world.target(resource)
    created = target.pop("CreationTime")
    assert abs(created.astimezone(UTC) - world.now()) < MINUTE
    arn = target.pop("ScalableTargetARN")
    assert arn.startswith("arn:aws:application-autoscaling:us-east-1:000000000000:scalable-target/")
    assert target == {
        **key(resource),
        "MinCapacity": 7,
        "MaxCapacity": 900,
        "RoleARN": "arn:aws:iam::000000000000:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
        "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable",
        "SuspendedState": {
            "DynamicScalingInSuspended": False,
            "DynamicScalingOutSuspended": False,
            "ScheduledScalingSuspended": False,
        },
    }


@pytest.mark.parametrize(
    ("minimum", "maximum", "expected"),
    [
        pytest.param(8, None, (8, 900), id="only-minimum"),
        pytest.param(None, 800, (7, 800), id="only-maximum"),
        pytest.param(None, None, (7, 900), id="neither"),
        pytest.param(9, 600, (9, 600), id="both"),
        pytest.param(900, None, (900, 900), id="minimum-up-to-the-maximum"),
    ],
)
def test_register_again_keeps_what_is_left_out(
    world: World, minimum: int | None, maximum: int | None, expected: tuple[int, int]
) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900, RoleARN="arn:aws:iam::000000000000:role/mine")
    first = world.target(resource)
    world.register(resource, minimum, maximum)
    again = world.target(resource)
    assert world.bounds(resource) == expected
    for kept in ("ScalableTargetARN", "CreationTime", "RoleARN"):
        assert again[kept] == first[kept]


def test_register_again_keeps_actions_and_policies(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    world.put_action(resource, "nightly", _NIGHTLY, 9)
    world.put_policy(resource, "tracking")
    world.register(resource, 8, 800)
    assert world.action(resource, "nightly")["ScalableTargetAction"] == {"MinCapacity": 9}
    found = world.autoscaling.describe_scaling_policies(ServiceNamespace="dynamodb", ResourceId=resource)
    assert [policy["PolicyName"] for policy in found["ScalingPolicies"]] == ["tracking"]


@pytest.mark.parametrize(
    ("bounds", "dim", "expected", "cause"),
    [
        pytest.param((50, 900), READ, (50, 41), "minimum capacity was set to 50", id="reads-up"),
        pytest.param((7, 30), READ, (30, 41), "maximum capacity was set to 30", id="reads-down"),
        pytest.param((51, 900), WRITE, (40, 51), "minimum capacity was set to 51", id="writes-up"),
        pytest.param((7, 31), WRITE, (40, 31), "maximum capacity was set to 31", id="writes-down"),
        pytest.param((40, 900), READ, (40, 41), None, id="at-the-minimum"),
        pytest.param((7, 40), READ, (40, 41), None, id="at-the-maximum"),
    ],
)
def test_register_moves_capacity_into_the_bounds_at_once(
    world: World, bounds: tuple[int, int], dim: str, expected: tuple[int, int], cause: str | None
) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", *bounds, dim)
    assert world.capacity(table) == expected
    assert [activity["Cause"] for activity in world.activities(f"table/{table}")] == ([cause] if cause else [])


@pytest.mark.parametrize(("moved_to", "expected"), [(5, 20), (90, 60)], ids=["below-the-minimum", "above-the-maximum"])
@pytest.mark.parametrize(
    "more", [{}, {"SuspendedState": {"DynamicScalingInSuspended": True}}], ids=["nothing", "suspended-state"]
)
def test_register_without_bounds_moves_capacity_changed_by_hand_back_at_once(
    world: World, moved_to: int, expected: int, more: dict[str, Any]
) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 20, 60)
    world.change(table, moved_to, 41)
    world.cloud.advance(30 * MINUTE)
    assert world.capacity(table) == (moved_to, 41), "bounds act when something is registered or runs, not of themselves"
    world.register(f"table/{table}", None, None, **more)
    assert world.capacity(table) == (expected, 41)


@pytest.mark.parametrize(
    ("dim", "expected"), [(INDEX_READ, (25, 61)), (INDEX_WRITE, (60, 25))], ids=["reads", "writes"]
)
def test_register_of_an_index_moves_the_index_alone(world: World, dim: str, expected: tuple[int, int]) -> None:
    table = world.table(40, 41, {"by-city": (60, 61)})
    world.register(f"table/{table}/index/by-city", 7, 25, dim)
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 41), expected)
    assert world.activities(f"table/{table}") == []
    assert len(world.activities(f"table/{table}/index/by-city")) == 1


def test_register_with_a_part_of_the_suspended_state_keeps_the_rest(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900, SuspendedState={"ScheduledScalingSuspended": True})
    world.register(resource, None, None, SuspendedState={"DynamicScalingOutSuspended": True})
    assert world.target(resource)["SuspendedState"] == {
        "DynamicScalingInSuspended": False,
        "DynamicScalingOutSuspended": True,
        "ScheduledScalingSuspended": True,
    }


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        pytest.param((9, 8), "Maximum capacity cannot be less than minimum capacity", id="minimum-above-maximum"),
        pytest.param((7, None), "Both min capacity and max capacity are required to register.", id="no-maximum"),
        pytest.param((None, 900), "Both min capacity and max capacity are required to register.", id="no-minimum"),
        pytest.param((0, 900), "Minimum capacity must be at least 1, got 0", id="minimum-zero"),
    ],
)
def test_register_with_impossible_bounds_is_refused_and_makes_nothing(
    world: World, bounds: tuple[int | None, int | None], text: str
) -> None:
    resource = _resource(world)
    with refused("ValidationException", text):
        world.register(resource, *bounds)
    found = world.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=[resource])
    assert found["ScalableTargets"] == []


@pytest.mark.parametrize("bounds", [(901, None), (None, 6)], ids=["minimum", "maximum"])
def test_register_again_with_a_bound_that_crosses_the_kept_one_is_refused(
    world: World, bounds: tuple[int | None, int | None]
) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    with refused("ValidationException", "Maximum capacity cannot be less than minimum capacity"):
        world.register(resource, *bounds)
    assert world.bounds(resource) == (7, 900)


@pytest.mark.parametrize(
    ("resource", "dim", "namespace", "text"),
    [
        pytest.param("table/none", READ, "dynamodb", "DynamoDB table does not exist: table/none", id="no-such-table"),
        pytest.param(
            "table/T1/index/i", READ, "dynamodb",
            f"Unsupported service namespace, resource type or scalable dimension: {READ}",
            id="an-index-with-a-table's-dimension",
        ),
        pytest.param(
            "table/T1", INDEX_WRITE, "dynamodb",
            f"Unsupported service namespace, resource type or scalable dimension: {INDEX_WRITE}",
            id="a-table-with-an-index's-dimension",
        ),
        pytest.param("tables/T1", READ, "dynamodb", "Unsupported resource ID: tables/T1", id="no-such-resource"),
        pytest.param("table/T1/", READ, "dynamodb", "Unsupported resource ID: table/T1/", id="a-slash-too-many"),
        pytest.param("table/T1", READ, "ecs", "Unsupported service namespace: ecs", id="another-service"),
    ],
)  # fmt: skip
def test_register_of_what_is_no_target_is_refused(
    world: World, resource: str, dim: str, namespace: str, text: str
) -> None:
    members = key(resource, dim) | {"ServiceNamespace": namespace}
    with refused("ValidationException", text):
        world.autoscaling.register_scalable_target(**members, MinCapacity=7, MaxCapacity=900)


def test_value_of_no_enumeration_is_refused_in_the_words_of_aws(world: World) -> None:
    """As public tests have it that their authors verified on AWS."""
    resource = _resource(world)
    world.register(resource, 7, 900)
    text = (
        "1 validation error detected: Value 'ABCDEFG' at 'policyType' failed to satisfy constraint: Member must "
        "satisfy enum value set: [PredictiveScaling, StepScaling, TargetTrackingScaling]"
    )
    with refused("ValidationException", text):
        world.autoscaling.put_scaling_policy(**key(resource), PolicyName="steps", PolicyType="ABCDEFG")
    members = key(resource, "dynamodb:table:Reads") | {"ServiceNamespace": "nosql"}
    with pytest.raises(world.autoscaling.exceptions.ValidationException) as two:
        world.autoscaling.register_scalable_target(**members, MinCapacity=7, MaxCapacity=900)
    said = two.value.response["Error"]["Message"]
    assert said.startswith("2 validation errors detected: Value 'nosql' at 'serviceNamespace' failed to satisfy ")
    assert "; Value 'dynamodb:table:Reads' at 'scalableDimension' failed to satisfy " in said


@pytest.mark.parametrize("left_out", ["ServiceNamespace", "ResourceId", "ScalableDimension"])
def test_register_without_a_required_member_is_refused(world: World, left_out: str) -> None:
    members = {name: value for name, value in key("table/T1").items() if name != left_out}
    member = left_out[0].lower() + left_out[1:]
    text = (
        f"1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
    )
    with refused("ValidationException", text):
        world.autoscaling.register_scalable_target(**members, MinCapacity=7, MaxCapacity=900)


@pytest.mark.parametrize("bad", ["seven", 7.5, True, [7]], ids=repr)
def test_register_with_a_bound_that_is_no_whole_number_is_refused(world: World, bad: object) -> None:
    resource = _resource(world)
    with pytest.raises(ClientError) as caught:
        world.autoscaling.register_scalable_target(**key(resource), MinCapacity=bad, MaxCapacity=900)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_register_above_the_quota_fails_as_an_activity_with_the_documented_text(world: World) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 45000, 50000, WRITE)
    activity = world.activities(f"table/{table}")[0]
    assert (activity["StatusCode"], activity["StatusMessage"]) == (
        "Failed",
        "Failed to set write capacity units to 45000. Reason: The requested WriteCapacityUnits, 45000, is above the "
        "per table maximum for the account in us-east-1. Per table maximum: 40000.",
    )
    assert world.capacity(table) == (40, 41)


# DescribeScalableTargets, and what all lists have in common


def test_describe_targets_keeps_to_its_filters(world: World) -> None:
    first, second = _resource(world), _resource(world)
    for resource in (first, second):
        for dim in (READ, WRITE):
            world.register(resource, 7, 900, dim)

    def found(**members: Any) -> set[tuple[str, str]]:
        answer = world.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb", **members)
        return {(target["ResourceId"], target["ScalableDimension"]) for target in answer["ScalableTargets"]}

    assert found() == {(resource, dim) for resource in (first, second) for dim in (READ, WRITE)}
    assert found(ResourceIds=[first]) == {(first, READ), (first, WRITE)}
    assert found(ResourceIds=[first, second], ScalableDimension=WRITE) == {(first, WRITE), (second, WRITE)}
    assert found(ResourceIds=["table/none"]) == set()


def _own_metric(name: str) -> dict[str, Any]:
    """A metric that no other policy of the target follows, as a metric may have one policy only."""
    return {"CustomizedMetricSpecification": {"MetricName": name, "Namespace": "mine", "Statistic": "Sum"}}


def _fill(world: World, count: int) -> str:
    resource = _resource(world)
    world.register(resource, 7, 900)
    for number in range(count):
        world.put_action(resource, f"action-{number:03}", _NIGHTLY, 8 + number)
        if number < 7:
            world.autoscaling.put_scaling_policy(
                **key(resource),
                PolicyName=f"policy-{number}",
                PolicyType="TargetTrackingScaling",
                TargetTrackingScalingPolicyConfiguration={"TargetValue": 70, **_own_metric(f"jobs-{number}")},
            )
            world.register(resource, 50 + number, 900)
    return resource


_LISTS = [
    pytest.param("describe_scheduled_actions", "ScheduledActions", "ScheduledActionName", id="actions"),
    pytest.param("describe_scaling_policies", "ScalingPolicies", "PolicyName", id="policies"),
    pytest.param("describe_scaling_activities", "ScalingActivities", "ActivityId", id="activities"),
]


@pytest.mark.parametrize(("operation", "member", "name"), _LISTS)
def test_list_in_pages_is_complete_and_without_repeats(world: World, operation: str, member: str, name: str) -> None:
    resource = _fill(world, 7)
    call = getattr(world.autoscaling, operation)
    whole = [one[name] for one in call(ServiceNamespace="dynamodb", ResourceId=resource)[member]]
    assert len(whole) == 7
    pages: list[list[str]] = []
    token: dict[str, str] = {}
    while True:
        answer = call(ServiceNamespace="dynamodb", ResourceId=resource, MaxResults=3, **token)
        pages.append([one[name] for one in answer[member]])
        if "NextToken" not in answer:
            break
        token = {"NextToken": answer["NextToken"]}
    assert [len(page) for page in pages] == [3, 3, 1]
    assert functools.reduce(operator.iadd, pages, []) == whole


def test_targets_in_pages_are_complete_and_without_repeats(world: World) -> None:
    resources = [_resource(world) for _ in range(5)]
    for resource in resources:
        world.register(resource, 7, 900)
    pages = world.autoscaling.get_paginator("describe_scalable_targets").paginate(
        ServiceNamespace="dynamodb", PaginationConfig={"PageSize": 2}
    )
    found = [[target["ResourceId"] for target in page["ScalableTargets"]] for page in pages]
    assert found == [resources[:2], resources[2:4], resources[4:]]


def test_list_without_a_page_size_has_fifty_to_a_page(world: World) -> None:
    resource = _fill(world, 53)
    for size in ({}, {"MaxResults": 50}):
        answer = world.autoscaling.describe_scheduled_actions(ServiceNamespace="dynamodb", ResourceId=resource, **size)
        assert len(answer["ScheduledActions"]) == 50
        assert answer["NextToken"]
    pages = world.autoscaling.get_paginator("describe_scheduled_actions").paginate(ServiceNamespace="dynamodb")
    assert sum(len(page["ScheduledActions"]) for page in pages) == 53


@pytest.mark.parametrize("operation", [one.values[0] for one in _LISTS])
@pytest.mark.parametrize(
    "token",
    ["nonsense", "%%%", "é", base64.b64encode(b"-1").decode(), base64.b64encode(b"x").decode()],
    ids=["text", "signs", "letters", "a-negative-place", "no-place"],
)
def test_list_with_a_bad_token_is_refused(world: World, operation: str, token: str) -> None:
    with refused("InvalidNextTokenException", "The token provided is not valid"):
        getattr(world.autoscaling, operation)(ServiceNamespace="dynamodb", NextToken=token)


@pytest.mark.parametrize("size", [-1, -50], ids=str)
def test_list_with_a_negative_page_size_is_refused(world: World, size: int) -> None:
    _fill(world, 3)
    with pytest.raises(ClientError) as caught:
        world.autoscaling.describe_scheduled_actions(ServiceNamespace="dynamodb", MaxResults=size)
    assert caught.value.response["Error"]["Code"] == "ValidationException", "a pager would never come to an end"


@pytest.mark.parametrize(
    "operation",
    [
        "describe_scalable_targets",
        "describe_scheduled_actions",
        "describe_scaling_policies",
        "describe_scaling_activities",
    ],
)
def test_list_of_another_service_is_refused(world: World, operation: str) -> None:
    with refused("ValidationException", "Unsupported service namespace: ecs"):
        getattr(world.autoscaling, operation)(ServiceNamespace="ecs")


# DeregisterScalableTarget


def test_deregister_removes_policies_and_actions_and_leaves_capacity(world: World) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.register(resource, 7, 900, WRITE)
    for dim in (READ, WRITE):
        world.put_action(resource, "nightly", _NIGHTLY, 9, dim=dim)
        world.put_policy(resource, "tracking", dim=dim)
    world.autoscaling.deregister_scalable_target(**key(resource))
    assert world.capacity(table) == (50, 41)
    for operation, member in (
        ("describe_scheduled_actions", "ScheduledActions"),
        ("describe_scaling_policies", "ScalingPolicies"),
    ):
        left = getattr(world.autoscaling, operation)(ServiceNamespace="dynamodb", ResourceId=resource)[member]
        assert [one["ScalableDimension"] for one in left] == [WRITE]
    world.register(resource, 7, 900)
    found = world.autoscaling.describe_scheduled_actions(**key(resource))
    assert found["ScheduledActions"] == [], "a target registered anew begins empty"


def test_deregister_of_an_unknown_target_is_refused(world: World) -> None:
    resource = _resource(world)
    with refused("ObjectNotFoundException", f"No scalable target found for {wording(resource)}"):
        world.autoscaling.deregister_scalable_target(**key(resource))


def test_target_when_its_table_is_deleted_stays(world: World) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.dynamodb.delete_table(TableName=table)
    world.cloud.advance(_IDLE)
    assert world.bounds(f"table/{table}") == (7, 900)


def test_target_when_its_table_goes_on_demand_and_back_stays_and_works(world: World) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    world.cloud.advance(_IDLE)
    world.register(f"table/{table}", 8, 900)
    world.dynamodb.update_table(
        TableName=table,
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 30, "WriteCapacityUnits": 31},
    )
    assert world.bounds(f"table/{table}") == (8, 900)
    world.cloud.advance(_IDLE)
    assert world.capacity(table) == (8, 31)


# PutScheduledAction, DescribeScheduledActions, DeleteScheduledAction


def test_put_action_when_new_is_described_with_all_its_members(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    start = world.now() + DAY
    world.put_action(
        resource, "nightly", _NIGHTLY, 9, 90, Timezone="Europe/Berlin", StartTime=start, EndTime=start + DAY
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
        "Schedule": _NIGHTLY,
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 9, "MaxCapacity": 90},
    }


def test_put_action_again_drops_start_and_end_and_keeps_all_else(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    start = world.now() + DAY
    world.put_action(
        resource, "nightly", _NIGHTLY, 9, 90, Timezone="Europe/Berlin", StartTime=start, EndTime=start + DAY
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
    world: World, change: dict[str, Any], changed: dict[str, Any]
) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    world.put_action(resource, "nightly", _NIGHTLY, 9, 90, Timezone="Europe/Berlin")
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
        pytest.param(
            {"minimum": 9, "Timezone": "Europe/Belrin"}, "Invalid timezone: Europe/Belrin", id="no-such-zone"
        ),
        pytest.param(
            {"minimum": 9, "Timezone": "../../etc/passwd"}, "Invalid timezone: ../../etc/passwd", id="a-path-for-a-zone"
        ),
    ],
)  # fmt: skip
def test_put_action_that_cannot_be_is_refused_and_makes_nothing(
    world: World, members: dict[str, Any], text: str
) -> None:
    _refuse_action(world, "x", text, **members)


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param("cron(0 3 * * *)", id="five-fields"),
        pytest.param("every night", id="no-expression"),
        pytest.param("rate(99999999999999 days)", id="a-rate-past-the-end-of-time"),
        # in Tokyo that is before the beginning of time
        pytest.param("at(0001-01-01T00:00:00)", id="before-the-beginning-of-time"),
    ],
)
def test_put_action_with_a_wrong_schedule_is_refused_and_makes_nothing(world: World, schedule: str) -> None:
    text = f"Invalid schedule expression: {schedule}"
    _refuse_action(world, "x", text, schedule=schedule, minimum=9, Timezone="Asia/Tokyo")


@pytest.mark.parametrize(
    ("name", "constraints"),
    [
        *(pytest.param(name, [_NAME_PATTERN], id=repr(name)) for name in ("a:b", "a/b", "a|b", " a", "a ", "a\nb")),
        pytest.param("n" * 257, ["Member must have length less than or equal to 256"], id="a-name-too-long"),
        pytest.param("", ["Member must have length greater than or equal to 1", _NAME_PATTERN], id="no-name"),
    ],
)
def test_put_action_with_a_wrong_name_is_refused_and_makes_nothing(
    world: World, name: str, constraints: list[str]
) -> None:
    _refuse_action(world, name, _wrong_name(name, *constraints), minimum=9)


def _refuse_action(world: World, name: str, text: str, **members: Any) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    with refused("ValidationException", text):
        world.put_action(resource, name, **({"schedule": _NIGHTLY} | members))
    assert world.autoscaling.describe_scheduled_actions(**key(resource))["ScheduledActions"] == []


def test_put_action_that_ends_before_it_starts_is_refused(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    start = world.now() + DAY
    with refused("ValidationException", "End time must be after start time"):
        world.put_action(resource, "x", _NIGHTLY, 9, StartTime=start, EndTime=start - MINUTE)


@pytest.mark.parametrize("name", ["a", "a b", "ä-1", "n" * 256, "a.b_c-d"], ids=["one", "blank", "ä", "256", "signs"])
def test_put_action_with_a_fair_name_is_accepted(world: World, name: str) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    world.put_action(resource, name, _NIGHTLY, 9)
    assert world.action(resource, name)["ScheduledActionName"] == name


def test_put_action_refused_leaves_the_old_one(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    world.put_action(resource, "nightly", _NIGHTLY, 9, 90)
    before = world.action(resource, "nightly")
    with pytest.raises(world.autoscaling.exceptions.ValidationException):
        world.put_action(resource, "nightly", "cron(61 * * * ? *)", 10)
    assert world.action(resource, "nightly") == before


def test_put_action_number_201_is_refused_and_an_update_at_200_is_not(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    for number in range(200):
        world.put_action(resource, f"action-{number}", _NIGHTLY, 9)
    text = f"Maximum number of scheduled actions (200) exceeded for {wording(resource)}"
    with refused("LimitExceededException", text):
        world.put_action(resource, "one-more", _NIGHTLY, 9)
    world.put_action(resource, "action-7", _NIGHTLY, 10)
    world.register(resource, 7, 900, WRITE)
    world.put_action(resource, "one-more", _NIGHTLY, 9, dim=WRITE)


def test_put_action_without_a_target_is_refused(world: World) -> None:
    resource = _resource(world)
    with refused("ObjectNotFoundException", f"No scalable target registered for {wording(resource)}"):
        world.put_action(resource, "nightly", _NIGHTLY, 9)


def test_describe_actions_keeps_to_its_filters(world: World) -> None:
    first, second = _resource(world), _resource(world)
    for resource, dim, name in ((first, READ, "a"), (first, WRITE, "b"), (second, READ, "a"), (second, READ, "c")):
        world.register(resource, 7, 900, dim)
        world.put_action(resource, name, _NIGHTLY, 9, dim=dim)

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


def test_delete_action_removes_that_one_alone(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    for name in ("a", "b"):
        world.put_action(resource, name, _NIGHTLY, 9)
    world.autoscaling.delete_scheduled_action(**key(resource), ScheduledActionName="a")
    found = world.autoscaling.describe_scheduled_actions(**key(resource))["ScheduledActions"]
    assert [action["ScheduledActionName"] for action in found] == ["b"]


@pytest.mark.parametrize("is_registered", [True, False], ids=["of-a-target", "of-no-target"])
def test_delete_of_an_unknown_action_is_refused(world: World, is_registered: bool) -> None:
    resource = _resource(world)
    if is_registered:
        world.register(resource, 7, 900)
    text = f"No scheduled action found for {wording(resource)}, scheduled action name: none"
    with refused("ObjectNotFoundException", text):
        world.autoscaling.delete_scheduled_action(**key(resource), ScheduledActionName="none")


# PutScalingPolicy, DescribeScalingPolicies, DeleteScalingPolicy


def test_put_policy_when_new_is_described_with_its_four_alarms(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
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


def test_put_policy_again_under_its_name_updates_it(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    first = world.put_policy(resource, "tracking", 55)
    again = world.put_policy(resource, "tracking", 65)
    assert (again["PolicyARN"], again["Alarms"]) == (first["PolicyARN"], first["Alarms"])
    found = world.autoscaling.describe_scaling_policies(**key(resource))["ScalingPolicies"]
    assert [policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for policy in found] == [65]


@pytest.mark.parametrize("value", [20, 90, 70.25])
def test_put_policy_with_a_target_value_in_range_is_accepted(world: World, value: float) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking", value)


@pytest.mark.parametrize("value", [19.9, 90.1, 0, -5, 100, 0.7])
def test_put_policy_with_a_target_value_out_of_range_is_refused(world: World, value: float) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    with refused("ValidationException", "Target utilization must be between 20 and 90 for DynamoDB"):
        world.put_policy(resource, "tracking", value)
    assert world.autoscaling.describe_scaling_policies(**key(resource))["ScalingPolicies"] == []


@pytest.mark.parametrize(
    ("kind", "named"),
    [({"PolicyType": "StepScaling"}, "StepScaling"), ({}, "StepScaling")],
    ids=["step-scaling", "left-out"],
)
def test_put_policy_of_another_type_is_refused(world: World, kind: dict[str, str], named: str) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    with refused("ValidationException", f"{named} is not supported for {wording(resource)}"):
        world.autoscaling.put_scaling_policy(**key(resource), PolicyName="steps", **kind)


def test_put_policy_without_settings_is_refused(world: World) -> None:
    resource = _resource(world)
    world.register(resource, 7, 900)
    with refused("ValidationException", "Target tracking scaling policy configuration is required"):
        world.autoscaling.put_scaling_policy(**key(resource), PolicyName="tracking", PolicyType="TargetTrackingScaling")


def test_put_policy_without_a_target_is_refused(world: World) -> None:
    resource = _resource(world)
    with refused("ObjectNotFoundException", f"No scalable target registered for {wording(resource)}"):
        world.put_policy(resource, "tracking")


def test_describe_policies_keeps_to_its_filters(world: World) -> None:
    first, second = _resource(world), _resource(world)
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
    world.cloud.advance(2 * _IDLE)
    assert world.capacity(table) == (40, 41)


@pytest.mark.parametrize("is_registered", [True, False], ids=["of-a-target", "of-no-target"])
def test_delete_of_an_unknown_policy_is_refused(world: World, is_registered: bool) -> None:
    resource = _resource(world)
    if is_registered:
        world.register(resource, 7, 900)
    text = f"No scaling policy found for {wording(resource)}, policy name: none"
    with refused("ObjectNotFoundException", text):
        world.autoscaling.delete_scaling_policy(**key(resource), PolicyName="none")


# DescribeScalingActivities, and target tracking on an idle table


def test_activities_tell_what_was_done_and_why_newest_first(world: World) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.register(resource, 7, 45)
    at = world.now().replace(second=0) + 8 * MINUTE
    world.put_action(resource, "night shift", at_expression(at), 60, 70)
    world.advance_to(at + timedelta(seconds=1))
    found = world.activities(resource)
    assert [(one["Description"], one["Cause"], one["StatusCode"], one["StatusMessage"]) for one in found] == [
        (
            f"Setting read capacity units to {units}.",
            cause,
            "Successful",
            f"Successfully set read capacity units to {units}. Change successfully fulfilled by dynamodb.",
        )
        for units, cause in (
            (60, "scheduled action name night shift was triggered"),
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
    world.cloud.advance(10 * MINUTE)
    assert world.capacity(table) == (40, 41), "fifteen low minutes are needed"
    world.cloud.advance(10 * MINUTE)
    assert (world.capacity(table), world.decreases(table)) == ((7, 41), 1)
    low = next(alarm["AlarmName"] for alarm in put["Alarms"] if "-AlarmLow-" in alarm["AlarmName"])
    activity = world.activities(resource)[0]
    assert activity["Cause"] == f"monitor alarm {low} in state ALARM triggered policy tracking"
    assert activity["Description"] == "Setting read capacity units to 7."


def test_capacity_raised_by_hand_on_an_idle_table_is_undone_within_minutes_and_uses_a_decrease(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.cloud.advance(_IDLE)
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
    world.cloud.advance(2 * _IDLE)
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
    assert 10 <= len(failed) <= 15, "one a minute since the fifteenth low minute"
    gaps = {a["StartTime"] - b["StartTime"] for a, b in itertools.pairwise(failed)}
    assert gaps == {MINUTE}
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
