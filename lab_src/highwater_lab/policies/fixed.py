"""Fixed capacity without any scaling."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.table import rates_of
from highwater_lab.traffic.series import Traffic


class Fixed(Policy):
    """The same units for every target with traffic; by default the mean rate of each target's busiest minute."""

    source = "the demand of the busiest minute, or the given units"

    def __init__(self, units: int | None = None) -> None:
        self.name = "fixed" if units is None else f"fixed:{units}"
        self._units = units

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Fix the capacity of every target; a target without traffic gets one unit."""
        resources = tuple(self._fix(resource, setup, traffic) for resource in setup.resources)
        return replace(setup, is_on_demand=False, resources=resources)

    def _fix(self, resource: ResourceSetup, setup: TableSetup, traffic: Traffic) -> ResourceSetup:
        read, write = (self._target(resource, dimension, setup, traffic) for dimension in Dimension)
        return resource.with_targets(read, write)

    def _target(
        self, resource: ResourceSetup, dimension: Dimension, setup: TableSetup, traffic: Traffic
    ) -> TargetSetup:
        rates = rates_of(traffic, resource, dimension)
        if rates is None:
            return TargetSetup.fixed(1)
        if self._units is not None:
            return TargetSetup.fixed(min(self._units, setup.quota_units))
        step = 60 // traffic.bin_seconds
        peak = max(sum(rates[at : at + step]) for at in range(0, len(rates), step)) * traffic.bin_seconds
        return TargetSetup.fixed(min(max(1, -(-peak // 3600)), setup.quota_units))
