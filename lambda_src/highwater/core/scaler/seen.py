"""What one turn of the scaler is given: the time, and what AWS knows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from highwater.core.boosts import Lease
from highwater.core.budget import DecreaseBudget
from highwater.core.plan.plan import TargetKey
from highwater.core.scaler.observations import Observation
from highwater.core.schedule.bounds import Bounds
from highwater.core.units import Units


@dataclass(frozen=True, slots=True)
class Clock:
    """The two times of a turn.

    Attributes:
        turn_minute: The minute since 1970 of the event that started the turn. It says whose turn it is.
        now: The aware instant that decisions are made for: AWS's own time when the scaler looked, or the event's where
            that is later. A run that waited in a queue must not decide for the past.
    """

    turn_minute: int
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResource:
    """The table or one of its indexes, as DescribeTable has it.

    Attributes:
        provisioned: Its capacity; 0 units for on-demand.
        is_active: Whether UpdateTable would be accepted.
        mark: Its high-water marks, `None` where they are not known.
        last_increase: When its capacity was last raised, `None` for never.
        budget: The day's decreases that it has used.
    """

    provisioned: Units
    is_active: bool = True
    mark: Units | None = None
    last_increase: datetime | None = None
    budget: DecreaseBudget = field(default_factory=DecreaseBudget)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTarget:
    """One target that the turn looks at.

    Attributes:
        registered: Floor and ceiling of its scalable target, `None` where none is registered.
        is_suspended: Whether scaling of that target is suspended.
        observation: What CloudWatch has of its last minutes.
    """

    registered: Bounds | None
    is_suspended: bool = False
    observation: Observation


@dataclass(frozen=True, slots=True)
class SeenTable:
    """All that a turn knows of one table.

    Attributes:
        resources: The table (`None`) and its indexes, by name.
        targets: The targets that the turn looks at; the others are left as they are.
        leases: The boosts of the table, live or not. By default none.
        boosted: The units of each target's present value that boosts account for, as the decision said that set it; by
            default none.
        lacks_leases: Whether the boosts could not be read. Floors then stay or rise.
    """

    resources: Mapping[str | None, SeenResource]
    targets: Mapping[TargetKey, SeenTarget]
    leases: tuple[Lease, ...] = ()
    boosted: Mapping[TargetKey, int] = field(default_factory=dict)
    lacks_leases: bool = False
