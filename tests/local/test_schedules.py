"""EventBridge Scheduler and state machines: what AWS was recorded to reject, and what cannot be caught."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import Stack, refused, unique

pytestmark = pytest.mark.xdist_group("cloud")
TARGET = {
    "Arn": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:none",
    "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/none",
}
INVALID = (
    "cron(0 1 * * * *)",
    "cron(7 20 * * NOT *)",
    "cron(INVALID)",
    "cron(0 dummy ? * MON-FRI *)",
    "cron(71 8 1 * ? *)",
    "cron()",
    "rate(10 seconds)",
    "rate(10 years)",
    "rate()",
    "rate(10)",
    "rate(10 minutess)",
    "rate(foo minutes)",
    "rate(-10 minutes)",
    "rate( 10 minutes )",
    " rate(10 minutes)",
    "at(2021-12-31T23:59:59Z)",
    "at(2021-12-31)",
)
VALID = (
    "rate(1 minutes)",
    "rate(7 days)",
    "cron(5 4 ? * MON-FRI *)",
    "cron(0/15 * * * ? 2027)",
    "at(2031-05-06T07:08:09)",
)


def _schedule(name: str, expression: str, **more: Any) -> dict[str, Any]:
    return {
        "Name": name,
        "ScheduleExpression": expression,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": TARGET | more,
        "State": "DISABLED",
    }


@pytest.mark.parametrize("expression", INVALID)
def test_invalid_expression_of_a_schedule_is_rejected(cloud: LocalCloud, expression: str) -> None:
    """Recorded: localstack/localstack, tests/aws/services/scheduler/test_scheduler.snapshot.json, 2025-01-26."""
    scheduler, name = cloud.client("scheduler"), unique("schedule")
    with refused("ValidationException", f"Invalid Schedule Expression {expression}."):
        scheduler.create_schedule(**_schedule(name, expression))
    scheduler.create_schedule(**_schedule(name, "rate(3 hours)"))
    with refused("ValidationException", f"Invalid Schedule Expression {expression}."):
        scheduler.update_schedule(**_schedule(name, expression))
    assert scheduler.get_schedule(Name=name)["ScheduleExpression"] == "rate(3 hours)"


@pytest.mark.parametrize("expression", VALID)
def test_valid_expression_of_a_schedule_is_accepted(cloud: LocalCloud, expression: str) -> None:
    """That `rate(1 minutes)` is: radkawar/stackd 9dc356f, scheduler_pipes/lifecycle_success."""
    scheduler, name = cloud.client("scheduler"), unique("schedule")
    scheduler.create_schedule(**_schedule(name, expression))
    assert scheduler.get_schedule(Name=name)["ScheduleExpression"] == expression


def test_schedule_without_a_retry_policy_is_described_with_the_default(cloud: LocalCloud) -> None:
    """Recorded: radkawar/stackd 9dc356f, scheduler_pipes/default_input."""
    scheduler = cloud.client("scheduler")
    given = {"plain": {}, "own": {"RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 700}}}
    for name, more in given.items():
        scheduler.create_schedule(**_schedule(name, "rate(3 hours)", **more))
    shown = {name: scheduler.get_schedule(Name=name)["Target"]["RetryPolicy"] for name in given}
    assert shown == {
        "plain": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86_400},
        "own": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 700},
    }


def test_invalid_expression_fails_a_stack(make_stack: Callable[[], Stack]) -> None:
    """Recorded of requests: localstack/localstack, tests/aws/services/scheduler/test_scheduler.snapshot.json."""
    stack = make_stack()
    properties = _schedule(unique("schedule"), "rate(10 years)")
    resources = {"Schedule": {"Type": "AWS::Scheduler::Schedule", "Properties": properties}}
    assert stack.create(**resources) == "ROLLBACK_COMPLETE"
    text = "Invalid Schedule Expression rate(10 years). (Service: Scheduler, Status Code: 400, ValidationException)"
    assert text in stack.reasons()


@pytest.mark.parametrize("names", [["States.ALL"], ["States.Runtime"], ["States.TaskFailed"]])
def test_runtime_error_of_a_state_machine_is_neither_retried_nor_caught(cloud: LocalCloud, names: list[str]) -> None:
    """Documented: AWS Step Functions Developer Guide, "Handling errors in Step Functions workflows"."""
    states = cloud.client("stepfunctions")
    work = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:none:doNothing",
        "Retry": [{"ErrorEquals": names, "IntervalSeconds": 1, "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": names, "Next": "Caught"}],
        "End": True,
    }
    definition = {"StartAt": "Work", "States": {"Work": work, "Caught": {"Type": "Succeed"}}}
    machine = states.create_state_machine(
        name=unique("machine"), definition=json.dumps(definition), roleArn=TARGET["RoleArn"]
    )["stateMachineArn"]
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]
    cloud.step(60)
    found = states.describe_execution(executionArn=execution)
    assert (found["status"], found.get("error")) == ("FAILED", "States.Runtime")
    events = states.get_execution_history(executionArn=execution)["events"]
    assert sum(event["type"] == "TaskFailed" for event in events) == 1
