"""Requests for boosts as they are read, the leases that they ask for, and who may ask."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import Capacity, Dimension, IndexCapacity, Plan
from highwater.core.boosts import BoostCap, BoostRequest, Caller, LeaseError, find_cap, index_shares_percent
from highwater.core.boosts.lease import boost_documents, leases_of_document, target_of_text, target_text
from highwater.core.limits import billed_hours
from tests.core.leases import NOW, lease

READ, WRITE = Dimension.READ, Dimension.WRITE
FIXED = IndexCapacity(index_name="fixed", read=Capacity.fixed(units=3), write=Capacity.fixed(units=4))
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=4_000, target_utilization_percent=80),
    indexes=(IndexCapacity(index_name="by_day"), FIXED),
)
INSTANT = "allowed: an instant with its zone, such as 2027-03-04T05:06Z"
LINE = "allowed: a line of up to 200 characters"
ARRIVED = "which arrived at 2027-03-04 02:00 UTC, is over; send a new event if the job still needs it"
HOLDS: list[Any] = ["on", 7, [], {}]
ID = "allowed: 8 to 100 letters, digits, dots, colons and dashes"
GIVEN: dict[str, Any] = {"id": "nightly-1", "table": "orders", "minutes": 30}


def _leases(**members: Any) -> list[tuple[str | None, Dimension, int, bool]]:
    request = BoostRequest.from_document(GIVEN | members)
    return [(each.index, each.dimension, each.units, each.is_total) for each in request.leases(PLAN, "x", NOW)]


def test_writes_of_a_table_boost_its_indexes_that_scale() -> None:
    assert _leases(write=100) == [(None, WRITE, 100, False), ("by_day", WRITE, 100, False)]
    assert _leases(read=100) == [(None, READ, 100, False)]
    assert _leases(read=30, write_total=70) == [
        (None, READ, 30, False),
        (None, WRITE, 70, True),
        ("by_day", WRITE, 70, True),
    ]
    assert _leases(write=50, index="by_day") == [("by_day", WRITE, 50, False)]


def test_shares_of_indexes_are_rounded_up_and_an_index_that_nobody_writes_to_gets_nothing() -> None:
    request = BoostRequest.from_document(GIVEN | {"write": 101})
    found = request.leases(PLAN, "x", NOW, {("by_day", WRITE): 50})
    assert [each.units for each in found] == [101, 51]
    assert [each.units for each in request.leases(PLAN, "x", NOW, {("by_day", WRITE): 0})] == [101]


def test_rate_leaves_the_tables_headroom_as_it_is() -> None:
    assert _leases(write_rate=100)[0] == (None, WRITE, 125, False)


@pytest.mark.parametrize(
    ("members", "start", "minutes"),
    [
        ({}, 0, 30),
        ({"hold": "start"}, 0, 10),
        ({"hold": "start", "minutes": 4}, 0, 4),
        ({"at": "2027-03-04T02:30:30Z"}, 25, 35),
        ({"at": "2027-03-04T02:02:30Z"}, 0, 32),
        ({"at": "2027-03-04T01:00:00Z"}, 0, 30),
        ({"minutes": 1_440, "at": "2027-03-05T02:00:30Z"}, 24 * 60 - 5, 24 * 60),
        ({"sent": "2027-03-04T01:43:30Z"}, 0, 13),
        ({"sent": "2027-03-04T01:51:30Z", "hold": "start", "minutes": 18}, 0, 1),
        ({"sent": "2027-03-04T01:00:30Z", "at": "2027-03-04T01:53:30Z"}, 0, 23),
        ({"sent": "2027-03-04T01:43:30Z", "at": "2027-03-04T02:30:30Z"}, 25, 35),
        ({"sent": "2027-03-04T09:00:00Z"}, 0, 30),
    ],
)
def test_lease_lasts_as_long_as_was_asked_for(members: dict[str, Any], start: int, minutes: int) -> None:
    (first, *_) = BoostRequest.from_document(GIVEN | {"read": 1} | members).leases(PLAN, "x", NOW)
    assert (first.start - NOW, first.end - first.start) == (timedelta(minutes=start), timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"writes": 5},
            "boost: unknown member 'writes'; allowed: at, hold, id, index, is_all_or_nothing, minutes, "
            "read, read_rate, read_total, reason, sent, table, write, write_rate, write_total; did you mean write?",
        ),
        ({}, "boost: asks for no units; give one of read, read_total, read_rate, write, write_total, write_rate"),
        ({"write": 5, "write_rate": 5}, "boost: write is asked for twice; give one of write, write_total, write_rate"),
        ({"write": True}, "boost: write is True; allowed: 1 to 40,000,000 units/s"),
        ({"write_total": 0}, "boost: write_total is 0; allowed: 1 to 40,000,000 units/s"),
        ({"write": 1, "id": "short"}, f"boost: id is 'short'; {ID}"),
        ({"write": 1, "id": None}, f"boost: id is missing; {ID}"),
        (
            {"write": 1, "minutes": 1_441},
            "boost: minutes is 1441; allowed: 1 to 1,440; declare a window for what lasts longer",
        ),
        ({"write": 1, "at": "02:00"}, f"boost: at is '02:00'; {INSTANT}"),
        ({"write": 1, "at": "0001-01-01T00:00+14:00"}, f"boost: at is '0001-01-01T00:00+14:00'; {INSTANT}"),
        ({"write": 1, "sent": "noon"}, f"boost: sent is 'noon'; {INSTANT}"),
        (
            {"write": 1, "sent": "2027-03-03T17:30:30Z"},
            f"orders: a boost from 2027-03-03 17:30 until 2027-03-03 18:00 UTC, {ARRIVED}",
        ),
        (
            {"write": 1, "sent": "2027-03-04T01:30:30Z"},
            f"orders: a boost from 2027-03-04 01:30 until 2027-03-04 02:00 UTC, {ARRIVED}",
        ),
        ({"write": 1, "reason": "x" * 201}, f"boost: reason is '{'x' * 59}; {LINE}"),
        ({"write": 1, "reason": "load\nbegin by root"}, f"boost: reason is 'load\\nbegin by root'; {LINE}"),
        ({"write": 1, "reason": "\ud800"}, f"boost: reason is '\\ud800'; {LINE}"),
        *(({"write": 1, "hold": hold}, f"boost: hold is {hold!r}; allowed: lease or start") for hold in HOLDS),
        (
            {"write": 1, "at": "2099-01-01T00:00Z"},
            "orders: a boost at 2099-01-01 00:00 UTC; allowed: up to 7 days ahead; declare a window for what is known "
            "longer before",
        ),
        ({"write": 1, "table": "\ud800"}, "boost: table is '\\ud800'; allowed: a name"),
        ({"write": 1, "table": ""}, "boost: table is ''; allowed: a name"),
        ({"write": 1, "is_all_or_nothing": 1}, "boost: is_all_or_nothing is 1; allowed: true or false"),
        (
            {"write": 1, "index": "by_x"},
            "orders: has no index 'by_x' write; allowed: table read, table write, index "
            "'by_day' read, index 'by_day' write, index 'fixed' read, index 'fixed' write",
        ),
        (
            {"write": 1, "index": "fixed"},
            "orders: the capacity of index 'fixed' write is fixed; give it Capacity.autoscaled",
        ),
    ],
)
def test_request_that_cannot_be_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(LeaseError) as refused:
        _leases(**members)
    assert str(refused.value) == message


def test_lease_and_target_are_read_as_they_were_written() -> None:
    table, index = lease(), lease(index="by_day", units=7, asked=9)
    others = (lease(id="another-one", is_total=True, reason="", released=NOW), lease(owner="1:role/Other"))
    documents = json.loads(json.dumps(boost_documents([table, index, *others])))
    assert len(documents) == 3, "one for each boost"
    assert [each for document in documents for each in leases_of_document(document)] == [table, index, *others]
    for key in ((None, READ), ("by_day", WRITE)):
        assert target_of_text(target_text(key)) == key


@pytest.mark.parametrize(
    ("arn", "caller"),
    [
        ("arn:aws:sts::123456789012:assumed-role/Loader/i-0abc", Caller("123456789012:role/Loader", "i-0abc")),
        ("arn:aws-cn:iam::123456789012:user/team/ann", Caller("123456789012:user/ann")),
        ("arn:aws:iam::123456789012:role/service-role/Loader", Caller("123456789012:role/Loader")),
        ("arn:aws:iam::123456789012:root", None),
        ("", None),
    ],
)
def test_caller_is_the_role_whatever_its_session_calls_itself(arn: str, caller: Caller | None) -> None:
    assert Caller.of_arn(arn) == caller


def test_grants_of_one_caller_cover_their_own_tables() -> None:
    arn = '"caller": "arn:aws:iam::123456789012:role/x/Loader"'
    caps = [
        BoostCap.from_json(f'{{{arn}, "max_write": 30, "max_read": 0, "tables": ["orders"]}}'),
        BoostCap.from_json(f'{{{arn}, "max_write": 20, "max_read": 70}}'),
        BoostCap.from_json('{"caller": "events/acme", "max_write": 5, "max_read": 6, "tables": ["jobs"]}'),
    ]
    loader = Caller("123456789012:role/Loader", "anything")
    found = find_cap(caps, loader, "orders")
    assert found is not None
    assert (found.of(WRITE), found.of(READ)) == (30, 70)
    assert (found.caller, found.tables) == ("123456789012:role/Loader", ("orders",))
    elsewhere = find_cap(caps, loader, "eu-west-1/orders")
    assert elsewhere is not None
    assert elsewhere.max_write == 30, "a replica is the same table"
    other = find_cap(caps, loader, "jobs")
    assert other is not None
    assert (other.of(WRITE), other.of(READ)) == (20, 70)
    assert find_cap(caps, Caller("999999999999:role/Loader"), "orders") is None
    assert find_cap(caps, Caller.of_events("acme"), "orders") is None


def test_cap_of_an_index_is_that_of_its_table_times_what_it_is_written_more() -> None:
    cap = BoostCap(caller="123456789012:role/Loader", max_read=0, max_write=30)
    table, index = lease(units=40, asked=100), lease(index="by_day", units=9, asked=257)
    assert cap.of_lease(table, [table, index]) == 30
    assert cap.of_lease(index, [lease(index="other", asked=1), table, index]) == 78, "77.1, rounded up"
    assert cap.of_lease(lease(index="by_day", asked=50), [table]) == 30, "an index that is written less has no less"
    # where all was granted
    assert cap.of_lease(lease(index="by_day", units=50), [lease(units=40)]) == 38
    alone = [lease(dimension=READ, units=40, asked=100), index]
    assert cap.of_lease(index, alone) == 30, "the table's writes are not boosted"


def test_cap_of_zeros_is_for_pulses_alone() -> None:
    most = ((0, 0), (1, 0), (0, 1))
    caps = [BoostCap(caller="a", max_read=read, max_write=write) for read, write in most]
    assert [cap.is_for_boosts for cap in caps] == [False, True, True]


def test_shares_of_indexes_are_percents_of_the_tables_writes() -> None:
    consumed = {(None, WRITE): 10_000, ("by_day", WRITE): 2_501, ("hot", WRITE): 90_000, ("by_day", READ): 5}
    assert index_shares_percent(consumed) == {("by_day", WRITE): 26, ("hot", WRITE): 200}
    assert index_shares_percent({(None, WRITE): 999, ("by_day", WRITE): 3}) == {("by_day", WRITE): 100}


@pytest.mark.parametrize(
    ("start", "minutes", "hours"),
    [
        # 02:00 to 02:43 is lowered at 03:00; a minute later is another hour
        ("02:00:00", 43, 1),
        ("02:00:00", 45, 2),
        ("02:59:59", 1, 2),
        ("02:55:00", 35, 2),
        ("00:05:00", 1_440, 25),
    ],
)
def test_boost_is_billed_for_each_hour_until_auto_scaling_has_lowered_it(start: str, minutes: int, hours: int) -> None:
    begun = datetime.fromisoformat(f"2027-03-04T{start}+05:30") + timedelta(hours=5, minutes=30)
    assert billed_hours(begun, begun + timedelta(minutes=minutes)) == hours


def test_instants_are_kept_in_utc() -> None:
    request = BoostRequest.from_document(GIVEN | {"write": 1, "at": "2027-03-04T05:06:00+03:00"})
    assert request.at == datetime(2027, 3, 4, 2, 6, tzinfo=UTC)
