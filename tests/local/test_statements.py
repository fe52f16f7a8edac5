"""SELECT of PartiQL on tables and indexes: its order, its pages and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.world import World, invalid, keyed, projecting, refused, units

# as text they would be -1, 16, 2.5, 200, 3, 7
BY_NUMBER = ["-1", "2.5", "3", "7", "16", "200"]
# the same items in the order of the table's own key, which is their rank here
RANKS = {"16": "10", "3": "9", "200": "1", "-1": "2", "2.5": "-4", "7": "100"}
BY_RANK = ["2.5", "200", "-1", "3", "16", "7"]


@pytest.fixture(autouse=True)
def numbers(world: World) -> None:
    """A table with a numeric sort key, a global and a local index by another number."""
    world.dynamodb.create_table(
        TableName="numbers",
        **keyed("pk", "rank:N", others=["kind", "number:N"]),
        ProvisionedThroughput=units(500, 600),
        GlobalSecondaryIndexes=[projecting("by-kind", "kind", "number", ProvisionedThroughput=units(70, 80))],
        LocalSecondaryIndexes=[projecting("by-number", "pk", "number", to=["city"])],
    )
    for number, rank in RANKS.items():
        item = {"pk": {"S": "a"}, "kind": {"S": "k"}, "fill": {"S": "x" * 3_000}}
        item |= {"rank": {"N": rank}, "number": {"N": number}, "sum": {"N": number}}
        world.dynamodb.put_item(TableName="numbers", Item=item)


def _found(items: list[dict[str, Any]]) -> list[str]:
    return [item["sum"]["N"] for item in items]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ('FROM "numbers"."by-kind" WHERE kind = \'k\'', BY_NUMBER),
        ('FROM "numbers"."by-kind" WHERE kind = \'k\' ORDER BY number DESC', BY_NUMBER[::-1]),
        ('FROM "numbers"."by-kind" WHERE kind = \'k\' AND number BETWEEN 3 AND 16', ["3", "7", "16"]),
        ('FROM "numbers"."by-kind"', BY_NUMBER),
        ('FROM "numbers"."by-number" WHERE pk = \'a\' ORDER BY number', BY_NUMBER),
        ("FROM numbers WHERE pk = 'a'", BY_RANK),
        ("FROM numbers WHERE pk = 'a' ORDER BY rank DESC", BY_RANK[::-1]),
        ("FROM numbers WHERE pk IN ['a', 'b'] AND rank > 1", ["-1", "3", "16", "7"]),
        ("FROM numbers", BY_RANK),
    ],
)
def test_select_has_the_order_of_the_numbers_of_its_key(world: World, statement: str, expected: list[str]) -> None:
    assert _found(world.dynamodb.execute_statement(Statement=f"SELECT sum {statement}")["Items"]) == expected
    # and the same in pages of two items
    pages: list[list[str]] = []
    token: dict[str, str] = {}
    while True:
        page = world.dynamodb.execute_statement(Statement=f"SELECT sum {statement}", Limit=2, **token)
        pages.append(_found(page["Items"]))
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert [len(page) for page in pages[:-1]] == [2] * (len(pages) - 1)
    assert [number for page in pages for number in page] == expected


def test_limit_counts_the_items_that_are_read_not_those_that_are_answered(world: World) -> None:
    statement = 'SELECT sum FROM "numbers"."by-kind" WHERE kind = \'k\' AND rank > 9'
    page = world.dynamodb.execute_statement(Statement=statement, Limit=4)
    assert (_found(page["Items"]), "NextToken" in page) == (["7"], True)
    page = world.dynamodb.execute_statement(Statement=statement, Limit=4, NextToken=page["NextToken"])
    assert (_found(page["Items"]), "NextToken" in page) == (["16"], False)


def test_wrong_limits_and_tokens_are_refused(world: World) -> None:
    with refused("ValidationException", invalid(("0", "limit", "have value greater than or equal to 1"))):
        world.dynamodb.execute_statement(Statement="SELECT * FROM numbers", Limit=0)
    token = world.dynamodb.execute_statement(Statement="SELECT * FROM numbers", Limit=1)["NextToken"]
    for wrong, statement in (("nonsense", "SELECT * FROM numbers"), (token, 'SELECT * FROM "numbers"."by-kind"')):
        with refused("ValidationException", "The provided NextToken is invalid"):
            world.dynamodb.execute_statement(Statement=statement, NextToken=wrong)


def _cost(answer: dict[str, Any]) -> dict[str, float]:
    consumed = answer["ConsumedCapacity"]
    indexes = consumed.get("GlobalSecondaryIndexes", {}) | consumed.get("LocalSecondaryIndexes", {})
    each = {"table": consumed["Table"]} | indexes
    return {name: part["CapacityUnits"] for name, part in each.items() if part["CapacityUnits"]}


def test_select_pays_for_the_page_that_it_reads(world: World) -> None:
    def run(statement: str, **more: Any) -> dict[str, float]:
        return _cost(world.dynamodb.execute_statement(Statement=statement, ReturnConsumedCapacity="INDEXES", **more))

    # six items of 3 KB are five units of 4 KB, eventually consistent
    assert run('SELECT * FROM "numbers"."by-kind" WHERE kind = \'k\'') == {"by-kind": 2.5}
    assert run('SELECT * FROM "numbers"."by-kind" WHERE kind = \'k\'', Limit=1) == {"by-kind": 0.5}
    assert run("SELECT * FROM numbers WHERE pk = 'a' AND rank > 9", ConsistentRead=True) == {"table": 2}
    # what the local index does not contain is fetched, item by item
    assert run('SELECT city FROM "numbers"."by-number" WHERE pk = \'a\'') == {"by-number": 0.5}
    assert run('SELECT sum FROM "numbers"."by-number" WHERE pk = \'a\'') == {"by-number": 0.5, "table": 3}


@pytest.mark.parametrize(
    "asked", [{"ProjectionExpression": "#s"}, {"AttributesToGet": ["sum"]}, {"Select": "ALL_ATTRIBUTES"}]
)
def test_query_of_a_local_index_fetches_what_the_index_does_not_contain(world: World, asked: dict[str, Any]) -> None:
    names = {"ExpressionAttributeNames": {"#s": "sum"}} if "ProjectionExpression" in asked else {}
    key: dict[str, Any] = {"pk": {"AttributeValueList": [{"S": "a"}], "ComparisonOperator": "EQ"}}
    by_key = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
    condition = {"KeyConditions": key} if "AttributesToGet" in asked else by_key
    more = {"TableName": "numbers", "IndexName": "by-number", "ReturnConsumedCapacity": "INDEXES"} | condition | names
    answer = world.dynamodb.query(**more, **asked)
    assert _found(answer["Items"]) == BY_NUMBER
    assert _cost(answer) == {"by-number": 0.5, "table": 3}


def test_query_of_a_local_index_gets_what_it_contains_from_there(world: World) -> None:
    by_key = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
    more = {"TableName": "numbers", "IndexName": "by-number", "ReturnConsumedCapacity": "INDEXES"} | by_key
    choices: list[dict[str, str]] = [{}, {"ProjectionExpression": "city, pk"}, {"Select": "ALL_PROJECTED_ATTRIBUTES"}]
    for asked in choices:
        answer = world.dynamodb.query(**more, **asked)
        assert _cost(answer) == {"by-number": 0.5}
        assert "sum" not in answer["Items"][0]
