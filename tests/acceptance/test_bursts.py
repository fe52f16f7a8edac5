"""What becomes of burst capacity at a raise: the seconds that each rule leads to, and the rule that a table went by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from acceptance.parts.bursts import datapoint_age, expected_seconds, judge
from highwater.core.bucket import Bucket, OnRaise

KEEP, SCALE, EMPTY = OnRaise
UNITS = 25


def test_seconds_of_each_rule_are_those_of_the_page() -> None:
    """300 saved, less 180 and the second in which a full bucket takes nothing in; 58 at half of the new capacity."""
    assert expected_seconds(300, 2) == {KEEP: 119 + 58, SCALE: 2 * 119 + 58, EMPTY: 58}
    # raised late: less comes in before the last step
    assert expected_seconds(300, 50) == {KEEP: 119 + 10, SCALE: 2 * 119 + 10, EMPTY: 10}


@pytest.mark.parametrize("raised_after", [0, 60, 75])
def test_raise_at_the_ends_of_its_minute_and_beyond_has_seconds_too(raised_after: int) -> None:
    kept, scaled, emptied = expected_seconds(300, raised_after).values()
    assert (kept - emptied, scaled - kept) == (119, 119)


@pytest.mark.parametrize("saved", [260, 300, 340])
@pytest.mark.parametrize("rule", OnRaise)
def test_table_is_known_by_what_it_grants_whatever_its_bucket_holds(rule: OnRaise, saved: int) -> None:
    """A table of 25 units whose bucket is of another size than the documented one, raised after seven seconds."""
    bucket = Bucket(UNITS, saved, rule)
    bucket.serve(2 * UNITS, 180)
    bucket.serve(UNITS, 7)
    bucket.resize(2 * UNITS)
    bucket.serve(UNITS, 53)
    granted = bucket.serve(3 * UNITS, 660)
    # what a load generator in an account is late by, and what is measured of the bucket before
    for error in (-12, 0, 12):
        assert judge(granted / UNITS - 2 * 660 + error, expected_seconds(saved + error, 7)) is rule


@pytest.mark.parametrize(
    ("seconds", "answer"),
    [
        pytest.param(20, EMPTY, id="39-of-119-away"),
        pytest.param(98, None, id="between-empty-and-keep"),
        pytest.param(177, KEEP, id="keep"),
        pytest.param(236, None, id="between-keep-and-scale"),
        pytest.param(296, SCALE, id="scale"),
        pytest.param(477, None, id="300-for-each-new-unit"),
        pytest.param(600, None, id="filled"),
    ],
)
def test_seconds_between_or_beyond_the_rules_name_none(seconds: float, answer: OnRaise | None) -> None:
    assert judge(seconds, {KEEP: 177, SCALE: 296, EMPTY: 58}) is answer


def test_table_without_anything_left_before_the_raise_names_no_rule() -> None:
    """As of a window of five minutes, or of a bucket of three: all rules lead to the same seconds."""
    for saved in (30, 180):
        expected = expected_seconds(saved, 2)
        assert len(set(expected.values())) == 1
        assert judge(expected[KEEP], expected) is None


def test_age_of_a_datapoint_counts_from_the_end_of_its_minute() -> None:
    reason = (
        "Threshold Crossed: 2 datapoints [3000.0 (17/09/26 16:33:00), 2700.0 (17/09/26 16:32:00)] were greater than "
        "the threshold (1050.0)."
    )
    at = datetime(2026, 9, 17, 16, 34, 43, 138_000, tzinfo=UTC)
    assert datapoint_age(reason, at) == timedelta(seconds=43, milliseconds=138)
