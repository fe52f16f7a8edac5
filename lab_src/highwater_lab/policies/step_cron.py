"""A cron job of 2013: every 15 minutes, steps of 20 % up."""

from __future__ import annotations

from highwater.core import Dimension
from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_NIGHT_END = 6 * _HOUR


class StepCron(Poller):
    """From 06:00 to midnight UTC 20 % up if utilization is above 80 %; from midnight to 06:00 back to a base value.

    The article's base value is hard-coded and not published; here it is the capacity at the start.
    """

    name = "step-cron"
    source = "T. Gross, Falling in and out of love with DynamoDB, part II, 2013"
    period_seconds = 900
    metrics_per_target = 1

    def __init__(self) -> None:
        self._base: dict[tuple[str | None, Dimension], int] = {}

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Change each resource in one UpdateTable call for both dimensions."""
        is_night = seen.now % _DAY < _NIGHT_END
        for resource in seen.resources:
            changed = {}
            for target in resource.targets:
                base = self._base.setdefault((resource.index, target.dimension), target.units)
                wanted = self._wanted(target, base, is_night)
                if wanted != target.units:
                    changed[target.dimension] = wanted
            if changed and not resource.is_busy(seen.now):
                calls.update_table(resource.index, changed)

    def _wanted(self, target: SeenTarget, base: int, is_night: bool) -> int:
        minutes = target.consumed(5)
        if not minutes:
            return target.units
        consumed = sum(minutes) / len(minutes)
        if is_night:
            return base if target.units > base and consumed < 0.8 * base else target.units
        return target.clamp(target.units * 1.2) if consumed > 0.8 * target.units else target.units
