"""Application Auto Scaling with target tracking, without scheduled actions."""

from __future__ import annotations

from dataclasses import replace

from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic


class Native(Policy):
    """Target tracking with the same target utilization for every target, between the target's floor and ceiling."""

    source = "AWS: Application Auto Scaling User Guide; alarm settings as read from live accounts"

    def __init__(self, target_percent: int = 70) -> None:
        self.name = f"native:{target_percent}"
        self._target_percent = target_percent

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Give every target a tracking policy and no scheduled actions."""
        tracking = TargetTracking(target_percent=self._target_percent)
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=tracking, actions=(), is_scaled=True)
        )
