"""When on-demand is the better choice, by a table's last day."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.scaler.on_demand import on_demand_percent

READ, WRITE = Dimension.READ, Dimension.WRITE
DAY = 1_440


def test_steady_traffic_costs_more_than_three_times_as_much_on_demand() -> None:
    # 3,600 requests in an hour that a unit for 1,040 requests' price holds
    assert on_demand_percent([(WRITE, [60 * 50] * DAY)]) == 347


def test_a_minute_of_each_hour_is_cheaper_on_demand() -> None:
    hour = [60 * 50, *[0] * 59]
    assert on_demand_percent([(WRITE, hour * 24)]) == 6


def test_capacity_is_whole_units_and_at_least_one() -> None:
    assert on_demand_percent([(WRITE, [60] * DAY)]) == 347
    assert on_demand_percent([(WRITE, [61] * DAY)]) == 176, "61 units a minute need two units per second"
    assert on_demand_percent([(WRITE, [30] * DAY)]) == 174


def test_hour_that_is_not_known_costs_one_unit() -> None:
    # 1,151 hours of a unit, in place of 1,200
    assert on_demand_percent([(WRITE, [*[None] * 60, *[60 * 50] * (DAY - 60)])]) == 346


def test_writes_weigh_five_reads() -> None:
    bursts, steady = [60 * 100, *[0] * 59] * 24, [60 * 100] * DAY
    assert on_demand_percent([(READ, bursts), (WRITE, steady)]) == 290
    assert on_demand_percent([(WRITE, bursts), (READ, steady)]) == 63


def test_less_than_a_day_tells_nothing_and_neither_do_gaps_of_more_than_an_hour() -> None:
    assert on_demand_percent([(WRITE, [60] * 1_379)]) is None
    assert on_demand_percent([(WRITE, [60] * 1_380)]) is not None
    assert on_demand_percent([(WRITE, [*[None] * 61, *[60] * 1_379])]) is None


def test_table_that_nothing_is_asked_of_is_no_matter() -> None:
    assert on_demand_percent([(WRITE, [0] * DAY), (READ, [0] * DAY)]) is None


@given(st.lists(st.integers(0, 90_000), min_size=24, max_size=24), st.integers(1, 9))
def test_more_of_the_same_traffic_never_costs_a_smaller_part(hours: list[int], times: int) -> None:
    day = [units for units in hours for _ in range(60)]
    once, more = on_demand_percent([(WRITE, day)]), on_demand_percent([(WRITE, [units * times for units in day])])
    assert (once is None) is (more is None)
    # capacity comes in whole units, which weighs most where there are few
    assert once is None or more is None or more >= once


@pytest.mark.parametrize("late", [0, 3, 200])
def test_older_minutes_than_a_day_do_not_count(late: int) -> None:
    day = [60 * 50, *[0] * 59] * 24
    assert on_demand_percent([(WRITE, [*[60 * 9_000] * late, *day])]) == 6
