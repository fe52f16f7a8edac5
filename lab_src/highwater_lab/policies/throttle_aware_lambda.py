"""The throttle-aware Lambda function from Jampp's article."""

from __future__ import annotations

from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenTarget

_TARGET, _BUFFERED_TARGET = 0.8, 0.6
_LOW_INCREASE, _HIGH_INCREASE = 200, 1_000
_THROTTLING_THRESHOLD = 1_000


class ThrottleAwareLambda(Poller):
    """Every five minutes: a fixed step up if the target throttles, else capacity for a utilization of 80 %.

    Utilization is the average of five minutes; the policy lowers capacity if it is below 60 %. The article gives no
    values for its steps and thresholds. Here the step is 200 units, and 1,000 units if a minute has 1,000 or more
    throttled units.
    """

    name = "throttle-aware-lambda"
    source = "A. Tuso, Managing DynamoDB autoscaling with Lambda and CloudWatch, Jampp 2019"
    period_seconds = 300
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Change each resource in one UpdateTable call for both dimensions."""
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            changed = {}
            for target in resource.targets:
                wanted = self._wanted(target)
                if wanted != target.units:
                    changed[target.dimension] = wanted
            if changed:
                calls.update_table(resource.index, changed)

    def _wanted(self, target: SeenTarget) -> int:
        consumed_minutes, throttled_minutes = target.consumed(5), target.throttled(5)
        if not consumed_minutes:
            return target.units
        consumed = sum(consumed_minutes) / len(consumed_minutes)
        throttled = sum(throttled_minutes) / len(throttled_minutes)
        lowest = max(5, target.floor)
        can_increase = target.units < target.ceiling
        utilization = consumed / target.units
        if throttled and can_increase:
            step = _HIGH_INCREASE if throttled >= _THROTTLING_THRESHOLD else _LOW_INCREASE
            return target.clamp(target.units + step)
        if target.units < lowest or not consumed:
            return target.clamp(lowest)
        if (utilization > _TARGET and can_increase) or (not throttled and utilization < _BUFFERED_TARGET):
            return target.clamp(max(int(consumed / _TARGET), 1))
        return target.units
