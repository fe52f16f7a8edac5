"""What changes of a table take, what is told meanwhile, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import (
    READ,
    WRITE,
    Stack,
    World,
    attributes,
    index_definition,
    keyed,
    refused,
    stack_status,
    unique,
    units,
    warmth,
    world_of,
)

pytestmark = pytest.mark.xdist_group("cloud-update-times")
CLOUD = {"has_instant_updates": False}
_ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


@pytest.fixture
def world(cloud: LocalCloud) -> Iterator[World]:
    made = world_of(cloud)
    yield made
    made.cloud.advance(timedelta(minutes=20))
    made.forget()


def _states(world: World, table: str, seconds: list[int]) -> list[Any]:
    """Status and capacity after so many seconds each, counted from now; the machine may take one more."""
    seen, passed = [], 0
    for at in seconds:
        world.cloud.advance(timedelta(seconds=at - passed))
        passed = at
        seen.append((world.described(table)["TableStatus"], world.capacity(table)))
    return seen


def _in_use(detail: str) -> str:
    return f"Attempt to change a resource which is still in use: {detail}"


def _busy(table: str) -> str:
    return _in_use(f"Table IOPS are currently being updated. Table: {table}")


def _busy_index(table: str, index: str, undergone: str) -> str:
    return _in_use(f"Index is being {undergone}.  Table: {table} Index: {index}")


def _being_updated(table: str) -> str:
    return _in_use(f"Table: {table} is in the process of being updated.")


_BUSY_INDEXES = _in_use("Cannot delete table while indexes are being created, updated, or deleted.")


def test_switch_to_provisioned_names_the_units_of_the_table_and_of_each_index(world: World) -> None:
    index = index_definition("by-city", 60, 61)
    del index["ProvisionedThroughput"]
    table = world.table(
        0,
        0,
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[index],
        AttributeDefinitions=attributes("id", "city"),
        ProvisionedThroughput=None,
    )
    world.cloud.advance(timedelta(minutes=5))
    text = (
        "One or more parameter values were invalid: ProvisionedThroughput must be specified for the table and all of "
        "its global secondary indexes when BillingMode is PROVISIONED"
    )
    to_provisioned: dict[str, Any] = {"BillingMode": "PROVISIONED"}
    for members in ({}, {"ProvisionedThroughput": units(40, 41)}):
        with refused("ValidationException", text):
            world.update(table, {None: to_provisioned | members})
    both = {None: to_provisioned | {"ProvisionedThroughput": units(40, 41)}}
    world.update(table, both | {"by-city": {"ProvisionedThroughput": units(60, 61)}})
    world.cloud.advance(timedelta(minutes=20))
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 41), (60, 61))


def test_index_is_neither_made_nor_deleted_while_the_tables_capacity_changes(world: World) -> None:
    table = world.table(40, 41, {"by-city": (60, 61)})
    world.cloud.advance(timedelta(minutes=5))
    world.change(table, 4_000, 41)
    creation = {"Create": index_definition("by-state", 7, 8)}
    for update in (creation, {"Delete": {"IndexName": "by-city"}}):
        with refused("ResourceInUseException", _busy(table)):
            world.dynamodb.update_table(
                TableName=table, AttributeDefinitions=attributes("id", "city"), GlobalSecondaryIndexUpdates=[update]
            )


def test_raise_below_the_mark_is_there_after_two_seconds_and_by_auto_scaling_too(world: World) -> None:
    """By auto scaling after 1.7 s (recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance)."""
    table = world.table(40, 41, WarmThroughput=warmth(900, 901))
    world.change(table, 52, 53)
    assert _states(world, table, [0, 4]) == [("UPDATING", (40, 41)), ("ACTIVE", (52, 53))]
    world.register(f"table/{table}", 61, 99, dim=WRITE)
    assert _states(world, table, [0, 4]) == [("UPDATING", (52, 53)), ("ACTIVE", (52, 61))]


def test_bounds_move_capacity_within_four_seconds_up_and_down(world: World) -> None:
    """3.8 s up and 3.2 s down, which counts as a decrease (recorded: radkawar/stackd 9dc356f, dynamodb/controls)."""
    table = world.table(40, 41, WarmThroughput=warmth(900, 901))
    world.register(f"table/{table}", 61, 99, dim=WRITE)
    assert _states(world, table, [0, 4]) == [("UPDATING", (40, 41)), ("ACTIVE", (40, 61))]
    world.cloud.advance(timedelta(minutes=1))
    world.register(f"table/{table}", 2, 50, dim=WRITE)
    assert (_states(world, table, [0]), world.decreases(table)) == ([("UPDATING", (40, 61))], 0)
    assert (_states(world, table, [4]), world.decreases(table)) == ([("ACTIVE", (40, 50))], 1)


def test_raise_that_adds_partitions_takes_minutes_and_so_long_the_mark_is_the_old_one(world: World) -> None:
    table = world.table(40, 41)
    world.change(table, 40, 5000)
    assert _states(world, table, [0, 290]) == [("UPDATING", (40, 41))] * 2
    assert world.warm(table) == (40, 41)
    assert _states(world, table, [15]) == [("ACTIVE", (40, 5000))]
    assert world.warm(table) == (40, 5000)


def test_table_being_changed_refuses_changes_of_capacity_mode_and_deletion_and_takes_others(world: World) -> None:
    table = world.table(40, 41)
    world.change(table, 40, 5000)
    with refused("ResourceInUseException", _busy(table)):
        world.change(table, 40, 4000)
    with refused("ResourceInUseException", _busy(table)):
        world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    with refused("ResourceInUseException", _being_updated(table)):
        world.dynamodb.delete_table(TableName=table)
    world.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)


def test_index_being_changed_leaves_its_table_active(world: World) -> None:
    table = world.table(40, 41, {"by-city": (60, 61)}, WarmThroughput=warmth(900, 901))
    world.change(table, 72, 3000, index="by-city")
    assert world.described(table)["TableStatus"] == "ACTIVE"
    assert world.described(table, "by-city")["IndexStatus"] == "UPDATING"
    with refused("ResourceInUseException", _busy_index(table, "by-city", "updated")):
        world.change(table, 73, 74, index="by-city")
    with refused("ResourceInUseException", _busy_index(table, "by-city", "updated")):
        world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    with refused("ResourceInUseException", _BUSY_INDEXES):
        world.dynamodb.delete_table(TableName=table)
    world.change(table, 50, 51)
    world.cloud.advance(timedelta(seconds=310))
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((50, 51), (72, 3000))


def test_answer_of_an_update_shows_the_old_values_and_counter(world: World) -> None:
    table = world.table(40, 41)
    answer = world.dynamodb.update_table(TableName=table, ProvisionedThroughput=units(31, 32))["TableDescription"]
    throughput = answer["ProvisionedThroughput"]
    assert answer["TableStatus"] == "UPDATING"
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (40, 41)
    assert throughput["NumberOfDecreasesToday"] == 0
    world.cloud.advance(timedelta(seconds=4))
    assert (world.capacity(table), world.decreases(table)) == ((31, 32), 1)


def test_auto_scaling_that_raises_both_dimensions_does_one_after_the_other(world: World) -> None:
    table = world.table(40, 41, WarmThroughput=warmth(900, 901))
    world.register(f"table/{table}", 62, 99, dim=READ)
    world.register(f"table/{table}", 63, 99, dim=WRITE)
    assert [activity["StatusCode"] for activity in world.activities(f"table/{table}")] == ["InProgress"] * 2
    world.cloud.advance(timedelta(seconds=40))
    assert [activity["StatusCode"] for activity in world.activities(f"table/{table}")] == ["Successful"] * 2
    assert world.capacity(table) == (62, 63)


def test_first_switches_of_mode_take_minutes_and_the_next_seconds(world: World) -> None:
    """What is shown meanwhile is recorded: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits."""
    table = world.table(40, 41)
    world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    # the new mode and its units are shown at once, the time only when it is there
    assert world.described(table)["BillingModeSummary"] == _ON_DEMAND
    assert _states(world, table, [0, 140, 155]) == [("UPDATING", (0, 0))] * 2 + [("ACTIVE", (0, 0))]
    switched = world.described(table)["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    assert timedelta(minutes=2) < switched - world.described(table)["CreationDateTime"] < timedelta(minutes=3)
    assert world.warm(table) == (12000, 4000)

    world.dynamodb.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=units(55, 56))
    assert world.described(table)["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert _states(world, table, [0, 105, 120]) == [("UPDATING", (55, 56))] * 2 + [("ACTIVE", (55, 56))]

    world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    assert world.described(table)["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] == switched
    assert _states(world, table, [0, 7]) == [("UPDATING", (0, 0)), ("ACTIVE", (0, 0))]

    world.dynamodb.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=units(57, 58))
    assert _states(world, table, [0, 9]) == [("UPDATING", (57, 58)), ("ACTIVE", (57, 58))], "a later way back is quick"


def test_table_on_its_way_to_on_demand_still_runs_out_of_its_capacity(world: World) -> None:
    table = world.table(1, 1)
    item = {"id": {"S": "key"}, "fill": {"S": "x" * 100_000}}
    world.cloud.advance(timedelta(minutes=10))
    world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    throttled = world.dynamodb.exceptions.ProvisionedThroughputExceededException

    def put_until_throttled() -> int:
        for count in range(8):
            try:
                world.dynamodb.put_item(TableName=table, Item=item)
            except throttled:
                return count
        return 8

    # each asks for 98 of the 300 units that a bucket of one unit holds; the last one overdraws it
    assert put_until_throttled() < 8
    world.cloud.advance(timedelta(seconds=155))
    assert put_until_throttled() == 8


def test_warm_up_that_adds_partitions_takes_minutes_and_leaves_the_table_active(world: World) -> None:
    table = world.table(40, 41)
    world.update(table, {None: {"WarmThroughput": warmth(9000, 3000)}})
    assert world.described(table)["TableStatus"] == "ACTIVE"
    assert world.described(table)["WarmThroughput"] == warmth(40, 41) | {"Status": "UPDATING"}
    with refused("ResourceInUseException", _being_updated(table)):
        world.dynamodb.delete_table(TableName=table)
    # what has to be added anyway for capacity is there no sooner
    world.cloud.advance(timedelta(seconds=390))
    assert world.warm(table) == (40, 41)
    world.cloud.advance(timedelta(seconds=15))
    assert world.described(table)["WarmThroughput"] == warmth(9000, 3000) | {"Status": "ACTIVE"}
    world.change(table, 9000, 3000)
    world.cloud.advance(timedelta(seconds=4))
    assert world.capacity(table) == (9000, 3000)


def test_an_index_takes_minutes_to_build_and_holds_changes_of_its_table(world: World) -> None:
    table = world.table(40, 41)
    added = {
        "TableName": table,
        "AttributeDefinitions": attributes("id", "city"),
        "GlobalSecondaryIndexUpdates": [{"Create": index_definition("by-city", 30, 31)}],
    }
    described = world.dynamodb.update_table(**added)["TableDescription"]

    def states(description: Any) -> tuple[str, str, bool]:
        (index,) = description["GlobalSecondaryIndexes"]
        return description["TableStatus"], index["IndexStatus"], index.get("Backfilling", False)

    assert states(described) == ("UPDATING", "CREATING", True)
    blocked = _in_use(f"Can't change table IOPS when an index is being created. Table: {table} Indexes: [by-city]")
    with refused("ResourceInUseException", blocked):
        world.change(table, 52, 53)
    with refused("ResourceInUseException", blocked):
        world.dynamodb.update_table(TableName=table, **_ON_DEMAND)
    with refused("ResourceInUseException", _busy_index(table, "by-city", "created")):
        world.change(table, 52, 53, index="by-city")
    with refused("ResourceInUseException", _BUSY_INDEXES):
        world.dynamodb.delete_table(TableName=table)
    text = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
    with refused("LimitExceededException", text):
        world.dynamodb.update_table(**added)
    with refused("ValidationException", "Cannot read from backfilling global secondary index: by-city"):
        world.dynamodb.scan(TableName=table, IndexName="by-city")
    # a target is registered, and its capacity stays
    world.register(f"table/{table}/index/by-city", 44, 99, dim="dynamodb:index:ReadCapacityUnits")
    world.cloud.advance(timedelta(minutes=11))
    assert states(world.described(table)) == ("UPDATING", "CREATING", True)
    world.cloud.advance(timedelta(minutes=2))
    assert states(world.described(table)) == ("ACTIVE", "ACTIVE", False)
    assert world.capacity(table, "by-city") == (30, 31)
    world.register(f"table/{table}/index/by-city", 44, 99, dim="dynamodb:index:ReadCapacityUnits")
    world.cloud.advance(timedelta(minutes=1))
    assert world.capacity(table, "by-city") == (44, 31)


def test_rollback_leaves_the_index_that_is_being_built_until_it_is_deleted_by_hand(
    world: World, stack: Stack, clients: dict[str, Any]
) -> None:
    name = unique("indexed")

    def table(*indexes: dict[str, Any]) -> dict[str, Any]:
        keys = keyed("id", others=["city"] if indexes else [])
        capacity = {"ProvisionedThroughput": units(40, 41)}
        added = {"GlobalSecondaryIndexes": list(indexes)} if indexes else {}
        return {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": name, **keys, **capacity, **added}}

    def state() -> list[str]:
        found = world.dynamodb.describe_table(TableName=name)["Table"].get("GlobalSecondaryIndexes", [])
        return [each["IndexStatus"] for each in found]

    # its floor is above its ceiling
    bounds = {"ServiceNamespace": "dynamodb", "ScalableDimension": WRITE, "MinCapacity": 9, "MaxCapacity": 8}
    properties = {"ResourceId": f"table/{name}", **bounds}
    target = {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": properties,
        "DependsOn": "Table",
    }
    stack.create(Table=table())
    changed = table(index_definition("by-city", 60, 61))
    assert stack.update(Table=changed, Target=target) == "UPDATE_ROLLBACK_FAILED"
    assert stack.failures()[:2] == [
        "The following resource(s) failed to update: [Table].",
        f"{_busy_index(name, 'by-city', 'created')} (Service: DynamoDb, Status Code: 400, ResourceInUseException)",
    ]
    assert state() == ["CREATING"]
    world.cloud.advance(timedelta(minutes=13))
    assert state() == ["ACTIVE"]
    world.dynamodb.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-city"}}])
    clients["cloudformation"].continue_update_rollback(StackName=stack.name)
    assert stack_status(clients["cloudformation"], stack.name) == "UPDATE_ROLLBACK_COMPLETE"
    # without data, nothing stands in the way of the same again
    assert (state(), stack.update(Table=changed)) == ([], "UPDATE_COMPLETE")
    # an index that an update removes while it is built goes, as DynamoDB lets it
    assert (stack.update(Table=table()), state()) == ("UPDATE_COMPLETE", [])
    stack.delete()
