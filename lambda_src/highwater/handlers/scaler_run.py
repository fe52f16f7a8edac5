"""One run of the scaler: gather what AWS knows, decide, apply, and say what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import alarms, autoscaling, metrics, plans, tables, tagged
from highwater.aws.alarms import SeenAlarm
from highwater.aws.autoscaling import SeenTargets
from highwater.aws.plans import StoredPlan
from highwater.core.decide import TargetState, decide
from highwater.core.decisions import Decision, LimitCode
from highwater.core.direct import in_one_call, wanted_units
from highwater.core.floors import Bounds, bounds_at
from highwater.core.observations import Observation
from highwater.core.plan import Target
from highwater.core.scaler_schedule import THROTTLE_MINUTES, alarm_threshold, is_full_tick
from highwater.core.scaler_settings import Mode, ScalerSettings
from highwater.core.target_names import TargetName
from highwater.handlers.plan_cache import PlanCache
from highwater.handlers.scaler_event import TICK, ScalerEvent

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ssm import SSMClient

_THREADS = 8
_MINUTE = timedelta(minutes=1)
_SETTINGS = {mode: ScalerSettings.of(mode) for mode in Mode}


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


@dataclass(slots=True)
class _World:
    """What is the same for all tables of a run."""

    now: datetime
    targets: SeenTargets
    alarms: dict[TargetName, SeenAlarm]
    observations: dict[TargetName, Observation]


@dataclass(slots=True)
class ScalerRun:
    """One run; *remaining_seconds* says how much time is left for it, *sees_tags* whether tags choose tables too."""

    event: ScalerEvent
    remaining_seconds: Callable[[], float]
    dry_run: bool = False
    sees_tags: bool = False
    outcome: Outcome = field(default_factory=Outcome)
    plan_cache: PlanCache = field(default_factory=PlanCache)
    dynamodb: DynamoDBClient = field(default_factory=tables.client)
    autoscaling: ApplicationAutoScalingClient = field(default_factory=autoscaling.client)
    cloudwatch: CloudWatchClient = field(default_factory=metrics.client)
    ssm: SSMClient = field(default_factory=plans.client)

    def run(self) -> Outcome:
        """Do it all; one table's failure never touches another's."""
        # a run by hand or after a failure sees what is there now
        cache = self.plan_cache if self.event.kind == TICK else PlanCache()
        stored = cache.see(self.ssm, self.event.now)
        if self.sees_tags:
            stored = stored.and_others(tagged.see_tagged(tagged.client()))
        for line in stored.unreadable:
            self.outcome.notes.append(f"plan left out: {line}")
            self.outcome.count("UnreadablePlans")
        chosen = [plan for plan in stored.plans if not self.event.tables or plan.table in self.event.tables]
        chosen = [self._with_live_indexes(plan) if plan.is_tagged else plan for plan in chosen]
        names = {name: plan for plan in chosen for name in _names(plan)}
        seen_alarms = self._see_alarms()
        due = [name for name in names if self._is_due(name, seen_alarms)]
        if not due:
            return self._counted(len(chosen), 0)
        seen_targets = autoscaling.see_targets(self.autoscaling, due)
        now = self.event.now or seen_targets.at
        observations = self._observe(due, names, now)
        world = _World(now, seen_targets, seen_alarms, observations)
        frozen = frozenset(due)
        due_tables = {name.table for name in due}
        by_table = {plan.table: plan for plan in chosen if plan.table in due_tables}
        with ThreadPoolExecutor(_THREADS) as pool:
            work = {table: pool.submit(self._scale, plan, frozen, world) for table, plan in by_table.items()}
            for table, done in work.items():
                error = done.exception()
                if isinstance(error, _OutOfTimeError):
                    self.outcome.left.append(table)
                elif error is not None:
                    self.outcome.failed[table] = f"{type(error).__name__}: {error}"
        return self._counted(len(chosen), len(due))

    def _with_live_indexes(self, stored: StoredPlan) -> StoredPlan:
        """A plan told by tags, with the indexes that its table has; it fails later, alone, where the table does not."""
        if self.event.kind == TICK and self.event.now is not None and not self._is_full_tick(stored.table):
            return stored
        try:
            live = tables.see_table(self.dynamodb, stored.table)
        except (tables.TableNotFoundError, tables.TableBusyError, tables.TableRefusedError):
            return stored
        return stored.with_indexes(index for index in live.capacities if index is not None)

    def _is_full_tick(self, table: str) -> bool:
        return self.event.now is not None and is_full_tick(table, int(self.event.now.timestamp()) // 60)

    def _see_alarms(self) -> dict[TargetName, SeenAlarm]:
        """The targets' alarms; without them, ticks look at each target in its minute, and thresholds stay."""
        try:
            return alarms.see_alarms(self.cloudwatch)
        except Exception as error:
            self.outcome.notes.append(f"no alarms: {type(error).__name__}: {error}")
            return {}

    def _counted(self, chosen: int, due: int) -> Outcome:
        counts = {"Tables": chosen, "TargetsDue": due, "TablesFailed": len(self.outcome.failed)}
        self.outcome.counts = counts | {"TablesLeft": len(self.outcome.left)} | self.outcome.counts
        return self.outcome

    def _is_due(self, name: TargetName, seen: dict[TargetName, SeenAlarm]) -> bool:
        if self.event.kind != TICK or self.event.now is None:
            return True
        alarm = seen.get(name)
        if alarm is not None and alarm.is_in_alarm:
            return True
        # all targets of a table in one minute, as one call describes them all
        return self._is_full_tick(name.table)

    def _observe(
        self, due: Iterable[TargetName], names: dict[TargetName, StoredPlan], now: datetime
    ) -> dict[TargetName, Observation]:
        """Minutes of every target that is due; none at all where CloudWatch does not answer."""
        found: dict[TargetName, Observation] = {}
        for mode, settings in _SETTINGS.items():
            wanted = [name for name in due if names[name].mode is mode]
            if not wanted:
                continue
            try:
                minutes = settings.history // _MINUTE
                found |= metrics.see_consumed(self.cloudwatch, wanted, minutes, now)
            except Exception as error:
                # without metrics floors may rise to their plan and never fall
                self.outcome.notes.append(f"no metrics: {type(error).__name__}: {error}")
                self.outcome.count("MetricsMissing", len(wanted))
                found |= dict.fromkeys(wanted, Observation.nothing())
        return found

    def _scale(self, stored: StoredPlan, due: frozenset[TargetName], world: _World) -> None:
        if self.remaining_seconds() <= 0:
            raise _OutOfTimeError
        live = tables.see_table(self.dynamodb, stored.table)
        by_index: dict[str | None, list[Decision]] = {}
        for target in stored.plan.targets():
            name = TargetName(stored.table, target.index, target.dimension)
            if name not in due or not target.capacity.is_autoscaled or target.index not in live.capacities:
                continue
            decision = self._decide(stored, target, name, live, world)
            if decision is not None:
                by_index.setdefault(target.index, []).append(decision)
        for index, decisions in by_index.items():
            if stored.mode is Mode.DIRECT:
                self._apply_direct(stored, live, index, decisions, world)
            else:
                self._apply_floors(stored, decisions, world)
            for decision in decisions:
                self._tell(stored, decision)
                self._arm(stored, decision, live, world)

    def _decide(
        self, stored: StoredPlan, target: Target, name: TargetName, live: tables.SeenTable, world: _World
    ) -> Decision | None:
        settings = _SETTINGS[stored.mode]
        bounds = bounds_at(target, world.now)
        provisioned = live.capacities[target.index].of(target.dimension)
        registered = world.targets.of(name)
        if stored.mode is Mode.DIRECT:
            if registered is not None:
                self.outcome.notes.append(f"{name.resource_id} {name.dimension}: left to Application Auto Scaling")
                return None
            current = provisioned
        else:
            if registered is None:
                self.outcome.notes.append(f"{name.resource_id} {name.dimension}: no scalable target is registered")
                return None
            if world.targets.is_suspended(name):
                self.outcome.count("Paused")
                return None
            current = registered.min
        if provisioned == 0:
            self.outcome.notes.append(f"{name.resource_id} {name.dimension}: on demand by now, nothing to scale")
            return None
        seen = self._with_throttles(name, world, provisioned)
        state = TargetState(
            index=target.index,
            dimension=target.dimension,
            current=current,
            baseline=min(bounds.min, bounds.max),
            ceiling=bounds.max,
            quota_units=stored.plan.table_quota_units,
            budget=live.budgets[target.index],
        )
        return decide(settings, state, seen, now=world.now)

    def _with_throttles(self, name: TargetName, world: _World, provisioned: int) -> Observation:
        """Throttles cost more metrics: asked for only where consumption came near to capacity lately."""
        seen = world.observations[name]
        near = alarm_threshold(provisioned)
        is_near = any(units is not None and units > near for units in list(seen.consumed_units)[-THROTTLE_MINUTES:])
        if not is_near:
            return seen
        try:
            return metrics.with_throttles(self.cloudwatch, {name: seen}, THROTTLE_MINUTES, world.now)[name]
        except Exception as error:
            self.outcome.notes.append(f"{name.resource_id} {name.dimension}: no throttles known: {error}")
            self.outcome.count("MetricsMissing")
            return replace(seen, lacks_throttles=True)

    def _apply_floors(self, stored: StoredPlan, decisions: list[Decision], world: _World) -> None:
        for decision in decisions:
            name = TargetName(stored.table, decision.index, decision.dimension)
            target = next(
                t for t in stored.plan.targets() if (t.index, t.dimension) == (decision.index, decision.dimension)
            )
            wanted = Bounds(decision.granted, bounds_at(target, world.now).max)
            if wanted != world.targets.of(name) and not self.dry_run:
                tables.translating(partial(autoscaling.set_bounds, self.autoscaling, name, wanted))
                self.outcome.count("FloorsSet")

    def _apply_direct(
        self,
        stored: StoredPlan,
        live: tables.SeenTable,
        index: str | None,
        decisions: list[Decision],
        world: _World,  # noqa: ARG002 - as the other mode has it
    ) -> None:
        together = in_one_call(decisions)
        decisions[:] = together
        wanted = wanted_units(together)
        if not wanted or self.dry_run or not live.is_active:
            return
        units = live.capacities[index].with_units(wanted)
        try:
            tables.set_capacity(self.dynamodb, stored.table, index, units)
            self.outcome.count("CapacitiesSet")
        except (tables.DecreaseRefusedError, tables.TableBusyError, tables.OvertakenError) as refused:
            # the next run looks again
            self.outcome.notes.append(f"{stored.table}: {refused}")

    def _arm(self, stored: StoredPlan, decision: Decision, live: tables.SeenTable, world: _World) -> None:
        """Move the alarm's threshold with the capacity; without an alarm, ticks alone look after the target."""
        name = TargetName(stored.table, decision.index, decision.dimension)
        alarm = world.alarms.get(name)
        threshold = alarm_threshold(max(decision.granted, live.capacities[decision.index].of(decision.dimension)))
        if alarm is not None and alarm.threshold != threshold and not self.dry_run:
            alarms.move_threshold(self.cloudwatch, alarm, threshold)
            self.outcome.count("AlarmsMoved")

    def _tell(self, stored: StoredPlan, decision: Decision) -> None:
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
                "table": stored.table,
                "target": decision.label,
                "mode": str(stored.mode),
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


class _OutOfTimeError(Exception):
    """The run must end."""


def _names(stored: StoredPlan) -> list[TargetName]:
    return [
        TargetName(stored.table, target.index, target.dimension)
        for target in stored.plan.targets()
        if target.capacity.is_autoscaled
    ]
