"""better-dynamodb-scaling and its Python port: target tracking with faster increases."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.simulation.policy import Calls, Policy, Seen, SeenTarget
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic

_HOUR = 3_600


class BetterDynamodbScaling(Policy):
    """Target tracking whose high alarm needs one minute, plus a Lambda that raises write capacity to the demand.

    Demand is a metric that the application publishes: consumed plus throttled units.
    """

    name = "better-dynamodb-scaling"
    source = "theburningmonk/better-dynamodb-scaling 2017-07, with the table's ceiling in place of 1,000 units"
    period_seconds = 60
    metrics_per_target = 1
    _dimensions: tuple[Dimension, ...] = (Dimension.WRITE,)

    def __init__(self, target_percent: int = 70) -> None:
        self._target_percent = target_percent

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Give every target a tracking policy whose high alarm needs one minute above the target instead of two."""
        tracking = TargetTracking(target_percent=self._target_percent, high_periods=1)
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=tracking, actions=(), is_scaled=True)
        )

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Raise capacity to the demand of the busiest of the last five minutes, divided by the target utilization."""
        for resource in seen.resources:
            for target in resource.targets:
                if target.dimension in self._dimensions and not resource.is_busy(seen.now):
                    wanted = self._wanted(seen, target, resource.last_decrease)
                    if wanted != target.units:
                        calls.update_table(resource.index, {target.dimension: wanted})

    def _wanted(self, seen: Seen, target: SeenTarget, last_decrease: int | None) -> int:  # noqa: ARG002
        return max(target.units, self._units_for_demand(target))

    def _units_for_demand(self, target: SeenTarget) -> int:
        return target.clamp(max(target.requested(5), default=0) * 100 / self._target_percent)


class ImprovedDynamodbAutoScaling(BetterDynamodbScaling):
    """The Python port: scales reads too, and its Lambda lowers capacity at most once an hour."""

    name = "improved-dynamodb-auto-scaling"
    source = "nieuwo/improved-dynamodb-auto-scaling 2018-10, with the table's ceiling in place of 1,000 units"
    _dimensions = (Dimension.READ, Dimension.WRITE)

    def _wanted(self, seen: Seen, target: SeenTarget, last_decrease: int | None) -> int:
        wanted = self._units_for_demand(target)
        may_lower = last_decrease is None or seen.now - last_decrease > _HOUR
        return wanted if wanted > target.units or (may_lower and target.requested(5)) else target.units
