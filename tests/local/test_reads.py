"""Queries, scans and statements where MiniStack alone answers something else than DynamoDB."""

from __future__ import annotations

from typing import Any

import pytest

from highwater_local.dynamodb.reads import attributes_of
from tests.local.world import World, attributes, index_definition, keyed, projecting, refused, units

NUMBERS = ["16", "3", "200", "-5", "2.5"]
IN_ORDER = ["-5", "2.5", "3", "16", "200"]


@pytest.fixture
def orders(world: World) -> str:
    """A table with a numeric sort key and an index that projects one attribute beside its keys."""
    name = "orders-by-number"
    world.dynamodb.create_table(
        TableName=name,
        **keyed("pk", "number:N", others=["state"]),
        ProvisionedThroughput=units(500, 600),
        GlobalSecondaryIndexes=[projecting("by_state", "state", to=["city"], ProvisionedThroughput=units(70, 80))],
    )
    for number in NUMBERS:
        item = {"pk": {"S": "a"}, "number": {"N": number}, "state": {"S": "new"}, "sum": {"N": "7"}}
        world.dynamodb.put_item(TableName=name, Item=item)
    return name


def _numbers(items: list[dict[str, Any]]) -> list[str]:
    return [item["number"]["N"] for item in items]


def test_scan_has_numeric_sort_keys_in_the_order_of_numbers(world: World, orders: str) -> None:
    assert _numbers(world.dynamodb.scan(TableName=orders)["Items"]) == IN_ORDER
    pages = world.dynamodb.get_paginator("scan").paginate(TableName=orders, PaginationConfig={"PageSize": 2})
    assert [_numbers(page["Items"]) for page in pages] == [["-5", "2.5"], ["3", "16"], ["200"]]
    # an item that is overwritten keeps its place
    world.dynamodb.put_item(TableName=orders, Item={"pk": {"S": "a"}, "number": {"N": "16"}})
    assert _numbers(world.dynamodb.scan(TableName=orders)["Items"]) == IN_ORDER


def test_statement_has_numeric_sort_keys_in_the_order_of_numbers(world: World, orders: str) -> None:
    found = world.dynamodb.execute_statement(Statement="SELECT * FROM \"{}\" WHERE pk = 'a'".replace("{}", orders))
    assert _numbers(found["Items"]) == IN_ORDER


@pytest.mark.parametrize("name", ['"{table}"."by_state"', "{table}.by_state"])
def test_statement_reads_an_index(world: World, name: str) -> None:
    table = "orders_by_state"
    world.dynamodb.create_table(
        TableName=table,
        **keyed("pk", others=["state"]),
        ProvisionedThroughput=units(5, 6),
        GlobalSecondaryIndexes=[projecting("by_state", "state", ProvisionedThroughput=units(7, 8))],
    )
    world.dynamodb.put_item(TableName=table, Item={"pk": {"S": "1"}, "state": {"S": "new"}})
    world.dynamodb.put_item(TableName=table, Item={"pk": {"S": "2"}, "state": {"S": "old"}})
    statement = "SELECT pk FROM index WHERE state='old'"
    found = world.dynamodb.execute_statement(Statement=statement.replace("index", name.format(table=table)))
    assert found["Items"] == [{"pk": {"S": "2"}}]


KEY: dict[str, Any] = {"KeyConditionExpression": "#s = :s", "ExpressionAttributeNames": {"#s": "state"}}
KEY |= {"ExpressionAttributeValues": {":s": {"S": "new"}}, "IndexName": "by_state"}
SCAN: dict[str, Any] = {"IndexName": "by_state"}
PROJECTS = "One or more parameter values were invalid: Global secondary index by_state does not project "


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "query",
            KEY | {"Select": "ALL_ATTRIBUTES"},
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
            "secondary index by_state because its projection type is not ALL",
        ),
        (
            "scan",
            SCAN | {"Select": "ALL_ATTRIBUTES"},
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
            "secondary index by_state because its projection type is not ALL",
        ),
        ("query", KEY | {"ProjectionExpression": "city, other.part, pk"}, f"{PROJECTS}[other]"),
        ("scan", SCAN | {"AttributesToGet": ["sum", "city", "lost"]}, f"{PROJECTS}[sum, lost]"),
        (
            "query",
            KEY | {"FilterExpression": "attribute_exists(city) AND #s <> :s"},
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: state",
        ),
    ],
)
def test_what_an_index_cannot_give_is_refused(
    world: World, orders: str, operation: str, request_: dict[str, Any], message: str
) -> None:
    with refused("ValidationException", message):
        getattr(world.dynamodb, operation)(TableName=orders, **request_)


def test_what_an_index_can_give_is_answered(world: World, orders: str) -> None:
    found = world.dynamodb.query(TableName=orders, **KEY, ProjectionExpression="city, pk", FilterExpression="pk = :s")
    assert found["ScannedCount"] == 5
    found = world.dynamodb.query(TableName=orders, **KEY, FilterExpression="not attribute_exists(city.#s)")
    assert found["Count"] == 5


@pytest.mark.parametrize(
    ("projection", "told"),
    [
        ({"ProjectionType": "ALL", "NonKeyAttributes": ["city"]}, "ALL, but NonKeyAttributes is specified"),
        ({"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["city"]}, "KEYS_ONLY, but NonKeyAttributes is specified"),
        ({"ProjectionType": "INCLUDE"}, "INCLUDE, but NonKeyAttributes is not specified"),
    ],
)
def test_projections_that_contradict_themselves_are_refused(
    world: World, orders: str, projection: dict[str, Any], told: str
) -> None:
    index = index_definition("by_city", 5, 6) | {"Projection": projection}
    message = f"One or more parameter values were invalid: ProjectionType is {told}"
    with refused("ValidationException", message):
        world.dynamodb.update_table(
            TableName=orders, AttributeDefinitions=attributes("city"), GlobalSecondaryIndexUpdates=[{"Create": index}]
        )
    members = keyed("city") | {"ProvisionedThroughput": units(5, 6), "GlobalSecondaryIndexes": [index]}
    with refused("ValidationException", message):
        world.dynamodb.create_table(TableName="cities", **members)


def test_functions_in_an_expression_are_no_attributes_nor_is_a_part_of_their_names() -> None:
    names = {"ExpressionAttributeNames": {"#d": "day"}}
    assert attributes_of("attribute_exists(city) AND size (#d) > :n", names) == ["city", "day"]
