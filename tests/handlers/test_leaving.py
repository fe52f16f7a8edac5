"""What a deploy leaves behind: capacity of a table that nothing scales any longer, and floors that a scaler has set."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Plan, Units
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import EventOutcome, success
from tests.memory_aws.deploys import ask, custom_resource_event, role_for_deploys
from tests.memory_aws.stage import PLAN, WITH_WINDOW, Stage
from tests.memory_aws.tables import Table

OPEN = Bounds(140, 400)


@pytest.fixture
def orders(stage: Stage) -> TargetName:
    """A table with a window that is always open, and a function for deploys that may do everything."""
    stage.account.roles["deployment"] = role_for_deploys()
    return stage.table("orders", WITH_WINDOW, units=(9, 140), floor=140)


def _ask(stage: Stage, kind: str, request: str, properties: dict[str, Any], old: Any = None) -> EventOutcome:
    return ask(stage.account, custom_resource_event(kind, request, properties, old))


@pytest.mark.parametrize("consumed", [0, 98], ids=["idle", "busy"])
def test_table_keeps_the_capacity_that_it_had_inside_an_open_window(
    stage: Stage, orders: TargetName, consumed: int
) -> None:
    """What is to scale it next is deployed after that, and is not to begin with throttled requests."""
    stage.consume(orders, consumed)
    properties = {"TableName": "orders", "Plan": WITH_WINDOW.to_json()}
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", properties)
    assert answer == success(
        "orders keeps its capacity: table 9 RCU and 140 WCU, 2.21 USD a day (us-east-1); if nothing else scales it, "
        "lower it with aws dynamodb update-table when less is enough"
    )
    assert stage.capacity("orders") == Units(9, 140)


def test_deletion_of_a_plan_of_a_table_on_demand_says_so(stage: Stage) -> None:
    stage.account.roles["deployment"] = role_for_deploys()
    stage.table("orders", WITH_WINDOW)
    stage.account.tables["orders"].put_on_demand()
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": "orders", "Plan": WITH_WINDOW.to_json()})
    assert answer == success("orders is on demand, and has no capacity to keep")


def test_scaler_that_leaves_with_its_window_open_leaves_the_capacity(stage: Stage, orders: TargetName) -> None:
    """The plan's ceiling without the window is below the capacity, and AWS moves capacity into the bounds at once."""
    low = replace(PLAN, write=Capacity.autoscaled(min_capacity=12, max_capacity=90))
    answer = _ask(stage, deployment.SCALED_TYPE, "Delete", _scaled(stage) | {"Plan": low.to_json()})
    assert answer == success("table write to 12..140")
    assert stage.bounds(orders) == Bounds(12, 140)
    assert stage.capacity("orders") == Units(9, 140)


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


BEGAN = datetime(2027, 3, 4, 5, 0, tzinfo=UTC)
TOLD = (
    "orders was created by this deploy, which failed, and is lowered to one unit, as it may stay: to go on with it, "
    "deploy again with cdk deploy --import-existing-resources; to delete it, turn off its deletion protection"
)


@pytest.mark.parametrize(
    ("status", "operation", "created", "left"),
    [
        pytest.param("ROLLBACK_IN_PROGRESS", "CreationTime", 60, 1, id="first-deploy"),
        pytest.param("UPDATE_ROLLBACK_IN_PROGRESS", "LastUpdatedTime", 60, 1, id="table-that-an-update-added"),
        pytest.param("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "LastUpdatedTime", 60, 1, id="its-cleanup"),
        pytest.param("UPDATE_ROLLBACK_IN_PROGRESS", "LastUpdatedTime", -60, 140, id="table-from-before-the-update"),
        pytest.param("ROLLBACK_IN_PROGRESS", "CreationTime", -60, 140, id="table-from-before-the-stack"),
        pytest.param("DELETE_IN_PROGRESS", "CreationTime", 60, 140, id="deletion-of-the-stack"),
        pytest.param("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "LastUpdatedTime", 60, 140, id="removal-by-a-deploy"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_only_a_table_that_the_failed_operation_created_is_lowered(
    stage: Stage, status: str, operation: str, created: int, left: int
) -> None:
    """It stays with the capacity of an open window, costs 280 USD a day for 18,000 units, and is in no stack."""
    stage.account.stack_status = lambda: status
    stage.account.stack_operation = {operation: BEGAN}
    stage.account.tables["orders"].created = int(BEGAN.timestamp()) + created
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": "orders", "Plan": WITH_WINDOW.to_json()})
    assert answer.ok
    assert stage.capacity("orders").write == left
    assert (answer.reason == TOLD) == (left == 1)


def test_indexes_of_a_table_that_the_failed_operation_created_are_lowered_too(stage: Stage) -> None:
    stage.account.roles["deployment"] = role_for_deploys()
    table = Table.provisioned("orders", {None: Units(9, 140), "by-day": Units(7, 30), "by-name": Units(1, 1)})
    table.created = int(BEGAN.timestamp()) + 60
    stage.account.tables["orders"] = table
    stage.account.stack_status = lambda: "ROLLBACK_IN_PROGRESS"
    stage.account.stack_operation = {"CreationTime": BEGAN}
    assert _ask(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": "orders", "Plan": "{}"}) == success(TOLD)
    described = table.document(stage.account.now)
    indexes = [each["ProvisionedThroughput"]["WriteCapacityUnits"] for each in described["GlobalSecondaryIndexes"]]
    assert (described["ProvisionedThroughput"]["ReadCapacityUnits"], indexes) == (1, [1, 1])


@pytest.mark.usefixtures("orders")
def test_table_whose_stack_cannot_be_read_keeps_its_capacity(stage: Stage) -> None:
    stage.account.roles["deployment"] = role_for_deploys("cloudformation:DescribeStacks")
    stage.account.tables["orders"].created = stage.account.now
    answer = _ask(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": "orders", "Plan": WITH_WINDOW.to_json()})
    assert answer.ok
    assert stage.capacity("orders") == Units(9, 140)
