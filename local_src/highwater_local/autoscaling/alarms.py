"""The CloudWatch alarms of each target tracking policy, as DescribeAlarms returns them.

The emulated auto scaling does not use these alarms: it computes from the same numbers (`services/autoscaling.py`). They
are updated when a client requests alarms, so that moving the clock ahead by weeks costs nothing until then. Their
definitions were read from live accounts, 2026-10. A policy on a custom metric has two alarms, like policies of ECS
services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from highwater.core.tracking import LOW_ALARM_POINTS, TargetTracking
from highwater_local import ministack
from highwater_local.autoscaling.records import PolicyRecord, TargetKey
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.cloudwatch import Alarms, is_of_auto_scaling
from highwater_local.dynamodb.tables import Tables
from highwater_local.ministack import Document

_ABOVE, _BELOW = "GreaterThanThreshold", "LessThanThreshold"
_PROVISIONED_PERIODS: Final = 3
# in minutes, and in hundredths of the target
_OWN_HIGH_PERIODS: Final = 3
_OWN_LOW_PERIODS: Final = 15
_OWN_LOW_PERCENT: Final = 90


class TrackingAlarms:
    """Maintains the alarms of policies among MiniStack's alarms.

    Args:
        autoscaling: Returns Application Auto Scaling of the present account and region.
        tables: The tables that it scales.
        alarms: Evaluates the alarms.
    """

    def __init__(self, autoscaling: Callable[[], AutoScaling], tables: Tables, alarms: Alarms) -> None:
        self._autoscaling = autoscaling
        self._tables = tables
        self._alarms = alarms
        for query in ministack.ALARM_QUERIES:
            query.wrap(self._answer_query)

    def refresh(self) -> None:
        """Update the alarms of the present account and region: thresholds and states."""
        wanted = {document["AlarmName"]: document for document in self._documents()}
        for name, alarm in list(ministack.alarms_by_name().items()):
            if is_of_auto_scaling(alarm) and name not in wanted:
                del ministack.alarms_by_name()[name]
        for name, document in wanted.items():
            known = ministack.alarms_by_name().setdefault(name, _new(document))
            known |= document
            self._alarms.judge(known)

    def _answer_query(self, own: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.refresh()
        return own(*arguments, **options)

    def _documents(self) -> Iterator[Document]:
        for target in self._autoscaling().targets.values():
            units = self._tables.capacity(target.key)
            for policy in target.policies.values():
                if (own := policy.own_metric) is not None:
                    shapes, watched = _own_shapes(policy, own), list(own.get("Dimensions") or [])
                elif (rules := policy.rules) is not None and units is not None:
                    shapes, watched = _shapes(target.key, rules, units), _dimensions(target.key)
                else:
                    continue
                yield from _documents_of(policy, shapes, watched)


def _documents_of(policy: PolicyRecord, shapes: list[Document], dimensions: list[Document]) -> Iterator[Document]:
    for told, shape in zip(policy.alarms, shapes, strict=True):
        yield {
            "AlarmName": told["AlarmName"],
            "AlarmArn": told["AlarmARN"],
            "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {policy.arn}.",
            "AlarmActions": [policy.arn],
            "Dimensions": dimensions,
        } | shape


def _shapes(key: TargetKey, rules: TargetTracking, units: int) -> list[Document]:
    kind = key.dimension.title()
    consumed, provisioned = f"Consumed{kind}CapacityUnits", f"Provisioned{kind}CapacityUnits"
    high, low = rules.target_percent, max(0, rules.target_percent - LOW_ALARM_POINTS)
    return [
        _shape(consumed, "Sum", 60, rules.high_periods, _ABOVE, high * units * 60 / 100),
        _shape(consumed, "Sum", 60, rules.low_periods, _BELOW, low * units * 60 / 100),
        _shape(provisioned, "Average", 300, _PROVISIONED_PERIODS, _ABOVE, units),
        _shape(provisioned, "Average", 300, _PROVISIONED_PERIODS, _BELOW, units),
    ]


def _own_shapes(policy: PolicyRecord, metric: Document) -> list[Document]:
    """Return the alarms on a policy's custom metric; a metric computed from several metrics has no name."""
    name, statistic = metric.get("MetricName"), metric.get("Statistic")
    about = {"Namespace": metric.get("Namespace"), "Unit": metric.get("Unit")}
    target = float(policy.configuration["TargetValue"])
    return [
        _shape(name, statistic, 60, _OWN_HIGH_PERIODS, _ABOVE, target) | about,
        _shape(name, statistic, 60, _OWN_LOW_PERIODS, _BELOW, target * _OWN_LOW_PERCENT / 100) | about,
    ]


def _shape(
    metric: str | None, statistic: str | None, period: int, periods: int, comparison: str, threshold: float
) -> Document:
    return {
        "Namespace": "AWS/DynamoDB",
        "MetricName": metric,
        "Statistic": statistic,
        "Period": period,
        "EvaluationPeriods": periods,
        "ComparisonOperator": comparison,
        "Threshold": float(threshold),
    }


def _dimensions(key: TargetKey) -> list[Document]:
    table = [{"Name": "TableName", "Value": key.table}]
    return table if key.index is None else [*table, {"Name": "GlobalSecondaryIndexName", "Value": key.index}]


def _new(document: Document) -> Document:
    return {
        "StateValue": "INSUFFICIENT_DATA",
        "StateReason": "Unchecked: Initial alarm creation",
        "ActionsEnabled": True,
        "OKActions": [],
        "InsufficientDataActions": [],
        "TreatMissingData": "missing",
        "ExtendedStatistic": None,
        "Unit": None,
    } | document
