"""The floors and ceilings that the scaler keeps a table's targets at least at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from highwater.core import Bounds, Dimension, Plan
from highwater.core.schedule.bounds import timeline

if TYPE_CHECKING:
    from highwater_lab.simulation.setup import TableSetup
    from highwater_lab.traffic.series import Traffic

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PlannedBounds:
    """By index and dimension, the seconds since 1970 at which bounds change, and those from then on."""

    changes: Mapping[tuple[str | None, Dimension], tuple[Sequence[float], Sequence[Bounds]]]

    @classmethod
    def of_setup(cls, setup: TableSetup) -> PlannedBounds:
        """Those that the table is set up with, all the time."""
        return cls(
            {
                (resource.index, dimension): ((0,), (Bounds(target.min, target.max),))
                for resource in setup.resources
                for dimension in Dimension
                for target in (resource.target(dimension),)
            }
        )

    @classmethod
    def of_plan(cls, plan: Plan, traffic: Traffic) -> PlannedBounds:
        """What a plan asks for during *traffic*, its windows included."""
        end = traffic.start + traffic.minutes * _MINUTE
        changes = {}
        for target in plan.targets():
            if target.capacity.is_autoscaled:
                times, bounds = zip(*timeline(target, traffic.start, end), strict=True)
                changes[target.index, target.dimension] = [at.timestamp() for at in times], bounds
        return cls(changes)

    def at(self, now: float, index: str | None, dimension: Dimension) -> Bounds | None:
        """What is planned for a target then, `None` where it is not scaled."""
        planned = self.changes.get((index, dimension))
        if planned is None:
            return None
        times, bounds = planned
        return bounds[max(0, bisect_right(times, now) - 1)]

    def has_changed(self, now: float, index: str | None, dimension: Dimension) -> bool:
        """Whether a window opened or closed in the minute before."""
        return self.at(now, index, dimension) != self.at(now - 60, index, dimension)
