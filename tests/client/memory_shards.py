"""A table in memory that is queried as DynamoDB queries: by sort key, in pages, with filters after limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Raw = Mapping[str, Mapping[str, Any]]


def order(value: Mapping[str, Any]) -> tuple[Decimal, bytes]:
    """What DynamoDB compares of a sort key."""
    if "N" in value:
        return Decimal(value["N"]), b""
    return Decimal(0), value["S"].encode() if "S" in value else value["B"]


@dataclass
class MemoryShards:
    """A client with one table, whose keys are `pk` and `sk`; an index on any other attribute has its partitions too.

    Attributes:
        items: The items.
        page: The most items of a page.
        sort_keys: By what a query orders.
        keys: The key attributes of what is queried, and of the table.
        before: Called before each request, with its name; may raise.
        asked: The requests.
    """

    items: list[Raw]
    page: int = 1_000
    sort_keys: tuple[str, ...] = ("sk",)
    keys: tuple[str, ...] = ("pk", "sk")
    before: Callable[[str, dict[str, Any]], None] = lambda *_: None
    asked: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def query(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self.asked.append(request)
            self.before("query", request)
        values, names = request["ExpressionAttributeValues"], request["ExpressionAttributeNames"]
        own = {name: values[f":{each[1:]}"] for each, name in names.items() if each in ("#hw_key", "#hw_shard")}
        found = [item for item in self.items if all(item.get(name) == value for name, value in own.items())]
        found = self._ordered(found, is_forward=request["ScanIndexForward"])
        if "AND (sk > :from)" in request["KeyConditionExpression"]:
            found = [item for item in found if order(item["sk"]) > order(values[":from"])]
        after = request.get("ExclusiveStartKey")
        if after is not None:
            assert set(after) == set(self.keys)
            places = [n for n, item in enumerate(found) if {name: item[name] for name in self.keys} == after]
            found = found[places[0] + 1 :]
        most = min(self.page, request.get("Limit", self.page))
        page, rest = found[:most], found[most:]
        answer: dict[str, Any] = {"ScannedCount": len(page), "ConsumedCapacity": {"CapacityUnits": 0.5}}
        # as DynamoDB: a page that its limit ended has a next one, which may be empty
        if rest or len(page) == request.get("Limit"):
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in self.keys}
        if request.get("FilterExpression") == "kind = :kind":
            page = [item for item in page if item.get("kind") == values[":kind"]]
        if "ProjectionExpression" in request:
            paths = [path.strip() for path in request["ProjectionExpression"].split(",")]
            wanted = {names.get(path, path) for path in paths}
            assert len(wanted) == len(paths), "two paths overlap"
            page = [{name: value for name, value in item.items() if name in wanted} for item in page]
        return answer | {"Items": page}

    def get_item(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self.asked.append(request)
            self.before("get_item", request)
        found = [item for item in self.items if all(item[name] == value for name, value in request["Key"].items())]
        return {"ConsumedCapacity": {"CapacityUnits": 0.5}} | ({"Item": dict(found[0])} if found else {})

    def _ordered(self, items: Iterable[Raw], *, is_forward: bool) -> list[Raw]:
        return sorted(items, key=lambda item: [order(item[name]) for name in self.sort_keys], reverse=not is_forward)
