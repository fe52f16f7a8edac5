"""Target tracking in this cloud: the lab's rules, fed with what the meters of live tables saw."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from highwater_lab.local.autoscaling.records import Cooldowns, PolicyRecord
from highwater_lab.services.target_tracking import Alarm, TargetTracking
from highwater_lab.services.timing import Timing

_TIMING = Timing()
# The second of each minute in which alarms have seen a new datapoint
TRACK_SECOND: Final = (_TIMING.metric_delay + _TIMING.alarm_latency) % 60


def newest_minute(now: datetime) -> int:
    """The last minute since 1970 whose datapoint an alarm has seen by *now*."""
    return int(now.timestamp() - _TIMING.metric_delay - _TIMING.alarm_latency) // 60 - 1


def rules_of(policy: PolicyRecord) -> TargetTracking | None:
    """The policy as the lab's rules take it; `None` for one on a metric of its own."""
    settings: dict[str, Any] = policy.configuration
    if settings.get("CustomizedMetricSpecification"):
        return None
    return TargetTracking(
        target_percent=round(float(settings["TargetValue"])),
        scale_in_cooldown=int(settings.get("ScaleInCooldown") or 0),
        scale_out_cooldown=int(settings.get("ScaleOutCooldown") or 0),
        disable_scale_in=bool(settings.get("DisableScaleIn")),
    )


def wanted_units(
    rules: TargetTracking, consumed: list[int], units: int, bounds: tuple[int, int], cooldowns: Cooldowns, now: datetime
) -> tuple[Alarm, int] | None:
    """What the policy asks for now, and the alarm that has it; `None` for nothing."""
    newest = len(consumed) - 1
    alarm = rules.alarm(consumed, newest, units) if consumed else None
    if alarm is None:
        return None
    low, high = bounds
    wanted = min(max(rules.wanted(alarm, consumed, newest), low), high)
    if wanted == units or (wanted > units) is not (alarm is Alarm.HIGH):
        return None
    if alarm is Alarm.HIGH:
        rests = cooldowns.last_scale_out
        if rests is not None and now < rests + timedelta(seconds=rules.scale_out_cooldown):
            return (alarm, wanted) if wanted > cooldowns.last_wanted else None
    else:
        rests = cooldowns.last_scale_in
        if rests is not None and now < rests + timedelta(seconds=rules.scale_in_cooldown):
            return None
    return alarm, wanted
