"""Reads the state of the tables that are due from AWS: in few calls for a region, then one table at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from highwater.aws import tables
from highwater.aws.autoscaling import RegisteredTargets, read_targets
from highwater.aws.cloudwatch import TargetAlarm, metrics_per_call, read_alarms, read_consumption
from highwater.aws.observe import fixed_names
from highwater.aws.region import AwsRegion
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target
from highwater.core.scaler import Clock, Mode, Observation, ScaledPlan
from highwater.core.scaler.attention import (
    due_targets,
    is_full_tick,
    may_be_lowered,
    minutes_to_observe,
    scaled_targets,
)
from highwater.core.scaler.metrics import ScalerMetric
from highwater.core.schedule.bounds import bounds_at
from highwater.handlers.scaler.event import BOOST, TICK, ScalerEvent

# Capacity is lowered at the same minute of each hour, and a decrease is accepted an hour after the last one. Runs begin
# some seconds early or late, so that without waiting every second hour's decrease would come too soon, and be lost.
_DECREASE_PATIENCE = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """An alarm in *region* whose threshold should become *threshold*, in units consumed in a minute."""

    region: AwsRegion
    alarm: TargetAlarm
    threshold: int


@dataclass(slots=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        decisions: Every decision that changes something or was limited, as documents for the log.
        failed: Labels of the tables that failed, and why.
        left: Labels of the tables for which there was no time.
        notes: Sentences for an operator, for the log.
        counts: Values for CloudWatch, by metric.
        figures: How much the run had to do, for the log alone.
        thresholds: The alarms whose thresholds are still to be moved.
    """

    decisions: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[ScalerMetric, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    thresholds: list[ThresholdChange] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        """Return the answer for the caller of the function."""
        return {
            "counts": {**self.figures, **self.counts},
            "failed": self.failed,
            "left": self.left,
            "decisions": self.decisions,
        }

    def count(self, metric: ScalerMetric, by: int = 1) -> None:
        """Add to what is published as *metric*."""
        self.counts[metric] = self.counts.get(metric, 0) + by

    def add(self, other: RunOutcome) -> None:
        """Add the outcome for one table."""
        self.decisions += other.decisions
        self.failed |= other.failed
        self.left += other.left
        self.notes += other.notes
        self.thresholds += other.thresholds
        for metric, value in other.counts.items():
            self.count(metric, value)
        for name, value in other.figures.items():
            self.figures[name] = self.figures.get(name, 0) + value


# A run takes minutes, and a run to which tables were handed on some more. An older event is outdated: one that is sent
# again from the dead-letter queue must not set last week's floors.
OLDEST_EVENT = timedelta(minutes=10)
# A read that fails was tried four times, which may have taken a minute.
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
        """Return the targets by their names in Application Auto Scaling."""
        return {TargetName(self.scaled.table, target.index, target.dimension): target for target in self.targets}


@dataclass(frozen=True, slots=True)
class GatheredRegion:
    """The state of a region, read before its tables are handled one by one.

    Attributes:
        clock: The times of the turn.
        due: The tables with targets that are due.
        registered: Bounds and suspensions of these targets in Application Auto Scaling, and of these tables' targets of
            fixed capacity.
        alarms: The targets' alarms.
    """

    clock: Clock
    due: tuple[DueTable, ...]
    registered: RegisteredTargets
    alarms: Mapping[TargetName, TargetAlarm]


def gather_region(
    region: AwsRegion,
    plans: Iterable[ScaledPlan],
    event: ScalerEvent,
    outcome: RunOutcome,
    boosted: Set[str] = frozenset(),
) -> GatheredRegion | None:
    """Find the targets of *plans* that are due, and read their state in joint calls; `None` if none is due.

    For a tick all targets of the tables with the labels *boosted* are due.
    """
    complete = [_with_live_indexes(region, scaled, event) for scaled in plans]
    alarms = _read_alarms(region, complete, event, outcome)
    below = _below_ceilings(region, complete, event, outcome)
    due = tuple(_due_tables(complete, event, alarms, outcome, below, boosted))
    if not due:
        return None
    names = [name for table in due for name in (*table.names(), *fixed_names(table.scaled))]
    registered = read_targets(region.autoscaling, names)
    clock = _clock(event, registered.at, outcome)
    return GatheredRegion(clock, due, registered, alarms)


def _due_tables(
    plans: Iterable[ScaledPlan],
    event: ScalerEvent,
    alarms: Mapping[TargetName, TargetAlarm],
    outcome: RunOutcome,
    below_ceilings: Set[TargetName],
    boosted: Set[str],
) -> Iterator[DueTable]:
    """Yield the tables with targets that are due. A plan with invalid windows fails without affecting the others."""
    for scaled in plans:
        try:
            targets = _due(scaled, event, alarms, below_ceilings, is_boosted=scaled.label in boosted)
        except Exception as error:
            outcome.notes.append(f"a plan could not be read: {scaled.parameter}: {type(error).__name__}: {error}")
            outcome.count(ScalerMetric.UNREADABLE_PLANS)
            continue
        if targets:
            yield DueTable(scaled, targets)


def _due(
    scaled: ScaledPlan,
    event: ScalerEvent,
    alarms: Mapping[TargetName, TargetAlarm],
    below_ceilings: Set[TargetName],
    *,
    is_boosted: bool,
) -> tuple[Target, ...]:
    """Return the targets to review: for a tick, those whose turn it is; for any other event, all of its tables."""
    if event.kind != TICK or event.now is None or is_boosted:
        return scaled_targets(scaled)

    def is_urgent(target: Target) -> bool:
        name = TargetName(scaled.table, *target.key)
        alarm = alarms.get(name)
        return name in below_ceilings or (alarm is not None and alarm.is_in_alarm)

    return due_targets(scaled, event.now, is_urgent)


def _below_ceilings(
    region: AwsRegion, plans: Iterable[ScaledPlan], event: ScalerEvent, outcome: RunOutcome
) -> Set[TargetName]:
    """Return the targets whose ceiling is below that of the plan: an earlier run ended before it raised it again.

    They are looked for in ticks after which capacity may have been lowered through the ceiling, in a few calls without
    charge. If they cannot be read, a table's next full tick finds them.
    """
    if event.kind != TICK or event.now is None or not may_be_lowered(event.now):
        return frozenset()
    ceilings = dict(_planned_ceilings(plans, event.now))
    if not ceilings:
        return frozenset()
    try:
        registered = read_targets(region.autoscaling, ceilings)
    except Exception as error:
        outcome.notes.append(f"ceilings could not be compared with the plans: {type(error).__name__}: {error}")
        return frozenset()
    bounds = {name: registered.of(name) for name in ceilings}
    return {name for name, live in bounds.items() if live is not None and live.max < ceilings[name]}


def _planned_ceilings(plans: Iterable[ScaledPlan], at: datetime) -> Iterator[tuple[TargetName, int]]:
    """Yield the ceilings that the plans of FLOOR mode ask for at the aware instant *at*."""
    for scaled in plans:
        if scaled.mode is not Mode.FLOOR:
            continue
        try:
            found = [(TargetName(scaled.table, *each.key), bounds_at(each, at).max) for each in scaled_targets(scaled)]
        except Exception:  # noqa: S112 - a plan with invalid windows is noted where its targets are looked for
            continue
        yield from found


def _with_live_indexes(region: AwsRegion, scaled: ScaledPlan, event: ScalerEvent) -> ScaledPlan:
    """Return a plan of a tagged table with the table's present indexes."""
    if not scaled.is_tagged:
        return scaled
    if event.kind == TICK and event.now is not None and not is_full_tick(scaled.table, _minute(event.now)):
        return scaled
    try:
        live = tables.describe_table(region.dynamodb, scaled.table)
    except (tables.TableNotFoundError, tables.TableBusyError, tables.TableRefusedError):
        # the same call fails again when the table is read, and then only this table fails
        return scaled
    return scaled.with_indexes(index for index in live.capacities if index is not None)


def _read_alarms(
    region: AwsRegion, plans: Iterable[ScaledPlan], event: ScalerEvent, outcome: RunOutcome
) -> Mapping[TargetName, TargetAlarm]:
    """Return the targets' alarms. If they cannot be read, a tick reviews each target in its minute; thresholds stay.

    An event for some tables reads their alarms only: when many alarms go off at once, reading all of them for each
    event would exceed the rate of DescribeAlarms.
    """
    following = [scaled for scaled in plans if scaled.mode.follows_demand]
    names = [TargetName(scaled.table, *target.key) for scaled in following for target in scaled_targets(scaled)]
    if event.kind == BOOST or not names:
        # a job waits for the answer; the next tick moves the thresholds
        return {}
    try:
        return read_alarms(region.cloudwatch, names if event.tables else None)
    except Exception as error:
        outcome.notes.append(f"no alarms could be read: {type(error).__name__}: {error}")
        return {}


def _clock(event: ScalerEvent, service: datetime, outcome: RunOutcome) -> Clock:
    """Return the event's minute, or AWS's time if that is later, or if the event has no time or is too old."""
    of_event = service if event.now is None else event.now
    if abs(of_event - service) > OLDEST_EVENT:
        outcome.notes.append(
            f"the event is of {of_event:%Y-%m-%d %H:%M:%S} UTC, AWS's time is {service:%Y-%m-%d %H:%M:%S}: "
            "the scaler decides for AWS's time"
        )
        of_event = service
    patience = _DECREASE_PATIENCE if event.kind == TICK else timedelta(0)
    return Clock(_minute(of_event), max(of_event, service), patience)


@dataclass(slots=True)
class Consumption:
    """Reads the last minutes of tables that are due, for some tables at a time.

    A run of thousands of targets has no memory for the minutes of all of them.

    Attributes:
        region: The clients of the tables' region.
        clock: The times of the turn.
        outcome: Collects what could not be read.
    """

    region: AwsRegion
    clock: Clock
    outcome: RunOutcome
    _failed: int = 0

    def groups(self, due: Iterable[DueTable]) -> Iterator[list[DueTable]]:
        """Yield the tables in groups that one call can read, so that a failed call does not affect the other groups."""
        by_minutes: dict[int, list[DueTable]] = {}
        for table in due:
            by_minutes.setdefault(minutes_to_observe(table.scaled, self.clock), []).append(table)
        for minutes, alike in by_minutes.items():
            group: list[DueTable] = []
            targets, most = 0, metrics_per_call(minutes)
            for table in alike:
                if group and targets + len(table.targets) > most:
                    yield group
                    group, targets = [], 0
                group.append(table)
                targets += len(table.targets)
            yield group

    def read(self, group: Sequence[DueTable]) -> Mapping[TargetName, Observation]:
        """Return the last minutes of the targets of a group; nothing for those whose metrics could not be read."""
        found = {name: Observation.nothing() for table in group for name in table.names()}
        names = [name for table in group if table.scaled.mode.follows_demand for name in table.names()]
        if not names:
            return found
        minutes, region = minutes_to_observe(group[0].scaled, self.clock), self.region
        try:
            if self._failed < _MOST_FAILED_READS:
                return found | read_consumption(region.cloudwatch, names, minutes, self.clock.now, region.rate)
        except Exception as error:  # without metrics, floors may rise to their plans but never fall
            self.outcome.notes.append(f"no metrics could be read: {type(error).__name__}: {error}")
            self._failed += 1
        self.outcome.count(ScalerMetric.METRICS_MISSING, len(names))
        return found


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
