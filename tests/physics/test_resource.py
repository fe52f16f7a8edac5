"""UpdateTable: what it takes, what it refuses, what it leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater.core import Dimension
from highwater_lab.physics import Pace, Refused, Resource

READ, WRITE = Dimension.READ, Dimension.WRITE
NOON = int(datetime(2026, 11, 3, 12, tzinfo=UTC).timestamp())
PACE = Pace(update_seconds=7, growth_seconds=311)


def _resource(**more: Any) -> Resource:
    return Resource(None, 100, 200, **more)


def test_change_is_there_when_its_time_has_come() -> None:
    resource = _resource()
    assert resource.update(NOON, {WRITE: 150}, PACE) == NOON + 7
    assert resource.throughput[WRITE].units == 200
    resource.apply()
    assert (resource.throughput[READ].units, resource.throughput[WRITE].units) == (100, 150)


def test_rise_that_needs_partitions_takes_longer_and_doubles_them() -> None:
    resource = _resource()
    assert resource.partitions.count == 1
    assert resource.update(NOON, {WRITE: 1_400}, PACE) == NOON + 311
    resource.apply()
    assert resource.partitions.count == 2
    assert resource.mark == {READ: 100, WRITE: 1_400}


def test_rise_within_the_mark_needs_none() -> None:
    resource = _resource(warm_write_units=5_000)
    assert resource.update(NOON, {WRITE: 5_000}, PACE) == NOON + 7


def test_what_is_refused() -> None:
    resource = _resource(quota_units=900)
    assert resource.update(NOON, {WRITE: 901}, PACE) is Refused.QUOTA
    assert resource.update(NOON, {WRITE: 0}, PACE) is Refused.TOO_SMALL
    assert resource.update(NOON, {READ: 100, WRITE: 200}, PACE) is Refused.UNCHANGED
    assert resource.update(NOON, {READ: 101}, PACE) == NOON + 7
    assert resource.update(NOON + 6, {READ: 102}, PACE) is Refused.IN_USE


def test_reads_and_writes_in_one_call_are_one_decrease_and_share_the_budget() -> None:
    resource = _resource()
    for number in range(4):
        at = NOON + 60 * number
        assert resource.update(at, {READ: 90 - number, WRITE: 190 - number}, PACE) == at + 7
        resource.apply()
    assert resource.decreases == 4
    assert resource.update(NOON + 300, {WRITE: 50}, PACE) is Refused.DECREASES
    assert resource.update(NOON + 300, {READ: 500, WRITE: 50}, PACE) is Refused.DECREASES, "one part of it is lower"
    last = NOON + 180
    assert resource.update(last + 3_599, {WRITE: 50}, PACE) is Refused.DECREASES
    assert resource.update(last + 3_600, {WRITE: 50}, PACE) == last + 3_607
    assert (resource.decreases_on_day(NOON), resource.last_decrease) == (5, last + 3_600)


def test_budget_starts_anew_at_midnight_utc() -> None:
    resource = _resource()
    late = int(datetime(2026, 11, 3, 23, 55, tzinfo=UTC).timestamp())
    for number in range(4):
        resource.update(late + 30 * number, {WRITE: 190 - number}, PACE)
        resource.apply()
    assert resource.update(late + 299, {WRITE: 50}, PACE) is Refused.DECREASES
    assert resource.update(late + 300, {WRITE: 50}, PACE) == late + 307
