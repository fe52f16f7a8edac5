"""Reads what AWS knows of the tables that are due: in few calls for a region, then one table at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from highwater.aws import tables
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.cloudwatch import TargetAlarm, metrics_per_call
from highwater.aws.observe import NOTHING_KEPT, Kept, Region, observe_table
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target
from highwater.core.scaler import Clock, Observation, ScaledPlan, SeenTable
from highwater.core.scaler.attention import (
    due_targets,
    is_full_tick,
    minutes_to_observe,
    scaled_targets,
)
from highwater.handlers.scaler.event import BOOST, TICK, ScalerEvent


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """An alarm in *region* whose threshold should become *threshold*, in units consumed in a minute."""

    region: Region
    alarm: TargetAlarm
    threshold: int


@dataclass(slots=True)
class RunOutcome:
    """What a run did.

    Attributes:
        decisions: Every decision that changes something or was limited, as documents for the log.
        failed: Labels of the tables that failed, and why.
        left: Labels of the tables that there was no time for.
        notes: Sentences for the log that somebody should read.
        counts: Figures for CloudWatch, by the names of its metrics.
        thresholds: The alarms whose thresholds are still to be moved.
    """

    decisions: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    thresholds: list[ThresholdChange] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        """The answer to whoever invoked the function."""
        return {"counts": self.counts, "failed": self.failed, "left": self.left, "decisions": self.decisions}

    def count(self, name: str, by: int = 1) -> None:
        """Increment a counter."""
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, other: RunOutcome) -> None:
        """Add what was done for one table."""
        self.decisions += other.decisions
        self.notes += other.notes
        self.thresholds += other.thresholds
        for name, value in other.counts.items():
            self.count(name, value)


# A run takes minutes, and one that was handed on some more. An older event belongs to another day: one that somebody
# takes out of the dead-letter queue must not set last week's floors.
OLDEST_EVENT = timedelta(minutes=10)
# A read that fails has been tried four times, which may have taken a minute.
_MOST_FAILED_READS = 2


@dataclass(frozen=True, slots=True)
class DueTable:
    """A table with targets that are due.

    Attributes:
        scaled: Its plan.
        targets: The targets that are due.
    """

    scaled: ScaledPlan
    targets: tuple[Target, ...]

    def names(self) -> Mapping[TargetName, Target]:
        """The targets by the names that AWS knows them by."""
        return {TargetName(self.scaled.table, target.index, target.dimension): target for target in self.targets}


@dataclass(frozen=True, slots=True)
class GatheredRegion:
    """What is known of a region before its tables are looked at one by one.

    Attributes:
        clock: The times of the turn.
        due: The tables with targets that are due.
        registered: What Application Auto Scaling has of these targets.
        alarms: The targets' alarms.
        consumed: The targets' last minutes, without throttles.
    """

    clock: Clock
    due: tuple[DueTable, ...]
    registered: RegisteredTargets
    alarms: Mapping[TargetName, TargetAlarm]
    consumed: Mapping[TargetName, Observation]


def gather_region(
    region: Region, plans: Iterable[ScaledPlan], event: ScalerEvent, outcome: RunOutcome
) -> GatheredRegion | None:
    """Find the targets of *plans* that are due and read what takes one call for many; `None` where none is due."""
    complete = [_with_live_indexes(region, scaled, event) for scaled in plans]
    alarms = _read_alarms(region, complete, event, outcome)
    due = tuple(_due_tables(complete, event, alarms, outcome))
    if not due:
        return None
    names = [name for table in due for name in table.names()]
    registered = region.read_targets(names)
    clock = _clock(event, registered.at, outcome)
    return GatheredRegion(clock, due, registered, alarms, _read_consumption(region, due, clock, outcome))


def see_table(
    region: Region, due: DueTable, gathered: GatheredRegion, outcome: RunOutcome, kept: Kept = NOTHING_KEPT
) -> SeenTable:
    """Describe one table, read its boosts, and throttles of those of its targets that may have throttled.

    Raises:
        TableNotFoundError: The table is gone.
        TableBusyError: DynamoDB did not answer.
        TableRefusedError: DynamoDB refuses.
    """
    return observe_table(
        region,
        due.scaled,
        region.describe_table(due.scaled.table),
        due.names(),
        gathered.registered,
        gathered.consumed,
        gathered.clock,
        kept,
        outcome,
    )


def _due_tables(
    plans: Iterable[ScaledPlan], event: ScalerEvent, alarms: Mapping[TargetName, TargetAlarm], outcome: RunOutcome
) -> Iterator[DueTable]:
    """The tables with targets that are due. A plan whose windows make no sense fails alone."""
    for scaled in plans:
        try:
            targets = _due(scaled, event, alarms)
        except Exception as error:
            outcome.notes.append(f"a plan could not be read: {scaled.parameter}: {type(error).__name__}: {error}")
            outcome.count("UnreadablePlans")
            continue
        if targets:
            yield DueTable(scaled, targets)


def _due(scaled: ScaledPlan, event: ScalerEvent, alarms: Mapping[TargetName, TargetAlarm]) -> tuple[Target, ...]:
    """A tick looks at the targets whose turn it is; any other event at all targets of the tables that it names."""
    if event.kind != TICK or event.now is None:
        return scaled_targets(scaled)

    def is_in_alarm(target: Target) -> bool:
        alarm = alarms.get(TargetName(scaled.table, target.index, target.dimension))
        return alarm is not None and alarm.is_in_alarm

    return due_targets(scaled, event.now, is_in_alarm)


def _with_live_indexes(region: Region, scaled: ScaledPlan, event: ScalerEvent) -> ScaledPlan:
    """A plan that tags chose, with the indexes that its table has."""
    if not scaled.is_tagged:
        return scaled
    if event.kind == TICK and event.now is not None and not is_full_tick(scaled.table, _minute(event.now)):
        return scaled
    try:
        live = region.describe_table(scaled.table)
    except (tables.TableNotFoundError, tables.TableBusyError, tables.TableRefusedError):
        # the same call fails again when the table is looked at, and then counts against this table alone
        return scaled
    return scaled.with_indexes(index for index in live.capacities if index is not None)


def _read_alarms(
    region: Region, plans: Iterable[ScaledPlan], event: ScalerEvent, outcome: RunOutcome
) -> Mapping[TargetName, TargetAlarm]:
    """The targets' alarms. Without them a tick looks at each target in its own minute, and thresholds stay.

    An event for some tables asks for their alarms only: a storm of alarms would exceed the rate of DescribeAlarms.
    """
    following = [scaled for scaled in plans if scaled.mode.follows_demand]
    names = [TargetName(scaled.table, *target.key) for scaled in following for target in scaled_targets(scaled)]
    if event.kind == BOOST or not names:
        # somebody waits; the next tick moves the thresholds
        return {}
    try:
        return region.read_alarms(names if event.tables else None)
    except Exception as error:
        outcome.notes.append(f"no alarms could be read: {type(error).__name__}: {error}")
        return {}


def _clock(event: ScalerEvent, service: datetime, outcome: RunOutcome) -> Clock:
    """The event's minute, and AWS's time where that is later; AWS's alone for an event without a time or an old one."""
    of_event = service if event.now is None else event.now
    if abs(of_event - service) > OLDEST_EVENT:
        outcome.notes.append(
            f"the event is of {of_event:%Y-%m-%d %H:%M:%S} UTC, AWS's time is {service:%Y-%m-%d %H:%M:%S}: "
            "the scaler decides for AWS's time"
        )
        of_event = service
    return Clock(_minute(of_event), max(of_event, service))


def _read_consumption(
    region: Region, due: Iterable[DueTable], clock: Clock, outcome: RunOutcome
) -> Mapping[TargetName, Observation]:
    """The last minutes of every target that is due; nothing for those that CloudWatch does not answer for."""
    found: dict[TargetName, Observation] = {}
    by_minutes: dict[int, list[TargetName]] = {}
    for table in due:
        if not table.scaled.mode.follows_demand:
            found |= dict.fromkeys(table.names(), Observation.nothing())
            continue
        by_minutes.setdefault(minutes_to_observe(table.scaled, clock), []).extend(table.names())
    failed = 0
    for minutes, names in _batches(by_minutes):
        try:
            if failed < _MOST_FAILED_READS:
                found |= region.read_consumption(names, minutes, clock.now)
                continue
        except Exception as error:  # without metrics floors may rise to their plans and never fall
            outcome.notes.append(f"no metrics could be read: {type(error).__name__}: {error}")
            failed += 1
        outcome.count("MetricsMissing", len(names))
        found |= dict.fromkeys(names, Observation.nothing())
    return found


def _batches(by_minutes: Mapping[int, list[TargetName]]) -> Iterator[tuple[int, list[TargetName]]]:
    """The targets in groups that are read at once, so that one refused call leaves the others what they were told."""
    for minutes, names in by_minutes.items():
        size = metrics_per_call(minutes)
        for start in range(0, len(names), size):
            yield minutes, names[start : start + size]


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
