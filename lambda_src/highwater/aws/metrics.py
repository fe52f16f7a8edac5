"""CloudWatch: the minutes of many targets in few calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from highwater.core.observations import Observation
from highwater.core.target_names import TargetName

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

# GetMetricData takes up to 500 queries (Amazon CloudWatch API Reference, read 2026-11)
_QUERIES_PER_CALL = 500
_MINUTE = timedelta(minutes=1)


def client() -> CloudWatchClient:
    """A client that sends again what CloudWatch turned away; a late metric is worth little, so not for long."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=3, read_timeout=10)
    return boto3.client("cloudwatch", config=config)


@dataclass(frozen=True, slots=True)
class _Query:
    """One statistic of one metric of one target."""

    name: TargetName
    metric: str
    statistic: str

    def document(self, number: int) -> dict[str, Any]:
        dimensions = [{"Name": "TableName", "Value": self.name.table}]
        if self.name.index:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": self.name.index})
        kind = self.name.dimension.title()
        metric = {
            "Namespace": "AWS/DynamoDB",
            "MetricName": self.metric.format(kind=kind),
            "Dimensions": dimensions,
        }
        return {"Id": f"q{number}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": self.statistic}}


_CONSUMED = ("Consumed{kind}CapacityUnits", "Sum")
_REQUESTS = ("Consumed{kind}CapacityUnits", "SampleCount")
_THROTTLED = ("{kind}ProvisionedThroughputThrottleEvents", "Sum")
_HOT_KEY = ("{kind}KeyRangeThroughputThrottleEvents", "Sum")


def see_consumed(
    cloudwatch: CloudWatchClient, names: Iterable[TargetName], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """What each target consumed in the last whole *minutes* before *now*: one metric each."""
    wanted = list(names)
    found = _ask(cloudwatch, [_Query(name, *_CONSUMED) for name in wanted], minutes, now)
    newest = _newest(now)
    return {
        name: Observation(newest, _series(found[_Query(name, *_CONSUMED)], newest, minutes), (0,) * minutes)
        for name in wanted
    }


def with_throttles(
    cloudwatch: CloudWatchClient, seen: Mapping[TargetName, Observation], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """The same with the throttles of the last *minutes*, in units: events times what a request took on average."""
    queries = [_Query(name, *which) for name in seen for which in (_REQUESTS, _THROTTLED, _HOT_KEY)]
    found = _ask(cloudwatch, queries, minutes, now)
    told = {}
    for name, observation in seen.items():
        newest = observation.newest
        events = _series(found[_Query(name, *_THROTTLED)], newest, minutes)
        requests = _series(found[_Query(name, *_REQUESTS)], newest, minutes)
        hot = _series(found[_Query(name, *_HOT_KEY)], newest, minutes)
        recent = observation.consumed_units[-minutes:]
        throttled = [
            (count or 0) * _per_request(units, number)
            for count, units, number in zip(events, recent, requests, strict=True)
        ]
        before = [0] * (len(observation.consumed_units) - len(throttled))
        told[name] = Observation(
            newest, observation.consumed_units, (*before, *throttled), sum(count or 0 for count in hot)
        )
    return told


def _per_request(units: int | None, requests: int | None) -> int:
    """Units that a request took on average, rounded up; one where nothing is known."""
    return max(1, -(-units // requests)) if units and requests else 1


def _newest(now: datetime) -> int:
    """The last whole minute before *now*, whether its datapoint has come or not."""
    return int(now.timestamp()) // 60 - 1


def _series(points: Mapping[int, float], newest: int, minutes: int) -> tuple[int | None, ...]:
    return tuple(
        None if (value := points.get(minute)) is None else max(0, -int(-value // 1))
        for minute in range(newest - minutes + 1, newest + 1)
    )


def _ask(
    cloudwatch: CloudWatchClient, queries: Sequence[_Query], minutes: int, now: datetime
) -> dict[_Query, dict[int, float]]:
    """Datapoints by minute since 1970; a query that CloudWatch could not answer has none."""
    found: dict[_Query, dict[int, float]] = {query: {} for query in queries}
    end = datetime.fromtimestamp((_newest(now) + 1) * 60, UTC)
    for start in range(0, len(queries), _QUERIES_PER_CALL):
        batch = queries[start : start + _QUERIES_PER_CALL]
        documents: Any = [query.document(number) for number, query in enumerate(batch)]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=documents, StartTime=end - minutes * _MINUTE, EndTime=end, ScanBy="TimestampAscending"
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                points = found[batch[int(result["Id"][1:])]]
                for at, value in zip(result["Timestamps"], result["Values"], strict=False):
                    # NaN is not
                    if value >= 0:
                        points[int(at.timestamp()) // 60] = value
    return found
