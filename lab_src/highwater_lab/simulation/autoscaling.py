"""Application Auto Scaling in the simulation: alarms, scheduled actions, clamping."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from highwater.core import Bounds, Dimension
from highwater_lab.services.target_tracking import Alarm
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.events import Event, EventKind
from highwater_lab.simulation.setup import ScheduledChange
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.simulation.targets import TargetState

# How far back to look for an action's last run: most run weekly, few are yearly
_HORIZONS_DAYS = (8, 40, 400)


class AutoScaling:
    """What AAS does to one table: its calls see nothing but consumed units, late."""

    def __init__(self, table: SimulatedTable, timing: Timing) -> None:
        self._table = table
        self._timing = timing
        self._pace = timing.pace(by_autoscaling=True)
        self._tracked = [target for target in table.targets if target.tracking is not None]
        # a datapoint is there so many whole minutes and seconds after its minute began
        self._minutes_late, self._offset = divmod(60 + timing.metric_delay, 60)
        for resource in table.setup.resources:
            if not table.setup.is_on_demand:
                for target in table.targets:
                    if target.index == resource.index:
                        for action in resource.target(target.dimension).actions:
                            self._plan(target, action, table.base - 1)

    @property
    def has_policies(self) -> bool:
        """Whether `watch` has anything to do."""
        return bool(self._tracked)

    def plan_watch(self, minute: int) -> None:
        """At the beginning of a minute: `watch` when its datapoint comes, at once where nothing can happen before."""
        at = minute * 60 + self._offset
        if self._table.has_due(at):
            self._table.at(at, lambda _: self.watch(minute))
        else:
            self.watch(minute)

    def watch(self, minute: int) -> None:
        """Plan what auto scaling does for alarms that the datapoint of this minute sets off."""
        newest = minute - self._minutes_late
        if newest < 0:
            return
        for target in self._tracked:
            tracking, units, last = target.tracking, target.throughput.units, target.consumed[newest]
            if tracking is None:
                continue
            if units != target.band_units:
                target.band_units, target.band = units, tracking.band(units)
            idle, busiest = target.band
            # between its lines no alarm goes off, and that of an idle target stays in ALARM: at its floor there is
            # nothing to do about it
            if idle <= last <= busiest or (last < idle and units == target.floor):
                continue
            alarm = tracking.alarm(target.consumed, newest, units)
            if alarm is not None and units != (target.floor if alarm is Alarm.LOW else target.ceiling):
                at = minute * 60 + self._offset + self._timing.alarm_latency
                self._table.at(at, self._reaction(target, newest))

    def set_bounds(self, at: int, index: str | None, dimension: Dimension, bounds: Bounds, why: str) -> None:
        """RegisterScalableTarget with other bounds: it clamps at once."""
        target = next(t for t in self._table.targets if (t.index, t.dimension) == (index, dimension))
        if bounds == Bounds(target.floor, target.ceiling):
            return
        target.set_bounds(at, bounds.min, bounds.max)
        text = f"{why}: floor {bounds.min:,}, ceiling {bounds.max:,}"
        self._table.tell(Event(at, index, dimension, EventKind.BOUNDS, text))
        self._clamp(at, target, why)

    def _reaction(self, target: TargetState, newest: int) -> Callable[[int], None]:
        return lambda at: self._react(at, target, newest)

    def _react(self, at: int, target: TargetState, newest: int) -> None:
        tracking, units = target.tracking, target.throughput.units
        if tracking is None:
            return
        bounds = (target.floor, target.ceiling)
        decided = tracking.decide(target.consumed, newest, units, bounds, target.cooldowns, at)
        if decided is None:
            return
        alarm, wanted = decided
        used = target.consumed[newest] / 3600
        side = "above" if alarm is Alarm.HIGH else "below"
        line = tracking.target_percent if alarm is Alarm.HIGH else tracking.target_percent - 20
        why = f"target tracking: {used:,.0f} units/s consumed, {side} {line} % of {units:,}"
        refusal = self._table.request(at, target.index, {target.dimension: wanted}, self._pace, why)
        if refusal is None:
            target.cooldowns.note(alarm, at, wanted)
        elif refusal is not Refused.IN_USE:
            self._tell_refusal(at, target, refusal)

    def _plan(self, target: TargetState, action: ScheduledChange, after: int) -> None:
        """Put the action's next run on the agenda."""
        moment = datetime.fromtimestamp(after, UTC)
        if action.start is not None:
            # a run at its very start counts
            moment = max(moment, action.start - timedelta(seconds=1))
        due = action.expression.next_run(moment)
        if due is None or (action.end is not None and due > action.end):
            return
        second = int(due.timestamp())

        def run(at: int) -> None:
            self._plan(target, action, second)
            floor = target.floor if action.min is None else action.min
            ceiling = target.ceiling if action.max is None else action.max
            if floor > ceiling:
                self._table.tell(
                    Event(
                        at,
                        target.index,
                        target.dimension,
                        EventKind.REFUSED,
                        f"scheduled action {action.name!r} failed: floor {floor:,} above ceiling {ceiling:,}",
                    )
                )
                return
            target.set_bounds(at, floor, ceiling)
            self._table.tell(
                Event(
                    at,
                    target.index,
                    target.dimension,
                    EventKind.BOUNDS,
                    f"scheduled action {action.name!r}: floor {floor:,}, ceiling {ceiling:,}",
                )
            )
            self._clamp(at, target, f"scheduled action {action.name!r}")

        self._table.at(max(0, second - self._table.base + self._timing.scheduled_lateness), run)

    def _clamp(self, at: int, target: TargetState, why: str) -> None:
        # a change under way counts as done: it will be, and nothing looks again afterwards
        units = self._table.controls[target.index].granted[target.dimension]
        wanted = min(max(units, target.floor), target.ceiling)
        if wanted == units:
            return
        refusal = self._table.request(at, target.index, {target.dimension: wanted}, self._pace, why)
        if refusal is Refused.IN_USE:
            # the table's other dimension is being changed: after it
            busy = self._table.controls[target.index].busy_until - self._table.base
            self._table.at(busy, lambda later: self._clamp(later, target, why))
        elif refusal is not None:
            self._tell_refusal(at, target, refusal)

    def _tell_refusal(self, at: int, target: TargetState, refusal: Refused) -> None:
        self._table.tell(Event(at, target.index, target.dimension, EventKind.REFUSED, str(refusal)))


def bounds_before(actions: tuple[ScheduledChange, ...], start: datetime, floor: int, ceiling: int) -> tuple[int, int]:
    """The bounds that each scheduled action's last run before *start* leaves, in their order."""
    runs = [(at, action) for action in actions if (at := _last_run(action, start)) is not None]
    for _, action in sorted(runs, key=lambda run: run[0]):
        low = floor if action.min is None else action.min
        high = ceiling if action.max is None else action.max
        if low <= high:
            floor, ceiling = low, high
    return floor, ceiling


def _last_run(action: ScheduledChange, before: datetime) -> datetime | None:
    """The last run before an instant, within the last 400 days."""
    for days in _HORIZONS_DAYS:
        last, at = None, action.expression.next_run(before - timedelta(days=days))
        while at is not None and at < before:
            if (action.start is None or at >= action.start) and (action.end is None or at <= action.end):
                last = at
            at = action.expression.next_run(at)
        if last is not None:
            return last
    return None
