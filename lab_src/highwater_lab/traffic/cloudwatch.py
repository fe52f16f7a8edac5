"""Reads a live table's past traffic from CloudWatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from highwater.core import Dimension
from highwater_lab.traffic.series import Stream, Traffic, TrafficError

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TableDescriptionTypeDef

# GetMetricData returns at most this many datapoints per call (API reference, read 2026-11)
_POINTS_PER_CALL: Final = 100_000
# CloudWatch retains one-minute datapoints for 15 days, five-minute ones for 63, hourly ones for 455 (CloudWatch User
# Guide): days of retention, period in seconds
KEPT_DAYS: Final = ((15, 60), (63, 300), (455, 3600))
_METRICS: Final = {
    Dimension.READ: ("ConsumedReadCapacityUnits", "ReadThrottleEvents"),
    Dimension.WRITE: ("ConsumedWriteCapacityUnits", "WriteThrottleEvents"),
}


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What fetching the traffic of tables asks of CloudWatch.

    Attributes:
        tables: The tables whose traffic is fetched, and the number of streams of each: reads and writes of the table
            and of each index.
    """

    tables: dict[str, int]

    @property
    def requests(self) -> int:
        """The number of requests to CloudWatch, one for each stream."""
        return sum(self.tables.values())

    @property
    def metrics(self) -> int:
        """The number of metrics requested, which are what CloudWatch charges for."""
        return self.requests * len(_METRICS[Dimension.READ])


def plan_fetch(dynamodb: DynamoDBClient, tables: Iterable[str]) -> FetchPlan:
    """Return what it takes to fetch the traffic of these *tables*, whatever their capacity mode.

    Raises `TrafficError` if one does not exist.
    """
    return FetchPlan({table: len(_streams(_described(dynamodb, table))) for table in tables})


def plan_fetch_of_all(dynamodb: DynamoDBClient) -> FetchPlan:
    """Return what it takes to fetch the traffic of every table in the account and region, whatever its mode."""
    tables: dict[str, int] = {}
    for page in dynamodb.get_paginator("list_tables").paginate():
        for table in page["TableNames"]:
            try:
                tables[table] = len(_streams(_described(dynamodb, table)))
            except TrafficError:
                # deleted since it was listed
                continue
    return FetchPlan(tables)


def _described(dynamodb: DynamoDBClient, table: str) -> TableDescriptionTypeDef:
    try:
        return dynamodb.describe_table(TableName=table)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException:
        raise TrafficError(f"table {table!r} does not exist; check its name, the account and the region") from None


def _streams(description: TableDescriptionTypeDef) -> list[Stream]:
    indexes = [index["IndexName"] for index in description.get("GlobalSecondaryIndexes", [])]
    return [Stream(index, dimension) for index in (None, *indexes) for dimension in Dimension]


@dataclass(frozen=True, slots=True)
class Usage:
    """What CloudWatch has of a table.

    Attributes:
        traffic: Consumed units plus throttle events, of the table and all indexes; all zero for an idle table.
        throttled: The throttle events by stream, for those that had any. CloudWatch counts requests, not units.
    """

    traffic: Traffic
    throttled: Mapping[Stream, int]


def fetch_traffic(
    dynamodb: DynamoDBClient,
    cloudwatch: CloudWatchClient,
    table: str,
    *,
    days: int,
    now: datetime,
    progress: Callable[[int, int], None] | None = None,
) -> Traffic:
    """Read the traffic of *table* and its indexes in the *days* (1 to 455) before *now*, from CloudWatch.

    Traffic is consumed units plus throttle events. A throttle event counts as one unit, because CloudWatch does not
    report its size; a missing datapoint counts as zero. Bins are one minute long for up to 15 days, five minutes for
    up to 63 days and an hour for more. *progress* is called with the number of metrics read and their total. Raises
    `TrafficError` if the table does not exist or had no traffic, or if *days* is out of range.
    """
    _period(days)
    streams = _streams(_described(dynamodb, table))
    traffic = fetch_usage(cloudwatch, table, streams, days=days, now=now, progress=progress).traffic
    busy = {s: rates for s, rates in traffic.rates.items() if s.index is None or any(rates)}
    if not any(any(rates) for rates in busy.values()):
        raise TrafficError(f"table {table!r} had no traffic in the last {days} days, so there is nothing to rehearse")
    counts = traffic.counts and {stream: traffic.counts[stream] for stream in busy}
    return replace(traffic, rates=busy, counts=counts)


def fetch_usage(
    cloudwatch: CloudWatchClient,
    table: str,
    streams: Sequence[Stream],
    *,
    days: int,
    now: datetime,
    progress: Callable[[int, int], None] | None = None,
) -> Usage:
    """Read what these streams of a table consumed and throttled, one request for each; as `fetch_traffic` otherwise."""
    period = _period(days)
    # CloudWatch does not have all datapoints of the last few minutes yet
    end = _floor(now - timedelta(minutes=5), 3600 if period == 3600 else 300)
    start = end - timedelta(days=days)
    bins, first = int((end - start).total_seconds()) // period, start.timestamp()
    counts = {stream: [0.0] * bins for stream in streams}
    throttled: dict[Stream, int] = {}
    for number, stream in enumerate(streams):
        for metric, at, units in _datapoints(cloudwatch, table, stream, start, end, period):
            position = int((at if isinstance(at, int | float) else at.timestamp()) - first) // period
            if 0 <= position < bins:
                counts[stream][position] += units
                if metric:
                    throttled[stream] = throttled.get(stream, 0) + int(units)
        if progress is not None:
            progress(number + 1, len(streams))
    return Usage(Traffic.from_counts(table, counts, bin_seconds=period, start=start), throttled)


def _period(days: int) -> int:
    """Return the seconds of a bin."""
    period = next((seconds for kept_days, seconds in KEPT_DAYS if days <= kept_days), None)
    if days < 1 or period is None:
        raise TrafficError(
            f"days must be between 1 and {KEPT_DAYS[-1][0]}, got {days}: CloudWatch keeps metrics no longer"
        )
    return period


def _datapoints(
    cloudwatch: CloudWatchClient, table: str, stream: Stream, start: datetime, end: datetime, period: int
) -> Iterator[tuple[int, Any, float]]:
    """Yield for each datapoint the number of its metric, 0 for consumed and 1 for throttled, its time and its value."""
    dimensions = [{"Name": "TableName", "Value": table}]
    if stream.index is not None:
        dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": stream.index})
    queries: list[Any] = [
        {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions},
                "Period": period,
                "Stat": "Sum",
            },
        }
        for number, name in enumerate(_METRICS[stream.dimension])
    ]
    for page in cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries,
        StartTime=start,
        EndTime=end,
        ScanBy="TimestampAscending",
        PaginationConfig={"PageSize": _POINTS_PER_CALL},
    ):
        for result in page["MetricDataResults"]:
            for at, value in zip(result["Timestamps"], result["Values"], strict=True):
                yield int(result["Id"][1:]), at, value


def _floor(at: datetime, seconds: int) -> datetime:
    return at - timedelta(seconds=at.timestamp() % seconds)
