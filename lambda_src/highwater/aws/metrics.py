"""CloudWatch metrics of many targets by minute, in few calls."""

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

# GetMetricData accepts up to 500 queries and answers up to 100,800 datapoints in a page (Amazon CloudWatch API
# Reference, read 2026-11). A call of one page is a small part of what a second may ask for.
_QUERIES_PER_CALL, _DATAPOINTS_PER_PAGE = 500, 100_800
_MINUTE = timedelta(minutes=1)


def client(region: str | None = None) -> CloudWatchClient:
    """Create a client that retries up to three times, with short timeouts, because late metrics are of little use.

    Timestamps in its answers are seconds since 1970, because botocore takes a minute to convert a million of them to
    `datetime`.
    """
    config = Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=3, read_timeout=10)
    session = botocore.session.get_session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_seconds)
    return boto3.session.Session(botocore_session=session).client("cloudwatch", config=config, region_name=region)


def _seconds(timestamp: Any) -> float:
    """Return a timestamp, in the format of any protocol of botocore, as seconds since 1970."""
    if isinstance(timestamp, int | float):
        return float(timestamp)
    if isinstance(timestamp, datetime):
        return timestamp.timestamp()
    return float(parse_timestamp(timestamp).timestamp())


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


def metrics_per_call(minutes: int) -> int:
    """How many metrics of so many minutes GetMetricData is asked for at once."""
    return max(1, min(_QUERIES_PER_CALL, _DATAPOINTS_PER_PAGE // minutes))


def read_consumption(
    cloudwatch: CloudWatchClient, names: Iterable[TargetName], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """Read the units that each target consumed in the last whole *minutes* before *now*; one metric per target."""
    targets = list(names)
    series = _read_metrics(cloudwatch, [_Query(name, *_CONSUMED) for name in targets], minutes, now)
    newest = _newest(now)
    no_throttles = (0,) * minutes
    return {name: Observation(newest, series[_Query(name, *_CONSUMED)], no_throttles) for name in targets}


def with_throttles(
    cloudwatch: CloudWatchClient, seen: Mapping[TargetName, Observation], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """Return the observations *seen* with the throttles of the last *minutes*.

    Throttled units are throttle events multiplied by the average units of a request. CloudWatch is asked for one metric
    per target, and for targets with throttles three more: throttles by two causes, and the number of requests.
    """
    events = _read_metrics(cloudwatch, [_Query(name, *_ANY_THROTTLE) for name in seen], minutes, now)
    throttling = [name for name in seen if any(events[_Query(name, *_ANY_THROTTLE)])]
    queries = [_Query(name, *metric) for name in throttling for metric in (_REQUESTS, _THROTTLED, _HOT_KEY)]
    series = _read_metrics(cloudwatch, queries, minutes, now)
    return dict(seen) | {name: _throttled(seen[name], name, series, minutes) for name in throttling}


def _throttled(
    observation: Observation, name: TargetName, series: Mapping[_Query, tuple[int | None, ...]], minutes: int
) -> Observation:
    events, requests = series[_Query(name, *_THROTTLED)], series[_Query(name, *_REQUESTS)]
    recent = observation.consumed_units[-minutes:]
    throttled = [
        (count or 0) * _per_request(units, number)
        for count, units, number in zip(events, recent, requests, strict=True)
    ]
    before = [0] * (len(observation.consumed_units) - len(throttled))
    hot_key_events = sum(count or 0 for count in series[_Query(name, *_HOT_KEY)])
    return Observation(observation.newest, observation.consumed_units, (*before, *throttled), hot_key_events)


def _per_request(units: int | None, requests: int | None) -> int:
    """Average units of a request, rounded up; 1 if CloudWatch has no consumption or no requests for the minute."""
    return max(1, -(-units // requests)) if units and requests else 1


def _newest(now: datetime) -> int:
    """The last whole minute before *now*, in minutes since 1970; CloudWatch may not have its datapoint yet."""
    return int(now.timestamp()) // 60 - 1


def _series(points: Mapping[int, float], newest: int, minutes: int) -> tuple[int | None, ...]:
    return tuple(
        None if (value := points.get(minute)) is None else max(0, -int(-value // 1))
        for minute in range(newest - minutes + 1, newest + 1)
    )


def _read_metrics(
    cloudwatch: CloudWatchClient, queries: Sequence[_Query], minutes: int, now: datetime
) -> dict[_Query, tuple[int | None, ...]]:
    """The values of the last whole *minutes* before *now*, oldest first; `None` for each minute without a datapoint."""
    series: dict[_Query, tuple[int | None, ...]] = {}
    newest = _newest(now)
    end = datetime.fromtimestamp((newest + 1) * 60, UTC)
    per_call = metrics_per_call(minutes)
    for start in range(0, len(queries), per_call):
        batch = queries[start : start + per_call]
        documents: Any = [query.document(number) for number, query in enumerate(batch)]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=documents, StartTime=end - minutes * _MINUTE, EndTime=end, ScanBy="TimestampAscending"
        )
        points: list[dict[int, float]] = [{} for _ in batch]
        for page in pages:
            for result in page["MetricDataResults"]:
                points_of_query = points[int(result["Id"][1:])]
                seconds: Any = result["Timestamps"]
                for at, value in zip(seconds, result["Values"], strict=False):
                    # NaN fails this comparison, so it counts as no datapoint
                    if value >= 0:
                        points_of_query[int(at) // 60] = value
        for query, points_of_query in zip(batch, points, strict=True):
            series[query] = _series(points_of_query, newest, minutes)
    return series
