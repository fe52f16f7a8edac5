"""dynamodb-lambda-autoscale, the scaler Lambda."""

from __future__ import annotations

from highwater_lab.simulation.policy import Poller
from highwater_lab.simulation.seen import Calls, Seen, SeenResource, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_LATE = 23 * _HOUR + 1_800
_DECREASES = 4


class DynamodbLambdaAutoscale(Poller):
    """Every minute; up by throttles and consumption, down to what is consumed, four decreases spread over the day."""

    name = "dynamodb-lambda-autoscale"
    source = "channl/dynamodb-lambda-autoscale, DefaultProvisioner, e67b8bb; its bounds are those of the table here"
    period_seconds = 60
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """One call per resource for both dimensions."""
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            changed = {}
            for target in resource.targets:
                wanted = self._wanted(seen.now, resource, target)
                if wanted != target.units:
                    changed[target.dimension] = wanted
            if changed:
                calls.update_table(resource.index, changed)

    def _wanted(self, now: int, resource: SeenResource, target: SeenTarget) -> int:
        window = target.consumed(5)
        if not window:
            return target.units
        units, consumed, throttled = target.units, max(window), target.throttled(1)[0]
        # throttles are counted per minute there too
        if (consumed > 0.75 * units or throttled > 25 or units < target.floor) and units < target.ceiling:
            return target.clamp(max(units + 3 + 0.7 * throttled, 1.3 * units + 0.7 * throttled, 1.3 * consumed))
        if (consumed < 0.30 * units or units > target.ceiling) and units > target.floor:
            wanted = min(units, target.clamp(consumed))
            if self._may_lower(now, resource, units - wanted):
                return wanted
        return units

    def _may_lower(self, now: int, resource: SeenResource, by: int) -> bool:
        midnight = now // _DAY * _DAY
        used = resource.decreases_today(now)
        if used >= _DECREASES:
            return False
        last = max(resource.last_decrease or 0, midnight)
        spaced = last + (midnight + _LATE - last) / (_DECREASES + 1 - used)
        rested = all(now - (at or 0) >= _HOUR for at in (resource.last_decrease, resource.last_increase))
        return now >= spaced and rested and (by > 5 or now - midnight >= _LATE)
