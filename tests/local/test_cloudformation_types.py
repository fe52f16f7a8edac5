"""Stacks with scalable targets, policies and tables, through CloudFormation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import (
    INDEX_READ,
    LATE,
    MINUTE,
    NIGHTLY,
    READ,
    WRITE,
    Stack,
    World,
    index_definition,
    key,
    keyed,
    refused,
    unique,
    units,
    warmth,
)

Resources = dict[str, Any]


def _target(resource: str, minimum: Any, maximum: Any, dim: str = READ, **more: Any) -> Resources:
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": key(resource, dim) | {"MinCapacity": minimum, "MaxCapacity": maximum} | more,
    }


def _policy(name: str, value: Any = 70, dim: str = READ, **named: Any) -> Resources:
    metric = f"DynamoDB{'Read' if dim == READ else 'Write'}CapacityUtilization"
    settings = {"TargetValue": value, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}}
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
        "Properties": {
            "PolicyName": name,
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": settings,
            **(named or {"ScalingTargetId": {"Ref": "Target"}}),
        },
    }


def _action(name: str, minimum: Any = None, maximum: Any = None, schedule: str = NIGHTLY, **more: Any) -> Resources:
    bounds = {"MinCapacity": minimum, "MaxCapacity": maximum}
    action = {member: units for member, units in bounds.items() if units is not None}
    return {"ScheduledActionName": name, "Schedule": schedule, "ScalableTargetAction": action} | more


def _table(name: str, read: Any = 40, write: Any = 41, index: Resources | None = None, **more: Any) -> Resources:
    properties: Resources = {
        "TableName": name,
        **keyed("id", others=[] if index is None else ["city"]),
        "ProvisionedThroughput": units(read, write),
    }
    if index is not None:
        properties["GlobalSecondaryIndexes"] = [index]
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties | more}


def _actions(world: World, resource: str) -> dict[str, Any]:
    found = world.autoscaling.describe_scheduled_actions(ServiceNamespace="dynamodb", ResourceId=resource)
    return {action["ScheduledActionName"]: action for action in found["ScheduledActions"]}


def _targets(world: World) -> set[tuple[str, str]]:
    found = world.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
    return {(target["ResourceId"], target["ScalableDimension"]) for target in found}


@pytest.fixture
def resource(world: World) -> str:
    """A table, named as Application Auto Scaling does."""
    return world.resource()


# the two types of Application Auto Scaling


def test_target_and_policy_when_created_are_there_and_named_by_ref(world: World, stack: Stack) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    start = world.now() + timedelta(days=2)
    actions = [
        _action("up", 9),
        _action("down", None, 90, Timezone="Europe/Berlin", StartTime=f"{start:%Y-%m-%dT%H:%M:%SZ}"),
    ]
    target = _target(resource, 50, 900, ScheduledActions=actions)
    assert stack.create(Target=target, Policy=_policy("tracking", 65)) == "CREATE_COMPLETE"
    assert (world.bounds(resource), world.capacity(table)) == ((50, 900), (50, 41))
    found = _actions(world, resource)
    assert found["up"]["ScalableTargetAction"] == {"MinCapacity": 9}
    assert found["down"]["ScalableTargetAction"] == {"MaxCapacity": 90}
    assert (found["down"]["Timezone"], found["down"]["StartTime"]) == ("Europe/Berlin", start)
    policy = world.policies(resource)["tracking"]
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 65
    assert stack.outputs() == {"Target": f"{resource}|{READ}|dynamodb", "Policy": policy["PolicyARN"]}


def test_policy_that_names_its_target_by_resource_is_put_on_it(world: World, resource: str, stack: Stack) -> None:
    policy = _policy("tracking", 65, **key(resource)) | {"DependsOn": "Target"}
    assert stack.create(Target=_target(resource, 7, 900), Policy=policy) == "CREATE_COMPLETE"
    assert list(world.policies(resource)) == ["tracking"]


def test_numbers_given_as_strings_are_numbers(world: World, stack: Stack) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    target = _target(resource, "50", "900", ScheduledActions=[_action("up", "9", "90")])
    assert stack.create(Target=target, Policy=_policy("tracking", "65.5")) == "CREATE_COMPLETE"
    assert (world.bounds(resource), world.capacity(table)) == ((50, 900), (50, 41))
    assert _actions(world, resource)["up"]["ScalableTargetAction"] == {"MinCapacity": 9, "MaxCapacity": 90}
    assert world.policies(resource)["tracking"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 65.5


def test_target_with_suspended_state_is_created_suspended(world: World, resource: str, stack: Stack) -> None:
    target = _target(resource, 7, 900, SuspendedState={"ScheduledScalingSuspended": "true"})
    assert stack.create(Target=target) == "CREATE_COMPLETE"
    assert world.target(resource)["SuspendedState"]["ScheduledScalingSuspended"] is True


def test_target_on_an_index_scales_the_index(world: World, stack: Stack) -> None:
    table = world.table(40, 41, {"by-city": (60, 61)})
    target = _target(f"table/{table}/index/by-city", 70, 900, INDEX_READ)
    assert stack.create(Target=target) == "CREATE_COMPLETE"
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 41), (70, 61))


@pytest.mark.parametrize(
    ("bounds", "expected"), [((60, 900), (60, 41)), ((7, 30), (30, 41)), ((7, 800), (50, 41))],
    ids=["minimum-up", "maximum-down", "wider"],
)  # fmt: skip
def test_target_with_changed_bounds_is_updated_in_place_and_clamps(
    world: World, stack: Stack, bounds: tuple[int, int], expected: tuple[int, int]
) -> None:
    table = world.table(50, 41)
    resource = f"table/{table}"
    stack.create(Target=_target(resource, 20, 900), Policy=_policy("tracking"))
    before = world.target(resource)
    assert stack.update(Target=_target(resource, *bounds), Policy=_policy("tracking")) == "UPDATE_COMPLETE"
    assert (world.bounds(resource), world.capacity(table)) == (bounds, expected)
    assert world.target(resource)["ScalableTargetARN"] == before["ScalableTargetARN"]
    assert list(world.policies(resource)) == ["tracking"]


def test_target_with_changed_actions_has_just_the_new_ones_after_an_update(
    world: World, resource: str, stack: Stack
) -> None:
    old = [_action("kept", 9), _action("changed", 10), _action("removed", 11)]
    new = [_action("kept", 9), _action("changed", None, 101, "rate(3 days)"), _action("added", 12)]
    stack.create(Target=_target(resource, 7, 900, ScheduledActions=old))
    kept = _actions(world, resource)["kept"]
    assert stack.update(Target=_target(resource, 7, 900, ScheduledActions=new)) == "UPDATE_COMPLETE"
    found = _actions(world, resource)
    assert set(found) == {"kept", "changed", "added"}
    assert found["kept"] == kept
    assert (found["changed"]["Schedule"], found["changed"]["ScalableTargetAction"]) == (
        "rate(3 days)",
        {"MaxCapacity": 101},
    )


def test_target_that_lost_all_its_actions_has_none_after_an_update(world: World, resource: str, stack: Stack) -> None:
    stack.create(Target=_target(resource, 7, 900, ScheduledActions=[_action("up", 9)]))
    assert stack.update(Target=_target(resource, 8, 900)) == "UPDATE_COMPLETE"
    assert _actions(world, resource) == {}


def test_action_that_lost_its_end_and_zone_in_the_template_has_none_after_an_update(
    world: World, resource: str, stack: Stack
) -> None:
    end = f"{world.now() + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    old = _action("up", 9, Timezone="Europe/Berlin", EndTime=end)
    stack.create(Target=_target(resource, 7, 900, ScheduledActions=[old]))
    stack.update(Target=_target(resource, 7, 900, ScheduledActions=[_action("up", 9)]))
    assert "EndTime" not in _actions(world, resource)["up"]


def test_policy_with_a_changed_value_is_updated_in_place(world: World, resource: str, stack: Stack) -> None:
    stack.create(Target=_target(resource, 7, 900), Policy=_policy("tracking", 60))
    before = stack.physical_id("Policy")
    assert stack.update(Target=_target(resource, 7, 900), Policy=_policy("tracking", 61)) == "UPDATE_COMPLETE"
    assert stack.physical_id("Policy") == before
    assert world.policies(resource)["tracking"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 61


@pytest.mark.parametrize("what", ["resource", "dimension"])
def test_target_of_another_resource_or_dimension_replaces_the_old_with_its_policy(
    world: World, stack: Stack, what: str
) -> None:
    first, second = (f"table/{world.table(40, 41)}" for _ in range(2))
    new = (second, READ) if what == "resource" else (first, WRITE)
    stack.create(Target=_target(first, 7, 900), Policy=_policy("tracking"))
    status = stack.update(Target=_target(new[0], 8, 800, new[1]), Policy=_policy("tracking", dim=new[1]))
    assert status == "UPDATE_COMPLETE"
    assert _targets(world) == {new}
    assert stack.outputs()["Target"] == f"{new[0]}|{new[1]}|dynamodb"
    policy = world.policies(new[0])["tracking"]
    assert policy["ScalableDimension"] == new[1]


def test_policy_with_another_name_replaces_the_old(world: World, resource: str, stack: Stack) -> None:
    """On the other dimension, as a metric has one policy."""
    targets = {"Target": _target(resource, 7, 900), "Writes": _target(resource, 7, 900, WRITE)}
    stack.create(**targets, Policy=_policy("old"))
    before = stack.physical_id("Policy")
    new = _policy("new", dim=WRITE, ScalingTargetId={"Ref": "Writes"})
    assert stack.update(**targets, Policy=new) == "UPDATE_COMPLETE"
    assert list(world.policies(resource)) == ["new"]
    assert stack.physical_id("Policy") == world.policies(resource)["new"]["PolicyARN"] != before


def test_policy_on_a_custom_metric_fails(world: World, resource: str, stack: Stack) -> None:
    """By the text recorded of PutScalingPolicy: radkawar/stackd 9dc356f, dynamodb/replica_autoscaling_edges."""
    policy = _policy("tracking")
    metric = {"MetricName": "jobs", "Namespace": "mine", "Statistic": "Sum"}
    settings = {"TargetValue": 70, "CustomizedMetricSpecification": metric}
    policy["Properties"]["TargetTrackingScalingPolicyConfiguration"] = settings
    stack.create(Target=_target(resource, 7, 900))
    assert stack.update(Target=_target(resource, 7, 900), Policy=policy) == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.reasons() == (
        f"Scalable dimension {READ} does not support CustomizedMetricSpecification. (Service: ApplicationAutoScaling, "
        "Status Code: 400, ValidationException)"
    )
    assert world.policies(resource) == {}


def test_policy_with_another_name_and_the_same_metric_fails_as_both_are_there_for_a_while(
    world: World, resource: str, stack: Stack
) -> None:
    """CloudFormation makes the new one before it deletes the old one, and a metric has one policy."""
    stack.create(Target=_target(resource, 7, 900), Policy=_policy("old"))
    assert stack.update(Target=_target(resource, 7, 900), Policy=_policy("new")) == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.reasons() == (
        "Only one TargetTrackingScaling policy for a given metric specification is allowed. (Service: "
        "ApplicationAutoScaling, Status Code: 400, ValidationException)"
    )
    assert list(world.policies(resource)) == ["old"]


def test_policy_removed_from_the_template_is_deleted_and_its_target_stays(
    world: World, resource: str, stack: Stack
) -> None:
    stack.create(Target=_target(resource, 7, 900), Policy=_policy("tracking"))
    assert stack.update(Target=_target(resource, 7, 900)) == "UPDATE_COMPLETE"
    assert world.policies(resource) == {}
    assert world.bounds(resource) == (7, 900)


def test_deleted_stack_leaves_capacity_and_nothing_else(world: World, stack: Stack) -> None:
    table = world.table(40, 41)
    resource = f"table/{table}"
    stack.create(Target=_target(resource, 50, 900, ScheduledActions=[_action("up", 9)]), Policy=_policy("tracking"))
    assert stack.delete() == "DELETE_COMPLETE"
    assert (_targets(world), _actions(world, resource), world.policies(resource)) == (set(), {}, {})
    assert world.capacity(table) == (50, 41)


def test_deleted_stack_whose_target_is_gone_already_is_deleted(world: World, resource: str, stack: Stack) -> None:
    stack.create(Target=_target(resource, 7, 900), Policy=_policy("tracking"))
    world.autoscaling.deregister_scalable_target(**key(resource))
    assert stack.delete() == "DELETE_COMPLETE"


def test_target_that_exists_already_makes_the_creation_fail_and_stays_untouched(
    world: World, resource: str, stack: Stack
) -> None:
    world.register(resource, 20, 200)
    world.put_action(resource, "mine", NIGHTLY, 21)
    assert stack.create(Target=_target(resource, 50, 900)) == "ROLLBACK_COMPLETE"
    assert f"{resource}|{READ}|dynamodb already exists" in stack.reasons()
    assert world.bounds(resource) == (20, 200)
    assert list(_actions(world, resource)) == ["mine"]


def test_second_stack_with_the_same_target_is_refused_and_the_first_keeps_it(
    world: World, resource: str, make_stack: Callable[[], Stack]
) -> None:
    assert make_stack().create(Target=_target(resource, 7, 900)) == "CREATE_COMPLETE"
    assert make_stack().create(Target=_target(resource, 8, 800)) == "ROLLBACK_COMPLETE"
    assert world.bounds(resource) == (7, 900)


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        pytest.param(
            lambda resource: {
                "Target": _target(resource, 7, 900, ScheduledActions=[_action("a", 9), _action("b", 9, None, "never")])
            },
            "Invalid schedule expression: never",
            id="an-action-with-a-bad-schedule",
        ),
        pytest.param(
            lambda resource: {"Target": _target(resource, 7, 900), "Policy": _policy("tracking", 95)},
            "Target utilization must be between 20 and 90 for DynamoDB",
            id="a-policy-out-of-range",
        ),
        pytest.param(
            lambda resource: {"Target": _target(resource, 9, 8)},
            "Maximum capacity cannot be less than minimum capacity",
            id="bounds-that-cross",
        ),
    ],
)
def test_creation_that_fails_rolls_back_and_leaves_no_target(
    world: World, resource: str, stack: Stack, resources: Callable[[str], Resources], reason: str
) -> None:
    assert stack.create(**resources(resource)) == "ROLLBACK_COMPLETE"
    assert reason in stack.reasons()
    assert _targets(world) == set(), "a target left over would make the next deploy fail with 'already exists'"


def test_creation_that_failed_can_be_repeated_with_a_right_template(
    resource: str, make_stack: Callable[[], Stack]
) -> None:
    bad, good = (_target(resource, 7, 900, ScheduledActions=[_action("a", 9, None, text)]) for text in ("x", NIGHTLY))
    assert make_stack().create(Target=bad) == "ROLLBACK_COMPLETE"
    assert make_stack().create(Target=good) == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"Policy": _policy("tracking", 95)}, id="after-the-target-was-updated"),
        pytest.param({"bad_action": True}, id="in-the-target-itself"),
    ],
)
def test_update_that_fails_rolls_back_bounds_actions_and_policy(
    world: World, resource: str, stack: Stack, broken: dict[str, Any]
) -> None:
    old = _target(resource, 7, 900, ScheduledActions=[_action("kept", 9), _action("changed", 10)])
    stack.create(Target=old, Policy=_policy("tracking", 60))
    actions = [_action("changed", 99), _action("added", 12)]
    if "bad_action" in broken:
        actions.append(_action("bad", 13, None, "never"))
    new = _target(resource, 8, 800, ScheduledActions=actions)
    status = stack.update(Target=new, Policy=broken.get("Policy", _policy("tracking", 60)))
    assert status == "UPDATE_ROLLBACK_COMPLETE"
    assert world.bounds(resource) == (7, 900)
    found = {name: action["ScalableTargetAction"] for name, action in _actions(world, resource).items()}
    assert found == {"kept": {"MinCapacity": 9}, "changed": {"MinCapacity": 10}}
    assert world.policies(resource)["tracking"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 60


# tables


def _put_items(world: World, table: str) -> None:
    for number in range(3):
        world.dynamodb.put_item(TableName=table, Item={"id": {"S": f"item-{number}"}, "city": {"S": "Lima"}})


def _by_city(world: World, table: str) -> int:
    answer = world.dynamodb.query(
        TableName=table,
        IndexName="by-city",
        KeyConditionExpression="city = :city",
        ExpressionAttributeValues={":city": {"S": "Lima"}},
    )
    return int(answer["Count"])


def test_table_with_all_that_the_engine_leaves_out_has_it(world: World, stack: Stack) -> None:
    table = unique("table")
    status = stack.create(
        Table=_table(
            table,
            "40",
            "41",
            index_definition("by-city", 60, 61) | {"WarmThroughput": warmth(610, 620)},
            WarmThroughput={"ReadUnitsPerSecond": "400", "WriteUnitsPerSecond": "410"},
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            TimeToLiveSpecification={"AttributeName": "expires", "Enabled": "true"},
        )
    )
    assert status == "CREATE_COMPLETE"
    assert (world.capacity(table), world.warm(table)) == ((40, 41), (400, 410))
    assert (world.capacity(table, "by-city"), world.warm(table, "by-city")) == ((60, 61), (610, 620))
    assert world.has_recovery(table)
    ttl = world.dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    assert stack.delete() == "DELETE_COMPLETE"
    assert table not in world.dynamodb.list_tables()["TableNames"]


def test_table_with_changed_settings_keeps_its_items_and_has_them(world: World, stack: Stack) -> None:
    table = unique("table")
    stack.create(Table=_table(table))
    _put_items(world, table)
    status = stack.update(
        Table=_table(
            table,
            45,
            41,
            WarmThroughput=warmth(400, 410),
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": "true"},
            TimeToLiveSpecification={"AttributeName": "expires", "Enabled": True},
        )
    )
    assert status == "UPDATE_COMPLETE"
    assert (world.capacity(table), world.warm(table)) == ((45, 41), (400, 410))
    assert world.has_recovery(table)
    assert (
        world.dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    )
    assert world.dynamodb.scan(TableName=table)["Count"] == 3


def test_index_with_changed_capacity_in_the_template_keeps_items_and_budget(world: World, stack: Stack) -> None:
    table = unique("table")
    stack.create(Table=_table(table, index=index_definition("by-city", 60, 61)))
    _put_items(world, table)
    world.change(table, 59, 61, "by-city")
    assert stack.update(Table=_table(table, index=index_definition("by-city", 30, 71))) == "UPDATE_COMPLETE"
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 41), (30, 71))
    assert world.decreases(table, "by-city") == 2, "an index made anew would have a fresh budget"
    assert world.warm(table, "by-city") == (60, 71)
    assert (world.dynamodb.scan(TableName=table)["Count"], _by_city(world, table)) == (3, 3)


def test_index_whose_capacity_was_changed_by_auto_scaling_keeps_it_over_an_update(world: World, stack: Stack) -> None:
    table = unique("table")
    stack.create(Table=_table(table, index=index_definition("by-city", 60, 61)))
    _put_items(world, table)
    world.register(f"table/{table}/index/by-city", 300, 900, INDEX_READ)
    world.register(f"table/{table}", 310, 900, WRITE)
    ttl = {"AttributeName": "expires", "Enabled": True}
    status = stack.update(Table=_table(table, index=index_definition("by-city", 60, 61), TimeToLiveSpecification=ttl))
    assert status == "UPDATE_COMPLETE"
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 310), (300, 61))
    assert _by_city(world, table) == 3


def test_index_with_raised_warm_throughput_in_the_template_has_it(world: World, stack: Stack) -> None:
    table = unique("table")
    index = index_definition("by-city", 60, 61)
    stack.create(Table=_table(table, index=index | {"WarmThroughput": warmth(610, 620)}))
    assert stack.update(Table=_table(table, index=index | {"WarmThroughput": warmth(710, 720)})) == "UPDATE_COMPLETE"
    assert world.warm(table, "by-city") == (710, 720)


def test_index_added_in_the_template_with_warm_throughput_has_it(world: World, stack: Stack) -> None:
    table = unique("table")
    stack.create(Table=_table(table))
    index = index_definition("by-city", 60, 61) | {"WarmThroughput": warmth(610, 620)}
    assert stack.update(Table=_table(table, index=index)) == "UPDATE_COMPLETE"
    assert (world.capacity(table, "by-city"), world.warm(table, "by-city")) == ((60, 61), (610, 620))


def test_table_whose_decreases_are_used_up_makes_a_lower_template_fail_and_roll_back(
    world: World, stack: Stack
) -> None:
    world.start_a_day()
    table = unique("table")
    stack.create(Table=_table(table))
    world.use_decreases(table)
    assert stack.update(Table=_table(table, 20, 21)) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Provisioned throughput decreases are limited within a given UTC day" in stack.reasons()
    assert (world.capacity(table), world.decreases(table)) == ((36, 41), 4)


def test_table_with_lower_warm_throughput_in_the_template_fails_and_rolls_back(world: World, stack: Stack) -> None:
    table = unique("table")
    stack.create(Table=_table(table, WarmThroughput=warmth(400, 410)))
    assert stack.update(Table=_table(table, WarmThroughput=warmth(300, 410))) == "UPDATE_ROLLBACK_COMPLETE"
    assert "decreasing WarmThroughput is not supported" in stack.reasons()
    assert world.warm(table) == (400, 410)


def test_stack_with_table_target_and_action_runs_the_action(world: World, stack: Stack) -> None:
    table = unique("table")
    at = world.now().replace(second=0) + 8 * MINUTE
    action = _action("once", 70, None, f"at({at:%Y-%m-%dT%H:%M:%S})")
    resource = {"Fn::Sub": "table/${Table}"}
    target = _target(resource, 7, 900, ScheduledActions=[action])  # type: ignore[arg-type]
    assert stack.create(Table=_table(table), Target=target) == "CREATE_COMPLETE"
    world.advance_to(at + LATE)
    assert world.capacity(table) == (70, 41)
    assert world.described(table)["ProvisionedThroughput"].items() >= units(70, 41).items()


def test_parameter_does_not_go_back_from_the_advanced_tier_unless_tiers_are_chosen_for_it(cloud: LocalCloud) -> None:
    """A plan grows above 4 KB and shrinks again."""
    stack = Stack(cloud.client("cloudformation"))
    ssm = cloud.client("ssm")

    def plan(size: int, tier: str) -> Resources:
        properties = {"Name": f"/plans/{stack.name}", "Type": "String", "Value": "x" * size, "Tier": tier}
        return {"Plan": {"Type": "AWS::SSM::Parameter", "Properties": properties}}

    def stored() -> tuple[int, str]:
        (found,) = ssm.describe_parameters(ParameterFilters=[{"Key": "Name", "Values": [f"/plans/{stack.name}"]}])[
            "Parameters"
        ]
        return len(ssm.get_parameter(Name=found["Name"])["Parameter"]["Value"]), found["Tier"]

    assert stack.create(**plan(4_096, "Standard")) == "CREATE_COMPLETE"
    assert stack.update(**plan(5_000, "Advanced")) == "UPDATE_COMPLETE"
    assert stack.update(**plan(40, "Standard")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "downgrade a parameter from the advanced-parameter tier" in stack.reasons()
    assert stored() == (5_000, "Advanced")
    assert stack.update(**plan(41, "Intelligent-Tiering")) == "UPDATE_COMPLETE"
    assert stored() == (41, "Advanced")
    assert stack.update(**plan(8_193, "Intelligent-Tiering")) == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.delete() == "DELETE_COMPLETE"
    assert stack.create(**plan(42, "Intelligent-Tiering")) == "CREATE_COMPLETE"
    assert stored() == (42, "Standard")
    with refused(
        "ValidationException",
        "Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger parameter "
        "value, upgrade the parameter to use the advanced-parameter tier. For more information, see "
        "https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html",
    ):
        ssm.put_parameter(Name="/plans/long", Type="String", Value="x" * 4_097)
    with refused(
        "ValidationException", "Advanced tier parameters support a maximum parameter value of 8192 characters."
    ):
        ssm.put_parameter(Name="/plans/long", Type="String", Value="x" * 8_193, Tier="Intelligent-Tiering")
    stack.delete()
