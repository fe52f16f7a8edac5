"""The CloudWatch metrics of one target: consumed and provisioned units, and throttle events by cause."""

from __future__ import annotations

from enum import StrEnum

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from highwater.core import Target

_MINUTE = cdk.Duration.minutes(1)


class ThrottleCause(StrEnum):
    """Causes by which CloudWatch counts throttle events. The values are parts of the metric names.

    Source: Amazon DynamoDB Developer Guide, "DynamoDB metrics and dimensions", read 2026-11.
    """

    PROVISIONED = "ProvisionedThroughput"
    KEY_RANGE = "KeyRangeThroughput"
    ACCOUNT = "AccountLimit"

    @property
    def label(self) -> str:
        """The cause in words, such as `key range`."""
        return self.name.lower().replace("_", " ")


class TargetMetrics:
    """The metrics of one dimension of a table or index; *region* is the table's region."""

    def __init__(self, table: str, target: Target, region: str) -> None:
        self._table = table
        self._target = target
        # an unresolved region is the stack's own, which is the default of a metric
        self._region = None if cdk.Token.is_unresolved(region) else region

    def consumed_per_second(self) -> cloudwatch.IMetric:
        """Return the consumed units per second, as averages over each minute."""
        return cloudwatch.MathExpression(
            expression="consumed / PERIOD(consumed)",
            using_metrics={"consumed": self.consumed()},
            label="consumed",
            period=_MINUTE,
        )

    def consumed(self) -> cloudwatch.Metric:
        """Return the units consumed in each minute."""
        return self._metric(f"Consumed{self._kind}CapacityUnits")

    def provisioned(self) -> cloudwatch.Metric:
        """Return the provisioned units per second."""
        return self._metric(f"Provisioned{self._kind}CapacityUnits", "Maximum")

    def throttled(self, cause: ThrottleCause) -> cloudwatch.Metric:
        """Return the throttle events of one cause in each minute."""
        return self._metric(f"{self._kind}{cause}ThrottleEvents")

    def throttled_or_zero(self, cause: ThrottleCause) -> cloudwatch.IMetric:
        """Return the throttle events of one cause in each minute, 0 in minutes without any.

        CloudWatch has no datapoint for such minutes, and may let alarms on DynamoDB's metrics ignore that: such an
        alarm would stay in ALARM for ever (Amazon CloudWatch API Reference, PutMetricAlarm, TreatMissingData, read
        2026-11).
        """
        return cloudwatch.MathExpression(
            expression="FILL(throttled, 0)",
            using_metrics={"throttled": self.throttled(cause)},
            label=f"throttled, {cause.label}",
            period=_MINUTE,
        )

    @property
    def _kind(self) -> str:
        return self._target.dimension.title()

    def _metric(self, name: str, statistic: str = "Sum") -> cloudwatch.Metric:
        dimensions = {"TableName": self._table}
        if self._target.index is not None:
            dimensions["GlobalSecondaryIndexName"] = self._target.index
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map=dimensions,
            statistic=statistic,
            period=_MINUTE,
            region=self._region,
        )
