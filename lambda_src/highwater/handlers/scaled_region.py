"""All tables of one region in one run of the scaler: gather what AWS knows, then each table in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from highwater.aws import alarms, autoscaling, metrics, tables
from highwater.aws.alarms import SeenAlarm
from highwater.aws.plans import StoredPlan
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target
from highwater.core.scaler.attention import is_daily_tick, is_full_tick
from highwater.core.scaler.demand import MINUTES_PER_DAY
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.settings import Mode, ScalerSettings
from highwater.core.schedule.bounds import has_changed
from highwater.handlers.scaled_table import Clients, Outcome, ScaledTable, World
from highwater.handlers.scaler_event import TICK, ScalerEvent

_THREADS = 8
_MINUTE = timedelta(minutes=1)
# a run takes minutes at most, and one that is handed on some more
_OLD = timedelta(minutes=10)
_LATE_MINUTES = 5
_SETTINGS = {mode: ScalerSettings.of(mode) for mode in Mode}


@dataclass(slots=True)
class ScaledRegion:
    """The tables of one region that a run looks after; what is done goes into *outcome*."""

    event: ScalerEvent
    plans: list[StoredPlan]
    clients: Clients
    remaining_seconds: Callable[[], float]
    dry_run: bool
    outcome: Outcome

    def scale(self) -> int:
        """Bring every target that is due to where it should be; how many were."""
        chosen = [self._with_live_indexes(plan) if plan.is_tagged else plan for plan in self.plans]
        names = {name: (plan, target) for plan in chosen for name, target in _targets(plan)}
        seen_alarms = self._see_alarms()
        due = [name for name, (_, target) in names.items() if self._is_due(name, target, seen_alarms)]
        if not due:
            return 0
        seen_targets = autoscaling.see_targets(self.clients.autoscaling, due)
        of_event = self._time_of_event(seen_targets.at)
        turn = int(of_event.timestamp()) // 60
        # a run that waited lowers nothing on what it would have seen then
        now = max(of_event, seen_targets.at)
        observations = self._observe(due, names, turn, now)
        world = World(now, turn, frozenset(due), seen_targets, seen_alarms, observations)
        due_tables = {name.table for name in due}
        by_label = {plan.label: plan for plan in chosen if plan.table in due_tables}
        with ThreadPoolExecutor(_THREADS) as pool:
            work = {label: pool.submit(self._scale, plan, world) for label, plan in by_label.items()}
            for label, done in work.items():
                error = done.exception()
                if isinstance(error, _OutOfTimeError):
                    self.outcome.left.append(label)
                elif error is not None:
                    self.outcome.failed[label] = f"{type(error).__name__}: {error}"
                else:
                    self.outcome.add(done.result())
        return len(due)

    def _time_of_event(self, service: datetime) -> datetime:
        """The event's time; the *service*'s own where the event has none or was long on its way: plans are of today."""
        now = self.event.now
        if now is None or abs(now - service) <= _OLD:
            return now or service
        text = (
            f"the event is of {now:%Y-%m-%d %H:%M:%S} UTC, and AWS says {service:%Y-%m-%d %H:%M:%S}: the latter counts"
        )
        self.outcome.notes.append(text)
        return service

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

    def _is_due(self, name: TargetName, target: Target, seen: dict[TargetName, SeenAlarm]) -> bool:
        now = self.event.now
        if self.event.kind != TICK or now is None or has_changed(target, now, _MINUTE):
            return True
        alarm = seen.get(name)
        if alarm is not None and alarm.is_in_alarm:
            return True
        # all targets of a table in one minute, as one call describes them all
        return self._is_full_tick(name.table)

    def _observe(
        self,
        due: Iterable[TargetName],
        names: dict[TargetName, tuple[StoredPlan, Target]],
        turn: int,
        now: datetime,
    ) -> dict[TargetName, Observation]:
        """Minutes of every target that is due; none at all where CloudWatch does not answer."""
        found: dict[TargetName, Observation] = {}
        by_minutes: dict[int, list[TargetName]] = {}
        for name in due:
            minutes = _SETTINGS[names[name][0].mode].history // _MINUTE
            if is_daily_tick(name.table, turn):
                # CloudWatch charges by the metric, however long the past; what is late yet is not of the day
                minutes = max(minutes, MINUTES_PER_DAY + _LATE_MINUTES)
            by_minutes.setdefault(minutes, []).append(name)
        for minutes, wanted in by_minutes.items():
            try:
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


def _targets(stored: StoredPlan) -> list[tuple[TargetName, Target]]:
    return [
        (TargetName(stored.table, target.index, target.dimension), target)
        for target in stored.plan.targets()
        if target.capacity.is_autoscaled
    ]
