"""CloudWatch: the minutes of many targets in few calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.utils import parse_timestamp

from highwater.core.names import TargetName
from highwater.core.scaler.observations import Observation

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

# GetMetricData takes up to 500 queries (Amazon CloudWatch API Reference, read 2026-11)
_QUERIES_PER_CALL = 500
_MINUTE = timedelta(minutes=1)


def client(region: str | None = None) -> CloudWatchClient:
    """A client that sends again what CloudWatch turned away; a late metric is worth little, so not for long.

    Its answers have times as seconds since 1970: making datetimes of a million timestamps takes botocore a minute.
    """
    config = Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=3, read_timeout=10)
    session = botocore.session.get_session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_seconds)
    return boto3.session.Session(botocore_session=session).client("cloudwatch", config=config, region_name=region)


def _seconds(told: Any) -> float:
    """Seconds since 1970 of a timestamp as any protocol writes it."""
    if isinstance(told, int | float):
        return float(told)
    if isinstance(told, datetime):
        return told.timestamp()
    return float(parse_timestamp(told).timestamp())


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
_ANY_THROTTLE = ("{kind}ThrottleEvents", "Sum")
_THROTTLED = ("{kind}ProvisionedThroughputThrottleEvents", "Sum")
_HOT_KEY = ("{kind}KeyRangeThroughputThrottleEvents", "Sum")


def read_consumption(
    cloudwatch: CloudWatchClient, names: Iterable[TargetName], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """What each target consumed in the last whole *minutes* before *now*: one metric each."""
    wanted = list(names)
    found = _ask(cloudwatch, [_Query(name, *_CONSUMED) for name in wanted], minutes, now)
    newest = _newest(now)
    none = (0,) * minutes
    return {name: Observation(newest, found[_Query(name, *_CONSUMED)], none) for name in wanted}


def with_throttles(
    cloudwatch: CloudWatchClient, seen: Mapping[TargetName, Observation], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """The same with the throttles of the last *minutes*, in units: events times what a request took on average.

    One metric a target, and three more for those that throttled at all: which cause, and how many requests.
    """
    events = _ask(cloudwatch, [_Query(name, *_ANY_THROTTLE) for name in seen], minutes, now)
    throttling = [name for name in seen if any(events[_Query(name, *_ANY_THROTTLE)])]
    queries = [_Query(name, *which) for name in throttling for which in (_REQUESTS, _THROTTLED, _HOT_KEY)]
    found = _ask(cloudwatch, queries, minutes, now)
    return dict(seen) | {name: _throttled(seen[name], name, found, minutes) for name in throttling}


def _throttled(
    observation: Observation, name: TargetName, found: Mapping[_Query, tuple[int | None, ...]], minutes: int
) -> Observation:
    events, requests = found[_Query(name, *_THROTTLED)], found[_Query(name, *_REQUESTS)]
    recent = observation.consumed_units[-minutes:]
    throttled = [
        (count or 0) * _per_request(units, number)
        for count, units, number in zip(events, recent, requests, strict=True)
    ]
    before = [0] * (len(observation.consumed_units) - len(throttled))
    hot_key_events = sum(count or 0 for count in found[_Query(name, *_HOT_KEY)])
    return Observation(observation.newest, observation.consumed_units, (*before, *throttled), hot_key_events)


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
) -> dict[_Query, tuple[int | None, ...]]:
    """The last whole minutes before *now*, oldest first; a query that CloudWatch could not answer has none."""
    series: dict[_Query, tuple[int | None, ...]] = {}
    newest = _newest(now)
    end = datetime.fromtimestamp((newest + 1) * 60, UTC)
    for start in range(0, len(queries), _QUERIES_PER_CALL):
        batch = queries[start : start + _QUERIES_PER_CALL]
        documents: Any = [query.document(number) for number, query in enumerate(batch)]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=documents, StartTime=end - minutes * _MINUTE, EndTime=end, ScanBy="TimestampAscending"
        )
        points: list[dict[int, float]] = [{} for _ in batch]
        for page in pages:
            for result in page["MetricDataResults"]:
                of_query = points[int(result["Id"][1:])]
                seconds: Any = result["Timestamps"]
                for at, value in zip(seconds, result["Values"], strict=False):
                    # NaN is not
                    if value >= 0:
                        of_query[int(at) // 60] = value
        for query, found in zip(batch, points, strict=True):
            series[query] = _series(found, newest, minutes)
    return series
