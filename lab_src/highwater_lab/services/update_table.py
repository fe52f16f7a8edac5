"""UpdateTable of DynamoDB: which calls it rejects, how long changes take, and their effects.

This module has no clock. Each call passes the time in, in whole seconds since 1970, UTC, and never an earlier time than
the call before. The simulation and the local cloud both have a `CapacityControl` for each table and index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto

from highwater.core import DecreaseBudget, Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.physics import KeyDistribution, Partitions
from highwater_lab.physics.partitions import partitions_for
from highwater_lab.services.timing import Pace

Units = Mapping[Dimension, int]


class Refused(StrEnum):
    """The reason why DynamoDB rejects an UpdateTable call, as text for events."""

    IN_USE = "an earlier change is still in progress"
    DECREASES = "the quota of decreases is used up for now"
    QUOTA = "the capacity is above the account's quota"
    UNCHANGED = "the capacity is already as requested"
    TOO_SMALL = "the capacity is below one unit"


class ChangeKind(Enum):
    """The kind of a change: of capacity, or a rise of the high-water mark only, requested or as a side effect."""

    CAPACITY = auto()
    WARM_UP = auto()
    MARK = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """An accepted change that takes effect *at* a second; the mark is at least *units* from then on."""

    at: int
    units: Units
    kind: ChangeKind


class CapacityControl:
    """The provisioned capacity of one table or index, as UpdateTable changes it.

    Attributes:
        units: Units by dimension as of the last `settle`.
        granted: Units by dimension after all changes in progress.
        mark: The high-water mark by dimension as of the last `settle`: the highest capacity or warm throughput so far.
        partitions: The number of partitions that the mark requires; it never falls.
        busy_until: When the last accepted change of capacity takes effect; in the past if none is in progress.
        budget: Accepted decreases, including changes in progress.
        decreases: The number of decreases accepted since the start.
        last_increase: When an increase was last accepted, `None` for never.
    """

    def __init__(
        self,
        units: Units,
        warm: Units | None = None,
        *,
        keys: KeyDistribution | None = None,
        size_gb: int = 0,
        quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        self.units = dict(units)
        self.granted = dict(units)
        self.mark = _highest(units, warm or {})
        count = partitions_for(self.mark[Dimension.READ], self.mark[Dimension.WRITE], size_gb)
        self.partitions = Partitions(count, keys or KeyDistribution.uniform())
        self.busy_until = 0
        self.budget = DecreaseBudget()
        self.decreases = 0
        self.last_increase: int | None = None
        self._quota = quota_units
        self._coming: list[Change] = []
        self._budget_before = self.budget
        self._no_decrease_before = 0

    def refusal(self, at: int, wanted: Units, *, waits: bool = False) -> Refused | None:
        """Return why an UpdateTable at *at* is rejected, `None` if it is not.

        Dimensions that *wanted* leaves out do not change. A call that lowers either dimension is one decrease. A call
        that *waits* is not rejected because of a change in progress: it is carried out after that change.
        """
        if self.is_changing(at) and not waits:
            return Refused.IN_USE
        before = self.granted
        units = {**before, **wanted}
        if max(units.values()) > self._quota:
            return Refused.QUOTA
        if min(units.values()) < 1:
            return Refused.TOO_SMALL
        if units == before:
            return Refused.UNCHANGED
        if _is_lower(units, before):
            # rejected calls are retried every minute: the answer is the same until this time
            if at < self._no_decrease_before:
                return Refused.DECREASES
            self._no_decrease_before = self.next_decrease(at)
            if at < self._no_decrease_before:
                return Refused.DECREASES
        return None

    def accept(self, at: int, wanted: Units, pace: Pace) -> int:
        """Carry out an UpdateTable that is not rejected; return when its capacity takes effect."""
        before = self.granted
        units = {**before, **wanted}
        if not self.is_changing(at):
            self._budget_before = self.budget
        if _is_lower(units, before):
            self.budget = self.budget.after(_moment(at))
            self.decreases += 1
        due = max(self.busy_until, at + self._takes(units, pace))
        # a call in the second in which the last change is due, but before that change is settled, replaces it at once
        kept = [change for change in self._coming if change.kind is not ChangeKind.CAPACITY or at < change.at]
        if len(kept) < len(self._coming):
            self._coming = [*kept, Change(at, units, ChangeKind.CAPACITY)]
        self._grant(at, due, before, units)
        return due

    def update(self, at: int, wanted: Units, pace: Pace) -> int | Refused:
        """Call UpdateTable at *at*; return when the new capacity takes effect, or why the call was rejected."""
        return self.refusal(at, wanted) or self.accept(at, wanted, pace)

    def restart(self, at: int, due: int, units: Units) -> None:
        """Change the billing mode: *units* take effect at *due*, and changes in progress are dropped."""
        self._coming = [change for change in self._coming if change.kind is not ChangeKind.CAPACITY]
        self._budget_before = self.budget
        self._grant(at, due, self.granted, dict(units))

    def warm_up(self, at: int, wanted: Units, pace: Pace) -> None:
        """Raise the high-water mark to at least *wanted*, as an UpdateTable with warm throughput does."""
        units = _highest(self.mark_to_come, wanted)
        self._raise(at + self._takes(units, pace), units, ChangeKind.WARM_UP)

    def raise_mark(self, due: int, units: Units) -> None:
        """Raise the mark to at least *units* from *due* on, as a side effect of another change."""
        self._raise(due, _highest(self.mark_to_come, units), ChangeKind.MARK)

    def settle(self, at: int) -> list[Change]:
        """Apply all changes that are due by *at*; return them in the order of time."""
        if not self._coming:
            return []
        due = sorted((change for change in self._coming if change.at <= at), key=lambda change: change.at)
        self._coming = [change for change in self._coming if change.at > at]
        for change in due:
            self.mark = _highest(self.mark, change.units)
            needed = partitions_for(change.units[Dimension.READ], change.units[Dimension.WRITE])
            if needed > self.partitions.count:
                self.partitions.grow(needed)
            if change.kind is ChangeKind.CAPACITY:
                self.units = dict(change.units)
        return due

    def is_changing(self, at: int) -> bool:
        """Whether a change of capacity is in progress."""
        return at < self.busy_until

    def is_warming(self, at: int) -> bool:
        """Whether a requested warm-up is in progress."""
        return any(change.kind is ChangeKind.WARM_UP and at < change.at for change in self._coming)

    @property
    def mark_to_come(self) -> dict[Dimension, int]:
        """The high-water mark after all changes in progress."""
        return _highest(self.mark, *(change.units for change in self._coming))

    def budget_shown(self, at: int) -> DecreaseBudget:
        """Return the budget as DescribeTable returns it: without decreases in progress."""
        return self._budget_before if self.is_changing(at) else self.budget

    def decreases_on_day(self, at: int) -> int:
        """Return the number of decreases used on the UTC day of *at*."""
        return self.budget.used_on(_moment(at))

    def next_decrease(self, at: int) -> int:
        """Return the earliest time, at or after *at*, at which a decrease is accepted."""
        return int(self.budget.next_allowed(_moment(at)).timestamp())

    @property
    def last_decrease(self) -> int | None:
        """When a decrease was last accepted, `None` for never."""
        return None if self.budget.last is None else int(self.budget.last.timestamp())

    def _grant(self, at: int, due: int, before: Units, units: dict[Dimension, int]) -> None:
        if any(units[dimension] > before[dimension] for dimension in units):
            self.last_increase = at
        self.granted = units
        self.busy_until = due
        self._coming.append(Change(due, units, ChangeKind.CAPACITY))

    def _raise(self, due: int, units: dict[Dimension, int], kind: ChangeKind) -> None:
        if units != self.mark_to_come:
            self._coming.append(Change(due, units, kind))

    def _takes(self, units: Units, pace: Pace) -> int:
        has_room = partitions_for(units[Dimension.READ], units[Dimension.WRITE]) <= self.partitions.count
        return pace.update_seconds if has_room else pace.growth_seconds


def _highest(*units: Units) -> dict[Dimension, int]:
    return {dimension: max(each.get(dimension, 0) for each in units) for dimension in Dimension}


def _is_lower(units: Units, before: Units) -> bool:
    return any(units[dimension] < before[dimension] for dimension in units)


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)
