"""Tables whose capacity a deploy that failed had set to the units of a template, on an account in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.core import Bounds, Dimension, Units
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.handler import Deployment
from highwater.handlers.deploy.waiting import Patience
from highwater_lab.services.update_table import CapacityControl
from tests.memory_aws.account import Account
from tests.memory_aws.deploys import custom_resource_event, role_for_deploys
from tests.memory_aws.stage import WITH_WINDOW
from tests.memory_aws.tables import BUILD_SECONDS, Table

ROLLING_BACK, ROLLED_BACK = "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"
BEGAN = datetime(2027, 3, 4, 5, tzinfo=UTC)
# the template of before the deploy, and the one that failed
BEFORE = {"Orders": [["PROVISIONED", 1, 1], ["by_day", 1, 1]], "Jobs": [["PROVISIONED", 2, 2]]}
AFTER = {"Orders": [["PROVISIONED", 20, 20], ["by_day", 1, 1]], "Jobs": [["PROVISIONED", 2, 2]]}
FLOORS = {Dimension.READ: 70, Dimension.WRITE: 140}


@pytest.fixture
def account(account: Account) -> Account:
    """Two tables with an index, under floors of 70 and 140 units a second, that a rollback is about to reset."""
    names = {"Orders": "shop-orders", "Jobs": "jobs"}
    for name in names.values():
        account.tables[name] = Table.provisioned(name, dict.fromkeys([None, "by_day"], Units(70, 140)))
        for index in (None, "by_day"):
            for dimension, floor in FLOORS.items():
                account.autoscaling.register(TargetName(name, index, dimension), Bounds(floor, 900), account.now)
    account.stack_resources = lambda: names | {"Other": "other"}
    return account


def _event(request: str = "Update", after: Any = BEFORE, before: Any = AFTER) -> dict[str, Any]:
    old = {"Tables": before} if request == "Update" else None
    return custom_resource_event(deployment.UNITS_TYPE, request, {"Tables": after}, old)


def _serve(account: Account, event: dict[str, Any], status: str) -> str:
    """Serve an event while the stack has this status; return the only answer."""
    account.stack_status = lambda: status
    account.serve(event)
    ((_, outcome),) = account.answers
    assert outcome.ok
    return outcome.reason


def _reset(account: Account, *names: str) -> None:
    for name in names:
        for index in (None, "by_day"):
            account.tables[name].resources[index] = CapacityControl(dict.fromkeys(Dimension, 1))


def _units(account: Account, name: str) -> dict[str | None, tuple[int, int]]:
    resources = account.tables[name].resources
    return {index: (each.granted[Dimension.READ], each.granted[Dimension.WRITE]) for index, each in resources.items()}


@pytest.mark.parametrize("request_type", ["Create", "Delete"])
def test_nothing_is_done_where_the_resource_is_new_or_goes(account: Account, request_type: str) -> None:
    reason = _serve(account, _event(request_type), "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
    assert reason == "nothing to do until a deploy is rolled back"
    assert account.waiting == []


@pytest.mark.parametrize(
    ("failed", "reset"),
    [
        pytest.param(AFTER, ["shop-orders"], id="other-units"),
        pytest.param({"Jobs": BEFORE["Jobs"]}, ["shop-orders"], id="on-demand-or-not-managed"),
        pytest.param({}, ["shop-orders", "jobs"], id="both"),
    ],
)
def test_tables_that_the_rollback_reset_are_raised_to_their_floors_when_it_is_over(
    account: Account, failed: dict[str, Any], reset: list[str]
) -> None:
    assert _serve(account, _event(before=failed), ROLLING_BACK) == "floors are set when the rollback is over"
    account.serve_waiting()
    _reset(account, "shop-orders", "jobs")
    account.stack_status = lambda: ROLLED_BACK
    while account.waiting:
        account.serve_waiting()
    raised = {None: (70, 140), "by_day": (70, 140)}
    left = {None: (1, 1), "by_day": (1, 1)}
    assert {name: _units(account, name) for name in ("shop-orders", "jobs")} == {
        name: raised if name in reset else left for name in ("shop-orders", "jobs")
    }
    assert len(account.answers) == 1, "CloudFormation takes no second answer"


def test_bounds_that_others_set_meanwhile_stay(account: Account) -> None:
    """`Aftermath` sets the floors of open windows at the same time, and a request with bounds might undo them."""
    _serve(account, _event(), ROLLING_BACK)
    _reset(account, "shop-orders")
    write = TargetName("shop-orders", None, Dimension.WRITE)
    account.autoscaling.targets[write].scalable.floor = 333
    account.stack_status = lambda: ROLLED_BACK
    while account.waiting:
        account.serve_waiting()
    assert account.autoscaling.targets[write].bounds == Bounds(333, 900)
    assert _units(account, "shop-orders")[None] == (70, 333)


def test_index_that_the_rollback_made_again_is_raised_when_it_is_built_and_holds_up_no_other_table(
    account: Account,
) -> None:
    _serve(account, _event(before={}), ROLLING_BACK)
    _reset(account, "shop-orders", "jobs")
    account.tables["shop-orders"].built["by_day"] = account.now + BUILD_SECONDS
    account.stack_status = lambda: ROLLED_BACK
    for _ in range(3):
        account.serve_waiting()
    assert account.tables["shop-orders"].is_building("by_day", account.now)
    assert _units(account, "jobs") == {None: (70, 140), "by_day": (70, 140)}
    while account.waiting:
        account.serve_waiting()
    assert _units(account, "shop-orders") == {None: (70, 140), "by_day": (70, 140)}


def test_floors_are_left_to_the_deploy_that_comes_next(account: Account) -> None:
    _serve(account, _event(), ROLLING_BACK)
    _reset(account, "shop-orders")
    account.stack_status = lambda: "UPDATE_IN_PROGRESS"
    account.serve_waiting()
    assert account.waiting == []
    assert _units(account, "shop-orders")[None] == (1, 1)


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE", "UPDATE_FAILED"])
@pytest.mark.parametrize("mode", ["EXPRESS", "STANDARD"])
def test_deploy_that_fails_and_is_not_rolled_back_leaves_tables_at_their_floors(
    account: Account, mode: str, status: str
) -> None:
    """As with `--express` or `--no-rollback`: what comes after the resource that failed is not reached."""
    account.stack_operation = {"DeploymentConfig": {"Mode": mode}, "LastUpdatedTime": BEGAN}
    reason = _serve(account, _event(after=AFTER, before=BEFORE), "UPDATE_IN_PROGRESS")
    assert reason == "floors are set again when the deploy is over, even if it fails"
    _reset(account, "shop-orders")
    account.stack_status = lambda: status
    while account.waiting:
        account.serve_waiting()
    assert _units(account, "shop-orders") == {None: (70, 140), "by_day": (70, 140)}


def test_deploy_that_is_rolled_back_is_left_to_the_event_of_its_rollback(account: Account) -> None:
    _serve(account, _event(after=AFTER, before=BEFORE), "UPDATE_IN_PROGRESS")
    _reset(account, "shop-orders")
    account.stack_status = lambda: ROLLING_BACK
    account.serve_waiting()
    assert account.waiting == []
    assert _units(account, "shop-orders")[None] == (1, 1)


def test_table_that_went_meanwhile_or_is_on_demand_is_left(account: Account) -> None:
    _serve(account, _event(before={}), ROLLING_BACK)
    del account.tables["jobs"]
    account.tables["shop-orders"].put_on_demand()
    account.stack_status = lambda: ROLLED_BACK
    while account.waiting:
        account.serve_waiting()
    assert _units(account, "shop-orders") == {None: (0, 0), "by_day": (0, 0)}


def test_capacity_that_does_not_follow_is_given_up_after_some_minutes(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    _serve(account, _event(), ROLLING_BACK)
    account.tables["shop-orders"].resources[None] = CapacityControl(dict.fromkeys(Dimension, 1), quota_units=69)
    account.stack_status = lambda: ROLLED_BACK
    account.serve_waiting()
    ((_, event),) = account.waiting
    # a pause takes as long as the function asks for, and not as six of them
    began, allowed = account.now, account.roles["deployment"].allows
    dynamodb: Any = account.tables_client(allowed)
    autoscaling: Any = account.targets_client(allowed)
    patience = Patience(lambda: 900.0 - (account.now - began), lambda seconds: account.advance(int(seconds)))
    Deployment(dynamodb=lambda _: dynamodb, autoscaling=lambda _: autoscaling).serve(event, patience)
    assert account.now - began == 295
    assert "shop-orders is below a floor still; its scaling activities show why" in caplog.text


@pytest.mark.parametrize("missing", ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"])
def test_rollback_does_not_fail_for_a_missing_permission(account: Account, missing: str) -> None:
    account.roles["deployment"] = role_for_deploys(missing)
    _serve(account, _event(), ROLLING_BACK)
    account.stack_status = lambda: ROLLED_BACK
    while account.waiting:
        account.serve_waiting()


def test_floors_that_wait_for_an_index_are_registered_with_the_bounds_of_then(account: Account) -> None:
    """`Floors` does the same after its answer, and bounds of the plan that it had would be old by then."""
    account.tables["shop-orders"].built["by_day"] = account.now + BUILD_SECONDS
    properties = {"TableName": "shop-orders", "Plan": WITH_WINDOW.to_json(), "Actions": "5b1f"}
    event = custom_resource_event(deployment.FLOORS_TYPE, "Update", properties, properties)
    account.waiting.append(("deployment", event | {"HighwaterAnswered": True, "HighwaterInvocations": 1}))
    _reset(account, "shop-orders")
    while account.waiting:
        account.serve_waiting()
    assert _units(account, "shop-orders") == {None: (70, 140), "by_day": (70, 140)}
