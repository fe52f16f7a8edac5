"""Tables and indexes as MiniStack keeps them, and what DynamoDB knows of each beside its capacity."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from highwater.core.budget import DecreaseBudget
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS

Document = dict[str, Any]
UNITS: Final = {"read": "ReadCapacityUnits", "write": "WriteCapacityUnits"}
_STATE = "_highwater"


@dataclass(frozen=True, slots=True)
class MarkRise:
    """A rise of the high-water mark under way: when it is there, and the mark until then."""

    at: int
    before: dict[str, int]
    was_asked: bool


@dataclass(slots=True)
class ResourceState:
    """What DynamoDB knows of a table or index beside its capacity.

    Attributes:
        warm: The high-water mark in units, by `read` and `write`, with what is still to come.
        budget: Decreases used, with one whose change is under way.
        budget_before: The same without the changes under way.
        last_increase: When an increase was last accepted.
        rises: Rises of the mark that are under way, in the order of their times.
    """

    warm: dict[str, int]
    budget: DecreaseBudget
    budget_before: DecreaseBudget
    last_increase: datetime | None = None
    rises: list[MarkRise] = field(default_factory=list)

    def raise_warm(self, units: dict[str, int], at: int, *, was_asked: bool) -> None:
        """Have the mark rise to at least *units* at a second since 1970."""
        higher = {dimension: max(self.warm[dimension], units.get(dimension, 0)) for dimension in UNITS}
        if higher != self.warm:
            self.rises.append(MarkRise(at, dict(self.warm), was_asked))
            self.warm.update(higher)

    def warm_at(self, second: int) -> dict[str, int]:
        """The mark as it stands then; seconds never go back."""
        while self.rises and self.rises[0].at <= second:
            self.rises.pop(0)
        return self.rises[0].before if self.rises else self.warm

    @property
    def is_warming(self) -> bool:
        """Whether a warm-up was under way when the mark was last looked at."""
        return any(rise.was_asked for rise in self.rises)


def state_of(table: Document, index: str | None) -> ResourceState:
    """The state of a table (`None`) or index, begun with what it has now where there was none."""
    states: dict[str | None, ResourceState] = table.setdefault(_STATE, {})
    if index not in states:
        resource = resource_of(table, index)
        pair = pair_of(resource["ProvisionedThroughput"]) if resource else dict.fromkeys(UNITS.values(), 0)
        warm = {dimension: pair[member] for dimension, member in UNITS.items()}
        if is_on_demand(table):
            warm = {"read": ON_DEMAND_WARM_READ_UNITS, "write": ON_DEMAND_WARM_WRITE_UNITS}
        states[index] = ResourceState(warm, DecreaseBudget(), DecreaseBudget())
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
