"""The scaler's own alarms: which are in ALARM, and moving their thresholds with the capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.units import Dimension

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_KINDS = {f"Consumed{dimension.title()}CapacityUnits": dimension for dimension in Dimension}
# What PutMetricAlarm takes of what DescribeAlarms gives
_KEPT = (
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
    """One alarm as CloudWatch has it."""

    is_in_alarm: bool
    threshold: int
    document: dict[str, Any]


def read_alarms(cloudwatch: CloudWatchClient) -> dict[TargetName, TargetAlarm]:
    """Every alarm of the scaler, by its target."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=ALARM_PREFIX, AlarmTypes=["MetricAlarm"]
    )
    return dict(_read(pages))


def target_of_event(event: dict[str, Any]) -> TargetName | None:
    """The target of the alarm that started the function, `None` for any other event."""
    metrics = event.get("alarmData", {}).get("configuration", {}).get("metrics") or [{}]
    metric = metrics[0].get("metricStat", {}).get("metric", {})
    return _target(metric.get("name"), metric.get("dimensions") or {})


def move_threshold(cloudwatch: CloudWatchClient, seen: TargetAlarm, threshold: int) -> None:
    """Put the alarm again as it is, with another threshold."""
    kept: Any = {member: seen.document[member] for member in _KEPT if seen.document.get(member) is not None}
    cloudwatch.put_metric_alarm(**kept | {"Threshold": float(threshold)})


def _read(pages: Any) -> Iterator[tuple[TargetName, TargetAlarm]]:
    for page in pages:
        for alarm in page["MetricAlarms"]:
            dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions", [])}
            name = _target(alarm.get("MetricName"), dimensions)
            if name is not None and alarm["AlarmName"] == name.alarm:
                yield name, TargetAlarm(alarm["StateValue"] == "ALARM", int(alarm["Threshold"]), alarm)


def _target(metric: str | None, dimensions: dict[str, str]) -> TargetName | None:
    dimension = _KINDS.get(metric or "")
    table = dimensions.get("TableName")
    if dimension is None or table is None:
        return None
    return TargetName(table, dimensions.get("GlobalSecondaryIndexName"), dimension)
