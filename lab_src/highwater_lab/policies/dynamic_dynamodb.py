"""dynamic-dynamodb, the scaler daemon."""

from __future__ import annotations

import math

from highwater.core import Dimension
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.policy import Poller
from highwater_lab.simulation.seen import Calls, Seen, SeenTarget

_UPPER_PERCENT, _LOWER_PERCENT = 90, 30
_STEP_PERCENT = 50


class DynamicDynamodb(Poller):
    """Every five minutes looks at five minutes that are ten minutes old; up or down by half."""

    name = "dynamic-dynamodb"
    source = "sebdah/dynamic-dynamodb 2.5.1 at its defaults; throttle thresholds are off there, and so they are here"
    period_seconds = 300
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Up above 90 %, down below 30 % unless idle; one call per resource, increases alone if that is refused."""
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            wanted = {t.dimension: self._wanted(seen, t) for t in resource.targets}
            changed = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] != t.units}
            if changed and calls.update_table(resource.index, changed) is Refused.DECREASES:
                rises = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] > t.units}
                if rises:
                    calls.update_table(resource.index, rises)

    def _wanted(self, seen: Seen, target: SeenTarget) -> int:
        window = target.consumed(5, skip=seen.minutes_hidden(10))
        if len(window) < 5:
            return target.units
        used = sum(window) / 5
        percent = 100 * used / target.units
        if percent > _UPPER_PERCENT:
            base = max(target.units, math.ceil(used))
            return target.clamp(base + math.ceil(base * _STEP_PERCENT / 100))
        throttled = target.dimension is Dimension.WRITE and any(target.throttled(5, skip=seen.minutes_hidden(10)))
        if 0 < percent < _LOWER_PERCENT and not throttled:
            return target.clamp(max(target.units - int(target.units * _STEP_PERCENT / 100), used))
        return target.units
