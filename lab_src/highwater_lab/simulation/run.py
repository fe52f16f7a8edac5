"""The result of a run: every minute of every target, the events with their reasons, and the figures that follow."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from highwater.core import Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.physics.throughput import Cause
from highwater_lab.services.billing import Bill
from highwater_lab.services.commitments import CapacityHours
from highwater_lab.simulation.setup import JobRun, QueueRun
from highwater_lab.traffic.series import Stream


class EventKind(StrEnum):
    """What an event is."""

    SCALE_OUT = "scale-out"
    SCALE_IN = "scale-in"
    BOUNDS = "bounds"
    REFUSED = "refused"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that explains a change, or why none came.

    Attributes:
        at: Seconds from the start of the traffic.
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE, `None` for what concerns both.
        kind: What it is.
        text: The sentence for a person.
        before: Units per second before; with `after` for capacity events only.
        after: Units per second after.
    """

    at: int
    index: str | None
    dimension: Dimension | None
    kind: EventKind
    text: str
    before: int | None = None
    after: int | None = None


Change = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TargetRun:
    """The record of one target; quanta are sixtieths of a unit.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        consumed: Quanta consumed per minute.
        throttled: Quanta throttled per minute and cause, for minutes that had any.
        capacity: Changes of provisioned units: second, units; the first at 0. Zero units are on-demand.
        bounds: Changes of floor and ceiling: second, floor, ceiling; the first at 0.
        hour_peaks: Highest provisioned units of each hour of the clock.
        held_back: Of an index's writes, quanta of the table's writes that it throttled, per minute and its own cause.
        peaks: The highest rate asked for in each minute with throttles, in quanta per second.
        heaviest_key: The share of the requests that goes to the most frequent key, in millionths; 0 if all are alike.
        target_percent: The target utilization of the policy that scales it, `None` without one.
        is_scaled: Whether target tracking or a scaler moves its capacity.
        quota_units: The account's quota of units per second for each table and index.
    """

    index: str | None
    dimension: Dimension
    consumed: array[int]
    throttled: Mapping[int, Mapping[Cause, int]]
    capacity: tuple[Change, ...]
    bounds: tuple[tuple[int, int, int], ...]
    hour_peaks: tuple[int, ...]
    held_back: Mapping[int, Mapping[ThrottleCause, int]] = field(default_factory=dict)
    peaks: Mapping[int, int] = field(default_factory=dict)
    heaviest_key: int = 0
    target_percent: int | None = None
    is_scaled: bool = True
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS

    @property
    def label(self) -> str:
        """`table write`, `index 'by_status' read`."""
        return f"{'table' if self.index is None else f'index {self.index!r}'} {self.dimension}"

    @property
    def stream(self) -> Stream:
        """The stream of traffic that it serves."""
        return Stream(self.index, self.dimension)

    @property
    def consumed_units(self) -> float:
        """All units consumed."""
        return sum(self.consumed) / QUANTA_PER_UNIT

    @property
    def throttled_units(self) -> float:
        """All units throttled."""
        return sum(sum(causes.values()) for causes in self.throttled.values()) / QUANTA_PER_UNIT

    @property
    def demanded_units(self) -> float:
        """All units asked for: consumed and throttled."""
        return self.consumed_units + self.throttled_units

    @property
    def throttled_per_million(self) -> float:
        """Throttled of a million units asked for; 0 where nothing was asked for."""
        return self.throttled_units * 1e6 / self.demanded_units if self.demanded_units else 0.0

    def throttled_by_cause(self) -> dict[Cause, float]:
        """Units throttled by cause, the most first."""
        totals: dict[Cause, int] = {}
        for causes in self.throttled.values():
            for cause, quanta in causes.items():
                totals[cause] = totals.get(cause, 0) + quanta
        return {cause: quanta / QUANTA_PER_UNIT for cause, quanta in sorted(totals.items(), key=lambda item: -item[1])}

    def demand_quanta(self, minute: int) -> int:
        """Quanta asked for in a minute."""
        return self.consumed[minute] + sum(self.throttled.get(minute, {}).values())

    @property
    def provisioned_units(self) -> float:
        """Provisioned units times seconds over the run."""
        end = len(self.consumed) * 60
        changes = [*self.capacity, (end, 0)]
        return float(sum(units * (later - at) for (at, units), (later, _) in itertools.pairwise(changes)))

    def capacity_by_minute(self) -> Iterator[int]:
        """Provisioned units at the end of each minute."""
        changes = iter([*self.capacity[1:], (len(self.consumed) * 60 + 60, 0)])
        units, (at, following) = self.capacity[0][1], next(changes)
        for minute in range(len(self.consumed)):
            while at <= minute * 60 + 60:
                units, (at, following) = following, next(changes)
            yield units


@dataclass(frozen=True, slots=True)
class Run:
    """One table, one policy, one stretch of traffic.

    Attributes:
        table: Name of the table.
        policy: Name of the policy.
        start: The first minute, UTC.
        minutes: How many there were.
        targets: The record of each target: the table's reads and writes, then each index's.
        events: What explains each change, in order of time.
        decreases: Decreases accepted, of the table and all indexes.
        refused_decreases: Decreases asked for and refused, each attempt counted.
        bill: What it cost.
        jobs: What became of the background work.
        queue: What became of the queue in front of the writes, `None` without one.
    """

    table: str
    policy: str
    start: datetime
    minutes: int
    targets: tuple[TargetRun, ...]
    events: tuple[Event, ...]
    decreases: int
    refused_decreases: int
    bill: Bill
    notes: tuple[str, ...] = field(default=())
    jobs: tuple[JobRun, ...] = field(default=())
    queue: QueueRun | None = None

    def target(self, dimension: Dimension, index: str | None = None) -> TargetRun:
        """One target's record; raises `KeyError` where there is none."""
        for target in self.targets:
            if (target.index, target.dimension) == (index, dimension):
                return target
        raise KeyError(f"no {dimension} of {'the table' if index is None else f'index {index!r}'}")

    @property
    def arriving(self) -> tuple[TargetRun, ...]:
        """The targets that requests arrive at: all but writes of indexes, which come from the table's."""
        return tuple(t for t in self.targets if t.index is None or t.dimension is Dimension.READ)

    @property
    def demanded_units(self) -> float:
        """Units that applications asked for; an index's share of a write is not counted again."""
        return sum(target.demanded_units for target in self.arriving)

    @property
    def throttled_units(self) -> float:
        """Units of them throttled."""
        return sum(target.throttled_units for target in self.arriving)

    @property
    def throttled_per_million(self) -> float:
        """Throttled of a million units asked for; 0 where nothing was asked for."""
        return self.throttled_units * 1e6 / self.demanded_units if self.demanded_units else 0.0

    @property
    def throttled_percent(self) -> float:
        """The percentage of the units asked for that were throttled."""
        return self.throttled_per_million / 10_000

    def throttled_minutes(self) -> tuple[int, ...]:
        """The minutes in which requests were throttled."""
        return tuple(sorted({minute for target in self.arriving for minute in target.throttled}))

    def worst_minute(self) -> tuple[int, float] | None:
        """The minute with the most throttled units, and how many; `None` where none were."""
        totals: dict[int, int] = {}
        for target in self.arriving:
            for minute, causes in target.throttled.items():
                totals[minute] = totals.get(minute, 0) + sum(causes.values())
        if not totals:
            return None
        worst = max(totals, key=lambda minute: (totals[minute], -minute))
        return worst, totals[worst] / QUANTA_PER_UNIT

    def throttled_by_cause(self) -> dict[Cause, float]:
        """Units throttled by cause, the most first."""
        totals: dict[Cause, float] = {}
        for target in self.arriving:
            for cause, units in target.throttled_by_cause().items():
                totals[cause] = totals.get(cause, 0.0) + units
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    @property
    def capacity_hours(self) -> CapacityHours:
        """What was provisioned, or consumed on demand, in each whole clock hour."""
        targets = [(each.dimension, each.hour_peaks, each.consumed) for each in self.targets]
        return CapacityHours.of_targets(self.start, targets, self.minutes)

    @property
    def utilization_percent(self) -> float | None:
        """Achieved utilization: all units consumed over all provisioned; `None` on demand."""
        provisioned = sum(target.provisioned_units for target in self.targets)
        consumed = sum(target.consumed_units for target in self.targets)
        return 100 * consumed / provisioned if provisioned else None


def percent_text(percent: float) -> str:
    """Return a percentage with two significant digits, as `0.067` and `31`; from 99.5 on with three, as `99.8`."""
    # two digits of these would be `1e+02`
    return f"{percent:.{2 if percent < 99.5 else 3}g}"
