"""Target tracking: alarms on what was consumed, and the capacity that follows."""

from __future__ import annotations

import pytest

from highwater.core.tracking import Alarm, TargetTracking

TRACKING = TargetTracking(target_percent=70)


def _minutes(*units_per_minute: int) -> list[int]:
    """Units consumed in each minute."""
    return list(units_per_minute)


@pytest.mark.parametrize(
    ("units", "high", "low", "target"),
    [
        pytest.param(5, 210, 150, 70, id="a live alarm of 5 units at 70 %"),
        pytest.param(1, 42, 30, 70, id="a live alarm of 1 unit at 70 %"),
        pytest.param(12, 504, 360, 70, id="12 units at 70 %"),
        pytest.param(2, 90, 66, 75, id="2 units at 75 %"),
    ],
)
def test_alarms_have_the_thresholds_of_live_ones_and_are_strict(units: int, high: int, low: int, target: int) -> None:
    tracking = TargetTracking(target_percent=target)
    assert tracking.alarm(_minutes(high, high), 1, units) is None
    assert tracking.alarm(_minutes(high + 1, high + 1), 1, units) is Alarm.HIGH
    assert tracking.alarm(_minutes(*[low] * 15), 14, units) is None
    assert tracking.alarm(_minutes(*[low - 1] * 15), 14, units) is Alarm.LOW


def test_high_alarm_needs_two_minutes_and_the_low_one_fifteen() -> None:
    assert TRACKING.alarm(_minutes(900), 0, 10) is None
    assert TRACKING.alarm(_minutes(100, 900), 1, 10) is None
    assert TRACKING.alarm(_minutes(900, 900), 1, 10) is Alarm.HIGH
    idle = _minutes(*[0] * 14)
    assert TRACKING.alarm(idle, 13, 10) is None
    assert TRACKING.alarm([400, *idle], 14, 10) is None
    assert TRACKING.alarm([*idle, 0], 14, 10) is Alarm.LOW


def test_minutes_after_the_newest_known_are_not_looked_at() -> None:
    assert TRACKING.alarm(_minutes(0, 0, 900, 900), 1, 10) is None


def test_scale_in_can_be_switched_off() -> None:
    tracking = TargetTracking(target_percent=70, disable_scale_in=True)
    assert tracking.alarm(_minutes(*[0] * 15), 14, 10) is None


def test_target_of_twenty_percent_never_scales_in() -> None:
    assert TargetTracking(target_percent=20).alarm(_minutes(*[0] * 15), 14, 10) is None


@pytest.mark.parametrize(
    ("per_second", "target", "units"),
    [
        pytest.param(150, 70, 215, id="the developer guide's example"),
        pytest.param(70_000, 70, 100_000, id="the article's first"),
        pytest.param(10_000, 40, 25_000, id="its second"),
        pytest.param(42, 70, 60, id="an exact multiple does not round up"),
        pytest.param(0, 70, 1, id="never none"),
    ],
)
def test_new_capacity_is_consumption_over_the_target_rounded_up(per_second: int, target: int, units: int) -> None:
    tracking = TargetTracking(target_percent=target)
    assert tracking.wanted(Alarm.HIGH, _minutes(7, per_second * 60), 1) == units


def test_scale_in_goes_by_the_last_minute_or_by_the_highest() -> None:
    consumed = _minutes(*[120 * 60] * 14, 60 * 60)
    assert TRACKING.wanted(Alarm.LOW, consumed, 14) == 86
    highest = TargetTracking(target_percent=70, scale_in_on_highest=True)
    assert highest.wanted(Alarm.LOW, consumed, 14) == 172
