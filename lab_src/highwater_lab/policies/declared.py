"""The table as its template declares it: windows, target tracking, limits, and Highwater's scaler if it has one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from highwater.core import Bounds, Dimension, Target, bounds_at
from highwater.core.boosts import boosted_floor, boosts_at
from highwater.core.scaler import Mode
from highwater.core.scaler.attention import scaled_targets
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterFloor
from highwater_lab.services.autoscaling import bounds_before
from highwater_lab.simulation.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from highwater.core.plan.plan import TargetKey
    from highwater.core.scaler.plan import ScaledPlan
    from highwater_lab.simulation.policy import Calls, Seen
    from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
    from highwater_lab.traffic.series import Traffic


# the same as the interval of a scaler
_COORDINATOR_SECONDS = 60
_MINUTES_BETWEEN_CHECKS = 5


class Declared(Policy):
    """The table as its template declares it, with its windows and its scaler."""

    def __init__(self) -> None:
        self._scaler: Policy = Policy()
        self._setup: TableSetup | None = None

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
            self._setup = setup
            if setup.leases:
                self.period_seconds = _COORDINATOR_SECONDS
            return setup
        scaler = (HighwaterDirect if scaled.mode is Mode.DIRECT else HighwaterFloor)(scaled)
        scaler.lease(setup.leases)
        self._scaler = scaler
        self.period_seconds = self._scaler.period_seconds
        # a table that tags chose has no alarm
        self.alarms_per_target = 0 if scaled.is_tagged else self._scaler.alarms_per_target
        targets = {target.key: target for target in scaled_targets(scaled)}
        return replace(
            setup,
            resources=tuple(_with_planned_bounds(each, scaled, targets, traffic.start) for each in setup.resources),
        )

    def rings(self, seen: Seen) -> bool:
        """Whether an alarm of the scaler goes to ALARM now."""
        return self._setup is None and self.alarms_per_target > 0 and self._scaler.rings(seen)

    def poll(self, seen: Seen, calls: Calls) -> int | None:
        """Run one turn of the scaler; return how many metrics it requested from CloudWatch.

        Boosts of a table without a scaler need no metrics: its floors are those of the schedule and of the boosts.
        """
        if self._setup is None:
            return self._scaler.poll(seen, calls)
        if seen.now // 60 % _MINUTES_BETWEEN_CHECKS == 0 or _changes(self._setup, seen.now):
            _boost(self._setup, seen, calls)
        return 0


def _changes(setup: TableSetup, now: int) -> bool:
    """Whether a boost or a scheduled action, which is up to a minute late, changed something in the minute before."""
    edges = {int(edge.timestamp()) for lease in setup.leases for edge in (lease.start, lease.ends)}
    actions = [
        action
        for resource in setup.resources
        for dimension in Dimension
        for action in resource.target(dimension).actions
    ]
    edges |= {at for action in actions if (at := action.last_run(now + 1)) is not None}
    return any(now - 2 * _COORDINATOR_SECONDS < edge <= now for edge in edges)


def _boost(setup: TableSetup, seen: Seen, calls: Calls) -> None:
    """Set every floor that is not what the schedule and the live boosts ask for."""
    at = datetime.fromtimestamp(seen.now, UTC)
    for resource, looked in zip(setup.resources, seen.resources, strict=True):
        for dimension in Dimension:
            target = resource.target(dimension)
            present = looked.read if dimension is Dimension.READ else looked.write
            scheduled = Bounds(*bounds_before(target.actions, seen.now + 1, target.min, target.max))
            boosts = boosts_at(setup.leases, (resource.index, dimension), at)
            floor = boosted_floor(scheduled, boosts, setup.quota_units)
            if present.bounds != Bounds(floor, scheduled.max) and target.can_be_raised:
                calls.set_bounds(resource.index, dimension, Bounds(floor, scheduled.max))


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

    return resource.with_targets(*map(with_planned_bounds, Dimension))
