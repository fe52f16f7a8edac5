"""Tables without a name in the template: an update keeps the items, unless another key replaces the table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import Stack, World, index_definition, keyed, projecting, units

Properties = dict[str, Any]
_TABLE, _GLOBAL_TABLE = "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"
_TAGS = [{"Key": "team", "Value": "sales"}]


def _writes(units: int) -> Properties:
    settings = {
        "MinCapacity": units,
        "MaxCapacity": 900,
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 62},
    }
    return {"WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": settings}}


def _reads(units: int) -> Properties:
    return {"ReadProvisionedThroughputSettings": {"ReadCapacityUnits": units}}


_HOME = {"Region": "us-east-1", **_reads(40)}
_USUAL: dict[str, Properties] = {
    _TABLE: {"BillingMode": "PROVISIONED", **keyed("id"), "ProvisionedThroughput": units(40, 41)},
    _GLOBAL_TABLE: {"BillingMode": "PROVISIONED", **keyed("id"), **_writes(41), "Replicas": [_HOME]},
}
_WITH_CITY = keyed("id", others=["city"])
_EXPIRES = {"TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True}}
_STREAM = {"StreamSpecification": {"StreamViewType": "NEW_IMAGE"}}
_OF_INDEX = {"GlobalSecondaryIndexes": [{"IndexName": "by-city", **_reads(60)}]}


def _resource(kind: str, change: Properties | None = None) -> Properties:
    """Return the usual table with other members; one that is `None` is left out."""
    members = _USUAL[kind] | (change or {})
    return {"Type": kind, "Properties": {name: value for name, value in members.items() if value is not None}}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(_TABLE, {"Tags": _TAGS}, id="table-tag"),
        pytest.param(_TABLE, {"ProvisionedThroughput": units(53, 41)}, id="table-capacity"),
        pytest.param(_TABLE, {"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": None}, id="table-on-demand"),
        pytest.param(
            _TABLE, {**_WITH_CITY, "GlobalSecondaryIndexes": [index_definition("by-city", 60, 61)]}, id="table-index"
        ),
        pytest.param(_TABLE, _EXPIRES, id="table-time-to-live"),
        pytest.param(_TABLE, _STREAM, id="table-stream"),
        pytest.param(_GLOBAL_TABLE, {"Replicas": [_HOME | {"Tags": _TAGS}]}, id="global-tag"),
        pytest.param(_GLOBAL_TABLE, _writes(53), id="global-scaling"),
        pytest.param(_GLOBAL_TABLE, {"Replicas": [_HOME | _reads(53)]}, id="global-reads"),
        pytest.param(
            _GLOBAL_TABLE,
            {
                "BillingMode": "PAY_PER_REQUEST",
                "WriteProvisionedThroughputSettings": None,
                "Replicas": [{"Region": "us-east-1"}],
            },
            id="global-on-demand",
        ),
        pytest.param(
            _GLOBAL_TABLE,
            {
                **_WITH_CITY,
                "GlobalSecondaryIndexes": [projecting("by-city", "city", **_writes(61))],
                "Replicas": [_HOME | _OF_INDEX],
            },
            id="global-index",
        ),
        pytest.param(_GLOBAL_TABLE, _EXPIRES, id="global-time-to-live"),
        pytest.param(_GLOBAL_TABLE, {"Replicas": [_HOME, _HOME | {"Region": "eu-west-1"}]}, id="global-replica"),
    ],
)
def test_update_of_a_table_without_a_name_keeps_its_items(
    world: World, stack: Stack, kind: str, change: Properties
) -> None:
    assert stack.create(Table=_resource(kind)) == "CREATE_COMPLETE", stack.reasons()
    table = stack.physical_id("Table")
    world.dynamodb.put_item(TableName=table, Item={"id": {"S": "one"}})
    created = world.described(table)["TableId"]
    # there and back again
    for each in (change, {}):
        assert stack.update(Table=_resource(kind, each)) == "UPDATE_COMPLETE", stack.reasons()
        assert stack.physical_id("Table") == table
        assert world.described(table)["TableId"] == created
        assert world.dynamodb.scan(TableName=table)["Count"] == 1
    assert [name for name in world.dynamodb.list_tables()["TableNames"] if name.startswith(stack.name)] == [table]


@pytest.mark.parametrize("kind", _USUAL)
def test_update_that_fails_elsewhere_leaves_a_table_without_a_name_as_it_was(
    world: World, stack: Stack, kind: str
) -> None:
    stack.create(Table=_resource(kind))
    table = stack.physical_id("Table")
    world.dynamodb.put_item(TableName=table, Item={"id": {"S": "one"}})
    wrong = {"Type": _TABLE, "Properties": {"TableName": "a", **keyed("id")}, "DependsOn": "Table"}
    assert stack.update(Table=_resource(kind, _EXPIRES), Wrong=wrong) == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.physical_id("Table") == table
    assert world.dynamodb.scan(TableName=table)["Count"] == 1


@pytest.mark.parametrize("kind", _USUAL)
@pytest.mark.parametrize("is_retained", [False, True])
def test_another_key_replaces_a_table_without_a_name(world: World, stack: Stack, kind: str, is_retained: bool) -> None:
    more = {"UpdateReplacePolicy": "Retain"} if is_retained else {}
    stack.create(Table=_resource(kind))
    old = stack.physical_id("Table")
    assert stack.update(Table=_resource(kind, keyed("pk")) | more) == "UPDATE_COMPLETE"
    new = stack.physical_id("Table")
    assert new != old
    assert world.described(new)["KeySchema"][0]["AttributeName"] == "pk"
    assert [name in world.dynamodb.list_tables()["TableNames"] for name in (old, new)] == [is_retained, True]
    # from then on it is changed in place
    assert stack.update(Table=_resource(kind, keyed("pk") | _EXPIRES) | more) == "UPDATE_COMPLETE"
    assert stack.physical_id("Table") == new
    stack.delete()
    world.dynamodb.delete_table(TableName=old) if is_retained else None


@pytest.mark.parametrize("kind", _USUAL)
def test_another_key_of_a_table_with_a_name_is_refused(world: World, stack: Stack, kind: str) -> None:
    name = {"TableName": f"{stack.name}-orders"}
    stack.create(Table=_resource(kind, name))
    assert stack.update(Table=_resource(kind, name | keyed("pk"))) == "UPDATE_ROLLBACK_COMPLETE"
    assert "CloudFormation cannot update a stack when a custom-named resource requires replacing" in stack.reasons()
    assert world.described(name["TableName"])["KeySchema"][0]["AttributeName"] == "id"
