"""A table in memory that is written to, as far as paced writes use it: it refuses what a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from highwater.bulk.items import Action
from highwater.bulk.send import WriteJob, job_of
from tests.client.memory_table import InMemory, ResourceNotFoundException, refused


def jobs_of(actions: Sequence[Action]) -> list[WriteJob]:
    """The jobs of actions that DynamoDB takes."""
    return [job for number, action in enumerate(actions) if isinstance(job := job_of(number, action), WriteJob)]


@dataclass
class MemoryWrites(InMemory):
    """A session, a client and a table in one.

    Attributes:
        items: By key.
        units_per_item: What a batch says that each of its items costs.
        leaves: How many members of a batch come back unprocessed, asked for each batch with its size.
        before: Called with each request before it is carried out; may raise.
        requests: The operations, with how many items each was about.
    """

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    units_per_item: float = 1.0
    leaves: Callable[[int], int] = lambda _: 0
    before: Callable[[str, dict[str, Any]], None] = lambda *_: None
    requests: list[tuple[str, int]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def describe_table(self, TableName: str) -> dict[str, Any]:
        if TableName != "orders":
            raise ResourceNotFoundException
        return {"Table": {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}}

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        members = request["RequestItems"]["orders"]
        with self._lock:
            self.requests.append(("batch", len(members)))
            self.before("batch_write_item", request)
            keys = [(m.get("PutRequest") or {}).get("Item") or m["DeleteRequest"]["Key"] for m in members]
            if len({key["pk"]["S"] for key in keys}) < len(keys):
                raise refused("ValidationException")
            assert len(members) <= 25
            left = members[len(members) - min(self.leaves(len(members)), len(members)) :]
            for member in members[: len(members) - len(left)]:
                if "PutRequest" in member:
                    self._put(member["PutRequest"]["Item"])
                else:
                    self._delete(member["DeleteRequest"]["Key"])
            done = len(members) - len(left)
        answer: dict[str, Any] = {"UnprocessedItems": {"orders": left} if left else {}}
        return answer | {"ConsumedCapacity": [{"TableName": "orders", "CapacityUnits": done * self.units_per_item}]}

    def put_item(self, **request: Any) -> dict[str, Any]:
        def put() -> None:
            self._check_version(request["Item"], request)
            self._put(request["Item"])

        return self._single("put_item", request, put)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        def delete() -> None:
            self._check_version(request["Key"], request)
            self._delete(request["Key"])

        return self._single("delete_item", request, delete)

    def update_item(self, **request: Any) -> dict[str, Any]:
        def update() -> None:
            key = request["Key"]["pk"]["S"]
            if request.get("ConditionExpression") and key not in self.items:
                raise refused("ConditionalCheckFailedException")
            self.order.append(f"update {key}")
            item = self.items.setdefault(key, dict(request["Key"]))
            item["state"] = request["ExpressionAttributeValues"][":state"]

        return self._single("update_item", request, update)

    def _single(self, operation: str, request: dict[str, Any], carry_out: Callable[[], None]) -> dict[str, Any]:
        with self._lock:
            self.requests.append((operation, 1))
            self.before(operation, request)
            carry_out()
        return {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": self.units_per_item}}

    def _check_version(self, key: dict[str, Any], request: dict[str, Any]) -> None:
        """Refuse a write unless its version is higher than the stored one, if it has that condition."""
        if "ConditionExpression" not in request:
            return
        assert request["ConditionExpression"] == "attribute_not_exists(#version) OR #version < :version"
        stored = self.items.get(key["pk"]["S"], {}).get(request["ExpressionAttributeNames"]["#version"])
        given = request["ExpressionAttributeValues"][":version"]
        if stored is not None and Decimal(stored["N"]) >= Decimal(given["N"]):
            raise refused("ConditionalCheckFailedException")

    def _put(self, item: dict[str, Any]) -> None:
        self.order.append(f"put {item['pk']['S']}")
        self.items[item["pk"]["S"]] = item

    def _delete(self, key: dict[str, Any]) -> None:
        self.order.append(f"delete {key['pk']['S']}")
        self.items.pop(key["pk"]["S"], None)
