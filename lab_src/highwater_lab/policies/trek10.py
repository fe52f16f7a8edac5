"""trek10's autoscaling Lambda function."""

from __future__ import annotations

from highwater_lab.simulation.policy import Calls, Poller, Seen, SeenTarget

_DOWN_EVERY = 6 * 3_600
_PADDING = 10


class Trek10(Poller):
    """Every minute: if the busiest of the last five minutes used 80 %, ten units above it; every six hours down."""

    name = "trek10"
    source = "trek10inc/dynamodb-autoscaling e6989cc, with the table's bounds in place of 1 and 100"
    period_seconds = 60
    metrics_per_target = 1

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Change each resource in one UpdateTable call for both dimensions."""
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            has_paused = seen.now - (resource.last_increase or 0) >= 1_800
            is_time_to_lower = seen.now % _DOWN_EVERY == 0 and has_paused
            changed = {}
            for target in resource.targets:
                wanted = self._wanted(target, is_time_to_lower)
                if wanted != target.units:
                    changed[target.dimension] = wanted
            if changed:
                calls.update_table(resource.index, changed)

    def _wanted(self, target: SeenTarget, is_time_to_lower: bool) -> int:
        consumed = max(target.consumed(5), default=0)
        if consumed >= 0.8 * target.units:
            return target.clamp(max(target.units, consumed) + _PADDING)
        if is_time_to_lower:
            return min(target.units, target.clamp(max(target.consumed(30), default=0) / 0.8 - _PADDING))
        return target.units
