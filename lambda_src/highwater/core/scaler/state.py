"""One target as a decision finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from highwater.core.budget import DecreaseBudget
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.units import Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """One target as it stands, in units per second.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        current: Its floor (MinCapacity), or in DIRECT mode its provisioned capacity.
        provisioned: Its provisioned capacity; by default *current*.
        mark_units: Its high-water mark, `None` where that is not known.
        last_increase: When its capacity was last raised, `None` for never.
        baseline: The floor that the plan alone asks for now.
        ceiling: The ceiling that the plan asks for now, at least *baseline*.
        boosts: Units that live boosts add.
        boosted_total: The least that live boosts ask for in total, 0 for none.
        boosted: Units of *current* that boosts account for, also those that have ended since; by default *boosts*.
        ceiling_with_boosts: The ceiling that live boosts may reach, where it is above *ceiling*; by default it is not.
        quota_units: The account's quota per table and index.
        budget: The day's decreases that are used, for DIRECT mode.
        lacks_leases: Whether the leases could not be read, so that boosts may be live that nobody knows of.
    """

    index: str | None
    dimension: Dimension
    current: int
    baseline: int
    ceiling: int
    boosts: int = 0
    boosted_total: int = 0
    boosted: int | None = None
    ceiling_with_boosts: int = 0
    provisioned: int | None = None
    mark_units: int | None = None
    last_increase: datetime | None = None
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS
    budget: DecreaseBudget = field(default_factory=DecreaseBudget)
    lacks_leases: bool = False

    @property
    def capacity_units(self) -> int:
        """The capacity that requests meet."""
        return self.current if self.provisioned is None else self.provisioned

    @property
    def current_without_boosts(self) -> int:
        """The part of the current value that demand and the plan account for."""
        return max(self.current - (self.boosts if self.boosted is None else self.boosted), 0)

    def clamped(self, units: int) -> int:
        """Return *units* within 1 and both ceiling and quota."""
        return max(1, min(units, self.ceiling, self.quota_units))
