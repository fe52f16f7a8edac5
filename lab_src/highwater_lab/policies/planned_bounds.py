"""The floors and ceilings that the scaler keeps a table's targets at least at: those of its plan, or the first seen."""

from __future__ import annotations

from bisect import bisect_right
from datetime import timedelta
from typing import TYPE_CHECKING

from highwater.core import Bounds, Dimension, Plan
from highwater.core.floors import timeline

if TYPE_CHECKING:
    from highwater_lab.simulation.seen import SeenTarget
    from highwater_lab.traffic.series import Traffic

_MINUTE = timedelta(minutes=1)


class FirstBounds:
    """The plan of a target that has none: the bounds that it is first seen with."""

    def __init__(self) -> None:
        self._first: dict[SeenTarget, Bounds] = {}

    def at(self, now: int, index: str | None, target: SeenTarget) -> Bounds | None:  # noqa: ARG002 - plans need both
        """What is planned then, `None` where the target is not scaled."""
        return self._first.setdefault(target, target.bounds)

    def has_changed(self, now: int, index: str | None, target: SeenTarget) -> bool:  # noqa: ARG002
        """Whether a window opened or closed in the minute before."""
        return False


class PlannedBounds(FirstBounds):
    """What a plan asks for, its windows included."""

    def __init__(self, plan: Plan, traffic: Traffic) -> None:
        super().__init__()
        end = traffic.start + traffic.minutes * _MINUTE
        self._planned: dict[tuple[str | None, Dimension], tuple[list[float], list[Bounds]]] = {}
        for target in plan.targets():
            if target.capacity.is_autoscaled:
                changes = timeline(target, traffic.start, end)
                times = [at.timestamp() for at, _ in changes]
                self._planned[target.index, target.dimension] = times, [bounds for _, bounds in changes]

    def of(self, now: float, index: str | None, dimension: Dimension) -> Bounds | None:
        """What is planned for a target then, `None` where it is not scaled."""
        planned = self._planned.get((index, dimension))
        if planned is None:
            return None
        times, bounds = planned
        return bounds[max(0, bisect_right(times, now) - 1)]

    def at(self, now: int, index: str | None, target: SeenTarget) -> Bounds | None:
        """What is planned then, `None` where the target is not scaled."""
        return self.of(now, index, target.dimension)

    def has_changed(self, now: int, index: str | None, target: SeenTarget) -> bool:
        """Whether a window opened or closed in the minute before."""
        return self.at(now, index, target) != self.at(now - 60, index, target)
