"""The CloudWatch metrics of the scaler."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

_NAMESPACE = "Highwater"


class ScalerMetrics:
    """The metrics of a scaler, each summed over five minutes, the period in which each target is reviewed once."""

    @property
    def scaler_name(self) -> str:
        """The scaler's name, unique in its account and region."""
        raise NotImplementedError

    def metric_floors_set(self) -> cloudwatch.Metric:
        """Floors that the scaler set."""
        return put_metric(self.scaler_name, "FloorsSet")

    def metric_capacities_set(self) -> cloudwatch.Metric:
        """Calls in DIRECT mode that set the capacity of a table or index."""
        return put_metric(self.scaler_name, "CapacitiesSet")

    def metric_at_ceiling(self) -> cloudwatch.Metric:
        """Targets whose demand is above their ceiling."""
        return put_metric(self.scaler_name, "AtCeiling")

    def metric_hot_keys(self) -> cloudwatch.Metric:
        """Targets with throttles of a single key, for which more capacity does not help."""
        return put_metric(self.scaler_name, "HotKeys")

    def metric_decrease_budget_exhausted(self) -> cloudwatch.Metric:
        """Targets that cannot be lowered now because the decreases of the day are used."""
        return put_metric(self.scaler_name, "DecreaseBudgetExhausted")

    def metric_paused(self) -> cloudwatch.Metric:
        """Targets whose scaling is suspended."""
        return put_metric(self.scaler_name, "Paused")

    def metric_tables_failed(self) -> cloudwatch.Metric:
        """Tables that could not be scaled."""
        return put_metric(self.scaler_name, "TablesFailed")

    def metric_unreadable_plans(self) -> cloudwatch.Metric:
        """Plans that could not be read."""
        return put_metric(self.scaler_name, "UnreadablePlans")

    def metric_metrics_missing(self) -> cloudwatch.Metric:
        """Targets for which CloudWatch returned no metrics."""
        return put_metric(self.scaler_name, "MetricsMissing")

    def metric_cheaper_on_demand(self) -> cloudwatch.Metric:
        """Tables whose consumption of the last day would have cost less on demand."""
        return put_metric(self.scaler_name, "CheaperOnDemand")


def put_metric(scaler: str, name: str) -> cloudwatch.Metric:
    """Return the metric *name* of *scaler*, summed over five minutes."""
    return cloudwatch.Metric(
        namespace=_NAMESPACE,
        metric_name=name,
        dimensions_map={"service": scaler},
        period=cdk.Duration.minutes(5),
        statistic="Sum",
    )
