"""Traffic from CloudWatch, over HTTP with real boto3: consumed plus throttled, tables and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.traffic import Stream, TrafficError, fetch_traffic

READ, WRITE = Dimension.READ, Dimension.WRITE
pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]
# the metrics' end is a whole five minutes, five minutes ago
NOW = datetime.now(UTC).replace(minute=27, second=13, microsecond=0)
END = NOW.replace(minute=20, second=0)


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven") as cloud:
        cloud.client("dynamodb").create_table(
            TableName="orders",
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "status", "AttributeType": "S"},
            ],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "by_status",
                    "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                    "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
                }
            ],
        )
        _put(cloud, "ConsumedWriteCapacityUnits", None, {3: 240, 4: 0, 5: 60})
        _put(cloud, "WriteThrottleEvents", None, {5: 17})
        _put(cloud, "ConsumedReadCapacityUnits", "by_status", {1440: 90})
        yield cloud


def _put(cloud: LocalCloud, metric: str, index: str | None, by_minutes_ago: dict[int, float]) -> None:
    dimensions = [{"Name": "TableName", "Value": "orders"}]
    if index:
        dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
    data: list[Any] = [
        {
            "MetricName": metric,
            "Dimensions": dimensions,
            "Timestamp": END - timedelta(minutes=ago),
            "Value": value,
        }
        for ago, value in by_minutes_ago.items()
    ]
    cloud.client("cloudwatch").put_metric_data(Namespace="AWS/DynamoDB", MetricData=data)


def test_consumed_and_throttled_are_put_together_by_minute(cloud: LocalCloud) -> None:
    steps: list[tuple[int, int]] = []
    traffic = fetch_traffic(
        cloud.client("dynamodb"),
        cloud.client("cloudwatch"),
        "orders",
        days=1,
        now=NOW,
        progress=lambda done, total: steps.append((done, total)),
    )
    # from the first datapoint to the last
    assert (traffic.name, traffic.start, traffic.minutes) == ("orders", END - timedelta(days=1), 1438)
    found = {
        stream: {minute: units for minute, units in enumerate(rates) if units}
        for stream, rates in traffic.rates.items()
    }
    assert found == {
        Stream(None, READ): {},
        Stream(None, WRITE): {1440 - 3: 240, 1440 - 5: 77},
        Stream("by_status", READ): {0: 90},
        # an idle index has a column of zeros, so that nothing is assumed of it
        Stream("by_status", WRITE): {},
    }
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_older_days_come_in_longer_bins(cloud: LocalCloud) -> None:
    clients = cloud.client("dynamodb"), cloud.client("cloudwatch")
    traffic = fetch_traffic(*clients, "orders", days=20, now=NOW)
    assert traffic.source_bin_seconds == 300
    assert traffic.total_units(Stream(None, WRITE)) == 317


def test_table_without_traffic_is_refused(cloud: LocalCloud) -> None:
    clients = cloud.client("dynamodb"), cloud.client("cloudwatch")
    with pytest.raises(TrafficError) as refused:
        fetch_traffic(*clients, "other", days=1, now=NOW)
    assert str(refused.value) == "table 'other' does not exist; check its name, the account and the region"
    with pytest.raises(TrafficError) as refused:
        fetch_traffic(*clients, "orders", days=456, now=NOW)
    assert str(refused.value) == "days must be between 1 and 455, got 456: CloudWatch keeps metrics no longer"


def test_table_without_a_datapoint_is_idle_where_it_had_capacity_and_otherwise_unknown(cloud: LocalCloud) -> None:
    clients = cloud.client("dynamodb"), cloud.client("cloudwatch")
    unknown = fetch_traffic(*clients, "orders", days=1, now=NOW + timedelta(days=3))
    assert (unknown.minutes, unknown.is_unknown) == (0, True)
    assert unknown.notes == (
        "table 'orders' has no datapoints in the last 1 days, neither of what it consumes nor of provisioned capacity: "
        "whether it is idle is not known",
    )
    at = NOW + timedelta(days=6)
    cloud.client("cloudwatch").put_metric_data(
        Namespace="AWS/DynamoDB",
        MetricData=[
            {
                "MetricName": "ProvisionedWriteCapacityUnits",
                "Dimensions": [{"Name": "TableName", "Value": "orders"}],
                "Timestamp": at - timedelta(minutes=ago),
                "Value": 200.0,
            }
            for ago in (300, 40)
        ],
    )
    idle = fetch_traffic(*clients, "orders", days=1, now=at)
    assert (idle.minutes, idle.is_idle) == (261, True)
