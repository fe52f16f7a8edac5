"""Reads of a local secondary index that ask for more than it contains: DynamoDB fetches the items from the table.

Source: Amazon DynamoDB Developer Guide, "Local secondary indexes", read 2026-11. Each item that is fetched costs what
it costs to read it by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from highwater_local.capacity.refused_reads import attributes_of, projected_attributes
from highwater_local.resources import Document


def has_to_fetch(table: Document, request: Document) -> bool:
    """Whether a Query or Scan has to fetch the items that it finds in a local index."""
    if request.get("Select") == "ALL_ATTRIBUTES":
        return not contains(table, request.get("IndexName"), None)
    asked = request.get("AttributesToGet") or attributes_of(request.get("ProjectionExpression"), request)
    return not contains(table, request.get("IndexName"), asked)


def contains(table: Document, index: object, attributes: Iterable[str] | None) -> bool:
    """Whether a read finds those attributes, or all that there are, where it looks; always so but in local indexes."""
    found = next((each for each in table.get("LocalSecondaryIndexes") or () if each["IndexName"] == index), None)
    projected = None if found is None else projected_attributes(table, found)
    return projected is None or (attributes is not None and projected.issuperset(attributes))
