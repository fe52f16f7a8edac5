"""What the datapoints of an alarm say: its state, and the reason for it in CloudWatch's words."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

Alarm = dict[str, Any]
# the start of a period, in seconds since 1970, and its value
Point = tuple[int, float]
DYNAMODB: Final = "AWS/DynamoDB"
_COMPARISONS: Final[dict[str, tuple[Callable[[float, float], bool], str]]] = {
    "GreaterThanOrEqualToThreshold": (operator.ge, "greater than or equal to"),
    "GreaterThanThreshold": (operator.gt, "greater than"),
    "LessThanThreshold": (operator.lt, "less than"),
    "LessThanOrEqualToThreshold": (operator.le, "less than or equal to"),
}
# Application Auto Scaling took what was 5.7 s old and refused what was 15.6 s old (recorded: radkawar/stackd 9dc356f,
# applicationautoscaling/alarm_signals)
_FRESH_SECONDS: Final = 10


def can_be_judged(alarm: Alarm) -> bool:
    """Whether the alarm compares a metric, or an expression, in a way that is known here."""
    return (alarm.get("ComparisonOperator") or "") in _COMPARISONS and bool(alarm.get("MetricName"))


def periods_of(alarm: Alarm) -> int:
    """Return how many periods the alarm evaluates."""
    return int(alarm.get("EvaluationPeriods") or 1)


def treatment_of(alarm: Alarm, namespaces: Sequence[str]) -> str:
    """Return how the alarm, whose metrics are of these namespaces, treats missing data.

    An alarm that declares nothing ignores it if all its metrics, used or not, are DynamoDB's (recorded: radkawar/stackd
    9dc356f, cloudwatch/alarm_namespaces).
    """
    is_of_dynamodb = bool(namespaces) and all(name == DYNAMODB for name in namespaces)
    return str(alarm.get("TreatMissingData") or ("ignore" if is_of_dynamodb else "missing"))


def state_of(alarm: Alarm, points: Sequence[Point], treatment: str) -> str | None:
    """Return the state that follows from the newest datapoints; `None` if it does not change."""
    count = periods_of(alarm)
    needed = int(alarm.get("DatapointsToAlarm") or count)
    breaching = [is_breaching for _, is_breaching in _compared(alarm, points)]
    missing = count - len(breaching)
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


def reason_of(alarm: Alarm, points: Sequence[Point], treatment: str, state: str) -> str:
    """Return the reason for a new *state*."""
    count = periods_of(alarm)
    if state == "INSUFFICIENT_DATA":
        return f"Insufficient Data: {_were(count, 'datapoint')} unknown."
    if not points:
        treated = "Breaching" if treatment == "breaching" else "NonBreaching"
        periods = f"{count} period{'' if count == 1 else 's'}"
        return (
            f"Threshold Crossed: no datapoints were received for {periods} and {_were(count, 'missing datapoint')} "
            f"treated as [{treated}]."
        )
    compared = _compared(alarm, points)
    shown = [point for point, is_breaching in compared if is_breaching is (state == "ALARM")] or list(points)
    values = ", ".join(f"{value} ({_at(start)})" for start, value in reversed(shown))
    number = _were(len(shown), "datapoint").split()
    known = "" if not alarm.get("DatapointsToAlarm") else f" out of the last {len(points)}"
    plural = "datapoints" if known else number[1]
    negation = "" if state == "ALARM" else "not "
    _, words = _COMPARISONS[alarm["ComparisonOperator"]]
    return (
        f"Threshold Crossed: {len(shown)}{known} {plural} [{values}] {number[2]} {negation}{words} the threshold "
        f"({float(alarm['Threshold'])})."
    )


def reason_data(alarm: Alarm, points: Sequence[Point], at: datetime) -> str:
    """Return what an alarm's action gets to know of the datapoints, as JSON."""
    told = {
        "version": "1.0",
        "queryDate": f"{at:%Y-%m-%dT%H:%M:%S.000+0000}",
        "statistic": alarm.get("Statistic"),
        "period": alarm.get("Period"),
        "recentDatapoints": [value for _, value in points],
        "threshold": alarm.get("Threshold"),
    }
    return json.dumps(told, separators=(",", ":"))


def fresh_datapoints(text: object, at: datetime) -> list[float]:
    """Return the datapoints in `StateReasonData`; none if auto scaling would not act on it at that time."""
    try:
        told: Any = json.loads(text) if isinstance(text, str) else None
        queried = datetime.fromisoformat(str(told["queryDate"]))
        values = [float(value) for value in told["recentDatapoints"]]
    except (ValueError, TypeError, KeyError):
        return []
    queried = queried.replace(tzinfo=UTC) if queried.tzinfo is None else queried
    return values if abs((at - queried).total_seconds()) <= _FRESH_SECONDS else []


def _compared(alarm: Alarm, points: Sequence[Point]) -> list[tuple[Point, bool]]:
    compare, _ = _COMPARISONS[alarm["ComparisonOperator"]]
    threshold = float(alarm["Threshold"])
    return [(point, compare(point[1], threshold)) for point in points]


def _were(count: int, noun: str) -> str:
    return f"{count} {noun} was" if count == 1 else f"{count} {noun}s were"


def _at(start: int) -> str:
    return f"{datetime.fromtimestamp(start, UTC):%d/%m/%y %H:%M:%S}"
