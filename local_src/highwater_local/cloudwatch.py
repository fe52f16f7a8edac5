"""CloudWatch: metrics of DynamoDB, with AWS's delay, and of SQS, and alarms, evaluated once a minute of the clock."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.dynamodb.call import meters_of
from highwater_local.dynamodb.meters import MINUTES_KEPT, TableMeters, ThroughputMeter
from highwater_local.metric_math import MathError, MetricMath
from highwater_local.ministack import Created, Document
from highwater_local.queue_metrics import QueueMetrics

_NAMESPACE = "AWS/DynamoDB"


class Metrics:
    """Publishes the meters' measurements to MiniStack's CloudWatch before it answers a request.

    *second* returns the cloud's time in seconds since 1970.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._queues = QueueMetrics(second)
        for query in ministack.METRIC_QUERIES:
            query.wrap(self._answer_query)
        self._dropped: dict[tuple[str, str], int] = {}
        ministack.drop_old_metrics.wrap(self._drop_old)

    def publish(self) -> None:
        """Publish what is due and not published yet, of all tables and queues of the present account and region."""
        self._queues.publish()
        newest = (self._second() - Timing().metric_delay) // 60 - 1
        for name, table in list(ministack.tables().items()):
            meters = meters_of(table)
            first = max(meters.published + 1, newest - MINUTES_KEPT + 1)
            if first > newest:
                continue
            for index, dimension, meter in meters.each(self._second()):
                dims = {"TableName": name} | ({"GlobalSecondaryIndexName": index} if index else {})
                for minute in range(first, newest + 1):
                    _publish_minute(dims, dimension, meter, minute)
            _publish_requests(name, meters, first, newest)
            meters.published = newest

    def _drop_old(self, own: Callable[[], None]) -> None:
        """Drop old metrics once an hour: MiniStack would copy all datapoints at each request."""
        place, hour = (ministack.get_account_id(), ministack.get_region()), self._second() // 3600
        if self._dropped.get(place) != hour:
            self._dropped[place] = hour
            own()

    def _answer_query(self, own: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.publish()
        return own(*arguments, **options)


def _publish_minute(dims: dict[str, str], dimension: Dimension, meter: ThroughputMeter, minute: int) -> None:
    kind = dimension.title()
    units, requests = meter.consumed[minute] / QUANTA_PER_UNIT, max(1, meter.requests[minute])
    consumed = {"SampleCount": requests, "Sum": units, "Minimum": units / requests, "Maximum": units / requests}
    _put_statistics(f"Consumed{kind}CapacityUnits", dims, minute, consumed)
    if minute % 5 == 0 and (provisioned := meter.units_at(minute * 60)):
        one = {"SampleCount": 1, "Sum": provisioned, "Minimum": provisioned, "Maximum": provisioned}
        _put_statistics(f"Provisioned{kind}CapacityUnits", dims, minute, one)
    events = meter.events.get(minute)
    if not events:
        return
    # a write throttled by an index is reported for the index
    told = {cause: events[cause] for cause in ThrottleCause if events[cause]}
    for cause, count in told.items():
        _put_count(f"{kind}{cause.metric_suffix}", dims, minute, count)
    if told:
        _put_count(f"{kind}ThrottleEvents", dims, minute, sum(told.values()))


def _publish_requests(table: str, meters: TableMeters, first: int, newest: int) -> None:
    for minute in range(first, newest + 1):
        for operation, count in meters.throttled_requests.get(minute, {}).items():
            _put_count("ThrottledRequests", {"TableName": table, "Operation": operation}, minute, count)


def _put_count(name: str, dims: dict[str, str], minute: int, count: int) -> None:
    _put_statistics(name, dims, minute, {"SampleCount": count, "Sum": count, "Minimum": 1, "Maximum": 1})


def _put_statistics(name: str, dims: dict[str, str], minute: int, statistics: Mapping[str, float]) -> None:
    ministack.put_datum(_NAMESPACE, name, dict(dims), minute * 60, "Count", None, None, None, dict(statistics))


_QUERIES: Final = "HighwaterMetrics"
WARM_UP: Final = "WarmUpConfiguration"
_LENGTH, _WHOLE = "WarmUpPeriodDurationInMinutes", "OnlyStartEvaluatingAfterWarmUpPeriodEnds"
_UNCHECKED: Final = "Unchecked: Initial alarm creation"
# What the request under way says about its alarm and MiniStack does not keep: it judges a new alarm at once
_ASKED: ContextVar[Document | None] = ContextVar("asked", default=None)


def _provision(own: Callable[..., Created], id: str, *properties_and_stack: Any) -> Created:
    """Create or update an alarm; an update has the old and the new properties."""
    plain = [_plain(given) if isinstance(given, dict) else given for given in properties_and_stack]
    new = [given for given in properties_and_stack if isinstance(given, dict)][-1]
    with ministack.setting(_ASKED, new):
        return own(id, *plain)


def _put(
    own: Callable[..., Any], params: Document, document: Document | None, is_cbor: bool, is_json: bool = False
) -> Any:
    asked = document or {} if is_cbor or is_json else _of_query(params)
    with ministack.setting(_ASKED, {WARM_UP: asked.get(WARM_UP)}):
        return own(params, document, is_cbor, is_json)


def _of_query(params: Document) -> Document:
    """Return the warm-up of a request in the form of a query, whose values are texts, some of them in lists."""
    found = {name.partition(".")[2]: value for name, value in params.items() if name.startswith(f"{WARM_UP}.")}
    return {WARM_UP: {name: ministack.first(value) for name, value in found.items()} or None}


def _keep_what_is_asked(alarm: Document) -> None:
    asked = _ASKED.get()
    if asked is None:
        return
    alarm[_QUERIES] = asked.get("Metrics")
    if (warm_up := asked.get(WARM_UP)) is not None:
        alarm[WARM_UP] = {
            _LENGTH: int(warm_up[_LENGTH]),
            _WHOLE: str(warm_up.get(_WHOLE, False)).lower() == "true",
        }


def _plain(properties: Document) -> Document:
    """Return the properties of an alarm as if it were on the first of its metrics, which MiniStack accepts."""
    queries = properties.get("Metrics") or []
    metrics = {query["Id"]: query["MetricStat"] for query in queries if query.get("MetricStat")}
    try:
        MetricMath(tuple(queries), {name: {0: 1.0} for name in metrics}).value_at(0)
    except MathError:
        return properties
    first = next(iter(metrics.values()))
    metric = first["Metric"]
    plain = {name: value for name, value in properties.items() if name != "Metrics"}
    return plain | {
        "MetricName": metric["MetricName"],
        "Namespace": metric["Namespace"],
        "Dimensions": metric.get("Dimensions") or [],
        "Period": first["Period"],
        "Statistic": first["Stat"],
    }


# Datapoints of DynamoDB come 150 s late: an alarm reads some periods more than it evaluates
_MORE_PERIODS: Final = 4
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_ACTIONS: Final = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


class Alarms:
    """The metric alarms of every account and region, evaluated here, not by MiniStack; *now* is the cloud's time."""

    def __init__(self, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._now = now
        # the CloudFormation engine accepts expressions that are evaluated here; it rejects others with its own message
        for action in ("create", "update"):
            ministack.wrap_resource_handler(ministack.ALARM, action, _provision)
        ministack.put_alarm.wrap(_put)
        ministack.judge_alarm.replace(self.judge)
        self._to_topics = ministack.start_alarm_actions.replace(self.start_actions)

    def judge_all(self) -> None:
        """Evaluate every alarm; to be called once a minute."""
        for scope in ministack.alarm_scopes() | ministack.queue_scopes():
            with ministack.request_scope(*scope):
                # queues have a datapoint for each minute, whether or not somebody watches them
                self._metrics.publish()
                for alarm in list(ministack.alarms_by_name().values()):
                    if not is_of_auto_scaling(alarm):
                        self.judge(alarm)

    def judge(self, alarm: Document) -> None:
        """Update one alarm's state, and start its actions if the state changes."""
        _keep_what_is_asked(alarm)
        compare = _COMPARISONS.get(alarm.get("ComparisonOperator") or "")
        if compare is None or not alarm.get("MetricName"):
            return
        values = self._newest_values(alarm)
        if self._is_warming_up(alarm, len(values)):
            return
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

    def _is_warming_up(self, alarm: Document, datapoints: int) -> bool:
        """Whether a new alarm waits for data still: to the end of its warm-up, or until its window is full."""
        warm_up = alarm.get(WARM_UP)
        if not warm_up or alarm["StateReason"] != _UNCHECKED:
            return False
        if datapoints >= int(alarm.get("EvaluationPeriods") or 1) and not warm_up[_WHOLE]:
            return False
        ends = int(alarm["AlarmConfigurationUpdatedTimestamp"]) + 60 * int(warm_up[_LENGTH])
        return self._now().timestamp() < ends

    def start_actions(self, alarm: Document, old: str, new: str, reason: str) -> None:
        """Notify SNS topics, start Lambda functions that are named directly, and send an event to EventBridge."""
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
        """Return the values of the newest periods with a value, oldest first, as many as the alarm evaluates."""
        period, count = int(alarm.get("Period") or 60), int(alarm.get("EvaluationPeriods") or 1)
        end = int(self._now().timestamp()) // period
        periods = range(end - count - _MORE_PERIODS, end)
        if queries := alarm.get(_QUERIES):
            stats = {query["Id"]: query["MetricStat"] for query in queries if query.get("MetricStat")}
            math = MetricMath(
                tuple(queries),
                {name: _series(stat["Metric"], stat["Stat"], period, periods) for name, stat in stats.items()},
            )
            values = [math.value_at(number) for number in periods]
        else:
            statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average"
            values = list(_series(alarm, statistic, period, periods).values())
        return [value for value in values if value is not None][-count:]


def _series(metric: Document, statistic: str, period: int, periods: range) -> dict[int, float]:
    """Return a metric's statistic in each of the periods that have datapoints, oldest first."""
    dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or []}
    by_period: dict[int, list[Document]] = {}
    for point in ministack.datapoints(metric["Namespace"], metric["MetricName"], dimensions):
        if (number := int(point["Timestamp"]) // period) in periods:
            by_period.setdefault(number, []).append(point)
    values = {number: ministack.statistic_of(points, statistic) for number, points in sorted(by_period.items())}
    return {number: value for number, value in values.items() if value is not None}


def is_of_auto_scaling(alarm: Document) -> bool:
    """Whether the alarm is one of a target tracking policy, which are evaluated when a client requests them."""
    return str(alarm["AlarmName"]).startswith("TargetTracking-")


def _state(alarm: Document, breaching: list[bool]) -> str | None:
    """Return the state that follows from the datapoints; `None` if it does not change."""
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
    elif missing and treatment == "ignore" and all(breaching) and len(breaching) < needed:
        return None
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
