"""Metric math of alarms: what expressions are, where they have no value, and which are not evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from highwater_local.metric_math import MathError, MetricMath

SERIES = {"a": {0: 6.0, 1: 7.0}, "b": {0: 2.0}, "zero": {0: 0.0, 1: 0.0}, "never": dict[int, float]()}


def _math(expression: str, **more: Any) -> MetricMath:
    metrics = [{"Id": name, "MetricStat": {}, "ReturnData": False} for name in SERIES]
    named = {"Id": "half", "Expression": "a / 2", "ReturnData": "false"}
    return MetricMath((*metrics, named, {"Id": "shown", "Expression": expression, **more}), SERIES)


@pytest.mark.parametrize(
    ("expression", "first", "second"),
    [
        ("a - b * 2", 2.0, None),
        ("(a + 1) / b", 3.5, None),
        ("a / zero", None, None),
        ("half >= 3.5", 0.0, 1.0),
        ("IF(b > 1, a, half)", 6.0, None),
        ("IF(FILL(b, 0) > 1, a, half)", 6.0, 3.5),
        ("IF(zero, a / zero, 9)", 9.0, 9.0),
        ("IF(a, 5, a / zero)", 5.0, 5.0),
        ("FILL(b, a)", 2.0, 7.0),
        ("FILL(never, 0) + a", None, None),
        ("(a < 7) + (a <= 7)", 2.0, 1.0),
    ],
)
def test_expression_has_a_value_in_each_period_that_has_what_it_needs(
    expression: str, first: float | None, second: float | None
) -> None:
    math = _math(expression)
    assert (math.value_at(0), math.value_at(1)) == (first, second)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("ABS(a)", "ABS(a) is not evaluated here"),
        ("a ** 2", "a ** 2 is not evaluated here"),
        ("a if b else 1", "a if b else 1 is not evaluated here"),
        ("IF(a, b)", "IF(a, b) is not evaluated here"),
        ("FILL(a, REPEAT)", "REPEAT is no expression that is known here"),
        ("1 < a < 7", "1 < a < 7 is not evaluated here"),
        ("a +", "shown is no expression that is known here"),
        ("'a'", "'a' is not evaluated here"),
    ],
)
def test_expression_that_is_not_evaluated_is_told(expression: str, why: str) -> None:
    with pytest.raises(MathError) as error:
        _math(expression).value_at(0)
    assert str(error.value) == why


def test_one_query_returns_the_data() -> None:
    with pytest.raises(MathError) as error:
        _math("a", ReturnData=False).value_at(0)
    assert str(error.value) == "not exactly one query returns data"
