"""Commitments that are worth it: sums by hand, and laws for any usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.services.billing import BilledReplica
from highwater_lab.services.commitments import (
    CapacityHours,
    CommitmentOffer,
    HourlyUsage,
    advise,
    best_plan,
    plan_saves,
    summed,
)
from highwater_lab.services.prices import NO_COMMITMENTS, Commitments, Prices, UnitPrices, load_prices

READ, WRITE = Dimension.READ, Dimension.WRITE
START = datetime(2026, 11, 2, tzinfo=UTC)
PRICES = load_prices()
# us-east-1, 100 write units: 150 USD for a year of 8,760 hours and 0.0128 an hour; 180 for three years and 0.0081
ONE_YEAR, THREE_YEARS = Decimal(150) / 8_760 + Decimal("0.0128"), Decimal(180) / 26_280 + Decimal("0.0081")
WCU, RCU = Decimal("0.00065"), Decimal("0.00013")


def _usage(
    writes: Sequence[int] = (),
    reads: Sequence[int] = (),
    on_demand: Sequence[str] = (),
    provisioned: Sequence[str] = (),
    region: str = "us-east-1",
) -> HourlyUsage:
    hours = max(map(len, (writes, reads, on_demand, provisioned)))
    return HourlyUsage(
        region=region,
        start=START,
        reservable={each: tuple(units) for each, units in ((WRITE, writes), (READ, reads)) if units},
        provisioned_usd=tuple(map(Decimal, provisioned or ["0"] * hours)),
        on_demand_usd=tuple(map(Decimal, on_demand or ["0"] * hours)),
    )


def _prices_of(region: str) -> Prices:
    return PRICES.in_region(region)


def _offers(*usages: HourlyUsage, held: Commitments = NO_COMMITMENTS, least_gain: float = 0) -> list[CommitmentOffer]:
    return list(advise(usages, _prices_of, held, least_gain=least_gain).offers)


def test_units_are_reserved_while_the_last_hundred_is_used_in_enough_hours() -> None:
    # 18 of 24 hours at 350: the fourth hundred is used by 50 of 100 units in 75 % of the hours, which is 37.5 %
    one_year, three_years = _offers(_usage(writes=[350] * 18 + [130] * 6))
    (reserved,) = one_year.reservations
    assert (reserved.units, reserved.years, reserved.dimension, reserved.region) == (300, 1, WRITE, "us-east-1")
    assert (reserved.upfront_usd, reserved.hour_usd) == (Decimal(450), Decimal("0.0384"))
    saved = ((18 * 300 + 6 * 130) * WCU - 24 * 3 * ONE_YEAR) * 730 / 24
    assert reserved.saved_usd == pytest.approx(saved)
    assert round(saved, 2) == Decimal("56.65")
    # two thirds of 350 and of 130 are 233 and 86
    fallen = ((18 * 233 + 6 * 86) * WCU - 24 * 3 * ONE_YEAR) * 730 / 24
    assert reserved.saved_if_fallen_usd == pytest.approx(fallen)
    # 0.0299233 of the 0.065 USD that 100 units cost an hour
    assert round(reserved.break_even_percent, 2) == Decimal("46.04")
    # 17.1233 + 12.8 = 29.92 % of 65 for one year; 6.8493 + 8.1 = 14.95 for three: 23.0 %, less than the 37.5 %
    (longer,) = three_years.reservations
    assert (longer.units, round(longer.break_even_percent, 1)) == (400, Decimal(23))
    assert longer.saved_usd == pytest.approx(((18 * 350 + 6 * 130) * WCU - 24 * 4 * THREE_YEARS) * 730 / 24)
    assert (one_year.plan, three_years.plan) == (None, None)


def test_curve_ends_at_twice_what_is_worth_it_or_where_nothing_is_left() -> None:
    (reserved,) = _offers(_usage(writes=[350] * 18 + [130] * 6))[0].reservations
    assert [int(point.size) for point in reserved.curve] == [100, 200, 300, 400, 500, 600]
    of_200 = ((18 * 200 + 6 * 130) * WCU - 24 * 2 * ONE_YEAR) * 730 / 24
    assert reserved.curve[1].saved_usd == pytest.approx(of_200)
    assert max(reserved.curve, key=lambda point: point.saved_usd).size == reserved.units
    # beyond 350 units each further hundred is lost
    lost = reserved.curve[5].saved_usd - reserved.curve[4].saved_usd
    assert lost == pytest.approx(-ONE_YEAR * 730)


def test_savings_plan_covers_requests_first_and_what_an_hour_does_not_use_is_lost() -> None:
    # 20 of 24 hours have 0.125 USD of requests, 83 % of them: more than the 82 % that a dollar needs
    requests = ["0.125"] * 20 + ["0.1"] * 4
    (offer,) = _offers(_usage(on_demand=requests))
    assert offer.plan is not None
    # 0.125 * 0.82 is 0.1025, and commitments are in steps of 0.001
    assert offer.plan.hour_usd == Decimal("0.102")
    saved = (20 * Decimal("0.102") / Decimal("0.82") + 4 * Decimal("0.1") - 24 * Decimal("0.102")) * 730 / 24
    assert offer.plan.saved_usd == pytest.approx(saved)
    assert round(saved, 2) == Decimal("13.38")
    # with two thirds, 20 hours have 0.0833 USD and 4 have 0.0667, which is less than 0.102 / 0.82
    fallen = (20 * Decimal("0.125") * 2 / 3 + 4 * Decimal("0.1") * 2 / 3 - 24 * Decimal("0.102")) * 730 / 24
    assert offer.plan.saved_if_fallen_usd == pytest.approx(fallen)
    assert round(fallen, 2) == Decimal("-15.65")


@pytest.mark.parametrize(
    ("hours", "expected", "why"),
    [
        pytest.param(22, "0.035", "22 of 24 hours are 91.7 %, more than 88 %", id="used-enough"),
        pytest.param(21, "0", "21 of 24 hours are 87.5 %", id="used-too-little"),
    ],
)
def test_savings_plan_of_capacity_needs_88_percent_of_the_hours(hours: int, expected: str, why: str) -> None:
    # 0.04 * 0.88 = 0.0352
    usage = [(Decimal("0.04"), Decimal(0))] * hours + [(Decimal(0), Decimal(0))] * (24 - hours)
    assert best_plan(usage) == Decimal(expected), why


def test_no_unit_is_in_both_kinds() -> None:
    usage = _usage(writes=[340] * 24, on_demand=["0.05"] * 24)
    (one_year, _) = _offers(usage)
    (reserved,) = one_year.reservations
    # the fourth hundred is used by 40 units all the time, which is less than 46 %: these are the plan's
    assert (reserved.units, one_year.plan and one_year.plan.hour_usd) == (
        300,
        (40 * WCU * Decimal("0.88") + Decimal("0.05") * Decimal("0.82")) // Decimal("0.001") * Decimal("0.001"),
    )
    (one_year, _) = _offers(_usage(writes=[300] * 24))
    assert one_year.plan is None


def test_plan_alone_is_said_where_it_saves_more_than_reserving() -> None:
    # writes by day, reads by night: each is used in half of the hours, and a dollar in all of them
    by_day, by_night = [100] * 12 + [0] * 12, [0] * 12 + [500] * 12
    one_year, three_years = _offers(_usage(writes=by_day, reads=by_night))
    # reserved for a year: 0.5 - 0.4604 of 47.45 USD and 0.5 - 0.4558 of as much; the plan: 12 % of 47.45
    assert (one_year.reservations, one_year.plan and one_year.plan.hour_usd) == ((), Decimal("0.057"))
    assert [each.units for each in three_years.reservations] == [100, 500]
    assert three_years.plan is None


def test_commitment_below_the_least_gain_is_left_out() -> None:
    usage = _usage(reads=[100] * 24)
    # 9.49 - 2.5 - 1.825: 100 read units are 30 USD for a year and 0.0025 an hour
    assert [round(each.saved_usd, 2) for each in _offers(usage)[0].reservations] == [Decimal("5.16")]
    advice = advise([usage], _prices_of, least_gain=8)
    assert [(each.years, each.plan) for each in advice.offers] == []
    assert advice.list_usd == pytest.approx(100 * RCU * 730)


def test_regions_have_pools_of_their_own_and_share_the_plan() -> None:
    usages = [_usage(writes=[170] * 24), _usage(writes=[150] * 24, region="eu-west-1"), _usage(writes=[60] * 24)]
    one_year, _ = _offers(*usages)
    # 170 and 60 of us-east-1 are one pool
    assert [(each.region, each.units) for each in one_year.reservations] == [("eu-west-1", 200), ("us-east-1", 200)]
    # 30 units of us-east-1 remain
    assert one_year.plan is not None
    assert one_year.plan.hour_usd == Decimal("0.017")


def test_region_without_prices_of_a_term_is_named() -> None:
    advice = advise([_usage(writes=[300] * 24, region="us-east-2")], _prices_of)
    assert [offer.years for offer in advice.offers] == [1]
    assert advice.unpriced == {3: ("us-east-2",)}
    advice = advise([_usage(writes=[300] * 24, region="us-gov-west-1")], _prices_of)
    assert advice.unpriced == {1: ("us-gov-west-1",), 3: ("us-gov-west-1",)}
    # a plan alone, which is the same for both terms
    assert [(offer.years, offer.reservations) for offer in advice.offers] == [(1, ())]


def test_units_that_are_held_already_are_not_bought_again() -> None:
    (one_year, _) = _offers(_usage(writes=[500] * 24, reads=[90] * 24), held=Commitments(reserved_write_units=300))
    assert [(each.dimension, each.units) for each in one_year.reservations] == [(WRITE, 200), (READ, 100)]
    advice = advise([_usage(writes=[500] * 24)], _prices_of, Commitments(has_savings_plan=True))
    assert (advice.offers, advice.problem) == (
        (),
        "a savings plan is there already, and how much of it is in use is not known",
    )


def test_hours_are_those_that_all_tables_have() -> None:
    late = replace(_usage(writes=[100] * 40), start=START + timedelta(hours=10))
    (region,) = summed([_usage(writes=[*range(200, 236)]), late])
    assert (region.start, region.hours) == (START + timedelta(hours=10), 26)
    assert region.reservable[WRITE] == tuple(310 + hour for hour in range(26))
    apart = replace(late, start=START + timedelta(days=9))
    problem = advise([_usage(writes=[100] * 40), apart], _prices_of).problem
    assert problem == "whole hours of traffic that all tables have in common: 0; 24 are needed"


def test_capacity_hours_are_whole_hours_of_the_clock() -> None:
    # from 00:20 for 170 minutes: the hours from 01:00 to 03:00 are whole
    quanta = list(range(170))
    targets = [(WRITE, (7, 30, 50, 9), quanta), (WRITE, (1, 2, 3, 4), quanta), (READ, (0, 0, 0, 0), quanta)]
    found = CapacityHours.of_targets(START + timedelta(minutes=20), targets, 170)
    assert found.start == START + timedelta(hours=1)
    assert found.provisioned == {WRITE: (32, 53)}
    assert found.consumed == {READ: (sum(range(40, 100)), sum(range(100, 160)))}
    assert CapacityHours.of_document(found.document()) == found
    assert found.repeated(4).provisioned == {WRITE: (32, 53, 53, 53)}


def test_replicated_writes_and_infrequent_access_cannot_be_reserved() -> None:
    capacity = CapacityHours(START, {WRITE: (300, 400), READ: (50, 70)}, {})
    theirs = UnitPrices(write_unit_hour=3, read_unit_hour=2, on_demand_write_million=7, on_demand_read_million=5)
    usage = HourlyUsage.of_capacity(capacity, PRICES, replicas=[BilledReplica(prices=theirs, read_units=11)])
    assert usage.reservable == {READ: (50, 70)}
    # writes here and there, and 11 read units there for 2 USD
    assert usage.provisioned_usd == (300 * WCU + 300 * 3 + 22, 400 * WCU + 400 * 3 + 22)
    usage = HourlyUsage.of_capacity(capacity, PRICES, is_infrequent_access=True)
    assert usage.reservable == {}
    assert usage.provisioned_usd == (
        300 * Decimal("0.00081") + 50 * Decimal("0.00016"),
        400 * Decimal("0.00081") + 70 * Decimal("0.00016"),
    )


def test_requests_cost_their_price_for_a_million() -> None:
    # 60 quanta are a unit
    capacity = CapacityHours(START, {}, {WRITE: (60_000_000, 30), READ: (120_000_000, 0)})
    usage = HourlyUsage.of_capacity(capacity, PRICES)
    assert usage.on_demand_usd == pytest.approx((Decimal("0.625") + 2 * Decimal("0.125"), Decimal("0.0000003125")))


_HOURS = 24
_units = st.lists(st.integers(0, 1_200), min_size=_HOURS, max_size=_HOURS)
_usd = st.lists(st.integers(0, 900).map(lambda cents: f"{cents / 1000}"), min_size=_HOURS, max_size=_HOURS)


def _billed(usage: HourlyUsage, offer: CommitmentOffer) -> Decimal:
    """What AWS bills for all hours with everything that is offered, hour by hour."""
    reserved = {each.dimension: each for each in offer.reservations}
    total = Decimal(0)
    for hour in range(usage.hours):
        rest = usage.provisioned_usd[hour]
        for dimension, price in ((WRITE, WCU), (READ, RCU)):
            units, held = usage.reservable[dimension][hour], reserved.get(dimension)
            rest += max(0, units - (held.units if held else 0)) * price
            if held:
                total += held.upfront_usd / (offer.years * 8_760) + held.hour_usd
        left = offer.plan.hour_usd if offer.plan else Decimal(0)
        total += left
        for usd, factor in ((usage.on_demand_usd[hour], Decimal("0.82")), (rest, Decimal("0.88"))):
            covered = min(left, usd * factor)
            left -= covered
            total += usd - covered / factor
    return total


@given(writes=_units, reads=_units, on_demand=_usd, provisioned=_usd)
def test_nothing_is_committed_to_that_does_not_save(
    writes: list[int], reads: list[int], on_demand: list[str], provisioned: list[str]
) -> None:
    usage = _usage(writes, reads, on_demand, provisioned)
    listed = sum(writes) * WCU + sum(reads) * RCU + sum(map(Decimal, (*on_demand, *provisioned)), Decimal(0))
    advice = advise([usage], _prices_of)
    assert advice.list_usd == pytest.approx(listed * 730 / _HOURS)
    for offer in advice.offers:
        assert all(each.saved_usd > 0 for each in offer.reservations)
        assert offer.plan is None or offer.plan.saved_usd > 0
        assert offer.saved_usd == pytest.approx((listed - _billed(usage, offer)) * 730 / _HOURS, abs=Decimal("1e-9"))
        for each in offer.reservations:
            assert each.units <= -(-max(usage.reservable[each.dimension]) // 100) * 100
            assert all(point.saved_usd <= each.saved_usd for point in each.curve)


@given(provisioned=_usd, on_demand=_usd, step=st.integers(1, 1_500))
def test_no_other_plan_saves_more(provisioned: list[str], on_demand: list[str], step: int) -> None:
    usage = list(zip(map(Decimal, provisioned), map(Decimal, on_demand), strict=True))
    best, other = best_plan(usage), Decimal(step) / 1000
    # the best one lies between two steps, of which the lower one is taken
    most = max(plan_saves(best, usage), plan_saves(best + Decimal("0.001"), usage))
    assert plan_saves(other, usage) <= most
    assert plan_saves(best, usage) >= 0
