"""Alarms on a table's capacity, and on the scaler itself."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.scaler.metrics import TargetMetrics, put_metric
from cdk_highwater.scaler.scaler_function import ScalerFunction
from cdk_highwater.support.arguments import require_topic
from cdk_highwater.table.capacity import TableCapacity
from cdk_highwater.table.manage import capacity_of
from cdk_highwater.table.on_demand import OnDemandTable
from cdk_highwater.table.table import HighWaterTable
from highwater.core import Target
from highwater.core.plan.plan import TargetKey
from highwater.core.scaler.metrics import ScalerMetric
from highwater.core.throttles import ThrottleCause

_CEILING_PERCENT = 90


def make_alarm(
    scope: Construct,
    topic: sns.ITopic | None,
    id: str,
    metric: cloudwatch.IMetric,
    meaning: str,
    *,
    threshold: int = 1,
    periods: int = 1,
    **more: Any,
) -> cloudwatch.Alarm:
    """Create an alarm below *scope* that goes off when *metric* reaches *threshold* in so many periods in a row.

    A period without a value counts as one below the threshold. *more* are other properties of the alarm, or others in
    place of these.
    """
    properties = {
        "comparison_operator": cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        "treat_missing_data": cloudwatch.TreatMissingData.NOT_BREACHING,
    }
    alarm = cloudwatch.Alarm(
        scope,
        id,
        metric=metric,
        threshold=threshold,
        evaluation_periods=periods,
        alarm_description=f"Highwater: {meaning}",
        **(properties | more),
    )
    if topic is not None:
        alarm.add_alarm_action(actions.SnsAction(topic))
    return alarm


class CapacityAlarms(Construct):
    """Three alarms for each target of a table and its indexes; docs/operations.md explains how to respond to each.

    - Throttled: requests were throttled because provisioned capacity was too low, in five of the last 15 minutes.
    - HotKey: a single partition throttled requests in three of the last five minutes. More capacity does not help.
    - NearCeiling: consumption was above 90 % of the highest ceiling declared in ten of the last 15 minutes, so auto
      scaling may soon reach the ceiling. Not for fixed capacity.

    For each dimension of an `OnDemandTable` and its indexes: HotKey, and where it has a maximum:

    - AtMaximum: requests were throttled because of the maximum, in five of the last 15 minutes.
    - NearMaximum: consumption was above 90 % of the maximum in ten of the last 15 minutes.

    Each alarm costs 0.10 USD a month (Amazon CloudWatch pricing, us-east-1, read 2026-11).

    Args:
        scope: Parent construct, in a stack of the table's region.
        id: Unique within *scope*.
        table: A `HighWaterTable`, the result of `manage_capacity`, or an `OnDemandTable` after its indexes were added.
        topic: The SNS topic for notifications. By default the alarms only show in CloudWatch.

    Raises:
        TypeError: If *table* has no managed capacity, or *topic* is not a topic.

    Example:
        ```python
        on_call = sns.Topic(stack, "OnCall")
        CapacityAlarms(stack, "OrdersAlarms", table=orders, topic=on_call)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: HighWaterTable | TableCapacity | OnDemandTable,
        topic: sns.ITopic | None = None,
    ) -> None:
        require_topic(topic)
        watched = table if isinstance(table, OnDemandTable) else capacity_of(table)
        super().__init__(scope, id)
        self._topic = topic
        self._alarms: list[cloudwatch.Alarm] = []
        if isinstance(watched, OnDemandTable):
            for key in watched.target_keys:
                self._watch_on_demand(watched, key)
        else:
            for target in watched.plan.targets():
                self._watch(watched, target)

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms, for actions of your own."""
        return tuple(self._alarms)

    def _watch(self, capacity: TableCapacity, target: Target) -> None:
        metrics = TargetMetrics(capacity.subject.name, target.key, capacity.subject.region)
        self._alarm(
            f"{_place(target.key)}Throttled",
            metrics.throttled_or_zero(ThrottleCause.PROVISIONED),
            f"{target.label}: requests are throttled because provisioned capacity is too low",
            minutes=(5, 15),
        )
        self._watch_keys(metrics, target.key)
        if target.capacity.is_autoscaled and not target.capacity.is_deploy_time:
            ceilings = [
                target.capacity.max_capacity,
                *(window.max for window in target.windows if window.max is not None),
            ]
            self._watch_limit(metrics, target.key, max(int(units) for units in ceilings), "Ceiling")

    def _watch_on_demand(self, table: OnDemandTable, key: TargetKey) -> None:
        metrics = TargetMetrics(table.table_name, key, cdk.Stack.of(table).region)
        self._watch_keys(metrics, key)
        most = table.maximum.of(key[1])
        if most is not None:
            self._alarm(
                f"{_place(key)}AtMaximum",
                metrics.throttled_or_zero(ThrottleCause.MAX_ON_DEMAND),
                f"{metrics.label}: requests are throttled because of the maximum of {most:,} units/s",
                minutes=(5, 15),
            )
            self._watch_limit(metrics, key, most, "Maximum")

    def _watch_keys(self, metrics: TargetMetrics, key: TargetKey) -> None:
        self._alarm(
            f"{_place(key)}HotKey",
            metrics.throttled_or_zero(ThrottleCause.KEY_RANGE),
            f"{metrics.label}: a single partition throttles requests; more capacity does not help, spread the key or "
            "cache it",
            minutes=(3, 5),
        )

    def _watch_limit(self, metrics: TargetMetrics, key: TargetKey, units: int, limit: str) -> None:
        self._alarm(
            f"{_place(key)}Near{limit}",
            metrics.consumed(),
            f"{metrics.label}: consumption is above {_CEILING_PERCENT} % of the {limit.lower()}, {units:,}",
            minutes=(10, 15),
            threshold=units * 60 * _CEILING_PERCENT // 100,
        )

    def _alarm(
        self, id: str, metric: cloudwatch.IMetric, meaning: str, *, minutes: tuple[int, int], threshold: int = 0
    ) -> None:
        alarm = make_alarm(
            self,
            self._topic,
            id,
            metric,
            meaning,
            threshold=threshold,
            periods=minutes[1],
            datapoints_to_alarm=minutes[0],
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        )
        self._alarms.append(alarm)


def _place(key: TargetKey) -> str:
    index, dimension = key
    return dimension.title() if index is None else f"{index}-{dimension.title()}"


_DAY_MINUTES = 1440
# by when a new function has run for the first time, at the latest
_FIRST_RUN_MINUTES = 60


# what a value above zero means, and for how many minutes it may last
_MEANINGS: Final = {
    ScalerMetric.TABLES_FAILED: ("tables could not be scaled; the function's log names them", 15),
    ScalerMetric.UNREADABLE_PLANS: (
        "a plan in SSM cannot be read: deploy constructs and function of one version",
        15,
    ),
    ScalerMetric.METRICS_MISSING: ("CloudWatch returned no metrics: floors rise to their plans but do not fall", 15),
    ScalerMetric.AT_CEILING: ("demand is above a ceiling: raise max_capacity, or find the source of the demand", 5),
    ScalerMetric.HOT_KEYS: ("a single key is throttled: more capacity does not help, spread the key or cache it", 5),
    ScalerMetric.DECREASE_BUDGET_EXHAUSTED: ("the day's decreases are used: capacity stays higher than needed", 60),
    ScalerMetric.UNMANAGED_INDEXES: (
        "nothing scales an index that its table's plan leaves out: the log names it",
        60,
    ),
    ScalerMetric.PAUSED: (
        "scaling of a target has been suspended for a day: resume it with highwater resume",
        _DAY_MINUTES,
    ),
    ScalerMetric.LEASES_MISSING: (
        "the lease table did not answer: boosts may not count, and floors do not fall",
        15,
    ),
    ScalerMetric.BOOSTS_REFUSED: ("boosts were refused: the function's log says whose and why", 5),
    ScalerMetric.PULSES_DISAGREE: (
        "pulses tell of far more than CloudWatch counts: the log names the target, find the client",
        15,
    ),
}
# of a function that does not follow demand, of a coordinator, and where there are pulses
_OF_FLOORS: Final = (ScalerMetric.TABLES_FAILED, ScalerMetric.UNREADABLE_PLANS)
_OF_BOOSTS: Final = (ScalerMetric.LEASES_MISSING, ScalerMetric.BOOSTS_REFUSED)
_OF_PULSES: Final = (ScalerMetric.PULSES_DISAGREE,)
_OF_DEMAND: Final = tuple(metric for metric in _MEANINGS if metric not in (*_OF_BOOSTS, *_OF_PULSES))


class ScalerAlarms(Construct):
    """The alarms of a `ThrottleAwareScaler`; docs/operations.md explains how to respond to each.

    The function of a coordinator without scaler does not follow demand: it has fewer metrics, and so fewer alarms.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        function: ScalerFunction,
        topic: sns.ITopic | None,
        follows_demand: bool = True,
    ) -> None:
        require_topic(topic)
        super().__init__(scope, id)
        self._alarm = partial(make_alarm, self, topic)
        self._scaler_name = function.name
        minute = cdk.Duration.minutes(1)
        lambda_function = function.function
        self._alarm(
            "Errors",
            lambda_function.metric_errors(period=cdk.Duration.minutes(5), statistic="Sum"),
            "the scaler failed; its log shows the error",
            periods=3,
        )
        self._alarm(
            "Throttles",
            lambda_function.metric_throttles(period=cdk.Duration.minutes(5), statistic="Sum"),
            "Lambda throttles the scaler: the account's concurrency, or what is reserved for it, is used up",
            periods=2,
        )
        self._add_heartbeat(lambda_function, minute)
        self._alarm(
            "DeadLetters",
            function.dead_letters.metric_approximate_number_of_messages_visible(period=minute, statistic="Maximum"),
            "tables failed three times, or events waited five minutes for Lambda; they are in the dead-letter queue",
        )
        for metric in _OF_DEMAND if follows_demand else _OF_FLOORS:
            self._watch(metric)

    def watch_boosts(self) -> None:
        """Add the alarms of a coordinator: on its lease table, and on boosts that are refused."""
        for metric in _OF_BOOSTS:
            self._watch(metric)

    def watch_pulses(self) -> None:
        """Add the alarm on clients whose pulses are far from what CloudWatch counts."""
        for metric in _OF_PULSES:
            self._watch(metric)

    def _watch(self, name: ScalerMetric) -> None:
        meaning, minutes = _MEANINGS[name]
        metric, periods = put_metric(self._scaler_name, name), max(1, minutes // 5)
        if minutes == _DAY_MINUTES:
            metric, periods = metric.with_(period=cdk.Duration.hours(1)), 24
        self._alarm(str(name), metric, meaning, periods=periods)

    def _add_heartbeat(self, lambda_function: lambda_.IFunction, minute: cdk.Duration) -> None:
        alarm = self._alarm(
            "Heartbeat",
            # CloudWatch has no datapoint for a minute without runs, and the expression has no value before the first
            cloudwatch.MathExpression(
                expression="FILL(runs, 0)",
                using_metrics={"runs": lambda_function.metric_invocations(period=minute, statistic="Sum")},
                label="runs",
                period=minute,
            ),
            "the scaler did not run for ten minutes",
            periods=10,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        # A function that never runs has no datapoint at all, which is breaching; a new one has none yet. The warm-up
        # ends as soon as there are datapoints, so its length is for deploys that create the schedule late.
        template = cast("cloudwatch.CfnAlarm", alarm.node.default_child)
        template.warm_up_configuration = cloudwatch.CfnAlarm.WarmUpConfigurationProperty(
            warm_up_period_duration_in_minutes=_FIRST_RUN_MINUTES
        )
