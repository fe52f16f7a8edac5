"""Windows for surges that recur: on days of the week, or by the month."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Dimension, Plan, Window, check
from highwater.core.plan.month_days import MonthDay
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.recommend.code import _window
from highwater_lab.recommend.surges import Surge, find_month_day, find_surges, windows_for
from highwater_lab.simulation.plans import table_of
from highwater_lab.traffic import Stream, Traffic

ZONE = ZoneInfo("America/New_York")


def surges_on(*days: str, at: str = "05:10", minutes: int = 50) -> list[Surge]:
    starts = [datetime.fromisoformat(f"{day}T{at}").replace(tzinfo=ZONE) for day in days]
    return [Surge(start, start + timedelta(minutes=minutes), 5_940, 700.0) for start in starts]


def windows_of(surges: Iterable[Surge]) -> tuple[Window, ...]:
    return windows_for(list(surges), Dimension.WRITE, "America/New_York")


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param(("2026-09-01", "2026-10-01", "2026-11-01"), {"day": 1}, id="first day"),
        pytest.param(("2026-08-31", "2026-09-30", "2026-10-31"), {"day": "last"}, id="last day"),
        pytest.param(("2026-09-25", "2026-10-30", "2026-11-27"), {"weekday": "FRI", "nth": "last"}, id="last Friday"),
        pytest.param(("2026-09-07", "2026-10-05", "2026-11-02"), {"weekday": "MON", "nth": 1}, id="first Monday"),
        pytest.param(("2026-09-15", "2026-11-15", "2026-12-15"), {"day": 15}, id="a month without a surge between"),
        pytest.param(("2026-09-01", "2026-10-01"), None, id="twice may be chance"),
        pytest.param(("2026-09-01", "2026-09-15", "2026-10-01", "2026-11-01"), None, id="one of four on another day"),
        pytest.param(("2026-09-07", "2026-09-14", "2026-09-21"), None, id="weeks of one month"),
    ],
)
def test_day_of_the_month_is_that_of_each_surge(days: tuple[str, ...], expected: dict[str, Any] | None) -> None:
    found = find_month_day(map(date.fromisoformat, days))
    assert found == (None if expected is None else MonthDay(**expected))


def test_surges_of_one_day_of_the_month_get_a_monthly_window_and_others_a_weekly_one() -> None:
    monthly = surges_on("2026-08-31", "2026-09-30", "2026-10-31", at="22:30")
    weekly = surges_on("2026-09-07", "2026-09-08", "2026-09-09", "2026-09-14", minutes=30)
    windows = {window.start: window for window in windows_of([*monthly, *weekly])}
    assert windows["22:30"] == Window.monthly(
        windows["22:30"].name, day="last", start="22:30", end="23:20", timezone="America/New_York", write_min=6_000
    )
    assert windows["05:10"].days == "MON-WED"


@pytest.mark.parametrize(
    ("days", "told"),
    [
        pytest.param(("2026-09-01", "2026-10-01", "2026-11-01"), "day=1", id="number"),
        pytest.param(("2026-08-31", "2026-09-30", "2026-10-31"), 'day="last"', id="last"),
        pytest.param(("2026-09-25", "2026-10-30", "2026-11-27"), 'weekday="FRI", nth="last"', id="weekday"),
    ],
)
def test_code_of_a_monthly_window_declares_it(days: tuple[str, ...], told: str) -> None:
    (window,) = windows_of(surges_on(*days))
    code = _window(window)
    assert code == (
        f'Window.monthly("write-surge-1", {told}, start="05:10", end="06:00", timezone="America/New_York", '
        "write_min=6_000)"
    )
    assert eval(code, {"Window": Window}) == window  # noqa: S307 - our own text
    plan = Plan(read=Capacity.fixed(units=7), write=Capacity.fixed(units=13), windows=(window,))
    assert not check(plan)


def test_surges_of_three_paydays_in_nine_weeks_are_found() -> None:
    """As many weeks as CloudWatch has datapoints of five minutes."""
    start = datetime(2026, 8, 31, 4, tzinfo=UTC)
    loads = []
    for minute in range(62 * 1440):
        local = (start + timedelta(minutes=minute)).astimezone(ZONE)
        is_payday = (local + timedelta(days=1)).day == 1
        loads.append(6_000 * 60.0 if is_payday and local.hour == 5 else 40 * 60.0)
    traffic = Traffic.from_counts("paydays", {Stream(None, Dimension.WRITE): loads}, bin_seconds=60, start=start)
    flat = Plan(read=Capacity.fixed(units=7), write=Capacity.fixed(units=60))
    run = run_policy("declared", table_of(flat, "table"), traffic)
    (window,) = windows_of(find_surges(run, Dimension.WRITE, ZONE))
    assert replace(window, name="payday") == Window.monthly(
        "payday", day="last", start="05:00", end="06:00", timezone="America/New_York", write_min=6_000
    )
