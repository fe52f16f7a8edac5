"""One table in one run of the scaler: decide for each of its targets, apply, and say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import alarms, autoscaling, metrics, plans, tables
from highwater.aws.alarms import SeenAlarm
from highwater.aws.autoscaling import SeenTargets
from highwater.aws.plans import StoredPlan
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target
from highwater.core.scaler.attention import (
    THROTTLE_MINUTES,
    alarm_threshold,
    is_daily_tick,
    is_throttle_tick,
    may_have_throttled,
)
from highwater.core.scaler.decide import TargetState, decide
from highwater.core.scaler.decisions import Decision, LimitCode
from highwater.core.scaler.direct import in_one_call, wanted_units
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.on_demand import on_demand_percent
from highwater.core.scaler.settings import Mode, ScalerSettings
from highwater.core.schedule.bounds import Bounds, bounds_at

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ssm import SSMClient


# What is found is the least that provisioned capacity costs: under it on-demand is cheaper whatever else
_SURELY_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Clients:
    """What a run talks to AWS with; boto3's clients may be used by several threads."""

    dynamodb: DynamoDBClient = field(default_factory=tables.client)
    autoscaling: ApplicationAutoScalingClient = field(default_factory=autoscaling.client)
    cloudwatch: CloudWatchClient = field(default_factory=metrics.client)
    ssm: SSMClient = field(default_factory=plans.client)

    @classmethod
    def elsewhere(cls, region: str, ssm: SSMClient) -> Clients:
        """Those of another region, and *ssm* for the plans, which are all in one place."""
        return cls(tables.client(region), autoscaling.client(region), metrics.client(region), ssm)


@dataclass(slots=True)
class Outcome:
    """What a run did.

    Attributes:
        decisions: Every decision that changes something or was limited, as documents for the log.
        failed: Tables that failed, and why.
        left: Tables that there was no time for.
        notes: What somebody should know.
        counts: Figures for CloudWatch.
    """

    decisions: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, Any]:
        """What a caller by hand is answered."""
        return {"counts": self.counts, "failed": self.failed, "left": self.left, "decisions": self.decisions}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a figure."""
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, other: Outcome) -> None:
        """Take up what was done for one table."""
        self.decisions += other.decisions
        self.notes += other.notes
        for name, value in other.counts.items():
            self.count(name, value)


@dataclass(frozen=True, slots=True)
class World:
    """What is the same for all tables of a run.

    Attributes:
        now: AWS's time when the run looked, or the event's where that is a little ahead: what is right now.
        turn: The event's minute since 1970: whose turn it is.
        due: The targets that it looks at.
        targets: What Application Auto Scaling has of them.
        alarms: Their alarms.
        observations: Their last minutes.
    """

    now: datetime
    turn: int
    due: frozenset[TargetName]
    targets: SeenTargets
    alarms: dict[TargetName, SeenAlarm]
    observations: dict[TargetName, Observation]


@dataclass(slots=True)
class ScaledTable:
    """A table as it stands, its plan, and what is done for it: an outcome of its own, as tables are done in threads."""

    stored: StoredPlan
    live: tables.SeenTable
    world: World
    clients: Clients
    dry_run: bool
    outcome: Outcome = field(default_factory=Outcome)

    def scale(self) -> Outcome:
        """Bring every target that is due to where it should be."""
        by_index: dict[str | None, list[Decision]] = {}
        due = self._due()
        seen = self._with_throttles(list(due))
        self._compare_with_on_demand()
        for name, (target, current) in due.items():
            by_index.setdefault(target.index, []).append(self._decide(target, current, seen[name]))
        for index, decided in by_index.items():
            decisions: Sequence[Decision] = decided
            if self.stored.mode is Mode.DIRECT:
                decisions = in_one_call(decided)
                self._apply_direct(index, decisions)
            else:
                self._apply_floors(decisions)
            for decision in decisions:
                self._tell(decision)
                self._arm(decision)
        return self.outcome

    def _compare_with_on_demand(self) -> None:
        """Once a day, whether on-demand would have cost less: provisioned capacity does not serve bursts well."""
        world = self.world
        if not is_daily_tick(self.stored.table, world.turn):
            return
        days = []
        for target in self.stored.plan.targets():
            seen = world.observations.get(TargetName(self.stored.table, target.index, target.dimension))
            if seen is None:
                # a dimension that is not scaled: the table is not known whole
                return
            days.append((target.dimension, seen.known_units))
        percent = on_demand_percent(days)
        if percent is not None and percent < _SURELY_PERCENT:
            self.outcome.count("CheaperOnDemand")
            self.outcome.notes.append(
                f"{self.stored.label}: idles and bursts: on demand its last day would have cost {percent} % of the "
                "least that provisioned capacity could: use on-demand, or see what highwater recommend says"
            )

    def _due(self) -> dict[TargetName, tuple[Target, int]]:
        """The targets to decide for, each with the value that is there; what is left alone is noted."""
        found = {}
        for target in self.stored.plan.targets():
            name = TargetName(self.stored.table, target.index, target.dimension)
            if name in self.world.due and target.index in self.live.capacities:
                current = self._current(target, name)
                if current is not None:
                    found[name] = (target, current)
        return found

    def _current(self, target: Target, name: TargetName) -> int | None:
        """The floor that is registered, or in DIRECT mode the capacity; `None` where the target is to be left alone."""
        provisioned = self.live.capacities[target.index].of(target.dimension)
        registered = self.world.targets.of(name)
        region = "" if self.stored.region is None else f" in {self.stored.region}"
        label = f"{name.resource_id} {name.dimension}{region}"
        if self.stored.mode is Mode.DIRECT and registered is not None:
            self.outcome.notes.append(f"{label}: left to Application Auto Scaling")
            return None
        if self.stored.mode is Mode.FLOOR and registered is None:
            self.outcome.notes.append(f"{label}: no scalable target is registered")
            return None
        if self.stored.mode is Mode.FLOOR and self.world.targets.is_suspended(name):
            self.outcome.count("Paused")
            return None
        if provisioned == 0:
            self.outcome.notes.append(f"{label}: on demand by now, nothing to scale")
            return None
        return provisioned if registered is None else registered.min

    def _decide(self, target: Target, current: int, seen: Observation) -> Decision:
        bounds = bounds_at(target, self.world.now)
        state = TargetState(
            index=target.index,
            dimension=target.dimension,
            current=current,
            baseline=min(bounds.min, bounds.max),
            ceiling=bounds.max,
            quota_units=self.stored.plan.table_quota_units,
            budget=self.live.budgets[target.index],
        )
        return decide(ScalerSettings.of(self.stored.mode), state, seen, now=self.world.now)

    def _with_throttles(self, names: Sequence[TargetName]) -> dict[TargetName, Observation]:
        """What is seen of the targets. Throttles cost more metrics: asked for only where there may have been some."""
        world = self.world
        seen = {name: world.observations[name] for name in names}
        is_everyones_turn = is_throttle_tick(self.stored.table, world.turn)
        throttling = {
            name: observation
            for name, observation in seen.items()
            if is_everyones_turn
            or may_have_throttled(
                observation.consumed_units,
                self.live.capacities[name.index].of(name.dimension),
                self.live.increased.get(name.index),
                world.now,
            )
        }
        if not throttling:
            return seen
        try:
            return seen | metrics.with_throttles(self.clients.cloudwatch, throttling, THROTTLE_MINUTES, world.now)
        except Exception as error:
            of = ", ".join(f"{name.resource_id} {name.dimension}" for name in throttling)
            self.outcome.notes.append(f"{self.stored.label}: no throttles known of {of}: {error}")
            self.outcome.count("MetricsMissing", len(throttling))
            return seen | {name: replace(seen[name], lacks_throttles=True) for name in throttling}

    def _apply_floors(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            name = self._name(decision)
            target = next(
                target
                for target in self.stored.plan.targets()
                if (target.index, target.dimension) == (decision.index, decision.dimension)
            )
            wanted = Bounds(decision.granted, bounds_at(target, self.world.now).max)
            seen = self.world.targets.of(name)
            if wanted == seen or self.dry_run or self._was_overtaken(name, seen, wanted):
                continue
            tables.translating(partial(autoscaling.set_bounds, self.clients.autoscaling, name, wanted))
            self.outcome.count("FloorsSet")

    def _was_overtaken(self, name: TargetName, seen: Bounds | None, wanted: Bounds) -> bool:
        """Whether another run set a higher floor since this one looked: two at once must not leave the lower."""
        live = autoscaling.see_targets(self.clients.autoscaling, [name]).of(name)
        if live is None or live == seen or live.min <= wanted.min:
            return False
        where = f"{name.resource_id} {name.dimension}"
        self.outcome.notes.append(
            f"{self.stored.label}: left the floor of {where} at {live.min:,}, which another run set meanwhile"
        )
        return True

    def _apply_direct(self, index: str | None, decisions: Sequence[Decision]) -> None:
        wanted = wanted_units(decisions)
        if not wanted or self.dry_run or not self.live.is_active:
            return
        increased = self.live.increased.get(index)
        if increased is not None and increased > self.world.now and any(it.granted < it.current for it in decisions):
            where = self.stored.label if index is None else f"{self.stored.label}'s index {index}"
            self.outcome.notes.append(f"{where}: left as it is, as it was raised meanwhile")
            return
        units = self.live.capacities[index].with_units(wanted)
        try:
            tables.set_capacity(self.clients.dynamodb, self.stored.table, index, units)
            self.outcome.count("CapacitiesSet")
        except (tables.DecreaseRefusedError, tables.TableBusyError, tables.OvertakenError) as refused:
            # the next run looks again
            self.outcome.notes.append(f"{self.stored.label}: {refused}")

    def _arm(self, decision: Decision) -> None:
        """Move the alarm's threshold with the capacity; without an alarm, ticks alone look after the target."""
        alarm = self.world.alarms.get(self._name(decision))
        provisioned = self.live.capacities[decision.index].of(decision.dimension)
        threshold = alarm_threshold(max(decision.granted, provisioned))
        if alarm is not None and alarm.threshold != threshold and not self.dry_run:
            alarms.move_threshold(self.clients.cloudwatch, alarm, threshold)
            self.outcome.count("AlarmsMoved")

    def _name(self, decision: Decision) -> TargetName:
        return TargetName(self.stored.table, decision.index, decision.dimension)

    def _tell(self, decision: Decision) -> None:
        if decision.has_hot_key:
            self.outcome.count("HotKeys")
        if decision.limited_by(LimitCode.CEILING):
            self.outcome.count("AtCeiling")
        if decision.limited_by(LimitCode.DECREASE_BUDGET):
            self.outcome.count("DecreaseBudgetExhausted")
        # the plan's own floor holds idle targets all day: nothing to tell
        held_back = any(limit.code is not LimitCode.BASELINE for limit in decision.limits)
        if not decision.changes and not held_back and not decision.has_hot_key:
            return
        self.outcome.decisions.append(
            {
                "table": self.stored.label,
                "target": decision.label,
                "mode": str(self.stored.mode),
                "current": decision.current,
                "wanted": decision.wanted,
                "granted": decision.granted,
                "reason": decision.reason,
                "limits": [
                    {"code": str(limit.code), "before": limit.before, "after": limit.after, "sentence": limit.sentence}
                    for limit in decision.limits
                ],
                "hot_key": decision.has_hot_key,
                "dry_run": self.dry_run,
            }
        )
