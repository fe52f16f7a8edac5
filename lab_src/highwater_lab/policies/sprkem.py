"""sprkem's autoscaling Lambda function."""

from __future__ import annotations

from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenResource, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_BUFFER_UNITS = 5


class Sprkem(Poller):
    """Every minute: raises to the average of the last two minutes plus five units; at most four decreases a day.

    A decrease needs an hour since the last one and a saving of 35 %, or capacity within ten units of the floor.
    Decreases are also spread over the hours left of the day.
    """

    name = "sprkem"
    source = (
        "sprkem/DynamoDB-AutoScale-Lambda 61f1fa7, without its hour-of-day settings and with the table's bounds in "
        "place of 1 and 50"
    )
    period_seconds = 60
    metrics_per_target = 1

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
        minutes = target.consumed(2)
        if not minutes:
            return target.units
        consumed = sum(minutes) / len(minutes)
        if consumed > 1 and consumed + _BUFFER_UNITS > target.units:
            return target.clamp(consumed + _BUFFER_UNITS)
        wanted = min(target.units, target.clamp(consumed))
        decreases, hours_left = resource.decreases_today(now), 24 - now % _DAY // _HOUR
        has_paused = resource.last_decrease is None or now - resource.last_decrease >= _HOUR
        is_worth_it = wanted <= 0.65 * target.units or target.units <= target.floor + 10
        if decreases < 4 and has_paused and is_worth_it and max(hours_left / 6, 1) <= 4 - decreases:
            return wanted
        return target.units
