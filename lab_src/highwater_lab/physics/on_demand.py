"""On-demand capacity: what it takes at once."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS, ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater_lab.physics.bucket import QUANTA_PER_UNIT
from highwater_lab.physics.causes import Cause
from highwater_lab.physics.partitions import PARTITION_UNITS, Partitions

# Amazon DynamoDB Developer Guide, "On-demand capacity mode", read 2026-11: up to twice the previous peak at once, more
# within thirty minutes of it may be throttled
PEAK_AGE_MINUTES: Final = 30

_WARM = {Dimension.READ: ON_DEMAND_WARM_READ_UNITS, Dimension.WRITE: ON_DEMAND_WARM_WRITE_UNITS}


class OnDemand:
    """One dimension of an on-demand table or index.

    Takes what it was warmed to, or twice its previous peak: the highest minute that lies at least thirty minutes
    back. Above that, and where a key is too hot for its partition, the partitions refuse (KEY_RANGE); above *max_units*
    the table's own maximum, above the quota the account. No burst: every second stands alone.

    Attributes:
        units: 0, as nothing is provisioned.
        refused: Quanta refused by cause since they were last cleared.
    """

    __slots__ = ("_fixed", "_partitions", "_peak", "_recent", "_warm", "dimension", "refused", "units")

    def __init__(
        self,
        dimension: Dimension,
        partitions: Partitions,
        warm_units: int = 0,
        max_units: int | None = None,
        quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        self.dimension = dimension
        self.units = 0
        self.refused: dict[Cause, int] = {}
        self._partitions = partitions
        self._warm = max(_WARM[dimension], warm_units) * QUANTA_PER_UNIT
        self._fixed = [(quota_units * QUANTA_PER_UNIT, Cause.ACCOUNT)]
        if max_units is not None:
            self._fixed.append((max_units * QUANTA_PER_UNIT, Cause.MAX_ON_DEMAND))
        self._recent: deque[int] = deque()
        self._peak = 0

    def warm_to(self, units: int) -> None:
        """Take at least *units* per second at once from now on."""
        self._warm = max(self._warm, units * QUANTA_PER_UNIT)

    @property
    def limit(self) -> int:
        """What the partitions take now, in quanta per second."""
        return max(self._warm, 2 * self._peak)

    def room(self) -> tuple[int, Cause]:
        """What one second takes of evenly spread requests, and the cause above that."""
        return min([(self.limit, Cause.KEY_RANGE), *self._fixed])

    def available(self, rate: int) -> tuple[int, Cause]:
        """What of *rate* the next second could serve, and the cause where that is less."""
        lowest, cause = self.room()
        through = rate - self._partitions.refused(rate, self.dimension)
        return (through, Cause.KEY_RANGE) if through <= lowest else (lowest, cause)

    def holds(self, rate: int, seconds: int) -> bool:  # noqa: ARG002 - every second is like the other
        """Whether *seconds* of *rate* would be served whole."""
        return self.available(rate)[0] == rate

    def take(self, amount: int) -> None:
        """Pass one second in which *amount* is served."""

    def serve(self, rate: int, seconds: int) -> int:
        """Pass *seconds* of a constant *rate*, quanta per second; the quanta served."""
        served, cause = self.available(rate)
        if served < rate:
            self.refuse(cause, (rate - served) * seconds)
        return served * seconds

    def serve_each(self, rates: array[int]) -> int:
        """Pass a second of each rate; the quanta served."""
        return sum(self.serve(rate, 1) for rate in rates)

    def refuse(self, cause: Cause, amount: int) -> None:
        """Count *amount* as throttled."""
        self.refused[cause] = self.refused.get(cause, 0) + amount

    def end_minute(self, consumed: int) -> None:
        """Tell what the minute just over consumed, in quanta."""
        self._recent.append(consumed // 60)
        if len(self._recent) > PEAK_AGE_MINUTES:
            old = self._recent.popleft()
            if old > self._peak:
                self._peak = old
                per_partition = PARTITION_UNITS[self.dimension] * QUANTA_PER_UNIT
                self._partitions.grow(-(-2 * old // per_partition))
