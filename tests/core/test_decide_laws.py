"""Laws of one decision: what holds for whatever a table has consumed and throttled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from highwater.core import DecreaseBudget, Dimension
from highwater.core.scaler import Mode, Observation, ScalerSettings, TargetState, decide
from highwater.core.scaler.regret import Regret
from tests.core.decisions_to_make import DIRECT, FLOOR, NOW, law, seen

Minutes = list[tuple[int | None, int]]
amounts = st.one_of(st.none(), st.integers(0, 60_000))
# so many minutes alike: units consumed, units throttled, how long
stretches = st.tuples(amounts, st.integers(0, 40_000), st.sampled_from([1, 1, 1, 2, 4, 15, 40]))


def series_of(stretches_at_most: int) -> st.SearchStrategy[Minutes]:
    return st.lists(stretches, max_size=stretches_at_most).map(
        lambda parts: [(units, throttled) for units, throttled, length in parts for _ in range(length)]
    )


series = series_of(16)
states = st.builds(
    lambda current, baseline, room, boosts, quota, used, ago: TargetState(
        index="by_status",
        dimension=Dimension.READ,
        current=current,
        baseline=baseline,
        ceiling=baseline + room,
        boosts=boosts,
        quota_units=quota,
        budget=DecreaseBudget(used, NOW - timedelta(seconds=ago)) if used else DecreaseBudget(),
    ),
    st.integers(1, 3_000),
    st.integers(1, 900),
    st.integers(0, 2_000),
    st.sampled_from([0, 0, 7, 300]),
    st.integers(500, 4_000),
    st.integers(0, 6),
    st.integers(0, 40_000),
)
modes = st.sampled_from(
    [FLOOR, DIRECT, replace(FLOOR, throttle_price_requests=3), replace(DIRECT, throttle_price_requests=40_000)]
)
nows = st.integers(0, 3_600).map(lambda second: NOW + timedelta(seconds=second))


regrets = st.none() | st.builds(
    Regret, st.integers(1, 3_000), st.integers(0, 90_000), st.integers(0, 90_000), st.integers(0, 10**6)
)


def observation(minutes: Sequence[tuple[int | None, int]], now: datetime, regret: Regret | None = None) -> Observation:
    found = seen([units for units, _ in minutes], [throttled for _, throttled in minutes], now)
    return replace(found, regret=regret)


@law
@given(modes, states, series, nows, regrets)
def test_answer_is_within_ceiling_and_quota_and_never_below_the_plan(
    scaler: ScalerSettings, target: TargetState, minutes: Minutes, now: datetime, regret: Regret | None
) -> None:
    decision = decide(scaler, target, observation(minutes, now, regret), now=now)
    most = min(target.ceiling, target.quota_units)
    if scaler.mode is Mode.FLOOR:
        assert min(target.baseline, most) <= decision.granted <= most
    else:
        assert decision.granted <= max(most, target.current)
        assert decision.granted >= min(target.baseline, most)


@law
@given(modes, states, series, nows, regrets)
def test_deciding_again_on_the_answer_changes_nothing(
    scaler: ScalerSettings, target: TargetState, minutes: Minutes, now: datetime, regret: Regret | None
) -> None:
    seen_now = observation(minutes, now, regret)
    first = decide(scaler, target, seen_now, now=now)
    budget = target.budget.after(now) if first.granted < target.current else target.budget
    again = decide(scaler, replace(target, current=first.granted, budget=budget), seen_now, now=now)
    assert again.granted == first.granted


@law
@given(modes, states, series, nows, regrets, st.integers(0, 999), st.integers(1, 30_000))
def test_more_throttles_never_give_a_lower_answer(
    scaler: ScalerSettings,
    target: TargetState,
    minutes: Minutes,
    now: datetime,
    regret: Regret | None,
    at: int,
    more: int,
) -> None:
    if not minutes:
        return
    at %= len(minutes)
    worse = [*minutes]
    worse[at] = (minutes[at][0], minutes[at][1] + more)
    before = decide(scaler, target, observation(minutes, now, regret), now=now)
    after = decide(scaler, target, observation(worse, now, regret), now=now)
    assert after.granted >= before.granted


@law
@given(modes, states, series, nows)
def test_nothing_is_lowered_on_missing_data(
    scaler: ScalerSettings, target: TargetState, minutes: Minutes, now: datetime
) -> None:
    silent = [(None, throttled) for _, throttled in minutes]
    decision = decide(scaler, target, observation(silent, now), now=now)
    most = min(target.ceiling, target.quota_units)
    assert decision.granted >= min(target.current - target.boosts, most)


@law
@given(modes, states, series, nows, st.integers(1, 5))
def test_minutes_whose_datapoints_are_still_to_come_change_nothing(
    scaler: ScalerSettings, target: TargetState, minutes: Minutes, now: datetime, late: int
) -> None:
    known = observation(minutes, now)
    waiting = Observation.of(
        known.newest + late, (*known.consumed_units, *[None] * late), (*known.throttled_units, *[0] * late)
    )
    assert decide(scaler, target, waiting, now=now) == decide(scaler, target, known, now=now)


@law
@given(modes, states, series, nows)
def test_limits_lead_from_what_was_wanted_to_what_was_granted(
    scaler: ScalerSettings, target: TargetState, minutes: Minutes, now: datetime
) -> None:
    decision = decide(scaler, target, observation(minutes, now), now=now)
    values = [decision.wanted]
    for limit in decision.limits:
        assert limit.before == values[-1]
        assert limit.before != limit.after
        values.append(limit.after)
    assert values[-1] == decision.granted
    assert all(isinstance(value, int) for value in values), "capacity is whole units"
    assert decision.changes is (decision.granted != decision.current)


@law
@given(states, st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 500), series_of(2)), max_size=30))
def test_direct_never_uses_more_decreases_than_the_day_has(
    target: TargetState, runs: list[tuple[int, int, Minutes]]
) -> None:
    """Each run follows forty minutes alike and what came after them, so that data are seldom missing."""
    now, accepted = NOW, []
    for units, throttled, after in runs:
        minutes = [*[(units, throttled)] * 40, *after]
        decision = decide(DIRECT, target, observation(minutes, now), now=now)
        if decision.granted < target.current:
            assert target.budget.allows(now)
            accepted.append(now)
            target = replace(target, budget=target.budget.after(now))
        target = replace(target, current=decision.granted)
        now += timedelta(minutes=11)
    by_day = itertools.groupby(accepted, key=datetime.date)
    for _, decreases in by_day:
        later = list(decreases)[3:]
        assert all(second - first >= timedelta(hours=1) for first, second in itertools.pairwise(later))
