"""The one interface of all policies."""

from __future__ import annotations

from dataclasses import replace

from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.seen import Calls, Seen
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic


class Policy:
    """A way to size a table: as declared, unless a subclass does otherwise. Made anew for each run.

    Attributes:
        name: As people ask for it: `native:70`.
        source: Where the algorithm and its defaults come from.
        period_seconds: How often `poll` is called, `None` for never.
        offset_seconds: How long after each whole period; by default at it.
        metrics_per_target: Metrics that one poll asks CloudWatch for, per target, unless it says how many it did.
        alarms_per_target: CloudWatch alarms of its own, beside those of target tracking.
        pulses: How the table's fleet tells what it asks for, `None` for a fleet that tells nothing.
    """

    name = "declared"
    source = "the template: windows, target tracking, limits"
    period_seconds: int | None = None
    offset_seconds = 0
    metrics_per_target = 0
    alarms_per_target = 0
    pulses: Pulses | None = None

    @property
    def actor(self) -> str:
        """Who it is that changes something, for what a run tells."""
        return self.name

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002 - some look ahead
        """The table as this policy has it before the start."""
        return setup

    def needs_help(self, seen: Seen) -> bool:  # noqa: ARG002 - whoever hears pulses looks
        """Whether the fleet's pulses, as they are known now, wake the policy."""
        return False

    def poll(self, seen: Seen, calls: Calls) -> int | None:
        """Look at the table and change it; may answer how many metrics it asked for."""


class Poller(Policy):
    """A scaler of its own: nothing but it moves the capacity, between floor and ceiling."""

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Without target tracking and without windows."""
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=None, actions=(), is_scaled=True)
        )
