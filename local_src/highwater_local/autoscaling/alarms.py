"""The CloudWatch alarms of target tracking policies: what they compare, by which name, and who they act for.

Their definitions were read from live accounts, 2026-10, and recorded (radkawar/stackd 9dc356f,
applicationautoscaling/dynamodb_maintenance and dynamodb_metrics): neither a treatment of missing data nor datapoints to
alarm, and an action that names the policy by an ARN of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from highwater.core.tracking import LOW_ALARM_POINTS, TargetTracking
from highwater_local import ministack
from highwater_local.autoscaling.records import AlarmKind, PolicyRecord, TargetKey
from highwater_local.cloudwatch import UNCHECKED
from highwater_local.ministack import Document

_ABOVE, _BELOW = "GreaterThanThreshold", "LessThanThreshold"
_PROVISIONED_PERIODS: Final = 3


def kinds_of(policy: PolicyRecord) -> list[AlarmKind]:
    """Return the alarms that a policy has."""
    return [kind for kind in AlarmKind if kind is not AlarmKind.LOW or not policy.rules.disable_scale_in]


def put_alarms(policy: PolicyRecord, key: TargetKey, now: datetime) -> None:
    """Put the policy's alarms, under their names, into CloudWatch of the present account and region."""
    shapes = _shapes(key, policy.rules, policy.units)
    action = f"{policy.arn}:createdBy/{policy.created_by}"
    for kind, told in policy.alarms.items():
        at = int(now.timestamp())
        alarm = {
            "AlarmName": told["AlarmName"],
            "AlarmArn": told["AlarmARN"],
            "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {action}.",
            "AlarmActions": [action],
            "OKActions": [],
            "InsufficientDataActions": [],
            "ActionsEnabled": True,
            "StateValue": "INSUFFICIENT_DATA",
            "StateReason": UNCHECKED,
            "StateUpdatedTimestamp": at,
            "AlarmConfigurationUpdatedTimestamp": at,
        } | shapes[kind]
        ministack.alarms_by_name()[alarm["AlarmName"]] = alarm
        ministack.judge_alarm(alarm)


def delete_alarms(alarms: Iterable[dict[str, str]]) -> None:
    """Delete alarms of the present account and region."""
    for told in alarms:
        ministack.alarms_by_name().pop(told["AlarmName"], None)


def _shapes(key: TargetKey, rules: TargetTracking, units: int) -> dict[AlarmKind, Document]:
    kind = key.dimension.title()
    consumed, provisioned = f"Consumed{kind}CapacityUnits", f"Provisioned{kind}CapacityUnits"
    high, low = rules.target_percent, max(0, rules.target_percent - LOW_ALARM_POINTS)
    shapes = {
        AlarmKind.HIGH: _shape(consumed, "Sum", 60, rules.high_periods, _ABOVE, high * units * 60 / 100),
        AlarmKind.LOW: _shape(consumed, "Sum", 60, rules.low_periods, _BELOW, low * units * 60 / 100),
        AlarmKind.PROVISIONED_HIGH: _shape(provisioned, "Average", 300, _PROVISIONED_PERIODS, _ABOVE, units),
        AlarmKind.PROVISIONED_LOW: _shape(provisioned, "Average", 300, _PROVISIONED_PERIODS, _BELOW, units),
    }
    dimensions = list(_dimensions(key))
    return {kind: shape | {"Dimensions": dimensions} for kind, shape in shapes.items()}


def _shape(metric: str, statistic: str, period: int, periods: int, comparison: str, threshold: float) -> Document:
    return {
        "Namespace": "AWS/DynamoDB",
        "MetricName": metric,
        "Statistic": statistic,
        "Period": period,
        "EvaluationPeriods": periods,
        "ComparisonOperator": comparison,
        "Threshold": float(threshold),
    }


def _dimensions(key: TargetKey) -> Iterator[Document]:
    if key.index is not None:
        yield {"Name": "GlobalSecondaryIndexName", "Value": key.index}
    yield {"Name": "TableName", "Value": key.table}
