"""What a template says that gives its table to Highwater's scaler: auto scaling as declared, and the scaler."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from highwater.core import Dimension, Mode
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterFloor
from highwater_lab.policies.planned_bounds import PlannedBounds
from highwater_lab.policies.policy import Declared, Policy

if TYPE_CHECKING:
    from highwater_lab.simulation.seen import Calls, Seen
    from highwater_lab.simulation.setup import ResourceSetup, Scaler, TableSetup, TargetSetup
    from highwater_lab.traffic.series import Traffic


class DeclaredWithScaler(Policy):
    """As declared, with the scaler that the template has for the table; the setup must have one."""

    name = Declared.name
    source = "the template: windows, target tracking, limits, and its scaler"
    period_seconds = HighwaterFloor.period_seconds
    offset_seconds = HighwaterFloor.offset_seconds
    alarms_per_target = HighwaterFloor.alarms_per_target

    def __init__(self) -> None:
        self._inner: Policy = Declared()

    @property
    def actor(self) -> str:
        """The scaler, as beside it auto scaling acts."""
        return "scaler"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Targets that the scaler alone moves, and windows that it alone holds, start with its plan's bounds."""
        if setup.scaler is None:
            raise ValueError(f"table {setup.name} has no scaler")
        planned = PlannedBounds(setup.scaler.plan, traffic)
        is_direct = setup.scaler.mode is Mode.DIRECT
        self._inner = HighwaterDirect(planned=planned) if is_direct else HighwaterFloor(planned=planned)
        resources = [self._open(resource, setup.scaler, planned, traffic) for resource in setup.resources]
        return replace(setup, resources=tuple(resources))

    def poll(self, seen: Seen, calls: Calls) -> int | None:
        """As the scaler's mode has it."""
        return self._inner.poll(seen, calls)

    def _open(self, resource: ResourceSetup, scaler: Scaler, planned: PlannedBounds, traffic: Traffic) -> ResourceSetup:
        def opened(dimension: Dimension) -> TargetSetup:
            target = resource.target(dimension)
            bounds = planned.of(traffic.start.timestamp(), resource.index, dimension)
            if bounds is None or target.actions:
                return target
            is_scaled = target.is_scaled or scaler.mode is Mode.DIRECT
            return replace(target, min=bounds.min, max=bounds.max, is_scaled=is_scaled)

        return resource.with_targets(opened(Dimension.READ), opened(Dimension.WRITE))
