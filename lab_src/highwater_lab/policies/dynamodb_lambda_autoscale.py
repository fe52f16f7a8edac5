"""dynamodb-lambda-autoscale, a Lambda function that scales tables."""

from __future__ import annotations

from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenResource, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_LAST_HALF_HOUR = 23 * _HOUR + 1_800
_DECREASES = 4


class DynamodbLambdaAutoscale(Poller):
    """Every minute: up above 75 % utilization or 25 throttles, down to consumption below 30 %.

    At most four decreases a day, spread evenly over the time left, each an hour after the last change and of more than
    five units; in the last half hour of the day (UTC) smaller ones too.
    """

    name = "dynamodb-lambda-autoscale"
    source = "channl/dynamodb-lambda-autoscale, DefaultProvisioner, e67b8bb, with the table's bounds"
    period_seconds = 60
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Change each resource in one UpdateTable call for both dimensions."""
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
        minutes = target.consumed(5)
        if not minutes:
            return target.units
        # as in the original, throttles are a count per minute and not a rate
        units, consumed, throttled = target.units, max(minutes), target.throttled(1)[0]
        if (consumed > 0.75 * units or throttled > 25 or units < target.floor) and units < target.ceiling:
            return target.clamp(max(units + 3 + 0.7 * throttled, 1.3 * units + 0.7 * throttled, 1.3 * consumed))
        if (consumed < 0.30 * units or units > target.ceiling) and units > target.floor:
            wanted = min(units, target.clamp(consumed))
            if self._may_lower(now, resource, units - wanted):
                return wanted
        return units

    def _may_lower(self, now: int, resource: SeenResource, by: int) -> bool:
        midnight = now // _DAY * _DAY
        decreases = resource.decreases_today(now)
        if decreases >= _DECREASES:
            return False
        last = max(resource.last_decrease or 0, midnight)
        next_slot = last + (midnight + _LAST_HALF_HOUR - last) / (_DECREASES + 1 - decreases)
        has_paused = all(now - (at or 0) >= _HOUR for at in (resource.last_decrease, resource.last_increase))
        return now >= next_slot and has_paused and (by > 5 or now - midnight >= _LAST_HALF_HOUR)
