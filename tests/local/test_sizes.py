"""DescribeTable's counts and sizes of a table and its indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import World, attributes, index_definition, keyed, projecting, units

ORDERS = "orders-of-sizes"


@pytest.fixture
def orders(world: World) -> str:
    """A table with an index of keys and one of everything, which has an attribute that not all items have."""
    throughput = {"ProvisionedThroughput": units(500, 600)}
    world.dynamodb.create_table(
        TableName=ORDERS,
        **keyed("pk", "sk", others=["state", "number:N"]),
        **throughput,
        GlobalSecondaryIndexes=[projecting("by_state", "state", to="KEYS_ONLY", **throughput)],
        LocalSecondaryIndexes=[projecting("by_number", "pk", "number")],
    )
    return ORDERS


def _sizes(world: World) -> dict[str | None, tuple[int, int]]:
    table: Any = world.dynamodb.describe_table(TableName=ORDERS)["Table"]
    found: dict[str | None, tuple[int, int]] = {None: (table["ItemCount"], table["TableSizeBytes"])}
    for index in [*table["GlobalSecondaryIndexes"], *table["LocalSecondaryIndexes"]]:
        found[index["IndexName"]] = (index["ItemCount"], index["IndexSizeBytes"])
    return found


def test_sizes_are_those_of_the_items_that_are_there(world: World, orders: str) -> None:
    assert _sizes(world) == {None: (0, 0), "by_state": (0, 0), "by_number": (0, 0)}
    key: Any = {"pk": {"S": "a"}, "sk": {"S": "bc"}}
    # pk 2+1, sk 2+2: 7 bytes; text 4+1,000
    world.dynamodb.put_item(TableName=orders, Item=key | {"text": {"S": "x" * 1_000}})
    assert _sizes(world) == {None: (1, 1_011), "by_state": (0, 0), "by_number": (0, 0)}
    # state 5+3; the index of keys has 15 bytes of it
    world.dynamodb.update_item(
        TableName=orders,
        Key=key,
        UpdateExpression="SET #s = :s REMOVE #t",
        ExpressionAttributeNames={"#s": "state", "#t": "text"},
        ExpressionAttributeValues={":s": {"S": "new"}},
    )
    assert _sizes(world) == {None: (1, 15), "by_state": (1, 15), "by_number": (0, 0)}
    items: list[Any] = [{"pk": {"S": "b"}, "sk": {"S": str(n)}, "text": {"S": "y" * 89}} for n in range(3)]
    world.dynamodb.batch_write_item(RequestItems={orders: [{"PutRequest": {"Item": item}} for item in items]})
    assert _sizes(world)[None] == (4, 15 + 3 * 99)
    world.dynamodb.delete_item(TableName=orders, Key=key)
    assert _sizes(world) == {None: (3, 3 * 99), "by_state": (0, 0), "by_number": (0, 0)}


def test_index_that_is_added_has_the_items_that_have_its_key(world: World, orders: str) -> None:
    for n in range(2):
        item: Any = {"pk": {"S": "b"}, "sk": {"S": str(n)}} | ({"city": {"S": "Ulm"}} if n else {})
        world.dynamodb.put_item(TableName=orders, Item=item)
    assert _sizes(world)[None] == (2, 6 + 6 + 7)
    new = index_definition("by_city", 5, 6)
    world.dynamodb.update_table(
        TableName=orders, AttributeDefinitions=attributes("city"), GlobalSecondaryIndexUpdates=[{"Create": new}]
    )
    assert _sizes(world)["by_city"] == (1, 13)


def test_sizes_follow_a_restored_table(world: World, orders: str) -> None:
    world.dynamodb.put_item(TableName=orders, Item={"pk": {"S": "a"}, "sk": {"S": "bc"}})
    backup = world.dynamodb.create_backup(TableName=orders, BackupName="one")["BackupDetails"]["BackupArn"]
    world.dynamodb.restore_table_from_backup(TargetTableName="restored", BackupArn=backup)
    table = world.dynamodb.describe_table(TableName="restored")["Table"]
    assert (table["ItemCount"], table["TableSizeBytes"]) == (1, 7)
