"""What the function answers, and when it fails so that Lambda tries an event again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highwater.handlers.coordinator.handler import handler
from tests.handlers.test_boost_coordinator import ARN, ROOT

EVENT = {"detail-type": "Highwater Boost", "source": "acme.loader", "id": "0-1-2", "detail": {"table": "orders"}}


def _request(arn: str) -> dict[str, Any]:
    context = {"http": {"method": "POST"}, "authorizer": {"iam": {"userArn": arn}}}
    return {"requestContext": context, "body": '{"do": "list", "table": "orders"}'}


@pytest.fixture(autouse=True)
def nothing_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIGHWATER_SCALER", raising=False)


def test_refusal_is_an_answer_in_json() -> None:
    answer = handler(_request(ROOT), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (
        403,
        {"error": f"only roles and users may boost, and the caller is {ROOT}; assume a role that has grant_boost"},
    )


def test_failure_is_told_a_job_without_its_details() -> None:
    answer = handler(_request(ARN), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (
        500,
        {"error": "the coordinator failed, its log says why: KeyError"},
    )


def test_event_that_fails_fails_the_invocation_and_one_that_makes_no_sense_does_not() -> None:
    with pytest.raises(KeyError, match="HIGHWATER_SCALER"):
        handler(EVENT, None)
    assert handler(EVENT | {"detail": "x"}, None)["statusCode"] == 400


def test_all_else_is_the_scalers() -> None:
    with pytest.raises(KeyError, match="HIGHWATER_SCALER"):
        handler({"highwater": "tick"}, None)
