"""What a strict cloud asks of a role for operations on items: for transactions and PartiQL, and leading keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import TRUST, dynamodb_as, keyed, policy, projecting, refused, unique, units

pytestmark = pytest.mark.xdist_group("item permissions")
CLOUD = {"is_strict": True}
ORDERS = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/orders"
BY_DAY = f"{ORDERS}/index/by-day"
KEY = {"pk": {"S": "7"}}
ITEM = KEY | {"day": {"S": "monday"}}
OTHER = {"pk": {"S": "8"}, "day": {"S": "tuesday"}}
CHECK = {"TableName": "orders", "Key": KEY, "ConditionExpression": "attribute_not_exists(x)"}
ONE = {":one": {"N": "1"}}
UPDATE = {"TableName": "orders", "Key": KEY, "UpdateExpression": "SET a = pk"}


@dataclass(frozen=True)
class Caller:
    """A client of DynamoDB with the credentials of a role."""

    role: str
    dynamodb: Any

    def refused(self, action: str, arn: str) -> AbstractContextManager[None]:
        """The call inside is refused, as no policy of the role allows that action on that resource."""
        return refused(
            "AccessDeniedException",
            f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{self.role}/session is not authorized to perform: "
            f"dynamodb:{action} on resource: {arn} because no identity-based policy allows the dynamodb:{action} "
            "action",
        )


AsRole = Callable[..., Caller]


@pytest.fixture(scope="module", autouse=True)
def _orders(clients: dict[str, Any]) -> None:
    clients["dynamodb"].create_table(
        TableName="orders",
        **keyed("pk", others=["day"]),
        ProvisionedThroughput=units(50, 60),
        GlobalSecondaryIndexes=[projecting("by-day", "day", ProvisionedThroughput=units(50, 60))],
    )


@pytest.fixture(autouse=True)
def _items_are_there(clients: dict[str, Any]) -> None:
    """Whatever tests before have written and deleted."""
    for item in (ITEM, {"pk": {"S": "11"}}):
        clients["dynamodb"].put_item(TableName="orders", Item=item)


@pytest.fixture(scope="module")
def as_role(cloud: LocalCloud) -> AsRole:
    """Make a role that may do some actions on a resource, and a client of DynamoDB with its credentials."""
    iam, sts = cloud.client("iam"), cloud.client("sts")

    def caller(actions: list[str], resource: str = ORDERS, condition: dict[str, Any] | None = None) -> Caller:
        name = unique("role")
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
        statement: dict[str, Any] = {"Resource": resource, "Action": [f"dynamodb:{action}" for action in actions]}
        statement |= {"Condition": condition} if condition else {}
        iam.put_role_policy(RoleName=name, PolicyName="items", PolicyDocument=json.dumps(policy(statement)))
        return Caller(name, dynamodb_as(cloud, sts, name))

    return caller


@pytest.mark.parametrize(
    ("operation", "action", "members"),
    [
        ("transact_write_items", "PutItem", [{"Put": {"TableName": "orders", "Item": ITEM}}]),
        ("transact_write_items", "UpdateItem", [{"Update": UPDATE}]),
        ("transact_write_items", "DeleteItem", [{"Delete": {"TableName": "orders", "Key": KEY}}]),
        ("transact_write_items", "ConditionCheckItem", [{"ConditionCheck": CHECK}]),
        ("transact_get_items", "GetItem", [{"Get": {"TableName": "orders", "Key": KEY}}]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_transaction_needs_what_each_of_its_items_needs(
    as_role: AsRole, operation: str, action: str, members: list[dict[str, Any]]
) -> None:
    allowed, other = as_role([action]), as_role(["TransactWriteItems", "TransactGetItems", "Query"])
    getattr(allowed.dynamodb, operation)(TransactItems=members)
    with other.refused(action, ORDERS):
        getattr(other.dynamodb, operation)(TransactItems=members)


def test_transaction_needs_all_its_actions_and_tables(as_role: AsRole) -> None:
    caller = as_role(["PutItem", "GetItem"])
    put = {"Put": {"TableName": "orders", "Item": OTHER}}
    with caller.refused("UpdateItem", ORDERS):
        caller.dynamodb.transact_write_items(TransactItems=[put, {"Update": UPDATE}])
    with caller.refused("PutItem", ORDERS.replace("orders", "others")):
        caller.dynamodb.transact_write_items(TransactItems=[put, {"Put": {"TableName": "others", "Item": OTHER}}])


def test_transactions_can_be_told_from_single_operations(as_role: AsRole) -> None:
    """A policy that allows the actions in transactions only."""
    condition = {"ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactGetItems"]}}
    caller = as_role(["GetItem"], condition=condition)
    caller.dynamodb.transact_get_items(TransactItems=[{"Get": {"TableName": "orders", "Key": KEY}}])
    with caller.refused("GetItem", ORDERS):
        caller.dynamodb.get_item(TableName="orders", Key=KEY)


@pytest.mark.parametrize(
    ("action", "statement", "arn"),
    [
        ("PartiQLSelect", "SELECT * FROM orders WHERE pk = '7'", ORDERS),
        ("PartiQLSelect", 'SELECT * FROM "orders"."by-day" WHERE day = \'monday\'', BY_DAY),
        ("PartiQLInsert", "INSERT INTO orders VALUE {'pk': '9'}", ORDERS),
        ("PartiQLUpdate", "UPDATE orders SET a = 1 WHERE pk = '11'", ORDERS),
        ("PartiQLDelete", "DELETE FROM orders WHERE pk = '9'", ORDERS),
    ],
    ids=["select", "index", "insert", "update", "delete"],
)
def test_statement_needs_its_own_action(as_role: AsRole, action: str, statement: str, arn: str) -> None:
    allowed, other = as_role([action], arn), as_role(["ExecuteStatement", "PutItem", "GetItem"], "*")
    allowed.dynamodb.execute_statement(Statement=statement)
    with other.refused(action, arn):
        other.dynamodb.execute_statement(Statement=statement)


def test_batches_of_statements_need_what_each_statement_needs(as_role: AsRole) -> None:
    caller = as_role(["PartiQLInsert", "PartiQLDelete"])
    insert = {"Statement": "INSERT INTO orders VALUE {'pk': ?}", "Parameters": [{"S": "10"}]}
    delete = {"Statement": "DELETE FROM orders WHERE pk = '10'"}
    select = {"Statement": "SELECT * FROM orders WHERE pk = '10'"}
    caller.dynamodb.batch_execute_statement(Statements=[insert])
    caller.dynamodb.execute_transaction(TransactStatements=[delete])
    with caller.refused("PartiQLSelect", ORDERS):
        caller.dynamodb.batch_execute_statement(Statements=[insert, select])
    with caller.refused("PartiQLSelect", ORDERS):
        caller.dynamodb.execute_transaction(TransactStatements=[select])


def test_statement_that_reads_a_whole_table_can_be_refused(as_role: AsRole) -> None:
    caller = as_role(["PartiQLSelect"], condition={"Bool": {"dynamodb:FullTableScan": "false"}})
    caller.dynamodb.execute_statement(Statement="SELECT * FROM orders WHERE pk IN ['7', '8']")
    with caller.refused("PartiQLSelect", ORDERS):
        caller.dynamodb.execute_statement(Statement="SELECT * FROM orders WHERE a = 1")


def _query(value: str, **more: Any) -> dict[str, Any]:
    condition = {"KeyConditionExpression": "#key = :key", "ExpressionAttributeNames": {"#key": "pk"}}
    return {"TableName": "orders", **condition, "ExpressionAttributeValues": {":key": {"S": value}}} | more


def _older_query(value: str) -> dict[str, Any]:
    condition = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": value}]}
    return {"TableName": "orders", "KeyConditions": {"pk": condition}}


def _index_query(value: str) -> dict[str, Any]:
    return _query(value, IndexName="by-day", ExpressionAttributeNames={"#key": "day"})


def _keys(*keys: dict[str, Any]) -> dict[str, Any]:
    return {"RequestItems": {"orders": {"Keys": list(keys)}}}


def _writes(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"RequestItems": {"orders": [{"PutRequest": {"Item": ITEM}}, *requests]}}


def _put(item: dict[str, Any]) -> dict[str, Any]:
    return {"TransactItems": [{"Put": {"TableName": "orders", "Item": item}}]}


def _select(key: str) -> dict[str, str]:
    return {"Statement": "SELECT * FROM orders WHERE pk = 'KEY'".replace("KEY", key)}


def _insert(key: str) -> dict[str, str]:
    return {"Statement": "INSERT INTO orders VALUE {'pk': 'KEY'}".replace("KEY", key)}


EIGHT = {"pk": {"S": "8"}}
GET = {"TableName": "orders", "Key": KEY}


@pytest.mark.parametrize(
    ("operation", "action", "arn", "own", "others"),
    [
        pytest.param("query", "Query", ORDERS, _query("7"), _query("8"), id="query"),
        pytest.param("query", "Query", ORDERS, _older_query("7"), _older_query("8"), id="query-of-old"),
        pytest.param("query", "Query", BY_DAY, _index_query("monday"), _index_query("tuesday"), id="query-of-index"),
        ("batch_get_item", "BatchGetItem", ORDERS, _keys(KEY), _keys(KEY, EIGHT)),
        ("batch_write_item", "BatchWriteItem", ORDERS, _writes(), _writes({"DeleteRequest": {"Key": EIGHT}})),
        ("transact_write_items", "PutItem", ORDERS, _put(ITEM), _put(OTHER)),
        ("execute_statement", "PartiQLSelect", ORDERS, _select("7"), _select("8")),
        ("execute_statement", "PartiQLInsert", ORDERS, _insert("monday"), _insert("8")),
        ("get_item", "GetItem", ORDERS, GET, GET | {"Key": EIGHT}),
    ],
    ids=lambda value: value if isinstance(value, str) and ":" not in value else "",
)
def test_policy_may_allow_some_partition_keys_only(
    as_role: AsRole, operation: str, action: str, arn: str, own: dict[str, Any], others: dict[str, Any]
) -> None:
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["7", "monday"]}}
    caller = as_role([action], arn, condition)
    getattr(caller.dynamodb, operation)(**own)
    with caller.refused(action, arn):
        getattr(caller.dynamodb, operation)(**others)


WRITE_A = {"TableName": "orders", "Key": KEY, "UpdateExpression": "SET a = :one", "ExpressionAttributeValues": ONE}


@pytest.mark.parametrize(
    ("operation", "action", "own", "others"),
    [
        ("update_item", "UpdateItem", WRITE_A, WRITE_A | {"UpdateExpression": "SET a = :one, b = :one"}),
        (
            "update_item",
            "UpdateItem",
            WRITE_A | {"ReturnValues": "ALL_NEW", "ConditionExpression": "attribute_not_exists(a) OR a = :one"},
            WRITE_A | {"ConditionExpression": "size(#b) > :one", "ExpressionAttributeNames": {"#b": "b"}},
        ),
        (
            "update_item",
            "UpdateItem",
            WRITE_A
            | {"UpdateExpression": "SET #x = if_not_exists(a.c, :one)", "ExpressionAttributeNames": {"#x": "a"}},
            WRITE_A | {"UpdateExpression": "SET a = :one REMOVE b.c[0]"},
        ),
        (
            "update_item",
            "UpdateItem",
            {"TableName": "orders", "Key": KEY, "AttributeUpdates": {"a": {"Value": ONE[":one"]}}},
            {"TableName": "orders", "Key": KEY, "AttributeUpdates": {"b": {"Value": ONE[":one"]}}},
        ),
        (
            "put_item",
            "PutItem",
            {"TableName": "orders", "Item": KEY | {"a": ONE[":one"]}},
            {"TableName": "orders", "Item": KEY | {"b": ONE[":one"]}},
        ),
        (
            "get_item",
            "GetItem",
            {"TableName": "orders", "Key": KEY, "ProjectionExpression": "pk, a"},
            {"TableName": "orders", "Key": KEY, "AttributesToGet": ["a", "b"]},
        ),
    ],
    ids=["update", "condition", "path", "older update", "put", "get"],
)
def test_policy_may_allow_some_attributes_only(
    as_role: AsRole, operation: str, action: str, own: dict[str, Any], others: dict[str, Any]
) -> None:
    condition = {"ForAllValues:StringLike": {"dynamodb:Attributes": ["p?", "a"]}}
    caller = as_role([action], ORDERS, condition)
    getattr(caller.dynamodb, operation)(**own)
    with caller.refused(action, ORDERS):
        getattr(caller.dynamodb, operation)(**others)


def test_what_the_service_refuses_anyway_is_left_to_it(as_role: AsRole) -> None:
    caller = as_role(["GetItem"])
    with refused("ValidationException", "Statement must not be null or empty"):
        caller.dynamodb.execute_statement(Statement=" ")
