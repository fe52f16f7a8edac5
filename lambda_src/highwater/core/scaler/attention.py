"""What the scaler looks at in a minute: which targets are due, how far back, and whether their throttles are asked for.

CloudWatch charges by the metric asked for, not by the datapoint (docs/cost.md has the arithmetic). So a target is
looked at every five minutes while it is calm, and every minute while its alarm is in ALARM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from highwater.core.boosts import Lease, boosts_at
from highwater.core.plan.plan import Target
from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_HOUR
from highwater.core.scaler.burst import has_spikes
from highwater.core.scaler.inputs import MINUTE, Clock, Observation, SeenResource
from highwater.core.scaler.plan import ScaledPlan
from highwater.core.scaler.settings import FULL_PERCENT, HOLD_MINUTES, JUMP_MINUTES, LOWERED_FROM_MINUTE, Mode
from highwater.core.schedule.bounds import has_changed

FULL_TICK_MINUTES: Final = 5
# A hot key throttles a table that has capacity to spare, so every target's throttles are asked for once in this time.
THROTTLE_MINUTES: Final = HOLD_MINUTES
# Scalers come and go with deploys only.
OTHER_SCALERS_MINUTES: Final = MINUTES_PER_HOUR
_COVERED_ALARM_PERCENT: Final = 110
# The newest minutes of a day may have no datapoint yet, so a whole day needs some more.
_PENDING_MINUTES: Final = 5


def alarm_threshold(capacity_units: int, *, is_covered: bool = False) -> int:
    """Units consumed in a minute above which a target's alarm goes off: 97 % of its capacity in units per second.

    While the fleet's pulses cover the target (*is_covered*) they ask for help long before, and minutes a little above
    capacity are left to the burst bucket. Then it is 110 %, should the fleet fall silent in a surge.
    """
    return capacity_units * 60 * (_COVERED_ALARM_PERCENT if is_covered else FULL_PERCENT) // 100


def follows_closely(threshold: int, wanted: int, *, is_in_alarm: bool) -> bool:
    """Whether an alarm's threshold may stay although `alarm_threshold` asks for *wanted*, both in units a minute.

    Each move is a call, and a configuration item for AWS Config. A threshold up to a tenth lower rings a little early,
    and one up to 2 % higher is still below what the capacity itself lets through. One that rings is moved.
    """
    return not is_in_alarm and wanted * 90 <= threshold * 100 <= wanted * 102


def is_full_tick(table: str, minute: int) -> bool:
    """Whether all targets of a table are due in that minute since 1970.

    Tables spread over five minutes by their names. All are due in the minute of each hour in which capacity is lowered.
    """
    return (minute + sum(table.encode())) % FULL_TICK_MINUTES == 0 or minute % MINUTES_PER_HOUR == LOWERED_FROM_MINUTE


def may_be_lowered(at: datetime) -> bool:
    """Whether a run of the last minutes may have lowered capacity through a ceiling, and ended before it raised that.

    *at* is an aware instant. From the first minute in which capacity is lowered, until every table has had a full tick.
    """
    return (at.minute - LOWERED_FROM_MINUTE) % 60 < 2 * FULL_TICK_MINUTES


def is_throttle_tick(table: str, minute: int) -> bool:
    """Whether throttles of all targets of a table are asked for in that minute since 1970, one of its full ticks."""
    return (minute + sum(table.encode())) % THROTTLE_MINUTES == 0


def is_other_scalers_tick(scaler: str, minute: int) -> bool:
    """Whether a scaler of tagged tables looks for others of its kind in that minute since 1970, once an hour."""
    return (minute + sum(scaler.encode())) % OTHER_SCALERS_MINUTES == 0


def is_daily_tick(table: str, minute: int) -> bool:
    """Whether a table is compared with on-demand in that minute since 1970, one of its full ticks."""
    return (minute + sum(table.encode())) % MINUTES_PER_DAY == 0


def scaled_targets(scaled: ScaledPlan) -> tuple[Target, ...]:
    """The targets that the scaler may move: those whose capacity is autoscaled."""
    return tuple(target for target in scaled.plan.targets() if target.capacity.is_autoscaled)


def fixed_targets(scaled: ScaledPlan) -> tuple[Target, ...]:
    """The targets of fixed capacity, whose floors the scaler never moves: it only has capacity below them raised.

    In DIRECT mode there are none, as there are no floors.
    """
    if not scaled.mode.moves_floors:
        return ()
    return tuple(target for target in scaled.plan.targets() if not target.capacity.is_autoscaled)


def due_targets(
    scaled: ScaledPlan, at: datetime, is_in_alarm: Callable[[Target], bool], leases: Sequence[Lease] = ()
) -> tuple[Target, ...]:
    """The targets of a table that a tick at the aware instant *at* looks at.

    All of them once in five minutes, and when capacity is lowered; otherwise those whose alarm is in ALARM, and those
    whose bounds a window changed in the minute before, or a boost among *leases*. In DIRECT mode one call moves both
    dimensions of a table or index, so both are due together.
    """
    targets = scaled_targets(scaled)
    if is_full_tick(scaled.table, int(at.timestamp()) // 60):
        return targets
    due = [
        target
        for target in targets
        if is_in_alarm(target) or has_changed(target, at, MINUTE) or _is_boosted_anew(leases, target, at)
    ]
    if scaled.mode.moves_floors:
        return tuple(due)
    indexes = {target.index for target in due}
    return tuple(target for target in targets if target.index in indexes)


def _is_boosted_anew(leases: Sequence[Lease], target: Target, at: datetime) -> bool:
    return bool(leases) and boosts_at(leases, target.key, at) != boosts_at(leases, target.key, at - MINUTE)


def minutes_to_observe(scaled: ScaledPlan, clock: Clock) -> int:
    """How many minutes of consumption a table's targets are looked at with: a day and a little at its daily tick.

    As far as jumps are counted, and a day in DIRECT mode, which prepares for what came a day ago.
    """
    if is_daily_tick(scaled.table, clock.turn_minute):
        return MINUTES_PER_DAY + _PENDING_MINUTES
    return MINUTES_PER_DAY if scaled.mode is Mode.DIRECT else JUMP_MINUTES


def needs_throttles(
    scaled: ScaledPlan, target: Target, resource: SeenResource, consumed: Observation, clock: Clock
) -> bool:
    """Whether the target's throttles of the last 30 minutes are to be asked for.

    That is at the table's throttle tick, and where it may have throttled: it consumed in a minute what sets off its
    alarm, or its capacity was raised in this time, so that it had less.
    """
    if is_throttle_tick(scaled.table, clock.turn_minute):
        return True
    increase = resource.last_increase
    if increase is not None and clock.now - increase <= timedelta(minutes=THROTTLE_MINUTES):
        return True
    near = alarm_threshold(resource.provisioned.of(target.dimension))
    return any(units is not None and units > near for units in consumed.consumed_units[-THROTTLE_MINUTES:])


def needs_past(seen: Observation, *, has_pulses: bool) -> bool:
    """Whether burst and regret matter: the target's fleet reports pulses, or it had a spike lately."""
    return has_pulses or has_spikes(seen.known_units)
