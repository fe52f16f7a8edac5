"""How fast a strict cloud may be called: what is counted together, in each region."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

pytest.importorskip("ministack", reason="run by make test-cloud, in the environment of the local cloud")

from highwater_lab.local.control import REGION
from highwater_local import ministack
from highwater_local.strict.rates import Rates
from highwater_local.strict.request import CheckedRequest

NOW = 1_800_000_000
THROTTLED = (
    400,
    {"content-type": "application/x-amz-json-1.1"},
    b'{"__type": "ThrottlingException", "message": "Rate exceeded"}',
)


@pytest.fixture
def rates() -> Rates:
    ministack.load()
    return Rates(lambda: NOW)


def _json(queries: int, hours_ago: float, hours: float, period: int = 60, region: str = REGION) -> CheckedRequest:
    """A GetMetricData of so many metrics, from so long ago for so long."""
    members = [{"Id": f"q{number}", "MetricStat": {"Period": period}} for number in range(queries)]
    start = NOW - hours_ago * 3600
    document = {"StartTime": start, "EndTime": start + hours * 3600}
    document |= {"MetricDataQueries": [*members, {"Id": "e", "Expression": "SUM(METRICS())"}]}  # type: ignore[dict-item]
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "GraniteServiceVersion20100801.GetMetricData",
        "authorization": f"AWS4-HMAC-SHA256 Credential=a/20270115/{region}/monitoring/aws4_request",
    }
    ministack.enter_scope(headers)
    return CheckedRequest("POST", "/", headers, "", json.dumps(document).encode())


def test_datapoints_of_all_calls_of_a_second_count_together(rates: Rates) -> None:
    # 300 metrics by the minute over three hours are 54,000
    assert [rates.refusal(_json(300, 3, 3)) for _ in range(3)] == [None] * 3
    assert rates.refusal(_json(300, 3, 3)) == THROTTLED
    # what was refused took nothing: 18,000 are left
    assert rates.refusal(_json(100, 3, 3)) is None
    assert rates.refusal(_json(1, 1, 1)) == THROTTLED


def test_datapoints_of_longer_ago_have_a_quota_of_their_own(rates: Rates) -> None:
    assert rates.refusal(_json(500, 3, 6)) is None
    # one second longer ago than three hours
    longer = 3 + 1 / 3600
    assert rates.refusal(_json(500, longer, 12)) is None
    assert rates.refusal(_json(500, longer, 1.2)) is None
    assert rates.refusal(_json(1, longer, 1)) == THROTTLED


def test_longer_periods_have_fewer_datapoints(rates: Rates) -> None:
    assert [rates.refusal(_json(500, 3, 3, 300)) for _ in range(10)] == [None] * 10
    assert rates.refusal(_json(1, 1, 1, 300)) == THROTTLED


def test_expressions_and_times_that_are_none_ask_for_nothing(rates: Rates) -> None:
    assert rates.refusal(_json(500, 3, 6)) is None
    assert rates.refusal(_json(0, 3, 3)) is None
    assert rates.refusal(_json(500, 3, -3)) is None


def test_each_region_has_its_own_rates(rates: Rates) -> None:
    assert rates.refusal(_json(500, 3, 6)) is None
    assert rates.refusal(_json(500, 3, 6)) == THROTTLED
    assert rates.refusal(_json(500, 3, 6, region="eu-central-1")) is None
    assert rates.refusal(_json(500, 3, 6, region="eu-central-1")) == THROTTLED
    assert [rates.refusal(_form("Action=PutMetricAlarm")) for _ in range(3)] == [None] * 3
    assert [rates.refusal(_form("Action=PutMetricAlarm", "eu-central-1")) for _ in range(3)] == [None] * 3
    assert rates.refusal(_form("Action=PutMetricAlarm", "eu-central-1")) is not None


def _form(body: str, region: str = REGION) -> CheckedRequest:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    headers["authorization"] = f"AWS4-HMAC-SHA256 Credential=a/20270115/{region}/monitoring/aws4_request"
    ministack.enter_scope(headers)
    return CheckedRequest("POST", "/", headers, "", body.encode())


@pytest.mark.parametrize("is_recent", [True, False], ids=["recent", "earlier"])
def test_clients_of_the_older_protocol_are_told_in_its_words(rates: Rates, is_recent: bool) -> None:
    start = datetime.fromtimestamp(NOW - (3 if is_recent else 4) * 3600, UTC)
    members = {"Action": "GetMetricData", "StartTime": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
    members["EndTime"] = f"{start + timedelta(minutes=180_000 if is_recent else 396_000):%Y-%m-%dT%H:%M:%SZ}"
    metric = "MetricDataQueries.member.1.MetricStat.Period"
    assert rates.refusal(_form(urlencode(members | {metric: "60"}))) is None
    answer = rates.refusal(_form(urlencode(members | {metric: "60"})))
    assert answer is not None
    status, headers, body = answer
    assert (status, headers) == (400, {"content-type": "text/xml"})
    error = "<Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
    assert body.decode() == f"<ErrorResponse>{error}</ErrorResponse>"
