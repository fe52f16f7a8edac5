"""The condition key `dynamodb:LeadingKeys`: the partition keys that a request names.

Source: Amazon DynamoDB Developer Guide, "Using IAM policy conditions for fine-grained access control", read 2026-11.
"""

from __future__ import annotations

from typing import Any

from highwater_lab.local import ministack


def leading_keys(document: dict[str, Any]) -> list[str]:
    """Return the values of the partition key in a request about one item."""
    table = ministack.find_table(document.get("TableName"))
    if table is None:
        return []
    hashed = [key["AttributeName"] for key in table["KeySchema"] if key["KeyType"] == "HASH"]
    item = document.get("Key") or document.get("Item") or {}
    return [str(next(iter(item[name].values()), "")) for name in hashed if isinstance(item.get(name), dict)]
