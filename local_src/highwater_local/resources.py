"""Tables and indexes as MiniStack keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from highwater.core import Dimension

Document = dict[str, Any]
UNITS: Final = {Dimension.READ: "ReadCapacityUnits", Dimension.WRITE: "WriteCapacityUnits"}
WARM: Final = {Dimension.READ: "ReadUnitsPerSecond", Dimension.WRITE: "WriteUnitsPerSecond"}


def indexes_of(table: Document) -> list[str]:
    """Names of a table's global secondary indexes."""
    return [index["IndexName"] for index in table.get("GlobalSecondaryIndexes") or []]


def resource_of(table: Document | None, index: str | None) -> Document | None:
    """The record of a table (`None`) or of its index, `None` where there is none."""
    if table is None or index is None:
        return table
    return next((gsi for gsi in table.get("GlobalSecondaryIndexes") or [] if gsi["IndexName"] == index), None)


def is_on_demand(table: Document) -> bool:
    """Whether the table is billed by request."""
    return bool(table.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST")


def units_of(throughput: Document | None) -> dict[Dimension, int]:
    """Read and write units of a `ProvisionedThroughput`, 0 where they are not given."""
    return {dimension: int((throughput or {}).get(member) or 0) for dimension, member in UNITS.items()}


def warmth_of(warm: Document | None) -> dict[Dimension, int]:
    """Those units of a `WarmThroughput` that are given."""
    return {dimension: int(warm[member]) for dimension, member in WARM.items() if warm and warm.get(member)}


def capacity_of(units: dict[Dimension, int]) -> Document:
    """A `ProvisionedThroughput` of so many units."""
    return {UNITS[dimension]: amount for dimension, amount in units.items()}


def changes_of(table: Document, request: Document) -> Iterator[tuple[str | None, Document | None, Document | None]]:
    """Each resource that an UpdateTable changes: index or `None`, wanted capacity, wanted warm throughput."""
    if "ProvisionedThroughput" in request or "WarmThroughput" in request:
        yield None, request.get("ProvisionedThroughput"), request.get("WarmThroughput")
    for update in request.get("GlobalSecondaryIndexUpdates") or []:
        change = update.get("Update")
        if change and resource_of(table, change["IndexName"]) is not None:
            yield change["IndexName"], change.get("ProvisionedThroughput"), change.get("WarmThroughput")
