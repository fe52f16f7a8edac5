"""CloudWatch: metrics of many targets by minute in few calls, and the scaler's own alarms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.utils import parse_timestamp

from highwater.calls.attempts import OBSERVED, client_config
from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.plan.plan import Target
from highwater.core.plan.zones import MINUTES_PER_DAY
from highwater.core.scaler.inputs import Observation
from highwater.core.scaler.regret import past_of, planned_by_minute
from highwater.core.throttles import ThrottleCause
from highwater.core.units import Dimension

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient


# All calls of GetMetricData in a region may request 396,000 datapoints a second, if the first is more than three hours
# old. CloudWatch estimates the number from the period and the time range, even where there are no datapoints (Amazon
# CloudWatch User Guide, "CloudWatch service quotas", read 2026-11). Some are left to other readers of the account.
_DATAPOINTS_PER_SECOND = 330_000


@dataclass(slots=True)
class DatapointRate:
    """Spaces calls of GetMetricData, so that they stay within the rate. Several threads may share one.

    Attributes:
        clock: Monotonic clock, in seconds.
        sleep: Waits for the given seconds.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def wait_for(self, datapoints: int) -> None:
        """Reserve the time for *datapoints*, and wait until earlier calls no longer count towards the rate."""
        with self._lock:
            now = self.clock()
            at = max(now, self._free_at)
            self._free_at = at + datapoints / _DATAPOINTS_PER_SECOND
        if at > now:
            self.sleep(at - now)


# GetMetricData accepts up to 500 queries and returns up to 100,800 datapoints in a page (Amazon CloudWatch API
# Reference, read 2026-11). A call of one page is a small part of the datapoints allowed in a second.
_QUERIES_PER_CALL, _DATAPOINTS_PER_PAGE = 500, 100_800
_MINUTE = timedelta(minutes=1)


def client(region: str | None = None) -> CloudWatchClient:
    """Create a client that retries up to three times, with short timeouts, because late metrics are of little use.

    Timestamps in its answers are seconds since 1970, because botocore takes a minute to convert a million of them to
    `datetime`.
    """
    session = botocore.session.get_session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_seconds)
    return boto3.session.Session(botocore_session=session).client(
        "cloudwatch", config=client_config(OBSERVED, (3, 10)), region_name=region
    )


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
_SAMPLES = ("Consumed{kind}CapacityUnits", "SampleCount")
_ANY_THROTTLE = ("{kind}ThrottleEvents", "Sum")
_THROTTLED = ("{kind}" + ThrottleCause.PROVISIONED.metric_suffix, "Sum")
_HOT_KEY = ("{kind}" + ThrottleCause.KEY_RANGE.metric_suffix, "Sum")
# Published every five minutes (Amazon DynamoDB Developer Guide, "DynamoDB metrics", read 2026-11). A datapoint is the
# capacity of 85 seconds or more before its label (recorded: radkawar/stackd 9dc356f, applicationautoscaling/
# dynamodb_maintenance, 2026-09).
_PROVISIONED = ("Provisioned{kind}CapacityUnits", "Maximum")


def metrics_per_call(minutes: int) -> int:
    """Return how many metrics of *minutes* minutes are requested in one call of GetMetricData."""
    return max(1, min(_QUERIES_PER_CALL, _DATAPOINTS_PER_PAGE // minutes))


def read_consumption(
    cloudwatch: CloudWatchClient,
    names: Iterable[TargetName],
    minutes: int,
    now: datetime,
    rate: DatapointRate | None = None,
) -> dict[TargetName, Observation]:
    """Read the units that each target consumed in the last whole *minutes* before *now*; one metric per target.

    With the *rate* of the client's region, it waits if too many datapoints were requested in the last seconds.
    """
    targets = list(names)
    if rate is not None:
        rate.wait_for(len(targets) * minutes)
    series = _read_metrics(cloudwatch, [_Query(name, *_CONSUMED) for name in targets], minutes, now)
    newest = _newest(now)
    return {name: Observation.of(newest, series[_Query(name, *_CONSUMED)]) for name in targets}


def with_throttles(
    cloudwatch: CloudWatchClient, seen: Mapping[TargetName, Observation], minutes: int, now: datetime
) -> dict[TargetName, Observation]:
    """Return the observations *seen* with the throttles of the last *minutes*.

    Throttled units are throttle events multiplied by the average units of a request. One metric is read per target, and
    three more for targets with throttles: throttles by two causes, and the number of samples of consumption.
    """
    events = _read_metrics(cloudwatch, [_Query(name, *_ANY_THROTTLE) for name in seen], minutes, now)
    throttling = [name for name in seen if any(events[_Query(name, *_ANY_THROTTLE)])]
    queries = [_Query(name, *metric) for name in throttling for metric in (_SAMPLES, _THROTTLED, _HOT_KEY)]
    series = _read_metrics(cloudwatch, queries, minutes, now)
    return dict(seen) | {name: _throttled(seen[name], name, series, minutes) for name in throttling}


def count_throttles(
    cloudwatch: CloudWatchClient, names: Iterable[TargetName], minutes: int, now: datetime
) -> dict[TargetName, int]:
    """Count the throttle events of each target in the last whole *minutes* before *now*; one metric per target."""
    targets = list(names)
    events = _read_metrics(cloudwatch, [_Query(name, *_ANY_THROTTLE) for name in targets], minutes, now)
    return {name: sum(filter(None, events[_Query(name, *_ANY_THROTTLE)])) for name in targets}


def with_past(
    cloudwatch: CloudWatchClient,
    seen: Mapping[TargetName, Observation],
    targets: Mapping[TargetName, Target],
    now: datetime,
    rate: DatapointRate | None = None,
) -> dict[TargetName, Observation]:
    """Return the observations *seen* with the burst and the regret that the last day justifies.

    Two metrics are read for each, and its consumption again if the observation has less than a day. Burst is learned
    from as many minutes as the observation has. A target whose provisioned capacity CloudWatch does not have is
    believed to have 60 seconds. *rate* is as for `read_consumption`.
    """
    shorter = [_Query(name, *_CONSUMED) for name, each in seen.items() if len(each.consumed_units) < MINUTES_PER_DAY]
    queries = [_Query(name, *metric) for name in seen for metric in (_THROTTLED, _PROVISIONED)]
    if rate is not None:
        rate.wait_for((len(shorter) + len(queries)) * MINUTES_PER_DAY)
    series = _read_metrics(cloudwatch, [*shorter, *queries], MINUTES_PER_DAY, now)
    first = _newest(now) - MINUTES_PER_DAY + 1
    observed = {}
    for name, observation in seen.items():
        consumed = series.get(_Query(name, *_CONSUMED)) or observation.consumed_units[-MINUTES_PER_DAY:]
        throttled, provisioned = (series[_Query(name, *metric)] for metric in (_THROTTLED, _PROVISIONED))
        planned = planned_by_minute(targets[name], first, MINUTES_PER_DAY)
        past = past_of(first, consumed, [count or 0 for count in throttled], provisioned, planned)
        observed[name] = replace(
            observation,
            burst_seconds=past.burst_seconds(len(observation.consumed_units)),
            regret=past.regret(MINUTES_PER_DAY),
        )
    return observed


def _throttled(
    observation: Observation, name: TargetName, series: Mapping[_Query, tuple[int | None, ...]], minutes: int
) -> Observation:
    events, samples = series[_Query(name, *_THROTTLED)], series[_Query(name, *_SAMPLES)]
    recent = observation.consumed_units[-minutes:]
    throttled = tuple(
        (count or 0) * _per_request(units, number) for count, units, number in zip(events, recent, samples, strict=True)
    )
    hot_key_events = sum(count or 0 for count in series[_Query(name, *_HOT_KEY)])
    return replace(observation, throttled_units=throttled, hot_key_events=hot_key_events)


def _per_request(units: int | None, samples: int | None) -> int:
    """Average units of a request, rounded up; 1 if CloudWatch has no consumption or no samples for the minute.

    A minute has a sample for each request, and one of 0: a single request of 5 units has two samples (recorded:
    radkawar/stackd 9dc356f, dynamodb/capacity_metrics, 2026-09). Some minutes lack the sample of 0. Asking for the
    smallest sample as well would tell these, for another metric; of many requests one more or less makes no difference.
    """
    return max(1, -(-units // max(1, samples - 1))) if units and samples else 1


def _newest(now: datetime) -> int:
    """The last whole minute before *now*, in minutes since 1970; CloudWatch may not have its datapoint yet."""
    return int(now.timestamp()) // 60 - 1


def _read_metrics(
    cloudwatch: CloudWatchClient, queries: Sequence[_Query], minutes: int, now: datetime
) -> dict[_Query, tuple[int | None, ...]]:
    """Return the values of the last whole *minutes* before *now*, oldest first; `None` where there is no datapoint."""
    series: dict[_Query, tuple[int | None, ...]] = {}
    after = _newest(now) + 1
    first, end = after - minutes, datetime.fromtimestamp(after * 60, UTC)
    per_call = metrics_per_call(minutes)
    for start in range(0, len(queries), per_call):
        batch = queries[start : start + per_call]
        documents: Any = [query.document(number) for number, query in enumerate(batch)]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=documents, StartTime=end - minutes * _MINUTE, EndTime=end, ScanBy="TimestampAscending"
        )
        rows: list[list[int | None]] = [[None] * minutes for _ in batch]
        for page in pages:
            for result in page["MetricDataResults"]:
                row = rows[int(result["Id"][1:])]
                seconds: Any = result["Timestamps"]
                for at, value in zip(seconds, result["Values"], strict=False):
                    place = int(at) // 60 - first
                    # NaN fails this comparison, so it counts as no datapoint
                    if value >= 0 and 0 <= place < minutes:
                        row[place] = ceil(value)
        series |= zip(batch, map(tuple, rows), strict=True)
    return series


_DIMENSION_OF_METRIC = {f"Consumed{dimension.title()}CapacityUnits": dimension for dimension in Dimension}
# DescribeAlarms accepts up to 100 names (Amazon CloudWatch API Reference, read 2026-11)
_ALARMS_PER_CALL = 100


@dataclass(frozen=True, slots=True)
class TargetAlarm:
    """One alarm of the scaler, as DescribeAlarms returns it.

    Attributes:
        is_in_alarm: Whether the alarm is in state ALARM.
        threshold: Units consumed in a minute above which the alarm goes off.
        document: The alarm's entry in the answer of DescribeAlarms.
    """

    is_in_alarm: bool
    threshold: int
    document: dict[str, Any]

    @property
    def functions(self) -> tuple[str, ...]:
        """The ARNs of the Lambda functions that the alarm starts."""
        return tuple(arn for arn in self.document.get("AlarmActions", ()) if ":lambda:" in arn)


def read_alarms(
    cloudwatch: CloudWatchClient, names: Iterable[TargetName] | None = None
) -> dict[TargetName, TargetAlarm]:
    """Read the alarms of the targets *names*, by default the alarms of all scalers in the client's region."""
    paginator = cloudwatch.get_paginator("describe_alarms")
    if names is None:
        return dict(_read(paginator.paginate(AlarmNamePrefix=ALARM_PREFIX, AlarmTypes=["MetricAlarm"])))
    wanted = [name.alarm for name in names]
    found: dict[TargetName, TargetAlarm] = {}
    for start in range(0, len(wanted), _ALARMS_PER_CALL):
        some = wanted[start : start + _ALARMS_PER_CALL]
        found |= _read(paginator.paginate(AlarmNames=some, AlarmTypes=["MetricAlarm"]))
    return found


def target_of_event(event: dict[str, Any]) -> TargetName | None:
    """Return the target of the alarm that started the function, `None` for any other event."""
    match event:
        case {"alarmData": {"configuration": {"metrics": [{"metricStat": {"metric": {**metric}}}, *_]}}}:
            name, dimensions = metric.get("name"), metric.get("dimensions")
            if isinstance(name, str) and isinstance(dimensions, dict):
                return _target(name, {each: value for each, value in dimensions.items() if isinstance(value, str)})
    return None


def move_threshold(cloudwatch: CloudWatchClient, seen: TargetAlarm, threshold: int) -> None:
    """Set the threshold of the alarm *seen*, in units consumed in a minute; its other properties stay the same.

    PutMetricAlarm replaces the whole alarm (Amazon CloudWatch API Reference, read 2026-11), so the request repeats all
    members that the client's boto3 knows. An older boto3 loses newer ones.

    An alarm that was deleted since it was read is not changed: PutMetricAlarm would create it again, and nothing would
    delete it, as its stack no longer has it.
    """
    if not cloudwatch.describe_alarms(AlarmNames=[seen.document["AlarmName"]])["MetricAlarms"]:
        return
    request: Any = cloudwatch.meta.service_model.operation_model("PutMetricAlarm").input_shape
    # an empty list or text may be an answer, and not a request
    properties: Any = {
        name: value
        for name, value in seen.document.items()
        if name in request.members and value not in (None, [], {}, "")
    }
    cloudwatch.put_metric_alarm(**properties | {"Threshold": float(threshold)})


def _read(pages: Any) -> Iterator[tuple[TargetName, TargetAlarm]]:
    for page in pages:
        for alarm in page["MetricAlarms"]:
            dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions", [])}
            name = _target(alarm.get("MetricName"), dimensions)
            if name is not None and alarm["AlarmName"] == name.alarm:
                yield name, TargetAlarm(alarm["StateValue"] == "ALARM", int(alarm["Threshold"]), alarm)


def _target(metric: str | None, dimensions: dict[str, str]) -> TargetName | None:
    dimension = _DIMENSION_OF_METRIC.get(metric or "")
    table = dimensions.get("TableName")
    if dimension is None or table is None:
        return None
    return TargetName(table, dimensions.get("GlobalSecondaryIndexName"), dimension)
