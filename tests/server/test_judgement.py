"""What datapoints say of an alarm: its state, its reason, and how what is missing is treated."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater_local.judgement import Point, fresh_datapoints, reason_data, reason_of, state_of, treatment_of

NOW = datetime(2026, 9, 17, 16, 34, 59, tzinfo=UTC)
DYNAMODB, OWN = "AWS/DynamoDB", "Shop"


def _alarm(periods: int, **more: Any) -> dict[str, Any]:
    compared = {"MetricName": "m", "ComparisonOperator": "LessThanThreshold", "Threshold": 60.0}
    return {**compared, "EvaluationPeriods": periods, "Statistic": "Sum", "Period": 60, **more}


def _points(*values: float) -> list[Point]:
    start = int(NOW.timestamp()) // 60 * 60 - 120
    return [(start - 60 * (len(values) - 1 - number), value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("declared", "namespaces", "treatment"),
    [
        (None, [DYNAMODB], "ignore"),
        (None, [DYNAMODB, DYNAMODB], "ignore"),
        (None, [DYNAMODB, OWN], "missing"),
        (None, [OWN], "missing"),
        ("breaching", [DYNAMODB], "breaching"),
        ("notBreaching", [DYNAMODB], "notBreaching"),
        ("missing", [DYNAMODB], "missing"),
        ("ignore", [OWN], "ignore"),
    ],
)
def test_missing_data_is_ignored_by_alarms_on_dynamodb_alone_that_declare_nothing(
    declared: str | None, namespaces: list[str], treatment: str
) -> None:
    """Recorded: radkawar/stackd 9dc356f, cloudwatch/alarm_namespaces."""
    alarm = _alarm(1) if declared is None else _alarm(1, TreatMissingData=declared)
    assert treatment_of(alarm, namespaces) == treatment


@pytest.mark.parametrize(
    ("treatment", "values", "state"),
    [
        ("ignore", [], None),
        ("ignore", [0, 0], None),
        ("ignore", [0, 70], "OK"),
        ("ignore", [0, 0, 0], "ALARM"),
        ("missing", [], "INSUFFICIENT_DATA"),
        ("missing", [0], "ALARM"),
        ("breaching", [], "ALARM"),
        ("breaching", [70], "OK"),
        ("notBreaching", [0, 0], "OK"),
    ],
)
def test_state_follows_from_three_periods_of_which_some_are_missing(
    treatment: str, values: list[float], state: str | None
) -> None:
    """As Amazon CloudWatch's user guide has it, "Configuring how CloudWatch alarms treat missing data"."""
    assert state_of(_alarm(3), _points(*values), treatment) == state


@pytest.mark.parametrize(
    ("periods", "values", "treatment", "state", "reason"),
    [
        (3, [], "missing", "INSUFFICIENT_DATA", "Insufficient Data: 3 datapoints were unknown."),
        (
            1,
            [],
            "breaching",
            "ALARM",
            "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as "
            "[Breaching].",
        ),
        (
            2,
            [3, 0],
            "ignore",
            "ALARM",
            "Threshold Crossed: 2 datapoints [0.0 (17/09/26 16:32:00), 3.0 (17/09/26 16:31:00)] were less than the "
            "threshold (60.0).",
        ),
        (
            2,
            [3, 70],
            "ignore",
            "OK",
            "Threshold Crossed: 1 datapoint [70.0 (17/09/26 16:32:00)] was not less than the threshold (60.0).",
        ),
    ],
)
def test_reason_is_in_cloudwatchs_words(
    periods: int, values: list[float], treatment: str, state: str, reason: str
) -> None:
    """The first two recorded: radkawar/stackd 9dc356f, cloudwatch/alarm_evaluation and alarm_namespaces."""
    assert reason_of(_alarm(periods), _points(*map(float, values)), treatment, state) == reason


def test_what_an_alarm_tells_its_action_is_fresh_for_ten_seconds() -> None:
    """5.7 s are accepted, 15.6 s are not (recorded: radkawar/stackd 9dc356f, applicationautoscaling/alarm_signals)."""
    told = reason_data(_alarm(2), _points(3.0, 7.0), NOW)
    assert json.loads(told)["recentDatapoints"] == [3.0, 7.0]
    assert fresh_datapoints(told, NOW + timedelta(seconds=5.7)) == [3.0, 7.0]
    assert fresh_datapoints(told, NOW + timedelta(seconds=15.6)) == []


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "no JSON", '{"queryDate": "now", "recentDatapoints": [7]}'])
def test_what_is_no_reason_data_has_no_datapoints(text: str | None) -> None:
    assert fresh_datapoints(text, NOW) == []
