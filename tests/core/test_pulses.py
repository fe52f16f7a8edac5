"""Slots, the burst bucket that is believed in, and the hint by which a process sees when to ask for help."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core.bucket import BELIEVED_SECONDS, level_after, outlasts
from highwater.core.pulses import SLOT_SECONDS, Hint, Slots, slot_at
from tests.core.examples import examples

law = settings(max_examples=examples(300))
_units = st.integers(0, 50_000)


def slots(*consumed: int | None, refused: dict[int, int] | None = None, newest: int = 1_000) -> Slots:
    """Slots of which the last is *newest*; units refused by the slot's place from the first."""
    return Slots(newest, consumed, tuple((refused or {}).get(at, 0) for at in range(len(consumed))))


def test_slots_are_counted_since_1970_in_tens_of_seconds() -> None:
    assert slot_at(datetime(1970, 1, 1, 0, 1, 39, tzinfo=UTC)) == 9


def test_series_of_two_lengths_and_amounts_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^2 slots consumed and 1 refused$"):
        Slots(7, (1, 2), (0,))
    with pytest.raises(ValueError, match=r"^units below zero$"):
        Slots(7, (1, -2), (0, 0))
    with pytest.raises(ValueError, match=r"^units below zero$"):
        Slots(7, (1, None), (0, -1))


def test_minute_is_the_sum_of_its_six_slots_and_nothing_unless_all_are_here() -> None:
    found = slots(*range(1, 14), newest=66)
    assert found.first == 54
    assert found.consumed_in(9) == 1 + 2 + 3 + 4 + 5 + 6
    assert found.consumed_in(10) == 7 + 8 + 9 + 10 + 11 + 12
    assert found.consumed_in(11) == 0
    assert found.consumed_in(8) == 0
    assert slots(*[None] * 6, newest=65).consumed_in(10) == 0
    assert slots(None, 3, None, None, None, 4, newest=65).consumed_in(10) == 7


def test_units_asked_for_are_consumed_and_refused_of_the_whole_fleet() -> None:
    found = slots(100, None, 31, refused={1: 7, 2: 9})
    assert found.asked_units() == [100, 7, 40]
    assert found.asked_units(50) == [200, 14, 80]
    assert found.asked_units(30) == [334, 24, 134]


@pytest.mark.parametrize(
    ("consumed", "refused", "asked"),
    [
        # late, as a calm process tells every half minute
        ([90, None, 270, None, None, None], [0] * 6, [90, 0, 270, 270, 270, 270]),
        ([90, 270, None, None, None, None], [0] * 6, [90, 270, 0, 0, 0, 0]),
        ([90, 270, None, None], [0, 0, 0, 5], [90, 270, 0, 5]),
        ([None, None], [0, 0], [0, 0]),
        ([None], [0], [0]),
        ([70, 0, None], [0, 0, 0], [70, 0, 0]),
    ],
)
def test_slots_that_are_not_told_yet_count_as_the_newest_that_was(
    consumed: list[int | None], refused: list[int], asked: list[int]
) -> None:
    assert Slots(40, consumed, refused).asked_units() == asked


def test_later_slots_are_those_from_one_on() -> None:
    found = slots(1, 2, 3, 4, refused={3: 5})
    assert found.since(999) == slots(3, 4, refused={1: 5})
    assert found.since(1) == found
    assert found.since(1_001) == slots()
    assert found.since(2_000).is_empty
    assert slots(None, 0, refused={}).is_empty is False
    assert slots(None, None).is_empty


def test_bucket_fills_with_what_is_left_and_keeps_a_minute() -> None:
    assert level_after(100, 10, [40], SLOT_SECONDS) == 160
    assert level_after(100, 10, [140, 300], SLOT_SECONDS) == 0
    assert level_after(550, 10, [20], SLOT_SECONDS) == 600 == 10 * BELIEVED_SECONDS
    assert level_after(9_000, 10, [], SLOT_SECONDS) == 600
    assert level_after(60, 10, [480, 660], seconds=60) == 120


def test_bucket_outlasts_a_rate_for_as_long_as_its_tokens_last() -> None:
    assert outlasts(300, 10, 40, 10)
    assert not outlasts(299, 10, 40, 10)
    assert outlasts(0, 10, 10, 1_000)


HINT = Hint(slot=997, capacity_units=100, level_units=6_000, coverage_percent=50, help_seconds=17)


def test_process_asks_for_help_when_the_bucket_will_not_last() -> None:
    # half the fleet tells, so 800 units in ten seconds are 160 a second
    assert not HINT.needs_help(slots(9_000, 500, 500, 800))
    # 380 units a second: 6,000 - 2,800 are left, and 17 seconds need 4,760
    assert HINT.needs_help(slots(900, 500, 500, 1_900))
    assert not HINT.needs_help(slots(900, 500, 500, 1_400))
    assert HINT.needs_help(slots(900, 500, 1_900, 500)), "the rate is that of the higher of two slots"


def test_slots_that_the_turn_knew_say_nothing_new() -> None:
    assert not HINT.needs_help(slots(90_000, 90_000, newest=997))
    assert not HINT.needs_help(slots())


def test_refused_requests_ask_for_help_unless_it_is_on_its_way() -> None:
    assert not HINT.needs_help(slots(None, 1, 1, refused={1: 3}))
    assert HINT.needs_help(slots(None, 1, 1, 1, 1, refused={3: 3}, newest=1_001))


def test_nobody_asks_for_help_where_no_more_is_to_be_had() -> None:
    most = replace(HINT, is_most=True)
    assert not most.needs_help(slots(900, 500, 500, 1_900))
    assert not most.needs_help(slots(None, 1, 1, 1, 1, refused={3: 3}, newest=1_001))
    assert most.is_near(slots(0, 0, 0, 401))


def test_pulses_come_often_once_the_fleet_nears_its_capacity() -> None:
    assert not HINT.is_near(slots(9_000, 395, 395, 395))
    assert HINT.is_near(slots(0, 0, 0, 401))
    # slots that the hint knew count too, but not for long
    assert HINT.is_near(slots(9_000, newest=997))
    assert HINT.is_near(slots(9_000, 395, 0))


@law
@given(st.integers(0, 200_000), st.integers(1, 4_000), st.lists(_units, max_size=40), st.integers(0, 39), _units)
def test_more_asked_for_leaves_no_more_tokens(level: int, capacity: int, asked: list[int], at: int, more: int) -> None:
    after = level_after(level, capacity, asked, SLOT_SECONDS)
    assert 0 <= after <= capacity * BELIEVED_SECONDS
    higher = [units + (more if place == at else 0) for place, units in enumerate(asked)]
    assert level_after(level, capacity, higher, SLOT_SECONDS) <= after


@law
@given(st.lists(st.tuples(_units, _units), min_size=1, max_size=12), st.integers(0, 11), _units, st.integers(25, 100))
def test_more_asked_for_never_takes_a_call_for_help_back(
    told: list[tuple[int, int]], at: int, more: int, coverage: int
) -> None:
    hint = Hint(999 - len(told), 800, 800 * 30, coverage, 17)
    consumed, refused = zip(*told, strict=True)
    higher = tuple(units + (more if place == at else 0) for place, units in enumerate(consumed))
    if hint.needs_help(Slots(999, consumed, refused)):
        assert hint.needs_help(Slots(999, higher, refused))


def test_highest_seconds_of_processes_add_up_to_far_more_than_their_fleet_asks_for() -> None:
    """The figures of decision 21, which says why pulses do not report a slot's highest second."""

    def expected_highest(requests: int) -> float:
        """Of ten seconds with so many requests a second at random (Poisson), relative to the mean."""
        chance, below, expected = math.exp(-requests), 0.0, 0.0
        for number in range(10 * requests + 50):
            below += chance
            expected += 1 - below**10
            chance *= requests / (number + 1)
        return expected / requests

    figures = [f"{expected_highest(requests):.2f} times" for requests in (1, 10, 100)]
    assert figures == ["2.74 times", "1.51 times", "1.16 times"]
    decisions = Path(__file__).resolve().parents[2] / "docs" / "decisions"
    record = (decisions / "0021-the-fleet-tells-and-the-bucket-decides.md").read_text()
    assert all(figure in record for figure in figures)
