"""A table in memory that is scanned as DynamoDB scans: segments by hash, pages by limit and size, units by bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from botocore.exceptions import ClientError

from highwater.core.items import page_units

PAGE_BYTES = 1_048_576


class ResourceNotFoundException(Exception):
    """As boto3's clients have it."""


def refused(code: str, status: int = 400, *, operation: str = "Scan", **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "it rests"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response | more, operation)


class InMemory:
    """A session and its client in one."""

    exceptions: Any = SimpleNamespace(ResourceNotFoundException=ResourceNotFoundException)
    meta: Any = SimpleNamespace(region_name="eu-central-1")

    def client(self, *_: Any, **__: Any) -> Self:
        return self


@dataclass
class MemoryTable(InMemory):
    """A session, a client and a table in one.

    Attributes:
        sizes: The bytes of each item, by key.
        before: Called before each request; may raise.
        asked: The requests.
    """

    sizes: Mapping[str, int]
    before: Callable[[dict[str, Any]], None] = lambda _: None
    asked: list[dict[str, Any]] = field(default_factory=list)
    units: float = 0.0

    def describe_table(self, TableName: str) -> dict[str, Any]:
        if TableName != "orders":
            raise ResourceNotFoundException
        size, count = sum(self.sizes.values()), len(self.sizes)
        index = {"IndexName": "by_status", "IndexSizeBytes": size // 2, "ItemCount": count // 2}
        return {"Table": {"TableSizeBytes": size, "ItemCount": count, "GlobalSecondaryIndexes": [index]}}

    def scan(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        self.before(request)
        segments, segment = request["TotalSegments"], request["Segment"]
        keys = sorted(key for key in self.sizes if zlib.crc32(key.encode()) % segments == segment)
        after = request.get("ExclusiveStartKey")
        if after is not None:
            keys = [key for key in keys if key > after["pk"]["S"]]
        found: list[str] = []
        read = 0
        for key in keys:
            if len(found) == request["Limit"] or read >= PAGE_BYTES:
                break
            found.append(key)
            read += self.sizes[key]
        units = page_units(read, is_consistent=request["ConsistentRead"])
        self.units += units
        answer: dict[str, Any] = {
            "Items": [{"pk": {"S": key}} for key in found],
            "Count": len(found),
            "ScannedCount": len(found),
            "ConsumedCapacity": {"TableName": "orders", "CapacityUnits": units},
        }
        if found and found[-1] != keys[-1]:
            answer["LastEvaluatedKey"] = {"pk": {"S": found[-1]}}
        return answer
