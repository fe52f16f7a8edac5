"""sprkem's autoscaling Lambda."""

from __future__ import annotations

from highwater_lab.simulation.policy import Poller
from highwater_lab.simulation.seen import Calls, Seen, SeenResource, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_BUFFER_UNITS = 5


class Sprkem(Poller):
    """Every minute: the average of the last two and five units more; down rarely, four times a day at most."""

    name = "sprkem"
    source = (
        "sprkem/DynamoDB-AutoScale-Lambda 61f1fa7; no hour of the day is set apart, its bounds of 1 and 50 are the "
    )
    source += "table's here"
    period_seconds = 60
    metrics_per_target = 1

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
        window = target.consumed(2)
        if not window:
            return target.units
        consumed = sum(window) / len(window)
        if consumed > 1 and consumed + _BUFFER_UNITS > target.units:
            return target.clamp(consumed + _BUFFER_UNITS)
        wanted = min(target.units, target.clamp(consumed))
        used, hours_left = resource.decreases_today(now), 24 - now % _DAY // _HOUR
        rested = resource.last_decrease is None or now - resource.last_decrease >= _HOUR
        is_worth_it = wanted <= 0.65 * target.units or target.units <= target.floor + 10
        if used < 4 and rested and is_worth_it and max(hours_left / 6, 1) <= 4 - used:
            return wanted
        return target.units
