"""What a deploy leaves behind: capacity of a table that nothing scales any longer, and floors that a scaler has set."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Plan, Units
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import EventOutcome, success
from tests.memory_aws.deploys import ask, custom_resource_event, role_for_deploys
from tests.memory_aws.stage import PLAN, WITH_WINDOW, Stage

OPEN = Bounds(140, 400)


@pytest.fixture
def orders(stage: Stage) -> TargetName:
    """A table with a window that is always open, and a function for deploys that may do everything."""
    stage.account.roles["deployment"] = role_for_deploys()
    return stage.table("orders", WITH_WINDOW, units=(9, 140), floor=140)


def _ask(stage: Stage, kind: str, request: str, properties: dict[str, Any], old: Any = None) -> EventOutcome:
    return ask(stage.account, custom_resource_event(kind, request, properties, old))


@pytest.mark.parametrize(
    ("consumed", "left", "why"),
    [
        pytest.param(0, Units(7, 12), "the window's capacity would be kept for ever", id="idle"),
        pytest.param(50, Units(7, 72), "50 units a second at 70 %", id="some-traffic"),
        pytest.param(98, Units(7, 140), "98 units a second at 70 %", id="all-is-needed"),
    ],
)
def test_capacity_of_an_open_window_goes_back_to_what_base_floor_and_traffic_need(
    stage: Stage, orders: TargetName, consumed: int, left: Units, why: str
) -> None:
    """6: a retained table would keep the window's capacity for ever."""
    stage.consume(orders, consumed)
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json()}
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", properties)
    assert answer == success(f"lowered table to {left.read} RCU and {left.write} WCU")
    assert stage.capacity("orders") == left, why


@pytest.mark.parametrize(
    "status", ["ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
)
@pytest.mark.usefixtures("orders")
def test_failed_deploy_leaves_the_capacity_that_the_table_had_before(stage: Stage, status: str) -> None:
    """The table may be somebody's who had 140 units before the deploy that was to manage it."""
    stage.account.stack_status = lambda: status
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json()}
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", properties)
    assert answer == success(
        "no capacity was lowered; table of orders stays at 9 RCU and 140 WCU, which is 2 RCU and 128 WCU or 2.00 USD a "
        "day (us-east-1) more than needed: the deploy was rolled back; lower it with aws dynamodb update-table"
    )
    assert stage.capacity("orders") == Units(9, 140)


def test_capacity_stays_where_cloudwatch_has_no_metrics(stage: Stage, orders: TargetName) -> None:
    """An idle table has zeros, so nothing is known of one without datapoints."""
    stage.consume(orders, 98)
    stage.account.lacks_metrics = True
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json()}
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", properties)
    assert answer == success(
        "no capacity was lowered; table of orders stays at 9 RCU and 140 WCU, as CloudWatch has no metrics of its "
        "traffic; lower it with aws dynamodb update-table if that is more than needed"
    )
    assert stage.capacity("orders") == Units(9, 140)


@pytest.mark.parametrize(("percent", "left"), [(40, 100), (90, 58)], ids=["more-room", "less-room"])
def test_room_that_is_declared_stays_and_is_never_less_than_that_of_70_percent(
    stage: Stage, orders: TargetName, percent: int, left: int
) -> None:
    stage.consume(orders, 40)
    write = Capacity.autoscaled(min_capacity=12, max_capacity=400, target_utilization_percent=percent)
    plan = replace(WITH_WINDOW, write=write)
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": "orders", "Plan": plan.to_json()})
    assert answer == success(f"lowered table to 7 RCU and {left} WCU")


def test_capacity_that_cannot_be_lowered_is_told_with_its_cost(stage: Stage, orders: TargetName) -> None:
    """6: the day's decreases are used."""
    for units in (145, 144, 143, 142, 141):
        stage.provision(orders.table, Units(9, units))
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json()}
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", properties)
    assert answer.ok
    start = "no capacity was lowered; table of orders stays at 9 RCU and 141 WCU, which is 2 RCU and 129 WCU or "
    assert answer.reason.startswith(f"{start}2.02 USD a day (us-east-1) more than needed: Subscriber limit exceeded: ")
    assert answer.reason.endswith("; lower it with aws dynamodb update-table")


def _floors(stage: Stage, plan: Plan = WITH_WINDOW, table: str = "orders", *, is_scaled: bool) -> dict[str, Any]:
    properties = {"TableName": table, "Plan": plan.to_json()}
    return properties | ({"ScalerPlan": stage.parameter(table)} if is_scaled else {})


def _scaled(stage: Stage) -> dict[str, Any]:
    return {
        "TableName": "orders",
        "Plan": PLAN.to_json(),
        "Held": WITH_WINDOW.to_json(),
        "Scaler": "arn:of:the:scaler",
        "Parameter": stage.parameter("orders"),
    }


@pytest.mark.parametrize("base", [12, 30, 5], ids=["same-base", "raised-base", "lowered-base"])
def test_floors_are_the_plans_when_windows_are_handed_back_inside_an_open_window(
    stage: Stage, orders: TargetName, base: int
) -> None:
    """18: the scaler goes and scheduled actions take over, in one deploy, which may change the plan as well."""
    plan = replace(WITH_WINDOW, write=Capacity.autoscaled(min_capacity=base, max_capacity=500))
    # CloudFormation's order: first it registers the target with its base floor
    stage.register(orders, base, 500)
    before, after = _floors(stage, is_scaled=True), _floors(stage, plan, is_scaled=False)
    assert _ask(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    assert stage.bounds(orders) == Bounds(140, 500)
    stage.run("orders")
    assert stage.bounds(orders) == Bounds(140, 500), "the scaler still runs, with a plan that is no longer the table's"
    # then it cleans up
    answer = _ask(stage, deployment.SCALED_TYPE, "Delete", _scaled(stage))
    assert answer.reason == "nothing to undo: the table's floors are set by its own plan again"
    assert stage.bounds(orders) == Bounds(140, 500)


def test_rolled_back_deploy_leaves_the_table_with_its_scaler(stage: Stage, orders: TargetName) -> None:
    """18: the plan was marked as released, and CloudFormation does not touch it in a rollback."""
    before, after = (_floors(stage, is_scaled=is_scaled) for is_scaled in (True, False))
    assert _ask(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    assert json.loads(stage.account.parameters[stage.parameter("orders")])["released"] is True
    assert _ask(stage, deployment.FLOORS_TYPE, "Update", before, after).ok
    stage.register(orders, 12, 400)
    stage.run("orders")
    assert stage.bounds(orders) == OPEN


def test_scaler_that_goes_alone_leaves_floors_without_the_windows_it_held(stage: Stage, orders: TargetName) -> None:
    """18: nothing would close them."""
    assert _ask(stage, deployment.SCALED_TYPE, "Delete", _scaled(stage)) == success("table write to 12..400")
    assert stage.bounds(orders) == Bounds(12, 400)


def test_run_between_the_deletions_of_scaler_and_plan_does_not_open_the_window_again(
    stage: Stage, orders: TargetName
) -> None:
    """CloudFormation deletes the plan's parameter only after the resource that lowers the floors."""
    # CloudFormation and Lambda may send a request again
    for bounds in (OPEN, Bounds(12, 400), OPEN):
        stage.register(orders, bounds.min, bounds.max)
        assert _ask(stage, deployment.SCALED_TYPE, "Delete", _scaled(stage)).ok
        stage.run("orders")
        assert stage.bounds(orders) == Bounds(12, 400)
    assert _ask(stage, deployment.SCALED_TYPE, "Create", _scaled(stage)).ok
    stage.run("orders")
    assert stage.bounds(orders) == OPEN


def test_replaced_table_stays_with_its_scaler_until_its_plan_is_deleted(stage: Stage, orders: TargetName) -> None:
    """A rollback may need the old table again, and does not reach the resource that would take a note back."""
    stage.table("successor", units=(9, 140))
    before, after = _floors(stage, is_scaled=True), _floors(stage, table="successor", is_scaled=False)
    assert _ask(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    stage.register(orders, 12, 400)
    stage.run("orders")
    assert stage.bounds(orders) == OPEN
