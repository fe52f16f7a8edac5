"""What Application Auto Scaling refuses by its own model: lengths, patterns, values and members of members."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import INDEX_WRITE, READ, WRITE, World, key, refused, wording

ONE = "1 validation error detected: "
PREDEFINED = {"PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"}}
SETTINGS: dict[str, Any] = {"TargetValue": 70, **PREDEFINED}
XML = r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*"


def _unmet(value: str, place: str, constraint: str) -> str:
    return f"Value {value} at '{place}' failed to satisfy constraint: Member must {constraint}"


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        (
            "register_scalable_target",
            {"ServiceNamespace": "dynamodb", "MinCapacity": 5},
            f"2 validation errors detected: {_unmet('null', 'resourceId', 'not be null')}; "
            f"{_unmet('null', 'scalableDimension', 'not be null')}",
        ),
        (
            "register_scalable_target",
            key("table/orders") | {"RoleARN": ""},
            ONE + _unmet("''", "roleARN", "have length greater than or equal to 1"),
        ),
        (
            "register_scalable_target",
            key("table/" + "x" * 1_600),
            ONE + _unmet(f"'table/{'x' * 1_600}'", "resourceId", "have length less than or equal to 1600"),
        ),
        (
            "register_scalable_target",
            key("table/a\x01b"),
            ONE + _unmet("'table/a\x01b'", "resourceId", f"satisfy regular expression pattern: {XML}"),
        ),
        (
            "register_scalable_target",
            key("table/orders") | {"Tags": {"": "x"}},
            ONE
            + _unmet(
                "'{=x}'",
                "tags",
                "satisfy constraint: [Member must have length less than or equal to 128, Member must have length "
                "greater than or equal to 1]",
            ),
        ),
        (
            "describe_scalable_targets",
            {"ServiceNamespace": "dynamodb", "ResourceIds": ["table/x"] * 51},
            ONE + _unmet(f"'[{', '.join(['table/x'] * 51)}]'", "resourceIds", "have length less than or equal to 50"),
        ),
        (
            "describe_scalable_targets",
            {"ServiceNamespace": "dynamodb", "ResourceIds": ["table/x", ""]},
            ONE
            + _unmet(
                "'[table/x, ]'",
                "resourceIds",
                "satisfy constraint: [Member must have length less than or equal to 1600, Member must have length "
                f"greater than or equal to 1, Member must satisfy regular expression pattern: {XML}]",
            ),
        ),
        (
            "put_scaling_policy",
            key("table/orders") | {"PolicyName": "p" * 257},
            ONE + _unmet(f"'{'p' * 257}'", "policyName", "have length less than or equal to 256"),
        ),
        (
            "put_scaling_policy",
            key("table/orders") | {"PolicyName": "a\x01b"},
            ONE + _unmet("'a\x01b'", "policyName", r"satisfy regular expression pattern: \p{Print}+"),
        ),
        (
            "put_scaling_policy",
            key("table/orders")
            | {"PolicyName": "p", "TargetTrackingScalingPolicyConfiguration": {"PredefinedMetricSpecification": {}}},
            "2 validation errors detected: "
            + _unmet("null", "targetTrackingScalingPolicyConfiguration.targetValue", "not be null")
            + "; "
            + _unmet(
                "null",
                "targetTrackingScalingPolicyConfiguration.predefinedMetricSpecification.predefinedMetricType",
                "not be null",
            ),
        ),
        (
            "put_scaling_policy",
            key("table/orders")
            | {
                "PolicyName": "p",
                "TargetTrackingScalingPolicyConfiguration": {
                    "TargetValue": 70,
                    "CustomizedMetricSpecification": {"MetricName": "m", "Namespace": "n", "Statistic": "Median"},
                },
            },
            ONE
            + _unmet(
                "'Median'",
                "targetTrackingScalingPolicyConfiguration.customizedMetricSpecification.statistic",
                "satisfy enum value set: [Average, Maximum, Minimum, SampleCount, Sum]",
            ),
        ),
        (
            "put_scaling_policy",
            key("table/orders")
            | {
                "PolicyName": "p",
                "StepScalingPolicyConfiguration": {"StepAdjustments": [{"ScalingAdjustment": 1}, {}]},
            },
            ONE
            + _unmet(
                "null", "stepScalingPolicyConfiguration.stepAdjustments.2.member.scalingAdjustment", "not be null"
            ),
        ),
    ],
    ids=[
        "two-members-missing",
        "empty",
        "too-long",
        "pattern",
        "key-of-a-map",
        "list-too-long",
        "element-of-a-list",
        "policy-name-too-long",
        "policy-name-not-printable",
        "missing-in-members",
        "value-in-a-member",
        "member-of-an-element",
    ],
)
def test_what_the_model_does_not_allow_is_refused(
    world: World, operation: str, members: dict[str, Any], message: str
) -> None:
    with refused("ValidationException", message):
        getattr(world.autoscaling, operation)(**members)


def test_value_of_another_type_is_refused(world: World) -> None:
    message = "Invalid type for parameter MinCapacity, value: 5, type: <class 'str'>, valid types: <class 'int'>"
    with refused("SerializationException", message):
        world.autoscaling.register_scalable_target(**key("table/orders"), MinCapacity="5", MaxCapacity=50)


def test_pattern_allows_characters_beyond_the_first_plane(world: World) -> None:
    """AWS writes them as Java does."""
    name, resource = "policy-\U0001f30a", "table/orders"
    with refused("ObjectNotFoundException", f"No scaling policy found for {wording(resource)}, policy name: {name}"):
        world.autoscaling.delete_scaling_policy(**key(resource), PolicyName=name)


@pytest.mark.parametrize(
    ("dim", "metric", "wanted"),
    [
        (READ, "DynamoDBWriteCapacityUtilization", "DynamoDBReadCapacityUtilization"),
        (WRITE, "DynamoDBReadCapacityUtilization", "DynamoDBWriteCapacityUtilization"),
        (READ, "ECSServiceAverageCPUUtilization", "DynamoDBReadCapacityUtilization"),
        (INDEX_WRITE, "DynamoDBReadCapacityUtilization", "DynamoDBWriteCapacityUtilization"),
    ],
)
def test_predefined_metric_has_to_fit_the_dimension(world: World, dim: str, metric: str, wanted: str) -> None:
    resource = f"table/{world.table(40, 41, {'by-city': (42, 43)})}"
    resource += "/index/by-city" if dim == INDEX_WRITE else ""
    world.register(resource, 7, 900, dim)
    message = (
        f"Unsupported predefined metric type for service namespace: dynamodb, resource ID: {resource}, scalable "
        f"dimension: {dim}: {metric}; it must be {wanted}"
    )
    with refused("ValidationException", message):
        world.put_policy(resource, "tracking", dim=dim, PredefinedMetricSpecification={"PredefinedMetricType": metric})


def test_policy_follows_one_metric(world: World) -> None:
    resource = f"table/{world.table(40, 41)}"
    world.register(resource, 7, 900)
    put = {**key(resource), "PolicyName": "tracking", "PolicyType": "TargetTrackingScaling"}
    customized = {"CustomizedMetricSpecification": {"MetricName": "m", "Namespace": "n", "Statistic": "Sum"}}
    required = "Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required, got "
    with refused("ValidationException", required + "none"):
        world.autoscaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration={"TargetValue": 70})
    with refused("ValidationException", required + "both"):
        world.autoscaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration=SETTINGS | customized)


def test_metric_has_one_policy_of_a_target(world: World) -> None:
    resource = f"table/{world.table(40, 41)}"
    world.register(resource, 7, 900)
    world.register(resource, 7, 900, WRITE)
    world.put_policy(resource, "reads")
    world.put_policy(resource, "writes", dim=WRITE)
    # another target value does not make it another metric
    with refused(
        "ValidationException", "Only one TargetTrackingScaling policy for a given metric specification is allowed."
    ):
        world.put_policy(resource, "more", 60)
    world.put_policy(resource, "reads", 60)
    world.autoscaling.delete_scaling_policy(**key(resource), PolicyName="reads")
    world.put_policy(resource, "more", 60)
