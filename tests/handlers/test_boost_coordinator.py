"""The coordinator against a region and a lease table in memory: what it grants, and that it is true."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Dimension, Units, Window
from highwater.core.boosts import BoostCap, Caller
from highwater.core.names import TargetName
from highwater.core.scaler import Mode
from highwater.handlers.coordinator.coordinator import Call
from highwater_lab.services.timing import Timing
from tests.handlers.boost_world import CAPS, FIX, LOADER, ORDERS, PLAN, REPLICAS, SECOND, SMALL, WINDOW, World
from tests.memory_aws.account import Account
from tests.memory_aws.leases import refused
from tests.memory_aws.stage import MINUTE

OVER = (410, "orders: boost nightly-1 is over, or never was; begin one with an id of its own")


def test_boost_raises_the_floor_at_once_and_its_end_lowers_it(world: World) -> None:
    answer = world.ask(reason="the nightly load")
    assert world.floor == 112
    assert (answer["outcome"], answer["start"], answer["end"]) == (
        "whole",
        "2027-03-04T10:20:40+00:00",
        "2027-03-04T10:30:40+00:00",
    )
    assert answer["billed_hours"] == 1, "until 10:47:40"
    (target,) = answer["targets"]
    assert (target["target"], target["asked"], target["units"], target["limits"]) == ("table write", 100, 100, [])
    assert target["usd_per_hour"] == pytest.approx(100 * 0.000793)
    assert [world.tick(minutes) for minutes in (9, 1)] == [112, 12]
    assert world.listed == ["orders"], "a run that began before the end may still raise the floor"
    assert (world.tick(1), world.listed) == (12, [])


def test_request_that_arrives_again_is_the_same_boost(world: World) -> None:
    first, again = world.ask(), world.ask()
    assert [target["units"] for target in (*first["targets"], *again["targets"])] == [100, 100]
    assert world.floor == 112
    assert len(world.ask("list")["boosts"]) == 1


def test_boosts_add_up_and_a_total_does_not(world: World) -> None:
    world.ask()
    world.ask(id="nightly-2", write=50)
    world.ask(id="nightly-3", write_total=140)
    assert world.floor == 162
    world.ask("release")
    assert world.floor == 140
    world.ask("release", id="nightly-3")
    assert world.floor == 62


def test_release_gives_back_at_once_and_ticks_serve_the_table_for_a_while(world: World) -> None:
    world.ask()
    assert world.ask("release") == {"id": "nightly-1", "table": "orders", "released": True, "notes": []}
    assert world.floor == 12
    assert world.listed == ["orders"], "later runs lower what this one could not"
    assert world.ask("release")["released"], "again is no error"
    assert world.ask("release", id="never-was-1")["released"] is False


def test_renewal_moves_the_end_and_nothing_renews_what_is_over(world: World) -> None:
    world.ask()
    world.stage.advance(6 * MINUTE)
    assert world.ask("renew")["end"] == "2027-03-04T10:36:40+00:00"
    assert [world.tick(minutes) for minutes in (9, 1)] == [112, 12]
    assert world.refusal("renew") == world.refusal() == OVER


def test_id_of_another_callers_boost_is_free_for_a_boost_of_ones_own(world: World) -> None:
    world.ask()
    for action in ("renew", "status"):
        assert world.refusal(action, SMALL) == OVER
    assert world.ask("release", SMALL, id="nightly-2")["released"] is False
    assert world.floor == 112
    assert world.ask(caller=SMALL, write=20)["outcome"] == "whole"
    assert world.floor == 132
    assert world.ask("release", SMALL)["released"]
    assert world.floor == 112


def test_status_says_how_far_each_target_is(world: World) -> None:
    world.stage.account.tables["orders"].timing = Timing()
    world.ask()
    state = world.ask("status")
    assert (state["is_ready"], state["targets"]) == (
        False,
        [{"target": "table write", "wanted": 112, "floor": 112, "provisioned": 12, "is_ready": False}],
    )
    world.stage.advance(MINUTE)
    assert world.ask("status")["is_ready"]
    world.stage.account.tables["orders"].lasting_status = "UPDATING"
    assert world.ask("status")["is_ready"], "an answer of two seconds is new enough"
    world.stage.advance(2 * SECOND)
    assert not world.ask("status")["is_ready"]


def test_job_that_waits_is_told_why_auto_scaling_could_not_set_its_capacity(world: World) -> None:
    world.ask()
    assert world.ask("status")["notes"] == []
    world.stage.provision("orders", Units(7, 12))
    why = "the account's provisioned throughput in us-east-1 would be above 80000"
    world.stage.account.autoscaling.failures[ORDERS] = (world.stage.account.now, why)
    world.stage.advance(3 * SECOND)
    answer = world.ask("status")
    assert (answer["is_ready"], answer["notes"]) == (
        False,
        [f"table write: auto scaling could not set the capacity at 2027-03-04 10:20:40 UTC: {why}"],
    )
    world.stage.account.autoscaling.failures.clear()
    world.stage.advance(3 * SECOND)
    assert world.ask("status")["notes"] == []


def test_boost_beside_demand_is_ready_once_capacity_is_there_for_both() -> None:
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 1_000)
    assert world.run() == 1_000
    assert world.ask(write=500)["targets"][0]["units"] == 500
    assert world.ask("status")["is_ready"]
    world.stage.provision("orders", Units(7, 1_000))
    world.stage.advance(3 * SECOND)
    answer = world.ask("status")
    assert (answer["is_ready"], answer["targets"]) == (
        False,
        [{"target": "table write", "wanted": 1_500, "floor": 1_500, "provisioned": 1_000, "is_ready": False}],
    )


def test_note_on_growth_is_for_the_time_of_the_boost_and_counts_demand() -> None:
    world = World(Mode.FLOOR)
    world.stage.account.tables["orders"].warm_up(None, {Dimension.READ: 3_000, Dimension.WRITE: 1_100}, 0)
    world.stage.consume(ORDERS, 1_000)
    world.run()
    (note,) = world.ask(write=500, at="2027-03-04T15:20:40Z")["notes"]
    assert note.startswith("table write: 1,500 units/s is above the high-water mark of 1,100; ")


def test_boost_given_back_while_its_scaling_was_paused_is_lowered_by_a_later_run(world: World) -> None:
    world.ask()
    world.stage.pause(ORDERS)
    world.ask("release")
    assert world.floor == 112
    world.stage.pause(ORDERS, is_paused=False)
    assert world.tick(1) == 12


def test_renewal_gets_no_more_than_the_caller_may_have_and_no_time_that_others_booked(world: World) -> None:
    world.ask(caller=SMALL, id="first-one", write=30)
    world.ask(caller=SMALL, id="second-one", write=30, at="2027-03-04T10:50:40Z")
    assert world.refusal("renew", SMALL, id="first-one", minutes=60) == (
        409,
        "orders, table write: boost first-one cannot be renewed: the caller's cap of 30 units/s at 2027-03-04 10:45 "
        "UTC leaves 0 units/s; more may be free from 2027-03-04 11:00 UTC",
    )
    assert world.ask("renew", SMALL, id="first-one", minutes=20)["end"] == "2027-03-04T10:40:40+00:00"


def test_renewal_that_ends_earlier_keeps_the_end(world: World) -> None:
    world.ask(minutes=600)
    assert world.ask("renew", minutes=5)["end"] == "2027-03-04T20:20:40+00:00"


def test_no_renewal_brings_a_lease_beyond_a_day(world: World) -> None:
    world.ask(minutes=1_440)
    world.stage.advance(60 * MINUTE)
    assert world.ask("renew", minutes=1_440)["end"] == "2027-03-05T10:20:40+00:00"


def test_request_that_arrives_again_later_is_told_what_was_granted_then(world: World) -> None:
    first = world.ask(write=5_000)
    world.stage.advance(5 * MINUTE)
    again = world.ask(write=5_000)
    assert (again["start"], again["end"]) == (first["start"], first["end"])
    assert again["targets"] == first["targets"]
    (target,) = again["targets"]
    assert (again["outcome"], target["asked"], target["units"]) == ("part", 5_000, 3_988)
    (limit,) = target["limits"]
    assert " leaves 3,988 units/s; " in limit["sentence"]


def test_whoever_lost_its_grant_may_still_give_its_boost_back(world: World) -> None:
    gone = Caller("123456789012:role/Gone")
    caps = (*CAPS, BoostCap(caller=gone.name, max_read=0, max_write=50))
    granted = replace(world.coordinator(), read_caps=lambda: caps)
    granted.serve(Call(gone, "begin", {"id": "last-one-1", "table": "orders", "write": 40, "minutes": 10}))
    assert world.floor == 52
    assert world.ask("release", gone, id="last-one-1")["released"]
    assert world.floor == 12


def test_boosts_that_would_fill_their_item_are_refused_and_renewals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highwater.aws.coordinator_table._MOST_BYTES_FOR_FEW", 600)
    world = World()
    world.ask(reason="\u00e9" * 150)
    assert world.refusal(id="nightly-2") == (
        429,
        "orders: 2 boosts are live, booked or ended within the hour; no more can be kept; ask later",
    )
    assert world.ask("renew", minutes=20)["end"] == "2027-03-04T10:40:40+00:00"
    assert world.ask("release")["released"]


def test_fleet_that_asks_for_help_has_the_scaler_look_at_once() -> None:
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 190)
    assert world.ask("pulse", SMALL) == {"table": "orders", "decisions": 1}
    assert world.floor == 190
    world.stage.advance(4 * SECOND)
    world.stage.wire.reset()
    assert world.ask("pulse", SMALL) == {"table": "orders", "decisions": 0}
    assert world.stage.wire.operations == [], "once in five seconds"
    world.stage.advance(SECOND)
    world.ask("pulse", SMALL)
    assert "GetMetricData" in world.stage.wire.operations
    assert world.refusal("pulse", Caller("123456789012:role/Stranger")) == (
        403,
        "123456789012:role/Stranger may not pulse orders; give it grant_pulse in the CDK app, and deploy",
    )
    assert "no such table here; the coordinator has: orders; add" in world.refusal("pulse", table="unknown")[1]


def test_what_limits_a_boost_is_in_the_answer(world: World) -> None:
    (target,) = world.ask(write=5_000)["targets"]
    sentence = (
        "the plan's ceiling of 4,000 units/s at 2027-03-04 10:20 UTC leaves 3,988 units/s; for more, raise the ceiling "
        "or set max_with_boosts="
    )
    assert (target["units"], target["limits"]) == (3_988, [{"code": "ceiling", "sentence": sentence}])
    (small,) = world.ask(caller=SMALL, id="small-one", write=31)["targets"]
    assert (small["units"], [limit["code"] for limit in small["limits"]]) == (0, ["ceiling", "cap"])


@pytest.mark.parametrize("mode", [Mode.BOOSTS, Mode.FLOOR])
def test_ceiling_rises_for_boosts_where_the_plan_allows_it_and_falls_with_them(mode: Mode) -> None:
    write = Capacity.autoscaled(min_capacity=12, max_capacity=400, max_with_boosts=1_000)
    world = World(mode, plan=replace(PLAN, write=write))
    if mode is Mode.FLOOR:
        world.stage.consume(ORDERS, 900)
    assert world.run() == (12 if mode is Mode.BOOSTS else 400), "demand stays below the ceiling without boosts"
    answer = world.ask(write=3_000)
    units = answer["targets"][0]["units"]
    assert units == (988 if mode is Mode.BOOSTS else 600)
    assert answer["targets"][0]["limits"][0]["sentence"].startswith("the plan's ceiling of 1,000 units/s at ")
    assert world.stage.bounds(ORDERS) == Bounds(1_000, 1_000)
    world.ask("release")
    assert world.stage.bounds(ORDERS) == Bounds(12 if mode is Mode.BOOSTS else 400, 400)


def test_part_is_refused_where_only_all_is_of_use(world: World) -> None:
    answer = world.ask(write=5_000, is_all_or_nothing=True)
    assert (answer["outcome"], answer["targets"][0]["units"], world.floor) == ("refused", 0, 12)
    assert world.listed == []


def test_scaler_that_follows_demand_adds_boosts_to_it_and_grants_what_is_left() -> None:
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 190)
    assert world.run() == 190
    assert world.ask()["targets"][0]["units"] == 100
    assert world.floor == 290
    (rest,) = world.ask(id="nightly-2", write=4_000)["targets"]
    assert rest["units"] == 4_000 - 290
    world.ask("release", id="nightly-2")
    assert world.floor == 290
    world.ask("release")
    assert world.floor == 190


def test_table_in_direct_mode_is_boosted_by_its_capacity() -> None:
    world = World(Mode.DIRECT)
    world.stage.wait_for_minute(56)
    world.ask(minutes=3)
    assert world.stage.capacity("orders") == Units(7, 112)
    assert world.ask("status")["is_ready"]
    world.stage.advance(3 * MINUTE)
    world.stage.run("orders")
    assert world.stage.capacity("orders") == Units(7, 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda account: account.tables["orders"].put_on_demand(),
            "orders, table write: the table is on demand, so it has no capacity to boost",
        ),
        (
            lambda account: account.autoscaling.targets.clear(),
            "orders, table write: no scalable target is registered; deploy the table's stack again",
        ),
        (lambda account: account.tables.clear(), "orders: the table does not exist"),
        (
            lambda account: setattr(account.tables["orders"], "replica_regions", REPLICAS),
            "orders, table write: the table has replicas in ap-south-1, eu-west-1, which take the same writes and "
            "would not be raised; boost reads only, and declare a window for the writes",
        ),
    ],
)
def test_nothing_is_promised_that_nobody_can_set(change: Callable[[Account], None], message: str) -> None:
    world = World()
    change(world.stage.account)
    assert world.refusal()[1] == message
    assert world.listed == []


def test_nothing_is_promised_in_direct_mode_that_is_left_to_auto_scaling() -> None:
    world = World(Mode.DIRECT)
    world.stage.register(ORDERS, 12, 4_000)
    assert world.refusal() == (
        409,
        "orders, table write: auto scaling has a scalable target, so nobody sets its capacity; deregister it, or have "
        "the scaler move floors with add_table",
    )
    assert world.listed == []


def test_reads_of_a_replica_are_boosted_in_its_own_region(world: World) -> None:
    world.stage.account.tables["orders"].replica_regions = REPLICAS
    assert world.ask(caller=SMALL, write=None, read=15)["outcome"] == "whole"


def test_idle_table_loses_its_boosts_floor_without_a_datapoint() -> None:
    world = World(Mode.FLOOR)
    world.stage.consume(ORDERS, 0)
    world.ask(minutes=3)
    assert [world.tick(minutes) for minutes in (2, 1)] == [112, 12]


def test_writes_of_a_table_boost_its_indexes_in_proportion() -> None:
    world = World(plan=PLAN.with_indexes(["by_status", "by_day"]))
    for index, units in ((None, 200), ("by_status", 50), ("by_day", 700)):
        world.stage.consume(TargetName("orders", index, Dimension.WRITE), units)
    answer = world.ask()
    assert [(target["target"], target["units"]) for target in answer["targets"]] == [
        ("table write", 100),
        ("index 'by_status' write", 25),
        ("index 'by_day' write", 200),
    ]
    indexes = [TargetName("orders", index, Dimension.WRITE) for index in ("by_status", "by_day")]
    assert [world.stage.bounds(index).min for index in indexes] == [37, 212]


def test_booked_boost_is_granted_beside_the_window_that_will_be_open_then() -> None:
    window = Window.daily("load", start="11:00", end="12:00", timezone="UTC", write_min=3_000)
    world = World(plan=replace(PLAN, windows=(window,)))
    answer = world.ask(write=2_000, at="2027-03-04T11:10:00Z", minutes=20)
    assert (answer["start"], answer["end"]) == ("2027-03-04T11:05:00+00:00", "2027-03-04T11:30:00+00:00")
    assert answer["targets"][0]["units"] == 1_000
    assert world.floor == 12
    world.stage.wire.reset()
    assert [world.tick(minutes) for minutes in (43, 1)] == [12, 12]
    assert "DescribeTable" not in world.stage.wire.operations, "a boost that is only booked is not reviewed"
    assert [world.tick(minutes) for minutes in (1, 24, 1)] == [4_000, 4_000, 3_000]


def test_note_tells_of_growth_and_of_scaling_that_rests(world: World) -> None:
    world.stage.account.tables["orders"].warm_up(None, {Dimension.READ: 3_000, Dimension.WRITE: 2_000}, 0)
    assert world.ask(write=1_900)["notes"] == []
    assert world.ask(id="nightly-2", write=600)["notes"] == [
        "table write: 2,512 units/s is above the high-water mark of 2,000; DynamoDB adds partitions first, which takes "
        "minutes; a high-water mark in the plan has them added before"
    ]


def test_two_hundred_requests_at_once_share_what_there_is_and_every_answer_is_true(world: World) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda number: world.ask(id=f"request-{number:03}", write=31), range(200)))
    granted = {answer["id"]: answer["targets"][0]["units"] for answer in answers}
    assert sum(granted.values()) == 3_988
    kept = {lease.id: lease.units for lease in world.leases.read("orders").leases}
    assert kept == {id: units for id, units in granted.items() if units}
    assert world.tick() == 4_000


def test_request_that_is_always_too_late_is_told_so(world: World) -> None:
    world.ask()
    world.seconds = 5.0

    def overtaken(operation: str) -> None:
        if operation == "update_item":
            raise refused("ConditionalCheckFailedException", "UpdateItem")

    world.dynamodb.before = overtaken
    assert world.refusal(id="nightly-2") == (503, "too many boosts of the table were asked for at once; ask again")


def test_without_the_lease_table_floors_stay_and_requests_are_refused(world: World) -> None:
    world.ask()

    def rest(operation: str) -> None:
        raise refused("InternalServerError", operation)

    world.dynamodb.before = rest
    assert world.refusal(id="nightly-2") == (
        503,
        "the lease table does not answer, so it is not known what was granted; ask again with the same id: An error "
        "occurred (InternalServerError) when calling the get_item operation: it rests",
    )
    assert [world.tick(minutes) for minutes in (5, 20)] == [112, 112]
    world.dynamodb.before = lambda _: None
    assert world.tick() == 12


def test_nothing_is_granted_that_no_tick_would_end(world: World) -> None:
    def rest(operation: str) -> None:
        if operation == "put_item":
            raise refused("ThrottlingException", operation)

    world.dynamodb.before = rest
    assert world.refusal()[1].startswith("the lease table does not answer, ")
    assert (world.floor, world.leases.read("orders").leases) == (12, ())


def test_floor_that_somebody_changed_by_hand_is_healed_within_the_lease(world: World) -> None:
    world.ask()
    world.stage.register(ORDERS, 3, 4_000)
    assert world.tick(1) == 112


@pytest.mark.parametrize(
    ("action", "caller", "members", "status", "message"),
    [
        ("begin", Caller("1:role/X"), {}, 403, f"1:role/X may not boost orders; {FIX}"),
        ("begin", SMALL, {"table": "jobs"}, 403, f"{SMALL.name} may not boost jobs; its grants are for orders; {FIX}"),
        (
            "begin",
            LOADER,
            {"table": "order"},
            404,
            "order: no such table here; the coordinator has: orders; did you mean orders?; add the table to it and "
            "deploy",
        ),
        ("grab", LOADER, {}, 400, "boost: do is 'grab'; allowed: begin, renew, release, status, list, log, pulse"),
        ("begin", LOADER, {"owner": "x"}, 400, None),
        (
            "begin",
            LOADER,
            {"index": "by_x"},
            400,
            "orders: has no index 'by_x' write; allowed: table read, table write",
        ),
        ("renew", LOADER, {"minutes": 0}, 400, f"boost: minutes is 0; allowed: 1 to 1,440; {WINDOW}"),
        ("list", LOADER, {"table": 7}, 400, "boost: table is 7; allowed: a name"),
    ],
)
def test_call_that_cannot_be_carried_out_is_refused_in_a_line(
    action: str, caller: Caller, members: dict[str, Any], status: int, message: str | None
) -> None:
    told = World().refusal(action, caller, **members)
    assert told == (status, message or told[1])
