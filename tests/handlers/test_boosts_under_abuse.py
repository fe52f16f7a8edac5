"""What a caller with a small grant can do to others and to the bill, and what outages leave behind."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws.coordinator_table import TableLeases
from highwater.core import Capacity, Dimension, Plan
from highwater.core.boosts import BoostCap, Caller, Lease
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, ScaledPlan
from highwater.handlers.coordinator import handler
from highwater.handlers.coordinator.coordinator import Call
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers import boost_world
from tests.handlers.boost_world import DAY, LOADER, ORDERS, PLAN, SECOND, SMALL, World
from tests.handlers.test_boost_calls import request_of
from tests.memory_aws.leases import refused
from tests.memory_aws.stage import MINUTE
from tests.memory_aws.wire import Call as Wired
from tests.memory_aws.wire import Fault, each, lost_answer, refusal, rewritten

GRANT = "give it grant_boost in the CDK app, and deploy"
PULSING = Caller("123456789012:role/Service")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    caps = (*boost_world.CAPS, BoostCap(caller=PULSING.name, max_read=0, max_write=0, tables=("orders",)))
    monkeypatch.setattr(boost_world, "CAPS", caps)
    return World()


def _indexed(count: int) -> Plan:
    return PLAN.with_indexes(f"by_attribute_{number:02}" for number in range(count))


# --- a boost's floor comes down, whatever happens at its end


def test_pause_over_the_end_of_a_boost_is_healed_when_scaling_is_resumed(world: World) -> None:
    world.ask()
    world.stage.pause(ORDERS)
    assert [world.tick(minutes) for minutes in (10, 60, 600, 30 * 1_440)] == [112, 112, 112, 112]
    world.stage.pause(ORDERS, is_paused=False)
    assert [world.tick(1), world.tick(1)] == [12, 12]
    assert world.listed == []


def test_refusals_of_auto_scaling_for_hours_after_the_end_are_healed(world: World) -> None:
    world.ask()
    world.stage.advance(10 * MINUTE)
    world.stage.wire.fault = _REFUSED
    assert [world.tick(minutes) for minutes in (1, 15, 240)] == [112, 112, 112]
    world.stage.wire.reset()
    assert [world.tick(1), world.tick(1)] == [12, 12]
    assert world.listed == []


BY_ATTRIBUTE = TargetName("orders", "by_attribute_00", Dimension.WRITE)


def _no_data(document: dict[str, Any]) -> None:
    for result in document["MetricDataResults"]:
        result["Timestamps"], result["Values"] = [], []


_MISSING = each(rewritten(_no_data), "GetMetricData")
_REFUSED = each(refusal("ThrottlingException", "it rests"), "RegisterScalableTarget")


def _recorded(world: World) -> dict[Any, int]:
    """The boosts' part of floors, as the lease table has it."""
    return dict(world.leases.read("orders").boosted)


def _without_data() -> World:
    """A scaler that follows demand, with a floor of 190 from the last data that CloudWatch had."""
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 190)
    assert world.run() == 190
    world.stage.wire.fault = _MISSING
    return world


def test_floor_of_a_boost_does_not_climb_while_its_part_cannot_be_recorded_and_no_data_comes() -> None:
    world = _without_data()
    writes: list[str] = []

    def fail(operation: str) -> None:
        if operation == "update_item":
            writes.append(operation)
            if len(writes) > 1:  # the first writes the lease
                raise refused("InternalServerError", "UpdateItem")

    world.dynamodb.before = fail
    answer = world.ask(minutes=30)
    assert answer["notes"] == [
        "orders: the floor is not set yet, the next minute's run tries again: the lease table does not record the "
        "boosts' part of floors"
    ]
    assert [world.tick(1) for _ in range(3)] == [190, 190, 190]
    world.dynamodb.before = lambda _: None
    assert [world.tick(1) for _ in range(3)] == [290, 290, 290]
    assert world.tick(30) == 190


def test_boosts_part_of_a_floor_that_could_not_be_raised_is_not_recorded() -> None:
    world = _without_data()
    world.stage.wire.fault = lambda call: _MISSING(call) or _REFUSED(call)
    world.ask(minutes=30)
    assert (world.floor, _recorded(world)) == (190, {})
    world.stage.wire.fault = _MISSING
    assert world.tick(1) == 290
    assert _recorded(world) == {(None, Dimension.WRITE): 100}


@pytest.mark.parametrize("fault", [refusal("ThrottlingException", "it rests"), lost_answer])
def test_floor_does_not_climb_while_that_of_an_index_cannot_be_set_and_no_data_comes(fault: Fault) -> None:
    world = World(Mode.FLOOR, plan=_indexed(1))
    for target, units in ((ORDERS, 190), (BY_ATTRIBUTE, 170)):
        world.stage.consume(target, units)
    assert world.run() == 190

    def fail(call: Wired) -> Any:
        is_index = call.operation == "RegisterScalableTarget" and "/index/" in call.body["ResourceId"]
        return fault(call) if is_index else _MISSING(call)

    world.stage.wire.fault = fail
    world.ask(minutes=30)
    assert [world.tick(1) for _ in range(3)] == [290, 290, 290]
    world.stage.wire.fault = _MISSING
    assert (world.tick(1), world.stage.bounds(BY_ATTRIBUTE).min) == (290, 270)
    assert (world.tick(30), world.stage.bounds(BY_ATTRIBUTE).min) == (190, 170)


def test_capacity_that_could_not_be_set_is_not_recorded_as_a_boosts() -> None:
    world = World(Mode.DIRECT)
    world.stage.wire.fault = each(refusal("ResourceInUseException", "it is being updated"), "UpdateTable")
    world.ask(minutes=30)
    assert _recorded(world) == {}
    world.stage.wire.reset()
    world.stage.advance(MINUTE)
    world.serve_tick()
    assert world.stage.capacity("orders").write == 112
    assert _recorded(world) == {(None, Dimension.WRITE): 100}


_BOOST = '"id":"nightly-2","table":"orders","owner":"x","end":"2027-03-04T12:00:00Z"'


@pytest.mark.parametrize(
    ("attribute", "text", "why"),
    [
        ("leases", '[{"id":"x"}]', "KeyError('targets')"),
        ("leases", '{"id":"x"}', "TypeError(\"string indices must be integers, not 'str'\")"),
        ("leases", "orders", "DocumentError('is not JSON (Expecting value: line 1 column 1 (char 0))')"),
        (
            "leases",
            f'[{{{_BOOST},"start":"2027-03-04T10:00:00","targets":{{"write":[9,false,null]}}}}]',
            "ValueError(\"'2027-03-04T10:00:00' has no zone\")",
        ),
        (
            "leases",
            f'[{{{_BOOST},"start":"2027-03-04T10:00:00Z","targets":{{"write":[Infinity,false,null]}}}}]',
            "DocumentError('is not JSON (Infinity is not a number of JSON)')",
        ),
        ("boosted", '{"write":"9"}', "TypeError(\"'str' object cannot be interpreted as an integer\")"),
        ("boosted_at", "2027-03-04T10:00:00", "ValueError(\"'2027-03-04T10:00:00' has no zone\")"),
        (
            "alone",
            '{"write":[9,true,7]}',
            "TypeError('DemandAlone.__init__() takes 3 positional arguments but 4 were given')",
        ),
        ("alone", '{"write":[9,1441]}', "ValueError('a demand of 9 units/s for 1441 minutes')"),
        ("alone", '{"write":[-9,30]}', "ValueError('a demand of -9 units/s for 30 minutes')"),
    ],
)
def test_table_whose_item_of_boosts_makes_no_sense_is_scaled_on(attribute: str, text: str, why: str) -> None:
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 190)
    world.ask(minutes=30)
    world.dynamodb.items["orders", "leases"][attribute] = {"S": text}
    problem = f"item 'orders', 'leases' of table leases is not as it was written: {why}; delete it"
    world.stage.consume(ORDERS, 900)
    world.stage.advance(6 * MINUTE)
    outcome = world.turn()
    assert (world.floor, outcome.failed) == (900, {})
    assert outcome.notes == [f"orders: its boosts could not be read, so no floor is lowered: {problem}"]
    assert world.refusal("list") == (
        503,
        "the lease table does not answer, so it is not known what was granted; ask again with the same id: " + problem,
    )


# --- room for others


def _write_more_of_the_last(world: World, numbers: range, apart: timedelta = timedelta(minutes=20)) -> None:
    """Write boosts like the last one of the table, with these numbers and so far apart, all at once."""
    with_number = re.compile(r"\d+$")

    def crowded(held: TableLeases) -> tuple[None, list[Lease]]:
        last = held.leases[-1]
        like_it = held.of(last.owner, last.id)
        more = [
            replace(
                lease,
                id=with_number.sub(str(number), lease.id),
                start=lease.start + later,
                end=lease.end + later,
                released=lease.released and lease.released + later,
            )
            for number, later in ((number, apart * place) for place, number in enumerate(numbers, 1))
            for lease in like_it
        ]
        return None, [*held.leases, *more]

    world.leases.change("orders", crowded, world.stage.now())


@pytest.mark.parametrize(("indexes", "most"), [(0, 300), (5, 269), (20, 104)])
def test_one_caller_leaves_room_for_the_others(world: World, indexes: int, most: int) -> None:
    crowded = World(plan=_indexed(indexes)) if indexes else world
    crowded.kept = world.kept

    def book(number: int) -> None:
        at = crowded.stage.now() + timedelta(hours=1, minutes=20 * number)
        crowded.ask(caller=SMALL, id=f"booking-{number}", write=1, minutes=1, at=at.isoformat())

    book(0)
    _write_more_of_the_last(crowded, range(1, most - 1))
    book(most - 1)
    with pytest.raises(RefusedError) as full:
        book(most)
    assert (full.value.status, str(full.value)) == (
        429,
        f"orders: {SMALL.name} has {most} boosts that are live, booked or ended within the hour; allowed: 300 or "
        "100,000 bytes; ask later",
    )
    assert crowded.ask(write=500)["outcome"] == "whole"


def test_callers_with_many_boosts_leave_room_for_one_with_few(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [Caller(f"123456789012:role/Crowd-{number}") for number in range(4)]
    caps = (*boost_world.CAPS, *(BoostCap(caller=each.name, max_read=0, max_write=1) for each in crowd))
    monkeypatch.setattr(boost_world, "CAPS", caps)
    at = world.stage.now() + timedelta(hours=1)
    apart = timedelta(minutes=20)
    asked: dict[str, Any] = {"write": 1, "minutes": 1, "reason": "r" * 200}
    refusals = []
    # each until it is refused; most of those of a caller with many are written at once
    for caller, at_once in zip(crowd, (250, 250, 250, 1), strict=True):
        world.ask(caller=caller, id="booking-0", at=at.isoformat(), **asked)
        _write_more_of_the_last(world, range(1, at_once), apart)
        for number in range(at_once, 300):
            try:
                world.ask(caller=caller, id=f"booking-{number}", at=(at + number * apart).isoformat(), **asked)
            except RefusedError as full:
                refusals.append(str(full))
                break
    assert [each.split(" has ")[0] for each in refusals[:3]] == [f"orders: {each.name}" for each in crowd[:3]]
    assert refusals[3].endswith("boosts are live, booked or ended within the hour; no more can be kept; ask later")
    for number in range(10):
        assert world.ask(id=f"nightly-{number}", write=50)["outcome"] == "whole"


def test_renewals_in_a_loop_write_two_in_a_minute(world: World) -> None:
    world.ask()
    written: list[str] = []
    world.dynamodb.before = lambda operation: written.append(operation) if operation == "update_item" else None
    world.stage.wire.reset()
    ends = []
    for _ in range(60):
        world.stage.advance(SECOND)
        ends.append(world.ask("renew", minutes=10)["end"])
    assert len(written) == 1, "one of ten minutes for each minute that has passed"
    assert world.stage.wire.operations.count("DescribeTable") == 1
    assert sorted(set(ends)) == ["2027-03-04T10:30:40+00:00", "2027-03-04T10:31:40+00:00"]
    written.clear()
    for minutes in range(11, 1_440):
        world.ask("renew", minutes=minutes)
    assert len(written) < 60, "each moves the end by a tenth of the boost's length at least"


def test_boosts_that_are_begun_together_share_turns(world: World) -> None:
    turns: list[int] = []
    began: list[str] = []

    def turn(label: str) -> Any:
        turns.append(len(began))
        return world.turn(label)

    def begin(id: str, pauses: int = 0) -> None:
        def pause(_: float) -> None:
            # while this request waits, the others begin; then a second passes
            if pauses and len(began) < pauses:
                begin(f"nightly-{len(began)}", pauses)
            world.stage.advance(SECOND)

        began.append(id)
        document = {"id": id, "table": "orders", "write": 5, "minutes": 10}
        coordinator = replace(world.coordinator(), turn=turn, pause=pause)
        assert coordinator.serve(Call(LOADER, "begin", document))["outcome"] == "whole"

    begin("nightly-a")
    begin("nightly-b", pauses=100)
    assert len(began) == 100
    assert (world.floor, len(turns)) == (12 + 5 * 100, 2)


def test_turns_in_a_loop_write_an_item_of_their_own(world: World) -> None:
    world.ask()
    leases = dict(world.dynamodb.items["orders", "leases"])
    for _ in range(60):
        world.ask("pulse", PULSING)
    assert world.dynamodb.items["orders", "leases"] == leases
    assert set(world.dynamodb.items["orders", "turn"]) == {"table", "item", "turned_at"}


def test_short_boosts_of_an_hour_fit_also_with_many_indexes() -> None:
    world = World(plan=_indexed(20))

    def run_job(number: int) -> None:
        world.ask(id=f"request-{number}", write=5, reason="a short job of many")
        world.ask("release", id=f"request-{number}")
        world.stage.advance(15 * SECOND)

    run_job(0)
    world.stage.advance(194 * 15 * SECOND)
    _write_more_of_the_last(world, range(1, 195), 15 * SECOND)
    for number in range(195, 200):
        run_job(number)
    assert world.floor == 12


def test_cap_of_an_index_that_is_written_more_than_its_table_is_that_much_higher() -> None:
    world = World(plan=_indexed(1))
    world.stage.consume(ORDERS, 200)
    world.stage.consume(BY_ATTRIBUTE, 300)

    def granted(**members: Any) -> list[int]:
        return [target["units"] for target in world.ask(caller=SMALL, **members)["targets"]]

    assert granted(write=30, minutes=5, is_all_or_nothing=True) == [30, 45]
    world.ask("renew", caller=SMALL, minutes=20)
    assert granted(id="nightly-2", write=20) == [0, 0]
    world.ask("release", caller=SMALL)
    # alone, an index has the caller's cap
    assert granted(id="nightly-3", write=45, index="by_attribute_00") == [30]


def test_list_of_boosts_with_long_reasons_fits_into_an_answer_and_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(plan=_indexed(20))
    for number in range(52):
        at = world.stage.now() + timedelta(hours=1, minutes=20 * number)
        world.ask(id=f"booking-{number}", write=1, minutes=1, at=at.isoformat(), reason="\U0001f600" * 200)
    monkeypatch.setattr(handler, "_coordinator", lambda _: world.coordinator())
    monkeypatch.setenv("HIGHWATER_SCALER", "boosts")
    answer = handler.handler(request_of('{"do": "list", "table": "orders"}'), None)
    assert len(json.loads(answer["body"])["boosts"]) == 52 * 21
    # the share of one caller; three and a half of these fit into the item, and into the 6 MB of an answer
    assert len(answer["body"].encode()) * 3.5 < 6 * 1_024**2
    (logged,) = [vars(record)["boost"] for record in caplog.records if record.getMessage() == "boost"]
    assert logged == {"do": "list", "caller": LOADER.name, "table": "orders", "now": "2027-03-04T10:20:40+00:00"}


# --- who may do what


def _log(world: World) -> list[str]:
    return [entry["what"] for entry in world.ask("log")["log"]]


def test_grant_for_pulses_alone_writes_no_boost_that_is_over(world: World) -> None:
    for number in range(20):
        assert not world.ask("release", PULSING, id=f"nightly-{number}")["released"]
    assert world.dynamodb.items == {}


@pytest.mark.parametrize("action", ["begin", "renew", "status", "list", "log"])
def test_grant_for_pulses_alone_is_none_for_boosts(world: World, action: str) -> None:
    world.ask()
    members: dict[str, Any] = {"write": 1} if action == "begin" else {}
    assert world.refusal(action, PULSING, **members) == (403, f"{PULSING.name} may not boost orders; {GRANT}")
    assert _log(world) == ["begin"]


def test_release_of_nothing_is_not_logged_and_runs_nothing(world: World) -> None:
    world.ask()
    world.stage.wire.reset()
    stranger = Caller("123456789012:role/Stranger")
    for _ in range(60):
        assert world.ask("release", stranger)["released"] is False
    assert world.stage.changes() == []
    assert _log(world) == ["begin"]
    world.ask("release")
    world.ask("release")
    assert _log(world) == ["release", "begin"]


def test_request_that_arrives_after_its_release_is_refused(world: World) -> None:
    world.ask(caller=SMALL, write=20)
    assert world.ask("release") == {"id": "nightly-1", "table": "orders", "released": False, "notes": []}
    late = (410, "orders: boost nightly-1 is over, or never was; begin one with an id of its own")
    assert world.refusal() == late
    world.stage.advance(59 * MINUTE)
    assert world.refusal() == late
    assert world.tick() == 12
    assert world.ask(id="nightly-2")["outcome"] == "whole"


def test_id_of_a_boost_is_free_an_hour_after_its_end_though_nobody_has_written_since(world: World) -> None:
    for night in range(3):
        assert world.ask()["outcome"] == "whole", night
        world.tick(5)
        world.ask("release")
        world.tick(1)
        assert (world.tick(1), world.listed) == (12, [])
        world.stage.advance(DAY)


def test_jobs_that_begin_at_once_beside_demand_share_what_the_ceiling_leaves() -> None:
    world = World(Mode.FLOOR, replace(PLAN, write=Capacity.autoscaled(min_capacity=12, max_capacity=2_000)))
    world.stage.consume(ORDERS, 1_000)
    assert world.run() == 1_000
    first: list[dict[str, Any]] = []

    def begin_first(operation: str) -> None:
        # between the second job's look at the table and its reading of the boosts
        if operation == "get_item" and not first:
            first.append({})
            first[0] = world.ask(id="nightly-1", write=900)

    world.dynamodb.before = begin_first
    second = world.ask(id="nightly-2", write=900)
    assert [answer["targets"][0]["units"] for answer in (*first, second)] == [900, 100]
    assert world.floor == 2_000


def test_refusals_in_a_loop_are_one_entry_a_minute(world: World) -> None:
    for number in range(100):
        assert world.ask(caller=SMALL, id=f"request-{number}", write=31, is_all_or_nothing=True)["outcome"] == "refused"
    assert [(entry["what"], entry["owner"]) for entry in world.ask("log")["log"]] == [("refused", SMALL.name)]


def test_boost_whose_answer_was_lost_is_logged_when_it_is_asked_for_again(world: World) -> None:
    def lost(operation: str) -> None:
        # the log, and not the entry in the list of tables with boosts
        if operation == "put_item" and ("orders", "leases") in world.dynamodb.items:
            raise refused("InternalServerError", operation)

    world.dynamodb.before = lost
    world.ask()
    world.dynamodb.before = lambda _: None
    for _ in range(2):
        world.ask()
    assert [(entry["what"], entry["id"]) for entry in world.ask("log")["log"]] == [("begin", "nightly-1")]


def test_plan_is_found_by_the_tables_own_name_alone(world: World) -> None:
    # Systems Manager finds a parameter also by the name of one of its versions
    assert world.refusal(table="orders:1") == (
        404,
        "orders:1: no such table here; the coordinator has: orders; did you mean orders?; add the table to it and "
        "deploy",
    )


# --- a job's own traffic, and a plan that changes


@pytest.mark.parametrize("is_planned", [True, False])
def test_ticks_serve_a_table_no_more_where_an_index_has_left_during_the_boost(*, is_planned: bool) -> None:
    world = World(plan=_indexed(2))
    world.ask()
    if not is_planned:
        world.stage.store("orders", _stored(_indexed(1)))
    del world.stage.account.tables["orders"].resources["by_attribute_01"]
    assert [world.tick(11), world.tick(1)] == [12, 12]
    assert world.listed == []


def test_ticks_serve_a_table_no_more_whose_target_was_deregistered_during_the_boost(world: World) -> None:
    world.ask()
    del world.stage.account.autoscaling.targets[ORDERS]
    for minutes in (11, 1):
        world.stage.advance(minutes * MINUTE)
        world.serve_tick()
    assert world.listed == []


def test_ticks_serve_a_table_no_more_that_has_left_and_go_on_where_its_plan_is_unreadable(world: World) -> None:
    world.ask()
    world.stage.store("orders", "{}")
    world.tick(11)
    assert world.listed == ["orders"]
    del world.stage.account.parameters[world.stage.parameter("orders")]
    world.tick(1)
    assert world.listed == []


def test_renewal_is_not_refused_for_the_traffic_of_the_boosts_own_job() -> None:
    world = World(Mode.FLOOR)
    world.ask(write=3_000, minutes=30)
    world.stage.consume(ORDERS, 3_000)
    world.stage.advance(20 * MINUTE)
    assert world.run() == 4_000, "the scaler sees the job, and the boost is on top"
    assert world.ask("renew", minutes=30)["end"] == "2027-03-04T11:10:40+00:00"


def test_index_that_leaves_during_a_boost_leaves_the_rest_of_it() -> None:
    world = World(plan=_indexed(2))
    world.ask()
    world.stage.store("orders", _stored(PLAN))
    del world.stage.account.tables["orders"].resources["by_attribute_00"]
    world.stage.advance(31 * SECOND)
    assert [target["target"] for target in world.ask("status")["targets"]] == ["table write"]
    assert world.ask("renew", minutes=20)["end"] == "2027-03-04T10:41:11+00:00"
    assert world.ask("release")["released"]
    assert world.floor == 12


def _stored(plan: Plan) -> str:
    return ScaledPlan(table="orders", mode=Mode.BOOSTS, plan=plan).to_json()


# --- the bill


def test_begins_in_a_loop_read_metrics_once_a_minute_and_the_plan_once_in_two_seconds() -> None:
    world = World(plan=_indexed(20))
    world.stage.wire.reset()
    for number in range(60):
        world.ask(caller=SMALL, id=f"request-{number}", write=31, is_all_or_nothing=True)
        world.stage.advance(SECOND)
    operations = world.stage.wire.operations
    assert operations.count("GetMetricData") == 1
    assert operations.count("GetParameters") == 30
    assert world.stage.changes() == []


def test_request_that_arrives_again_and_again_runs_a_turn_in_five_seconds(world: World) -> None:
    world.ask()
    world.stage.wire.reset()
    for _ in range(60):
        world.ask()
        world.stage.advance(SECOND)
    turns = world.stage.wire.operations.count("DescribeTable") - 60
    assert turns == 11, "the first request ran one too"
