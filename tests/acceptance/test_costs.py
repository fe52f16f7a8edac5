"""The highest cost of a part of the acceptance suite."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from acceptance.costs import Cost, clock_hours, cost_of, ends_within, longest
from highwater.core import Capacity, Plan, Window
from highwater_lab.services.prices import load_prices

PRICES = load_prices()
START = datetime(2031, 3, 4, 1, 10, tzinfo=UTC)
LATER = START + timedelta(hours=2)
PLAN = Plan(
    read=Capacity.fixed(units=7),
    write=Capacity.autoscaled(min_capacity=30, max_capacity=900),
    windows=(Window.daily("load", start="02:00", end="03:00", timezone="UTC", write_min=400),),
)


def _cost(
    *plans: Plan, reaches_ceiling: bool = False, bare_units: int = 0, start: datetime = START, minutes: int = 8
) -> Cost:
    return cost_of(
        plans,
        minutes=minutes,
        reaches_ceiling=reaches_ceiling,
        bare_units=bare_units,
        start=start,
        end=start + timedelta(hours=2),
        prices=PRICES,
    )


def test_part_is_ended_after_half_as_long_again_and_counted_for_every_clock_hour_that_it_can_touch() -> None:
    assert longest(8) == timedelta(minutes=12)
    assert ends_within(8) == timedelta(minutes=32)
    # 32 minutes that begin at 01:40 touch two hours; 98 minutes may touch three
    assert (clock_hours(8), clock_hours(52)) == (2, 3)


def test_table_without_traffic_costs_its_highest_floor() -> None:
    in_window, before = _cost(PLAN), _cost(PLAN, start=START - timedelta(hours=8))
    assert in_window.capacity == pytest.approx(
        2 * (7 * PRICES.throughput().read_unit_hour + 400 * PRICES.throughput().write_unit_hour)
    )
    assert before.capacity == pytest.approx(
        2 * (7 * PRICES.throughput().read_unit_hour + 30 * PRICES.throughput().write_unit_hour)
    )


def test_table_with_a_surge_costs_its_ceiling_and_other_tables_count_at_the_price_of_writes() -> None:
    cost = _cost(PLAN, reaches_ceiling=True, bare_units=11, minutes=52)
    assert cost.capacity == pytest.approx(
        3 * (7 * PRICES.throughput().read_unit_hour + 911 * PRICES.throughput().write_unit_hour)
    )


def test_marks_are_charged_once_and_alarms_by_the_hour() -> None:
    cost = _cost(PLAN, PLAN)
    assert cost.marks == pytest.approx(2 * 370 * PRICES.throughput().write_unit_hour)
    assert cost.alarms == pytest.approx(2 * 2 * 5 * 2 * PRICES.alarm_month / 730)
    assert cost.total == pytest.approx(cost.capacity + cost.marks + cost.alarms)
