"""Application Auto Scaling of one target: its bounds, and its scheduled actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from highwater.core.tracking import Alarm, Cooldowns, TargetTracking
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.schedules import Expression

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
        bounds = (self.floor, self.ceiling)
        return tracking.decide(
            consumed, newest, units, bounds, per_unit=QUANTA_PER_UNIT, cooldowns=self.cooldowns, at=at
        )
