"""A table or an index with provisioned capacity: throughput, high-water mark, partitions, and UpdateTable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from highwater.core import DecreaseBudget, Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.physics.keys import KeyDistribution
from highwater_lab.physics.partitions import Partitions, partitions_for
from highwater_lab.physics.throughput import Provisioned


class Refused(StrEnum):
    """The reason why DynamoDB refuses an UpdateTable call, as text for events."""

    IN_USE = "an earlier change is still in progress"
    DECREASES = "the quota of decreases is used up for now"
    QUOTA = "the capacity is above the account's quota"
    UNCHANGED = "the capacity is already as requested"
    TOO_SMALL = "the capacity is below one unit"


@dataclass(frozen=True, slots=True)
class Pace:
    """The time from an UpdateTable call until the new capacity applies.

    Attributes:
        update_seconds: The time if the existing partitions suffice.
        growth_seconds: The time if DynamoDB has to add partitions.
    """

    update_seconds: int
    growth_seconds: int


class Resource:
    """One table or index with provisioned capacity; times are seconds since 1970, UTC.

    Attributes:
        index: The name of the index, `None` for the table.
        throughput: The provisioned throughput by dimension.
        mark: The high-water mark by dimension, in units: the most that was ever provisioned or warmed.
        decreases: The number of decreases accepted since the start.
        busy_until: The time at which the change in progress applies; in the past if no change is in progress.
        last_increase: The time of the last accepted increase, `None` if there was none.
        granted: The units by dimension after the change in progress; the current units if there is none.
    """

    def __init__(
        self,
        index: str | None,
        read_units: int,
        write_units: int,
        *,
        warm_read_units: int = 0,
        warm_write_units: int = 0,
        keys: KeyDistribution | None = None,
        size_gb: int = 0,
        quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        self.index = index
        units = {Dimension.READ: read_units, Dimension.WRITE: write_units}
        warm = {Dimension.READ: warm_read_units, Dimension.WRITE: warm_write_units}
        self.mark = {dimension: max(units[dimension], warm[dimension]) for dimension in Dimension}
        count = partitions_for(self.mark[Dimension.READ], self.mark[Dimension.WRITE], size_gb)
        self.partitions = Partitions(count, keys or KeyDistribution.uniform())
        self.throughput = {d: Provisioned(d, units[d], self.partitions) for d in Dimension}
        self.decreases = 0
        self.busy_until = 0
        self.last_increase: int | None = None
        self._budget = DecreaseBudget()
        self._no_decrease_before = 0
        self._quota = quota_units
        self.granted = dict(units)

    def update(self, at: int, wanted: Mapping[Dimension, int], pace: Pace) -> int | Refused:
        """Call UpdateTable at the time *at*; return the time at which the new capacity applies, or the refusal.

        A dimension that is not in *wanted* keeps its units. A call that lowers one or both dimensions counts as one
        decrease. The caller calls `apply` at the returned time.
        """
        if at < self.busy_until:
            return Refused.IN_USE
        before = {dimension: throughput.units for dimension, throughput in self.throughput.items()}
        units = {**before, **wanted}
        if min(units.values()) < 1:
            return Refused.TOO_SMALL
        if max(units.values()) > self._quota:
            return Refused.QUOTA
        if units == before:
            return Refused.UNCHANGED
        if any(units[d] < before[d] for d in before):
            # policies repeat a refused call every minute; this saves working out the same refusal again
            if at < self._no_decrease_before:
                return Refused.DECREASES
            moment = datetime.fromtimestamp(at, UTC)
            if not self._budget.allows(moment):
                self._no_decrease_before = int(self._budget.next_allowed(moment).timestamp())
                return Refused.DECREASES
            self._budget = self._budget.after(moment)
            self.decreases += 1
        if any(units[d] > before[d] for d in before):
            self.last_increase = at
        has_room = partitions_for(units[Dimension.READ], units[Dimension.WRITE]) <= self.partitions.count
        self.granted = units
        self.busy_until = at + (pace.update_seconds if has_room else pace.growth_seconds)
        return self.busy_until

    def apply(self) -> None:
        """Complete the change in progress: set the capacity, raise the high-water mark, add partitions."""
        for dimension, units in self.granted.items():
            if units != self.throughput[dimension].units:
                self.throughput[dimension].resize(units)
            self.mark[dimension] = max(self.mark[dimension], units)
        needed = partitions_for(self.granted[Dimension.READ], self.granted[Dimension.WRITE])
        if needed > self.partitions.count:
            self.partitions.grow(needed)

    def decreases_on_day(self, at: int) -> int:
        """Return the number of decreases used on the UTC day of *at*."""
        return self._budget.used_on(datetime.fromtimestamp(at, UTC))

    @property
    def last_decrease(self) -> int | None:
        """The time of the last accepted decrease, `None` if there was none."""
        return None if self._budget.last is None else int(self._budget.last.timestamp())
