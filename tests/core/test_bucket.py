"""The burst bucket: its closed form is its stepping, and more never hurts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.core.bucket import BURST_SECONDS, Bucket, OnRaise, level_after, settle
from highwater_lab.physics import QUANTA_PER_UNIT

UNITS = st.integers(1, 5_000)
RATES = st.integers(0, 20_000 * QUANTA_PER_UNIT)
STRETCHES = st.lists(st.tuples(RATES, st.integers(1, 400)), min_size=1, max_size=12)


def _spent(units: int, tokens: int) -> Bucket:
    bucket = Bucket(units * QUANTA_PER_UNIT)
    bucket.tokens = min(tokens, bucket.cap)
    return bucket


def _step(bucket: Bucket, rate: int, seconds: int) -> int:
    """The rule itself, second by second: add a second's capacity, then serve what the tokens allow."""
    served = 0
    for _ in range(seconds):
        level = min(bucket.cap, bucket.tokens + bucket.fill)
        amount = min(rate, level)
        bucket.tokens = level - amount
        served += amount
    return served


@given(UNITS, st.integers(0, 5_000 * 60 * 300), STRETCHES)
def test_closed_form_is_what_stepping_gives(units: int, tokens: int, stretches: list[tuple[int, int]]) -> None:
    closed, stepped = _spent(units, tokens), _spent(units, tokens)
    for rate, seconds in stretches:
        assert closed.serve(rate, seconds) == _step(stepped, rate, seconds)
        assert closed.tokens == stepped.tokens


@given(UNITS, st.integers(0, 5_000 * 60 * 300), STRETCHES)
def test_holds_says_whether_all_would_be_served(units: int, tokens: int, stretches: list[tuple[int, int]]) -> None:
    bucket = _spent(units, tokens)
    for rate, seconds in stretches:
        holds = bucket.holds(rate, seconds)
        assert (bucket.serve(rate, seconds) == rate * seconds) is holds


@given(UNITS, st.integers(1, 1_000), STRETCHES)
def test_larger_bucket_never_serves_less(units: int, more: int, stretches: list[tuple[int, int]]) -> None:
    small, large = Bucket(units * QUANTA_PER_UNIT), Bucket((units + more) * QUANTA_PER_UNIT)
    served_small = served_large = 0
    for rate, seconds in stretches:
        served_small += small.serve(rate, seconds)
        served_large += large.serve(rate, seconds)
        assert large.tokens >= small.tokens
    assert served_large >= served_small


@given(UNITS, STRETCHES)
def test_never_more_is_served_than_it_holds_and_refills(units: int, stretches: list[tuple[int, int]]) -> None:
    bucket = Bucket(units * QUANTA_PER_UNIT)
    served = seconds = 0
    for rate, length in stretches:
        served += bucket.serve(rate, length)
        seconds += length
        assert 0 <= bucket.tokens <= bucket.cap
    assert served <= (BURST_SECONDS + seconds) * units * QUANTA_PER_UNIT


def test_150_idle_units_last_for_900_seconds_of_200() -> None:
    """The worked example of re:Post's article on spiky workloads; the first second's refill finds a full bucket."""
    bucket = Bucket(150 * QUANTA_PER_UNIT)
    assert bucket.holds(200 * QUANTA_PER_UNIT, 897)
    assert not bucket.holds(200 * QUANTA_PER_UNIT, 898)
    assert bucket.serve(200 * QUANTA_PER_UNIT, 1_000) == (45_000 + 999 * 150) * QUANTA_PER_UNIT


def test_resizing_keeps_tokens_as_far_as_they_fit() -> None:
    bucket = Bucket(100 * QUANTA_PER_UNIT)
    bucket.serve(0, 1)
    bucket.resize(300 * QUANTA_PER_UNIT)
    assert bucket.tokens == 100 * BURST_SECONDS * QUANTA_PER_UNIT
    bucket.resize(40 * QUANTA_PER_UNIT)
    assert bucket.tokens == 40 * BURST_SECONDS * QUANTA_PER_UNIT


def test_raise_keeps_scales_or_empties_what_the_bucket_holds() -> None:
    after = {}
    for rule in OnRaise:
        bucket = Bucket(100, on_raise=rule)
        bucket.tokens = 7_000
        bucket.resize(250)
        after[rule] = bucket.tokens
        bucket.resize(20)
        assert bucket.tokens == min(after[rule], 20 * BURST_SECONDS), "a decrease is the same for all"
    assert after == {OnRaise.KEEP: 7_000, OnRaise.SCALE: 17_500, OnRaise.EMPTY: 0}


@given(UNITS, st.integers(0, 5_000 * 300), st.lists(st.integers(0, 600_000), max_size=12))
def test_minutes_settled_as_a_whole_are_within_a_second_of_the_bucket(
    units: int, tokens: int, asked: list[int]
) -> None:
    """One model at two grains: what is known by the minute alone, and second by second."""
    bucket, level, most = Bucket(units), min(tokens, units * BURST_SECONDS), units * BURST_SECONDS
    bucket.tokens = level
    for each in asked:
        by_second = [each // 60 + (second < each % 60) for second in range(60)]
        refused = sum(rate - bucket.serve(rate, 1) for rate in by_second)
        level, settled = settle(level, 60 * units, each, most)
        # a full bucket loses the first second's capacity before it serves
        assert abs(bucket.tokens - level) <= units + 1
        assert abs(refused - settled) <= units + 1
        bucket.tokens = level
    assert level_after(min(tokens, most), units, asked, 60, BURST_SECONDS) == level
