"""What a run can cost at different times of the week."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from acceptance.costs import SMALL_THINGS_USD
from acceptance.estimate import costs_at, other_times, tell_cost
from acceptance.parts.boosts import BOOSTS
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core import Capacity, Plan, Window
from highwater_lab.services.prices import load_prices
from tests.acceptance.fake_place import FakePlace, stage_of

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


def test_cost_is_told_at_prices_of_the_region_that_was_asked_for(tmp_path: Path) -> None:
    stage = stage_of(FakePlace(region="us-east-1"), tmp_path)
    output = io.StringIO()
    stage.console = Console(file=output, width=160)
    parts = [Part(name="large", title="large", minutes=8, bare_units=9_000, run=_do_nothing)]
    here, there = tell_cost(stage, parts), tell_cost(stage, parts, "eu-west-1")
    # 9,000 units in two clock hours
    units = 2 * 9_000
    assert there - here == pytest.approx(
        units * (load_prices("eu-west-1").throughput().write_unit_hour - PRICES.throughput().write_unit_hour)
    )
    assert there > here
    titles = [line.strip() for line in output.getvalue().splitlines() if line.startswith("At most")]
    assert titles == ["At most, in us-east-1", "At most, in eu-west-1"]


def test_boosted_table_is_counted_at_the_most_that_a_job_gets() -> None:
    assert BOOSTS.bare_units == 600
