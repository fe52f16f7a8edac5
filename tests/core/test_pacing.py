"""The laws of pacing: what a budget lets through, debt, the brake, the size of pages, and segments."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core.items import page_units
from highwater.core.pacing.brake import Brake
from highwater.core.pacing.bucket import PacingBucket
from highwater.core.pacing.pages import PageSize
from highwater.core.pacing.segments import count_segments, scan_units
from highwater.core.units import NANOSECONDS

SECOND = NANOSECONDS
_rates = st.integers(1, 3_000_000)
_steps = st.lists(
    st.tuples(st.integers(0, 20 * SECOND), st.integers(1, 400_000), st.integers(0, 400_000)), min_size=1, max_size=14
)


@given(_rates, st.integers(1, 3_000_000), _steps)
def test_no_window_sees_more_than_rate_and_burst_and_what_was_not_expected(
    rate: int, burst: int, steps: list[tuple[int, int, int]]
) -> None:
    """Each step: time until the request, what is paid for it, what it costs, known before the next one comes."""
    bucket = PacingBucket(rate, burst)
    now, sent = 0, []
    for later, paid, cost in steps:
        now += later
        start = bucket.starts_at(now, paid)
        bucket.reserve(start, paid)
        bucket.settle(start, paid, cost)
        now = start
        sent.append((start, paid, cost))
    for first, last in combinations(range(len(sent)), 2):
        window = sent[last][0] - sent[first][0]
        spent = sum(cost for _, _, cost in sent[first : last + 1])
        # the last request may cost more than was known, and more than the bucket holds
        paid, cost = sent[last][1:]
        unexpected = max(cost - min(paid, burst), 0)
        # rounding gives back less, and may do so at each step
        assert spent * NANOSECONDS <= rate * window + burst * NANOSECONDS + unexpected * NANOSECONDS + rate * len(sent)


@given(_rates, _rates, st.integers(0, 10 * SECOND), st.integers(0, 900_000), st.integers(1, 900_000))
def test_debt_is_never_forgiven_by_another_rate(before: int, after: int, later: int, cost: int, burst: int) -> None:
    bucket = PacingBucket(before, burst)
    bucket.reserve(0, cost)
    held = bucket.held(later)
    bucket.change(later, after, burst)
    assert min(held, burst) - 2 <= bucket.held(later) <= held + after // NANOSECONDS + 2


def test_request_dearer_than_the_burst_waits_for_a_full_bucket_and_leaves_a_debt() -> None:
    bucket = PacingBucket(rate=5_000, burst=5_000)
    start = bucket.starts_at(0, 128_000)
    assert start == 0
    bucket.reserve(start, 128_000)
    assert bucket.held(0) == -123_000
    # 123 units of debt and one to pay at 5 a second
    assert bucket.starts_at(0, 1_000) == 124 * SECOND // 5


def test_what_was_paid_too_much_comes_back() -> None:
    bucket = PacingBucket(rate=10_000, burst=10_000)
    bucket.reserve(0, 40_000)
    bucket.settle(0, 40_000, 500)
    assert bucket.starts_at(0, 9_500) == 0
    assert bucket.starts_at(0, 10_000) == SECOND // 20


def test_bucket_fills_only_within_its_time_and_begins_with_nothing_but_its_debt() -> None:
    bucket = PacingBucket(rate=10_000, burst=10_000)
    bucket.begin(0, 2 * SECOND)
    assert [bucket.held(at * SECOND // 2) for at in (0, 1, 2, 9)] == [0, 5_000, 10_000, 10_000]
    bucket.begin(100 * SECOND, 103 * SECOND)
    assert [bucket.held(at * SECOND) for at in (100, 101, 109)] == [0, 10_000, 10_000]
    # a debt of four seconds, of which two are paid within its time, whatever is changed after it
    bucket.reserve(101 * SECOND, 50_000)
    bucket.change(200 * SECOND, 20_000, 20_000)
    bucket.settle(300 * SECOND, 0, 0)
    bucket.begin(400 * SECOND, 500 * SECOND)
    assert bucket.held(400 * SECOND) == -20_000
    # what was paid too much under the last lease is not had under this one
    bucket.settle(401 * SECOND, 50_000, 0)
    assert bucket.held(401 * SECOND) == 20_000


@pytest.mark.parametrize(("rate", "burst"), [(0, 5), (5, 0)])
def test_bucket_that_nothing_comes_out_of_is_refused(rate: int, burst: int) -> None:
    with pytest.raises(ValueError, match="above 0") as refused:
        PacingBucket(rate, burst)
    assert str(refused.value) == f"pacing needs a rate and a burst above 0, got {rate / 1000:g} and {burst / 1000:g}"


def test_brake_gives_way_once_for_a_storm_and_recovers_by_and_by() -> None:
    brake = Brake()
    assert [brake.press(at * SECOND) for at in (100, 101, 104, 105)] == [True, False, False, True]
    assert brake.percent == 49
    assert not brake.recover(114 * SECOND)
    assert brake.recover(135 * SECOND)
    assert (brake.percent, brake.changed_at) == (64, 135 * SECOND)
    assert brake.recover(1_000 * SECOND)
    assert brake.percent == 100


@given(st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=60))
def test_brake_stays_between_one_and_a_hundred_percent(events: list[tuple[int, bool]]) -> None:
    brake, now = Brake(), 0
    for later, is_refused in events:
        now += later * SECOND
        before = replace(brake)
        changed = brake.press(now) if is_refused else brake.recover(now)
        assert 1 <= brake.percent <= 100
        assert changed == (before != brake)


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(0, False, 0.5), (4_096, False, 0.5), (4_097, True, 2.0), (1_048_576, False, 128.0)],
)
def test_page_costs_blocks_begun(size: int, consistent: bool, units: float) -> None:
    assert page_units(size, is_consistent=consistent) == units


@given(st.integers(100, 400_000), st.booleans(), st.integers(400, 4_000_000))
def test_pages_come_to_cost_what_they_should_whatever_items_weigh(item: int, consistent: bool, rate: int) -> None:
    size = PageSize(rate, consistent)
    for _ in range(20):
        units = page_units(size.limit * item, is_consistent=consistent)
        size.learn(units, size.limit)
    one = page_units(item, is_consistent=consistent)
    assert page_units(size.limit * item, is_consistent=consistent) <= max(size.milliunits / 1_000 * 1.5 + 1, one)


@pytest.mark.parametrize(
    ("rate", "consistent", "limit"),
    # 2,000 units a second are pages of 100 units; the largest page of 128, or 256, must not cost above a second
    [(2_000, False, 819), (2_000, True, 409), (128, False, 204), (127, False, 1), (256, True, 102), (255, True, 1)],
)
def test_first_page_goes_by_the_tables_mean_where_no_page_costs_a_second(
    rate: int, consistent: bool, limit: int
) -> None:
    size = PageSize(rate * 1_000, consistent)
    size.expect(3_000_000, 3_000)
    assert size.limit == limit


def test_empty_table_and_pages_that_were_read_are_no_cause_to_expect_anything() -> None:
    empty = PageSize(2_000_000, is_consistent=False)
    empty.expect(0, 0)
    assert empty.limit == 1
    known = PageSize(2_000_000, is_consistent=False)
    known.learn(25.0, 100)
    before = known.limit
    known.expect(3_000_000, 3_000)
    assert known.limit == before


def test_page_in_which_nothing_was_scanned_teaches_nothing() -> None:
    size = PageSize(2_000_000, is_consistent=False)
    size.learn(0.5, 0)
    assert (size.item_bytes, size.limit) == (None, 1)


def test_scan_of_the_articles_table_costs_what_the_article_says() -> None:
    size = 50 * 2**30
    exact = size // 8_192
    assert exact == 6_553_600
    planned = scan_units(size, is_consistent=False, page_milliunits=25_000, segments=count_segments(size, 4))
    assert exact <= planned <= exact * 1.02
    assert count_segments(size, 4) == 200
    assert count_segments(0, 3) == 12
    assert count_segments(10**18, 3) == 1_000_000
