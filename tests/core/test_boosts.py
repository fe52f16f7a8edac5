"""Leases: when they are live, how reports of one become one, what they ask for together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Dimension, Plan, Units
from highwater.core.boosts import Boosts, LeaseError, boosts_at
from highwater.core.plan.plan import TargetKey
from highwater.core.scaler import (
    Clock,
    LimitCode,
    Mode,
    Observation,
    ScaledPlan,
    ScalerSettings,
    SeenResource,
    SeenTable,
    SeenTarget,
    TargetState,
    decide,
    review,
)
from tests.core.decisions_to_make import state
from tests.core.leases import NOW, lease

MINUTE = timedelta(minutes=1)
WRITE = (None, Dimension.WRITE)


@pytest.mark.parametrize(
    ("minutes", "is_live"), [(-1, False), (0, True), (29, True), (30, False)], ids=["before", "at", "last", "end"]
)
def test_lease_is_live_from_its_start_until_before_its_end(minutes: int, is_live: bool) -> None:
    assert lease().is_live(NOW + minutes * MINUTE) is is_live


def test_lease_that_is_given_back_ends_at_once_and_renewal_does_not_bring_it_back() -> None:
    released = lease().released_at(NOW + 7 * MINUTE)
    assert released.is_live(NOW + 6 * MINUTE)
    assert not released.is_live(NOW + 7 * MINUTE)
    assert not released.renewed(NOW + 60 * MINUTE).is_live(NOW + 7 * MINUTE)
    assert released.released_at(NOW + 9 * MINUTE) == released
    assert lease().renewed(NOW + 10 * MINUTE) == lease(), "a renewal never shortens"


_FROM = "a boost from 2027-03-04T02:00:30+00:00"
_MOST = "allowed: up to 24 hours; declare a window for what lasts longer"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"units": 0}, "table write: a boost of 0 units/s; allowed: 1 or more"),
        (
            {"end": NOW, "index": "by_status"},
            f"index 'by_status' write: {_FROM} until 2027-03-04T02:00:30+00:00; {_MOST}",
        ),
        ({"end": NOW + timedelta(hours=25)}, f"table write: {_FROM} until 2027-03-05T03:00:30+00:00; {_MOST}"),
    ],
)
def test_lease_that_cannot_be_is_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(LeaseError) as refused:
        lease(**changed)
    assert str(refused.value) == f"orders, {message}"


def test_concurrent_boosts_add_up_and_of_totals_the_highest_counts() -> None:
    leases = [
        lease(id="a", units=800),
        lease(id="b", units=50),
        lease(id="c", units=7_000, is_total=True),
        lease(id="d", units=6_000, is_total=True),
        lease(id="e", units=30_000, dimension=Dimension.READ),
        lease(id="f", units=40_000, index="by_status"),
        lease(id="g", units=50_000, start=NOW + MINUTE),
        lease(id="h", units=60_000, released=NOW),
    ]
    assert boosts_at(leases, WRITE, NOW) == Boosts(added=850, total=7_000)
    assert boosts_at(leases, ("by_status", Dimension.WRITE), NOW) == Boosts(added=40_000, total=0)
    assert boosts_at([], WRITE, NOW) == Boosts()


def _state(current: int = 100, **changed: Any) -> TargetState:
    return state(current, **({"baseline": 100} | changed))


EMPTY = Observation.of(0, (), ())


@pytest.mark.parametrize(
    ("added", "total", "ceiling", "granted", "boosted"),
    [
        (800, 0, 9_000, 900, 800),
        (0, 5_000, 9_000, 5_000, 4_900),
        (800, 5_000, 9_000, 5_000, 4_900),
        (800, 500, 9_000, 900, 800),
        (800, 0, 600, 600, 500),
        (0, 50, 9_000, 100, 0),
    ],
)
def test_total_is_the_least_and_what_boosts_account_for_is_told(
    added: int, total: int, ceiling: int, granted: int, boosted: int
) -> None:
    boosted_state = _state(boosts=added, boosted_total=total, boosted=0, ceiling=ceiling)
    decision = decide(ScalerSettings(), boosted_state, EMPTY, now=NOW)
    assert (decision.granted, decision.boosted) == (granted, boosted)


def test_total_says_why() -> None:
    decision = decide(ScalerSettings(), _state(boosted_total=5_000), EMPTY, now=NOW)
    assert [(limit.code, limit.sentence) for limit in decision.limits][-1] == (
        LimitCode.BOOST,
        "a boost to 5,000 units/s in total",
    )


def test_boost_that_ended_leaves_no_floor_behind_where_nothing_is_consumed() -> None:
    """CloudWatch has no datapoint of an idle table, and on missing data no floor falls that demand may need."""
    during = decide(ScalerSettings(), _state(boosts=800), EMPTY, now=NOW)
    after = _state(current=during.granted, boosted=during.boosted)
    assert (during.granted, decide(ScalerSettings(), after, EMPTY, now=NOW).granted) == (900, 100)
    unknown = replace(after, boosted=0)
    assert decide(ScalerSettings(), unknown, EMPTY, now=NOW).granted == 900, "it may be demand's"


def test_boost_that_ended_within_a_paid_hour_is_lowered_at_its_end() -> None:
    settings = ScalerSettings(mode=Mode.DIRECT)
    early, late = NOW.replace(minute=10), NOW.replace(minute=58)
    during = decide(settings, _state(boosts=800), EMPTY, now=early)
    held = decide(settings, _state(current=during.granted, boosted=during.boosted), EMPTY, now=early)
    assert (held.granted, held.boosted) == (900, 800)
    lowered = decide(settings, _state(current=held.granted, boosted=held.boosted), EMPTY, now=late)
    assert (lowered.granted, lowered.boosted) == (100, 0)


def test_boosts_that_end_in_an_hour_are_lowered_once_while_another_lasts_above_the_ceiling() -> None:
    settings = ScalerSettings(mode=Mode.DIRECT)
    early, late = NOW.replace(minute=10), NOW.replace(minute=58)
    # 200 of 1,100 units of boosts have ended, and all is above the plan's ceiling of 1,000
    above = {"ceiling": 1_000, "ceiling_with_boosts": 2_500, "boosts": 900, "boosted": 1_100}
    held = decide(settings, _state(current=1_200, **above), EMPTY, now=early)
    assert (held.granted, held.limited_by(LimitCode.PAID_HOUR)) == (1_200, True)
    lowered = decide(settings, _state(current=1_200, **above | {"boosted": held.boosted}), EMPTY, now=late)
    assert lowered.granted == 1_000
    # without a live boost, what is above the ceiling is lowered at once
    ended = above | {"boosts": 0}
    assert decide(settings, _state(current=1_200, **ended), EMPTY, now=early).granted == 100


def test_part_of_a_boost_that_has_ended_stays_known_while_the_other_dimension_is_raised_first() -> None:
    plan = Plan(
        read=Capacity.autoscaled(min_capacity=25, max_capacity=9_000),
        write=Capacity.autoscaled(min_capacity=40, max_capacity=9_000),
    )
    now = NOW.replace(minute=58)
    newest = int(now.timestamp()) // 60 - 3
    observed: dict[Dimension, list[int | None]] = {Dimension.READ: [None] * 90, Dimension.WRITE: [18_600] * 90}
    seen = SeenTable(
        {None: SeenResource(provisioned=Units(8_025, 100))},
        {
            (None, dimension): SeenTarget(registered=None, observation=Observation.of(newest, units))
            for dimension, units in observed.items()
        },
        (),
        {(None, Dimension.READ): 8_000},
    )
    clock = Clock(int(now.timestamp()) // 60, now)
    read, write = review(ScaledPlan(table="orders", mode=Mode.DIRECT, plan=plan), seen, clock).decisions
    assert write.granted > 300
    assert (read.granted, read.limited_by(LimitCode.RAISE_FIRST), read.boosted) == (8_025, True, 8_000)


def test_turn_of_the_scaler_counts_the_leases_of_each_target() -> None:
    plan = Plan(
        read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
        write=Capacity.autoscaled(min_capacity=12, max_capacity=4_000),
    )
    targets: dict[TargetKey, SeenTarget] = {
        (None, dimension): SeenTarget(registered=Bounds(12, 4_000), observation=EMPTY) for dimension in Dimension
    }
    seen = SeenTable(
        {None: SeenResource(provisioned=Units(7, 12))},
        targets,
        (lease(units=800), lease(id="z", units=33)),
        dict.fromkeys(targets, 5),
    )
    found = review(ScaledPlan(table="orders", mode=Mode.FLOOR, plan=plan), seen, Clock(0, NOW))
    assert [(d.dimension, d.granted, d.boosted) for d in found.decisions] == [
        (Dimension.READ, 7, 0),
        (Dimension.WRITE, 845, 833),
    ]
