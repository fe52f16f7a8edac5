"""Warm throughput: the high-water mark of capacity, and raising it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import World, attributes, index_definition, refused, units, warmth

_INDEXES = {"by-city": (60, 61)}
_KEYS = attributes("id", "city")


def _lower(member: str, kind: str = "table") -> str:
    return (
        f"Requested {member} for WarmThroughput for {kind} is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported"
    )


def test_mark_of_a_new_table_is_its_capacity_and_status_is_active(world: World) -> None:
    table = world.table(40, 41)
    assert world.described(table)["WarmThroughput"] == warmth(40, 41) | {"Status": "ACTIVE"}


def test_mark_when_capacity_goes_up_and_down_is_the_highest_of_each_dimension(world: World) -> None:
    table = world.table(1, 1)
    marks = []
    for read, write in ((2, 5), (3, 4), (1, 7), (1, 1)):
        world.change(table, read, write)
        marks.append(world.warm(table))
    assert marks == [(2, 5), (3, 5), (3, 7), (3, 7)]


def test_mark_when_auto_scaling_raised_capacity_is_raised_too(world: World) -> None:
    table = world.table(40, 41)
    world.register(f"table/{table}", 90, 95)
    assert world.warm(table) == (90, 41)


def test_raised_mark_leaves_capacity_as_it_is(world: World) -> None:
    table = world.table(40, 41)
    world.update(table, {None: {"WarmThroughput": warmth(300, 200)}})
    assert world.warm(table) == (300, 200)
    assert world.capacity(table) == (40, 41)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(warmth(40, 41), (40, 41), id="equal-values-are-accepted"),
        pytest.param(warmth(41, 41), (41, 41), id="one-more-is-enough"),
        pytest.param({"ReadUnitsPerSecond": 77}, (77, 41), id="reads-alone-leave-writes"),
        pytest.param({"WriteUnitsPerSecond": 78}, (40, 78), id="writes-alone-leave-reads"),
        pytest.param(warmth(40000, 40000), (40000, 40000), id="exactly-the-quota"),
    ],
)
def test_mark_when_asked_for_no_less_is_raised(world: World, asked: dict[str, int], expected: tuple[int, int]) -> None:
    table = world.table(40, 41)
    world.update(table, {None: {"WarmThroughput": asked}})
    assert world.warm(table) == expected


@pytest.mark.parametrize(
    ("asked", "member"),
    [
        pytest.param(warmth(39, 200), "ReadUnitsPerSecond", id="reads-lower-writes-higher"),
        pytest.param(warmth(300, 40), "WriteUnitsPerSecond", id="writes-lower-reads-higher"),
        pytest.param({"ReadUnitsPerSecond": 39}, "ReadUnitsPerSecond", id="reads-alone"),
        pytest.param({"WriteUnitsPerSecond": 40}, "WriteUnitsPerSecond", id="writes-alone"),
    ],
)
@pytest.mark.parametrize(("index", "kind"), [(None, "table"), ("by-city", "index")], ids=["table", "index"])
def test_mark_when_asked_for_less_is_kept_and_the_call_refused(
    world: World, asked: dict[str, int], member: str, index: str | None, kind: str
) -> None:
    table = world.table(40, 41, {"by-city": (40, 41)})
    with refused("ValidationException", _lower(member, kind)):
        world.update(table, {index: {"WarmThroughput": asked}})
    assert world.warm(table, index) == (40, 41)


def test_mark_below_the_highest_capacity_ever_is_refused_after_a_decrease(world: World) -> None:
    table = world.table(40, 41)
    world.change(table, 20, 21)
    with refused("ValidationException", _lower("ReadUnitsPerSecond")):
        world.update(table, {None: {"WarmThroughput": warmth(30, 41)}})


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (warmth(40001, 41), "Requested ReadUnitsPerSecond for WarmThroughput exceeds TableMaxReadCapacityUnits"),
        (warmth(40, 40002), "Requested WriteUnitsPerSecond for WarmThroughput exceeds TableMaxWriteCapacityUnits"),
    ],
    ids=["reads", "writes"],
)
def test_mark_above_the_quota_is_refused(world: World, asked: dict[str, int], text: str) -> None:
    table = world.table(40, 41)
    with refused("LimitExceededException", text):
        world.update(table, {None: {"WarmThroughput": asked}})
    assert world.warm(table) == (40, 41)


def test_refused_mark_with_capacity_in_one_call_changes_neither(world: World) -> None:
    table = world.table(40, 41)
    with refused("ValidationException", _lower("WriteUnitsPerSecond")):
        world.update(table, {None: {"ProvisionedThroughput": units(50, 51), "WarmThroughput": warmth(60, 40)}})
    assert (world.capacity(table), world.warm(table)) == ((40, 41), (40, 41))


def test_refused_capacity_with_mark_in_one_call_changes_neither(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.use_decreases(table)
    with pytest.raises(world.dynamodb.exceptions.LimitExceededException):
        world.update(table, {None: {"ProvisionedThroughput": units(30, 51), "WarmThroughput": warmth(60, 61)}})
    assert (world.capacity(table), world.warm(table)) == ((36, 41), (40, 41))


def test_mark_of_an_index_is_apart_from_its_table(world: World) -> None:
    table = world.table(40, 41, _INDEXES)
    world.update(table, {"by-city": {"WarmThroughput": warmth(600, 601)}})
    assert (world.warm(table), world.warm(table, "by-city")) == ((40, 41), (600, 601))
    world.update(table, {None: {"WarmThroughput": warmth(400, 401)}})
    assert (world.warm(table), world.warm(table, "by-city")) == ((400, 401), (600, 601))
    assert world.described(table, "by-city")["WarmThroughput"]["Status"] == "ACTIVE"


def test_mark_of_an_index_made_anew_under_its_old_name_starts_anew(world: World) -> None:
    table = world.table(40, 41, _INDEXES)
    assert world.warm(table, "by-city") == (60, 61)
    world.dynamodb.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-city"}}])
    world.dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=_KEYS,
        GlobalSecondaryIndexUpdates=[{"Create": index_definition("by-city", 30, 31)}],
    )
    assert world.warm(table, "by-city") == (30, 31)


def test_mark_given_at_creation_by_the_api_is_kept(world: World) -> None:
    table = world.table(40, 41, WarmThroughput=warmth(300, 200))
    assert world.warm(table) == (300, 200)


def test_mark_of_an_index_given_at_creation_by_the_api_is_kept(world: World) -> None:
    index: dict[str, Any] = index_definition("by-city", 60, 61) | {"WarmThroughput": warmth(310, 210)}
    table = world.table(40, 41, AttributeDefinitions=_KEYS, GlobalSecondaryIndexes=[index])
    assert world.warm(table, "by-city") == (310, 210)


def test_mark_of_an_index_given_when_it_is_added_is_kept(world: World) -> None:
    table = world.table(40, 41)
    index: dict[str, Any] = index_definition("by-city", 60, 61) | {"WarmThroughput": warmth(310, 210)}
    world.dynamodb.update_table(
        TableName=table, AttributeDefinitions=_KEYS, GlobalSecondaryIndexUpdates=[{"Create": index}]
    )
    assert world.warm(table, "by-city") == (310, 210)


def test_mark_of_a_new_on_demand_table_is_the_documented_start(world: World) -> None:
    table = world.table(1, 1, BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=None)
    assert world.warm(table) == (12_000, 4_000)


def test_mark_after_on_demand_and_back_keeps_what_on_demand_gave(world: World) -> None:
    table = world.table(7, 6)
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    assert world.warm(table) == (12_000, 4_000)
    world.update(table, {None: {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(8, 9)}})
    assert world.warm(table) == (12_000, 4_000)
