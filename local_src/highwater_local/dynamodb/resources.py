"""Access to MiniStack's tables and indexes, and names that are not allowed for indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from highwater.core import Dimension
from highwater_local.autoscaling.records import ServiceError, invalid
from highwater_local.ministack import Document
from highwater_local.requests import errors_text, unmet_text

_FEWEST, _MOST = 3, 255
_CHARACTERS: Final = "[a-zA-Z0-9_.-]+"


def index_name_refusal(request: Document) -> ServiceError | None:
    """Return the rejection of a CreateTable or UpdateTable with an invalid index name, `None` if all are valid."""
    unmet = [unmet_text(name, place, constraint) for place, name in _names(request) for constraint in _unmet(name)]
    return invalid(errors_text(unmet)) if unmet else None


def _names(request: Document) -> Iterator[tuple[str, str]]:
    """Yield the place of each new index name in the request, and the name; other values than text are skipped."""
    for kind in ("Global", "Local"):
        for number, index in enumerate(request.get(f"{kind}SecondaryIndexes") or [], 1):
            if isinstance(index.get("IndexName"), str):
                yield f"{kind.lower()}SecondaryIndexes.{number}.member.indexName", index["IndexName"]
    for number, update in enumerate(request.get("GlobalSecondaryIndexUpdates") or [], 1):
        name = (update.get("Create") or {}).get("IndexName")
        if isinstance(name, str):
            yield f"globalSecondaryIndexUpdates.{number}.member.create.indexName", name


def _unmet(name: str) -> Iterator[str]:
    if len(name) < _FEWEST:
        yield f"have length greater than or equal to {_FEWEST}"
    if len(name) > _MOST:
        yield f"have length less than or equal to {_MOST}"
    if not re.fullmatch(_CHARACTERS, name):
        yield f"satisfy regular expression pattern: {_CHARACTERS}"


UNITS: Final = {Dimension.READ: "ReadCapacityUnits", Dimension.WRITE: "WriteCapacityUnits"}
WARM: Final = {Dimension.READ: "ReadUnitsPerSecond", Dimension.WRITE: "WriteUnitsPerSecond"}


def indexes_of(table: Document) -> list[str]:
    """Return the names of a table's global secondary indexes."""
    return [index["IndexName"] for index in table.get("GlobalSecondaryIndexes") or []]


def every_index(table: Document) -> list[Document]:
    """Return the records of a table's indexes, the global ones first."""
    return [*(table.get("GlobalSecondaryIndexes") or ()), *(table.get("LocalSecondaryIndexes") or ())]


def key_schema(table: Document, index: object) -> list[Document]:
    """Return the key of a table (`None`) or of its index, global or local; empty if there is no such index."""
    if index is None:
        return list(table["KeySchema"])
    return next((list(each["KeySchema"]) for each in every_index(table) if each["IndexName"] == index), [])


def resource_of(table: Document | None, index: str | None) -> Document | None:
    """Return the record of a table (`None`) or of its index, `None` if there is none."""
    if table is None or index is None:
        return table
    return next((gsi for gsi in table.get("GlobalSecondaryIndexes") or [] if gsi["IndexName"] == index), None)


def is_on_demand(table: Document) -> bool:
    """Whether the table is on demand."""
    return bool(table.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST")


def units_of(throughput: Document | None) -> dict[Dimension, int]:
    """Return the read and write units of a `ProvisionedThroughput`, 0 if they are not given."""
    return {dimension: int((throughput or {}).get(member) or 0) for dimension, member in UNITS.items()}


def warmth_of(warm: Document | None) -> dict[Dimension, int]:
    """Return those units of a `WarmThroughput` that are given."""
    return {dimension: int(warm[member]) for dimension, member in WARM.items() if warm and warm.get(member)}


def capacity_of(units: dict[Dimension, int]) -> Document:
    """Return a `ProvisionedThroughput` with these units."""
    return {UNITS[dimension]: amount for dimension, amount in units.items()}


def changes_of(table: Document, request: Document) -> Iterator[tuple[str | None, Document | None, Document | None]]:
    """Yield each resource that an UpdateTable changes: index or `None`, wanted capacity, wanted warm throughput."""
    if "ProvisionedThroughput" in request or "WarmThroughput" in request:
        yield None, request.get("ProvisionedThroughput"), request.get("WarmThroughput")
    for update in request.get("GlobalSecondaryIndexUpdates") or []:
        change = update.get("Update")
        if change and resource_of(table, change["IndexName"]) is not None:
            yield change["IndexName"], change.get("ProvisionedThroughput"), change.get("WarmThroughput")
