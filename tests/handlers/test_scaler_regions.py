"""One scaler for tables of several regions, its deploy event, and windows that it holds alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Bounds, Window
from highwater.core.scaler.attention import is_full_tick, is_other_scalers_tick
from highwater.core.scaler.metrics import ScalerMetric
from highwater.core.scaler.plan import FINDER_TAG
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.waiting import Patience
from highwater.handlers.scaler.run import Options
from tests.memory_aws.deploys import custom_resource_event
from tests.memory_aws.stage import MINUTE, PLAN, WITH_WINDOW, Stage
from tests.memory_aws.wire import no_connection

PLANNED, BY_HAND = Bounds(12, 400), Bounds(2, 400)
DUBLIN = "eu-west-1"


@pytest.fixture
def dublin(stage: Stage) -> Stage:
    return stage.elsewhere(DUBLIN)


def test_tables_of_two_regions_are_scaled_by_one_run_each_where_it_is(stage: Stage, dublin: Stage) -> None:
    here, there = stage.table("here"), dublin.table("there")
    stage.consume(here, 33)
    dublin.consume(there, 49)
    answer = stage.run("here", "eu-west-1/there")
    assert (stage.bounds(here), dublin.bounds(there)) == (Bounds(33, 400), Bounds(49, 400))
    assert [(told["table"], told["granted"]) for told in answer.decisions] == [("here", 33), ("eu-west-1/there", 49)]
    assert (answer.figures["Tables"], answer.figures["TargetsDue"]) == (2, 4)


def test_tables_of_one_name_in_two_regions_are_two(stage: Stage, dublin: Stage) -> None:
    orders = stage.table("orders", floor=2)
    dublin.table("orders", floor=2)
    stage.run("eu-west-1/orders")
    assert (stage.bounds(orders), dublin.bounds(orders)) == (BY_HAND, PLANNED)


def test_region_without_an_answer_touches_no_other_and_its_tables_are_tried_again(stage: Stage, dublin: Stage) -> None:
    here = stage.table("here", floor=2)
    dublin.table("there")
    dublin.wire.fault = no_connection
    answer = stage.run("here", "eu-west-1/there")
    assert stage.bounds(here) == PLANNED
    assert list(answer.failed) == ["eu-west-1/there"]
    assert answer.failed["eu-west-1/there"].startswith("EndpointConnectionError: ")
    assert [event["tables"] for event in stage.handed_on] == [["eu-west-1/there"]]


def test_window_that_the_scaler_holds_opens_and_closes_in_its_minute(stage: Stage) -> None:
    window = Window.daily("load", start="10:35", end="11:00", timezone="UTC", write_min=333)
    orders = stage.table("orders", replace(PLAN, windows=(window,)))
    opens = stage.now().replace(minute=30, second=0)

    def tick(minute: Any) -> Any:
        stage.advance(minute - stage.now() + timedelta(seconds=2))
        return stage.serve({"highwater": "tick", "time": minute.isoformat()})

    assert tick(opens).counts.get(ScalerMetric.FLOORS_SET) == 1, "whichever minute the table's turn comes in"
    assert stage.bounds(orders) == Bounds(333, 400)
    quiet = next(
        opens + n * MINUTE for n in range(1, 9) if not is_full_tick("orders", int(opens.timestamp()) // 60 + n)
    )
    assert tick(quiet).figures["TargetsDue"] == 0
    # what comes from a plan goes with it: data are there, and nothing was asked for
    assert tick(opens + 30 * MINUTE).counts.get(ScalerMetric.FLOORS_SET) == 1
    assert stage.bounds(orders) == PLANNED


def _served(request: str, properties: dict[str, Any], **clients: Any) -> tuple[Any, list[Any]]:
    """What CloudFormation is answered, and whom the function invoked with what."""
    answers: list[Any] = []
    invoked: list[Any] = []
    served = deployment.Deployment(
        answer=lambda _event, outcome: answers.append(outcome),
        invoke=lambda function, event: invoked.append((function, event)),
        **clients,
    )
    served.serve(custom_resource_event(deployment.SCALED_TYPE, request, properties), Patience(lambda: 60.0))
    return answers[0], invoked


@pytest.mark.parametrize(("region", "label"), [(None, "orders"), (DUBLIN, "eu-west-1/orders")])
def test_deploy_has_the_scaler_look_at_the_table(region: str | None, label: str) -> None:
    properties = {"TableName": "orders", "Plan": PLAN.to_json(), "Scaler": "arn:of:the:scaler"}
    properties |= {} if region is None else {"Region": region}
    for request in ("Create", "Update"):
        answer, invoked = _served(request, properties)
        assert (answer.ok, answer.reason) == (True, f"the scaler looks at {label}")
        assert invoked == [("arn:of:the:scaler", {"highwater": "tables", "tables": [label]})]


def _deleted(stage: Stage) -> tuple[bool, str, list[Any]]:
    """Whether the scaler of a table in Dublin could be deleted, why, and whom the function invoked."""
    answer, invoked = _served(
        "Delete",
        {"TableName": "orders", "Plan": PLAN.to_json(), "Scaler": "arn:of:the:scaler", "Region": DUBLIN},
        dynamodb=lambda region: stage.region_of(region).dynamodb,
        autoscaling=lambda region: stage.region_of(region).autoscaling,
    )
    return answer.ok, answer.reason, invoked


def test_scaler_that_goes_leaves_the_floors_of_the_plan_in_each_region(stage: Stage, dublin: Stage) -> None:
    orders = dublin.table("orders", floor=88)
    assert _deleted(stage) == (True, "table write to 12..400", [])
    assert dublin.bounds(orders) == PLANNED


def test_replica_that_became_a_table_of_its_own_has_the_plans_floors_and_its_targets_once_it_left_the_app(
    stage: Stage, dublin: Stage
) -> None:
    """A replica that is disassociated keeps all but its replication; only a deploy tells Highwater that it is gone."""
    orders = dublin.table("orders", WITH_WINDOW)
    stage.run("eu-west-1/orders")
    assert dublin.bounds(orders) == Bounds(140, 400), "until then it is scaled like before"
    del stage.account.parameters[dublin.parameter("orders")]
    assert _deleted(stage) == (True, "table write to 12..400", [])
    dublin.consume(orders, 49)
    stage.run("eu-west-1/orders")
    assert dublin.bounds(orders) == PLANNED, "the scaler has forgotten it, and target tracking goes on"


def test_tags_choose_tables_of_other_regions(stage: Stage, dublin: Stage) -> None:
    orders = dublin.table("orders", plan=None)
    dublin.register(orders, 2, 400)
    tags = {"managed": "floor", "read-min": "7", "read-max": "900", "write-min": "21", "write-max": "500"}
    dublin.account.tables["orders"].tags = {f"highwater:{key}": value for key, value in tags.items()}
    stage.options = Options(sees_tags=True, regions=(DUBLIN, "ap-south-1"))
    stage.run("eu-west-1/orders")
    assert dublin.bounds(orders) == Bounds(21, 500)


def test_other_scalers_of_tagged_tables_are_told_where_both_search(stage: Stage, dublin: Stage) -> None:
    """Tagged tables have no alarm that would name its scaler."""
    finder = {FINDER_TAG: "some-scaler"}
    stage.account.functions = {"mine": finder, "theirs": finder, "shop": {"highwater:managed": "floor"}}
    dublin.account.functions = {"mine": finder}
    stage.options = Options(function="mine", sees_tags=True, regions=(DUBLIN, "ap-south-1"))
    while not is_other_scalers_tick(stage.options.name, stage.account.now // 60):
        stage.advance(MINUTE)
    answer = stage.tick()
    remedy = "pass tagged= to one of the two, or give them different regions"
    assert answer.notes == [
        "tagged tables of the scaler's region: another scaler manages them too, with the function theirs; " + remedy,
        "tagged tables of eu-west-1: another scaler manages them too, with the function mine; " + remedy,
    ]
