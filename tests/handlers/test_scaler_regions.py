"""One scaler for tables of several regions, its deploy event, and windows that it holds alone."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config

from highwater.aws.region import AwsRegion, Clients
from highwater.core import Dimension, Plan, Window
from highwater.core.names import TargetName
from highwater.core.scaler.attention import is_full_tick, is_other_scalers_tick
from highwater.core.scaler.tagged_plans import FINDER_TAG
from highwater.handlers import deployment
from highwater.handlers.patience import Patience
from highwater.handlers.scaler.run import Options
from tests.handlers.serving import marks_event
from tests.handlers.stage import MINUTE, PLAN, Stage

pytestmark = pytest.mark.xdist_group("cloud-scaler")


@pytest.fixture
def dublin(stage: Stage) -> Iterator[Stage]:
    made = stage.elsewhere("eu-west-1")
    yield made
    made.forget()


def test_tables_of_two_regions_are_scaled_by_one_run_each_where_it_is(stage: Stage, dublin: Stage) -> None:
    here, there = stage.table(), dublin.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(here, 20)
    dublin.write(there, 30)
    stage.cloud.advance(4 * MINUTE)
    answer = stage.run(here, f"eu-west-1/{there}")
    assert (stage.bounds(here), dublin.bounds(there)) == ((49, 400), (73, 400))
    assert [(told["table"], told["granted"]) for told in answer.decisions] == [
        (here, 49),
        (f"eu-west-1/{there}", 73),
    ]
    assert (answer.counts["Tables"], answer.counts["TargetsDue"]) == (2, 4)


def test_tables_of_one_name_in_two_regions_are_two(stage: Stage, dublin: Stage) -> None:
    table = stage.table()
    dublin.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 12},
    )
    dublin.made.append(table)
    dublin.store(table, json.dumps({"mode": "floor", "plan": PLAN.to_document()}))
    for one in (stage, dublin):
        one.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    stage.run(f"eu-west-1/{table}")
    assert (stage.bounds(table), dublin.bounds(table)) == ((2, 400), (12, 400))


def _unreachable(stage: Stage, region: str) -> AwsRegion:
    """A region at whose endpoint nothing listens."""
    make: Any = boto3.client
    arguments = stage.cloud.client_arguments() | {"endpoint_url": "http://127.0.0.1:9", "region_name": region}
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    services = ("dynamodb", "application-autoscaling", "cloudwatch")
    return AwsRegion(region, Clients(*(make(service, **arguments, config=once) for service in services)))


def test_region_that_does_not_answer_touches_no_other_and_its_tables_are_tried_again(
    stage: Stage, dublin: Stage
) -> None:
    here, there = stage.table(), dublin.table()
    stage.register(TargetName(here, None, Dimension.WRITE), 2, 400)
    scaler = stage.scaler(lambda region: AwsRegion() if region is None else _unreachable(stage, region))
    answer = stage.run(here, f"eu-west-1/{there}", scaler=scaler)
    assert stage.bounds(here) == (12, 400)
    assert list(answer.failed) == [f"eu-west-1/{there}"]
    assert answer.failed[f"eu-west-1/{there}"].startswith("EndpointConnectionError: ")
    assert [event["tables"] for event in stage.handed_on] == [[f"eu-west-1/{there}"]]


def test_window_that_the_scaler_holds_opens_and_closes_in_its_minute(stage: Stage) -> None:
    now = stage.now()
    opens = (now + 10 * MINUTE).replace(second=0, microsecond=0)
    closes = opens + 30 * MINUTE
    plan = Plan(
        read=PLAN.read,
        write=PLAN.write,
        windows=(
            Window.once(
                "load",
                start=f"{opens + 5 * MINUTE:%Y-%m-%dT%H:%M}",
                end=f"{closes:%Y-%m-%dT%H:%M}",
                timezone="UTC",
                write_min=333,
            ),
        ),
    )
    table = stage.table(plan)

    def tick(minute: Any) -> Any:
        if minute > stage.now():
            stage.cloud.advance(minute - stage.now() + timedelta(seconds=2))
        return stage.serve({"highwater": "tick", "time": minute.isoformat()})

    assert tick(opens).counts.get("FloorsSet") == 1, "whichever minute the table's turn comes in"
    assert stage.bounds(table) == (333, 400)
    quiet = next(opens + n * MINUTE for n in range(1, 9) if not is_full_tick(table, int(opens.timestamp()) // 60 + n))
    assert tick(quiet).counts["TargetsDue"] == 0
    # what comes from a plan goes with it: data are there, and nothing was asked for
    assert tick(closes).counts.get("FloorsSet") == 1
    assert stage.bounds(table) == (12, 400)


def _served(request: str, properties: dict[str, Any]) -> tuple[Any, list[Any]]:
    """What CloudFormation is answered, and whom the function invoked with what."""
    answers: list[Any] = []
    invoked: list[Any] = []
    served = deployment.Deployment(
        answer=lambda _event, outcome: answers.append(outcome),
        invoke=lambda function, event: invoked.append((function, event)),
    )
    event = marks_event(request, "unused", {}) | {"ResourceType": deployment.SCALED_TYPE}
    served.serve(event | {"LogicalResourceId": "Scaled", "ResourceProperties": properties}, Patience(lambda: 60.0))
    return answers[0], invoked


@pytest.mark.parametrize(("region", "label"), [(None, "orders"), ("eu-west-1", "eu-west-1/orders")])
def test_deploy_has_the_scaler_look_at_the_table(region: str | None, label: str) -> None:
    properties = {"TableName": "orders", "Plan": PLAN.to_json(), "Scaler": "arn:of:the:scaler"}
    properties |= {} if region is None else {"Region": region}
    for request in ("Create", "Update"):
        answer, invoked = _served(request, properties)
        assert (answer.ok, answer.reason) == (True, f"the scaler looks at {label}")
        assert invoked == [("arn:of:the:scaler", {"highwater": "tables", "tables": [label]})]


def test_scaler_that_goes_leaves_the_floors_of_the_plan_in_each_region(stage: Stage, dublin: Stage) -> None:
    table = dublin.table()
    dublin.register(TargetName(table, None, Dimension.WRITE), 88, 400)
    properties = {"TableName": table, "Plan": PLAN.to_json(), "Scaler": "arn:of:the:scaler", "Region": "eu-west-1"}
    answer, invoked = _served("Delete", properties)
    assert (answer.ok, answer.reason) == (True, "table write to 12..400")
    assert invoked == []
    assert dublin.bounds(table) == (12, 400)
    assert stage.now()


def test_tags_choose_tables_of_other_regions(stage: Stage, dublin: Stage) -> None:
    table = dublin.table(plan=None)
    dublin.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    dublin.tag(table, managed="floor", read_min="7", read_max="900", write_min="21", write_max="500")
    options = Options(sees_tags=True, regions=("eu-west-1", "ap-south-1"))
    stage.run(f"eu-west-1/{table}", scaler=stage.scaler(options=options))
    assert dublin.bounds(table) == (21, 500)


def _make_function(stage: Stage, name: str, **tags: str) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "")
    stage.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role="arn:aws:iam::000000000000:role/scaler",
        Code={"ZipFile": code.getvalue()},
        Tags=tags,
    )


def test_other_scalers_of_tagged_tables_are_told_where_both_search(stage: Stage, dublin: Stage) -> None:
    """Tagged tables have no alarm that would name its scaler."""
    finder = {FINDER_TAG: "some-scaler"}
    made = [(stage, "mine", finder), (stage, "theirs", finder), (stage, "shop", {"highwater:managed": "floor"})]
    made.append((dublin, "mine", finder))
    for where, name, tags in made:
        _make_function(where, name, **tags)
    options = Options(function="mine", sees_tags=True, regions=("eu-west-1", "ap-south-1"))
    minutes = (stage.now() + n * MINUTE for n in range(60))
    at = next(at for at in minutes if is_other_scalers_tick(options.name, int(at.timestamp()) // 60))
    stage.cloud.advance(at - stage.now())
    try:
        answer = stage.serve({"highwater": "tick", "time": at.isoformat()}, scaler=stage.scaler(options=options))
    finally:
        for where, name, _ in made:
            where.client("lambda").delete_function(FunctionName=name)
    remedy = "pass tagged= to one of the two, or give them different regions"
    assert answer.notes == [
        "tagged tables of the scaler's region: another scaler manages them too, with the function theirs; " + remedy,
        "tagged tables of eu-west-1: another scaler manages them too, with the function mine; " + remedy,
    ]
