"""A tick a minute begins and ends boosts: within a minute, whatever ticks are missed and whatever runs beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater.core.scaler import Mode
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.coordinator.refusals import RefusedError
from highwater.handlers.scaler.run import PlanCache
from tests.core.leases import lease
from tests.handlers.boost_world import LOADER, ORDERS, SECOND, SMALL, World
from tests.memory_aws.leases import refused
from tests.memory_aws.stage import MINUTE, NOW

JOBS = TargetName("jobs", None, Dimension.WRITE)


def _asked(world: World) -> int:
    """The floor that the plan and the live leases ask for now."""
    now = world.stage.now()
    live = sum(each.units for each in world.leases.read("orders").leases if each.is_live(now))
    return min(12 + live, 4_000)


def _is_safe(world: World) -> bool:
    """Whether ticks serve the table as long as a lease has not ended."""
    now = world.stage.now()
    is_booked = any(each.ends > now for each in world.leases.read("orders").leases)
    return "orders" in world.listed or not is_booked


def _try(request: Callable[[], Any]) -> None:
    try:
        request()
    except RefusedError:
        return


_UNITS = st.integers(1, 900)
_CALLS = st.one_of(
    st.tuples(st.just("begin"), _UNITS, st.integers(1, 20), st.just(0)),
    st.tuples(st.just("begin"), _UNITS, st.integers(1, 20), st.integers(1, 40)),
    st.tuples(st.just("renew"), st.just(0), st.integers(1, 20), st.just(0)),
    st.tuples(st.just("release"), st.just(0), st.just(0), st.just(0)),
)
_STORY = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 2), _CALLS), max_size=2), st.booleans()), min_size=1, max_size=25
)


def _call(world: World, number: int, call: tuple[str, int, int, int]) -> None:
    action, units, minutes, ahead = call
    members: dict[str, Any] = {"id": f"nightly-{number}"}
    members |= {"minutes": minutes} if action != "release" else {}
    members |= {"write": units} if action == "begin" else {}
    if ahead:
        members["at"] = (world.stage.now() + ahead * MINUTE).isoformat()
    _try(lambda: world.ask(action, **members))


@given(_STORY, st.sampled_from([Mode.BOOSTS, Mode.FLOOR]))
def test_each_tick_sets_what_live_leases_ask_for_however_many_were_missed(story: Any, mode: Mode) -> None:
    world = World(mode)
    if mode is Mode.FLOOR:
        world.stage.consume(ORDERS, 0)
    for calls, is_missed in story:
        for number, call in calls:
            world.stage.advance(7 * SECOND)
            _call(world, number, call)
            assert _is_safe(world)
        world.stage.advance(MINUTE - 7 * len(calls) * SECOND)
        if not is_missed:
            assert world.tick() == _asked(world)
            assert _is_safe(world)
    world.stage.advance(timedelta(days=9))
    assert [world.tick(), world.tick(1)] == [12, 12], "nothing stays"
    assert world.listed == []


@pytest.mark.parametrize("missed", [0, 1, 2, 30])
def test_boost_starts_and_ends_by_the_first_tick_after_its_instant(missed: int) -> None:
    world = World()
    world.ask(at=(NOW + 25 * MINUTE).isoformat(), minutes=40)
    # the floor rises five minutes before
    assert [world.tick(19), world.tick(1 + missed)] == [12, 112]
    assert world.tick(44 - missed) == 112
    assert world.tick(1 + missed) == 12


# --- requests and ticks at the same time


def _during(world: World, operation: int, other: Callable[[], Any]) -> Callable[[], bool]:
    """Have *other* happen before the so-manieth operation on the leases; what is returned says whether it has."""
    count = 0

    def before(_: str) -> None:
        nonlocal count
        count += 1
        if count == operation:
            _try(other)

    world.dynamodb.before = before
    return lambda: count >= operation


def _end(world: World) -> None:
    """The next tick sets what is asked for, and at the end nothing stays."""
    world.dynamodb.before = lambda _: None
    assert _is_safe(world)
    world.stage.advance(MINUTE)
    assert world.tick() == _asked(world)
    world.stage.advance(timedelta(days=2))
    assert [world.tick(), world.tick(1)] == [12, 12]
    assert world.listed == []


def _aged(age: str) -> World:
    """A boost of ten minutes that has just begun, is live, ends now, or is lowered and about to leave the list."""
    world = World()
    world.ask()
    if age == "over":
        world.tick(10)
    world.stage.advance({"begun": 2 * SECOND, "live": 9 * MINUTE, "ending": 10 * MINUTE, "over": MINUTE}[age])
    return world


def _requests(world: World) -> dict[str, Callable[[], Any]]:
    return {
        "begin": lambda: world.ask(id="nightly-2", write=50, minutes=30),
        "again": lambda: world.ask(minutes=30),
        "renew": lambda: world.ask("renew", minutes=30),
        "release": lambda: world.ask("release"),
        "unknown": lambda: world.ask("release", SMALL, id="never-was-1"),
        "tick": world.tick,
    }


@pytest.mark.parametrize("request_name", ["begin", "again", "renew", "release", "unknown", "tick"])
@pytest.mark.parametrize("age", ["begun", "live", "ending", "over"])
def test_tick_in_the_middle_of_a_request_loses_nothing(request_name: str, age: str) -> None:
    for operation in range(1, 30):
        world = _aged(age)
        has_happened = _during(world, operation, world.tick)
        _try(_requests(world)[request_name])
        done = has_happened()
        _end(world)
        if not done:
            return
    raise AssertionError(operation)


@pytest.mark.parametrize("request_name", ["begin", "again", "renew", "release", "unknown"])
@pytest.mark.parametrize("age", ["begun", "live", "ending", "over"])
def test_request_in_the_middle_of_a_tick_loses_nothing(request_name: str, age: str) -> None:
    for operation in range(1, 30):
        world = _aged(age)
        has_happened = _during(world, operation, _requests(world)[request_name])
        world.tick()
        done = has_happened()
        _end(world)
        if not done:
            return
    raise AssertionError(operation)


def test_release_that_meets_its_own_begin_ends_the_boost() -> None:
    for operation in range(1, 30):
        world = World()
        has_happened = _during(world, operation, world.ask)
        answer = world.ask("release")
        done = has_happened()
        begun = [entry["what"] for entry in world.ask("log")["log"]]
        assert begun in ([], ["release", "begin"], ["begin", "release"])
        assert answer["released"] is bool(begun)
        assert (_asked(world), world.floor) == (12, 12)
        assert world.ask("list")["boosts"] == []
        _end(world)
        if not done:
            return
    raise AssertionError(operation)


def test_tick_that_dies_while_it_takes_a_table_off_the_list_is_healed_by_a_later_one() -> None:
    world = World()
    world.ask()
    world.tick(10)

    def begin_and_die(operation: str) -> None:
        if operation == "delete_item":
            world.dynamodb.before = die
            world.ask(id="nightly-2", write=50, minutes=30)

    def die(operation: str) -> None:
        # the first write is that of the boost, the second one of the tick that has deleted the entry
        if ("#boosts", "orders") not in world.dynamodb.items:
            raise refused("InternalServerError", operation)

    world.dynamodb.before = begin_and_die
    world.tick(1)
    world.dynamodb.before = lambda _: None
    assert (world.floor, world.listed) == (62, [])
    assert world.stage.bounds(ORDERS).min == 62
    assert 12 in [world.tick(minutes) for minutes in (29, 1, 1, 1, 1, 1)], (
        "the boost is held, and ends within five minutes"
    )


# --- what fails, and what is not known


def _with_jobs() -> World:
    world = World()
    world.stage.table("jobs", world.plan, world.mode)
    for table in ("jobs", "orders"):
        world.ask(table=table)
    assert world.listed == ["jobs", "orders"]
    return world


def test_table_that_fails_does_not_hold_up_the_others() -> None:
    world = _with_jobs()
    del world.stage.account.tables["jobs"]
    world.stage.advance(10 * MINUTE)
    outcome = world.serve_tick()
    assert (world.floor, list(outcome.failed)) == (12, ["jobs"])
    assert world.stage.handed_on[-1]["tables"] == ["jobs"]


def test_table_for_which_there_is_no_time_stays_on_the_list() -> None:
    world = World()
    world.ask()
    world.tick(10)
    world.seconds = 0.0
    world.stage.advance(MINUTE)
    assert world.serve_tick().left == ["orders"]
    assert world.listed == ["orders"]


def test_table_that_fails_stays_on_the_list() -> None:
    world = World()
    world.ask()
    world.tick(10)
    # a run that began within the boost raises the floor once more
    world.stage.register(ORDERS, 112, 4_000)
    table = world.stage.account.tables.pop("orders")
    world.stage.advance(MINUTE)
    assert list(world.serve_tick().failed) == ["orders"]
    world.stage.account.tables["orders"] = table
    assert [world.tick(1), world.listed] == [12, []]


def test_item_that_makes_no_sense_does_not_hold_up_the_others() -> None:
    world = _with_jobs()
    world.dynamodb.items["jobs", "leases"]["leases"] = {"S": "orders"}
    world.stage.advance(10 * MINUTE)
    outcome = world.serve_tick()
    assert (world.floor, world.stage.bounds(JOBS).min) == (12, 112)
    (note,) = outcome.notes
    assert note.startswith("jobs: its boosts could not be read, so no floor is lowered: item 'jobs', 'leases' of ")


def test_list_that_cannot_be_read_is_noted_and_the_next_tick_serves_it() -> None:
    world = World()
    world.ask()

    def rest(operation: str) -> None:
        if operation == "query":
            raise refused("InternalServerError", operation)

    world.dynamodb.before = rest
    world.stage.advance(11 * MINUTE)
    outcome = world.serve_tick()
    assert outcome.notes == [
        "the tables with boosts could not be read: An error occurred (InternalServerError) when calling the query "
        "operation: it rests"
    ]
    assert (world.floor, outcome.counts[ScalerMetric.LEASES_MISSING]) == (112, 1)
    world.dynamodb.before = lambda _: None
    assert world.tick(1) == 12


def test_lease_that_an_older_version_wrote_is_found_and_ended() -> None:
    world = World()
    # as it stands after the deploy that deletes the schedules of boosts: a lease, its part of the floor, and no list
    older = [lease(units=100, start=NOW - MINUTE, end=NOW + 20 * MINUTE, owner=LOADER.name)]
    world.leases.change("orders", lambda _: (None, older), NOW)
    world.turn()
    del world.dynamodb.items["#boosts", "orders"]
    assert world.floor == 112
    assert [world.tick(1) for _ in range(20)][:-1] == [112] * 19
    assert 12 in [world.tick(1) for _ in range(5)], "at its table's next full tick"


def test_boosts_part_of_a_floor_that_an_older_version_left_is_lowered() -> None:
    world = World()
    over = [lease(units=100, start=NOW - MINUTE, end=NOW + MINUTE, owner=LOADER.name)]
    world.leases.change("orders", lambda _: (None, over), NOW)
    world.turn()
    del world.dynamodb.items["#boosts", "orders"]
    assert [world.tick(1) for _ in range(5)][-1] == 12


def test_table_that_is_newer_than_the_plans_that_are_cached_is_served() -> None:
    world = World()
    cache = PlanCache(most_read_always=0)
    home = world.stage.region_of(None)
    cache.read(home, "boosts", world.stage.now())
    world.stage.table("jobs", world.plan, world.mode)
    world.stage.wire.reset()
    assert [plan.label for plan in cache.read(home, "boosts", world.stage.now()).plans] == ["orders"]
    assert world.stage.wire.operations == []
    found = cache.read(home, "boosts", world.stage.now(), ["jobs"])
    assert [plan.label for plan in found.plans] == ["orders", "jobs"]


def test_floor_is_the_plans_within_five_minutes_where_the_table_of_leases_was_lost() -> None:
    world = World()
    world.ask()
    world.dynamodb.items.clear()
    assert 12 in [world.tick(1) for _ in range(5)]


def test_tick_without_boosts_makes_few_calls() -> None:
    world = World()
    reads: list[str] = []
    world.dynamodb.before = reads.append
    world.stage.wire.reset()
    for _ in range(5):
        world.tick(1)
    assert sorted(reads) == ["get_item", *["query"] * 5], "the list, and the table's leases at its full tick"
    calls = Counter(world.stage.wire.operations)
    assert calls == {"GetParametersByPath": 5, "DescribeScalableTargets": 1, "DescribeTable": 1}


def test_boosts_of_a_table_share_a_turn_a_minute() -> None:
    world = World()
    for number in range(5):
        world.ask(id=f"request-{number}", write=10)
    world.stage.wire.reset()
    world.tick(1)
    assert world.stage.wire.operations.count("DescribeTable") == 1


def test_run_that_began_within_the_boost_and_raises_the_floor_after_its_release_is_corrected() -> None:
    world = World()
    world.ask()
    world.stage.advance(2 * SECOND)
    world.ask("release")
    world.stage.register(ORDERS, 112, 4_000)
    assert [world.tick(1), world.listed] == [12, []]


def test_boost_of_half_an_hour_writes_and_reads_what_the_cost_page_says() -> None:
    world = World()
    operations = Counter[str]()
    world.dynamodb.before = lambda operation: operations.update([operation])
    world.ask(minutes=40)
    for _ in range(10):
        world.stage.advance(2 * SECOND)
        world.ask("status")
    for _ in range(30):
        world.tick(1)
    world.stage.advance(2 * SECOND)
    world.ask("release")
    world.tick(1)
    writes = operations["put_item"] + operations["update_item"] + operations["delete_item"]
    assert (writes, operations["get_item"], operations["query"], world.listed) == (42, 77, 31, [])
