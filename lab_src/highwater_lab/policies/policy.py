"""The one interface of all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from highwater_lab.simulation.seen import Seen, Update
    from highwater_lab.simulation.setup import TableSetup
    from highwater_lab.traffic.series import Traffic


class Policy:
    """A way to size a table: as declared, unless a subclass does otherwise. Made anew for each run.

    Attributes:
        name: As people ask for it: `native:70`.
        source: Where the algorithm and its defaults come from.
        period_seconds: How often `poll` is called, `None` for never.
        metrics_per_target: Metrics that one poll asks CloudWatch for, per target.
    """

    name = "declared"
    source = "the template: windows, target tracking, limits"
    period_seconds: int | None = None
    metrics_per_target = 0

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002 - some look ahead
        """The table as this policy has it before the start."""
        return setup

    def poll(self, seen: Seen, update: Update) -> None:
        """Look at the table and change it."""


class Poller(Policy):
    """A scaler of its own: nothing but it moves the capacity, between floor and ceiling."""

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Without target tracking and without windows."""
        from dataclasses import replace

        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=None, actions=(), is_scaled=True)
        )


class Declared(Policy):
    """What the template says, windows and all."""
