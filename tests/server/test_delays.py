"""When things happen that AWS does not time exactly: they differ by name and time, and are the same in each run."""

from __future__ import annotations

from itertools import pairwise

from highwater_local.autoscaling.records import uuid_of
from highwater_local.cloudwatch import has_zero, newest_zero


def test_one_idle_minute_of_about_ten_has_no_zero_and_no_two_in_a_row() -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics."""
    zeros = [has_zero("orders", minute) for minute in range(29_000_000, 29_000_660)]
    assert zeros.count(False) == 60
    assert all(one or other for one, other in pairwise(zeros))


def test_zeros_of_three_minutes_come_together_190_seconds_after_the_last() -> None:
    """The first is 310 s late then (recorded: radkawar/stackd 9dc356f, dynamodb/transaction_failure_metrics)."""
    ended = 3 * 60 * 9
    assert newest_zero(ended + 189) == 3 * 8 - 1
    assert newest_zero(ended + 190) == 3 * 9 - 1


def test_uuid_depends_on_its_parts_alone() -> None:
    assert uuid_of("orders", 1) == uuid_of("orders", 1) != uuid_of("orders", 2)
    assert uuid_of("orders", 1)[14] == "4"
