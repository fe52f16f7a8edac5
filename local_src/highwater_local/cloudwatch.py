"""CloudWatch: metrics of DynamoDB, with AWS's delays, and of SQS, and alarms, each judged at a second of its own."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.physics.partitions import hash_of
from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.dynamodb.call import meters_of
from highwater_local.dynamodb.meters import MINUTES_KEPT, TableMeters, ThroughputMeter
from highwater_local.judgement import (
    DYNAMODB,
    Point,
    can_be_judged,
    fresh_datapoints,
    periods_of,
    reason_data,
    reason_of,
    state_of,
    treatment_of,
)
from highwater_local.metric_math import MathError, MetricMath
from highwater_local.ministack import Created, Document
from highwater_local.queue_metrics import QueueMetrics

GAUGE_MINUTES: Final = 5
# A table emits samples of zero about once a minute, so now and then a minute has none: one of ten that were recorded
# (radkawar/stackd 9dc356f, dynamodb/capacity_metrics)
_ZERO_SECONDS: Final = 66
# The zeros of three minutes came together, 190 s after the last of them (recorded: radkawar/stackd 9dc356f,
# dynamodb/transaction_failure_metrics)
_ZERO_MINUTES: Final = 3
_ZERO_DELAY: Final = 190
_ZERO: Final = {"SampleCount": 1, "Sum": 0, "Minimum": 0, "Maximum": 0}


def has_zero(table: str, minute: int) -> bool:
    """Whether a table emits samples of zero consumption in a minute: of all its dimensions and indexes, or of none."""
    offset, start = hash_of(table) % _ZERO_SECONDS, minute * 60
    return (start + 59 - offset) // _ZERO_SECONDS > (start - 1 - offset) // _ZERO_SECONDS


def newest_zero(second: int) -> int:
    """Return the last minute whose zeros are in CloudWatch."""
    return (second - _ZERO_DELAY) // (60 * _ZERO_MINUTES) * _ZERO_MINUTES - 1


class Metrics:
    """Publishes the meters' measurements to MiniStack's CloudWatch before it answers a request or judges an alarm.

    *second* returns the cloud's time in seconds since 1970; provisioned units are those of
    `Timing.gauge_age` seconds before their label.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._gauge_age = Timing().gauge_age
        self._queues = QueueMetrics(second)
        for query in ministack.METRIC_QUERIES:
            query.wrap(self._answer_query)
        self._dropped: dict[tuple[str, str], int] = {}
        # by account and region, up to when everything is published
        self._done: dict[tuple[str, str], tuple[int, int]] = {}
        self._zeros: WeakKeyDictionary[TableMeters, int] = WeakKeyDictionary()
        ministack.drop_old_metrics.wrap(self._drop_old)

    def publish_queues(self) -> None:
        """Publish the present minute of all queues of the present account and region."""
        self._queues.publish()

    def publish_tables(self) -> None:
        """Publish what is due and not published yet, of all tables of the present account and region."""
        second = self._second()
        newest, zero = (second - Timing().metric_delay) // 60 - 1, newest_zero(second)
        place, done = (ministack.get_account_id(), ministack.get_region()), (newest, zero)
        if self._done.get(place) == done:
            return
        self._done[place] = done
        ministack.drop_old_metrics()
        for name, table in list(ministack.tables().items()):
            self._publish_table(name, meters_of(table), newest, zero)

    def _publish_table(self, name: str, meters: TableMeters, newest: int, zero: int) -> None:
        oldest = newest - MINUTES_KEPT + 1
        minutes = range(max(meters.published + 1, oldest), newest + 1)
        zeros = range(max(self._zeros.setdefault(meters, meters.published) + 1, oldest), zero + 1)
        for index, dimension, meter in meters.each(self._second()):
            dims = {"TableName": name} | ({"GlobalSecondaryIndexName": index} if index else {})
            for minute in minutes:
                self._publish_minute(dims, dimension, meter, minute)
            for minute in zeros:
                if not meter.requests[minute] and has_zero(name, minute):
                    _put_statistics(f"Consumed{dimension.title()}CapacityUnits", dims, minute, _ZERO)
        _publish_requests(name, meters, minutes)
        meters.published = max(meters.published, newest)
        self._zeros[meters] = max(self._zeros[meters], zero)

    def _publish_minute(self, dims: dict[str, str], dimension: Dimension, meter: ThroughputMeter, minute: int) -> None:
        kind = dimension.title()
        if requests := meter.requests[minute]:
            units, zeros = meter.consumed[minute] / QUANTA_PER_UNIT, has_zero(dims["TableName"], minute)
            each = units / requests
            consumed = {"SampleCount": requests + zeros, "Sum": units, "Minimum": 0 if zeros else each, "Maximum": each}
            _put_statistics(f"Consumed{kind}CapacityUnits", dims, minute, consumed)
        if minute % GAUGE_MINUTES == 0 and (provisioned := meter.units_at(minute * 60 - self._gauge_age)):
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

    def _drop_old(self, own: Callable[[], None]) -> None:
        """Drop old metrics once a day: MiniStack would copy all datapoints at each request."""
        place, day = (ministack.get_account_id(), ministack.get_region()), self._second() // 86_400
        if self._dropped.get(place) != day:
            self._dropped[place] = day
            own()

    def _answer_query(self, own: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.publish_queues()
        self.publish_tables()
        return own(*arguments, **options)


def _publish_requests(table: str, meters: TableMeters, minutes: range) -> None:
    for minute in minutes:
        for operation, count in meters.throttled_requests.get(minute, {}).items():
            _put_count("ThrottledRequests", {"TableName": table, "Operation": operation}, minute, count)
        if failed := meters.failed_conditions[minute]:
            _put_count("ConditionalCheckFailedRequests", {"TableName": table}, minute, failed)


def _put_count(name: str, dims: dict[str, str], minute: int, count: int) -> None:
    _put_statistics(name, dims, minute, {"SampleCount": count, "Sum": count, "Minimum": 1, "Maximum": 1})


def _put_statistics(name: str, dims: dict[str, str], minute: int, statistics: Mapping[str, float]) -> None:
    ministack.put_datum(DYNAMODB, name, dims, minute * 60, "Count", None, None, None, statistics)


_QUERIES: Final = "HighwaterMetrics"
WARM_UP: Final = "WarmUpConfiguration"
_MISSING: Final = "TreatMissingData"
_LENGTH, _WHOLE = "WarmUpPeriodDurationInMinutes", "OnlyStartEvaluatingAfterWarmUpPeriodEnds"
UNCHECKED: Final = "Unchecked: Initial alarm creation"
# What the request under way says about its alarm and MiniStack does not keep
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
    with ministack.setting(_ASKED, {name: asked.get(name) for name in (WARM_UP, _MISSING)}):
        return own(params, document, is_cbor, is_json)


def _of_query(params: Document) -> Document:
    """Return what is kept of a request in the form of a query, whose values are texts, some of them in lists."""
    found = {name.partition(".")[2]: value for name, value in params.items() if name.startswith(f"{WARM_UP}.")}
    warm_up = {name: ministack.first(value) for name, value in found.items()} or None
    return {WARM_UP: warm_up, _MISSING: ministack.first(params.get(_MISSING))}


def _keep_what_is_asked(alarm: Document) -> None:
    asked = _ASKED.get()
    if asked is None:
        return
    alarm[_QUERIES] = asked.get("Metrics")
    if not asked.get(_MISSING):
        # what MiniStack puts in differs from leaving it out
        alarm.pop(_MISSING, None)
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


# An alarm reads more periods than it evaluates (Amazon CloudWatch User Guide, "Configuring how CloudWatch alarms treat
# missing data"); how many is not documented
_MORE_PERIODS: Final = 4
# A new alarm was judged first 28 to 86 s after its creation, by datapoints from before it (recorded: radkawar/stackd
# 9dc356f, applicationautoscaling/dynamodb_maintenance)
_FIRST_SECONDS: Final = 28
# Within its second, so that nothing is judged at the boundary of two minutes
_PHASE_OFFSET: Final = 0.5
# How far DynamoDB's datapoints may be out of order: zeros come later than the others
_DISORDER_SECONDS: Final = 1200
_ACTIONS: Final = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
Place = tuple[str, str, str]


class Alarms:
    """The metric alarms of every account and region, judged here, not by MiniStack.

    Each is judged once a minute, at a second of its own that depends on its name. One of a scaling policy acts then as
    long as it is in ALARM.

    Args:
        metrics: Publishes what alarms read.
        now: Returns the cloud's time.
        scale: Carries out the action of a scaling policy's alarm of the present account and region, from its name and
            its newest datapoints.
    """

    def __init__(
        self, metrics: Metrics, now: Callable[[], datetime], scale: Callable[[str, list[float]], None]
    ) -> None:
        self._metrics = metrics
        self._now = now
        self._scale = scale
        self._due: list[tuple[float, int, Place]] = []
        self._enlisted: set[Place] = set()
        # the CloudFormation engine accepts expressions that are evaluated here; it rejects others with its own message
        for action in ("create", "update"):
            ministack.wrap_resource_handler(ministack.ALARM, action, _provision)
        ministack.put_alarm.wrap(_put)
        # what MiniStack would judge at once is judged at its second
        ministack.judge_alarm.replace(self.enlist)
        self._to_topics = ministack.start_alarm_actions.replace(self._act_on_request)

    def enlist(self, alarm: Document) -> None:
        """Keep what MiniStack does not of an alarm that was put, and judge it from now on."""
        _keep_what_is_asked(alarm)
        place = (ministack.get_account_id(), ministack.get_region(), str(alarm["AlarmName"]))
        if place in self._enlisted:
            return
        self._enlisted.add(place)
        earliest, phase = self._now().timestamp() + _FIRST_SECONDS, hash_of(place[2]) % 60 + _PHASE_OFFSET
        self._plan(math.ceil((earliest - phase) / 60) * 60 + phase, place)

    def next_due(self) -> datetime | None:
        """Return when an alarm is judged next."""
        return datetime.fromtimestamp(self._due[0][0], UTC) if self._due else None

    def run_due(self, at: datetime) -> None:
        """Judge the alarms that are due by that time, which is the clock's."""
        while self._due and self._due[0][0] <= at.timestamp():
            due, _, place = heapq.heappop(self._due)
            account, region, name = place
            with ministack.request_scope(account, region):
                alarm = ministack.alarms_by_name().get(name)
                if alarm is None:
                    self._enlisted.discard(place)
                    continue
                self._plan(due + 60, place)
                self._metrics.publish_tables()
                self.judge(alarm)

    def publish_queues(self) -> None:
        """Publish the present minute of every queue, whether or not somebody watches; to be called once a minute."""
        for scope in ministack.queue_scopes():
            with ministack.request_scope(*scope):
                self._metrics.publish_queues()

    def judge(self, alarm: Document) -> None:
        """Update one alarm's state, and start its actions if the state changes or if it has to repeat them."""
        if not can_be_judged(alarm):
            return
        points = self._newest_points(alarm)
        if self._is_warming_up(alarm, len(points)):
            return
        treatment = treatment_of(alarm, [str(metric.get("Namespace")) for metric in _metrics_of(alarm)])
        state, old = state_of(alarm, points, treatment), alarm["StateValue"]
        if state is not None and state != old:
            reason = reason_of(alarm, points, treatment, state)
            alarm |= {
                "StateValue": state,
                "StateReason": reason,
                "StateReasonData": reason_data(alarm, points, self._now()),
                "StateUpdatedTimestamp": int(self._now().timestamp()),
            }
            ministack.record_alarm_history(alarm["AlarmName"], old, state, reason)
            self.start_actions(alarm, old, state, reason, has_datapoints=bool(points))
            ministack.judge_parent_alarms(alarm)
        if alarm["StateValue"] == "ALARM" and points and _scales(alarm):
            self._scale(alarm["AlarmName"], [value for _, value in points])

    def _plan(self, due: float, place: Place) -> None:
        # those that are due together are judged in the order of their names
        heapq.heappush(self._due, (due, hash_of(place[2]), place))

    def _act_on_request(self, alarm: Document, old: str, new: str, reason: str) -> None:
        """Start the actions of a state that was set by hand; auto scaling acts only on fresh datapoints."""
        values = fresh_datapoints(alarm.get("StateReasonData"), self._now())
        self.start_actions(alarm, old, new, reason, has_datapoints=bool(values))
        if new == "ALARM" and values and _scales(alarm):
            self._scale(alarm["AlarmName"], values)

    def _is_warming_up(self, alarm: Document, datapoints: int) -> bool:
        """Whether a new alarm waits for data still: to the end of its warm-up, or until its window is full."""
        warm_up = alarm.get(WARM_UP)
        if not warm_up or alarm["StateReason"] != UNCHECKED:
            return False
        if datapoints >= int(alarm.get("EvaluationPeriods") or 1) and not warm_up[_WHOLE]:
            return False
        ends = int(alarm["AlarmConfigurationUpdatedTimestamp"]) + 60 * int(warm_up[_LENGTH])
        return self._now().timestamp() < ends

    def start_actions(self, alarm: Document, old: str, new: str, reason: str, *, has_datapoints: bool) -> None:
        """Notify SNS topics, start Lambda functions that are named directly, and send an event to EventBridge.

        Each is in the alarm's history, as is that of a scaling policy, which fails without datapoints and is then not.
        """
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
            if any(kind in action for kind in (":sns:", ":lambda:")) or (
                has_datapoints and ":scalingPolicy:" in action
            ):
                self._note_action(alarm, action)
            if ":lambda:" in action:
                ministack.invoke_function(action, json.dumps(payload))

    def _note_action(self, alarm: Document, action: str) -> None:
        """Put an action into the history, after the change of state that it follows; its repeats leave nothing there.

        Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
        """
        now = self._now()
        data = {
            "actionState": "Succeeded",
            "stateUpdateTimestamp": int(now.timestamp() * 1000),
            "notificationResource": action,
            "publishedMessage": None,
            "error": None,
            "muteWindowEndTimestamp": None,
        }
        item = {
            "AlarmName": alarm["AlarmName"],
            "AlarmType": "CompositeAlarm" if alarm.get("AlarmRule") else "MetricAlarm",
            "Timestamp": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "HistoryItemType": "Action",
            "HistorySummary": f"Successfully executed action {action}",
            "HistoryData": json.dumps(data),
        }
        ministack.alarm_history().append(item)

    def _newest_points(self, alarm: Document) -> list[Point]:
        """Return the newest periods with a value, oldest first, as many as the alarm evaluates."""
        period, count = int(alarm.get("Period") or 60), periods_of(alarm)
        second = int(self._now().timestamp())
        is_of_dynamodb = all(metric.get("Namespace") == DYNAMODB for metric in _metrics_of(alarm))
        # periods of alarms on DynamoDB's metrics ended a whole minute before, and were not the clock's (recorded:
        # radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance)
        end = second // 60 * 60 - 60 if is_of_dynamodb else second // period * period
        more = max(_MORE_PERIODS, count * 2 // 3)
        bins = _Bins(end - (count + more) * period, period, count + more)
        if queries := alarm.get(_QUERIES):
            stats = {query["Id"]: query["MetricStat"] for query in queries if query.get("MetricStat")}
            series = {name: _series(stat["Metric"], stat["Stat"], bins) for name, stat in stats.items()}
            expression = MetricMath(tuple(queries), series)
            found = {number: expression.value_at(number) for number in range(bins.number)}
            values = {number: value for number, value in found.items() if value is not None}
        else:
            values = _series(alarm, alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average", bins)
        return [(bins.start + number * period, value) for number, value in values.items()][-count:]


class _Bins(NamedTuple):
    """Periods of time: *number* of *length* seconds from *start*."""

    start: int
    length: int
    number: int


def _series(metric: Document, statistic: str, bins: _Bins) -> dict[int, float]:
    """Return a metric's statistic in each of the periods that have datapoints, by their number, oldest first."""
    dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or []}
    points = ministack.datapoints(metric["Namespace"], metric["MetricName"], dimensions)
    is_ordered = metric["Namespace"] == DYNAMODB
    by_period: dict[int, list[Document]] = {}
    for point in reversed(points):
        at = int(point["Timestamp"])
        if is_ordered and at < bins.start - _DISORDER_SECONDS:
            # those before are older still
            break
        number = (at - bins.start) // bins.length
        if 0 <= number < bins.number:
            by_period.setdefault(number, []).append(point)
    values = {number: ministack.statistic_of(found, statistic) for number, found in sorted(by_period.items())}
    return {number: value for number, value in values.items() if value is not None}


def _metrics_of(alarm: Document) -> list[Document]:
    """Return the metrics of an alarm, also those that its expression does not use."""
    queries = alarm.get(_QUERIES)
    return [query["MetricStat"]["Metric"] for query in queries if query.get("MetricStat")] if queries else [alarm]


def _scales(alarm: Document) -> bool:
    is_enabled = alarm.get("ActionsEnabled", True)
    return is_enabled and any(":scalingPolicy:" in action for action in alarm.get("AlarmActions") or [])


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
