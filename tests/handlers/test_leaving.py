"""What a deploy leaves behind: capacity of a table that nothing scales any longer, and floors that a scaler has set."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.names import TargetName, plan_parameter
from highwater.handlers import deployment
from highwater.handlers.cloudformation import Outcome
from highwater.handlers.patience import Patience
from tests.handlers.serving import marks_event
from tests.handlers.stage import MINUTE, Stage

ALWAYS = Window.daily("always", start="02:00", end="02:00", timezone="UTC", write_min=140, lead=timedelta(0))
READ, WRITE = (
    Capacity.autoscaled(min_capacity=7, max_capacity=900),
    Capacity.autoscaled(min_capacity=12, max_capacity=400),
)
WITH_WINDOW = Plan(read=READ, write=WRITE, windows=(ALWAYS,))
SCALER = "scaler"


def _serve(stage: Stage, kind: str, request: str, properties: dict[str, Any], old: Any = None) -> Outcome:
    answers: list[Outcome] = []
    served = deployment.Deployment(answer=lambda _event, outcome: answers.append(outcome), invoke=lambda *_: None)
    event = marks_event(request, "unused", {}) | {"ResourceType": kind, "LogicalResourceId": "Any"}
    event |= {"ResourceProperties": properties} | ({} if old is None else {"OldResourceProperties": old})

    def sleep(seconds: float) -> None:
        stage.cloud.advance(timedelta(seconds=seconds))

    served.serve(event, Patience(lambda: 900.0, sleep))
    (answer,) = answers
    return answer


def _write_name(table: str) -> TargetName:
    return TargetName(table, None, Dimension.WRITE)


def test_capacity_of_an_open_window_goes_back_to_the_base_floor(stage: Stage) -> None:
    """6: a retained table would keep the window's capacity for ever."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    answer = _serve(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": table, "Plan": WITH_WINDOW.to_json()})
    assert (answer.ok, answer.reason) == (True, "lowered table to 7 RCU and 12 WCU")
    assert stage.capacity(table) == (7, 12)


def test_capacity_that_traffic_needs_stays(stage: Stage) -> None:
    """6: sixty items of 98 units in a minute are 98 units a second."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    stage.write(table, 60)
    stage.cloud.advance(4 * MINUTE)
    answer = _serve(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": table, "Plan": WITH_WINDOW.to_json()})
    assert answer.ok
    # 98 units a second at 70 %
    assert stage.capacity(table) == (7, 140)


def test_capacity_that_cannot_be_lowered_is_told_with_its_cost(stage: Stage) -> None:
    """6: the day's decreases are used."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    dynamodb = stage.client("dynamodb")
    for units in (145, 144, 143, 142, 141):
        dynamodb.update_table(
            TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 9, "WriteCapacityUnits": units}
        )
    answer = _serve(stage, deployment.AFTERMATH_TYPE, "Delete", {"TableName": table, "Plan": WITH_WINDOW.to_json()})
    assert answer.ok
    start = f"no capacity was lowered; table of {table} stays at 9 RCU and 141 WCU, which is 2 RCU and 129 WCU or "
    assert answer.reason.startswith(f"{start}2.02 USD a day (us-east-1) more than needed: Subscriber limit exceeded: ")
    assert answer.reason.endswith("; lower it with aws dynamodb update-table")


def _parameter(table: str) -> str:
    return plan_parameter(SCALER, table)


def _floors_properties(table: str, plan: Plan, *, scaled: bool) -> dict[str, Any]:
    properties = {"TableName": table, "Plan": plan.to_json()}
    return properties | ({"ScalerPlan": _parameter(table)} if scaled else {})


def _scaled_properties(table: str, plan: Plan) -> dict[str, Any]:
    return {
        "TableName": table,
        "Plan": plan.without_windows().to_json(),
        "Held": plan.to_json(),
        "Scaler": "arn:of:the:scaler",
        "Parameter": _parameter(table),
    }


@pytest.mark.parametrize("base", [12, 30, 5], ids=["same-base", "raised-base", "lowered-base"])
def test_floors_are_the_plans_when_windows_are_handed_back_inside_an_open_window(stage: Stage, base: int) -> None:
    """18: the scaler goes and scheduled actions take over, in one deploy, which may change the plan as well."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    stage.register(_write_name(table), 140, 400)
    plan = Plan(read=READ, write=Capacity.autoscaled(min_capacity=base, max_capacity=500), windows=(ALWAYS,))
    # CloudFormation's order: first it registers the target with its base floor
    stage.register(_write_name(table), base, 500)
    before, after = _floors_properties(table, WITH_WINDOW, scaled=True), _floors_properties(table, plan, scaled=False)
    assert _serve(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    assert stage.bounds(table) == (140, 500)
    stage.run(table)
    assert stage.bounds(table) == (140, 500), "the scaler still runs, with a plan that is no longer the table's"
    # then it cleans up
    answer = _serve(stage, deployment.SCALED_TYPE, "Delete", _scaled_properties(table, WITH_WINDOW))
    assert answer.reason == "nothing to undo: the table's floors are set by its own plan again"
    assert stage.bounds(table) == (140, 500)


def test_rolled_back_deploy_leaves_the_table_with_its_scaler(stage: Stage) -> None:
    """18: the plan was marked as released, and CloudFormation does not touch it in a rollback."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    before, after = (_floors_properties(table, WITH_WINDOW, scaled=scaled) for scaled in (True, False))
    assert _serve(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    stored = stage.client("ssm").get_parameter(Name=_parameter(table))["Parameter"]["Value"]
    assert json.loads(stored)["released"] is True
    assert _serve(stage, deployment.FLOORS_TYPE, "Update", before, after).ok
    stage.register(_write_name(table), 12, 400)
    stage.run(table)
    assert stage.bounds(table) == (140, 400)


def test_scaler_that_goes_alone_leaves_the_floors_without_the_windows_that_it_held(stage: Stage) -> None:
    """18: nothing would close them."""
    table = stage.table(WITH_WINDOW, units=(9, 140))
    stage.register(_write_name(table), 140, 400)
    answer = _serve(stage, deployment.SCALED_TYPE, "Delete", _scaled_properties(table, WITH_WINDOW))
    assert (answer.ok, answer.reason) == (True, "table write to 12..400")
    assert stage.bounds(table) == (12, 400)


def test_table_that_is_replaced_stays_with_its_scaler_until_its_plan_is_deleted(stage: Stage) -> None:
    """A rollback may need the old table again, and does not reach the resource that would take a note back."""
    table, successor = stage.table(WITH_WINDOW, units=(9, 140)), stage.table(units=(9, 140))
    before = _floors_properties(table, WITH_WINDOW, scaled=True)
    after = _floors_properties(successor, WITH_WINDOW, scaled=False)
    assert _serve(stage, deployment.FLOORS_TYPE, "Update", after, before).ok
    stage.register(_write_name(table), 12, 400)
    stage.run(table)
    assert stage.bounds(table) == (140, 400)
