"""The search for the cheapest plan alone: bounds that are below every cost, and nearly the same plans in less work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.policies.clairvoyant import clairvoyant
from highwater_lab.recommend import recommend
from highwater_lab.recommend.bounds import least_usd
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic, scenario
from tests.simulation.tables import START, writes

FIXED = TargetSetup.fixed(1)
TABLE = TableSetup(name="orders", resources=(ResourceSetup(index=None, read=FIXED, write=FIXED),))


@given(
    reads=st.lists(st.integers(0, 9_000), min_size=61, max_size=61),
    writes=st.lists(st.integers(0, 9_000), min_size=61, max_size=61),
)
def test_no_capacity_costs_less_than_the_bound(reads: list[int], writes: list[int]) -> None:
    counts = {Stream(None, Dimension.READ): map(float, reads), Stream(None, Dimension.WRITE): map(float, writes)}
    traffic = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    prices = load_prices()
    bound = clairvoyant(TABLE, traffic, prices=prices).bill.per_month
    assert least_usd(traffic, prices, 0) <= bound + 1e-9
    assert least_usd(traffic, prices, 3) <= least_usd(traffic, prices, 0)


@pytest.mark.parametrize("name", ["step", "figure-2"])
def test_plan_is_as_cheap_as_that_of_the_whole_search(name: str) -> None:
    traffic = scenario(name)
    whole = recommend(traffic)
    alone = recommend(traffic, below_usd=1e9)
    assert alone.is_within_limit == whole.is_within_limit
    assert alone.best.cost_per_month <= 1.02 * whole.best.cost_per_month
    assert alone.tried < whole.tried
    assert alone.scaled == {}


def test_plan_is_the_same_without_the_scaler() -> None:
    traffic = scenario("step")
    whole, alone = recommend(traffic), recommend(traffic, with_scaler=False)
    assert (alone.best, alone.curve, alone.on_demand) == (whole.best, whole.curve, whole.on_demand)
    assert (alone.scaled, alone.tried) == ({}, whole.tried - len(whole.scaled))


def test_what_bounds_exclude_is_not_simulated() -> None:
    traffic = writes(*[600 * 60] * 120)
    # a month of 554 write units, which with full buckets could serve it, and a read unit
    least = least_usd(traffic, load_prices(), 0.01)
    found = recommend(traffic, below_usd=least)
    assert (found.tried, found.best.plan) == (1, None)
