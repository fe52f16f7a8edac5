"""Reads a live table's past traffic from CloudWatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from highwater.core import Dimension
from highwater_lab.traffic.bins import joined, lay
from highwater_lab.traffic.series import Stream, Traffic, TrafficError
from highwater_lab.traffic.text import SECOND, DataPlace

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


# A table that consumes nothing may have no datapoint of it, and has some of its capacity, at most five minutes apart
_GAUGES: Final = {
    Dimension.READ: "ProvisionedReadCapacityUnits",
    Dimension.WRITE: "ProvisionedWriteCapacityUnits",
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
        traffic: Consumed units plus throttle events, of the table and its indexes, as `fetch_traffic` returns it.
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
    report its size. It begins and ends with the first and the last datapoint; missing ones in between are not known
    (`lay`). Bins are one minute long for up to 15 days, five minutes for up to 63 days and an hour for more. An idle
    table has traffic of zeros. A table without a datapoint of consumption is idle where it has some of provisioned
    capacity; otherwise its traffic has no minute. *progress* is called with the number of requests done and their
    total. Raises `TrafficError` if the table does not exist, or if *days* is out of range.
    """
    _period(days)
    streams = _streams(_described(dynamodb, table))
    return fetch_usage(cloudwatch, table, streams, days=days, now=now, progress=progress).traffic


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
    consumed: dict[Stream, dict[int, float]] = {}
    throttled: dict[Stream, dict[int, float]] = {}
    for number, stream in enumerate(streams):
        consumed[stream], throttled[stream] = {}, {}
        for metric, at, units in _datapoints(cloudwatch, table, stream, _METRICS[stream.dimension], start, end, period):
            time = int(at if isinstance(at, int | float) else at.timestamp())
            if start.timestamp() <= time < end.timestamp():
                points = (consumed, throttled)[metric][stream]
                points[time * SECOND] = points.get(time * SECOND, 0.0) + units
        if progress is not None:
            progress(number + 1, len(streams))
    counts = {stream: round(sum(points.values())) for stream, points in throttled.items() if any(points.values())}
    if not any(consumed.values()) and not counts:
        return Usage(_idle_or_unknown(cloudwatch, table, start, end, period, days), counts)
    rows = joined(consumed, throttled)
    traffic = lay(DataPlace(f"table {table!r}", "datapoint"), rows, bin_seconds=period).traffic(table)
    return Usage(traffic, counts)


def _idle_or_unknown(
    cloudwatch: CloudWatchClient, table: str, start: datetime, end: datetime, period: int, days: int
) -> Traffic:
    """Return the traffic of a table without a datapoint of consumption: zeros where it had provisioned capacity."""
    streams = [Stream(None, dimension) for dimension in Dimension]
    times = [
        int(at if isinstance(at, int | float) else at.timestamp())
        for stream in streams
        for _, at, _ in _datapoints(cloudwatch, table, stream, (_GAUGES[stream.dimension],), start, end, period)
    ]
    if not times:
        return Traffic.unknown(
            table,
            f"table {table!r} has no datapoints in the last {days} days, neither of what it consumes nor of "
            "provisioned capacity: whether it is idle is not known",
        )
    first = min(times)
    bins = (max(times) - first) // period + 1
    return Traffic.from_counts(
        table, {each: [0.0] * bins for each in streams}, bin_seconds=period, start=datetime.fromtimestamp(first, UTC)
    )


def _period(days: int) -> int:
    """Return the seconds of a bin."""
    period = next((seconds for kept_days, seconds in KEPT_DAYS if days <= kept_days), None)
    if days < 1 or period is None:
        raise TrafficError(
            f"days must be between 1 and {KEPT_DAYS[-1][0]}, got {days}: CloudWatch keeps metrics no longer"
        )
    return period


def _datapoints(
    cloudwatch: CloudWatchClient,
    table: str,
    stream: Stream,
    metrics: Sequence[str],
    start: datetime,
    end: datetime,
    period: int,
) -> Iterator[tuple[int, Any, float]]:
    """Yield for each datapoint of *metrics* the number of its metric, its time and its value."""
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
        for number, name in enumerate(metrics)
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
