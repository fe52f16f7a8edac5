"""In FLOOR mode capacity is lowered to its floor at the end of an hour, through the ceiling."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import Bounds, DecreaseBudget, Dimension, Units
from highwater.core.scaler import (
    Mode,
    Observation,
    SeenResource,
    SeenTarget,
    TableReview,
)
from highwater.core.scaler.attention import may_be_lowered
from tests.core.examples import examples
from tests.core.test_review import PLAN, READ, WRITE
from tests.core.test_review import reviewed as turn

LATE = datetime(2027, 3, 4, 10, 58, 40, tzinfo=UTC)
BOUNDS = {READ: Bounds(7, 900), WRITE: Bounds(12, 400)}


def seen(units: int, at: datetime = LATE, throttled: int = 0, missing: int = 0, **more: Any) -> Observation:
    """So many units a second for all minutes, the newest of which ended 160 seconds ago; *missing* of them unknown."""
    newest = (int(at.timestamp()) - 160) // 60 - 1
    minutes: list[int | None] = [units * 60] * (500 - missing) + [None] * missing
    return Observation.of(newest, minutes, (*(0,) * 499, throttled), **more)


def reviewed(
    observations: dict[Any, Observation],
    capacity: tuple[int, int],
    at: datetime = LATE,
    mode: Mode = Mode.FLOOR,
    **seen_of_it: Any,
) -> TableReview:
    targets = {
        key: SeenTarget(registered=BOUNDS[key] if mode.moves_floors else None, observation=each)
        for key, each in observations.items()
    }
    return turn(targets, mode=mode, at=at, capacity=capacity, **seen_of_it)


def lowered(result: TableReview) -> list[Bounds | None]:
    return [each.lowered for each in result.targets]


def test_capacity_that_auto_scaling_left_above_the_floor_is_lowered_to_it() -> None:
    (write,) = reviewed({WRITE: seen(50)}, (7, 300)).targets
    assert write.lowered == Bounds(50, 50)
    assert write.bounds == Bounds(50, 400), "the ceiling is the plan's right after"
    assert write.decision.lowered_to == 50


@pytest.mark.parametrize(
    ("minute", "expected"), [(57, None), (58, Bounds(50, 50)), (59, Bounds(50, 50)), (0, None), (30, None)]
)
def test_capacity_is_lowered_in_the_last_two_minutes_of_an_hour(minute: int, expected: Bounds | None) -> None:
    at = LATE.replace(minute=minute)
    assert lowered(reviewed({WRITE: seen(50, at)}, (7, 300), at)) == [expected]


def test_capacity_little_above_the_floor_stays() -> None:
    assert lowered(reviewed({WRITE: seen(50)}, (7, 51))) == [None]
    assert lowered(reviewed({WRITE: seen(50)}, (7, 52))) == [Bounds(50, 50)]
    assert lowered(reviewed({WRITE: seen(50)}, (7, 40))) == [None]


@pytest.mark.parametrize(
    ("observation", "more"),
    [
        pytest.param(seen(50, missing=14), {}, id="old data"),
        pytest.param(Observation.nothing(), {}, id="no data"),
        pytest.param(seen(50, lacks_throttles=True), {}, id="throttles unknown"),
        pytest.param(seen(50, throttled=1), {}, id="throttled"),
        pytest.param(seen(50), {"lacks_leases": True}, id="boosts unknown"),
        pytest.param(seen(50), {"is_active": False}, id="busy"),
        pytest.param(seen(50), {"budget": DecreaseBudget(4, LATE - timedelta(minutes=59))}, id="no decrease left"),
        pytest.param(seen(50), {"mode": Mode.BOOSTS}, id="boosts"),
    ],
)
def test_capacity_stays_where_too_little_is_known_or_nothing_may_be_lowered(
    observation: Observation, more: dict[str, Any]
) -> None:
    assert lowered(reviewed({WRITE: observation}, (7, 300), **more)) == [None]


def test_decrease_an_hour_after_the_last_is_used() -> None:
    budget = DecreaseBudget(4, LATE - timedelta(minutes=60))
    assert lowered(reviewed({WRITE: seen(50)}, (7, 300), budget=budget)) == [Bounds(50, 50)]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [((500, 151), [None, Bounds(50, 50)]), ((600, 149), [Bounds(80, 80), None])],
    ids=["writes save 505 reads' worth", "reads save 520, writes 495"],
)
def test_of_reads_and_writes_the_one_is_lowered_that_saves_more(
    capacity: tuple[int, int], expected: list[Bounds | None]
) -> None:
    # a write unit costs five read units
    assert lowered(reviewed({READ: seen(80), WRITE: seen(50)}, capacity)) == expected


def test_headroom_of_target_tracking_stays_after_an_hour_with_spikes() -> None:
    spiky: list[int | None] = [50 * 60] * 500
    spiky[-40] = 170 * 60
    newest = (int(LATE.timestamp()) - 160) // 60 - 1
    (write,) = reviewed({WRITE: Observation.of(newest, spiky, (0,) * 500)}, (7, 300)).targets
    # a spike that comes while it is above 70 % would be bought for an hour
    assert (write.bounds.min, write.lowered) == (50, Bounds(50, 72)), "50 units/s are 70 % of 72"
    assert lowered(reviewed({WRITE: seen(50)}, (7, 300))) == [Bounds(50, 50)], "nothing spikes"
    busy: list[int | None] = [350 * 60] * 500
    busy[-40] = 900 * 60
    (write,) = reviewed({WRITE: Observation.of(newest, busy, (0,) * 500)}, (7, 600)).targets
    assert write.lowered == Bounds(350, 400), "350 units/s are 70 % of 500, and the ceiling is 400"


def test_table_and_index_are_lowered_alike() -> None:
    resources = {None: SeenResource(provisioned=Units(7, 300)), "by-day": SeenResource(provisioned=Units(7, 200))}
    targets = {
        key: SeenTarget(registered=BOUNDS[WRITE], observation=seen(units))
        for key, units in ((WRITE, 50), (("by-day", Dimension.WRITE), 60))
    }
    result = turn(targets, PLAN.with_indexes(["by-day"]), at=LATE, resources=resources)
    assert lowered(result) == [Bounds(50, 50), Bounds(60, 60)]


def test_direct_mode_lowers_by_its_own_call() -> None:
    (write,) = reviewed({WRITE: seen(50)}, (7, 300), mode=Mode.DIRECT).targets
    assert (write.lowered, write.decision.granted) == (None, 50)


@settings(max_examples=examples(300))
@given(
    units=st.integers(0, 600),
    capacity=st.integers(1, 700),
    minute=st.integers(0, 59),
    throttled=st.integers(0, 3),
    missing=st.integers(0, 40),
    used=st.integers(0, 6),
    since=st.integers(1, 120),
)
def test_what_is_lowered_is_never_below_the_floor_and_never_without_a_decrease(
    units: int, capacity: int, minute: int, throttled: int, missing: int, used: int, since: int
) -> None:
    at = LATE.replace(minute=minute)
    budget = DecreaseBudget(used, at - timedelta(minutes=since))
    (write,) = reviewed({WRITE: seen(units, at, throttled, missing)}, (7, capacity), at, budget=budget).targets
    if write.lowered is None:
        return
    assert write.lowered == Bounds(write.bounds.min, write.bounds.min)
    assert 12 <= write.lowered.max < capacity
    assert write.bounds.max == 400
    assert budget.allows(at)
    assert minute >= 58


def test_ceilings_are_compared_with_the_plans_while_a_run_may_have_left_one_low() -> None:
    minutes = [minute for minute in range(60) if may_be_lowered(LATE.replace(minute=minute))]
    assert minutes == [0, 1, 2, 3, 4, 5, 6, 7, 58, 59]
