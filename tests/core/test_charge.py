"""The least that declared capacity costs in a month, by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from highwater.core import Capacity, IndexCapacity, Plan, Window
from highwater.core.prices import prices_or_usual
from highwater.core.schedule.charge import floors_text, least_charge

# 0.00013 USD a read unit and hour, 0.00065 a write unit and hour
PRICES = prices_or_usual("us-east-1")
FLAT = Plan(
    read=Capacity.autoscaled(min_capacity=200, max_capacity=8_000),
    write=Capacity.autoscaled(min_capacity=100, max_capacity=20_000),
)


NO_LEAD = timedelta(0)


def test_base_floors_are_paid_for_730_hours() -> None:
    charge = least_charge(FLAT.targets(), PRICES)
    # 200 x 0.00013 x 730 + 100 x 0.00065 x 730
    assert (charge.base, charge.windows, charge.usd) == (Decimal("66.430"), Decimal(0), Decimal("66.43"))
    assert floors_text(FLAT.targets()) == "200 RCU and 100 WCU"


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("05:00", "06:00", 1, id="one-clock-hour"),
        pytest.param("05:00", "06:01", 2, id="a-minute-of-the-next-hour-is-billed-as-the-hour"),
        pytest.param("05:59", "06:01", 2, id="two-minutes-in-two-hours"),
        pytest.param("23:30", "00:30", 2, id="over-midnight"),
    ],
)
def test_window_adds_the_clock_hours_that_it_touches(start: str, end: str, hours: int) -> None:
    window = Window.daily("load", start=start, end=end, timezone="UTC", write_min=1_100, lead=NO_LEAD)
    charge = least_charge(replace(FLAT, windows=(window,)).targets(), PRICES)
    # 1,000 units above the base floor
    assert charge.windows == Decimal(hours) * 1_000 * Decimal("0.00065") * 730 / 24


def test_monthly_window_is_paid_twelve_times_a_year() -> None:
    window = Window.monthly(
        "load", day="last", start="05:00", end="07:30", timezone="UTC", write_min=1_100, lead=NO_LEAD
    )
    charge = least_charge(replace(FLAT, windows=(window,)).targets(), PRICES)
    # three clock hours, in a year of 52 weeks
    assert charge.windows == 12 * 3 * 1_000 * Decimal("0.00065") * 730 / (52 * 7 * 24)


def test_windows_that_overlap_in_an_hour_are_paid_once_and_one_off_windows_not_at_all() -> None:
    windows = (
        Window.daily("low", start="05:00", end="05:20", timezone="UTC", write_min=400, lead=NO_LEAD),
        Window.daily("high", start="05:40", end="06:00", timezone="UTC", write_min=600, lead=NO_LEAD),
        Window.once("sale", start="2027-01-05T08:00", end="2027-01-05T20:00", timezone="UTC", write_min=9_000),
    )
    charge = least_charge(replace(FLAT, windows=windows).targets(), PRICES)
    assert charge.windows == 500 * Decimal("0.00065") * 730 / 24


def test_indexes_are_paid_as_the_table_is_and_unknown_bounds_are_not() -> None:
    plan = replace(FLAT, indexes=(IndexCapacity(index_name="by-day", read=Capacity.fixed(units=7)),))
    assert floors_text(plan.targets()) == "207 RCU and 200 WCU"
    # 207 x 0.00013 x 730 + 200 x 0.00065 x 730
    assert least_charge(plan.targets(), PRICES).usd == Decimal("114.54")
