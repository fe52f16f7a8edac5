"""On-demand capacity mode."""

from __future__ import annotations

from dataclasses import replace

from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic


class OnDemandMode(Policy):
    """Nothing is provisioned, every request is paid for."""

    name = "on-demand"
    source = "AWS: Amazon DynamoDB Developer Guide, on-demand capacity mode"

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """The same table, billed by request."""
        return replace(setup, is_on_demand=True).each_target(lambda target: replace(target, tracking=None, actions=()))
