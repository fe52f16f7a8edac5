"""What Application Auto Scaling refuses by its own model: lengths, patterns, values and members of members."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import INDEX_WRITE, READ, WRITE, Unmet, World, invalid, key, refused, wording

PREDEFINED = {"PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"}}
SETTINGS: dict[str, Any] = {"TargetValue": 70, **PREDEFINED}
CUSTOMIZED = {"CustomizedMetricSpecification": {"MetricName": "m", "Namespace": "n", "Statistic": "Sum"}}
XML = r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*"
REGISTER, DESCRIBE, PUT = "register_scalable_target", "describe_scalable_targets", "put_scaling_policy"
OF_DYNAMODB, ORDERS = {"ServiceNamespace": "dynamodb"}, key("table/orders")
LONG, MANY = "table/" + "x" * 1_600, ["table/x"] * 51
MEDIAN = {"MetricName": "m", "Namespace": "n", "Statistic": "Median"}
STEPS = {"StepScalingPolicyConfiguration": {"StepAdjustments": [{"ScalingAdjustment": 1}, {}]}}


def _tracking(**settings: Any) -> dict[str, Any]:
    return ORDERS | {"PolicyName": "p", "TargetTrackingScalingPolicyConfiguration": settings}


def _in_tracking(member: str) -> str:
    return f"targetTrackingScalingPolicyConfiguration.{member}"


@pytest.mark.parametrize(
    ("operation", "members", "unmet"),
    [
        pytest.param(
            REGISTER,
            OF_DYNAMODB | {"MinCapacity": 5},
            [(None, "resourceId", "not be null"), (None, "scalableDimension", "not be null")],
            id="two-members-missing",
        ),
        pytest.param(
            REGISTER,
            ORDERS | {"RoleARN": ""},
            [("", "roleARN", "have length greater than or equal to 1")],
            id="empty",
        ),
        pytest.param(
            REGISTER, key(LONG), [(LONG, "resourceId", "have length less than or equal to 1600")], id="too-long"
        ),
        pytest.param(
            REGISTER,
            key("table/a\x01b"),
            [("table/a\x01b", "resourceId", f"satisfy regular expression pattern: {XML}")],
            id="pattern",
        ),
        pytest.param(
            REGISTER,
            ORDERS | {"Tags": {"": "x"}},
            [
                (
                    "{=x}",
                    "tags",
                    "satisfy constraint: [Member must have length less than or equal to 128, Member must have length "
                    "greater than or equal to 1]",
                )
            ],
            id="key-of-a-map",
        ),
        pytest.param(
            DESCRIBE,
            OF_DYNAMODB | {"ResourceIds": MANY},
            [(f"[{', '.join(MANY)}]", "resourceIds", "have length less than or equal to 50")],
            id="list-too-long",
        ),
        pytest.param(
            DESCRIBE,
            OF_DYNAMODB | {"ResourceIds": ["table/x", ""]},
            [
                (
                    "[table/x, ]",
                    "resourceIds",
                    "satisfy constraint: [Member must have length less than or equal to 1600, Member must have length "
                    f"greater than or equal to 1, Member must satisfy regular expression pattern: {XML}]",
                )
            ],
            id="element-of-a-list",
        ),
        pytest.param(
            PUT,
            ORDERS | {"PolicyName": "p" * 257},
            [("p" * 257, "policyName", "have length less than or equal to 256")],
            id="policy-name-too-long",
        ),
        pytest.param(
            PUT,
            ORDERS | {"PolicyName": "a\x01b"},
            [("a\x01b", "policyName", r"satisfy regular expression pattern: \p{Print}+")],
            id="policy-name-not-printable",
        ),
        pytest.param(
            PUT,
            _tracking(PredefinedMetricSpecification={}),
            [
                (None, _in_tracking("targetValue"), "not be null"),
                (None, _in_tracking("predefinedMetricSpecification.predefinedMetricType"), "not be null"),
            ],
            id="missing-in-members",
        ),
        pytest.param(
            PUT,
            _tracking(TargetValue=70, CustomizedMetricSpecification=MEDIAN),
            [
                (
                    "Median",
                    _in_tracking("customizedMetricSpecification.statistic"),
                    "satisfy enum value set: [Average, Maximum, Minimum, SampleCount, Sum]",
                )
            ],
            id="value-in-a-member",
        ),
        pytest.param(
            PUT,
            ORDERS | {"PolicyName": "p"} | STEPS,
            [(None, "stepScalingPolicyConfiguration.stepAdjustments.2.member.scalingAdjustment", "not be null")],
            id="member-of-an-element",
        ),
    ],
)
def test_what_the_model_does_not_allow_is_refused(
    world: World, operation: str, members: dict[str, Any], unmet: list[Unmet]
) -> None:
    with refused("ValidationException", invalid(*unmet)):
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
    """Recorded: radkawar/stackd 9dc356f, dynamodb/replica_autoscaling_edges."""
    resource = f"table/{world.table(40, 41, {'by-city': (42, 43)})}"
    resource += "/index/by-city" if dim == INDEX_WRITE else ""
    world.register(resource, 7, 900, dim)
    message = f"Scalable dimension {dim} only supports the following predefined metric types: {wanted}"
    with refused("ValidationException", message):
        world.put_policy(resource, "tracking", dim=dim, PredefinedMetricSpecification={"PredefinedMetricType": metric})


def test_policy_follows_one_metric(world: World) -> None:
    resource = f"table/{world.table(40, 41)}"
    world.register(resource, 7, 900)
    put = {**key(resource), "PolicyName": "tracking", "PolicyType": "TargetTrackingScaling"}
    required = "Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required, got "
    with refused("ValidationException", required + "none"):
        world.autoscaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration={"TargetValue": 70})
    with refused("ValidationException", required + "both"):
        world.autoscaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration=SETTINGS | CUSTOMIZED)


@pytest.mark.parametrize("dim", [READ, WRITE])
def test_metric_has_to_be_predefined(world: World, dim: str) -> None:
    """Recorded for reads: radkawar/stackd 9dc356f, dynamodb/replica_autoscaling_edges."""
    resource = f"table/{world.table(40, 41)}"
    world.register(resource, 7, 900, dim)
    world.put_policy(resource, "tracking", dim=dim)
    before = world.policies(resource)
    put = {**key(resource, dim), "PolicyType": "TargetTrackingScaling"}
    settings = {"TargetValue": 70, **CUSTOMIZED}
    for name in ("tracking", "more"):
        with refused(
            "ValidationException", f"Scalable dimension {dim} does not support CustomizedMetricSpecification."
        ):
            world.autoscaling.put_scaling_policy(
                **put, PolicyName=name, TargetTrackingScalingPolicyConfiguration=settings
            )
    assert world.policies(resource) == before


def test_metric_has_one_policy_of_a_target(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/replica_autoscaling_edges."""
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
