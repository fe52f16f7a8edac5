"""Which partition keys a request names, in DynamoDB's JSON and with a boto3 resource's values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Key
from boto3.dynamodb.types import Binary

from highwater.shards.request_keys import read_keys

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/orders"
ATTRIBUTES = {"orders": "pk", "carts": "owner"}
A, B = {"S": "a"}, {"S": "b"}


def _query(condition: Any, **more: Any) -> dict[str, Any]:
    given = {
        "TableName": "orders",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":a": A, ":b": B},
    }
    return given | more


@pytest.mark.parametrize(
    ("operation", "params", "found"),
    [
        ("GetItem", {"TableName": "orders", "Key": {"pk": A, "sk": B}}, [("orders", "a")]),
        ("PutItem", {"TableName": ARN, "Item": {"pk": A, "owner": B}}, [("orders", "a")]),
        ("UpdateItem", {"TableName": "carts", "Key": {"owner": B}}, [("carts", "b")]),
        ("DeleteItem", {"TableName": "carts", "Key": {"owner": "b"}}, [("carts", "b")]),
        ("Query", _query("pk = :a AND sk <= :b"), [("orders", "a")]),
        ("Query", _query("(#k=:b) and sk = :a", ExpressionAttributeNames={"#k": "pk"}), [("orders", "b")]),
        ("Query", _query(Key("pk").eq("a")), [("orders", "a")]),
        ("Query", _query(Key("sk").begins_with("x") & Key("pk").eq("b")), [("orders", "b")]),
        ("Query", _query(Key("pk").eq("b") & Key("sk").between("x", "y")), [("orders", "b")]),
        (
            "BatchWriteItem",
            {
                "RequestItems": {
                    "orders": [{"PutRequest": {"Item": {"pk": A}}}, {"DeleteRequest": {"Key": {"pk": B}}}],
                    "other": [{"PutRequest": {"Item": {"pk": A}}}],
                }
            },
            [("orders", "a"), ("orders", "b"), None],
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"carts": {"Keys": [{"owner": A}, {"owner": B}]}}},
            [("carts", "a"), ("carts", "b")],
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": "orders", "Item": {"pk": A}}},
                    {"Update": {"TableName": "other", "Key": {"pk": A}}},
                    {"ConditionCheck": {"TableName": "carts", "Key": {"owner": B}}},
                ]
            },
            [("orders", "a"), None, ("carts", "b")],
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "orders", "Key": {"pk": A}}}]},
            [("orders", "a")],
        ),
    ],
)
def test_keys_are_those_of_the_items_in_their_order(operation: str, params: dict[str, Any], found: list[Any]) -> None:
    assert read_keys(operation, params, ATTRIBUTES) == found


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("Scan", {"TableName": "orders"}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM orders WHERE pk = 'a'"}),
        ("DescribeTable", {"TableName": "orders"}),
        ("Query", _query("pk = :a", IndexName="by-status")),
        ("Query", _query("sk = :a")),
        ("Query", {"TableName": "orders", "KeyConditions": {}}),
        ("Query", _query(7)),
        ("Query", _query(Key("pk").lt("a"))),
        ("Query", _query(Key("pk").between("a", "b"))),
        ("GetItem", {"TableName": "other", "Key": {"pk": A}}),
        ("GetItem", {"TableName": "orders", "Key": {"owner": A}}),
        ("GetItem", {"TableName": 7, "Key": {"pk": A}}),
        ("GetItem", {"Key": {"pk": A}}),
        ("PutItem", {"TableName": "orders", "Item": {"pk": {"N": "many"}}}),
        ("PutItem", {"TableName": "orders", "Item": {"pk": {}}}),
        ("BatchWriteItem", {"RequestItems": {"orders": [{}]}}),
        ("TransactGetItems", {"TransactItems": [{}]}),
    ],
)
def test_other_requests_and_those_that_botocore_rejects_have_none(operation: str, params: dict[str, Any]) -> None:
    assert read_keys(operation, params, ATTRIBUTES) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ({"S": "a"}, "a"),
        ({"N": "1.0"}, "1"),
        (Decimal("1.0"), "1"),
        (1, "1"),
        ({"N": "100"}, "100"),
        ({"N": "100.0"}, "100"),
        ({"N": f"{'9' * 37}1"}, f"{'9' * 37}1"),
        (int("7" * 38), "7" * 38),
        ({"N": "-2.50"}, "-2.5"),
        ({"B": b"\x00\xff"}, "AP8="),
        (b"\x00\xff", "AP8="),
        (Binary(b"\x00\xff"), "AP8="),
    ],
)
def test_one_key_has_one_text_however_it_is_given(value: Any, text: str) -> None:
    assert read_keys("GetItem", {"TableName": "orders", "Key": {"pk": value}}, ATTRIBUTES) == [("orders", text)]
