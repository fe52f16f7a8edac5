"""What requests cost: worked examples of the developer guide's rules, asked over HTTP by boto3.

Amazon DynamoDB Developer Guide, "DynamoDB read and write operations": reads in started 4 KB, writes in started 1 KB,
eventually consistent reads half, transactions double; an index pays for the part of the item that it holds.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import create_tables, keyed, projecting, units, written

pytestmark = pytest.mark.xdist_group("cloud")
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def dynamodb(cloud: LocalCloud) -> Any:
    return cloud.client("dynamodb")


@pytest.fixture
def table(dynamodb: Any) -> str:
    """A table with a global index over everything, one that includes `note`, and a local index of keys alone."""
    name = f"orders-{next(_NUMBERS)}"
    throughput = {"ProvisionedThroughput": units(700, 900)}
    dynamodb.create_table(
        TableName=name,
        **keyed("pk", "sk", others=["status", "day"]),
        **throughput,
        GlobalSecondaryIndexes=[
            projecting("by_status", "status", **throughput),
            projecting("notes", "day", to=["note"], **throughput),
        ],
        LocalSecondaryIndexes=[projecting("own_days", "pk", "day", to="KEYS_ONLY")],
    )
    return name


def _item(size: int = 0, /, **attributes: str) -> dict[str, Any]:
    """An item of just *size* bytes, keys and names included; of its attributes alone where that is 0."""
    item = {"pk": "p", "sk": "s"} | attributes
    if size:
        item["fill"] = "x" * (size - sum(len(name) + len(value) for name, value in item.items()) - len("fill"))
    return {name: {"S": value} for name, value in item.items()}


KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def _units(answer: dict[str, Any]) -> dict[str, float]:
    """Units by table and index."""
    capacity = answer["ConsumedCapacity"]
    capacity = capacity[0] if isinstance(capacity, list) else capacity
    found = {"table": capacity["Table"]["CapacityUnits"]}
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        found |= {name: units["CapacityUnits"] for name, units in capacity.get(member, {}).items()}
    assert capacity["CapacityUnits"] == sum(found.values())
    return found


@pytest.mark.parametrize(
    ("size", "units"), [(1, 1), (1_023, 1), (1_024, 1), (1_025, 2), (2_048, 2), (2_049, 3), (102_400, 100)]
)
def test_put_costs_a_unit_for_each_started_kilobyte(dynamodb: Any, table: str, size: int, units: int) -> None:
    item = _item(size) if size > 20 else _item()
    answer = dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="INDEXES")
    assert _units(answer) == {"table": units}


@pytest.mark.parametrize(("size", "strong"), [(0, 1), (4_095, 1), (4_096, 1), (4_097, 2), (8_193, 3), (40_960, 10)])
def test_get_costs_a_unit_for_each_started_four_kilobytes(dynamodb: Any, table: str, size: int, strong: int) -> None:
    if size:
        dynamodb.put_item(TableName=table, Item=_item(size))
    for is_consistent, cost in ((True, strong), (False, strong / 2)):
        answer = dynamodb.get_item(
            TableName=table, Key=KEY, ConsistentRead=is_consistent, ReturnConsumedCapacity="INDEXES"
        )
        assert _units(answer) == {"table": cost}
    # what is not shown is read all the same
    answer = dynamodb.get_item(
        TableName=table, Key=KEY, ProjectionExpression="pk", ConsistentRead=True, ReturnConsumedCapacity="INDEXES"
    )
    assert _units(answer) == {"table": strong}


def test_write_costs_the_larger_of_before_and_after(dynamodb: Any, table: str) -> None:
    options = {"TableName": table, "ReturnConsumedCapacity": "INDEXES"}
    assert _units(dynamodb.put_item(Item=_item(3_500), **options)) == {"table": 4}
    assert _units(dynamodb.put_item(Item=_item(500), **options)) == {"table": 4}
    grow = {"UpdateExpression": "SET fill = :f", "ExpressionAttributeValues": {":f": {"S": "y" * 2_500}}}
    assert _units(dynamodb.update_item(Key=KEY, **grow, **options)) == {"table": 3}
    shrink = {"UpdateExpression": "SET fill = :f", "ExpressionAttributeValues": {":f": {"S": "y"}}}
    assert _units(dynamodb.update_item(Key=KEY, **shrink, **options)) == {"table": 3}
    assert _units(dynamodb.put_item(Item=_item(5_000), **options)) == {"table": 5}
    assert _units(dynamodb.delete_item(Key=KEY, **options)) == {"table": 5}
    assert _units(dynamodb.delete_item(Key=KEY, **options)) == {"table": 1}, "what is not there costs one"


def test_failed_condition_costs_what_the_item_is(cloud: LocalCloud, dynamodb: Any, table: str) -> None:
    dynamodb.put_item(TableName=table, Item=_item(2_500))
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.put_item(TableName=table, Item=_item(100), ConditionExpression="attribute_not_exists(pk)")
    assert written(cloud, table) == 3 + 3


@pytest.mark.parametrize(
    ("before", "after", "indexes"),
    [
        (None, {"status": "new"}, {"by_status": 1}),
        (None, {}, {}),
        ({"status": "new"}, {"status": "new"}, {}),
        ({"status": "new"}, {"status": "new", "more": "m"}, {"by_status": 1}),
        ({"status": "new"}, {"status": "sent"}, {"by_status": 2}),
        ({"status": "new"}, {}, {"by_status": 1}),
        ({"status": "new"}, None, {"by_status": 1}),
        (None, {"day": "mon", "note": "n"}, {"notes": 1, "own_days": 1}),
        ({"day": "mon", "note": "n"}, {"day": "mon", "note": "o"}, {"notes": 1}),
        ({"day": "mon", "note": "n"}, {"day": "mon", "note": "n", "more": "m"}, {}),
        ({"day": "mon"}, {"day": "tue"}, {"notes": 2, "own_days": 2}),
        (None, {"status": "new", "fill": "z" * 3_000}, {"by_status": 3}),
        ({"status": "new", "fill": "z" * 3_000}, {"status": "sent", "fill": "z" * 1_500}, {"by_status": 5}),
        (None, {"day": "mon", "note": "n", "fill": "z" * 3_000}, {"notes": 1, "own_days": 1}),
    ],
)
def test_index_pays_for_what_changes_in_it(
    dynamodb: Any, table: str, before: dict[str, str] | None, after: dict[str, str] | None, indexes: dict[str, float]
) -> None:
    if before is not None:
        dynamodb.put_item(TableName=table, Item=_item(**before))
    if after is None:
        answer = dynamodb.delete_item(TableName=table, Key=KEY, ReturnConsumedCapacity="INDEXES")
    else:
        answer = dynamodb.put_item(TableName=table, Item=_item(**after), ReturnConsumedCapacity="INDEXES")
    found = _units(answer)
    del found["table"]
    assert found == indexes


def _fill(dynamodb: Any, table: str, count: int, size: int, *, first: int = 0, **attributes: str) -> None:
    for number in range(first, first + count):
        item = _item(size, sk=f"{number:04}", **attributes)
        dynamodb.put_item(TableName=table, Item=item)


def test_query_rounds_its_page_once_and_filters_afterwards(dynamodb: Any, table: str) -> None:
    _fill(dynamodb, table, 10, 900, status="new")
    query = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ReturnConsumedCapacity": "INDEXES",
    }
    # 9,000 bytes are three times 4 KB
    assert _units(dynamodb.query(**query, ConsistentRead=True)) == {"table": 3}
    assert _units(dynamodb.query(**query)) == {"table": 1.5}
    filtered = query | {
        "FilterExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":p": {"S": "p"}, ":s": {"S": "none"}},
    }
    answer = dynamodb.query(**filtered, ConsistentRead=True)
    assert (answer["Count"], _units(answer)) == (0, {"table": 3})
    # five items are 4,500 bytes
    assert _units(dynamodb.query(**query, ConsistentRead=True, Limit=5)) == {"table": 2}
    assert _units(dynamodb.query(**query, ConsistentRead=True, Select="COUNT")) == {"table": 3}
    nothing = query | {"ExpressionAttributeValues": {":p": {"S": "nobody"}}}
    assert _units(dynamodb.query(**nothing)) == {"table": 0.5}


def test_query_of_an_index_is_charged_to_the_index(dynamodb: Any, table: str) -> None:
    _fill(dynamodb, table, 6, 1_500, status="new", day="mon", note="n")
    query = {"TableName": table, "ReturnConsumedCapacity": "INDEXES"}
    by_status = {"KeyConditionExpression": "#s = :s", "ExpressionAttributeNames": {"#s": "status"}}
    answer = dynamodb.query(IndexName="by_status", ExpressionAttributeValues={":s": {"S": "new"}}, **by_status, **query)
    assert _units(answer) == {"table": 0, "by_status": 1.5}
    # keys and a note are a few bytes
    by_day = {"KeyConditionExpression": "#d = :d", "ExpressionAttributeNames": {"#d": "day"}}
    answer = dynamodb.query(IndexName="notes", ExpressionAttributeValues={":d": {"S": "mon"}}, **by_day, **query)
    assert _units(answer) == {"table": 0, "notes": 0.5}
    answer = dynamodb.query(
        IndexName="own_days",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": "p"}},
        ConsistentRead=True,
        **query,
    )
    assert _units(answer) == {"table": 0, "own_days": 1}


def test_scan_costs_its_pages_and_each_empty_partition(dynamodb: Any) -> None:
    name = f"wide-{next(_NUMBERS)}"
    # 3,000 reads and 3,000 writes need four partitions
    create_tables(dynamodb, units(3_000, 3_000), **{name: ["pk", "sk"]})
    scan = {"TableName": name, "ReturnConsumedCapacity": "INDEXES"}
    assert _units(dynamodb.scan(**scan)) == {"table": 2}
    assert _units(dynamodb.scan(**scan, ConsistentRead=True)) == {"table": 4}
    _fill(dynamodb, name, 10, 900)
    # 9,000 bytes in one partition, three are empty
    assert _units(dynamodb.scan(**scan, ConsistentRead=True)) == {"table": 3 + 3}
    first = dynamodb.scan(**scan, ConsistentRead=True, Limit=4)
    assert _units(first) == {"table": 1}
    rest = dynamodb.scan(**scan, ConsistentRead=True, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert _units(rest) == {"table": 2 + 3}


def test_page_of_a_megabyte(cloud: LocalCloud, dynamodb: Any, table: str) -> None:
    _fill(dynamodb, table, 3, 200_000)
    # a partition takes a thousand units in a second
    cloud.step(1)
    _fill(dynamodb, table, 3, 200_000, first=3)
    answer = dynamodb.scan(TableName=table, ReturnConsumedCapacity="INDEXES")
    # five of them fit into a megabyte: 1,000,000 bytes are 245 times 4 KB
    assert (answer["Count"], _units(answer)) == (5, {"table": 122.5})


def test_batches_round_each_item(dynamodb: Any, table: str) -> None:
    puts = [{"PutRequest": {"Item": _item(1_100, sk=str(number))}} for number in range(5)]
    deletes = [{"DeleteRequest": {"Key": {"pk": {"S": "p"}, "sk": {"S": "none"}}}}]
    answer = dynamodb.batch_write_item(RequestItems={table: puts + deletes}, ReturnConsumedCapacity="INDEXES")
    assert (_units(answer), answer["UnprocessedItems"]) == ({"table": 5 * 2 + 1}, {})
    keys = [{"pk": {"S": "p"}, "sk": {"S": str(number)}} for number in range(7)]
    for is_consistent, cost in ((True, 7), (False, 3.5)):
        answer = dynamodb.batch_get_item(
            RequestItems={table: {"Keys": keys, "ConsistentRead": is_consistent}}, ReturnConsumedCapacity="INDEXES"
        )
        assert (len(answer["Responses"][table]), _units(answer)) == (5, {"table": cost})


def test_transactions_cost_twice(dynamodb: Any, table: str) -> None:
    put = {"Put": {"TableName": table, "Item": _item(1_500, status="new")}}
    token = {"ClientRequestToken": f"token-{table}", "ReturnConsumedCapacity": "INDEXES"}
    first = dynamodb.transact_write_items(TransactItems=[put], **token)
    assert _units(first) == {"table": 4, "by_status": 2}
    assert first["ConsumedCapacity"][0]["WriteCapacityUnits"] == 6
    again = dynamodb.transact_write_items(TransactItems=[put], **token)
    assert (again["ConsumedCapacity"][0]["ReadCapacityUnits"], _units(again)) == (2, {"table": 2})
    check = {"ConditionCheck": {"TableName": table, "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}}
    other = {"Put": {"TableName": table, "Item": _item(500, sk="other")}}
    answer = dynamodb.transact_write_items(TransactItems=[check, other], ReturnConsumedCapacity="INDEXES")
    assert _units(answer) == {"table": 4 + 2}
    get = {"Get": {"TableName": table, "Key": KEY}}
    missing = {"Get": {"TableName": table, "Key": {"pk": {"S": "p"}, "sk": {"S": "missing"}}}}
    answer = dynamodb.transact_get_items(TransactItems=[get, missing], ReturnConsumedCapacity="INDEXES")
    assert _units(answer) == {"table": 4}


def test_statements_cost_what_the_operations_cost(dynamodb: Any, table: str) -> None:
    def run(statement: str, **more: Any) -> dict[str, float]:
        text = statement.replace("ORDERS", f'"{table}"')
        return _units(dynamodb.execute_statement(Statement=text, ReturnConsumedCapacity="INDEXES", **more))

    item = "{'pk':'p','sk':'s','status':'new','fill':'FILL'}".replace("FILL", "x" * 1_500)
    assert run(f"INSERT INTO ORDERS VALUE {item}") == {"table": 2, "by_status": 2}
    assert run("SELECT * FROM ORDERS WHERE pk='p' AND sk='s'", ConsistentRead=True) == {"table": 1}
    assert run("SELECT * FROM ORDERS WHERE pk='p'") == {"table": 0.5}
    assert run("UPDATE ORDERS SET status='sent' WHERE pk='p' AND sk='s'") == {"table": 2, "by_status": 4}
    one = {"Statement": "SELECT * FROM ORDERS WHERE pk='p' AND sk='s'".replace("ORDERS", f'"{table}"')}
    answer = dynamodb.batch_execute_statement(Statements=[one, one], ReturnConsumedCapacity="INDEXES")
    assert _units(answer) == {"table": 1}
    assert run("DELETE FROM ORDERS WHERE pk='p' AND sk='s'") == {"table": 2, "by_status": 2}
    assert run("DELETE FROM ORDERS WHERE pk='p' AND sk='s'") == {"table": 1}


def test_total_alone_and_none(dynamodb: Any, table: str) -> None:
    item = _item(status="new")
    total = dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
    assert total == {"TableName": table, "CapacityUnits": 2.0}
    assert "ConsumedCapacity" not in dynamodb.put_item(TableName=table, Item=item)


def test_statement_that_inserts_what_is_there_costs_the_item_that_is_there(cloud: LocalCloud, dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/partiql_failure_metrics: 9,216 bytes, nine units."""
    name = f"orders-{next(_NUMBERS)}"
    create_tables(dynamodb, units(700, 900), **{name: ["pk"]})
    dynamodb.put_item(TableName=name, Item={"pk": {"S": "p"}, "fill": {"S": "x" * 9_209}})
    statement = f"INSERT INTO \"{name}\" VALUE {{'pk': 'p'}}"
    with pytest.raises(dynamodb.exceptions.DuplicateItemException):
        dynamodb.execute_statement(Statement=statement)
    with pytest.raises(dynamodb.exceptions.TransactionCanceledException, match=r"specific reasons \[DuplicateItem\]$"):
        dynamodb.execute_transaction(TransactStatements=[{"Statement": statement}])
    assert written(cloud, name) == 9 + 9 + 18
