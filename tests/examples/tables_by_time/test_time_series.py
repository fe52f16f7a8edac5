"""A time series in tables by time: the table of an item, and queries over a span, on real tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from periods import PeriodError, Periods
from time_series import TimeSeries

from highwater_lab.local import LocalCloud
from tests.local.world import DAY, MINUTE, keyed, told
from tests.ports import free_port

PERIODS = Periods("log", every="day", late=timedelta(hours=2))
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OF_A: dict[str, Any] = {
    "KeyConditionExpression": "#s = :s",
    "ExpressionAttributeNames": {"#s": "source"},
    "ExpressionAttributeValues": {":s": {"S": "a"}},
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as running:
        yield running


@pytest.fixture
def dynamodb(cloud: LocalCloud) -> Iterator[Any]:
    client = cloud.client("dynamodb")
    yield client
    for name in client.list_tables()["TableNames"]:
        client.delete_table(TableName=name)


def _create(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        **keyed("source", "at:N"),
        BillingMode="PAY_PER_REQUEST",
    )


def _put(client: Any, table: str, *times: int, load: str = "") -> None:
    for at in times:
        item = {"source": {"S": "a"}, "at": {"N": str(at)}, "load": {"S": load}}
        client.put_item(TableName=table, Item=item)


class Hands:
    """A clock that a test sets."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_missing_table_is_looked_for_again_after_a_minute(dynamodb: Any, caplog: pytest.LogCaptureFixture) -> None:
    clock = Hands()
    series = TimeSeries(dynamodb, PERIODS, clock=clock)
    with caplog.at_level(logging.WARNING, logger="time_series"):
        assert series.table_for() == "log-default"
        _create(dynamodb, "log-2026-01-05")
        clock.now = NOW + MINUTE - timedelta(seconds=1)
        assert series.table_for() == "log-default"
        clock.now = NOW + MINUTE
        assert series.table_for() == "log-2026-01-05"
    assert caplog.messages == [
        "items of table log-2026-01-05 go to log-default: An error occurred (ResourceNotFoundException) when calling "
        "the DescribeTable operation: Requested resource not found: Table: log-2026-01-05 not found"
    ]
    # the one of yesterday, which is closed, is not even asked for
    assert series.table_for(NOW - DAY) == "log-default"
    assert len(caplog.messages) == 1


def test_table_that_cannot_be_looked_at_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"total_max_attempts": 1}),
    )
    assert TimeSeries(client, PERIODS, clock=Hands()).table_for() == "log-default"
    assert caplog.messages == [
        "items of table log-2026-01-05 go to log-default: Could not connect to the endpoint URL: "
        f'"http://127.0.0.1:{port}/"'
    ]


def test_span_is_read_page_by_page_in_the_order_of_time_with_the_default_table(
    cloud: LocalCloud, dynamodb: Any
) -> None:
    for name in ("log-2026-01-03", "log-2026-01-05", "log-default"):
        _create(dynamodb, name)
    # more than one page; a partition takes 1,000 units a second
    for at in range(9, 14):
        _put(dynamodb, "log-2026-01-03", at, load="x" * 300_000)
        cloud.step(1)
    _put(dynamodb, "log-2026-01-05", 100, 101)
    _put(dynamodb, "log-default", 8, 11, 50, 200)
    series = TimeSeries(dynamodb, PERIODS)

    def times(start: datetime, end: datetime, *, is_forward: bool = True) -> list[int]:
        found = series.query(start, end, sort_key="at", is_forward=is_forward, **OF_A)
        return [int(item["at"]["N"]) for item in found]

    whole = [8, 9, 10, 11, 11, 12, 13, 50, 100, 101, 200]
    assert times(NOW - 3 * DAY, NOW) == whole
    assert times(NOW - 3 * DAY, NOW, is_forward=False) == whole[::-1]
    assert times(NOW - DAY, NOW) == [8, 11, 50, 100, 101, 200]
    assert times(NOW, NOW) == [8, 11, 50, 200]


def test_query_without_the_sort_key_in_its_projection_says_so(dynamodb: Any) -> None:
    for name in ("log-2026-01-05", "log-default"):
        _create(dynamodb, name)
        _put(dynamodb, name, 7)
    found = TimeSeries(dynamodb, PERIODS).query(NOW - MINUTE, NOW, sort_key="at", ProjectionExpression="#s", **OF_A)
    text = "query: sort_key: got 'at', which the items do not have; name it in ProjectionExpression"
    with told(PeriodError, text):
        list(found)


def test_query_without_a_default_table_fails(dynamodb: Any) -> None:
    _create(dynamodb, "log-2026-01-05")
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        list(TimeSeries(dynamodb, PERIODS).query(NOW - MINUTE, NOW, sort_key="at", **OF_A))
