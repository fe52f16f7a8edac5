"""Scalable targets of Application Auto Scaling through boto3, and what all of its lists have in common."""

from __future__ import annotations

import base64
from datetime import UTC
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.world import (
    IDLE,
    INDEX_READ,
    INDEX_WRITE,
    MINUTE,
    NIGHTLY,
    READ,
    WRITE,
    World,
    invalid,
    key,
    refused,
    wording,
)

# RegisterScalableTarget


def test_register_when_new_makes_a_target_with_all_its_members(world: World, resource: str) -> None:
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
    resource = world.resource()
    world.register(resource, 7, 900, RoleARN="arn:aws:iam::000000000000:role/mine")
    first = world.target(resource)
    world.register(resource, minimum, maximum)
    again = world.target(resource)
    assert world.bounds(resource) == expected
    for kept in ("ScalableTargetARN", "CreationTime", "RoleARN"):
        assert again[kept] == first[kept]


def test_register_again_keeps_actions_and_policies(world: World, resource: str) -> None:
    world.put_action(resource, "nightly", NIGHTLY, 9)
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
    resource = world.resource()
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
    resource = world.resource()
    with refused("ValidationException", text):
        world.register(resource, *bounds)
    found = world.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=[resource])
    assert found["ScalableTargets"] == []


@pytest.mark.parametrize("bounds", [(901, None), (None, 6)], ids=["minimum", "maximum"])
def test_register_again_with_a_bound_that_crosses_the_kept_one_is_refused(
    world: World, resource: str, bounds: tuple[int | None, int | None]
) -> None:
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


def test_value_of_no_enumeration_is_refused_in_the_words_of_aws(world: World, resource: str) -> None:
    """As public tests have it that their authors verified on AWS."""
    allowed = "satisfy enum value set: [PredictiveScaling, StepScaling, TargetTrackingScaling]"
    with refused("ValidationException", invalid(("ABCDEFG", "policyType", allowed))):
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
    with refused("ValidationException", invalid((None, member, "not be null"))):
        world.autoscaling.register_scalable_target(**members, MinCapacity=7, MaxCapacity=900)


@pytest.mark.parametrize("bad", ["seven", 7.5, True, [7]], ids=repr)
def test_register_with_a_bound_that_is_no_whole_number_is_refused(world: World, bad: object) -> None:
    resource = world.resource()
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
    first, second = world.resource(), world.resource()
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


def _fill(world: World, count: int) -> str:
    resource = world.resource()
    world.register(resource, 7, 900)
    for number in range(count):
        world.put_action(resource, f"action-{number:03}", NIGHTLY, 8 + number)
        if number < 7:
            world.register(resource, 50 + number, 900)
    return resource


_TARGETS, _ACTIONS, _POLICIES = "describe_scalable_targets", "describe_scheduled_actions", "describe_scaling_policies"
_MEMBERS = {_TARGETS: "ScalableTargets", _ACTIONS: "ScheduledActions", _POLICIES: "ScalingPolicies"}
_LISTS = [*_MEMBERS, "describe_scaling_activities"]


def test_activities_in_pages_are_complete_and_without_repeats(world: World) -> None:
    asked = {"ServiceNamespace": "dynamodb", "ResourceId": _fill(world, 7)}
    whole = [each["ActivityId"] for each in world.activities(asked["ResourceId"])]
    assert len(whole) == 7
    pages = world.autoscaling.get_paginator("describe_scaling_activities").paginate(
        **asked, PaginationConfig={"PageSize": 3}
    )
    found = [[each["ActivityId"] for each in page["ScalingActivities"]] for page in pages]
    assert found == [whole[:3], whole[3:6], whole[6:]]


def test_pages_as_recorded(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/wide_pages, continuation, policy_page_boundaries."""
    resource = _fill(world, 53)
    resources = [resource, *(world.resource() for _ in range(26))]
    for number, each in enumerate(resources):
        world.register(each, 7, 900, WRITE)
        if each != resource:
            world.register(each, 7, 900)
        if number < 13:
            world.put_policy(each, "tracking")
    world.autoscaling.deregister_scalable_target(**key(resources[-1], WRITE))
    named = {"ResourceIds": resources[1:5], "ScalableDimension": READ}

    def listed(operation: str, **members: Any) -> tuple[list[Any], str | None]:
        answer = getattr(world.autoscaling, operation)(ServiceNamespace="dynamodb", **members)
        return answer[_MEMBERS[operation]], answer.get("NextToken")

    for operation, members, rows, has_token in (
        (_TARGETS, {}, 50, True),
        (_TARGETS, {"MaxResults": 0}, 0, False),
        (_TARGETS, {"MaxResults": 1}, 0, True),
        (_TARGETS, {"MaxResults": 2}, 0, True),
        (_TARGETS, {"MaxResults": 50}, 50, False),
        (_TARGETS, named, 4, False),
        (_TARGETS, named | {"MaxResults": 1}, 1, False),
        (_TARGETS, named | {"MaxResults": 2}, 2, False),
        (_ACTIONS, {}, 50, True),
        (_ACTIONS, {"MaxResults": 0}, 0, False),
        (_ACTIONS, {"MaxResults": 1}, 1, False),
        (_ACTIONS, {"MaxResults": 50}, 50, False),
        (_POLICIES, {}, 10, True),
        (_POLICIES, {"MaxResults": 1}, 1, False),
        (_POLICIES, {"MaxResults": 10}, 10, False),
        (_POLICIES, {"MaxResults": 11}, 10, True),
        (_POLICIES, {"MaxResults": 50}, 10, True),
    ):
        found, token = listed(operation, **members)
        assert (len(found), token is not None) == (rows, has_token), (operation, members)
    for operation in (_TARGETS, _ACTIONS, _POLICIES):
        first, token = listed(operation)
        rest, no_token = listed(operation, NextToken=token)
        assert (len(rest), no_token) == (3, None)
        assert not [each for each in rest if each in first]
        # a token may be used again, and a page size cuts off the rest, too
        assert listed(operation, NextToken=token) == (rest, None)
        for size in (1, 2):
            assert listed(operation, NextToken=token, MaxResults=size) == (rest[:size], None)


@pytest.mark.parametrize("operation", _LISTS)
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


@pytest.mark.parametrize("operation", _LISTS)
def test_list_of_another_service_is_refused(world: World, operation: str) -> None:
    with refused("ValidationException", "Unsupported service namespace: ecs"):
        getattr(world.autoscaling, operation)(ServiceNamespace="ecs")


# DeregisterScalableTarget


def test_deregister_removes_policies_and_actions_and_leaves_capacity(world: World) -> None:
    """With the policies' alarms, and the other dimension stays.

    Recorded: radkawar/stackd 9dc356f, dynamodb/controls.
    """
    table = world.table(40, 41)
    resource = f"table/{table}"
    world.register(resource, 50, 900)
    world.register(resource, 7, 900, WRITE)
    for dim in (READ, WRITE):
        world.put_action(resource, "nightly", NIGHTLY, 9, dim=dim)
        world.put_policy(resource, "tracking", dim=dim)
    world.autoscaling.deregister_scalable_target(**key(resource))
    assert world.capacity(table) == (50, 41)
    for operation, member in (
        ("describe_scheduled_actions", "ScheduledActions"),
        ("describe_scaling_policies", "ScalingPolicies"),
    ):
        left = getattr(world.autoscaling, operation)(ServiceNamespace="dynamodb", ResourceId=resource)[member]
        assert [one["ScalableDimension"] for one in left] == [WRITE]
    alarms = world.cloud.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"TargetTracking-{resource}-")
    assert {alarm["MetricName"] for alarm in alarms["MetricAlarms"]} == {
        "ConsumedWriteCapacityUnits",
        "ProvisionedWriteCapacityUnits",
    }
    world.register(resource, 7, 900)
    found = world.autoscaling.describe_scheduled_actions(**key(resource))
    assert found["ScheduledActions"] == [], "a target registered anew begins empty"


def test_deregister_of_an_unknown_target_is_refused(world: World) -> None:
    resource = world.resource()
    with refused("ObjectNotFoundException", f"No scalable target found for {wording(resource)}"):
        world.autoscaling.deregister_scalable_target(**key(resource))


def test_target_when_its_table_is_deleted_stays(world: World) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.dynamodb.delete_table(TableName=table)
    world.cloud.advance(IDLE)
    assert world.bounds(f"table/{table}") == (7, 900)


def test_target_when_its_table_goes_on_demand_and_back_stays_and_works(world: World) -> None:
    """Meanwhile it cannot be changed.

    Recorded of global tables: radkawar/stackd 9dc356f, dynamodb/global_tables_billing.
    """
    table = world.table(40, 41)
    world.register(f"table/{table}", 7, 900)
    world.put_policy(f"table/{table}", "tracking")
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    world.cloud.advance(IDLE)
    text = "Validation failed for scalable target. Reason: PAY_PER_REQUEST table mode is not scalable."
    with refused("ValidationException", text):
        world.register(f"table/{table}", 8, 900)
    world.dynamodb.update_table(
        TableName=table,
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 30, "WriteCapacityUnits": 31},
    )
    assert world.bounds(f"table/{table}") == (7, 900)
    world.cloud.advance(IDLE)
    assert world.capacity(table) == (7, 31)
