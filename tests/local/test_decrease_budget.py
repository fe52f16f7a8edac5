"""UpdateTable's decrease budget and limits of capacity."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.local.world import DAY, HOUR, World, attributes, budget_text, create_tables, index_definition, refused, units

_INDEXES = {"by-city": (60, 61)}


def _no_change(kind: str, read: int, write: int) -> str:
    named = kind if kind == "table" else f"index {kind}"
    noun = named.split()[0]
    return (
        f"The provisioned throughput for the {named} will not change. The requested value equals the current value. "
        f"Current ReadCapacityUnits provisioned for the {noun}: {read}. Requested ReadCapacityUnits: {read}. "
        f"Current WriteCapacityUnits provisioned for the {noun}: {write}. Requested WriteCapacityUnits: {write}. "
        "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    )


def test_decreases_on_one_day_are_four_and_the_fifth_is_refused_with_both_dates(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    for count in range(1, 5):
        world.use_decreases(table, 1)
        assert world.decreases(table) == count
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table))):
        world.change(table, 35, 41)
    assert world.capacity(table) == (36, 41)


def test_update_that_is_refused_changes_nothing_of_the_table(world: World) -> None:
    table = world.table(40, 41)
    deletion = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-nothing"}}]}
    for change in ({"ProvisionedThroughput": units(50, 51)}, {"BillingMode": "PAY_PER_REQUEST"}):
        with pytest.raises(world.dynamodb.exceptions.ResourceNotFoundException):
            world.dynamodb.update_table(TableName=table, **change, **deletion)
        assert world.capacity(table) == (40, 41)
    world.change(table, 50, 51)
    assert world.capacity(table) == (50, 51)


def test_fifth_decrease_is_accepted_an_hour_after_the_last_one_and_not_before(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.use_decreases(table)
    last = world.last_decrease(table)
    world.advance_to(last + HOUR - timedelta(seconds=5))
    with refused("LimitExceededException", budget_text(4, last)):
        world.change(table, 30, 41)
    world.advance_to(last + HOUR + timedelta(seconds=1))
    world.change(table, 30, 41)
    assert world.capacity(table) == (30, 41)
    assert world.decreases(table) == 5
    with refused("LimitExceededException", budget_text(5, world.last_decrease(table))):
        world.change(table, 29, 41)


def test_decreases_at_midnight_utc_are_counted_anew(world: World) -> None:
    day = world.start_a_day()
    world.advance_to(day.replace(hour=23, minute=20))
    table = world.table(40, 41)
    world.use_decreases(table)
    last = world.last_decrease(table)
    text = budget_text(4, last)
    assert "12:00:00 AM Coordinated Universal Time." in text
    with refused("LimitExceededException", text):
        world.change(table, 30, 41)
    world.advance_to(day.replace(hour=0) + DAY + timedelta(seconds=1))
    assert world.decreases(table) == 0
    assert world.last_decrease(table) == last
    world.use_decreases(table)
    assert world.decreases(table) == 4
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table))):
        world.change(table, 30, 41)


def test_twenty_seven_decreases_a_day_are_the_most(world: World) -> None:
    day = world.start_a_day()
    world.advance_to(day.replace(hour=0) + DAY + timedelta(seconds=1))
    table = world.table(60, 61)
    world.use_decreases(table)
    accepted = 4
    while world.last_decrease(table) + HOUR < day.replace(hour=0) + 2 * DAY:
        world.advance_to(world.last_decrease(table) + HOUR + timedelta(seconds=1))
        world.use_decreases(table, 1)
        accepted += 1
    assert accepted == 27


def test_reads_down_with_writes_up_counts_and_is_refused_whole_when_used_up(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.change(table, 39, 50)
    assert world.decreases(table) == 1
    world.use_decreases(table, 3)
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table))):
        world.change(table, 30, 60)
    assert world.capacity(table) == (36, 50)


def test_both_dimensions_down_in_one_call_count_once(world: World) -> None:
    table = world.table(40, 41)
    world.change(table, 20, 21)
    assert world.decreases(table) == 1


def test_increases_when_the_budget_is_used_up_are_accepted_and_do_not_count(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.use_decreases(table)
    world.change(table, 400, 410)
    assert world.capacity(table) == (400, 410)
    assert world.decreases(table) == 4


def test_failed_attempts_move_neither_counter_nor_time(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.use_decreases(table)
    last = world.last_decrease(table)
    text = budget_text(4, last)
    for minutes in (7, 13):
        world.cloud.advance(timedelta(minutes=minutes))
        with refused("LimitExceededException", text):
            world.change(table, 30, 41)
    assert (world.decreases(table), world.last_decrease(table)) == (4, last)


def test_table_and_index_have_budgets_apart(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41, _INDEXES)
    world.use_decreases(table)
    world.use_decreases(table, index="by-city")
    assert world.decreases(table, "by-city") == 4
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table, "by-city"))):
        world.change(table, 50, 61, "by-city")
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table))):
        world.change(table, 30, 41)


@pytest.mark.parametrize("spent", [None, "by-city"], ids=["the-table-is-over", "the-index-is-over"])
def test_one_call_for_table_and_index_is_refused_whole_when_either_is_over(world: World, spent: str | None) -> None:
    world.start_a_day()
    table = world.table(40, 41, _INDEXES)
    world.use_decreases(table, index=spent)
    before = world.capacity(table), world.capacity(table, "by-city")
    lower = {None: units(20, 21), "by-city": units(22, 23)}
    with refused("LimitExceededException", budget_text(4, world.last_decrease(table, spent))):
        world.update(table, {index: {"ProvisionedThroughput": changed} for index, changed in lower.items()})
    assert (world.capacity(table), world.capacity(table, "by-city")) == before
    other = "by-city" if spent is None else None
    assert world.decreases(table, other) == 0


def test_index_made_anew_under_its_old_name_has_its_own_fresh_budget(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41, _INDEXES)
    world.use_decreases(table, index="by-city")
    world.dynamodb.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-city"}}])
    world.dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=attributes("id", "city"),
        GlobalSecondaryIndexUpdates=[{"Create": index_definition("by-city", 30, 31)}],
    )
    assert world.decreases(table, "by-city") == 0
    world.change(table, 20, 21, "by-city")


def test_table_made_anew_under_its_old_name_has_a_fresh_budget(world: World) -> None:
    world.start_a_day()
    table = world.table(40, 41)
    world.use_decreases(table)
    world.dynamodb.delete_table(TableName=table)
    create_tables(world.dynamodb, units(30, 31), **{table: ["id"]})
    assert world.decreases(table) == 0


def test_unchanged_capacity_of_a_table_is_refused(world: World) -> None:
    table = world.table(40, 41)
    with refused("ValidationException", _no_change("table", 40, 41)):
        world.change(table, 40, 41)


def test_unchanged_capacity_of_an_index_is_refused(world: World) -> None:
    table = world.table(40, 41, _INDEXES)
    with refused("ValidationException", _no_change("by-city", 60, 61)):
        world.change(table, 60, 61, "by-city")


@pytest.mark.parametrize("index", [None, "by-city"], ids=["table", "index"])
@pytest.mark.parametrize(("read", "write"), [(0, 3), (3, 0), (-1, 3)], ids=["no-reads", "no-writes", "negative"])
def test_less_than_one_unit_is_refused_and_nothing_changes(
    world: World, index: str | None, read: int, write: int
) -> None:
    table = world.table(40, 41, _INDEXES)
    with pytest.raises(world.dynamodb.exceptions.ClientError) as caught:
        world.change(table, read, write, index)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert world.capacity(table, index) == ((40, 41) if index is None else (60, 61))
    assert world.decreases(table, index) == 0


@pytest.mark.parametrize(
    ("read", "write", "member", "asked"),
    [(40001, 41, "ReadCapacityUnits", 40001), (40, 45000, "WriteCapacityUnits", 45000)],
    ids=["reads", "writes"],
)
@pytest.mark.parametrize(("index", "kind"), [(None, "table"), ("by-city", "index")], ids=["table", "index"])
def test_capacity_above_the_quota_is_refused_by_name(
    world: World, read: int, write: int, member: str, asked: int, index: str | None, kind: str
) -> None:
    table = world.table(40, 41, _INDEXES)
    text = (
        f"The requested {member}, {asked}, is above the per {kind} maximum for the account in us-east-1. "
        f"Per {kind} maximum: 40000."
    )
    with refused("LimitExceededException", text):
        world.change(table, read, write, index)


def test_capacity_of_exactly_the_quota_is_accepted(world: World) -> None:
    table = world.table(40, 41)
    world.change(table, 40000, 40000)
    assert world.capacity(table) == (40000, 40000)


def test_way_back_from_on_demand_above_the_quota_is_refused(world: World) -> None:
    table = world.table(40, 41)
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    text = (
        "The requested ReadCapacityUnits, 40001, is above the per table maximum for the account in us-east-1. "
        "Per table maximum: 40000."
    )
    with refused("LimitExceededException", text):
        world.update(table, {None: {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(40001, 41)}})


def test_way_to_on_demand_and_back_to_less_is_no_decrease(world: World) -> None:
    table = world.table(40, 41)
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    world.update(table, {None: {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(20, 21)}})
    assert world.capacity(table) == (20, 21)
    assert world.decreases(table) == 0
