"""Floors after a deploy that failed and was rolled back, on an account in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater_lab.services.update_table import CapacityControl
from tests.memory_aws.account import Account
from tests.memory_aws.deploys import custom_resource_event, role_for_deploys
from tests.memory_aws.stage import WITH_WINDOW
from tests.memory_aws.tables import Table

READ, WRITE = (TargetName("orders", None, dimension) for dimension in Dimension)
ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"


def _serve(account: Account, status: str, request: str = "Update", kind: str = deployment.AFTERMATH_TYPE) -> None:
    """Serve an event while the stack has this status; the answer is the account's only one."""
    account.stack_status = lambda: status
    account.serve(_event(request, kind))
    assert len(account.answers) == 1


def _answer(account: Account) -> tuple[bool, str]:
    ((_, outcome),) = account.answers
    return outcome.ok, outcome.reason


def _event(request: str, kind: str = deployment.AFTERMATH_TYPE) -> dict[str, Any]:
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json(), "Actions": "5b1f"}
    before = properties | {"Actions": "77c0"} if request == "Update" else None
    return custom_resource_event(kind, request, properties, before)


@pytest.mark.parametrize(("request_type", "status"), [("Create", ROLLING_BACK), ("Update", "UPDATE_IN_PROGRESS")])
def test_nothing_is_done_but_in_a_rollback(account: Account, request_type: str, status: str) -> None:
    _serve(account, status, request_type)
    assert _answer(account) == (True, "nothing to do until a deploy is rolled back")
    assert account.waiting == []


def test_floors_of_open_windows_are_set_when_the_rollback_is_over(account: Account) -> None:
    _serve(account, ROLLING_BACK)
    assert _answer(account) == (True, "floors are set when the rollback is over")
    # it lasts longer than an invocation
    began = account.now
    account.serve_waiting()
    assert account.now - began > 800
    assert account.autoscaling.targets[WRITE].bounds == Bounds(12, 400)
    account.stack_status = lambda: "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    account.serve_waiting()
    assert account.waiting == []
    assert account.autoscaling.targets[WRITE].bounds == Bounds(140, 400)
    assert account.autoscaling.targets[READ].bounds == Bounds(7, 900)
    assert len(account.answers) == 1, "CloudFormation takes no second answer"


def test_floors_are_set_where_a_failed_rollback_is_continued(account: Account) -> None:
    """CloudFormation does not update again what it had updated before the rollback failed."""
    _serve(account, ROLLING_BACK)
    for status in ("UPDATE_ROLLBACK_FAILED", ROLLING_BACK, "UPDATE_ROLLBACK_COMPLETE"):
        account.stack_status = partial(str, status)
        account.serve_waiting()
    assert account.waiting == []
    assert account.autoscaling.targets[WRITE].bounds == Bounds(140, 400)


def test_floors_are_left_to_the_deploy_that_comes_next(account: Account) -> None:
    """A stack in another state may have other plans by then."""
    _serve(account, ROLLING_BACK)
    account.stack_status = lambda: "UPDATE_IN_PROGRESS"
    account.serve_waiting()
    assert account.waiting == []
    assert account.autoscaling.targets[WRITE].bounds == Bounds(12, 400)


def test_rollback_that_does_not_end_is_given_up(account: Account) -> None:
    _serve(account, ROLLING_BACK)
    for _ in range(47):
        account.serve_waiting()
    (waiting,) = account.waiting
    assert waiting[1]["HighwaterInvocations"] == 48
    account.serve_waiting()
    assert account.waiting == []


def test_rollback_does_not_fail_where_the_stack_cannot_be_read(account: Account) -> None:
    """CloudFormation would leave the stack in UPDATE_ROLLBACK_FAILED."""
    account.roles["deployment"] = role_for_deploys("cloudformation:DescribeStacks")
    _serve(account, ROLLING_BACK)
    reason = (
        "floors are left as they are if this is a rollback, as the stack cannot be read: not authorized to perform: "
        "DescribeStacks on arn:aws:cloudformation:us-east-1:000000000000:stack/orders/1"
    )
    assert _answer(account) == (True, reason)


@pytest.mark.parametrize(("status", "is_ok"), [(ROLLING_BACK, True), ("UPDATE_IN_PROGRESS", False)])
def test_floor_that_is_not_reached_fails_a_deploy_and_no_rollback(account: Account, status: str, is_ok: bool) -> None:
    """CloudFormation would leave the stack in UPDATE_ROLLBACK_FAILED."""
    units = {Dimension.READ: 9, Dimension.WRITE: 50}
    account.tables["orders"] = Table("orders", {None: CapacityControl(units, quota_units=100)})
    _serve(account, status, kind=deployment.FLOORS_TYPE)
    missed = (
        "table write has 50 units per second and its floor is 140; the table's scaling activities show why the "
        "capacity was not raised"
    )
    left = "left as it is, so that the rollback goes on: " if is_ok else ""
    assert _answer(account) == (is_ok, f"{left}{missed}")
