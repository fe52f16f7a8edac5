"""The cron job of 2013: steps of a fifth, every quarter of an hour."""

from __future__ import annotations

from highwater.core import Dimension
from highwater_lab.simulation.policy import Poller
from highwater_lab.simulation.seen import Calls, Seen, SeenTarget

_DAY, _HOUR = 86_400, 3_600
_EARLY = 6 * _HOUR


class StepCron(Poller):
    """By day a fifth more whenever 80 % is used; in the small hours back to a hard-coded value.

    The article does not say that value: here it is what the table started with. The day is UTC's.
    """

    name = "step-cron"
    source = "T. Gross, Falling in and out of love with DynamoDB, part II, 2013"
    period_seconds = 900
    metrics_per_target = 1

    def __init__(self) -> None:
        self._base: dict[tuple[str | None, Dimension], int] = {}

    def poll(self, seen: Seen, calls: Calls) -> None:
        """One call per resource for both dimensions."""
        is_early = seen.now % _DAY < _EARLY
        for resource in seen.resources:
            changed = {}
            for target in resource.targets:
                base = self._base.setdefault((resource.index, target.dimension), target.units)
                wanted = self._wanted(target, base, is_early)
                if wanted != target.units:
                    changed[target.dimension] = wanted
            if changed and not resource.is_busy(seen.now):
                calls.update_table(resource.index, changed)

    def _wanted(self, target: SeenTarget, base: int, is_early: bool) -> int:
        window = target.consumed(5)
        if not window:
            return target.units
        consumed = sum(window) / len(window)
        if is_early:
            return base if target.units > base and consumed < 0.8 * base else target.units
        return target.clamp(target.units * 1.2) if consumed > 0.8 * target.units else target.units
