"""DynamoDB in memory, as far as the coordinator's adapters use it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "it rests"}}, operation)


@dataclass
class MemoryDynamo:
    """One table with the keys `table` and `item`.

    Attributes:
        items: The items by their keys.
        before: Called with the name of each operation before it is carried out; may raise.
    """

    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    before: Callable[[str], None] = lambda _: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get_item(self, **request: Any) -> dict[str, Any]:
        self.before("get_item")
        assert request["ConsistentRead"], "a stale answer would be a false one"
        with self._lock:
            item = self.items.get(_key(request["Key"]))
            return {} if item is None else {"Item": dict(item)}

    def put_item(self, **request: Any) -> dict[str, Any]:
        self.before("put_item")
        with self._lock:
            self.items[_key(request["Item"])] = dict(request["Item"])
        return {}

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.before("update_item")
        values = request["ExpressionAttributeValues"]
        with self._lock:
            item = self.items.get(_key(request["Key"]), {})
            if not _holds(request["ConditionExpression"], item, values):
                raise refused("ConditionalCheckFailedException", "UpdateItem")
            new = dict(item) | request["Key"]
            for assignment in request["UpdateExpression"].removeprefix("SET ").split(", "):
                name, value = assignment.split(" = ")
                new[name.removeprefix("#")] = values[value]
            self.items[_key(request["Key"])] = new
        return {}

    def delete_item(self, **request: Any) -> dict[str, Any]:
        self.before("delete_item")
        with self._lock:
            self.items.pop(_key(request["Key"]), None)
        return {}

    def query(self, **request: Any) -> dict[str, Any]:
        self.before("query")
        values = {name: value["S"] for name, value in request["ExpressionAttributeValues"].items()}
        with self._lock:
            prefix = values.get(":item")
            assert (prefix is None) == request.get("ConsistentRead", False), (
                "a table that is missing is served too late"
            )
            found = [key for key in self.items if key[0] == values[":table"] and key[1].startswith(prefix or "")]
            found.sort(reverse=not request.get("ScanIndexForward", True))
            return {"Items": [self.items[key] for key in found[: request.get("Limit")]]}


def _key(item: Any) -> tuple[str, str]:
    return item["table"]["S"], item["item"]["S"]


def _holds(condition: str, item: dict[str, Any], values: dict[str, Any]) -> bool:
    """Whether one of the four conditions holds that the adapter has."""
    match condition:
        case "attribute_not_exists(version)":
            return "version" not in item
        case "version = :old":
            return bool(item.get("version") == values[":old"])
        case "attribute_not_exists(boosted_at) OR boosted_at <= :at":
            return "boosted_at" not in item or item["boosted_at"]["S"] <= values[":at"]["S"]
        case "attribute_not_exists(turned_at) OR turned_at <= :before OR turned_at > :now":
            before, now = (float(values[name]["N"]) for name in (":before", ":now"))
            return "turned_at" not in item or not before < float(item["turned_at"]["N"]) <= now
    raise AssertionError(condition)
