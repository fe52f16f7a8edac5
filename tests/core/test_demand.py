"""Demand by minute, and what the scaler reads from it: peaks and jumps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core.scaler import Observation
from highwater.core.scaler.demand import demand_by_minute, peak
from highwater.core.scaler.minutes import Minutes as KnownMinutes
from highwater.core.scaler.minutes import MinuteSeries

Minutes = list[int | None]
QUIET: Minutes = [100] * 15


def test_demand_is_consumption_and_throttles_and_unknown_where_there_is_neither() -> None:
    observation = Observation.of(990, (40, 0, None, None, 7), (2, 0, 3, 0, 0))
    assert demand_by_minute(observation) == [42, 0, 3, None, 7]


@given(st.lists(st.none() | st.integers(0, 60_000), max_size=80))
def test_demand_without_throttles_is_what_was_consumed(consumed: Minutes) -> None:
    assert demand_by_minute(Observation.of(990, consumed, [0] * len(consumed))) == consumed


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param(1, 0, id="the newest is not known"),
        pytest.param(2, 20, id="two minutes"),
        pytest.param(3, 30, id="three minutes"),
        pytest.param(4, 90, id="all"),
        pytest.param(99, 90, id="more than there are"),
    ],
)
def test_peak_is_the_highest_known_of_the_last_minutes(minutes: int, expected: int) -> None:
    assert peak([90, 30, 20, None], minutes) == expected


# jumps: four minutes above 160 % of the fifteen before them


def count_jumps(consumed: Minutes, minutes: int, jump_percent: int) -> int:
    return KnownMinutes.of(consumed).count_jumps(minutes, jump_percent)


def test_jump_is_four_minutes_above_the_share_of_the_highest_of_the_fifteen_before() -> None:
    assert count_jumps([*QUIET, 160, 160, 160, 161], 480, 160) == 1
    assert count_jumps([*QUIET, 160, 160, 160, 160], 480, 160) == 0
    assert count_jumps([*QUIET, 640, 0, 0, 1], 480, 160) == 1, "on average"
    assert count_jumps([101, *QUIET[1:], 160, 160, 160, 161], 480, 160) == 0, "101 was the highest"
    assert count_jumps([*QUIET[1:], 101, 160, 160, 160, 161], 480, 160) == 0
    assert count_jumps([200, *QUIET[1:], 320, 320, 320, 320], 480, 160) == 0
    assert count_jumps([200, *QUIET[1:], 320, 320, 320, 321], 480, 160) == 1


def test_minute_before_the_fifteen_is_forgotten() -> None:
    assert count_jumps([900, *QUIET, 300, 300, 300, 300], 480, 160) == 1


def test_too_few_minutes_show_no_jump() -> None:
    assert count_jumps([*QUIET, 300, 300, 300], 480, 160) == 0
    assert count_jumps([*QUIET[1:], 300, 300, 300, 300], 480, 160) == 0
    assert count_jumps([], 480, 160) == 0


def test_fifteen_minutes_from_a_jump_on_belong_to_it() -> None:
    rising: Minutes = [*QUIET, *[300] * 15]
    assert count_jumps([*rising, *[900] * 4], 480, 160) == 2
    assert count_jumps([*rising[:-1], *[900] * 4], 480, 160) == 1, "fourteen minutes after the first"
    assert count_jumps([*rising, 4_000, 4_000], 480, 160) == 1, "two minutes are no second one yet"


def test_jumps_of_the_last_minutes_alone_count() -> None:
    jump: Minutes = [*QUIET, *[300] * 4, *[0] * 15]
    assert count_jumps(jump, 34, 160) == 1
    assert count_jumps(jump, 33, 160) == 0, "fourteen minutes before it"


def test_jumps_from_nothing_to_little_are_none() -> None:
    busy: Minutes = [6_000] * 100
    assert count_jumps([*busy, *[10] * 20, *[90] * 20], 140, 160) == 0
    assert count_jumps([*busy, *[10] * 20, *[6_000] * 20], 140, 160) == 1
    assert count_jumps([600] * 18, 720, 160) == 0


def test_jump_is_above_the_average_of_all_minutes() -> None:
    # 44 minutes of 11,000 units in all: four average ones have 1,000
    past: Minutes = [*[400] * 25, *[0] * 15]
    assert count_jumps([*past, 250, 250, 250, 250], 480, 160) == 0
    assert count_jumps([*past, 250, 250, 250, 251], 480, 160) == 1


def test_unknown_minute_counts_as_quiet() -> None:
    assert count_jumps([*[None] * 15, 1, 1, 1, 1], 480, 160) == 1
    assert count_jumps([*QUIET, 300, None, 300, 300], 480, 160) == 1


def jumps_counted_from_all_minutes(consumed: Minutes, minutes: int, jump_percent: int) -> int:
    """The definition of a jump, worked out from every minute each time."""
    known = [units or 0 for units in consumed[-minutes:]]
    jumps, at = 0, 15
    while at <= len(known) - 4:
        after = sum(known[at : at + 4])
        if after * len(known) > 4 * sum(known) and after * 100 > 4 * jump_percent * max(known[at - 15 : at]):
            jumps += 1
            at += 15
        else:
            at += 1
    return jumps


@given(
    st.lists(st.none() | st.sampled_from([0, 1, 50, 100, 160, 170, 400]) | st.integers(0, 900), max_size=150),
    st.integers(0, 150),
    st.integers(1, 160),
    st.integers(101, 400),
)
def test_jumps_of_a_series_are_those_of_its_minutes(
    consumed: Minutes, at_once: int, minutes: int, jump_percent: int
) -> None:
    """The function has all minutes at once, the simulator adds one at a time."""
    series = MinuteSeries(consumed[:at_once])
    for units in consumed[at_once:]:
        series.append(units)
    for end in range(0, len(consumed) + 1, 7):
        window = series.window(end, 140)
        expected = jumps_counted_from_all_minutes(consumed[max(0, end - 140) : end], minutes, jump_percent)
        assert window.count_jumps(minutes, jump_percent) == expected
        assert window.peak() == max((units or 0 for units in consumed[max(0, end - 140) : end]), default=0)


def test_a_window_is_a_sequence_of_the_minutes_before_its_end() -> None:
    series = MinuteSeries([3, None, 5, 7, 11])
    window = series.window(4, 3)
    assert list(window) == [None, 5, 7]
    assert (window[0], window[-1], window[1:], len(window)) == (None, 7, [5, 7], 3)
    assert window.before(2) == (None,)
    assert list(reversed(window)) == [7, 5, None]
    series.append(13)
    assert list(window) == [None, 5, 7], "a minute that is added later changes no window"
    with pytest.raises(IndexError, match=r"\Aminute 3 of 3\Z"):
        window[3]
