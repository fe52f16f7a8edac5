"""Custom resources on an account in memory: indexes that are being built, tables out of reach, late permissions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Dimension, Plan, Units, Window
from highwater.core.names import TargetName
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import failure, success
from highwater_lab.services.timing import Timing
from tests.memory_aws.account import Account
from tests.memory_aws.deploys import HOUR, ask, refuse_two_invocations, role_for_deploys
from tests.memory_aws.deploys import custom_resource_event as _event
from tests.memory_aws.tables import BUILD_SECONDS, Table, refused

_PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=3_000, max_capacity=9_000),
    windows=(Window.daily("load", start="05:00", end="06:00", timezone="UTC", read_min=70, write_min=3_400),),
).with_indexes(["by_day"])
_OUT_OF_REACH = "table orders is {status}, so its capacity and marks cannot be changed"
_NOT_SCALED = "if nothing else scales it, lower it with aws dynamodb update-table when less is enough"
_KEPT = (
    "orders keeps its capacity: table 9 RCU and 3000 WCU, index 'by_day' 1 RCU and 1 WCU, 46.85 USD a day (us-east-1); "
    f"{_NOT_SCALED}"
)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """A table of 3,000 writes a second whose new index is being built, with 1 unit."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "HighwaterDeployment")
    made = Account(int(datetime(2027, 3, 4, 9, 6, 7, tzinfo=UTC).timestamp()))
    made.roles["deployment"] = role_for_deploys()
    made.tables["orders"] = Table.provisioned("orders", {None: Units(9, 3_000), "by_day": Units(1, 1)})
    made.tables["orders"].built["by_day"] = made.now + BUILD_SECONDS
    return made


def _floors() -> dict[str, Any]:
    return {"TableName": "orders", "Plan": _PLAN.to_json(), "Actions": "5b1f"}


def _marks(units: int) -> dict[str, Any]:
    wanted = [{"index": index, "read": 9, "write": units} for index in (None, "by_day")]
    return {"TableName": "orders", "Marks": json.dumps(wanted)}


def test_index_that_is_being_built_gets_the_capacity_of_its_floor_meanwhile(account: Account) -> None:
    """2: with 1 unit, a build takes days and may throttle the writes of the table."""
    account.register("orders", _PLAN)
    assert ask(account, _event(deployment.FLOORS_TYPE, "Create", _floors())).ok
    index = account.tables["orders"].resources["by_day"]
    assert index.units[Dimension.WRITE] == 1, "DynamoDB refuses changes at first"
    account.serve_waiting()
    account.serve_waiting()
    index.settle(account.now)
    assert account.tables["orders"].is_building("by_day", account.now)
    assert index.units == {Dimension.READ: 7, Dimension.WRITE: 3_000}


@pytest.mark.parametrize(("of_table", "of_index"), [(5_200, 5_200), (12_000, 9_000)], ids=["within", "ceiling"])
def test_index_is_built_with_the_write_capacity_that_its_table_has_by_then(
    account: Account, of_table: int, of_index: int
) -> None:
    """2: each write of the table is one of the index too, so the floor is too little for a busy table."""
    account.tables["orders"].resources[None].units[Dimension.WRITE] = of_table
    for target in _PLAN.targets():
        bounds = Bounds(int(target.capacity.min_capacity), 12_000 if target.index is None else 9_000)
        account.autoscaling.register(TargetName("orders", *target.key), bounds, account.now)
    plan = json.loads(_PLAN.to_json())
    plan["write"]["max"] = 12_000
    plan["indexes"][0]["write"] = json.loads(_PLAN.to_json())["write"]
    answer = ask(account, _event(deployment.FLOORS_TYPE, "Create", _floors() | {"Plan": json.dumps(plan)}))
    assert answer.ok
    # DynamoDB refuses it at first
    account.serve_waiting()
    account.serve_waiting()
    index = account.tables["orders"].resources["by_day"]
    index.settle(account.now)
    assert account.tables["orders"].is_building("by_day", account.now)
    assert index.units == {Dimension.READ: 7, Dimension.WRITE: of_index}


@pytest.mark.parametrize("request_type", ["Update", "Delete"])
def test_waiting_mark_is_not_raised_once_a_deploy_has_taken_it_back(account: Account, request_type: str) -> None:
    """2: a mark is charged when it is raised, and never falls."""
    typo, meant = _marks(30_000), _marks(4_000)
    answer = ask(account, _event(deployment.MARKS_TYPE, "Create", typo))
    assert answer.ok
    assert answer.reason.endswith("marks that are left are raised when indexes are no longer being built: 'by_day'")
    account.advance(1_800)
    changed = _event(deployment.MARKS_TYPE, request_type, meant, typo)
    assert ask(account, changed).ok
    while account.waiting:
        account.serve_waiting()
    account.advance(3_600)
    index = account.tables["orders"].resources["by_day"]
    index.settle(account.now)
    assert index.mark[Dimension.WRITE] == (4_000 if request_type == "Update" else 1)
    assert index.granted[Dimension.WRITE] == 1
    assert account.tables["orders"].tags == {}


def _finish(account: Account) -> None:
    """Serve what was handed on, until nothing is left to do and every change is in force."""
    while account.waiting:
        account.serve_waiting()
    account.advance(HOUR)
    for control in account.tables["orders"].resources.values():
        control.settle(account.now)


def test_marks_that_wait_for_an_index_are_raised_when_it_is_built(account: Account) -> None:
    """2: CloudFormation waits an hour for an answer, and then rolls the new index back."""
    table = account.tables["orders"]
    answer = ask(account, _event(deployment.MARKS_TYPE, "Create", _marks(30_000)))
    # while an index is built, DynamoDB refuses to change the table's capacity; its warm throughput can be raised
    left = "marks that are left are raised when indexes are no longer being built: 'by_day'"
    assert answer == success(f"raised the table to 9 RCU and 30000 WCU; {left}")
    assert table.is_building("by_day", account.now)
    _finish(account)
    assert [control.mark[Dimension.WRITE] for control in table.resources.values()] == [30_000, 30_000]
    assert [control.units[Dimension.WRITE] for control in table.resources.values()] == [3_000, 1]
    assert table.tags == {}


def test_floors_that_wait_for_an_index_are_reached_when_it_is_built(account: Account) -> None:
    """2: the deploy is answered at once."""
    account.register("orders", _PLAN, Bounds(1, 9_000))
    began = account.now
    assert ask(account, _event(deployment.FLOORS_TYPE, "Create", _floors())) == success(
        "capacity follows when index 'by_day' is built: index 'by_day' read, index 'by_day' write"
    )
    assert account.now - began < 60
    _finish(account)
    units = [control.units for control in account.tables["orders"].resources.values()]
    assert units == [{Dimension.READ: 9, Dimension.WRITE: 3_000}, {Dimension.READ: 7, Dimension.WRITE: 3_000}]


@pytest.mark.parametrize("status", ["INACCESSIBLE_ENCRYPTION_CREDENTIALS", "ARCHIVED"])
@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (deployment.MARKS_TYPE, f"the marks are left as they are: {_OUT_OF_REACH}"),
        (deployment.AFTERMATH_TYPE, _KEPT),
        (deployment.FLOORS_TYPE, "nothing to undo: the table keeps its capacity"),
    ],
)
def test_deletion_does_not_wait_for_a_table_out_of_reach(account: Account, kind: str, answer: str, status: str) -> None:
    """4: nobody may ever restore the key or the table."""
    account.tables["orders"].lasting_status = status
    began = account.now
    properties = _marks(4_000) | _floors()
    assert ask(account, _event(kind, "Delete", properties)) == success(answer.format(status=status))
    assert account.waiting == []
    assert account.now - began < 60


def test_raise_of_a_table_out_of_reach_fails_at_once(account: Account) -> None:
    account.tables["orders"].lasting_status = "ARCHIVED"
    answer = ask(account, _event(deployment.MARKS_TYPE, "Create", _marks(4_000)))
    assert answer == failure(_OUT_OF_REACH.format(status="ARCHIVED"))


@pytest.mark.parametrize("kind", [deployment.FLOORS_TYPE, deployment.MARKS_TYPE, deployment.SCALED_TYPE])
def test_permission_to_invoke_is_waited_for(account: Account, kind: str) -> None:
    """12: the deploy that adds a scaler extends the role seconds before it is used."""
    denied = refused("AccessDeniedException", "not authorized to perform: lambda:InvokeFunction")
    invoked = refuse_two_invocations(account, denied)
    account.register("orders", _PLAN, Bounds(1, 9_000))
    properties = _marks(4_000) | _floors() | {"Scaler": "arn:of:the:scaler"}
    assert ask(account, _event(kind, "Create", properties)).ok
    assert len(invoked) == 3
    assert len(account.waiting) == 1


def test_capacity_that_cannot_be_read_stays(account: Account) -> None:
    account.tables["orders"].built.clear()
    account.roles["deployment"] = role_for_deploys("dynamodb:DescribeTable")
    answer = ask(account, _event(deployment.AFTERMATH_TYPE, "Delete", _floors()))
    assert answer.ok
    assert answer.reason.startswith(
        "orders keeps its capacity, which cannot be read: not authorized to perform: dynamodb:DescribeTable"
    )
    assert answer.reason.endswith(f"; {_NOT_SCALED}")


def test_deletion_waits_until_dynamodb_would_delete_the_table(account: Account) -> None:
    """A table whose warm throughput is being raised, or whose index is being built, cannot be deleted."""
    table = account.tables["orders"]
    table.built["by_day"] = account.now + 60
    table.resources[None].warm_up(account.now, {Dimension.READ: 9, Dimension.WRITE: 30_000}, Timing().warming_pace)
    assert ask(account, _event(deployment.AFTERMATH_TYPE, "Delete", _floors())).ok
    assert not table.is_building("by_day", account.now)
    assert not table.resources[None].is_warming(account.now)


def test_deletion_waits_for_an_index_no_longer_than_its_invocation(account: Account) -> None:
    """It may take hours to build, and the table may be one that is retained."""
    began = account.now
    answer = ask(account, _event(deployment.AFTERMATH_TYPE, "Delete", _floors()))
    assert answer == success(_KEPT)
    assert account.now - began <= 900


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"windows": [_PLAN.to_document()["windows"][0] | {"timezone": "EST"}]}, "ValueError: unknown timezone 'EST'"),
        ({"indexes": [{"name": []}]}, "TypeError: unhashable type: 'list'"),
    ],
    ids=["zone", "index"],
)
def test_deletion_never_fails_for_a_plan_that_cannot_be_timed(
    account: Account, change: dict[str, Any], why: str
) -> None:
    """20: the plan was written by another version, or by hand."""
    plan = json.dumps(_PLAN.to_document() | change)
    answer = ask(account, _event(deployment.SCALED_TYPE, "Delete", _floors() | {"Plan": plan}))
    assert answer == success(f"the plan cannot be read, so nothing is changed: {why}")
