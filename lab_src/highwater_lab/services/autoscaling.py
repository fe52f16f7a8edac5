"""Application Auto Scaling of one target: its bounds, its scheduled actions, what target tracking asks for.

There is no clock in here: each call says what time it is, in whole seconds since 1970, UTC. The simulation and the
local cloud both keep a `ScalableTarget` for each dimension that is scaled, carry out what it says, and have
UpdateTable decide whether a change may come now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from highwater_lab.services.schedules import Expression
from highwater_lab.services.target_tracking import Alarm, Cooldowns, TargetTracking

_DAY: Final = 86_400
# How far back to look for an action's last run: most run weekly, few are yearly
_HORIZONS_DAYS: Final = (8, 40, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """A scheduled action: the bounds that it sets, and when.

    Attributes:
        name: Its name on its target.
        expression: Its schedule.
        min: The floor that it sets, `None` to leave it.
        max: The ceiling that it sets, likewise.
        start: It does not run before.
        end: It does not run later.
        runs_at_start: Whether it runs at its start even where its schedule does not, as Application Auto Scaling does.
    """

    name: str
    expression: Expression
    min: int | None
    max: int | None
    start: datetime | None = None
    end: datetime | None = None
    runs_at_start: bool = False

    def next_run(self, after: int) -> int | None:
        """The first run later than *after*, from its start on and up to its end; `None` where none comes any more."""
        due: datetime | None = None
        if self.start is not None and after < (start := int(self.start.timestamp())):
            # a run of its schedule at its very start counts
            after = start - 1
            due = self.start if self.runs_at_start else None
        due = due or self.expression.next_run(datetime.fromtimestamp(after, UTC))
        return None if due is None or (self.end is not None and due > self.end) else int(due.timestamp())

    def last_run(self, before: int) -> int | None:
        """The last run before an instant, within the last 400 days."""
        for days in _HORIZONS_DAYS:
            last, at = None, self.next_run(before - days * _DAY)
            while at is not None and at < before:
                last, at = at, self.next_run(at)
            if last is not None:
                return last
        return None

    def bounds(self, floor: int, ceiling: int) -> tuple[int, int]:
        """What it makes of floor and ceiling; where they would cross, it fails and they stay."""
        return floor if self.min is None else self.min, ceiling if self.max is None else self.max


def bounds_before(actions: Sequence[ScheduledChange], start: int, floor: int, ceiling: int) -> tuple[int, int]:
    """The bounds that each scheduled action's last run before *start* leaves, in their order."""
    runs = [(at, action) for action in actions if (at := action.last_run(start)) is not None]
    for _, action in sorted(runs, key=lambda run: run[0]):
        low, high = action.bounds(floor, ceiling)
        if low <= high:
            floor, ceiling = low, high
    return floor, ceiling


@dataclass(slots=True, kw_only=True, eq=False)
class ScalableTarget:
    """One dimension of a table or index that auto scaling moves.

    Attributes:
        floor: The least capacity (`MinCapacity`).
        ceiling: The most capacity (`MaxCapacity`).
        cooldowns: When target tracking last changed capacity.
    """

    floor: int
    ceiling: int
    cooldowns: Cooldowns = field(default_factory=Cooldowns)

    def clamped(self, units: int) -> int | None:
        """Where capacity of *units* has to go for being outside the bounds, `None` where it is inside.

        To be asked whenever the bounds were set, by registration or by a scheduled action, with the units that are
        there once what is under way is done: nothing looks again afterwards.
        """
        wanted = min(max(units, self.floor), self.ceiling)
        return None if wanted == units else wanted

    def tracked(
        self, tracking: TargetTracking, consumed: Sequence[int], newest: int, units: int, at: int
    ) -> tuple[Alarm, int] | None:
        """The alarm of a policy that is in breach, and the units that it asks for; `None` where there is nothing to do.

        *consumed* are quanta per minute, *newest* is the last minute of them that is known. What is done is to be noted
        in the cooldowns; what is refused is asked for again in the next minute.
        """
        return tracking.decide(consumed, newest, units, (self.floor, self.ceiling), self.cooldowns, at)
