"""CloudWatch metrics: of one target, and of the scaler."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.scaler.metrics import NAMESPACE, ScalerMetric
from highwater.core.throttles import ThrottleCause

_MINUTE = cdk.Duration.minutes(1)


# Those of a table with provisioned capacity
PROVISIONED_CAUSES = tuple(cause for cause in ThrottleCause if cause.is_of_provisioned)


class TargetMetrics:
    """The metrics of one dimension of a table or index; *region* is the table's region.

    Attributes:
        label: The index and dimension in words, such as `table write`.
    """

    def __init__(self, table: str, key: TargetKey, region: str) -> None:
        self._table = table
        self._index, self._dimension = key
        self.label = target_label(*key)
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
        return self._metric(f"{self._kind}{cause.metric_suffix}")

    def throttled_or_zero(self, cause: ThrottleCause) -> cloudwatch.IMetric:
        """Return the throttle events of one cause in each minute, 0 in minutes without any.

        CloudWatch has no datapoint for such minutes. An alarm that says how it treats them was followed (recorded:
        radkawar/stackd 9dc356f, cloudwatch/alarm_namespaces, 2026-09), although the Amazon CloudWatch API Reference,
        PutMetricAlarm, says that alarms on DynamoDB's metrics ignore it; one that ignores them would stay in ALARM.
        """
        return cloudwatch.MathExpression(
            expression="FILL(throttled, 0)",
            using_metrics={"throttled": self.throttled(cause)},
            label=f"throttled, {cause.label}",
            period=_MINUTE,
        )

    @property
    def _kind(self) -> str:
        return self._dimension.title()

    def _metric(self, name: str, statistic: str = "Sum") -> cloudwatch.Metric:
        dimensions = {"TableName": self._table}
        if self._index is not None:
            dimensions["GlobalSecondaryIndexName"] = self._index
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map=dimensions,
            statistic=statistic,
            period=_MINUTE,
            region=self._region,
        )


class ScalerMetrics:
    """The metrics of a scaler, each summed over five minutes, the period in which each target is reviewed once."""

    @property
    def scaler_name(self) -> str:
        """The scaler's name, unique in its account and region."""
        raise NotImplementedError

    def metric_floors_set(self) -> cloudwatch.Metric:
        """Floors that the scaler set."""
        return put_metric(self.scaler_name, ScalerMetric.FLOORS_SET)

    def metric_capacities_set(self) -> cloudwatch.Metric:
        """Calls in DIRECT mode that set the capacity of a table or index."""
        return put_metric(self.scaler_name, ScalerMetric.CAPACITIES_SET)

    def metric_at_ceiling(self) -> cloudwatch.Metric:
        """Targets whose demand is above their ceiling."""
        return put_metric(self.scaler_name, ScalerMetric.AT_CEILING)

    def metric_hot_keys(self) -> cloudwatch.Metric:
        """Targets with throttles of a single key, for which more capacity does not help."""
        return put_metric(self.scaler_name, ScalerMetric.HOT_KEYS)

    def metric_decrease_budget_exhausted(self) -> cloudwatch.Metric:
        """Targets that cannot be lowered now because the decreases of the day are used."""
        return put_metric(self.scaler_name, ScalerMetric.DECREASE_BUDGET_EXHAUSTED)

    def metric_costs_more_than_tracking(self) -> cloudwatch.Metric:
        """Targets that get no more than target tracking would give, as more was not worth its price for a day."""
        return put_metric(self.scaler_name, ScalerMetric.COSTS_MORE_THAN_TRACKING)

    def metric_paused(self) -> cloudwatch.Metric:
        """Targets whose scaling is suspended."""
        return put_metric(self.scaler_name, ScalerMetric.PAUSED)

    def metric_tables_failed(self) -> cloudwatch.Metric:
        """Tables that could not be scaled."""
        return put_metric(self.scaler_name, ScalerMetric.TABLES_FAILED)

    def metric_unreadable_plans(self) -> cloudwatch.Metric:
        """Plans that could not be read."""
        return put_metric(self.scaler_name, ScalerMetric.UNREADABLE_PLANS)

    def metric_unmanaged_indexes(self) -> cloudwatch.Metric:
        """Provisioned indexes that nothing scales, as the plans of their tables leave them out."""
        return put_metric(self.scaler_name, ScalerMetric.UNMANAGED_INDEXES)

    def metric_metrics_missing(self) -> cloudwatch.Metric:
        """Targets for which CloudWatch returned no metrics."""
        return put_metric(self.scaler_name, ScalerMetric.METRICS_MISSING)

    def metric_cheaper_on_demand(self) -> cloudwatch.Metric:
        """Tables whose consumption of the last day would have cost less on demand."""
        return put_metric(self.scaler_name, ScalerMetric.CHEAPER_ON_DEMAND)

    def metric_boosts_refused(self) -> cloudwatch.Metric:
        """Requests for boosts that a coordinator with this scaler refused."""
        return put_metric(self.scaler_name, ScalerMetric.BOOSTS_REFUSED)

    def metric_leases_missing(self) -> cloudwatch.Metric:
        """Reads of a coordinator's leases that failed."""
        return put_metric(self.scaler_name, ScalerMetric.LEASES_MISSING)

    def metric_pulses_disagree(self) -> cloudwatch.Metric:
        """Targets of which pulses tell far more than CloudWatch counts."""
        return put_metric(self.scaler_name, ScalerMetric.PULSES_DISAGREE)


def put_metric(scaler: str, name: str) -> cloudwatch.Metric:
    """Return the metric *name* of *scaler*, summed over five minutes."""
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"service": scaler},
        period=cdk.Duration.minutes(5),
        statistic="Sum",
    )
