"""What `highwater.write` writes: items to put, keys to delete, and updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boto3.dynamodb.types import TypeSerializer

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Put:
    """Put an item, in place of the one with its key.

    Attributes:
        item: Python values, as boto3's resources take them, or DynamoDB's own form where *is_raw*.
        is_raw: Whether values are in DynamoDB's own form, `{"S": "text"}`.
    """

    item: Values
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """The item in DynamoDB's own form; raises `TypeError` for a value that DynamoDB has no type for."""
        return _raw(self.item, is_raw=self.is_raw)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the item with a key.

    Attributes:
        key: Python values, or DynamoDB's own form where *is_raw*.
        is_raw: Whether values are in DynamoDB's own form.
    """

    key: Values
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """The key in DynamoDB's own form."""
        return _raw(self.key, is_raw=self.is_raw)


@dataclass(frozen=True, slots=True)
class Update:
    """Update the item with a key.

    Attributes:
        key: Python values, or DynamoDB's own form where *is_raw*.
        expression: The `UpdateExpression`.
        condition: The `ConditionExpression`; an update whose condition does not hold is counted, and is no error. A job
            that repeats its updates needs one, or an expression that may be carried out twice.
        names: The `ExpressionAttributeNames`.
        values: The `ExpressionAttributeValues`, in the form of *key*.
        is_raw: Whether values are in DynamoDB's own form.
    """

    key: Values
    expression: str
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    is_raw: bool = False

    def raw(self) -> dict[str, Any]:
        """The key in DynamoDB's own form."""
        return _raw(self.key, is_raw=self.is_raw)

    def request(self) -> dict[str, Any]:
        """The members of UpdateItem, without the table's name."""
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
