"""The scaler's own CloudWatch alarms: reading their states and changing their thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.units import Dimension

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_DIMENSION_OF_METRIC = {f"Consumed{dimension.title()}CapacityUnits": dimension for dimension in Dimension}
# DescribeAlarms accepts up to 100 names (Amazon CloudWatch API Reference, read 2026-11)
_ALARMS_PER_CALL = 100
# The members of a DescribeAlarms result that PutMetricAlarm accepts
_ALARM_PROPERTIES = (
    "AlarmName",
    "AlarmDescription",
    "ActionsEnabled",
    "OKActions",
    "AlarmActions",
    "InsufficientDataActions",
    "MetricName",
    "Namespace",
    "Statistic",
    "Dimensions",
    "Period",
    "EvaluationPeriods",
    "DatapointsToAlarm",
    "Threshold",
    "ComparisonOperator",
    "TreatMissingData",
)


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
    metrics = event.get("alarmData", {}).get("configuration", {}).get("metrics") or [{}]
    metric = metrics[0].get("metricStat", {}).get("metric", {})
    return _target(metric.get("name"), metric.get("dimensions") or {})


def move_threshold(cloudwatch: CloudWatchClient, seen: TargetAlarm, threshold: int) -> None:
    """Set the threshold of the alarm *seen*, in units consumed in a minute; its other properties stay the same.

    An alarm that was deleted since it was seen is left alone: the call that changes an alarm would make it anew, and
    nothing would delete it any more after its stack.
    """
    if not cloudwatch.describe_alarms(AlarmNames=[seen.document["AlarmName"]])["MetricAlarms"]:
        return
    properties: Any = {name: seen.document[name] for name in _ALARM_PROPERTIES if seen.document.get(name) is not None}
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
