"""Tables and indexes as MiniStack keeps them, and what DynamoDB knows of each beside its capacity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from highwater.core.budget import DecreaseBudget
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS

Document = dict[str, Any]
UNITS: Final = {"read": "ReadCapacityUnits", "write": "WriteCapacityUnits"}
_STATE = "_highwater"


@dataclass(slots=True)
class ResourceState:
    """What DynamoDB knows of a table or index beside its capacity.

    Attributes:
        warm: The high-water mark in units, by `read` and `write`.
        budget: Decreases used.
        last_increase: When an increase was last accepted.
    """

    warm: dict[str, int]
    budget: DecreaseBudget
    last_increase: datetime | None = None


def state_of(table: Document, index: str | None) -> ResourceState:
    """The state of a table (`None`) or index, begun with what it has now where there was none."""
    states: dict[str | None, ResourceState] = table.setdefault(_STATE, {})
    if index not in states:
        resource = resource_of(table, index)
        pair = pair_of(resource["ProvisionedThroughput"]) if resource else dict.fromkeys(UNITS.values(), 0)
        warm = {dimension: pair[member] for dimension, member in UNITS.items()}
        if is_on_demand(table):
            warm = {"read": ON_DEMAND_WARM_READ_UNITS, "write": ON_DEMAND_WARM_WRITE_UNITS}
        states[index] = ResourceState(warm, DecreaseBudget())
    return states[index]


def forget(table: Document, index: str) -> None:
    """Drop the state of an index that is gone."""
    table.get(_STATE, {}).pop(index, None)


def resource_of(table: Document | None, index: str | None) -> Document | None:
    """The record of a table (`None`) or of its index, `None` where there is none."""
    if table is None or index is None:
        return table
    return next((gsi for gsi in table.get("GlobalSecondaryIndexes") or [] if gsi["IndexName"] == index), None)


def is_on_demand(table: Document) -> bool:
    """Whether the table is billed by request."""
    return bool(table.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST")


def pair_of(throughput: Document) -> Document:
    """Read and write units, 0 where they are not given."""
    return {member: int(throughput.get(member) or 0) for member in UNITS.values()}
