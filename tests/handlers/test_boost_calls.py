"""Calls of the coordinator: whom AWS authenticated, and requests and events that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from highwater.core.boosts import Caller
from highwater.handlers.coordinator.call import Call, RefusedError, read_boost_event, read_request

ROOT = "arn:aws:iam::123456789012:root"
FIX = "assume a role that has grant_boost"
ONLY = "only roles and users may boost, and the caller is"
ARN = "arn:aws:sts::123456789012:assumed-role/Loader/root"


def _request(body: object, arn: str | None = ARN, method: str = "POST") -> dict[str, Any]:
    authorizer = {} if arn is None else {"authorizer": {"iam": {"userArn": arn}}}
    return {"requestContext": {"http": {"method": method}, **authorizer}, "body": body}


def test_caller_is_whom_aws_authenticated() -> None:
    call = read_request(_request('{"do": "renew", "id": "x"}'))
    assert (call.caller, call.action, call.document) == (
        Caller("123456789012:role/Loader", "root"),
        "renew",
        {"id": "x"},
    )
    time = "2027-03-04T05:06:07Z"
    event = {"source": "acme.loader", "id": "0-1-2", "time": time, "detail": {"table": "orders", "sent": "2099-01-01"}}
    told = read_boost_event(event)
    assert (told.caller, told.action, told.document) == (
        Caller("events/acme.loader"),
        "begin",
        {"id": "0-1-2", "table": "orders", "sent": time},
    )


@pytest.mark.parametrize(
    ("read", "status", "message"),
    [
        (lambda: read_request(_request("{}", None)), 403, f"{ONLY} not authenticated; {FIX}"),
        (lambda: read_request(_request("{}", ROOT)), 403, f"{ONLY} {ROOT}; {FIX}"),
        (lambda: read_request(_request("{}", method="GET")), 405, "the method is GET; allowed: POST"),
        (lambda: read_request(_request("[1]")), 400, "the body is no JSON object"),
        (lambda: read_request(_request("{")), 400, "the body is no JSON"),
        (lambda: read_request(_request("[" * 9_999)), 400, "the body is no JSON"),
        (lambda: read_request(_request("x" * 10_001)), 413, "the body has 10,001 characters; allowed: 10,000"),
        (lambda: read_request(_request("_", ARN) | {"isBase64Encoded": True}), 400, "the body is no JSON"),
        (lambda: read_boost_event({"source": "a", "detail": "x"}), 400, "boost: detail is no JSON object"),
    ],
)
def test_request_that_makes_no_sense_is_refused(read: Callable[[], Call], status: int, message: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        read()
    assert (refusal.value.status, str(refusal.value)) == (status, message)
