"""dynamic-dynamodb, a daemon that scales tables."""

from __future__ import annotations

import math

from highwater.core import Dimension
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenTarget

_UPPER_PERCENT, _LOWER_PERCENT = 90, 30
_STEP_PERCENT = 50


class DynamicDynamodb(Poller):
    """Every five minutes: up or down by 50 %, by the utilization of five minutes that ended ten minutes ago."""

    name = "dynamic-dynamodb"
    source = "sebdah/dynamic-dynamodb 2.5.1 with its defaults, which leave its throttle thresholds off"
    period_seconds = 300
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Raise above 90 % utilization, lower below 30 % unless the target is idle.

        Each resource is changed in one UpdateTable call; if its decrease is refused, the increase is sent alone.
        """
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            wanted = {t.dimension: self._wanted(seen, t) for t in resource.targets}
            changed = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] != t.units}
            if changed and calls.update_table(resource.index, changed) is Refused.DECREASES:
                raised = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] > t.units}
                if raised:
                    calls.update_table(resource.index, raised)

    def _wanted(self, seen: Seen, target: SeenTarget) -> int:
        minutes = target.consumed(5, skip=seen.minutes_hidden(10))
        if len(minutes) < 5:
            return target.units
        consumed = sum(minutes) / 5
        percent = 100 * consumed / target.units
        if percent > _UPPER_PERCENT:
            base = max(target.units, math.ceil(consumed))
            return target.clamp(base + math.ceil(base * _STEP_PERCENT / 100))
        throttled = target.dimension is Dimension.WRITE and any(target.throttled(5, skip=seen.minutes_hidden(10)))
        if 0 < percent < _LOWER_PERCENT and not throttled:
            return target.clamp(max(target.units - int(target.units * _STEP_PERCENT / 100), consumed))
        return target.units
