"""Answers to requests for boosts: each is true in every minute of the lease, and none could have been more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.boosts import (
    Grant,
    GrantLimit,
    Lease,
    LeaseError,
    boosts_at,
    grant,
    units_for_deadline,
    units_for_rate,
)
from highwater.core.schedule.bounds import bounds_at, timeline
from tests.core import leases as made
from tests.core.examples import examples

# on the minute, so that each minute of a lease is one of the plan's
NOW = made.NOW.replace(second=0)
MINUTE = timedelta(minutes=1)
PLAN = Plan(
    read=Capacity.fixed(5),
    write=Capacity.autoscaled(min_capacity=40, max_capacity=6_000),
    windows=(
        Window.daily("load", start="03:00", end="04:10", timezone="UTC", write_min=700, lead=timedelta(0)),
        Window.daily("sale", start="02:20", end="02:40", timezone="UTC", write_max=9_000, lead=timedelta(0)),
    ),
)

WRITE = PLAN.targets()[1]


def lease(**changed: Any) -> Lease:
    return made.lease(**({"start": NOW, "end": NOW + 30 * MINUTE} | changed))


def granted(asked: Lease, others: Iterable[Lease], **more: Any) -> Grant:
    """The grant by what the plan asks for from long before the lease until long after."""
    planned = timeline(WRITE, NOW - timedelta(days=1), NOW + timedelta(days=8))
    return grant(asked, planned, others, **more)


def test_boost_that_fits_is_granted_in_full() -> None:
    found = granted(lease(), [lease(id="b", units=100), lease(), lease(id="c", dimension=Dimension.READ)])
    assert (found.units, found.is_whole, found.limits) == (800, True, ())
    assert found.lease == lease()


def _left(limit: GrantLimit, what: str, units: str, at: str = "02:00", more: str = "") -> tuple[GrantLimit, str]:
    times = f"; more may be free from 2027-03-{more} UTC" if more else ""
    ways = "; for more, raise the ceiling or set max_with_boosts=" if limit is GrantLimit.CEILING else ""
    return limit, f"{what} units/s at 2027-03-04 {at} UTC leaves {units} units/s{times}{ways}"


CEILING = "the plan's ceiling of 6,000"
QUOTA = _left(GrantLimit.QUOTA, "the account's quota of 4,000", "3,000")
BOTH = [QUOTA, _left(GrantLimit.CEILING, CEILING, "5,000", more="04 02:20")]


@pytest.mark.parametrize(
    ("asked", "more", "units", "limits"),
    [
        ({"units": 7_000}, {}, 5_960, [_left(GrantLimit.CEILING, CEILING, "5,960", more="04 02:20")]),
        (
            {"units": 5_900, "end": NOW + 90 * MINUTE},
            {},
            5_300,
            [_left(GrantLimit.CEILING, CEILING, "5,300", "03:00", "04 04:10")],
        ),
        ({"units": 5_900}, {"demand_units": 1_000, "quota_units": 4_000}, 3_000, BOTH),
        ({}, {"cap_units": 500}, 400, [_left(GrantLimit.CAP, "the caller's cap of 500", "400", more="04 02:30")]),
        (
            {"units": 7_000, "is_total": True},
            {},
            6_000,
            [_left(GrantLimit.CEILING, CEILING, "6,000", more="04 02:20")],
        ),
    ],
    ids=["ceiling", "window", "quota", "cap", "total"],
)
def test_boost_that_does_not_fit_gets_a_part_and_is_told_why(
    asked: dict[str, Any], more: dict[str, Any], units: int, limits: list[tuple[GrantLimit, str]]
) -> None:
    others = [lease(id="mine", units=100)] if "cap_units" in more else []
    found = granted(lease(**asked), others, **more)
    assert (found.units, list(found.limits)) == (units, limits)
    assert found.lease is not None
    assert found.lease.units == units


def test_boost_for_which_nothing_is_left_is_refused() -> None:
    found = granted(lease(), [lease(id="b", units=6_000, owner="other")])
    assert (found.units, found.lease) == (0, None)
    assert found.limits == (_left(GrantLimit.CEILING, CEILING, "0", more="04 02:20"),)


AT_ONCE: dict[str, Any] = {}
AHEAD = {"start": NOW + 300 * MINUTE, "end": NOW + 330 * MINUTE}


@pytest.mark.parametrize(
    ("asked", "demand", "until", "others", "more"),
    [
        pytest.param(AT_ONCE, 6_000, 7, [], "04 02:07", id="demand falls"),
        pytest.param(AT_ONCE, 6_000, 7, [{"units": 6_000}], "04 02:20", id="a boost is live too: the window's ceiling"),
        pytest.param(AT_ONCE, 0, 7, [{"units": 6_000, "end": NOW + 9 * MINUTE}], "04 02:09", id="a boost ends"),
        pytest.param(AT_ONCE, 0, 7, [{"units": 6_000, "released": NOW + 3 * MINUTE}], "04 02:03", id="it is released"),
        pytest.param(AT_ONCE, 5_900, 25, [{"units": 90}], "04 02:20", id="the first of all that may free units"),
        pytest.param(AHEAD, 6_000, 7, [], "04 02:07", id="booked: by the demand of the time that it is asked"),
        pytest.param(AHEAD, 6_000, 7, [{"units": 6_000} | AHEAD], "04 07:30", id="booked, and others have booked"),
        pytest.param(AHEAD, 6_000, None, [], "05 02:20", id="when demand falls is not known"),
    ],
)
def test_refusal_says_from_when_there_may_be_more(
    asked: dict[str, Any], demand: int, until: int | None, others: list[dict[str, Any]], more: str
) -> None:
    boosts = [lease(id=f"other-{number}", **each) for number, each in enumerate(others)]
    falls = None if until is None else NOW + until * MINUTE
    found = granted(lease(**asked), boosts, demand_units=demand, demand_until=falls)
    (ceiling,) = (sentence for limit, sentence in found.limits if limit is GrantLimit.CEILING)
    assert f"; more may be free from 2027-03-{more} UTC; " in ceiling


def test_booked_boosts_count_for_the_time_that_they_are_booked_for() -> None:
    booked = lease(id="b", units=8_900, start=NOW + 30 * MINUTE, end=NOW + 60 * MINUTE)
    assert granted(lease(), [booked]).is_whole, "it begins as this one ends"
    assert granted(lease(end=NOW + 31 * MINUTE), [booked]).units == 60
    assert granted(lease(end=NOW + 31 * MINUTE), [booked.released_at(NOW)]).is_whole


leases = st.builds(
    lambda number, units, start, length, is_total, owner: lease(
        id=f"l{number}",
        units=units,
        start=NOW + start * MINUTE,
        end=NOW + (start + length) * MINUTE,
        is_total=is_total,
        owner=owner,
    ),
    st.integers(0, 10**9),
    st.integers(1, 7_000),
    st.integers(-60, 200),
    st.integers(1, 200),
    st.booleans(),
    st.sampled_from(["own", "other"]),
)


@settings(max_examples=examples(300))
@given(
    leases,
    st.lists(leases, max_size=5),
    st.sampled_from([0, 500, 1_500, 3_000, 6_500]),
    st.integers(3_000, 9_500),
    st.none() | st.integers(6_500, 9_000),
)
def test_answer_is_true_in_every_minute_and_could_not_have_been_more(
    asked: Lease, others: list[Lease], demand: int, quota: int, ceiling: int | None
) -> None:
    """Demand never has the room between the plan's ceiling and that for boosts."""
    units = granted(asked, others, demand_units=demand, quota_units=quota, max_with_boosts=ceiling).units
    rooms = []
    at = asked.start
    while at < asked.end:
        bounds = bounds_at(WRITE, at)
        live = [other for other in others if (other.owner, other.id) != (asked.owner, asked.id)]
        there = max(bounds.min, min(demand, bounds.max)) + boosts_at(live, asked.key, at).added
        rooms.append(min(max(bounds.max, ceiling or 0), quota) - (0 if asked.is_total else there))
        at += MINUTE
    assert units == max(0, min(asked.units, min(rooms)))


def test_rate_is_what_the_jobs_own_consumption_needs_at_the_target() -> None:
    assert units_for_rate(700, 70) == 1_000
    assert units_for_rate(701, 70) == 1_002
    with pytest.raises(LeaseError) as refused:
        units_for_rate(0, 70)
    assert str(refused.value) == "a rate of 0 units/s at 70 %; allowed: 1 or more, at 1 to 100 %"


@pytest.mark.parametrize(
    ("dimension", "items", "size", "minutes", "more", "units"),
    [
        (Dimension.WRITE, 2_400_000, 1_500, 40, {}, 2_000),
        (Dimension.WRITE, 2_400_000, 1_024, 40, {}, 1_000),
        (Dimension.WRITE, 2_400_000, 1_024, 41, {"until_ready": MINUTE}, 1_000),
        (Dimension.READ, 2_400_000, 8_192, 40, {}, 1_000),
        (Dimension.READ, 2_400_000, 8_192, 40, {"is_consistent": True}, 2_000),
        (Dimension.READ, 1, 1, 40, {}, 1),
    ],
)
def test_deadline_says_how_many_units(
    dimension: Dimension, items: int, size: int, minutes: int, more: dict[str, Any], units: int
) -> None:
    assert units_for_deadline(dimension, items, size, minutes * MINUTE, **more) == units


@pytest.mark.parametrize(
    ("items", "size", "within", "ready", "message"),
    [
        (0, 5, MINUTE, 0, "0 items of 5 bytes; allowed: 1 item or more of 1 to 409,600 bytes"),
        (5, 409_601, MINUTE, 0, "5 items of 409,601 bytes; allowed: 1 item or more of 1 to 409,600 bytes"),
        (5, 5, MINUTE, 60, "a job of 0:01:00 of which 0:01:00 pass before the capacity is there; give it more time"),
    ],
)
def test_job_without_work_or_time_is_told(items: int, size: int, within: timedelta, ready: int, message: str) -> None:
    with pytest.raises(LeaseError) as refused:
        units_for_deadline(Dimension.WRITE, items, size, within, until_ready=timedelta(seconds=ready))
    assert str(refused.value) == message
