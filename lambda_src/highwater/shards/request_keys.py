"""Which partition keys a request to DynamoDB names."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from typing import Any, Final

from highwater.client.hooks import table_name

# where a request of one item has its key
_HOLDERS: Final = {"GetItem": "Key", "PutItem": "Item", "UpdateItem": "Key", "DeleteItem": "Key"}
_BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem"})
_TRANSACTIONS: Final = frozenset({"TransactGetItems", "TransactWriteItems"})
READS: Final = frozenset({"GetItem", "Query", "BatchGetItem", "TransactGetItems"})
# a condition on equality in a key condition: the partition key always has one
_EQUALS: Final = re.compile(r"(#?[\w.-]+)\s*=\s*(:\w+)")
# DynamoDB's numbers have up to 38 digits
_NUMBERS: Final = Context(prec=38)
# a table, and a partition key as text
TableKey = tuple[str, str]


def read_keys(operation: str, params: Mapping[str, Any], attributes: Mapping[str, str]) -> list[TableKey | None]:
    """Return the table and the partition key of each item that a request names, in their order.

    `None` stands for an item that is not counted. The list is empty for a request that is not counted at all: one of an
    index, a scan, a statement of PartiQL, or one that botocore is going to reject.

    Args:
        operation: Its name in the API.
        params: Its parameters, in DynamoDB's JSON or with the values of a boto3 resource.
        attributes: The attribute of the partition key of each table that is counted.
    """
    try:
        if operation in _HOLDERS:
            found = [_key_of(params["TableName"], params[_HOLDERS[operation]], attributes)]
        elif operation == "Query":
            found = [_key_of_query(params, attributes)]
        elif operation in _BATCHES:
            found = list(_keys_of_batch(params["RequestItems"], attributes))
        elif operation in _TRANSACTIONS:
            found = list(_keys_of_transaction(params, attributes))
        else:
            return []
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return []
    return found if any(found) else []


def _key_of(table: str, item: Mapping[str, Any], attributes: Mapping[str, str]) -> TableKey | None:
    name = table if table in attributes else table_name(table)
    attribute = attributes.get(name)
    return None if attribute is None else (name, _text_of(item[attribute]))


def _key_of_query(params: Mapping[str, Any], attributes: Mapping[str, str]) -> TableKey | None:
    if "IndexName" in params:
        return None
    condition = params["KeyConditionExpression"]
    if not isinstance(condition, str):
        return _key_of(params["TableName"], _equal_values(condition), attributes)
    names, values = params.get("ExpressionAttributeNames") or {}, params["ExpressionAttributeValues"]
    item = {names.get(name, name): values[value] for name, value in _EQUALS.findall(condition)}
    return _key_of(params["TableName"], item, attributes)


def _equal_values(condition: Any) -> dict[str, Any]:
    """Return the attributes that a condition of boto3, such as `Key("pk").eq("a")`, sets equal to values."""
    expression = condition.get_expression()
    values = expression["values"]
    if expression["operator"] == "AND":
        return _equal_values(values[0]) | _equal_values(values[1])
    return {values[0].name: values[1]} if expression["operator"] == "=" else {}


def _keys_of_batch(asked: Mapping[str, Any], attributes: Mapping[str, str]) -> Iterator[TableKey | None]:
    for table, items in asked.items():
        for each in items["Keys"] if isinstance(items, Mapping) else items:
            put, delete = each.get("PutRequest"), each.get("DeleteRequest")
            yield _key_of(table, put["Item"] if put else delete["Key"] if delete else each, attributes)


def _keys_of_transaction(params: Mapping[str, Any], attributes: Mapping[str, str]) -> Iterator[TableKey | None]:
    for each in params["TransactItems"]:
        (action,) = each.values()
        yield _key_of(action["TableName"], action["Item"] if "Item" in action else action["Key"], attributes)


def _text_of(value: Any) -> str:
    """Return a key's value as text: a binary one in Base64, a number as DynamoDB writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        ((kind, held),) = value.items()
        if kind == "S":
            return str(held)
        value = Decimal(held) if kind == "N" else held
    if isinstance(value, Decimal | int):
        # 1.0 and 1 are one key
        return f"{Decimal(value).normalize(_NUMBERS):f}"
    return b64encode(bytes(getattr(value, "value", value))).decode()
