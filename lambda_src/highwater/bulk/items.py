"""The actions of `highwater.write`: puts, deletes and updates of one item each, and the puts of lines of a file."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from boto3.dynamodb.types import TypeSerializer

from highwater.core.documents import DocumentError, Problem, read_document

Values = Mapping[str, Any]
# Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB"
TOO_DEEP: Final = "the item is nested too deeply; allowed: 32 levels"
# An item has 400 KB; written as \u0000, a character of one byte takes six, and an empty value in a list fourteen.
MOST_LINE_BYTES: Final = 2**22


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
_WHY_UNREADABLE: Final[Mapping[Problem, str]] = {
    "syntax": "the line is no JSON",
    "depth": TOO_DEEP,
    "number": "the line has a number that DynamoDB cannot represent",
}


def _raw(values: Values, *, is_raw: bool) -> dict[str, Any]:
    if is_raw:
        return dict(values)
    serialize = TypeSerializer().serialize
    return {name: serialize(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Unreadable(Put):
    """A line that is not an item; *why* is the reason."""

    why: str = ""

    def raw(self) -> dict[str, Any]:
        """Raise `ValueError`, as there is no item."""
        raise ValueError(self.why)


def put_of_line(line: str) -> Put:
    """Return the put of a line of JSON: `{"Item": {...}}` with DynamoDB's types, or an object as it is."""
    try:
        document = read_document(line, has_decimals=True)
    except DocumentError as error:
        return Unreadable({}, why=_WHY_UNREADABLE[error.problem])
    if not isinstance(document, dict):
        return Unreadable({}, why="the line is no JSON object")
    if document.keys() == {"Item"} and isinstance(document["Item"], dict):
        try:
            return Put(_typed(document["Item"]), is_raw=True)
        except (ValueError, TypeError) as error:
            return Unreadable({}, why=str(error))
        except RecursionError:
            return Unreadable({}, why=TOO_DEEP)
    return Put(document)


def _typed(item: dict[str, Any]) -> dict[str, Any]:
    """Convert an item from DynamoDB's JSON to the values that boto3 accepts; raises `ValueError` for anything else."""
    return {name: _typed_value(value) for name, value in item.items()}


def _typed_value(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) != 1:
        message = 'a value is not in DynamoDB\'s form, such as {"S": "text"}'
        raise ValueError(message)
    ((kind, held),) = value.items()
    match kind:
        case "B":
            return {kind: base64.b64decode(str(held), validate=True)}
        case "BS":
            return {kind: [base64.b64decode(str(each), validate=True) for each in held]}
        case "N":
            return {kind: str(held)}
        case "NS":
            return {kind: [str(each) for each in held]}
        case "L":
            return {kind: [_typed_value(each) for each in held]}
        case "M" if isinstance(held, dict):
            return {kind: _typed(held)}
    return {kind: held}
