"""Names that a strict cloud refuses by their length and characters, in stacks and requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import TRUST, creation_failure, invalid, policy, refused

pytestmark = pytest.mark.xdist_group("strict names")
CLOUD = {"is_strict": True}
RULE, GROUP = "AWS::Events::Rule", "AWS::Scheduler::ScheduleGroup"
MANAGED, ROLE = "AWS::IAM::ManagedPolicy", "AWS::IAM::Role"
QUEUE, ALARM = "AWS::SQS::Queue", "AWS::CloudWatch::Alarm"
WITH_POLICY = {"PolicyDocument": policy({"Action": "s3:GetObject", "Resource": "*"})}
WITH_TRUST = {"AssumeRolePolicyDocument": TRUST}
ALARMED = {"MetricName": "m", "Namespace": "n", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
ALARMED |= {"ComparisonOperator": "GreaterThanThreshold", "Threshold": 1}
HOURLY = {"ScheduleExpression": "rate(1 hour)"}
ONCE_AN_HOUR = HOURLY | {
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:any", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/any"},
}


def _too_long(place: str, most: int) -> str:
    return invalid(("x" * (most + 1), place, f"have length less than or equal to {most}"))


def _unmatched(name: str, pattern: str) -> str:
    return invalid((name, "name", f"satisfy regular expression pattern: {pattern}"))


def _unusual(place: str) -> str:
    return (
        f"The specified value for {place} is invalid. It must contain only alphanumeric characters and/or the "
        "following: +=,.@_-"
    )


def _unfit(unmet: str) -> str:
    return f"Properties validation failed for resource Named with message: [#/{unmet}]"


RULES = r"[\.\-_A-Za-z0-9]+"
OF_EVENTS = "(Service: EventBridge, Status Code: 400, ValidationException)"
OF_IAM = "(Service: Iam, Status Code: 400, ValidationError)"


@pytest.mark.parametrize(
    ("kind", "member", "others", "name", "reason"),
    [
        (RULE, "Name", HOURLY, "x" * 64, ""),
        (RULE, "Name", HOURLY, "x" * 65, f"{_too_long('name', 64)} {OF_EVENTS}"),
        (RULE, "Name", HOURLY, "a/b", f"{_unmatched('a/b', RULES)} {OF_EVENTS}"),
        (QUEUE, "QueueName", {}, "x" * 80, ""),
        (QUEUE, "QueueName", {}, "x" * 81, _unfit("QueueName: expected maxLength: 80, actual: 81")),
        (ALARM, "AlarmName", ALARMED, "x" * 255, ""),
        (ALARM, "AlarmName", ALARMED, "x" * 256, _unfit("AlarmName: expected maxLength: 255, actual: 256")),
        (GROUP, "Name", {}, "x" * 64, ""),
        (GROUP, "Name", {}, "x" * 65, _unfit("Name: expected maxLength: 64, actual: 65")),
        (GROUP, "Name", {}, "a b", _unfit("Name: failed validation constraint for keyword [pattern]")),
        (MANAGED, "ManagedPolicyName", WITH_POLICY, "x" * 128, ""),
        (MANAGED, "ManagedPolicyName", WITH_POLICY, "x" * 129, f"{_too_long('policyName', 128)} {OF_IAM}"),
        (MANAGED, "ManagedPolicyName", WITH_POLICY, "a b", f"{_unusual('policyName')} {OF_IAM}"),
        (ROLE, "RoleName", WITH_TRUST, "a+=,.@-_b", ""),
        (ROLE, "RoleName", WITH_TRUST, "a/b", _unfit("RoleName: failed validation constraint for keyword [pattern]")),
    ],
)
def test_stack_with_a_name_that_does_not_fit_fails(
    clients: dict[str, Any], kind: str, member: str, others: dict[str, Any], name: str, reason: str
) -> None:
    assert creation_failure(clients["cloudformation"], kind, others | {member: name}) == reason


def _as_json(properties: dict[str, Any]) -> dict[str, Any]:
    """Properties as IAM has them in requests."""
    return {name: json.dumps(document) for name, document in properties.items()}


TO_ROLE = {"RoleName": "any"} | _as_json(WITH_POLICY)


@pytest.mark.parametrize(
    ("service", "operation", "member", "others", "name", "text"),
    [
        ("cloudwatch", "put_metric_alarm", "AlarmName", ALARMED, "x" * 256, _too_long("alarmName", 255)),
        ("events", "put_rule", "Name", HOURLY, "x" * 65, _too_long("name", 64)),
        ("events", "put_rule", "Name", HOURLY, "a/b", _unmatched("a/b", RULES)),
        ("scheduler", "create_schedule_group", "Name", {}, "x" * 65, _too_long("name", 64)),
        ("scheduler", "create_schedule_group", "Name", {}, "a b", _unmatched("a b", "^[0-9a-zA-Z-_.]+$")),
        ("scheduler", "create_schedule", "Name", ONCE_AN_HOUR, "x" * 65, _too_long("name", 64)),
        ("iam", "create_role", "RoleName", _as_json(WITH_TRUST), "x" * 65, _too_long("roleName", 64)),
        ("iam", "create_role", "RoleName", _as_json(WITH_TRUST), "a b", _unusual("roleName")),
        ("iam", "create_policy", "PolicyName", _as_json(WITH_POLICY), "x" * 129, _too_long("policyName", 128)),
        ("iam", "put_role_policy", "PolicyName", TO_ROLE, "a b", _unusual("policyName")),
    ],
)
def test_request_with_a_name_that_does_not_fit_is_refused(
    cloud: LocalCloud, service: str, operation: str, member: str, others: dict[str, Any], name: str, text: str
) -> None:
    # the two older services have another code
    with refused("ValidationError" if service in ("cloudwatch", "iam") else "ValidationException", text):
        getattr(cloud.client(service), operation)(**others, **{member: name})


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("cloudwatch", "put_metric_alarm", ALARMED | {"AlarmName": "y" * 255}),
        ("events", "put_rule", HOURLY | {"Name": "x" * 64}),
        ("scheduler", "create_schedule_group", {"Name": "a.b-c_" + "x" * 58}),
        ("iam", "create_role", {"RoleName": "x" * 64} | _as_json(WITH_TRUST)),
        ("iam", "create_policy", {"PolicyName": "x" * 128} | _as_json(WITH_POLICY)),
    ],
)
def test_request_with_the_longest_name_is_carried_out(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any]
) -> None:
    getattr(cloud.client(service), operation)(**arguments)
