"""What a run's throttling comes from, and what an operator can do about it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from highwater.core import Dimension
from highwater.core.limits import MIN_TARGET_UTILIZATION_PERCENT
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import INDEX, QUANTA_PER_UNIT
from highwater_lab.physics.partitions import PARTITION_QUANTA, PARTITION_UNITS, WHOLE
from highwater_lab.physics.throughput import Cause
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.run import EventKind, Run, TargetRun


class Bottleneck(StrEnum):
    """What limits a target: the cause of its throttles, and as much of its scaling as the remedy depends on."""

    CEILING = "ceiling"
    FIXED = "fixed"
    NO_POLICY = "no-policy"
    FLOOR = "floor"
    FLOOR_ALONE = "floor-alone"
    LATE_FLOOR = "late-floor"
    MAXIMUM = "maximum"
    PREVIOUS_PEAK = "previous-peak"
    PARTITIONS = "partitions"
    HOT_READS = "hot-reads"
    HOT_WRITES = "hot-writes"
    HOT_INDEX_KEY = "hot-index-key"
    QUOTA = "quota"
    BETWEEN_MINUTES = "between-minutes"


# The remedy of each bottleneck. `where` is the table's or index's reads or writes, `demand` the most that was requested
# in a second, and the other numbers are of the minute that throttled most.
REMEDIES: Final[Mapping[Bottleneck, str]] = {
    # provisioned capacity
    Bottleneck.CEILING: "{where} needs up to {demand:,} units/s, and its ceiling is {ceiling:,}: raise the ceiling",
    Bottleneck.FIXED: "{where} needs up to {demand:,} units/s, and nothing scales its capacity of {capacity:,}: raise "
    "the capacity, or have auto scaling scale it",
    Bottleneck.NO_POLICY: "{where} needs up to {demand:,} units/s, and no policy scales its capacity of {capacity:,}: "
    "add target tracking to its scalable target, or raise its floor ahead of the surge",
    Bottleneck.FLOOR: "{where} rises to {demand:,} units/s faster than it is scaled from its floor of {floor:,}: raise "
    "the floor ahead of the surge, or lower the target utilization of {percent} %",
    # a scaler without target tracking, or a target utilization that cannot be lower
    Bottleneck.FLOOR_ALONE: "{where} rises to {demand:,} units/s faster than it is scaled from its floor of {floor:,}: "
    "raise the floor ahead of the surge",
    Bottleneck.LATE_FLOOR: "the floor of {where} is {floor:,}, enough for the {demand:,} units/s that it needs, but "
    "rises too late: raise it earlier",
    # on-demand capacity
    Bottleneck.MAXIMUM: "{where} needs up to {demand:,} units/s, more than its maximum on-demand throughput: raise or "
    "remove the maximum",
    Bottleneck.PREVIOUS_PEAK: "{where} needs up to {demand:,} units/s, more than its warm throughput and more than "
    "twice its previous peak: raise the warm throughput ahead of the surge, or let traffic take 30 minutes to double",
    # partitions, in both modes
    Bottleneck.PARTITIONS: "{where} needs more than the {partition:,} units/s of a partition from some partitions, "
    "but from no single key: raise the high-water mark, which adds partitions",
    Bottleneck.HOT_READS: "one key needs more than the {partition:,} units/s of a partition, so more capacity of "
    "{where} does not help: spread the key over shards, or put a cache in front of it",
    Bottleneck.HOT_WRITES: "one key needs more than the {partition:,} units/s of a partition, so more capacity of "
    "{where} does not help: spread the key over shards",
    Bottleneck.HOT_INDEX_KEY: "one key needs more than the {partition:,} units/s of a partition, so more capacity of "
    "{where} does not help: give the index a key with more values, such as the value with the number of a shard",
    # the account
    Bottleneck.QUOTA: "{where} needs up to {demand:,} units/s, more than the account's quotas allow: have AWS raise "
    "them, then give the new ones with --table-quota and --account-quota",
    # throttles that CloudWatch counted and that no simulation by the minute shows
    Bottleneck.BETWEEN_MINUTES: "its capacity is enough by the minute: look for a hot key, or for bursts "
    "within minutes",
}
# Demand above the ceiling needs a higher ceiling before the ceiling is reached, too
_BELOW_CEILING: Final = frozenset({Bottleneck.FLOOR, Bottleneck.FLOOR_ALONE})
# What comes before the remedy of an index that throttles the table's writes
_BY_INDEX: Final = "an index throttles the table's writes: "


_Change = TypeVar("_Change", bound=tuple[int, ...])


@dataclass(frozen=True, slots=True)
class Remedy:
    """A part of a run's throttling, and what to do about it.

    Attributes:
        target: The target whose limit it is; for a write that an index throttles, the index's writes.
        cause: The cause by which the run counts it.
        bottleneck: What limits the target.
        units: The throttled units that applications asked for.
        text: What to do, a sentence.
    """

    target: TargetRun
    cause: Cause
    bottleneck: Bottleneck
    units: float
    text: str


def remedies(run: Run) -> list[Remedy]:
    """Return the remedies of a run's throttling, those of the most throttled units first; none if nothing throttles."""
    parts: dict[tuple[str, Cause, Bottleneck], _Part] = {}
    above_quota = _refused_for_quota(run)

    def add(target: TargetRun, counted: Cause, own: ThrottleCause, minute: int, quanta: int) -> None:
        bottleneck = _bottleneck(target, own, minute, above_quota.get(target.label, ()))
        above = _above_ceiling(target, minute, quanta) if bottleneck in _BELOW_CEILING else 0
        for share, each in ((quanta - above, bottleneck), (above, Bottleneck.CEILING)):
            if share:
                key = (target.label, counted, each)
                parts.setdefault(key, _Part(target, counted, each)).add(minute, share)

    for target in run.arriving:
        for minute, causes in target.throttled.items():
            for cause, quanta in causes.items():
                if cause != INDEX:
                    add(target, cause, cause, minute, quanta)
    for target in run.targets:
        for minute, held in target.held_back.items():
            for cause, quanta in held.items():
                add(target, INDEX, cause, minute, quanta)
    return sorted((part.remedy() for part in parts.values()), key=lambda remedy: -remedy.units)


@dataclass(slots=True)
class _Part:
    """The throttling of a target by one bottleneck."""

    target: TargetRun
    cause: Cause
    bottleneck: Bottleneck
    quanta: int = 0
    demand: int = 0
    worst: tuple[int, int] = (0, 0)

    def add(self, minute: int, quanta: int) -> None:
        self.quanta += quanta
        self.demand = max(self.demand, self.target.peaks.get(minute, 0), _mean(self.target, minute))
        self.worst = max(self.worst, (quanta, -minute))

    def remedy(self) -> Remedy:
        minute = -self.worst[1]
        _, floor, ceiling = _latest(self.target.bounds, minute * 60 + 59)
        text = REMEDIES[self.bottleneck].format(
            where=self.target.label,
            demand=-(-self.demand // QUANTA_PER_UNIT),
            capacity=_latest(self.target.capacity, minute * 60)[1],
            floor=floor,
            ceiling=ceiling,
            percent=self.target.target_percent,
            partition=PARTITION_UNITS[self.target.dimension],
        )
        before = _BY_INDEX if self.cause == INDEX else ""
        return Remedy(self.target, self.cause, self.bottleneck, self.quanta / QUANTA_PER_UNIT, before + text)


def _bottleneck(target: TargetRun, cause: ThrottleCause, minute: int, above_quota: Sequence[int]) -> Bottleneck:
    match cause:
        case ThrottleCause.ACCOUNT:
            return Bottleneck.QUOTA
        case ThrottleCause.MAX_ON_DEMAND:
            return Bottleneck.MAXIMUM
        case ThrottleCause.KEY_RANGE:
            return _of_partitions(target, minute)
        case ThrottleCause.PROVISIONED:
            return _of_capacity(target, minute, above_quota)


def _of_partitions(target: TargetRun, minute: int) -> Bottleneck:
    peak = max(target.peaks.get(minute, 0), _mean(target, minute))
    if peak * target.heaviest_key > PARTITION_QUANTA[target.dimension] * WHOLE:
        if target.index is not None:
            return Bottleneck.HOT_INDEX_KEY
        return Bottleneck.HOT_READS if target.dimension is Dimension.READ else Bottleneck.HOT_WRITES
    is_on_demand = _latest(target.capacity, minute * 60)[1] == 0
    return Bottleneck.PARTITIONS if target.heaviest_key or not is_on_demand else Bottleneck.PREVIOUS_PEAK


def _of_capacity(target: TargetRun, minute: int, above_quota: Sequence[int]) -> Bottleneck:
    # before a raise within the minute, after a change of its bounds
    start, end = minute * 60, minute * 60 + 59
    capacity = _latest(target.capacity, start)[1]
    _, floor, ceiling = _latest(target.bounds, end)
    demand = _mean(target, minute)
    refused = bisect_right(above_quota, end)
    is_refused = refused > 0 and above_quota[refused - 1] >= _latest(target.capacity, end)[0]
    if capacity >= target.quota_units or is_refused:
        return Bottleneck.QUOTA
    if not target.is_scaled:
        return Bottleneck.NO_POLICY if floor < ceiling else Bottleneck.FIXED
    if capacity >= ceiling:
        return Bottleneck.CEILING
    if capacity < floor and demand <= floor * QUANTA_PER_UNIT:
        return Bottleneck.LATE_FLOOR
    can_be_lower = (target.target_percent or 0) > MIN_TARGET_UTILIZATION_PERCENT
    return Bottleneck.FLOOR if can_be_lower else Bottleneck.FLOOR_ALONE


def _above_ceiling(target: TargetRun, minute: int, quanta: int) -> int:
    """Return how much of *quanta*, throttled below the ceiling, even capacity at the ceiling would have throttled."""
    ceiling = _latest(target.bounds, minute * 60 + 59)[2]
    above = max(0, target.demand_quanta(minute) - ceiling * QUANTA_PER_UNIT * 60)
    refused = sum(target.throttled.get(minute, {}).values())
    # the quanta may be the table's where the target is an index
    return quanta if above >= refused else quanta * above // refused


def _refused_for_quota(run: Run) -> dict[str, list[int]]:
    """Return by target the seconds at which more capacity was refused because of the account's quotas."""
    labels = {(target.index, target.dimension): target.label for target in run.targets}
    found: dict[str, list[int]] = {}
    for event in run.events:
        if event.kind is EventKind.REFUSED and event.text == Refused.QUOTA and event.dimension is not None:
            found.setdefault(labels[event.index, event.dimension], []).append(event.at)
    return found


def _mean(target: TargetRun, minute: int) -> int:
    """The demand of a minute in quanta per second, rounded up."""
    return -(-target.demand_quanta(minute) // 60)


def _latest(changes: Sequence[_Change], second: int) -> _Change:
    """Return the last change at or before *second*."""
    return changes[max(0, bisect_right(changes, second, key=lambda change: change[0]) - 1)]
