"""What a turn of the scaler is given: the time, and what AWS knows of one table, its targets and their last minutes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from highwater.core.boosts import Lease
from highwater.core.bucket import BELIEVED_SECONDS
from highwater.core.budget import DecreaseBudget
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import Slots
from highwater.core.scaler.minutes import Minutes
from highwater.core.scaler.regret import Regret
from highwater.core.schedule.bounds import Bounds
from highwater.core.units import Dimension, Units

MINUTE: Final = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Observation:
    """Whole minutes up to the newest whose datapoint is due, oldest first.

    Attributes:
        newest: The last minute, counted since 1970.
        consumed_units: Capacity units consumed in each minute, rounded up; `None` where CloudWatch has no datapoint.
        throttled_units: Units throttled for want of provisioned capacity in each of the newest minutes, estimated from
            throttle events; 0 where there is no datapoint, as CloudWatch publishes none without throttles. Minutes
            before them had none.
        hot_key_events: Throttle events of the cause KEY_RANGE in those minutes. More capacity does not help there.
        lacks_throttles: Whether throttles are likely and CloudWatch could not be asked for them.
        pulses: What the fleet told of these minutes and of those that CloudWatch does not have yet; `None` for a fleet
            that tells nothing.
        burst_seconds: How many seconds of its capacity the burst bucket is believed to hold, as
            `highwater.core.scaler.burst` learned it.
        regret: What the last day cost and throttled, beside target tracking; `None` where that was not read.
    """

    newest: int
    consumed_units: Minutes
    throttled_units: Sequence[int] = ()
    hot_key_events: int = 0
    lacks_throttles: bool = False
    pulses: Slots | None = None
    burst_seconds: int = BELIEVED_SECONDS
    regret: Regret | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` for more minutes of throttles than of consumption, and for amounts below zero."""
        if len(self.throttled_units) > len(self.consumed_units):
            message = f"{len(self.consumed_units)} minutes consumed and {len(self.throttled_units)} throttled"
            raise ValueError(message)
        if min(self.throttled_units, default=0) < 0:
            message = "units below zero"
            raise ValueError(message)

    @classmethod
    def of(
        cls,
        newest: int,
        consumed_units: Iterable[int | None],
        throttled_units: Sequence[int] = (),
        hot_key_events: int = 0,
        *,
        lacks_throttles: bool = False,
        pulses: Slots | None = None,
    ) -> Observation:
        """Return an observation of any iterable of units; raises `ValueError` as the class does."""
        consumed = Minutes.of(consumed_units)
        return cls(newest, consumed, throttled_units, hot_key_events, lacks_throttles=lacks_throttles, pulses=pulses)

    @classmethod
    def nothing(cls) -> Observation:
        """No datapoint at all: an outage of CloudWatch, or a table that was just made."""
        return cls.of(0, ())

    @property
    def is_empty(self) -> bool:
        """Whether there is no datapoint of consumption."""
        return self.pending_minutes == len(self.consumed_units)

    @property
    def pending_minutes(self) -> int:
        """How many of the newest minutes have no datapoint yet: all of them where none has one."""
        return self.consumed_units.pending

    @property
    def known_units(self) -> Minutes:
        """Units consumed up to the newest minute with a datapoint: one still to come is not a quiet minute."""
        return self.consumed_units.before(self.pending_minutes)

    def age(self, now: datetime) -> timedelta:
        """How long ago the newest minute that has a datapoint ended; not below zero."""
        if self.is_empty:
            return timedelta.max
        return max(timedelta(0), now - _EPOCH - (self.newest - self.pending_minutes + 1) * MINUTE)


@dataclass(frozen=True, slots=True)
class Clock:
    """The two times of a turn.

    Attributes:
        turn_minute: The minute since 1970 of the event that started the turn. It says whose turn it is.
        now: The aware instant that decisions are made for: AWS's own time when the scaler looked, or the event's where
            that is later. A run that waited in a queue must not decide for the past.
        patience: How long the run waits, if need be, until DynamoDB accepts a decrease. By default not at all.
    """

    turn_minute: int
    now: datetime
    patience: timedelta = timedelta(0)


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
        fixed_floors: The registered floors of targets with fixed capacity whose scaling is not suspended; by default
            none.
    """

    resources: Mapping[str | None, SeenResource]
    targets: Mapping[TargetKey, SeenTarget]
    leases: tuple[Lease, ...] = ()
    boosted: Mapping[TargetKey, int] = field(default_factory=dict)
    lacks_leases: bool = False
    fixed_floors: Mapping[TargetKey, int] = field(default_factory=dict)


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
        tracked_percent: The target utilization of its target tracking; by default 100, as where nothing tracks it.
        budget: The day's decreases that are used, for DIRECT mode.
        lacks_leases: Whether the leases could not be read, so that boosts may be live that nobody knows of.
        patience: How long the run waits, if need be, until DynamoDB accepts a decrease.
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
    tracked_percent: int = 100
    budget: DecreaseBudget = field(default_factory=DecreaseBudget)
    lacks_leases: bool = False
    patience: timedelta = timedelta(0)

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
