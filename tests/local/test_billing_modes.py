"""Switches of the billing mode, as AWS was recorded: how many, what they count as, what is shown, and maxima."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.local.world import (
    DAY,
    MINUTE,
    Stack,
    World,
    attributes,
    index_definition,
    keyed,
    projecting,
    refused,
    unique,
    units,
)

pytestmark = pytest.mark.xdist_group("cloud")
ON_DEMAND: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
MAXIMA = {"MaxReadRequestUnits": 37, "MaxWriteRequestUnits": 41}


def _provisioned(read: int, write: int) -> dict[str, Any]:
    return {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(read, write)}


def _limit_text(last: datetime, oldest: datetime) -> str:
    shown, free = (f"{at.astimezone(UTC):%a %b %d %H:%M:%S UTC %Y}" for at in (last, oldest + DAY))
    return (
        "Subscriber limit exceeded: Update to PayPerRequest mode are limited to 4 in 1 day(s). Last update at "
        f"{shown}. Next update can be made at {free}"
    )


def _switched(world: World, table: str) -> datetime:
    at: datetime = world.described(table)["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    return at


def test_four_switches_to_on_demand_in_any_day(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits."""
    table = world.table(40, 41)
    switched = []
    for _ in range(4):
        world.update(table, {None: ON_DEMAND})
        switched.append(_switched(world, table))
        # a request for the mode that it has is accepted, and is none of the four
        world.update(table, {None: ON_DEMAND})
        assert _switched(world, table) == switched[-1]
        world.update(table, {None: _provisioned(40, 41)})
        world.cloud.advance(MINUTE)
    with refused("LimitExceededException", _limit_text(switched[-1], switched[0])):
        world.update(table, {None: ON_DEMAND})
    world.change(table, 50, 51)
    world.cloud.advance(switched[0] + DAY - world.now() + timedelta(seconds=1))
    world.update(table, {None: ON_DEMAND})


def test_creation_on_demand_is_one_of_the_four(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits."""
    table = world.table(1, 1, **ON_DEMAND, ProvisionedThroughput=None)
    created = world.described(table)["CreationDateTime"]
    assert _switched(world, table) == created
    for _ in range(3):
        world.update(table, {None: _provisioned(40, 41)})
        world.cloud.advance(MINUTE)
        world.update(table, {None: ON_DEMAND})
    world.update(table, {None: _provisioned(40, 41)})
    with refused("LimitExceededException", _limit_text(_switched(world, table), created)):
        world.update(table, {None: ON_DEMAND})


def test_summary_is_absent_until_a_table_was_on_demand(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits."""
    table = world.table(40, 41)
    assert "BillingModeSummary" not in world.described(table)
    world.update(table, {None: ON_DEMAND})
    world.update(table, {None: _provisioned(42, 43)})
    switched = _switched(world, table)
    assert world.described(table)["BillingModeSummary"] == {
        "BillingMode": "PROVISIONED",
        "LastUpdateToPayPerRequestDateTime": switched,
    }
    # nor does a table's own history of increases show the way back
    assert "LastIncreaseDateTime" not in world.described(table)["ProvisionedThroughput"]


def test_provisioned_without_units_is_rejected_whatever_the_mode(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits."""
    text = (
        "One or more parameter values were invalid: ProvisionedThroughput must be specified when BillingMode is "
        "PROVISIONED"
    )
    for table in (world.table(40, 41), world.table(1, 1, **ON_DEMAND, ProvisionedThroughput=None)):
        with refused("ValidationException", text):
            world.update(table, {None: {"BillingMode": "PROVISIONED"}})


@pytest.mark.parametrize("mode", [{}, {"BillingMode": "PROVISIONED"}], ids=["no-mode", "provisioned"])
def test_new_table_without_units_is_rejected_with_another_text(world: World, mode: dict[str, Any]) -> None:
    """As users report it: awslabs/amazon-kinesis-client#1357."""
    text = (
        "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified "
        "when BillingMode is PROVISIONED"
    )
    with refused("ValidationException", text):
        world.table(40, 41, ProvisionedThroughput=None, **mode)


def test_switch_to_on_demand_is_a_decrease_of_each_index_and_none_of_the_table(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/decrease_limits: a fifth decrease of an index."""
    world.start_a_day()
    table = world.table(40, 41, {"by-city": (60, 61)})
    world.use_decreases(table, index="by-city")
    world.use_decreases(table, 1)
    world.update(table, {None: ON_DEMAND})
    assert (world.decreases(table), world.decreases(table, "by-city")) == (1, 5)
    world.update(table, {None: _provisioned(40, 41), "by-city": {"ProvisionedThroughput": units(60, 61)}})
    # the table may still be lowered, the index may not, and one call with both changes neither
    lowered = {
        name: {"ProvisionedThroughput": given}
        for name, given in {None: units(30, 31), "by-city": units(59, 61)}.items()
    }
    with pytest.raises(world.dynamodb.exceptions.LimitExceededException):
        world.update(table, lowered)
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((40, 41), (60, 61))
    world.change(table, 30, 31)


def test_a_decrease_of_both_or_of_one_is_one_and_an_unchanged_member_refuses_all(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/decrease_limits."""
    world.start_a_day()
    table = world.table(40, 41, {"by-city": (60, 61)})
    world.change(table, 30, 31)
    world.change(table, 29, 51)
    assert (world.decreases(table), world.decreases(table, "by-city")) == (2, 0)
    text = (
        "The provisioned throughput for the index by-city will not change. The requested value equals the current "
        "value. Current ReadCapacityUnits provisioned for the index: 60. Requested ReadCapacityUnits: 60. Current "
        "WriteCapacityUnits provisioned for the index: 61. Requested WriteCapacityUnits: 61. Refer to the Amazon "
        "DynamoDB Developer Guide for current limits and how to request higher limits."
    )
    with refused("ValidationException", text):
        wanted = {None: units(20, 21), "by-city": units(60, 61)}
        world.update(table, {name: {"ProvisionedThroughput": given} for name, given in wanted.items()})
    assert (world.capacity(table), world.decreases(table)) == ((29, 51), 2)


def test_maxima_stay_where_an_update_leaves_them_out_and_go_with_the_mode(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits."""
    index = index_definition("by-city", 0, 0) | {"OnDemandThroughput": {"MaxReadRequestUnits": 17}}
    del index["ProvisionedThroughput"]
    made: dict[str, Any] = {
        "ProvisionedThroughput": None,
        "GlobalSecondaryIndexes": [index],
        "AttributeDefinitions": attributes("id", "city"),
        "OnDemandThroughput": {"MaxReadRequestUnits": 37},
    }
    table = world.table(1, 1, **ON_DEMAND, **made)

    def shown() -> list[Any]:
        return [world.described(table, name).get("OnDemandThroughput") for name in (None, "by-city")]

    assert shown() == [{"MaxReadRequestUnits": 37}, {"MaxReadRequestUnits": 17}]
    world.update(
        table,
        {
            None: {"OnDemandThroughput": {"MaxWriteRequestUnits": 41}},
            "by-city": {"OnDemandThroughput": {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 32}},
        },
    )
    assert world.described(table)["TableStatus"] == "ACTIVE"
    assert shown() == [MAXIMA, {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 32}]
    world.update(table, {"by-city": {"OnDemandThroughput": {"MaxWriteRequestUnits": 33}}})
    assert shown() == [MAXIMA, {"MaxWriteRequestUnits": 33}]
    world.update(table, {None: _provisioned(40, 41), "by-city": {"ProvisionedThroughput": units(60, 61)}})
    assert shown() == [None, None]
    world.update(table, {None: ON_DEMAND})
    assert shown() == [None, None]


def test_new_table_or_index_cannot_have_its_maximum_removed(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits."""
    table = world.table(1, 1, **ON_DEMAND, ProvisionedThroughput=None)
    index = index_definition("by-city", 0, 0) | {"OnDemandThroughput": {"MaxReadRequestUnits": -1}}
    del index["ProvisionedThroughput"]
    text = (
        "One or more parameter values were invalid: Requested MaxReadRequestUnits for OnDemandThroughput for index: "
        "by-city is outside of valid range"
    )
    with refused("ValidationException", text):
        world.dynamodb.update_table(
            TableName=table,
            AttributeDefinitions=attributes("city"),
            GlobalSecondaryIndexUpdates=[{"Create": index}],
        )


def test_maxima_that_a_stack_declares_are_in_force_and_change_with_it(world: World, stack: Stack) -> None:
    """Documented: CloudFormation Template Reference, AWS::DynamoDB::Table, OnDemandThroughput."""
    table = unique("table")
    index = projecting("by-city", "city", OnDemandThroughput={"MaxReadRequestUnits": "17"})

    def resources(**more: Any) -> dict[str, Any]:
        properties = {"TableName": table, **keyed("id", others=["city"]), **ON_DEMAND, **more}
        return {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}

    def shown() -> list[Any]:
        return [world.described(table, name).get("OnDemandThroughput") for name in (None, "by-city")]

    status = stack.create(**resources(GlobalSecondaryIndexes=[index], OnDemandThroughput={"MaxWriteRequestUnits": "7"}))
    assert (status, shown()) == ("CREATE_COMPLETE", [{"MaxWriteRequestUnits": 7}, {"MaxReadRequestUnits": 17}])
    item = {"id": {"S": "one"}, "fill": {"S": "x" * 8_000}}
    world.dynamodb.put_item(TableName=table, Item=item)
    with pytest.raises(world.dynamodb.exceptions.ThrottlingException):
        world.dynamodb.put_item(TableName=table, Item=item)
    index["OnDemandThroughput"] = {"MaxReadRequestUnits": 18}
    assert stack.update(**resources(GlobalSecondaryIndexes=[index])) == "UPDATE_COMPLETE"
    assert shown() == [None, {"MaxReadRequestUnits": 18}]
