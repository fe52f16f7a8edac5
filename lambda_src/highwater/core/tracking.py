"""Target tracking of DynamoDB capacity by Application Auto Scaling: one model for scaler, simulator and local cloud.

Its rules are read from alarms of live accounts and from recordings of them (radkawar/stackd 9dc356f,
testdata/aws/applicationautoscaling/dynamodb_maintenance, 2026-09).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# The default target utilization of DynamoDB's console, and so what most tables have: what plans are compared with.
NATIVE_TARGET_PERCENT: Final = 70
# The low alarm's threshold is twenty percentage points below the target (AWS Database Blog, "Handle traffic spikes with
# Amazon DynamoDB provisioned capacity"; alarms read from live accounts agree)
LOW_ALARM_POINTS: Final = 20
# From an alarm's action until the scaling activity ends, 32 to 36 s recorded; cooldowns count from its end.
ACTIVITY_SECONDS: Final = 33


class Alarm(StrEnum):
    """The alarm that is in ALARM."""

    HIGH = "AlarmHigh"
    LOW = "AlarmLow"


@dataclass(slots=True)
class Cooldowns:
    """The ends of a policy's last activities, in seconds, and the units of its last scale-out."""

    last_scale_in: int | None = None
    last_scale_out: int | None = None
    last_wanted: int = 0

    def note(self, alarm: Alarm, ends: int, wanted: int) -> None:
        """Record a change that was accepted, whose activity ends at second *ends*."""
        if alarm is Alarm.HIGH:
            self.last_scale_out, self.last_wanted = ends, wanted
        else:
            self.last_scale_in = ends


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTracking:
    """One target tracking policy of a DynamoDB target.

    What was consumed in a minute is given in units, or in parts of a unit: *per_unit* is how many parts a unit has.

    Attributes:
        target_percent: The target utilization: consumed over provisioned units.
        scale_in_cooldown: Seconds after a scale-in's activity without another one.
        scale_out_cooldown: Seconds after a scale-out's activity without another one, unless it is larger.
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

    def band(self, units: int, per_unit: int = 1) -> tuple[int, int]:
        """Return a minute's consumption below which the low alarm is in breach, and above which the high one is."""
        low, high = self.target_percent - LOW_ALARM_POINTS, self.target_percent
        a_percent = 60 * per_unit * units
        return -(-low * a_percent // 100), high * a_percent // 100

    def alarm(self, consumed: Sequence[int], newest: int, units: int, per_unit: int = 1) -> Alarm | None:
        """Return the alarm in breach once minute *newest* is known; *consumed* is by minute, from the start."""
        idle, busiest = self.band(units, per_unit)
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

    def wanted(self, alarm: Alarm, consumed: Sequence[int], newest: int, per_unit: int = 1) -> int:
        """Return the units per second at which utilization is the target, rounded up, at least 1."""
        minute = consumed[newest]
        if alarm is Alarm.LOW and self.scale_in_on_highest:
            minute = max(consumed[newest + 1 - self.low_periods : newest + 1])
        return max(1, -(-minute * 100 // (self.target_percent * 60 * per_unit)))

    def decide(
        self,
        consumed: Sequence[int],
        newest: int,
        units: int,
        bounds: tuple[int, int],
        *,
        per_unit: int = 1,
        cooldowns: Cooldowns | None = None,
        at: int = 0,
    ) -> tuple[Alarm, int] | None:
        """Return the alarm in breach at second *at*, and the units within floor and ceiling that it asks for.

        `None` if no alarm is in breach, if capacity would not change in its direction, and during a cooldown; the
        cooldown of scale-outs does not stop a scale-out that is larger than the last. Without *cooldowns* there are
        none.
        """
        alarm = self.alarm(consumed, newest, units, per_unit)
        if alarm is None:
            return None
        floor, ceiling = bounds
        wanted = min(max(self.wanted(alarm, consumed, newest, per_unit), floor), ceiling)
        if wanted == units or (wanted > units) is not (alarm is Alarm.HIGH):
            return None
        rests = cooldowns is not None and self.rests(alarm, wanted, cooldowns, at)
        return None if rests else (alarm, wanted)

    def rests(self, alarm: Alarm, wanted: int, cooldowns: Cooldowns, at: int) -> bool:
        """Whether second *at* is in a cooldown; that of scale-outs does not hold for one larger than the last."""
        if alarm is Alarm.HIGH:
            last, cooldown = cooldowns.last_scale_out, self.scale_out_cooldown
        else:
            last, cooldown = cooldowns.last_scale_in, self.scale_in_cooldown
        if last is None or at >= last + cooldown:
            return False
        return alarm is Alarm.LOW or wanted <= cooldowns.last_wanted
