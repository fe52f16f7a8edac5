"""Events, requests and grants of any shape that reach the coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.aws.parameters import read_boost_caps
from highwater.core.boosts import BoostCap
from highwater.handlers.coordinator.call import Call, RefusedError, read_boost_event, read_request
from tests.handlers.boost_world import LOADER, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    "text",
    ['{"caller": "role/A", "max_read": 1e400, "max_write": 7}', "[" * 8_000, "[]", "{}"],
    ids=["infinity", "nested", "list", "empty"],
)
def test_grant_that_makes_no_sense_does_not_affect_the_others(world: World, text: str) -> None:
    good = f'{{"caller": "{LOADER.name}", "max_read": 0, "max_write": 7}}'
    world.stage.account.parameters |= {"/highwater/boosts/nightly/a": text, "/highwater/boosts/nightly/b": good}
    found = read_boost_caps(world.stage.region_of(None).ssm, "nightly")
    assert found.caps == (BoostCap(caller=LOADER.name, max_read=0, max_write=7),)
    assert [line.partition(": ")[0] for line in found.unreadable] == ["/highwater/boosts/nightly/a"]


@pytest.mark.parametrize(
    "event",
    [
        {"requestContext": None},
        {"requestContext": {"authorizer": None}},
        {"requestContext": {"authorizer": {"iam": []}}},
        {"requestContext": {"authorizer": {"iam": {"userArn": 7}}}},
    ],
)
def test_request_without_a_caller_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as refusal:
        read_request(event | {"body": "{}"})
    assert refusal.value.status == 403


def test_body_of_another_type_is_refused() -> None:
    identity = {"iam": {"userArn": "arn:aws:iam::123456789012:user/ann"}}
    event = {"requestContext": {"authorizer": identity, "http": {"method": "POST"}}, "body": {"table": "orders"}}
    with pytest.raises(RefusedError, match="the body is no JSON"):
        read_request(event)


@pytest.mark.parametrize("hold", [[], {}, 7])
def test_event_with_a_hold_of_another_type_is_refused(world: World, hold: object) -> None:
    detail = {"table": "orders", "write": 1, "minutes": 5, "hold": hold}
    call = read_boost_event({"source": "acme", "id": "0123-4567", "detail": detail})
    with pytest.raises(RefusedError) as refusal:
        world.coordinator().serve(Call(LOADER, call.action, call.document))
    assert (refusal.value.status, str(refusal.value)) == (400, f"boost: hold is {hold!r}; allowed: lease or start")


@pytest.mark.parametrize("action", ["begin", "renew", "release", "status", "list", "log", "pulse"])
@pytest.mark.parametrize("table", ["\ud800", "orders\n", "o" * 301, "", None])
def test_table_that_has_no_name_of_a_table_is_refused_before_aws_is_asked(
    world: World, action: str, table: str | None
) -> None:
    status, message = world.refusal(action, table=table)
    shown = "missing" if table is None else repr(table)[:60]
    assert (status, message) == (400, f"boost: table is {shown}; allowed: a name")
    assert world.stage.wire.operations == []
