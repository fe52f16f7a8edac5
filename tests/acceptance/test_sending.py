"""Traffic beside a measurement: one request that is not answered ends nothing, and traffic that ended is noticed."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from acceptance.place import AccountClock
from acceptance.report import Check
from acceptance.sending import check_sent, load_of
from highwater.core import Dimension
from highwater_lab.local.load import Load, LoadMinute, LoadReport, steady
from tests.acceptance.fake_place import FakePlace, refusal, stage_of

SPEED = 600
BROKEN = refusal("InternalServerError", "Internal server error", "PutItem", status=500)
REFUSED = refusal("AccessDenied", "no", "PutItem")
LOST = ConnectionClosedError(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com/")


class _Fast(FakePlace):
    """Its clock runs fast, so that a minute of traffic is a tenth of a second."""

    def status(self) -> AccountClock:
        return AccountClock(self.at, SPEED)


class _Table:
    """DynamoDB, which does not answer some of the requests."""

    class exceptions:
        """As boto3 has it."""

        ClientError = ClientError
        ResourceNotFoundException = type("ResourceNotFoundException", (ClientError,), {})

    def __init__(self, error: Exception, unanswered: range) -> None:
        self._error = error
        self._unanswered = unanswered
        self._numbers = itertools.count()

    def describe_table(self, **_: Any) -> dict[str, Any]:
        key = [{"AttributeName": "id", "AttributeType": "S"}]
        return {"Table": {"AttributeDefinitions": key, "KeySchema": [{"AttributeName": "id"}]}}

    def put_item(self, **_: Any) -> dict[str, Any]:
        if next(self._numbers) in self._unanswered:
            raise self._error
        return {"ResponseMetadata": {}}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("error", [BROKEN, LOST], ids=["500", "lost"])
def test_request_that_is_not_answered_is_sent_again(error: Exception, tmp_path: Path) -> None:
    place = _Fast({"dynamodb": _Table(error, range(3, 5))})
    traffic = steady(0, 10, timedelta(minutes=1), place.at)
    report = load_of(stage_of(place, tmp_path), "orders", traffic).run()
    assert (report.failure, report.unanswered) == ("", 2)
    assert report.total(Dimension.WRITE, "granted") == pytest.approx(600, abs=report.units_per_request[Dimension.WRITE])


@pytest.mark.parametrize(("error", "retries"), [(REFUSED, 6), (BROKEN, 0)], ids=["refused", "not-asked-for"])
def test_other_errors_end_a_load(error: ClientError, retries: int) -> None:
    place = _Fast({"dynamodb": _Table(error, range(3, 4))})
    traffic = steady(0, 10, timedelta(minutes=1), place.at)
    report = Load(place, "orders", traffic, unanswered_retries=retries, threads=1).run()
    assert (report.failure, report.unanswered) == (str(error), 0)


@pytest.mark.parametrize(
    ("sent", "behind", "failure", "holds", "actual"),
    [
        pytest.param(590, 4.0, "", True, "590, the latest request 4 s late", id="right"),
        pytest.param(587, 4.0, "", False, "587, the latest request 4 s late", id="too-few"),
        pytest.param(600, 11.0, "", False, "600, the latest request 11 s late", id="late"),
        pytest.param(600, 0.0, "no", False, "600, the latest request 0 s late; ended by: no", id="failed"),
    ],
)
def test_traffic_that_was_not_as_planned_is_a_promise_that_does_not_hold(
    sent: float, behind: float, failure: str, holds: bool, actual: str, tmp_path: Path
) -> None:
    stage = stage_of(FakePlace(), tmp_path)
    minutes = {Dimension.WRITE: [LoadMinute(asked=sent)]}
    report = LoadReport(stage.now(), 1, {}, minutes, most_behind_seconds=behind, failure=failure)
    check_sent(stage, report, [(1, 10)], "the table")
    subject, planned = "units that the load generator sent to the table", "600 and no request late by 10 s"
    assert stage.report.checks == [Check("any", subject, planned, actual, holds)]
