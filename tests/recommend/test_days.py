"""The days that a plan is chosen on and those that it is judged on, and rises that auto scaling cannot follow."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from highwater_lab.recommend.days import split_days, sudden_rise
from highwater_lab.traffic import Traffic
from tests.simulation.tables import START, WRITE, writes

UTC, NEW_YORK = ZoneInfo("UTC"), ZoneInfo("America/New_York")
HOUR = 60


def _hours(hours: int) -> Traffic:
    return writes(*[600] * (hours * HOUR))


@pytest.mark.parametrize(
    ("hours", "zone", "cut_hour"),
    [
        pytest.param(3 * 24, UTC, 38, id="three-days"),
        pytest.param(7 * 24, UTC, 110, id="a-week-is-cut-in-its-fifth-day"),
        pytest.param(14 * 24, UTC, 206, id="a-fortnight-is-cut-in-its-ninth-day"),
        pytest.param(14 * 24, NEW_YORK, 211, id="midnight-is-that-of-the-zone"),
    ],
)
def test_last_third_is_cut_at_midnight(hours: int, zone: ZoneInfo, cut_hour: int) -> None:
    traffic = _hours(hours)
    days = split_days(traffic, zone)
    assert days.cut == cut_hour * HOUR
    assert days.chosen.minutes == days.cut
    assert days.whole is traffic
    local = (START + timedelta(minutes=days.cut)).astimezone(zone)
    assert (local.hour, local.minute) == (0, 0)


def test_few_days_are_said_to_be_few() -> None:
    assert split_days(_hours(14 * 24), UTC).remark == ""
    assert split_days(_hours(14 * 24 - 1), UTC).remark == (
        "14.0 days of traffic do not show what a week brings; give a fortnight or more"
    )
    short = split_days(_hours(71), UTC)
    assert (short.cut, short.chosen) == (None, short.whole)
    assert short.remark == "3.0 days of traffic: there is nothing to judge the plan on; give three days or more"


def _rise(times: int) -> tuple[datetime, float] | None:
    # a mean near 300 units a minute
    found = sudden_rise(writes(*[300] * 1_000, *[300, 300, 300, 300, 300 * times], *[300] * 1_000))
    return None if found is None else (found.at, found.times)


def test_rise_of_ten_times_within_five_minutes_is_found() -> None:
    assert _rise(9) is None
    assert _rise(11) == (START + timedelta(minutes=1_004), 11.0)
    # a tenth of the mean is the least that a rise begins at, so that quiet tables have none
    quiet = sudden_rise(writes(*[0] * 100, 50, *[600] * 900))
    assert quiet is not None
    assert (quiet.at, round(quiet.times, 1)) == (START + timedelta(minutes=101), 11.1)
    assert WRITE in {stream.dimension for stream in writes(1).rates}
