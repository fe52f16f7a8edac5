"""Requests that AWS refuses by their shape, where a service of the local cloud fails over them."""

from __future__ import annotations

import json

import pytest

from highwater_local.requests import malformed


@pytest.mark.parametrize(
    ("target", "body", "code", "message"),
    [
        (
            "AnyScaleFrontendService.RegisterScalableTarget",
            {
                "ServiceNamespace": [[]],
                "ResourceId": "table/x",
                "ScalableDimension": "dynamodb:table:ReadCapacityUnits",
            },
            "SerializationException",
            "Invalid type for parameter ServiceNamespace, value: [[]], type: <class 'list'>, valid types: "
            "<class 'str'>",
        ),
        (
            "DynamoDB_20120810.PutItem",
            {"TableName": "orders"},
            "ValidationException",
            'Missing required parameter in input: "Item"',
        ),
        (
            "DynamoDB_20120810.DescribeTable",
            {"TableName": "\ud800"},
            "SerializationException",
            "the request holds half of a character",
        ),
        (
            "DynamoDB_20120810.TransactWriteItems",
            {"TransactItems": [{"Unheard": "x"}]},
            "ValidationException",
            'Unknown parameter in TransactItems[0]: "Unheard", must be one of: ConditionCheck, Put, Delete, Update',
        ),
        (
            "AmazonSSM.Putt",
            {},
            "UnknownOperationException",
            "AmazonSSM.Putt is no operation",
        ),
        ("DynamoDB_2.Scan", {}, "UnknownOperationException", "DynamoDB_2.Scan is no operation"),
    ],
)
def test_what_a_model_does_not_allow(target: str, body: object, code: str, message: str) -> None:
    assert malformed(target, json.dumps(body).encode()) == {"__type": code, "message": message}


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("DynamoDB_20120810.DescribeTable", {"TableName": "orders"}),
        ("DynamoDB_20120810.ListTables", {}),
        ("Unheard_1.Of", {"TableName": 7}),
        ("", {}),
    ],
)
def test_what_it_allows_or_nobody_knows_is_left_alone(target: str, body: object) -> None:
    assert malformed(target, json.dumps(body).encode()) is None


def test_number_of_more_digits_than_python_reads_is_no_document() -> None:
    body = b'{"TableName":"orders","Limit":' + b"9" * 5_000 + b"}"
    found = malformed("DynamoDB_20120810.Scan", body)
    assert found is not None
    assert found["__type"] == "SerializationException"
    assert found["message"].startswith("the request is not JSON (Exceeds the limit (4300 digits)")
