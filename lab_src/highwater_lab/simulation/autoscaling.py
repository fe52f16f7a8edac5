"""Application Auto Scaling in the simulation: alarms, scheduled actions, clamping."""

from __future__ import annotations

from collections.abc import Callable

from highwater.core import Bounds, Dimension
from highwater.core.tracking import ACTIVITY_SECONDS, Alarm
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.run import Event, EventKind
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.simulation.targets import SimulatedTarget


class SimulatedAutoScaling:
    """What AAS does to one table: its calls see nothing but consumed units, late."""

    def __init__(self, table: SimulatedTable, timing: Timing) -> None:
        self._table = table
        self._timing = timing
        self._pace = timing.pace(by_autoscaling=True)
        # of each target that is tracked, the second at which its alarms are judged, and how many minutes ago the newest
        # minute that they know began
        self._tracked = [
            (target, second, -timing.newest_minute(second))
            for place, target in enumerate(table.targets)
            if target.tracking is not None
            # targets are reads and writes in turn, and the writes come first here
            for second in (timing.phase.tracking_alarm_of(place ^ 1),)
        ]
        for resource in table.setup.resources:
            if not table.setup.is_on_demand:
                for target in table.targets:
                    if target.index == resource.index:
                        for action in resource.target(target.dimension).actions:
                            self._plan(target, action, table.base - 1)

    @property
    def has_policies(self) -> bool:
        """Whether `plan_alarms` has anything to do."""
        return bool(self._tracked)

    def plan_alarms(self, minute: int) -> None:
        """At the beginning of a minute: judge each alarm at its second, at once where nothing can happen before."""
        for target, second, minutes_late in self._tracked:
            newest = minute - minutes_late
            if newest < 0:
                continue
            at = minute * 60 + second
            if self._table.has_due(at):
                self._table.at(at, self._judging(target, newest))
            elif self._rings(target, newest):
                self._table.at(at, self._reaction(target, newest))

    def _judging(self, target: SimulatedTarget, newest: int) -> Callable[[int], None]:
        return lambda at: self._react(at, target, newest) if self._rings(target, newest) else None

    def _rings(self, target: SimulatedTarget, newest: int) -> bool:
        """Whether an alarm rings that moves capacity, once minute *newest* is known; mostly it does not."""
        tracking, units, last = target.tracking, target.throughput.units, target.consumed[newest]
        if tracking is None:
            return False
        if units != target.band_units:
            target.band_units, target.band = units, tracking.band(units, QUANTA_PER_UNIT)
        idle, busiest = target.band
        # between its lines no alarm goes off, and that of an idle target stays in ALARM: at its floor there is nothing
        # to do about it
        if idle <= last <= busiest or (last < idle and units == target.floor):
            return False
        alarm = tracking.alarm(target.consumed, newest, units, QUANTA_PER_UNIT)
        return alarm is not None and units != (target.floor if alarm is Alarm.LOW else target.ceiling)

    def set_bounds(self, at: int, index: str | None, dimension: Dimension, bounds: Bounds, why: str) -> None:
        """RegisterScalableTarget with other bounds: it clamps at once."""
        target = next(t for t in self._table.targets if (t.index, t.dimension) == (index, dimension))
        if bounds == Bounds(target.floor, target.ceiling):
            return
        self._set_bounds(at, target, bounds.min, bounds.max, why)

    def _reaction(self, target: SimulatedTarget, newest: int) -> Callable[[int], None]:
        return lambda at: self._react(at, target, newest)

    def _react(self, at: int, target: SimulatedTarget, newest: int) -> None:
        tracking, units = target.tracking, target.throughput.units
        if tracking is None:
            return
        decided = target.tracked(tracking, target.consumed, newest, units, at)
        if decided is None:
            return
        alarm, wanted = decided
        used = target.consumed[newest] / 3600
        side = "above" if alarm is Alarm.HIGH else "below"
        line = tracking.target_percent if alarm is Alarm.HIGH else tracking.target_percent - 20
        why = f"target tracking: {used:,.0f} units/s consumed, {side} {line} % of {units:,}"
        refusal = self._table.request(at, target.index, {target.dimension: wanted}, self._pace, why)
        if refusal is None:
            target.cooldowns.note(alarm, at + ACTIVITY_SECONDS, wanted)
        elif refusal is not Refused.IN_USE:
            self._tell_refusal(at, target, refusal)

    def _plan(self, target: SimulatedTarget, action: ScheduledChange, after: int) -> None:
        """Put the action's next run on the agenda."""
        second = action.next_run(after)
        if second is None:
            return

        def run(at: int) -> None:
            self._plan(target, action, second)
            self._run(at, target, action)

        late = self._timing.scheduled_lateness(action.name, second)
        self._table.at(max(0, second - self._table.base + late), run)

    def _run(self, at: int, target: SimulatedTarget, action: ScheduledChange) -> None:
        """Set an action's bounds and clamp, unless they would cross."""
        why = f"scheduled action {action.name!r}"
        floor, ceiling = action.bounds(target.floor, target.ceiling)
        if floor > ceiling:
            text = f"{why} failed: floor {floor:,} above ceiling {ceiling:,}"
            self._table.tell(Event(at, target.index, target.dimension, EventKind.REFUSED, text))
        else:
            self._set_bounds(at, target, floor, ceiling, why)

    def _set_bounds(self, at: int, target: SimulatedTarget, floor: int, ceiling: int, why: str) -> None:
        target.set_bounds(at, floor, ceiling)
        text = f"{why}: floor {floor:,}, ceiling {ceiling:,}"
        self._table.tell(Event(at, target.index, target.dimension, EventKind.BOUNDS, text))
        self._clamp(at, target, why)

    def _clamp(self, at: int, target: SimulatedTarget, why: str) -> None:
        wanted = target.clamped(self._table.controls[target.index].granted[target.dimension])
        if wanted is None:
            return
        refusal = self._table.request(at, target.index, {target.dimension: wanted}, self._pace, why)
        if refusal is Refused.IN_USE:
            # the table's other dimension is being changed: after it
            busy = self._table.controls[target.index].busy_until - self._table.base
            self._table.at(busy, lambda later: self._clamp(later, target, why))
        elif refusal is not None:
            self._tell_refusal(at, target, refusal)

    def _tell_refusal(self, at: int, target: SimulatedTarget, refusal: Refused) -> None:
        self._table.tell(Event(at, target.index, target.dimension, EventKind.REFUSED, str(refusal)))
