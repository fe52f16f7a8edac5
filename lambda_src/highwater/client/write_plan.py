"""What writes are going to cost, which is known before they begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from highwater.client.actions import Action
from highwater.client.writer import Rejected, job_of
from highwater.core.pacing.write_cost import IndexParts, WriteCost


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What writes are going to cost, if no item is there yet.

    Attributes:
        table: The table's name.
        items: How many items can be written.
        size_bytes: How large they are together.
        table_units: Write units of the table, with those of its local indexes.
        index_units: Write units of each global index.
        seconds: How long it takes at least.
        rejected: How many actions DynamoDB would not take.
    """

    table: str
    items: int
    size_bytes: int
    table_units: int
    index_units: Mapping[str, int]
    seconds: int
    rejected: int

    @property
    def units(self) -> int:
        """The units of the table and all of its indexes."""
        return self.table_units + sum(self.index_units.values())


def plan_writes(
    described: Mapping[str, Any], actions: Iterable[Action], rate: float, reject: Callable[[Rejected], None]
) -> WritePlan:
    """Add up what *actions* cost the table that DescribeTable describes; nothing is written."""
    cost, rejected = WriteCost(tuple(_indexes(described))), 0
    keys = [part["AttributeName"] for part in described["KeySchema"]]
    for number, action in enumerate(actions):
        job = job_of(number, action)
        if not isinstance(job, Rejected) and (missing := [key for key in keys if key not in job.raw]):
            job = Rejected(number, action, f"the item has no {' and no '.join(missing)}, a key of the table")
        if isinstance(job, Rejected):
            rejected += 1
            reject(job)
        else:
            cost.add(job.raw)
    return WritePlan(
        described["TableName"],
        cost.items,
        cost.size_bytes,
        cost.table_units,
        cost.index_units,
        cost.seconds_at(rate),
        rejected,
    )


def _indexes(described: Mapping[str, Any]) -> Iterator[IndexParts]:
    own = {part["AttributeName"] for part in described["KeySchema"]}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for index in described.get(kind, ()):
            keys = frozenset(part["AttributeName"] for part in index["KeySchema"])
            projection = index.get("Projection", {})
            copied = keys | own | frozenset(projection.get("NonKeyAttributes", ()))
            is_all = projection.get("ProjectionType", "ALL") == "ALL"
            yield IndexParts(index["IndexName"], keys, None if is_all else copied, kind.startswith("Local"))
