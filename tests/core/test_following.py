"""Slow starts and shares: how much background work asks for, by what its table shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core.pacing.following import Follower, RateGoal, Shown
from highwater.core.units import MILLIUNITS, NANOSECONDS

MINUTE = 60 * NANOSECONDS


def slow(units: int) -> Follower:
    return Follower(RateGoal(milliunits=units * MILLIUNITS, is_slow=True))


def share(percent: int, *, is_slow: bool = False) -> Follower:
    return Follower(RateGoal(percent=percent, is_slow=is_slow))


def shown(provisioned: int, others: int | None = None, **more: int | None) -> Shown:
    known = None if others is None else others * MILLIUNITS
    return Shown(provisioned=provisioned, others=known, **more)


def test_slow_start_climbs_with_the_capacity_as_in_the_articles_figure_6() -> None:
    """The article's total goes from 4,000 by 9,000 and 14,000 to 18,000, on 7,500 units at 70 %."""
    work, provisioned, totals = slow(13_500), 7_500, []
    for cycle in range(3):
        rate = work.rate(cycle * 5 * MINUTE, shown(provisioned, 4_500, target_percent=70, ceiling=40_000))
        total = 4_500 + rate // MILLIUNITS
        totals.append(total)
        provisioned = total * 100 // 70
    # 1,125,000 units of burst capacity are believed in; the first cycle spends 321,300 of them
    assert totals == [8_571, 13_545, 18_000]


def test_slow_start_spends_burst_capacity_by_and_by_and_leaves_the_rest_to_others() -> None:
    work = slow(900)
    rates = [work.rate(minute * MINUTE, shown(700, 200)) for minute in range(60)]
    assert rates[0] == 600_000
    assert rates == sorted(rates, reverse=True)
    assert sum(max(rate + 200_000 - 700_000, 0) * 60 for rate in rates) <= 700_000 * 150
    # 95 % of the capacity, once nothing is left
    assert rates[-1] == pytest.approx(465_000, rel=0.08)


def test_slow_start_leaves_burst_capacity_alone_after_a_refusal_and_at_the_ceiling() -> None:
    refused = slow(900)
    assert refused.rate(0, shown(700, 200)) == 600_000
    refused.refuse()
    assert refused.rate(MINUTE, shown(700, 200)) == 465_000
    # what was left of the capacity meanwhile fills it again
    assert refused.rate(6 * MINUTE, shown(700, 200)) == 465_000 + 35_000 * 300 // 420
    assert slow(900).rate(0, shown(700, 200, ceiling=700)) == 465_000


def test_capacity_that_does_not_rise_for_long_is_told() -> None:
    work = slow(900)
    for minute in (0, 14):
        work.rate(minute * MINUTE, shown(700, 200))
    assert not work.is_still(14 * MINUTE)
    assert work.is_still(15 * MINUTE)
    work.rate(15 * MINUTE, shown(714, 200))
    assert not work.is_still(16 * MINUTE)


def test_slow_start_gives_way_to_others_and_never_stops() -> None:
    work = slow(2_000)
    rates = [work.rate(at, shown(1_400, others)) for at, others in enumerate((600, 1_100, 1_590, 9_000))]
    assert rates == [1_000_000, 500_000, 20_000, 20_000]
    assert slow(3).rate(0, shown(100, 900)) == 1_000


def test_where_nobody_knows_what_others_consume_the_capacity_of_the_start_is_taken_to_be_used_as_it_is_scaled() -> None:
    work = slow(2_000)
    # 80 of 100 units are others', and stay so however the capacity rises
    assert work.rate(0, shown(700, target_percent=80)) == 800_000 - 560_000
    # of the burst capacity 99,000 units are left
    assert work.rate(MINUTE, shown(1_400, target_percent=80)) == 1_330_000 + 99_000_000 // 420 - 560_000
    assert slow(2_000).rate(0, shown(700)) == 800_000 - 490_000


def test_share_follows_the_capacity_and_stays_below_the_target_with_others() -> None:
    work = share(30)
    assert work.rate(0, shown(1_000)) == 300_000
    assert work.rate(1, shown(1_000, 300, target_percent=70)) == 300_000
    assert work.rate(2, shown(1_000, 550, target_percent=70)) == 150_000
    assert work.rate(3, shown(1_000, 950, target_percent=70)) == 3_000
    assert work.rate(4, shown(2_000, 300, target_percent=70)) == 600_000
    assert share(30, is_slow=True).rate(0, shown(700, 690, target_percent=99)) == 3_000


def test_share_that_is_not_below_the_target_ratchets_and_is_kept() -> None:
    work, at_target = share(80), shown(1_000, 300, target_percent=80)
    assert work.ratchets(at_target)
    assert work.rate(0, at_target) == 800_000
    assert not share(79).ratchets(at_target)
    assert share(70).ratchets(shown(1_000))
    assert not slow(5).ratchets(at_target)


def test_goal_follows_the_table_if_it_is_a_share_or_slow() -> None:
    assert not RateGoal(milliunits=7_000).follows
    assert RateGoal(milliunits=7_000, is_slow=True).follows
    assert RateGoal(percent=7).follows
    assert RateGoal(milliunits=7_000).rate_at(500) == 7_000
    assert RateGoal(percent=7).rate_at(500) == 35_000
    assert RateGoal(percent=7).rate_at(0) == 1


@given(
    goal=st.integers(1, 50_000_000),
    looks=st.lists(
        st.tuples(
            st.integers(0, 30 * 60),
            st.integers(1, 40_000),
            st.one_of(st.none(), st.integers(0, 50_000)),
            st.booleans(),
            st.one_of(st.none(), st.integers(1, 40_000)),
        ),
        min_size=1,
        max_size=20,
    ),
    target=st.one_of(st.none(), st.integers(20, 90)),
)
def test_slow_start_never_asks_for_more_than_its_goal_or_than_capacity_and_a_seventh_hold(
    goal: int, looks: list[tuple[int, int, int | None, bool, int | None]], target: int | None
) -> None:
    work, now = Follower(RateGoal(milliunits=goal, is_slow=True)), 0
    for seconds, provisioned, others, is_refused, ceiling in looks:
        now += seconds * NANOSECONDS
        if is_refused:
            work.refuse()
        rate = work.rate(now, shown(provisioned, others, target_percent=target, ceiling=ceiling))
        least = min(goal, max(goal // 100, MILLIUNITS))
        assert least <= rate <= goal
        held = provisioned * MILLIUNITS * (0.95 if ceiling is not None and provisioned >= ceiling else 8 / 7)
        assert rate <= max(held - (others or 0) * MILLIUNITS, least)


@pytest.mark.parametrize("percent", [1, 25, 69])
@given(provisioned=st.integers(1, 40_000), others=st.integers(0, 50_000))
def test_share_below_the_target_never_drives_the_capacity_up(percent: int, provisioned: int, others: int) -> None:
    rate = share(percent).rate(0, shown(provisioned, others, target_percent=70))
    whole = provisioned * MILLIUNITS
    assert 1 <= rate <= max(whole * percent // 100, 1)
    least = min(whole * percent // 100, max(whole * percent // 10_000, MILLIUNITS))
    assert rate + others * MILLIUNITS <= max(whole * 70 // 100, others * MILLIUNITS + max(least, 1))
