"""Target tracking in this cloud: the lab's rules, fed with what the meters of live tables saw."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from highwater_lab.local.autoscaling.records import PolicyRecord
from highwater_lab.services.target_tracking import TargetTracking
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
