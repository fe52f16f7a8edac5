"""The laws of a simulation, over random tables and traffic."""

from __future__ import annotations

from copy import copy
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.bucket import Bucket
from highwater_lab.physics import QUANTA_PER_UNIT, KeyDistribution
from highwater_lab.policies.catalogue import POLICY_NAMES, run_policy
from highwater_lab.policies.clairvoyant import clairvoyant
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic
from tests.core.examples import examples
from tests.simulation.tables import READ, START, WRITE, table, tracked, writes

RATES = st.one_of(st.integers(0, 300), st.integers(0, 12_000), st.just(0))
# stretches of minutes with one rate each: surges and lulls, not noise alone
SHAPES = st.lists(st.tuples(RATES, st.integers(1, 45)), min_size=1, max_size=12)
NAMES = sorted({name.replace("PERCENT", "60").replace("UNITS", "900") for name in POLICY_NAMES} - {"clairvoyant"})
KEYS = st.sampled_from([KeyDistribution.uniform(), KeyDistribution.single_hot_key(30), KeyDistribution.rolling()])


def _traffic(shape: list[tuple[int, int]], reads: list[tuple[int, int]] | None = None) -> Traffic:
    counts = {Stream(None, WRITE): _minutes(shape)}
    if reads:
        length = len(counts[Stream(None, WRITE)])
        counts[Stream(None, READ)] = (_minutes(reads) * length)[:length]
    return Traffic.from_counts("random", counts, bin_seconds=60, start=START)


def _minutes(shape: list[tuple[int, int]]) -> list[float]:
    return [float(units * 60 + units % 7) for units, minutes in shape for _ in range(minutes)]


def _check_conservation(run: Run, traffic: Traffic, setup: TableSetup) -> None:
    for target in run.targets:
        rates = traffic.rates.get(target.stream)
        if target.index is None and rates is not None:
            for minute, rate in enumerate(rates):
                assert target.demand_quanta(minute) == rate * 60, "demand is consumed and throttled, to the quantum"
    # consumed never exceeds what buckets held and refilled
    for target in run.targets:
        if target.capacity[0][1]:
            most = max(units for _, units in target.capacity)
            assert target.consumed_units <= target.provisioned_units + 300 * most
    for resource in setup.resources:
        if resource.index is not None:
            table_run, index_run = run.target(WRITE), run.target(WRITE, resource.index)
            for minute in range(run.minutes):
                share = table_run.consumed[minute] * resource.write_share_percent / 100
                assert abs(index_run.consumed[minute] - share) <= 60 * 60, "an index is written as its table is"


@given(SHAPES, SHAPES, st.sampled_from(NAMES), KEYS)
@settings(max_examples=examples(120))
def test_every_policy_conserves_demand(
    shape: list[tuple[int, int]], reads: list[tuple[int, int]], policy: str, keys: KeyDistribution
) -> None:
    setup = TableSetup(
        name="Orders",
        resources=(
            ResourceSetup(index=None, read=tracked(high=7_000), write=tracked(high=9_000), keys=keys),
            ResourceSetup(index="by_a", read=tracked(), write=tracked(high=4_000), write_share_percent=100),
            ResourceSetup(index="by_b", read=tracked(), write=tracked(high=4_000), write_share_percent=37),
        ),
    )
    traffic = _traffic(shape, reads)
    run = run_policy(policy, setup, traffic)
    _check_conservation(run, traffic, setup)
    again = run_policy(policy, setup, traffic)
    assert again == run, "the same input gives the same run"


@given(SHAPES, st.integers(1, 3_000), st.integers(1, 3_000))
@settings(max_examples=examples(150))
def test_more_capacity_never_throttles_more(shape: list[tuple[int, int]], units: int, more: int) -> None:
    traffic = _traffic(shape)
    small = run_policy("declared", table(TargetSetup.fixed(units)), traffic)
    large = run_policy("declared", table(TargetSetup.fixed(units + more)), traffic)
    assert large.throttled_units <= small.throttled_units


@given(SHAPES, st.sampled_from(NAMES))
@settings(max_examples=examples(60))
def test_minutes_and_seconds_of_the_same_rate_are_the_same(shape: list[tuple[int, int]], policy: str) -> None:
    setup = table(
        tracked(high=9_000), indexes=(ResourceSetup(index="by_a", read=tracked(), write=tracked(high=2_000)),)
    )
    per_second = [float(units) for units, minutes in shape for _ in range(minutes * 60)]
    per_minute = [float(units * 60) for units, minutes in shape for _ in range(minutes)]
    stream = Stream(None, WRITE)
    fine = Traffic.from_counts("made", {stream: per_second}, bin_seconds=1, start=START)
    coarse = Traffic.from_counts("made", {stream: per_minute}, bin_seconds=60, start=START)
    assert run_policy(policy, setup, fine) == run_policy(policy, setup, coarse)


@given(SHAPES, SHAPES, st.sampled_from([name for name in NAMES if name != "on-demand"]), st.integers(0, 59))
@settings(max_examples=examples(150))
def test_no_policy_without_throttles_costs_less_than_the_clairvoyant_bound(
    shape: list[tuple[int, int]], reads: list[tuple[int, int]], policy: str, late: int
) -> None:
    traffic = _traffic(shape, reads)
    traffic = traffic.starting(traffic.start + timedelta(minutes=late))
    setup = table(tracked(), indexes=(ResourceSetup(index="by_a", read=tracked(), write=tracked()),))
    run = run_policy(policy, setup, traffic)
    bound = clairvoyant(setup, traffic)
    assert bound.throttled_units == 0
    if run.throttled_units == 0:
        assert run.bill.provisioned >= bound.bill.provisioned - 1e-9


@given(
    st.lists(st.lists(st.integers(0, 900), min_size=4, max_size=4), min_size=1, max_size=4),
    st.lists(st.integers(1, 1_000), min_size=4, max_size=4),
    st.integers(0, 59),
)
@settings(max_examples=examples(200))
def test_no_hourly_capacities_that_serve_all_are_below_the_clairvoyant_bound(
    quarters: list[list[int]], capacities: list[int], late: int
) -> None:
    rates = [rate for hour in quarters for rate in hour for _ in range(15)][late:]
    start = START.replace(minute=late)
    bound = sum(run_policy("clairvoyant", table(tracked()), writes(*rates, start=start)).target(WRITE).hour_peaks)
    # each hour's least capacity above the drawn one that serves it, with the bucket that the hours before have left
    bucket = Bucket(capacities[0] * QUANTA_PER_UNIT)
    total, minute = 0, late
    for least in capacities[: len(quarters)]:
        demand = rates[minute - late : minute - late + 60 - minute % 60]
        for units in range(least, 1_001):
            tried = copy(bucket)
            tried.resize(units * QUANTA_PER_UNIT)
            if not total:
                tried = Bucket(units * QUANTA_PER_UNIT)
            if all(tried.serve(rate * 60, 60) == rate * 3_600 for rate in demand):
                break
        bucket, total, minute = tried, total + units, minute + len(demand)
    assert bound <= total


@given(SHAPES, st.integers(1, 20_000), st.sampled_from([50, 70, 90]))
@settings(max_examples=examples(100))
def test_bounds_and_budget_hold_under_target_tracking(shape: list[tuple[int, int]], high: int, target: int) -> None:
    low = max(1, high // 20)
    run = run_policy("declared", table(tracked(low=low, high=high, target=target)), _traffic(shape))
    write = run.target(Dimension.WRITE)
    assert all(low <= units <= high for _, units in write.capacity)
    falls = [at for (_, before), (at, after) in pairwise(write.capacity) if after < before]
    by_day: dict[int, list[int]] = {}
    for at in falls:
        by_day.setdefault((int(START.timestamp()) + at - 35) // 86_400, []).append(at)
    for day in by_day.values():
        assert all(later - earlier >= 3_600 for earlier, later in pairwise(day[3:]))
