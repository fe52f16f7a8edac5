"""How fast a strict cloud may be called: calls and datapoints a second, in each region."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.config import Config

from highwater_lab.local import LocalCloud
from tests.local.world import HOUR, MINUTE, refused

pytestmark = pytest.mark.xdist_group("rates")
CLOUD = {"is_strict": True}
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "limit"),
    [("ssm", "get_parameters", {"Names": ["/any"]}, 40), ("cloudwatch", "describe_alarms", {}, 9)],
)
def test_calls_that_come_too_fast_are_refused(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any], limit: int
) -> None:
    """A second of the cloud has so many, and the next one as many again."""
    client = cloud.client(service, ONCE)
    # a second in which the tests before have called nothing
    cloud.advance(timedelta(seconds=1))
    accepted = 0
    with refused("ThrottlingException", "Rate exceeded"):
        for _ in range(100 * limit):
            getattr(client, operation)(**arguments)
            accepted += 1
    assert accepted >= limit


def test_datapoints_that_are_asked_for_too_fast_are_refused(cloud: LocalCloud) -> None:
    """One call alone may ask for too many; boto3 sends it as JSON."""
    client = cloud.client("cloudwatch", ONCE)
    cloud.advance(timedelta(seconds=1))
    now = cloud.status().now
    query = {
        "MetricStat": {"Metric": {"Namespace": "mine", "MetricName": "jobs"}, "Period": 60, "Stat": "Sum"},
    }
    queries = [query | {"Id": f"q{number}"} for number in range(500)]
    client.get_metric_data(MetricDataQueries=queries, StartTime=now - 2 * HOUR, EndTime=now)
    cloud.advance(timedelta(seconds=1))
    with refused("ThrottlingException", "Rate exceeded"):
        # 361 minutes of 500 metrics, most of them still to come
        client.get_metric_data(MetricDataQueries=queries, StartTime=now - 2 * HOUR, EndTime=now + 4 * HOUR + MINUTE)
