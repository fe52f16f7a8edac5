"""Alarms on a table's capacity: throttles for lack of capacity, hot keys, and demand near the ceiling."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.argument_types import require_topic
from cdk_highwater.high_water_table import HighWaterTable
from cdk_highwater.manage_capacity import capacity_of
from cdk_highwater.table_capacity import TableCapacity
from cdk_highwater.target_metrics import TargetMetrics, ThrottleCause
from highwater.core import Target

_CEILING_PERCENT = 90


class CapacityAlarms(Construct):
    """Three alarms for each target of a table and its indexes; docs/operations.md explains how to respond to each.

    - Throttled: requests were throttled because provisioned capacity was too low, in five of the last 15 minutes.
    - HotKey: a single partition throttled requests in three of the last five minutes. More capacity does not help.
    - NearCeiling: consumption was above 90 % of the highest ceiling declared in ten of the last 15 minutes, so auto
      scaling may soon reach the ceiling. Not for fixed capacity.

    Each alarm costs 0.10 USD a month (Amazon CloudWatch pricing, us-east-1, read 2026-11).

    Args:
        scope: Parent construct, in a stack of the table's region.
        id: Unique within *scope*.
        table: A `HighWaterTable` or the result of `manage_capacity`.
        topic: The SNS topic for notifications. By default the alarms only show in CloudWatch.

    Raises:
        TypeError: If *table* has no managed capacity, or *topic* is no topic.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: HighWaterTable | TableCapacity,
        topic: sns.ITopic | None = None,
    ) -> None:
        require_topic(topic)
        capacity = capacity_of(table)
        super().__init__(scope, id)
        self._topic = topic
        self._alarms: list[cloudwatch.Alarm] = []
        for target in capacity.plan.targets():
            self._watch(capacity, target)

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms, for actions of your own."""
        return tuple(self._alarms)

    def _watch(self, capacity: TableCapacity, target: Target) -> None:
        kind = target.dimension.title()
        where = kind if target.index is None else f"{target.index}-{kind}"
        metrics = TargetMetrics(capacity.subject.name, target, capacity.subject.region)
        self._alarm(
            f"{where}Throttled",
            metrics.throttled_or_zero(ThrottleCause.PROVISIONED),
            f"{target.label}: requests are throttled because provisioned capacity is too low",
            minutes=(5, 15),
        )
        self._alarm(
            f"{where}HotKey",
            metrics.throttled_or_zero(ThrottleCause.KEY_RANGE),
            f"{target.label}: a single partition throttles requests; more capacity does not help, spread the key or "
            "cache it",
            minutes=(3, 5),
        )
        if target.capacity.is_autoscaled and not target.capacity.is_deploy_time:
            ceilings = [
                target.capacity.max_capacity,
                *(window.max for window in target.windows if window.max is not None),
            ]
            ceiling = max(int(units) for units in ceilings)
            self._alarm(
                f"{where}NearCeiling",
                metrics.consumed(),
                f"{target.label}: consumption is above {_CEILING_PERCENT} % of the ceiling, {ceiling:,}",
                minutes=(10, 15),
                threshold=ceiling * 60 * _CEILING_PERCENT // 100,
            )

    def _alarm(
        self, id: str, metric: cloudwatch.IMetric, meaning: str, *, minutes: tuple[int, int], threshold: int = 0
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=threshold,
            datapoints_to_alarm=minutes[0],
            evaluation_periods=minutes[1],
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"Highwater: {meaning}",
        )
        if self._topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
        self._alarms.append(alarm)
