"""Bounds at an instant: whether a window that opened or closed just before changed them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from highwater.core import Bounds, Capacity, Plan, Target, Window, timeline
from highwater.core.schedule.bounds import has_changed
from tests.core.plans_to_check import DEPLOY_TIME

LOAD = Window.daily("load", start="05:00", end="06:30", timezone="UTC", write_min=33, lead=timedelta(0))
LOW = Window.daily("low", start="12:00", end="13:00", timezone="UTC", write_min=21, lead=timedelta(0))


def target(*windows: Window, min: float = 22) -> Target:
    write = Capacity.autoscaled(min_capacity=min, max_capacity=220)
    return Plan(read=Capacity.fixed(1), write=write, windows=windows).targets()[1]


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2027-01-13T{clock}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        pytest.param("04:59", False, id="before it opens"),
        pytest.param("05:00", True, id="as it opens"),
        pytest.param("05:02", True, id="two minutes later"),
        pytest.param("05:03", False, id="three minutes later"),
        pytest.param("06:29", False, id="before it closes"),
        pytest.param("06:30", True, id="as it closes"),
        pytest.param("06:33", False, id="three minutes after it has closed"),
        pytest.param("12:00", False, id="as one opens that is no higher than the base"),
    ],
)
def test_bounds_have_changed_when_a_window_opened_or_closed_within_three_minutes(clock: str, expected: bool) -> None:
    assert has_changed(target(LOAD, LOW), at(clock), timedelta(minutes=3)) is expected


def test_bounds_without_windows_never_change_even_where_only_cloudformation_knows_them() -> None:
    assert not has_changed(target(min=DEPLOY_TIME), at("05:00"), timedelta(minutes=3))


def test_timeline_ends_before_its_end() -> None:
    base, load = Bounds(22, 220), Bounds(33, 220)
    assert timeline(target(LOAD), at("04:00"), at("06:30")) == ((at("04:00"), base), (at("05:00"), load))
    assert timeline(target(LOAD), at("04:00"), at("05:00")) == ((at("04:00"), base),)
    assert timeline(target(LOAD), at("05:00"), at("06:31")) == ((at("05:00"), load), (at("06:30"), base))
