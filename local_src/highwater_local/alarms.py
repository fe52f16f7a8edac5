"""CloudWatch alarms by this cloud's clock: judged once a minute, and what they start when their state changes.

MiniStack judges an alarm when somebody puts a metric, by all dimensions at once and by the machine's time, and tells
SNS alone. Rules and shapes here: Amazon CloudWatch User Guide, "Configuring how alarms treat missing data" and "Invoke
a Lambda function from an alarm", read 2026-11.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from highwater_local import ministack
from highwater_local.filled_alarms import FILLED, accept_filled_alarms
from highwater_local.metrics import Metrics

Document = dict[str, Any]
# Datapoints of DynamoDB come 150 s late: an alarm looks a little farther back than its periods
_MORE_PERIODS: Final = 4
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_ACTIONS: Final = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


class Alarms:
    """The metric alarms of every account and region, judged here in MiniStack's stead; *now* tells the cloud's time."""

    def __init__(self, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._now = now
        accept_filled_alarms()
        ministack.judge_alarm.replace(self.judge)
        self._to_topics = ministack.start_alarm_actions.replace(self.start_actions)

    def judge_all(self) -> None:
        """Judge every alarm; to be called once a minute."""
        for scope in ministack.alarm_scopes():
            with ministack.request_scope(*scope):
                self._metrics.publish()
                for alarm in list(ministack.alarms_by_name().values()):
                    if not is_of_auto_scaling(alarm):
                        self.judge(alarm)

    def judge(self, alarm: Document) -> None:
        """Bring one alarm's state up to date, and start its actions where that changes."""
        compare = _COMPARISONS.get(alarm.get("ComparisonOperator") or "")
        if compare is None or not alarm.get("MetricName"):
            return
        values = self._newest_values(alarm)
        state = _state(alarm, [compare(value, float(alarm["Threshold"])) for value in values])
        old = alarm["StateValue"]
        if state is None or state == old:
            return
        shown = ", ".join(f"{value:g}" for value in values) or "none"
        reason = (
            f"Threshold Crossed: datapoints [{shown}] against {alarm['ComparisonOperator']} {alarm['Threshold']:g}"
            if values
            else "Insufficient Data: no datapoints"
        )
        alarm |= {"StateValue": state, "StateReason": reason, "StateUpdatedTimestamp": int(self._now().timestamp())}
        ministack.record_alarm_history(alarm["AlarmName"], old, state, reason)
        self.start_actions(alarm, old, state, reason)
        ministack.judge_parent_alarms(alarm)

    def start_actions(self, alarm: Document, old: str, new: str, reason: str) -> None:
        """Tell SNS topics, start Lambda functions that are named directly, and tell EventBridge."""
        self._to_topics(alarm, old, new, reason)
        at = self._now().strftime("%Y-%m-%dT%H:%M:%S.000+0000")
        told = {
            "alarmName": alarm["AlarmName"],
            "state": {"value": new, "reason": reason, "timestamp": at},
            "previousState": {"value": old},
            "configuration": _configuration(alarm),
        }
        arn = alarm["AlarmArn"]
        event = {
            "Source": "aws.cloudwatch",
            "DetailType": "CloudWatch Alarm State Change",
            "Resources": [arn],
            "Detail": json.dumps(told),
        }
        ministack.put_events({"Entries": [event]}, allow_aws_source=True)
        if not alarm.get("ActionsEnabled", True):
            return
        payload = {
            "source": "aws.cloudwatch",
            "alarmArn": arn,
            "accountId": ministack.get_account_id(),
            "time": at,
            "region": ministack.get_region(),
            "alarmData": told,
        }
        for action in alarm.get(_ACTIONS[new]) or []:
            if ":lambda:" in action:
                ministack.invoke_function(action, json.dumps(payload))

    def _newest_values(self, alarm: Document) -> list[float]:
        """The statistic of the newest periods that have datapoints, oldest first, as many as it looks at."""
        dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions") or []}
        period, count = int(alarm.get("Period") or 60), int(alarm.get("EvaluationPeriods") or 1)
        end = int(self._now().timestamp()) // period * period
        first = end - (count + _MORE_PERIODS) * period
        by_period: dict[int, list[Document]] = {}
        for point in ministack.datapoints(alarm["Namespace"], alarm["MetricName"], dimensions):
            if first <= point["Timestamp"] < end:
                by_period.setdefault(int(point["Timestamp"]) // period, []).append(point)
        if by_period and alarm.get(FILLED):
            # an expression over a metric without any datapoint has no value
            for number in range(end // period - count, end // period):
                by_period.setdefault(number, [{"Timestamp": number * period, "Value": 0.0}])
        statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average"
        values = (ministack.statistic_of(points, statistic) for _, points in sorted(by_period.items()))
        return [value for value in values if value is not None][-count:]


def is_of_auto_scaling(alarm: Document) -> bool:
    """Whether the alarm is one of a target tracking policy, which are judged when somebody asks for them."""
    return str(alarm["AlarmName"]).startswith("TargetTracking-")


def _state(alarm: Document, breaching: list[bool]) -> str | None:
    """The state that datapoints ask for; `None` to leave it as it is."""
    count = int(alarm.get("EvaluationPeriods") or 1)
    needed = int(alarm.get("DatapointsToAlarm") or count)
    missing = count - len(breaching)
    treatment = alarm.get("TreatMissingData") or "missing"
    if missing and treatment == "breaching":
        breaching = [True] * missing + breaching
    elif missing and treatment == "notBreaching":
        breaching = [False] * missing + breaching
    elif not breaching:
        return None if treatment == "ignore" else "INSUFFICIENT_DATA"
    elif missing and treatment == "missing":
        needed = min(needed, len(breaching))
    return "ALARM" if sum(breaching) >= needed else "OK"


def _configuration(alarm: Document) -> Document:
    metric = {
        "namespace": alarm.get("Namespace"),
        "name": alarm.get("MetricName"),
        "dimensions": {each["Name"]: each["Value"] for each in alarm.get("Dimensions") or []},
    }
    statistic = {"metric": metric, "period": alarm.get("Period"), "stat": alarm.get("Statistic")}
    return {
        "description": alarm.get("AlarmDescription") or "",
        "metrics": [{"id": "m1", "metricStat": statistic, "returnData": True}],
    }
