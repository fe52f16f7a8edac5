"""On-demand capacity mode."""

from __future__ import annotations

from dataclasses import replace

from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic


class OnDemandMode(Policy):
    """On-demand billing: no provisioned capacity, and a charge for every request unit."""

    name = "on-demand"
    source = "AWS: Amazon DynamoDB Developer Guide, on-demand capacity mode"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Switch the table to on-demand billing, without scaling; marks are bought above what is free on demand."""
        resources = tuple(
            replace(
                resource,
                bought_read_units=max(0, resource.warm_read_units - ON_DEMAND_WARM_READ_UNITS),
                bought_write_units=max(0, resource.warm_write_units - ON_DEMAND_WARM_WRITE_UNITS),
            )
            for resource in setup.resources
        )
        switched = replace(setup, is_on_demand=True, resources=resources)
        return switched.each_target(lambda target: replace(target, tracking=None, actions=()))
