"""On-demand capacity mode."""

from __future__ import annotations

from dataclasses import replace

from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic


class OnDemandMode(Policy):
    """On-demand billing: no provisioned capacity, and a charge for every request unit."""

    name = "on-demand"
    source = "AWS: Amazon DynamoDB Developer Guide, on-demand capacity mode"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Switch the table to on-demand billing, without scaling."""
        return replace(setup, is_on_demand=True).each_target(lambda target: replace(target, tracking=None, actions=()))
