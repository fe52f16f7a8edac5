"""The metrics that a scaler's function puts, by name."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

_NAMESPACE = "Highwater"


class ScalerMetrics:
    """The metrics of a scaler, each summed over five minutes, in which each target is looked at once."""

    def metric_floors_set(self) -> cloudwatch.Metric:
        """Floors that the scaler set."""
        return put_metric("FloorsSet")

    def metric_capacities_set(self) -> cloudwatch.Metric:
        """Capacities that the scaler set in DIRECT mode, each a call for a table or index."""
        return put_metric("CapacitiesSet")

    def metric_at_ceiling(self) -> cloudwatch.Metric:
        """Targets for which demand asks for more than their ceiling."""
        return put_metric("AtCeiling")

    def metric_hot_keys(self) -> cloudwatch.Metric:
        """Targets of which a single key throttles, which no capacity helps."""
        return put_metric("HotKeys")

    def metric_decrease_budget_exhausted(self) -> cloudwatch.Metric:
        """Targets that cannot be lowered for now, as the day's decreases are used."""
        return put_metric("DecreaseBudgetExhausted")

    def metric_paused(self) -> cloudwatch.Metric:
        """Targets whose scaling is suspended."""
        return put_metric("Paused")

    def metric_tables_failed(self) -> cloudwatch.Metric:
        """Tables that could not be scaled."""
        return put_metric("TablesFailed")

    def metric_unreadable_plans(self) -> cloudwatch.Metric:
        """Plans that could not be read."""
        return put_metric("UnreadablePlans")

    def metric_metrics_missing(self) -> cloudwatch.Metric:
        """Targets whose metrics CloudWatch did not answer."""
        return put_metric("MetricsMissing")

    def metric_cheaper_on_demand(self) -> cloudwatch.Metric:
        """Tables whose last day would have cost less on demand."""
        return put_metric("CheaperOnDemand")


def put_metric(name: str) -> cloudwatch.Metric:
    """A metric that the function puts, summed over five minutes."""
    return cloudwatch.Metric(
        namespace=_NAMESPACE,
        metric_name=name,
        dimensions_map={"service": "scaler"},
        period=cdk.Duration.minutes(5),
        statistic="Sum",
    )
