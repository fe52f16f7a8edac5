"""The one interface of all policies, and what a policy sees of a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter

from highwater.core import Bounds, Dimension, Target, Units
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS, Slots
from highwater.core.scaler.burst import CAPACITY_MINUTES
from highwater.core.scaler.minutes import Minutes, MinuteSeries
from highwater.core.scaler.regret import PastSeries, planned_by_minute
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.physics.throughput import Cause
from highwater_lab.services.update_table import CapacityControl, Refused
from highwater_lab.simulation.fleet import Pulses, ToldSlots
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.simulation.targets import SimulatedTarget
from highwater_lab.traffic.series import Traffic


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that a scaler changes a table with.

    Attributes:
        update_table: Index or `None`, wanted units by dimension; answers what refused it, or `None`.
        set_bounds: Index or `None`, dimension, bounds: RegisterScalableTarget, which clamps at once.
    """

    update_table: Callable[[str | None, Mapping[Dimension, int]], Refused | None]
    set_bounds: Callable[[str | None, Dimension, Bounds], None]


class PolicyTarget:
    """One target: its capacity, bounds, and the metrics of its last minutes, per second unless said otherwise."""

    def __init__(self, state: SimulatedTarget, gauge_age: int) -> None:
        self._state = state
        self._gauge_age = gauge_age
        self.dimension = state.dimension
        self.newest = -1
        self.told: ToldSlots | None = None
        self.newest_slot, self.base_slot = -1, 0
        self._minutes = MinuteSeries()
        self._past: PastSeries | None = None

    @property
    def units(self) -> int:
        """Provisioned units per second."""
        return self._state.throughput.units

    @property
    def floor(self) -> int:
        """The lowest that its policy may set."""
        return self._state.floor

    @property
    def bounds(self) -> Bounds:
        """Floor and ceiling."""
        return Bounds(self.floor, self.ceiling)

    @property
    def ceiling(self) -> int:
        """The highest that its policy may set."""
        return self._state.ceiling

    def throttled(self, minutes: int) -> list[float]:
        """Throttled units in each of the last known minutes, oldest first: a count per minute, not a rate."""
        found = self._state.throttled
        end = max(0, self.newest + 1)
        return [
            sum(found[minute].values()) / 60 if minute in found else 0.0 for minute in range(max(0, end - minutes), end)
        ]

    def throttled_by(self, cause: Cause, minutes: int) -> list[int]:
        """Quanta throttled for that cause in each of the last known minutes."""
        found, end = self._state.throttled, max(0, self.newest + 1)
        return [found[minute].get(cause, 0) if minute in found else 0 for minute in range(max(0, end - minutes), end)]

    @property
    def newest_quanta(self) -> int:
        """Quanta consumed in the newest known minute; 0 before the first."""
        return self._state.consumed[self.newest] if self.newest >= 0 else 0

    def consumed_quanta(self, minutes: int) -> list[int]:
        """Quanta consumed in each of the last known minutes, oldest first."""
        end = max(0, self.newest + 1)
        return list(self._state.consumed[max(0, end - minutes) : end])

    def minutes(self, minutes: int) -> Minutes:
        """Units consumed, rounded up, in each of the last known minutes."""
        end, consumed = max(0, self.newest + 1), self._state.consumed
        while len(self._minutes) < end:
            self._minutes.append(-(-consumed[len(self._minutes)] // QUANTA_PER_UNIT))
        return self._minutes.window(end, minutes)

    def past(self, target: Target, first: int) -> PastSeries:
        """The minutes that are known, as CloudWatch would show them; *target* has the plan, *first* is since 1970."""
        past = self._past = self._past or PastSeries(first)
        # a minute waits for the next two datapoints of its capacity, as their values are older than they say
        while len(past) + 2 * CAPACITY_MINUTES <= self.newest:
            before = len(past)
            capacity = max(self._gauge(before + minutes) for minutes in (0, CAPACITY_MINUTES, 2 * CAPACITY_MINUTES))
            planned = planned_by_minute(target, first + before, CAPACITY_MINUTES)
            for minute, bounds in enumerate(planned, before):
                throttled = self._state.throttled.get(minute, {}).get(ThrottleCause.PROVISIONED, 0) // QUANTA_PER_UNIT
                consumed = -(-self._state.consumed[minute] // QUANTA_PER_UNIT)
                past.append(consumed, throttled, capacity, bounds)
        return past

    def _gauge(self, minute: int) -> int:
        """The provisioned capacity that CloudWatch shows at a minute."""
        changes = self._state.capacity
        return changes[max(bisect_right(changes, minute * 60 - self._gauge_age, key=itemgetter(0)) - 1, 0)][1]

    def pulses(self, slots: int) -> Slots | None:
        """What the fleet told of the last slots that are known; `None` for a fleet that tells nothing."""
        return None if self.told is None else self.told.slots(slots, self.newest_slot, self.base_slot)


class PolicyResource:
    """A table or index as DescribeTable shows it, with its targets."""

    def __init__(self, index: str | None, control: CapacityControl, read: PolicyTarget, write: PolicyTarget) -> None:
        self.index = index
        self.read = read
        self.write = write
        self._control = control

    @property
    def targets(self) -> tuple[PolicyTarget, PolicyTarget]:
        """Reads, then writes."""
        return self.read, self.write

    def is_busy(self, now: int) -> bool:
        """Whether a change is under way (status UPDATING)."""
        return self._control.is_changing(now)

    def decreases_today(self, now: int) -> int:
        """NumberOfDecreasesToday."""
        return self._control.decreases_on_day(now)

    @property
    def mark(self) -> Units:
        """The high-water marks (WarmThroughput)."""
        return Units(self._control.mark[Dimension.READ], self._control.mark[Dimension.WRITE])

    @property
    def last_decrease(self) -> int | None:
        """LastDecreaseDateTime."""
        return self._control.last_decrease

    @property
    def last_increase(self) -> int | None:
        """LastIncreaseDateTime."""
        return self._control.last_increase


class Seen:
    """All that a poller sees of one table.

    Attributes:
        now: Seconds since 1970, UTC.
        resources: The table first, then its indexes.
        targets: Their targets.
    """

    def __init__(
        self, resources: tuple[PolicyResource, ...], metric_delay: int, base: int, pulse_delay: int = 0
    ) -> None:
        self.now = base
        self.resources = resources
        self.targets: dict[TargetKey, PolicyTarget] = {
            (resource.index, target.dimension): target for resource in resources for target in resource.targets
        }
        self._delay = metric_delay
        self._base = base
        self._pulse_delay = pulse_delay

    def minute_of(self, position: int) -> int:
        """A minute of the run, such as a target's `newest`, counted since 1970."""
        return self._base // 60 + position

    def move_to(self, at: int) -> None:
        """Let it be so many seconds after the start."""
        self.now = self._base + at
        newest = (at - self._delay) // 60 - 1
        newest_slot = (at - self._pulse_delay) // SLOT_SECONDS - 1
        for target in self.targets.values():
            target.newest, target.newest_slot = newest, newest_slot


class Policy:
    """A way to size a table: as declared, unless a subclass does otherwise. Made anew for each run.

    Attributes:
        name: As people ask for it: `native:70`.
        source: Where the algorithm and its defaults come from.
        period_seconds: How often `poll` is called, `None` for never.
        metrics_per_target: Metrics that one poll asks CloudWatch for, per target, unless it says how many it did.
        alarms_per_target: CloudWatch alarms of its own, beside those of target tracking.
        pulses: How the table's fleet tells what it asks for, `None` for a fleet that tells nothing.
    """

    name = "declared"
    source = "the template: windows, target tracking, limits"
    period_seconds: int | None = None
    metrics_per_target = 0
    alarms_per_target = 0
    pulses: Pulses | None = None

    @property
    def actor(self) -> str:
        """Who it is that changes something, for what a run tells."""
        return self.name

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002 - some look ahead
        """The table as this policy has it before the start."""
        return setup

    def rings(self, seen: Seen) -> bool:  # noqa: ARG002 - whoever has alarms looks
        """Whether an alarm of its own goes to ALARM now, which polls it; asked once a minute."""
        return False

    def needs_help(self, seen: Seen) -> bool:  # noqa: ARG002 - whoever hears pulses looks
        """Whether the fleet's pulses, as they are known now, wake the policy."""
        return False

    def poll(self, seen: Seen, calls: Calls) -> int | None:
        """Look at the table and change it; may answer how many metrics it asked for."""
