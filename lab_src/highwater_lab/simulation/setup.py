"""What a simulation starts with: a table, its background work and its queue; and what became of these."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from highwater.core import Capacity, Dimension, Units
from highwater.core.boosts import Lease
from highwater.core.bucket import BURST_SECONDS, OnRaise
from highwater.core.limits import (
    DEFAULT_ACCOUNT_QUOTA_UNITS,
    DEFAULT_TABLE_QUOTA_UNITS,
    ON_DEMAND_WARM_READ_UNITS,
    ON_DEMAND_WARM_WRITE_UNITS,
)
from highwater.core.pacing.following import RateGoal
from highwater.core.scaler.plan import ScaledPlan
from highwater.core.tracking import TargetTracking
from highwater_lab.physics import KeyDistribution
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.simulation.known import KnownTable


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetup:
    """Work that keeps to a budget, as `highwater scan` and `highwater load` do.

    Attributes:
        name: For reports.
        index: The index that is read, `None` for the table. Writes are the table's.
        dimension: READ or WRITE.
        goal: The rate that it wants.
        units: What it has to consume until it is done, in units of the table.
        at: The aware instant at which it begins.
        allow_throttles: Whether it keeps its rate where it is refused.
        workers: How many share its rate, by leases on parts of it.
    """

    name: str
    index: str | None = None
    dimension: Dimension
    goal: RateGoal
    units: int
    at: datetime
    allow_throttles: bool = False
    workers: int = 1


@dataclass(frozen=True, slots=True)
class JobRun:
    """What became of a job; seconds count from the start of the traffic.

    Attributes:
        job: The job.
        start: When it began.
        end: When it was done; `None` for one that was not done when the traffic ended.
        full_at: When it first had the rate that it wanted; `None` if it never had.
        units: What it consumed.
        throttled_units: Its own units that were throttled, each attempt counted.
        others_throttled_units: Units of other traffic that were throttled while it ran.
        most_units: The most units that it asked for in a second.
    """

    job: JobSetup
    start: int
    end: int | None
    full_at: int | None
    units: float
    throttled_units: float
    others_throttled_units: float
    most_units: int


# SQS deletes a message 14 days after it was sent (Amazon SQS API Reference, SetQueueAttributes:
# MessageRetentionPeriod, read 2026-11)
RETENTION_SECONDS: Final = 14 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A queue that all writes to a table pass through, as `BufferedWrites` makes it.

    Attributes:
        units: Write units per second of its budget, 1 or more.
        drain_seconds: The time within which every write is to be done; by default half a day.
    """

    units: int
    drain_seconds: int = 43_200


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """What became of a queue; seconds count from the start of the traffic.

    Attributes:
        buffer: The queue.
        most_units: The most write units that waited. A message of an item up to 1 KB is one.
        most_at: When these waited.
        oldest_seconds: The highest age of a write that waited, as it is at the end of each bin of the traffic.
        oldest_at: When one was so old.
        empty_at: From when on nothing waited; `None` if something still waits when the traffic ends.
        left_units: Units that wait when the traffic ends.
        written_units: Units that were written.
        throttled_units: Units that the table refused, each attempt counted; they came back to the queue.
        ages: For each minute, the age in seconds of the oldest write that waits at its end; 0 where nothing waits.
    """

    buffer: Buffer
    most_units: int
    most_at: int
    oldest_seconds: int
    oldest_at: int
    empty_at: int | None
    left_units: int
    written_units: float
    throttled_units: float
    ages: array[int]

    @property
    def is_late(self) -> bool:
        """Whether a write waited for the drain time or longer."""
        return self.oldest_seconds >= self.buffer.drain_seconds


@dataclass(slots=True, kw_only=True)
class ScalableTargetSetup:
    """A scalable target as it was read: its floor and ceiling in units per second, and what moves its capacity."""

    min: int
    max: int
    tracking: TargetTracking | None = None
    actions: tuple[ScheduledChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSetup:
    """One dimension of one resource.

    Attributes:
        units: Provisioned units per second as the template has them.
        min: Floor, the provisioned units where nothing scales.
        max: Ceiling, likewise.
        tracking: Its target tracking policy, `None` for none.
        actions: Its scheduled actions.
        is_scaled: Whether anything is to move it; it starts at its units where not.
    """

    units: int
    min: int
    max: int
    tracking: TargetTracking | None = None
    actions: tuple[ScheduledChange, ...] = ()

    is_scaled: bool = True

    @property
    def can_be_raised(self) -> bool:
        """Whether a higher floor raises it: there is a scalable target, with a policy or without."""
        return self.is_scaled or self.min < self.max

    @property
    def has_target(self) -> bool:
        """Whether a scalable target is registered, with a policy, or with scheduled actions or bounds alone."""
        return self.is_scaled or bool(self.actions) or {self.min, self.max} != {self.units}

    @property
    def capacity(self) -> Capacity:
        """What a plan declares for it: its target tracking with its bounds, or its units, within its bounds."""
        if self.tracking is None:
            return Capacity.fixed(min(max(self.units, self.min), self.max))
        return Capacity.autoscaled(
            min_capacity=self.min,
            max_capacity=self.max,
            target_utilization_percent=self.tracking.target_percent,
            scale_in_cooldown=timedelta(seconds=self.tracking.scale_in_cooldown),
            scale_out_cooldown=timedelta(seconds=self.tracking.scale_out_cooldown),
            disable_scale_in=self.tracking.disable_scale_in,
        )

    @classmethod
    def fixed(cls, units: int) -> TargetSetup:
        """Capacity that nothing moves."""
        return cls(units=units, min=units, max=units, is_scaled=False)

    @classmethod
    def of_scaling(cls, units: int, scaling: ScalableTargetSetup | None) -> TargetSetup:
        """Capacity that follows a scalable target, `None` for none; without a policy, only its actions move it."""
        if scaling is None:
            return cls.fixed(units)
        return cls(
            units=units,
            min=max(1, scaling.min),
            max=max(1, scaling.max),
            tracking=scaling.tracking,
            actions=scaling.actions,
            is_scaled=scaling.tracking is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSetup:
    """A table (`index` is `None`) or one of its indexes.

    Attributes:
        warm_read_units: Its high-water mark, as far as it was declared.
        warm_write_units: Likewise for writes.
        bought_read_units: Units of the mark that are paid for, once.
        bought_write_units: Likewise for writes.
        max_read_units: Its own maximum for on-demand, in units per second; `None` for none.
        max_write_units: Likewise for writes.
        keys: How its requests spread.
        write_share_percent: Index units that each unit written to the table costs, where the traffic has no column
            for them. 100 by default: every write changes the index once.
    """

    index: str | None
    read: TargetSetup
    write: TargetSetup
    warm_read_units: int = 0
    warm_write_units: int = 0
    bought_read_units: int = 0
    bought_write_units: int = 0
    max_read_units: int | None = None
    max_write_units: int | None = None
    keys: KeyDistribution = field(default_factory=KeyDistribution.uniform)
    write_share_percent: int = 100

    def warmed(self, mark: Units, free: Units) -> ResourceSetup:
        """The same with a high-water mark, of which what is above *free* is paid for."""
        return replace(
            self,
            warm_read_units=mark.read,
            warm_write_units=mark.write,
            bought_read_units=max(0, mark.read - free.read),
            bought_write_units=max(0, mark.write - free.write),
        )

    @property
    def warm_on_demand(self) -> Units:
        """The units per second that it serves at once on demand: its mark, or that of every table on demand."""
        return Units(
            max(ON_DEMAND_WARM_READ_UNITS, self.warm_read_units), max(ON_DEMAND_WARM_WRITE_UNITS, self.warm_write_units)
        )

    @property
    def label(self) -> str:
        """`table`, or `index 'by_status'`."""
        return "table" if self.index is None else f"index {self.index!r}"

    def target(self, dimension: Dimension) -> TargetSetup:
        """Its setup of one dimension."""
        return self.read if dimension is Dimension.READ else self.write

    def with_targets(self, read: TargetSetup, write: TargetSetup) -> ResourceSetup:
        """The same with other targets."""
        return replace(self, read=read, write=write)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSetup:
    """A further replica of a global table, which is billed but not simulated.

    Attributes:
        region: Its region.
        read_units: Its read capacity, of the table and all indexes: the floors, as its own reads are not known.
        is_infrequent_access: Of the table class Standard-IA.
        read_targets: The reads of the table (`None`) and of its indexes in that region, as far as they were read.
    """

    region: str
    read_units: int
    is_infrequent_access: bool = False
    # not compared: only their floors, which are in the units, are billed
    read_targets: Mapping[str | None, TargetSetup] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSetup:
    """A table with its indexes.

    Attributes:
        name: For reports: the logical id in a template.
        resources: The table first, then its indexes.
        is_on_demand: Billed by request.
        is_infrequent_access: Of the table class Standard-IA.
        size_gb: Data in the table when the simulation starts.
        new_items_percent: Share of written units that add a kilobyte; partitions split as the data grows.
        quota_units: The account's quota per table and index.
        account_quota_units: The account's quota of all provisioned capacity, as if this table were the only one.
        starts_settled: Whether it starts with capacity to suit its first minute, or with what it is set up with.
        scaler: What Highwater's scaler keeps, where the template gives it the table.
        region: The region that it is in, whose prices count; `None` where the template does not say.
        replicas: The further replicas of a global table.
        burst_seconds: How many seconds of unused capacity its burst buckets keep.
        on_raise: What becomes of what they hold when capacity is raised.
        leases: The boosts that jobs ask for, in the order of their starts.
        jobs: Background work beside the traffic.
        buffer: The queue that its writes pass through, `None` for none.
        notes: What a reader of the template should know, a line each.
        known: Its name and keys, for code that is to fit it; `None` for a table that exists nowhere.
    """

    name: str
    resources: tuple[ResourceSetup, ...]
    is_on_demand: bool = False
    is_infrequent_access: bool = False
    size_gb: int = 0
    new_items_percent: int = 0
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS
    account_quota_units: int = DEFAULT_ACCOUNT_QUOTA_UNITS
    starts_settled: bool = True
    scaler: ScaledPlan | None = None
    region: str | None = None
    replicas: tuple[ReplicaSetup, ...] = ()
    burst_seconds: int = BURST_SECONDS
    on_raise: OnRaise = OnRaise.KEEP
    leases: tuple[Lease, ...] = ()
    jobs: tuple[JobSetup, ...] = ()
    buffer: Buffer | None = None
    notes: tuple[str, ...] = ()
    # not compared: names and keys change nothing that is simulated
    known: KnownTable | None = field(default=None, compare=False)

    @property
    def indexes(self) -> tuple[str, ...]:
        """Names of its indexes."""
        return tuple(resource.index for resource in self.resources if resource.index is not None)

    def each_target(self, change: Callable[[TargetSetup], TargetSetup]) -> TableSetup:
        """The same with every target changed."""
        return replace(self, resources=tuple(r.with_targets(change(r.read), change(r.write)) for r in self.resources))
