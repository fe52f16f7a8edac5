"""The table as its template declares it: windows, target tracking, limits, and Highwater's scaler if it has one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from highwater.core import Dimension, Target, bounds_at
from highwater.core.scaler import Mode
from highwater.core.scaler.attention import scaled_targets
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterFloor
from highwater_lab.simulation.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from highwater.core.plan.plan import TargetKey
    from highwater.core.scaler.scaled_plan import ScaledPlan
    from highwater_lab.simulation.seen import Calls, Seen
    from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
    from highwater_lab.traffic.series import Traffic


class Declared(Policy):
    """The table as its template declares it, with its windows and its scaler."""

    def __init__(self) -> None:
        self._scaler: Policy = Policy()

    @property
    def actor(self) -> str:
        """The name of this actor in reports, to distinguish the scaler's changes from those of auto scaling."""
        return "scaler"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Start scaled targets without scheduled actions with the bounds that the plan asks for at the start.

        These are the targets of DIRECT mode, and targets whose windows the scaler opens and closes.
        """
        scaled = setup.scaler
        if scaled is None:
            return setup
        self._scaler = (HighwaterDirect if scaled.mode is Mode.DIRECT else HighwaterFloor)(scaled)
        self.period_seconds, self.offset_seconds = self._scaler.period_seconds, self._scaler.offset_seconds
        self.alarms_per_target = self._scaler.alarms_per_target
        targets = {target.key: target for target in scaled_targets(scaled)}
        return replace(
            setup,
            resources=tuple(_with_planned_bounds(each, scaled, targets, traffic.start) for each in setup.resources),
        )

    def poll(self, seen: Seen, calls: Calls) -> int | None:
        """Run one turn of the scaler; return how many metrics it requested from CloudWatch."""
        return self._scaler.poll(seen, calls)


def _with_planned_bounds(
    resource: ResourceSetup, scaled: ScaledPlan, targets: Mapping[TargetKey, Target], start: datetime
) -> ResourceSetup:
    def with_planned_bounds(dimension: Dimension) -> TargetSetup:
        setup = resource.target(dimension)
        target = targets.get((resource.index, dimension))
        if target is None or setup.actions:
            return setup
        bounds = bounds_at(target, start)
        is_scaled = setup.is_scaled or scaled.mode is Mode.DIRECT
        return replace(setup, min=bounds.min, max=bounds.max, is_scaled=is_scaled)

    return resource.with_targets(with_planned_bounds(Dimension.READ), with_planned_bounds(Dimension.WRITE))
