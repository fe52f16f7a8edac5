"""UpdateTable: what it takes, what it refuses, what it leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater.core import Dimension
from highwater_lab.services.timing import Pace
from highwater_lab.services.update_table import CapacityControl, ChangeKind, Refused

READ, WRITE = Dimension.READ, Dimension.WRITE
NOON = int(datetime(2026, 11, 3, 12, tzinfo=UTC).timestamp())
PACE = Pace(update_seconds=7, growth_seconds=311)


def _resource(warm_write_units: int = 0, **more: Any) -> CapacityControl:
    return CapacityControl({READ: 100, WRITE: 200}, {WRITE: warm_write_units}, **more)


def test_change_is_there_when_its_time_has_come() -> None:
    resource = _resource()
    assert resource.update(NOON, {WRITE: 150}, PACE) == NOON + 7
    assert resource.settle(NOON + 6) == []
    assert resource.units[WRITE] == 200
    resource.settle(NOON + 7)
    assert (resource.units[READ], resource.units[WRITE]) == (100, 150)


def test_rise_that_needs_partitions_takes_longer_and_doubles_them() -> None:
    resource = _resource()
    assert resource.partitions.count == 1
    assert resource.update(NOON, {WRITE: 1_400}, PACE) == NOON + 311
    resource.settle(NOON + 311)
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
        resource.settle(at + 7)
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
        resource.settle(late + 30 * number + 7)
    assert resource.update(late + 299, {WRITE: 50}, PACE) is Refused.DECREASES
    assert resource.update(late + 300, {WRITE: 50}, PACE) == late + 307


def test_call_that_waits_is_carried_out_after_the_change_under_way() -> None:
    resource = _resource()
    assert resource.update(NOON, {WRITE: 1_400}, PACE) == NOON + 311
    assert resource.refusal(NOON + 1, {WRITE: 90}) is Refused.IN_USE
    assert resource.refusal(NOON + 1, {WRITE: 90}, waits=True) is None
    assert resource.accept(NOON + 1, {WRITE: 90}, PACE) == NOON + 311, "NOON + 8 without the change under way"
    changes = resource.settle(NOON + 311)
    assert [change.units for change in changes] == [{READ: 100, WRITE: 1_400}, {READ: 100, WRITE: 90}]
    assert resource.units == {READ: 100, WRITE: 90}


def test_call_in_the_second_in_which_a_change_is_due_takes_its_place_where_that_is_not_settled() -> None:
    # as a poller that comes every five minutes meets a change that took five
    resource = _resource()
    assert resource.update(NOON, {WRITE: 1_400}, PACE) == NOON + 311
    assert resource.update(NOON + 311, {WRITE: 300}, PACE) == NOON + 318
    resource.settle(NOON + 311)
    assert resource.units == {READ: 100, WRITE: 300}


def test_budget_is_shown_without_what_is_under_way_and_judged_with_it() -> None:
    resource = _resource()
    resource.update(NOON, {WRITE: 150}, PACE)
    assert (resource.budget_shown(NOON + 6).used, resource.decreases_on_day(NOON)) == (0, 1)
    resource.accept(NOON + 6, {WRITE: 140}, PACE)
    assert resource.budget_shown(NOON + 12).used == 0, "the first of both is in force, and the second waits for it"
    assert resource.budget_shown(NOON + 13).used == 2


def test_warm_up_takes_its_time_by_the_partitions_that_it_needs() -> None:
    resource = _resource()
    resource.warm_up(NOON, {WRITE: 5_000}, PACE)
    assert (resource.is_warming(NOON + 310), resource.is_changing(NOON)) == (True, False)
    assert (resource.settle(NOON + 310), resource.mark) == ([], {READ: 100, WRITE: 200})
    assert [change.kind for change in resource.settle(NOON + 311)] == [ChangeKind.WARM_UP]
    assert resource.units == {READ: 100, WRITE: 200}, "capacity stays"
    assert (resource.mark, resource.partitions.count) == ({READ: 100, WRITE: 5_000}, 8)
    assert not resource.is_warming(NOON + 311)
    resource.warm_up(NOON + 400, {READ: 300}, PACE)
    resource.settle(NOON + 407)
    assert resource.mark == {READ: 300, WRITE: 5_000}
    resource.warm_up(NOON + 500, {READ: 300}, PACE)
    assert not resource.is_warming(NOON + 500), "it is as warm already"


def test_capacity_that_comes_before_a_warm_up_raises_the_mark_at_its_own_time() -> None:
    resource = _resource()
    resource.warm_up(NOON, {WRITE: 5_000}, PACE)
    resource.update(NOON, {WRITE: 900}, PACE)
    marks = []
    for after in (6, 7, 311):
        resource.settle(NOON + after)
        marks.append(resource.mark[WRITE])
    assert marks == [200, 900, 5_000]


def test_other_billing_mode_drops_what_is_under_way_and_is_no_decrease() -> None:
    resource = _resource()
    resource.update(NOON, {WRITE: 1_400}, PACE)
    resource.restart(NOON + 1, NOON + 90, {READ: 0, WRITE: 0})
    assert (resource.is_changing(NOON + 89), resource.is_changing(NOON + 90)) == (True, False)
    assert [change.units for change in resource.settle(NOON + 400)] == [{READ: 0, WRITE: 0}]
    assert (resource.decreases, resource.mark, resource.last_increase) == (0, {READ: 100, WRITE: 200}, NOON)
    resource.restart(NOON + 500, NOON + 577, {READ: 55, WRITE: 56})
    resource.settle(NOON + 577)
    assert (resource.units, resource.last_increase) == ({READ: 55, WRITE: 56}, NOON + 500)


def test_call_in_the_second_in_which_another_is_due_keeps_what_that_changed() -> None:
    """Scheduled actions of reads and writes come seconds apart, and a change takes some of them."""
    resource = _resource()
    due = resource.update(NOON, {READ: 630}, PACE)
    assert due == NOON + 7
    later = resource.update(due, {WRITE: 700}, PACE)
    assert later == NOON + 14
    resource.settle(due)
    resource.settle(later)
    assert resource.units == {READ: 630, WRITE: 700}
