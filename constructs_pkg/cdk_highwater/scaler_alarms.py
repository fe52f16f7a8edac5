"""Alarms on the scaler itself: that it runs, that it succeeds, and what it cannot help with."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.scaler_function import ScalerFunction
from cdk_highwater.scaler_metrics import put_metric

_DAY_MINUTES = 1440


@dataclass(frozen=True, slots=True)
class _Watched:
    """A metric that the scaler puts, and what it means where it is above zero for so many minutes."""

    metric: str
    meaning: str
    minutes: int


_WATCHED = (
    _Watched("TablesFailed", "tables could not be scaled; the function's log names them", 15),
    _Watched("UnreadablePlans", "a plan in SSM cannot be read: deploy construct and function with one version", 15),
    _Watched("MetricsMissing", "CloudWatch answered no metrics: floors rise to their plans and never fall", 15),
    _Watched("AtCeiling", "demand is above a ceiling: raise max_capacity, or find out what asks so much", 5),
    _Watched("HotKeys", "a single key throttles: no capacity helps, spread the key or cache it", 5),
    _Watched("DecreaseBudgetExhausted", "the day's decreases are used: capacity stays higher than needed", 60),
    _Watched("Paused", "scaling of a target has been suspended for a day: resume it, or say why not", 1440),
)


class ScalerAlarms(Construct):
    """The alarms of a `ThrottleAwareScaler`; docs/operations.md says what to do about each."""

    def __init__(self, scope: Construct, id: str, *, function: ScalerFunction, topic: sns.ITopic | None) -> None:
        super().__init__(scope, id)
        self._topic = topic
        minute = cdk.Duration.minutes(1)
        of = function.function
        self._alarm(
            "Errors",
            of.metric_errors(period=cdk.Duration.minutes(5), statistic="Sum"),
            "the scaler failed; its log says why",
            periods=3,
        )
        self._alarm(
            "Heartbeat",
            of.metric_invocations(period=minute, statistic="Sum"),
            "the scaler did not run for ten minutes",
            periods=10,
            below_one=True,
        )
        self._alarm(
            "DeadLetters",
            function.dead_letters.metric_approximate_number_of_messages_visible(period=minute, statistic="Maximum"),
            "tables failed three times over; their events are in the dead-letter queue",
            periods=1,
        )
        for watched in _WATCHED:
            metric = put_metric(watched.metric)
            periods = max(1, watched.minutes // 5)
            if watched.minutes == _DAY_MINUTES:
                metric, periods = metric.with_(period=cdk.Duration.hours(1)), 24
            self._alarm(watched.metric, metric, watched.meaning, periods=periods)

    def _alarm(
        self, id: str, metric: cloudwatch.IMetric, meaning: str, *, periods: int, below_one: bool = False
    ) -> None:
        operators = cloudwatch.ComparisonOperator
        treatments = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=1,
            evaluation_periods=periods,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if below_one else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=treatments.BREACHING if below_one else treatments.NOT_BREACHING,
            alarm_description=f"Highwater: {meaning}",
        )
        if self._topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
