"""What a run can cost at different times of the week."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from acceptance.costs import SMALL_THINGS_USD
from acceptance.estimate import costs_at, other_times
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core import Capacity, Plan, Window
from highwater_lab.services.prices import load_prices

PRICES = load_prices()


def _do_nothing(_: Stage) -> None:
    pass


PLAN = Plan(
    read=Capacity.fixed(units=7),
    write=Capacity.autoscaled(min_capacity=30, max_capacity=9_000),
    windows=(Window.weekly("load", days="MON,TUE", start="10:00", end="12:00", timezone="UTC", write_min=4_000),),
)
PLANNED = [
    (Part(name="quiet", title="quiet", minutes=8, bare_units=11, run=_do_nothing), []),
    (Part(name="window", title="window", minutes=15, run=_do_nothing), [PLAN]),
]
OUTSIDE, BEFORE, INSIDE = (datetime(2031, 3, 4, hour, 40, tzinfo=UTC) for hour in (2, 9, 11))


def _total(at: datetime) -> float:
    return SMALL_THINGS_USD + sum(cost.total for cost in costs_at(at, PLANNED, PRICES))


def test_window_counts_that_a_later_part_may_touch() -> None:
    low, before, inside = (costs_at(at, PLANNED, PRICES) for at in (OUTSIDE, BEFORE, INSIDE))
    assert low[0] == before[0] == inside[0]
    # 43 minutes may touch two clock hours
    units = 4_000 - 30
    assert before[1].capacity - low[1].capacity == pytest.approx(2 * units * PRICES.throughput().write_unit_hour)
    assert before == inside


def test_dear_time_names_the_next_cheap_one() -> None:
    least, most = _total(OUTSIDE), _total(INSIDE)
    said = f"Windows that are open make some times of the week dearer: a run can cost {least:.2f} to {most:.2f} USD"
    assert other_times(INSIDE, most, PLANNED, PRICES) == f"{said}; the next cheap time is Tuesday 12:00 UTC."
    assert other_times(OUTSIDE, least, PLANNED, PRICES) == f"{said}; now is a cheap time."


def test_nothing_is_said_where_the_time_makes_no_difference() -> None:
    quiet = PLANNED[:1]
    total = SMALL_THINGS_USD + sum(cost.total for cost in costs_at(INSIDE, quiet, PRICES))
    assert other_times(INSIDE, total, quiet, PRICES) is None
