"""Settings of the scaler: what is accepted, what is refused, and how much of the past they need."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from highwater.core.scaler import Mode, ScalerSettings

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("cautious_target_percent", 20, 200),
        ("jump_percent", 101, 10_000),
        ("forecast_target_percent", 20, 1_000),
        ("lower_from_minute", 0, 59),
        ("pulsed_lower_from_minute", 0, 59),
    ],
)
def test_settings_out_of_range_are_refused(name: str, low: int, high: int) -> None:
    for value in (low, high):
        within: dict[str, Any] = {name: value}
        assert getattr(ScalerSettings(**within), name) == value
    for value in (low - 1, high + 1):
        beyond: dict[str, Any] = {name: value}
        with pytest.raises(ValueError, match=rf"\A{name} must be from {low} to {high}, got {value}\Z"):
            ScalerSettings(**beyond)


def test_peak_is_held_from_a_minute_to_a_day() -> None:
    for hold in (MINUTE, timedelta(days=1)):
        assert ScalerSettings(hold=hold).hold == hold
    with pytest.raises(ValueError, match=r"\Ahold must be from a minute to a day, got 0:00:59\Z"):
        ScalerSettings(hold=timedelta(seconds=59))
    with pytest.raises(ValueError, match=r"\Ahold must be from a minute to a day, got 1 day, 0:00:01\Z"):
        ScalerSettings(hold=timedelta(days=1, seconds=1))


def test_each_mode_has_defaults_of_its_own() -> None:
    floor, direct = ScalerSettings.of(Mode.FLOOR), ScalerSettings.of(Mode.DIRECT)
    assert (floor, direct) == (ScalerSettings.floor(), ScalerSettings.direct())
    assert (floor.mode, direct.mode) == (Mode.FLOOR, Mode.DIRECT)
    caution = (floor.cautious_target_percent, direct.cautious_target_percent)
    assert caution == (70, 60), "nothing else raises the table in between"
    assert floor.forecast_target_percent is None
    assert direct.forecast_target_percent == 200


def test_past_is_as_long_as_the_longest_look_back() -> None:
    assert ScalerSettings().history == timedelta(hours=8), "jumps"
    assert ScalerSettings(hold=timedelta(hours=9)).history == timedelta(hours=9)
    assert ScalerSettings(forecast_target_percent=120).history == timedelta(days=1)
