"""Calls of the coordinator: whom AWS authenticated, and requests, events and grants that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from highwater.aws.parameters import read_boost_caps
from highwater.core.boosts import BoostCap, Caller
from highwater.handlers.coordinator.coordinator import Call
from highwater.handlers.coordinator.handler import read_boost_event, read_request
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers.boost_world import LOADER, World

ROOT = "arn:aws:iam::123456789012:root"
FIX = "assume a role that has grant_boost or grant_pulse"
ONLY = "only roles and users may boost or pulse, and the caller is"
ARN = "arn:aws:sts::123456789012:assumed-role/Loader/root"


def request_of(body: object, arn: str | None = ARN, method: str = "POST") -> dict[str, Any]:
    authorizer = {} if arn is None else {"authorizer": {"iam": {"userArn": arn}}}
    return {"requestContext": {"http": {"method": method}, **authorizer}, "body": body}


def test_caller_is_whom_aws_authenticated() -> None:
    call = read_request(request_of('{"do": "renew", "id": "x"}'))
    assert call == Call(Caller("123456789012:role/Loader", "root"), "renew", {"id": "x"})
    time = "2027-03-04T05:06:07Z"
    event = {"source": "acme.loader", "id": "0-1-2", "time": time, "detail": {"table": "orders", "sent": "2099-01-01"}}
    begun = Call(Caller("events/acme.loader"), "begin", {"id": "0-1-2", "table": "orders", "sent": time})
    assert read_boost_event(event) == begun


@pytest.mark.parametrize(
    ("read", "status", "message"),
    [
        (lambda: read_request(request_of("{}", None)), 403, f"{ONLY} not authenticated; {FIX}"),
        (lambda: read_request(request_of("{}", ROOT)), 403, f"{ONLY} {ROOT}; {FIX}"),
        (lambda: read_request(request_of("{}", method="GET")), 405, "the method is GET; allowed: POST"),
        (lambda: read_request(request_of("[1]")), 400, "the body is no JSON object"),
        (lambda: read_request(request_of("{")), 400, "the body is no JSON"),
        (lambda: read_request(request_of({"table": "orders"})), 400, "the body is no JSON"),
        (lambda: read_request(request_of("[" * 9_999)), 400, "the body is no JSON"),
        (lambda: read_request(request_of("x" * 10_001)), 413, "the body has 10,001 characters; allowed: 10,000"),
        (lambda: read_request(request_of("_", ARN) | {"isBase64Encoded": True}), 400, "the body is no JSON"),
        (lambda: read_boost_event({"source": "a", "detail": "x"}), 400, "boost: detail is no JSON object"),
    ],
)
def test_request_that_makes_no_sense_is_refused(read: Callable[[], Call], status: int, message: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        read()
    assert (refusal.value.status, str(refusal.value)) == (status, message)


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


@pytest.mark.parametrize("action", ["begin", "renew", "release", "status", "list", "log", "pulse"])
@pytest.mark.parametrize("table", ["\ud800", "orders\n", "o" * 301, "", None])
def test_table_without_a_valid_name_is_refused_before_aws_is_asked(
    world: World, action: str, table: str | None
) -> None:
    status, message = world.refusal(action, table=table)
    shown = "missing" if table is None else repr(table)[:60]
    assert (status, message) == (400, f"boost: table is {shown}; allowed: a name")
    assert world.stage.wire.operations == []
