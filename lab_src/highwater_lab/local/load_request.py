"""One request of a load: what it asks a table for, and whether what came instead of an answer may pass."""

from __future__ import annotations

from typing import Any

from highwater.core import Dimension


def ask(
    client: Any, table: str, key: list[str], values: list[str], dimension: Dimension, units: int
) -> tuple[int, dict[str, Any]]:
    """Send one request; the units granted, and the answer."""
    names = [{name: {"S": value} for name in key} for value in values]
    if dimension is Dimension.WRITE:
        return units, client.put_item(TableName=table, Item=_item(names[0], units * 1024))
    if units == 1:
        return 1, client.get_item(TableName=table, Key=names[0], ConsistentRead=True)
    asked = {table: {"Keys": [_aside(name) for name in names], "ConsistentRead": True}}
    answer = client.batch_get_item(RequestItems=asked)
    left = answer["UnprocessedKeys"].get(table, {}).get("Keys", [])
    return units - len(left), answer


def is_unanswered(error: Exception) -> bool:
    """Whether the same request may be answered in a moment: an error of the server's own, or a lost connection."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    if isinstance(error, ClientError):
        metadata: Any = error.response.get("ResponseMetadata", {})
        return int(metadata.get("HTTPStatusCode", 0)) >= 500
    return isinstance(error, ConnectionError | HTTPClientError)


def _aside(names: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """A key under which nothing is written, so that its read costs one unit."""
    return {name: {"S": f"read-{value['S']}"} for name, value in names.items()}


def _item(names: dict[str, dict[str, str]], size: int) -> dict[str, dict[str, str]]:
    """An item of just *size* bytes."""
    used = sum(len(name) + len(value["S"]) for name, value in names.items()) + len("fill")
    return names | {"fill": {"S": "x" * max(0, size - used)}}
