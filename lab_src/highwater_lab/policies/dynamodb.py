"""DynamoDB's own options: fixed capacity, target tracking without scheduled actions, and on-demand capacity."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension, Units
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.tracking import NATIVE_TARGET_PERCENT, TargetTracking
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
        resources = (
            each.with_targets(*(self._target(each, dimension, setup, traffic) for dimension in Dimension))
            for each in setup.resources
        )
        return replace(setup, is_on_demand=False, resources=tuple(resources))

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


class Native(Policy):
    """Target tracking with the same target utilization for every target, between the target's floor and ceiling."""

    source = "AWS: Application Auto Scaling User Guide; alarm settings as read from live accounts"

    def __init__(self, target_percent: int = NATIVE_TARGET_PERCENT) -> None:
        self.name = f"native:{target_percent}"
        self._target_percent = target_percent

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Give every target a tracking policy and no scheduled actions."""
        tracking = TargetTracking(target_percent=self._target_percent)
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=tracking, actions=(), is_scaled=True)
        )


class OnDemandMode(Policy):
    """On-demand billing: no provisioned capacity, and a charge for every request unit."""

    name = "on-demand"
    source = "AWS: Amazon DynamoDB Developer Guide, on-demand capacity mode"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Switch the table to on-demand billing, without scaling; marks are charged above the free on-demand value."""
        free = Units(ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS)
        resources = tuple(
            each.warmed(Units(each.warm_read_units, each.warm_write_units), free) for each in setup.resources
        )
        switched = replace(setup, is_on_demand=True, resources=resources)
        return switched.each_target(lambda target: replace(target, tracking=None, actions=()))
