"""The decrease budget: four at any time of a UTC day, then one an hour, anew at midnight."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import DecreaseBudget, refused_decreases
from tests.core.examples import examples

SPACING = timedelta(seconds=3600)
DAY = datetime(2027, 3, 4, tzinfo=UTC)
NOON, MIDNIGHT = DAY + timedelta(hours=12), DAY + timedelta(days=1)
IN_BERLIN = datetime.fromisoformat("2027-03-04T13:10:00+01:00")
law = settings(max_examples=examples(150))
instants = st.lists(st.integers(0, 3 * 86_400 - 1).map(lambda s: DAY + timedelta(seconds=s)), max_size=60).map(sorted)
bursts = st.lists(st.integers(0, 20 * 60).map(lambda s: NOON + timedelta(minutes=s)), max_size=40).map(sorted)


def _late(minute: int) -> datetime:
    """In the last hour of the day."""
    return DAY + timedelta(hours=23, minutes=minute)


def accepted_of(wanted: list[datetime]) -> list[datetime]:
    """Which of the wanted decreases are accepted, one after the other."""
    budget, accepted = DecreaseBudget(), []
    for at in wanted:
        if budget.allows(at):
            budget = budget.after(at)
            accepted.append(at)
    return accepted


def test_budget_never_used_allows_a_decrease_at_once() -> None:
    assert DecreaseBudget().next_allowed(NOON) == NOON


@pytest.mark.parametrize(
    ("used", "last", "at", "expected"),
    [
        pytest.param(3, NOON, NOON, NOON, id="the fourth at any time"),
        pytest.param(4, NOON, NOON, NOON + SPACING, id="the fifth an hour after the fourth"),
        pytest.param(4, NOON, NOON + timedelta(minutes=59), NOON + SPACING, id="a minute early waits a minute"),
        pytest.param(4, NOON, NOON + SPACING, NOON + SPACING, id="after 3,600 s sharp"),
        pytest.param(9, NOON, NOON + timedelta(hours=5), NOON + timedelta(hours=5), id="hours later at once"),
        pytest.param(4, _late(20), _late(30), MIDNIGHT, id="midnight UTC comes before the hour is over"),
        pytest.param(27, _late(59), MIDNIGHT, MIDNIGHT, id="anew at 00:00"),
        pytest.param(4, NOON, IN_BERLIN, NOON + SPACING, id="an instant told in another zone"),
    ],
)
def test_next_allowed_is_the_first_instant_accepted(
    used: int, last: datetime, at: datetime, expected: datetime
) -> None:
    assert DecreaseBudget(used, last).next_allowed(at) == expected
    assert DecreaseBudget(used, last).allows(at) == (expected == at)


def test_used_on_another_utc_day_is_nothing() -> None:
    budget = DecreaseBudget(4, _late(59))
    assert [budget.used_on(DAY), budget.used_on(MIDNIGHT)] == [4, 0]


def test_after_a_decrease_on_a_new_day_counts_from_one() -> None:
    tomorrow = NOON + timedelta(days=1)
    assert DecreaseBudget(4, NOON).after(tomorrow) == DecreaseBudget(1, tomorrow)


def test_a_day_of_trying_every_second_accepts_27() -> None:
    tries = [DAY + timedelta(seconds=second) for second in range(86_400)]
    assert len(accepted_of(tries)) == 27


@law
@given(instants | bursts)
def test_accepted_decreases_keep_the_rule_of_the_service(wanted: list[datetime]) -> None:
    by_day: dict[date, list[datetime]] = {}
    for at in accepted_of(wanted):
        by_day.setdefault(at.date(), []).append(at)
    for accepted in by_day.values():
        assert all(later - earlier >= SPACING for earlier, later in pairwise(accepted[3:]))
        assert len(accepted) <= 27


@law
@given(instants | bursts)
def test_refused_decreases_could_not_have_been_accepted(wanted: list[datetime]) -> None:
    accepted: list[datetime] = []
    for at in wanted:
        today = [earlier for earlier in accepted if earlier.date() == at.date()]
        if len(today) < 4 or at - today[-1] >= SPACING:
            accepted.append(at)
    assert accepted_of(wanted) == accepted


@law
@given(instants, st.integers(0, 40), st.integers(0, 86_400))
def test_next_allowed_is_allowed_and_nothing_before_it_is(wanted: list[datetime], used: int, later: int) -> None:
    budget = DecreaseBudget(used, wanted[-1] if wanted else None)
    at = (wanted[-1] if wanted else NOON) + timedelta(seconds=later)
    allowed = budget.next_allowed(at)
    assert allowed >= at
    assert budget.allows(allowed)
    assert allowed == at or not budget.allows(allowed - timedelta(seconds=1))


@law
@given(instants, st.randoms(use_true_random=False))
def test_refused_decreases_do_not_depend_on_order_and_add_up(wanted: list[datetime], random: Random) -> None:
    refused = refused_decreases(tuple(random.sample(wanted, len(wanted))))
    assert refused == refused_decreases(tuple(wanted))
    assert sum(count for _, count in refused.values()) == len(wanted) - len(accepted_of(wanted))
    for day, (planned, count) in refused.items():
        assert planned == sum(at.date() == day for at in wanted) >= count >= 1


def test_refused_decreases_of_six_in_an_hour_are_two() -> None:
    six = tuple(NOON + timedelta(minutes=9 * number) for number in range(6))
    assert refused_decreases(six) == {date(2027, 3, 4): (6, 2)}


def test_refused_decreases_within_the_budget_are_none() -> None:
    assert refused_decreases((NOON,) * 4) == {}
