"""One run of the scaler over all its tables: gather what AWS knows, then each table in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from highwater.aws import alarms, autoscaling, metrics, tables, tagged
from highwater.aws.alarms import SeenAlarm
from highwater.aws.plans import StoredPlan
from highwater.core.observations import Observation
from highwater.core.scaler_schedule import is_full_tick
from highwater.core.scaler_settings import Mode, ScalerSettings
from highwater.core.target_names import TargetName
from highwater.handlers.plan_cache import PlanCache
from highwater.handlers.scaled_table import Clients, Outcome, ScaledTable, World
from highwater.handlers.scaler_event import TICK, ScalerEvent

_THREADS = 8
_MINUTE = timedelta(minutes=1)
_SETTINGS = {mode: ScalerSettings.of(mode) for mode in Mode}


@dataclass(slots=True)
class ScalerRun:
    """One run; *remaining_seconds* says how much time is left for it, *sees_tags* whether tags choose tables too."""

    event: ScalerEvent
    remaining_seconds: Callable[[], float]
    dry_run: bool = False
    sees_tags: bool = False
    outcome: Outcome = field(default_factory=Outcome)
    plan_cache: PlanCache = field(default_factory=PlanCache)
    clients: Clients = field(default_factory=Clients)

    def run(self) -> Outcome:
        """Do it all; one table's failure never touches another's."""
        # a run by hand or after a failure sees what is there now
        cache = self.plan_cache if self.event.kind == TICK else PlanCache()
        stored = cache.see(self.clients.ssm, self.event.now)
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
        seen_targets = autoscaling.see_targets(self.clients.autoscaling, due)
        now = self.event.now or seen_targets.at
        observations = self._observe(due, names, now)
        world = World(now, frozenset(due), seen_targets, seen_alarms, observations)
        due_tables = {name.table for name in due}
        by_table = {plan.table: plan for plan in chosen if plan.table in due_tables}
        with ThreadPoolExecutor(_THREADS) as pool:
            work = {table: pool.submit(self._scale, plan, world) for table, plan in by_table.items()}
            for table, done in work.items():
                error = done.exception()
                if isinstance(error, _OutOfTimeError):
                    self.outcome.left.append(table)
                elif error is not None:
                    self.outcome.failed[table] = f"{type(error).__name__}: {error}"
                else:
                    self.outcome.add(done.result())
        return self._counted(len(chosen), len(due))

    def _with_live_indexes(self, stored: StoredPlan) -> StoredPlan:
        """A plan told by tags, with the indexes that its table has; it fails later, alone, where the table does not."""
        if self.event.kind == TICK and self.event.now is not None and not self._is_full_tick(stored.table):
            return stored
        try:
            live = tables.see_table(self.clients.dynamodb, stored.table)
        except (tables.TableNotFoundError, tables.TableBusyError, tables.TableRefusedError):
            return stored
        return stored.with_indexes(index for index in live.capacities if index is not None)

    def _is_full_tick(self, table: str) -> bool:
        return self.event.now is not None and is_full_tick(table, int(self.event.now.timestamp()) // 60)

    def _see_alarms(self) -> dict[TargetName, SeenAlarm]:
        """The targets' alarms; without them, ticks look at each target in its minute, and thresholds stay."""
        try:
            return alarms.see_alarms(self.clients.cloudwatch)
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
                found |= metrics.see_consumed(self.clients.cloudwatch, wanted, minutes, now)
            except Exception as error:
                # without metrics floors may rise to their plan and never fall
                self.outcome.notes.append(f"no metrics: {type(error).__name__}: {error}")
                self.outcome.count("MetricsMissing", len(wanted))
                found |= dict.fromkeys(wanted, Observation.nothing())
        return found

    def _scale(self, stored: StoredPlan, world: World) -> Outcome:
        if self.remaining_seconds() <= 0:
            raise _OutOfTimeError
        live = tables.see_table(self.clients.dynamodb, stored.table)
        return ScaledTable(stored, live, world, self.clients, self.dry_run).scale()


class _OutOfTimeError(Exception):
    """The run must end."""


def _names(stored: StoredPlan) -> list[TargetName]:
    return [
        TargetName(stored.table, target.index, target.dimension)
        for target in stored.plan.targets()
        if target.capacity.is_autoscaled
    ]
