"""Application Auto Scaling of one target: bounds, scheduled actions, and target tracking of consumed capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.schedules import Expression

# The low alarm's threshold is twenty percentage points below the target (AWS Database Blog, "Handle traffic spikes with
# Amazon DynamoDB provisioned capacity"; alarms read from live accounts agree)
LOW_ALARM_POINTS: Final = 20
# quanta per minute at a hundredth of a unit per second
_PER_PERCENT: Final = 60 * QUANTA_PER_UNIT // 100


class Alarm(StrEnum):
    """The alarm that is in ALARM."""

    HIGH = "AlarmHigh"
    LOW = "AlarmLow"


@dataclass(slots=True)
class Cooldowns:
    """The times of a policy's last changes of capacity, in seconds, and the units of its last scale-out."""

    last_scale_in: int | None = None
    last_scale_out: int | None = None
    last_wanted: int = 0

    def note(self, alarm: Alarm, at: int, wanted: int) -> None:
        """Record an accepted change."""
        if alarm is Alarm.HIGH:
            self.last_scale_out, self.last_wanted = at, wanted
        else:
            self.last_scale_in = at


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTracking:
    """One target tracking policy of a DynamoDB target.

    Attributes:
        target_percent: The target utilization: consumed over provisioned units.
        scale_in_cooldown: Seconds after a scale-in without another one.
        scale_out_cooldown: Seconds after a scale-out without another one, unless it is larger.
        disable_scale_in: Never lower capacity.
        high_periods: Minutes above the target that set off the high alarm: 2 of 2 on live alarms.
        low_periods: Minutes below the low threshold that set off the low alarm: 15 of 15 on live alarms.
        scale_in_on_highest: Size a scale-in by the highest of the low alarm's minutes, instead of by the last one, the
            default. AWS does not document which minute it uses to scale in; to scale out it uses the last.
    """

    target_percent: int
    scale_in_cooldown: int = 0
    scale_out_cooldown: int = 0
    disable_scale_in: bool = False
    high_periods: int = 2
    low_periods: int = 15
    scale_in_on_highest: bool = False

    def band(self, units: int) -> tuple[int, int]:
        """Return the quanta per minute between which neither alarm is in breach."""
        low, high = self.target_percent - LOW_ALARM_POINTS, self.target_percent
        return low * units * _PER_PERCENT, high * units * _PER_PERCENT

    def alarm(self, consumed: Sequence[int], newest: int, units: int) -> Alarm | None:
        """Return the alarm in breach once minute *newest* is known; *consumed* are quanta per minute from the start."""
        idle, busiest = self.band(units)
        last = consumed[newest]
        if last > busiest:
            if newest + 1 >= self.high_periods and all(
                c > busiest for c in consumed[newest + 1 - self.high_periods : newest]
            ):
                return Alarm.HIGH
            return None
        if last >= idle or self.disable_scale_in or newest + 1 < self.low_periods:
            return None
        return Alarm.LOW if max(consumed[newest + 1 - self.low_periods : newest + 1]) < idle else None

    def wanted(self, alarm: Alarm, consumed: Sequence[int], newest: int) -> int:
        """Return the units per second at which utilization is the target, rounded up, at least 1."""
        minute = consumed[newest]
        if alarm is Alarm.LOW and self.scale_in_on_highest:
            minute = max(consumed[newest + 1 - self.low_periods : newest + 1])
        return max(1, -(-minute // (self.target_percent * _PER_PERCENT)))

    def decide(
        self, consumed: Sequence[int], newest: int, units: int, bounds: tuple[int, int], cooldowns: Cooldowns, at: int
    ) -> tuple[Alarm, int] | None:
        """Return the alarm in breach at second *at*, and the units within floor and ceiling that it asks for.

        `None` if no alarm is in breach, if capacity would not change in its direction, and during a cooldown; the
        cooldown of scale-outs does not stop a scale-out that is larger than the last.
        """
        alarm = self.alarm(consumed, newest, units)
        if alarm is None:
            return None
        floor, ceiling = bounds
        wanted = min(max(self.wanted(alarm, consumed, newest), floor), ceiling)
        if wanted == units or (wanted > units) is not (alarm is Alarm.HIGH):
            return None
        if alarm is Alarm.HIGH:
            last = cooldowns.last_scale_out
            rests = last is not None and at < last + self.scale_out_cooldown and wanted <= cooldowns.last_wanted
        else:
            last = cooldowns.last_scale_in
            rests = last is not None and at < last + self.scale_in_cooldown
        return None if rests else (alarm, wanted)


_DAY: Final = 86_400
# How far back to look for an action's last run: most run weekly, few are yearly
_HORIZONS_DAYS: Final = (8, 40, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """A scheduled action: its bounds and its schedule.

    Attributes:
        name: Its name on its target.
        expression: Its schedule.
        min: The floor that it sets, `None` to leave it unchanged.
        max: The ceiling that it sets, `None` to leave it unchanged.
        start: The time before which it does not run.
        end: The time after which it does not run.
        runs_at_start: Whether it also runs at its start if that does not match its schedule, as Application Auto
            Scaling does.
    """

    name: str
    expression: Expression
    min: int | None
    max: int | None
    start: datetime | None = None
    end: datetime | None = None
    runs_at_start: bool = False

    def next_run(self, after: int) -> int | None:
        """Return the first run later than *after*, between its start and its end; `None` if there is none."""
        due: datetime | None = None
        if self.start is not None and after < (start := int(self.start.timestamp())):
            # a run of its schedule exactly at its start counts
            after = start - 1
            due = self.start if self.runs_at_start else None
        due = due or self.expression.next_run(datetime.fromtimestamp(after, UTC))
        return None if due is None or (self.end is not None and due > self.end) else int(due.timestamp())

    def last_run(self, before: int) -> int | None:
        """Return the last run before an instant, within the last 400 days."""
        for days in _HORIZONS_DAYS:
            last, at = None, self.next_run(before - days * _DAY)
            while at is not None and at < before:
                last, at = at, self.next_run(at)
            if last is not None:
                return last
        return None

    def bounds(self, floor: int, ceiling: int) -> tuple[int, int]:
        """Return floor and ceiling after a run; if the floor would be above the ceiling, the run fails: no change."""
        return floor if self.min is None else self.min, ceiling if self.max is None else self.max


def bounds_before(actions: Sequence[ScheduledChange], start: int, floor: int, ceiling: int) -> tuple[int, int]:
    """Return the bounds after the last run before *start* of each scheduled action, in the order of these runs."""
    runs = [(at, action) for action in actions if (at := action.last_run(start)) is not None]
    for _, action in sorted(runs, key=lambda run: run[0]):
        low, high = action.bounds(floor, ceiling)
        if low <= high:
            floor, ceiling = low, high
    return floor, ceiling


@dataclass(slots=True, kw_only=True, eq=False)
class ScalableTarget:
    """One dimension of a table or index that auto scaling scales.

    Attributes:
        floor: The lowest capacity (`MinCapacity`).
        ceiling: The highest capacity (`MaxCapacity`).
        cooldowns: The times of target tracking's last changes.
    """

    floor: int
    ceiling: int
    cooldowns: Cooldowns = field(default_factory=Cooldowns)

    def clamped(self, units: int) -> int | None:
        """Return the capacity to which *units* outside the bounds have to be moved; `None` for units inside.

        Call this whenever the bounds are set, by registration or by a scheduled action, with the units after all
        changes in progress: bounds are not enforced again later.
        """
        wanted = min(max(units, self.floor), self.ceiling)
        return None if wanted == units else wanted

    def tracked(
        self, tracking: TargetTracking, consumed: Sequence[int], newest: int, units: int, at: int
    ) -> tuple[Alarm, int] | None:
        """Return the policy's alarm in breach, and the units that it asks for; `None` if there is nothing to do.

        *consumed* are quanta per minute, *newest* is the last known minute. The caller records an accepted change in
        the cooldowns; a rejected one is requested again in the next minute.
        """
        return tracking.decide(consumed, newest, units, (self.floor, self.ceiling), self.cooldowns, at)
