"""The function for deploys where CloudFormation does not wait: express mode, on an account in memory.

A table may not be found yet, a role not apply, another function not be ready; and nothing is rolled back.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import EventOutcome
from tests.memory_aws.account import Account
from tests.memory_aws.clients import Functions
from tests.memory_aws.deploys import ask, custom_resource_event, refuse_two_invocations, role_for_deploys
from tests.memory_aws.stage import WITH_WINDOW
from tests.memory_aws.tables import refused
from tests.memory_aws.wire import Fault, Wire, each, refusal

READ, WRITE = (TargetName("orders", None, dimension) for dimension in Dimension)
ACTION = "dynamodb:DescribeTable"
ORDERS = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
BEGAN, LATER = (datetime(2027, 3, 4, 5, minute, tzinfo=UTC) for minute in (5, 9))
# of the account in memory
PAUSE_SECONDS = 30


BASE = {READ: Bounds(7, 900), WRITE: Bounds(12, 400)}
AS_PLANNED = {READ: Bounds(7, 900), WRITE: Bounds(140, 400)}


@pytest.fixture(autouse=True)
def express(account: Account) -> None:
    """The deploy is in express mode."""
    account.stack_operation = {"DeploymentConfig": {"Mode": "EXPRESS"}, "LastUpdatedTime": BEGAN}


def _event(kind: str, request: str = "Update") -> dict[str, Any]:
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json(), "Actions": "5b1f"}
    if kind == deployment.MARKS_TYPE:
        properties = {"TableName": "orders", "Marks": json.dumps([{"index": None, "read": 13_000, "write": 300}])}
    if kind == deployment.SCALED_TYPE:
        properties["Scaler"] = "Scaler"
    return custom_resource_event(kind, request, properties, properties if request == "Update" else None)


def _bounds(account: Account) -> dict[TargetName, Bounds]:
    return {name: target.bounds for name, target in account.autoscaling.targets.items()}


def _updated(account: Account) -> None:
    """Aftermath is updated and answers; then it waits in another invocation until the deploy is over."""
    account.serve(_event(deployment.AFTERMATH_TYPE))
    ((_, outcome),) = account.answers
    assert outcome == EventOutcome(True, "floors are set again when the deploy is over, even if it fails")
    account.serve_waiting()
    assert _bounds(account) == BASE
    assert len(account.waiting) == 1


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_FAILED"])
def test_floors_are_set_again_when_the_deploy_is_over(account: Account, status: str) -> None:
    _updated(account)
    account.stack_status = lambda: status
    account.serve_waiting()
    assert account.waiting == []
    assert _bounds(account) == AS_PLANNED
    assert len(account.answers) == 1, "CloudFormation takes no second answer"


def test_target_that_the_failed_deploy_did_not_create_is_left_to_the_next_one(account: Account) -> None:
    """CloudFormation could not create a target that is registered already."""
    _updated(account)
    del account.autoscaling.targets[READ]
    account.stack_status = lambda: "UPDATE_FAILED"
    account.serve_waiting()
    assert _bounds(account) == {WRITE: Bounds(140, 400)}


@pytest.mark.parametrize(
    ("status", "updated"),
    [
        pytest.param("UPDATE_IN_PROGRESS", LATER, id="the-next-deploy"),
        pytest.param("UPDATE_COMPLETE", LATER, id="the-next-deploy-is-over"),
        pytest.param("UPDATE_ROLLBACK_IN_PROGRESS", BEGAN, id="its-own-rollback"),
        pytest.param("DELETE_IN_PROGRESS", BEGAN, id="the-stack-is-deleted"),
    ],
)
def test_floors_are_left_to_what_came_after_the_deploy(account: Account, status: str, updated: datetime) -> None:
    _updated(account)
    account.stack_status = lambda: status
    account.stack_operation["LastUpdatedTime"] = updated
    account.serve_waiting()
    assert account.waiting == []
    assert _bounds(account) == BASE


def test_deploy_that_does_not_end_is_given_up(account: Account) -> None:
    account.serve(_event(deployment.AFTERMATH_TYPE))
    for _ in range(48):
        account.serve_waiting()
    assert account.waiting == []


def test_deploy_in_the_standard_mode_sets_the_floors_itself(account: Account) -> None:
    account.stack_operation["DeploymentConfig"] = {"Mode": "STANDARD"}
    account.serve(_event(deployment.AFTERMATH_TYPE))
    ((_, outcome),) = account.answers
    assert outcome == EventOutcome(True, "nothing to do until a deploy is rolled back")
    assert account.waiting == []


def _fault(account: Account, fault: Fault, operation: str) -> None:
    """Have every call of an operation meet a fault."""
    wire = Wire(fault=each(fault, operation))
    account.wrap = lambda client: client if isinstance(client, Functions) else wire.around(client)


def _hide_table(account: Account, seconds: float) -> None:
    """Have DynamoDB not find the table for so long."""
    until = account.now + seconds
    missing = refusal("ResourceNotFoundException", "Requested resource not found: Table: orders not found")
    _fault(account, lambda call: missing(call) if account.now < until else None, "DescribeTable")


@pytest.mark.parametrize("kind", [deployment.FLOORS_TYPE, deployment.MARKS_TYPE])
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_table_that_is_not_found_at_once_is_waited_for(account: Account, kind: str, request_type: str) -> None:
    """The update is of a table that took the place of another."""
    _hide_table(account, 55)
    assert ask(account, _event(kind, request_type)).ok


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            deployment.FLOORS_TYPE,
            "Requested resource not found: Table: orders not found; deploy again when the table exists",
        ),
        (deployment.MARKS_TYPE, "table orders does not exist; deploy again when it does"),
    ],
)
def test_table_that_is_not_found_for_a_minute_fails_the_deploy(account: Account, kind: str, reason: str) -> None:
    began = account.now
    _hide_table(account, 3_600)
    assert ask(account, _event(kind, "Create")) == EventOutcome(False, reason)
    assert account.now - began == 12 * PAUSE_SECONDS


def test_table_that_is_gone_is_not_waited_for_when_its_marks_are_deleted(account: Account) -> None:
    began = account.now
    _hide_table(account, 3_600)
    assert ask(account, _event(deployment.MARKS_TYPE, "Delete")) == EventOutcome(
        True, "the table does not exist any more"
    )
    assert account.now == began


@pytest.mark.parametrize("kind", [deployment.FLOORS_TYPE, deployment.MARKS_TYPE])
def test_role_that_does_not_apply_for_two_minutes_fails_the_deploy_with_what_to_do(account: Account, kind: str) -> None:
    account.roles["deployment"] = role_for_deploys(ACTION)
    outcome = ask(account, _event(kind, "Create"))
    advice = "if this deploy changed the function's role, which can take minutes to apply, deploy again"
    assert not outcome.ok
    assert outcome.reason == f"not authorized to perform: {ACTION} on resource: {ORDERS}; {advice}"


def test_scaler_that_is_still_being_created_is_waited_for(account: Account) -> None:
    text = "The operation cannot be performed at this time. The function is currently in the following state: Pending"
    refuse_two_invocations(account, refused("ResourceConflictException", text, 409))
    outcome = ask(account, _event(deployment.SCALED_TYPE, "Create"))
    assert outcome == EventOutcome(True, "the scaler looks at orders")
    assert [function for function, _ in account.waiting] == ["scaler"]


def test_target_that_stays_busy_fails_the_deploy_with_what_to_do(account: Account) -> None:
    busy = refusal("ConcurrentUpdateException", "You already have a pending update to an Auto Scaling resource")
    _fault(account, busy, "RegisterScalableTarget")
    outcome = ask(account, _event(deployment.FLOORS_TYPE, "Create"))
    told = "the invocation has no time left to wait, as AWS was busy with the table or its targets; deploy again"
    assert outcome == EventOutcome(False, told)
