"""Target tracking of Application Auto Scaling, as DynamoDB's alarms feed it: with what was consumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from highwater_lab.physics import QUANTA_PER_UNIT

# The low alarm lies twenty percentage points under the target (AWS Database Blog, "Handle traffic spikes with Amazon
# DynamoDB provisioned capacity"; alarms read back from live accounts agree)
LOW_ALARM_POINTS: Final = 20
# quanta in a minute of a hundredth of a unit per second
_PER_PERCENT: Final = 60 * QUANTA_PER_UNIT // 100


class Alarm(StrEnum):
    """The alarm that is in ALARM."""

    HIGH = "AlarmHigh"
    LOW = "AlarmLow"


@dataclass(slots=True)
class Cooldowns:
    """When a policy last changed capacity, in seconds, and the units that its last scale-out asked for."""

    last_scale_in: int | None = None
    last_scale_out: int | None = None
    last_wanted: int = 0

    def note(self, alarm: Alarm, at: int, wanted: int) -> None:
        """Remember a change that was accepted."""
        if alarm is Alarm.HIGH:
            self.last_scale_out, self.last_wanted = at, wanted
        else:
            self.last_scale_in = at


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTracking:
    """One target tracking policy of a DynamoDB target.

    Attributes:
        target_percent: Consumed over provisioned that it steers to.
        scale_in_cooldown: Seconds after a scale-in without another.
        scale_out_cooldown: Seconds after a scale-out in which only a larger one follows.
        disable_scale_in: Never lower capacity.
        high_periods: Minutes above the target that set off the high alarm: 2 of 2 on live alarms.
        low_periods: Minutes under it that set off the low alarm: 15 of 15 on live alarms.
        scale_in_on_highest: Size a scale-in by the highest of the low alarm's minutes. AWS does not say which it
            takes; the last, the default, is what it takes to scale out.
    """

    target_percent: int
    scale_in_cooldown: int = 0
    scale_out_cooldown: int = 0
    disable_scale_in: bool = False
    high_periods: int = 2
    low_periods: int = 15
    scale_in_on_highest: bool = False

    def band(self, units: int) -> tuple[int, int]:
        """Quanta a minute between which neither alarm is in breach."""
        low, high = self.target_percent - LOW_ALARM_POINTS, self.target_percent
        return low * units * _PER_PERCENT, high * units * _PER_PERCENT

    def alarm(self, consumed: Sequence[int], newest: int, units: int) -> Alarm | None:
        """The alarm in breach once minute *newest* is known; *consumed* are quanta per minute, from the start on."""
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
        """Units per second that put consumption at the target, rounded up, at least 1."""
        minute = consumed[newest]
        if alarm is Alarm.LOW and self.scale_in_on_highest:
            minute = max(consumed[newest + 1 - self.low_periods : newest + 1])
        return max(1, -(-minute // (self.target_percent * _PER_PERCENT)))

    def decide(
        self, consumed: Sequence[int], newest: int, units: int, bounds: tuple[int, int], cooldowns: Cooldowns, at: int
    ) -> tuple[Alarm, int] | None:
        """The alarm in breach at second *at*, and the units within floor and ceiling that it asks for.

        `None` where no alarm is in breach, where nothing would change in its direction, and during a cooldown; a
        scale-out larger than the last passes through its own.
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
