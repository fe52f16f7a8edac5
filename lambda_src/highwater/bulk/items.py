"""The actions of `highwater.write`: puts, deletes and updates of one item each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boto3.dynamodb.types import TypeSerializer

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Put:
    """Put an item; it replaces an item with the same key.

    Attributes:
        item: Python values, as boto3's resources take them, or DynamoDB's JSON where *is_raw*.
        is_raw: Whether values are in DynamoDB's JSON, `{"S": "text"}`.

    Example:
        ```python
        orders = [{"order_id": "o-1", "total": 12}, {"order_id": "o-2", "total": 30}]
        highwater.write("orders", [highwater.Put(order) for order in orders], write=200)
        ```
    """

    item: Values
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """Return the item in DynamoDB's JSON; raises `TypeError` for a value that DynamoDB has no type for."""
        return _raw(self.item, is_raw=self.is_raw)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the item with a key.

    Attributes:
        key: Python values, or DynamoDB's JSON where *is_raw*.
        is_raw: Whether values are in DynamoDB's JSON.

    Example:
        ```python
        expired = (highwater.Delete({"order_id": each}) for each in expired_ids)
        highwater.write("orders", expired, write=200)
        ```
    """

    key: Values
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """Return the key in DynamoDB's JSON."""
        return _raw(self.key, is_raw=self.is_raw)


@dataclass(frozen=True, slots=True)
class Update:
    """Update the item with a key.

    Attributes:
        key: Python values, or DynamoDB's JSON where *is_raw*.
        expression: The `UpdateExpression`.
        condition: The `ConditionExpression`. An update whose condition is false is counted as unmet, and is no error.
            Work that is resumed repeats updates, so it needs a condition, or an idempotent expression.
        names: The `ExpressionAttributeNames`.
        values: The `ExpressionAttributeValues`, in the form of *key*.
        is_raw: Whether values are in DynamoDB's JSON.

    Example:
        ```python
        set_region = highwater.Update(
            {"order_id": "o-1"}, "SET #r = if_not_exists(#r, :r)", names={"#r": "region"}, values={":r": "eu"}
        )
        highwater.write("orders", [set_region], write=200)
        ```
    """

    key: Values
    expression: str
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """Return the key in DynamoDB's JSON."""
        return _raw(self.key, is_raw=self.is_raw)

    def request(self) -> dict[str, Any]:
        """Return the arguments of UpdateItem, without the table's name."""
        values = _raw(self.values, is_raw=self.is_raw)
        members = {
            "Key": self.raw(),
            "UpdateExpression": self.expression,
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": dict(self.names) or None,
            "ExpressionAttributeValues": values or None,
        }
        return {name: value for name, value in members.items() if value is not None}


Action = Put | Delete | Update


def _raw(values: Values, *, is_raw: bool) -> dict[str, Any]:
    if is_raw:
        return dict(values)
    serialize = TypeSerializer().serialize
    return {name: serialize(value) for name, value in values.items()}
