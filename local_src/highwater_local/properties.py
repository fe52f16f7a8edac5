"""Properties of a template as CloudFormation hands them over, and as the services want them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from highwater_local import ministack

Properties = dict[str, Any]


def indexed(kind: str, properties: Properties) -> Properties:
    """A global table's indexes have their capacity elsewhere; MiniStack gives them five units."""
    for index in properties.get("GlobalSecondaryIndexes") or []:
        if kind == ministack.TABLE or properties.get("BillingMode") == "PAY_PER_REQUEST":
            zero = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
            index.setdefault("ProvisionedThroughput", zero)
        else:
            index.setdefault("ProvisionedThroughput", {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5})
    return properties


def align_index_throughput(before: Properties, after: Properties) -> dict[str, Properties]:
    """Make index capacities equal on both sides, as MiniStack makes a changed index anew; returns what changed."""
    old = {index["IndexName"]: index for index in before.get("GlobalSecondaryIndexes") or []}
    changed = {}
    for index in after.get("GlobalSecondaryIndexes") or []:
        previous = old.get(index["IndexName"])
        if previous is None:
            continue
        if index["ProvisionedThroughput"] != previous["ProvisionedThroughput"]:
            changed[index["IndexName"]] = numbers(index["ProvisionedThroughput"])
            index["ProvisionedThroughput"] = previous["ProvisionedThroughput"]
        for passed_on in ("WarmThroughput", "ContributorInsightsSpecification"):
            previous.pop(passed_on, None)
            index.pop(passed_on, None)
    return changed


def index_changes(before: Properties, after: Properties) -> int:
    """How many indexes a table gets and loses; none where it is replaced, as a new table has all its indexes."""
    if any(before.get(name) != after.get(name) for name in ("TableName", "KeySchema", "LocalSecondaryIndexes")):
        return 0
    old, new = ({index["IndexName"] for index in each.get("GlobalSecondaryIndexes") or []} for each in (before, after))
    return len(old ^ new)


def action_text(action: Properties) -> str:
    """A scheduled action as one text, to compare it with another."""
    return json.dumps(action, sort_keys=True, default=str)


def whole(value: object) -> int | None:
    """A whole number that a template may carry as text; `None` where it gives none."""
    return None if value is None else int(str(value))


def instant(text: object) -> datetime | None:
    """A time of a template, in UTC where it names no zone; `None` where it gives none."""
    if text is None:
        return None
    at = datetime.fromisoformat(str(text))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def numbers(value: Any) -> Any:
    """Numbers and booleans that a template carries as text, as the services want them."""
    if isinstance(value, dict):
        return {name: numbers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [numbers(member) for member in value]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and re.fullmatch(r"\d+", value, re.ASCII):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\d+\.\d+", value, re.ASCII):
        return float(value)
    return value
