"""Demand by itself: sized as the scaler sizes it in minute 58, when no capacity is kept for the hour."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core.scaler import Mode, ScalerSettings, TargetState, decide
from highwater.core.scaler.demand import DemandAlone
from highwater.core.scaler.stages import demand_alone
from tests.core.decisions_to_make import DIRECT, FLOOR, LATE, NOW, law, seen, state
from tests.core.test_decide_laws import Minutes, observation, series, states

IDLE: list[int | None] = [0] * 200
# 900 units a second for twenty minutes, after an idle day
SURGE = [*IDLE, *[54_000] * 20]
# every half hour a quarter of an hour of 300 units a second
JUMPS = [*[600] * 60, *([18_000] * 15 + [600] * 15) * 6, *[600] * 20]


@pytest.mark.parametrize(
    ("consumed", "throttled", "expected"),
    [
        pytest.param([*SURGE, *[600] * 29], [], DemandAlone(900, 1), id="a surge that has just counted"),
        pytest.param([*SURGE, *[600] * 30], [], DemandAlone(15, 30), id="a surge that is over: headroom for a jump"),
        pytest.param([*IDLE, 600, 600], [3_000, 0], DemandAlone(60, 29), id="throttled units are demand"),
        pytest.param([*IDLE, 600, None], [0, 6_600], DemandAlone(158, 30), id="in a minute to come too, with headroom"),
        pytest.param([600] * 20, [], DemandAlone(15, 20), id="less than an hour is known: headroom"),
        pytest.param(JUMPS, [], DemandAlone(300, 25), id="jumps often: an hour counts"),
        pytest.param(
            [*JUMPS, *[18_000] * 4], [], DemandAlone(300, 60), id="which leaves no headroom for the next jump"
        ),
        pytest.param([*SURGE, *[None] * 28, 600, 600], [], DemandAlone(900, 28), id="an outage is not half an hour"),
        pytest.param([*SURGE, *[None, 600] * 15], [], DemandAlone(900, 15), id="nor is every other minute"),
        pytest.param([0] * 90, [], DemandAlone(0, 30), id="idle"),
        pytest.param([None] * 90, [], None, id="nothing is known"),
        pytest.param([], [], None, id="no minutes"),
    ],
)
def test_demand_is_the_peak_of_the_last_half_hour_that_is_known(
    consumed: list[int | None], throttled: list[int], expected: DemandAlone | None
) -> None:
    seen_now = seen(consumed, throttled or [0] * min(len(consumed), 30))
    assert demand_alone(FLOOR, seen_now) == demand_alone(DIRECT, seen_now) == expected


def test_demand_is_not_known_where_throttles_are_likely_and_not_known() -> None:
    assert demand_alone(FLOOR, replace(seen([*SURGE]), lacks_throttles=True)) is None


@pytest.mark.parametrize(
    ("boosts", "expected"),
    [({}, None), ({"boosts": 7}, DemandAlone(900, 30)), ({"boosted_total": 9}, DemandAlone(900, 30))],
    ids=["without a boost", "a boost", "a boost to a total"],
)
def test_decision_has_the_demand_of_a_target_with_a_boost(boosts: dict[str, int], expected: DemandAlone | None) -> None:
    found = decide(FLOOR, state(900, **boosts), seen([54_000] * 200), now=NOW)
    assert (found.alone, found.granted) == (expected, 900 + boosts.get("boosts", 0))


prices = st.sampled_from([3, 100, 40_000])


@law
@given(prices, series)
def test_demand_is_the_floor_of_minute_58_where_nothing_is_kept(price: int, minutes: Minutes) -> None:
    """Where no datapoint is missing: what the two stages ask for without the floor that was there before."""
    settings = ScalerSettings(throttle_price_requests=price)
    seen_now = observation([(units or 0, throttled) for units, throttled in minutes], LATE)
    found = demand_alone(settings, seen_now)
    if found is None:
        assert not minutes
        return
    assert found.units == decide(settings, state(0), seen_now, now=LATE).wanted
    assert 1 <= found.minutes <= 60


@law
@given(series, st.integers(0, 29), st.integers(1, 30_000))
def test_more_throttles_never_make_demand_smaller(minutes: Minutes, back: int, more: int) -> None:
    if not minutes:
        return
    at = len(minutes) - 1 - back % len(minutes)
    worse = [*minutes]
    worse[at] = (minutes[at][0], minutes[at][1] + more)
    before, after = (demand_alone(FLOOR, observation(each, NOW)) for each in (minutes, worse))
    if before is None:
        assert after is None
        return
    assert after is not None
    assert after.units >= before.units


@law
@given(st.sampled_from([FLOOR, DIRECT, ScalerSettings(mode=Mode.BOOSTS)]), states, series)
def test_decision_has_the_demand_of_a_boosted_target_and_never_more_than_its_own_part(
    settings: ScalerSettings, target: TargetState, minutes: Minutes
) -> None:
    seen_now = observation(minutes, NOW)
    decision = decide(settings, target, seen_now, now=NOW)
    alone = demand_alone(settings, seen_now)
    is_known = settings.mode.follows_demand and target.boosts > 0 and alone is not None
    assert (decision.alone is not None) is is_known
    if decision.alone is not None and alone is not None:
        assert decision.alone.units <= alone.units
        assert decision.alone.units <= decision.granted - decision.boosted
