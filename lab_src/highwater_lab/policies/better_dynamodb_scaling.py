"""better-dynamodb-scaling and its Python port: target tracking, made faster."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension
from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.seen import Calls, Seen, SeenTarget
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.traffic.series import Traffic

_HOUR = 3_600


class BetterDynamodbScaling(Policy):
    """Auto scaling with a high alarm of one minute, and a jump for writes to what the application asked for."""

    name = "better-dynamodb-scaling"
    source = "theburningmonk/better-dynamodb-scaling 2017-07; its cap of 1,000 units is the ceiling here"
    period_seconds = 60
    metrics_per_target = 1
    _dimensions: tuple[Dimension, ...] = (Dimension.WRITE,)

    def __init__(self, target_percent: int = 70) -> None:
        self._target_percent = target_percent

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Target tracking that needs one minute above the target in place of two."""
        tracking = TargetTracking(target_percent=self._target_percent, high_periods=1)
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=tracking, actions=(), is_scaled=True)
        )

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Up to the highest minute of the last five that was asked for, over the target utilization."""
        for resource in seen.resources:
            for target in resource.targets:
                if target.dimension in self._dimensions and not resource.is_busy(seen.now):
                    wanted = self._wanted(seen, target, resource.last_decrease)
                    if wanted != target.units:
                        calls.update_table(resource.index, {target.dimension: wanted})

    def _wanted(self, seen: Seen, target: SeenTarget, last_decrease: int | None) -> int:  # noqa: ARG002
        return max(target.units, self._asked(target))

    def _asked(self, target: SeenTarget) -> int:
        return target.clamp(max(target.requested(5), default=0) * 100 / self._target_percent)


class ImprovedDynamodbAutoScaling(BetterDynamodbScaling):
    """The port: reads and writes, and a decrease of its own at most once an hour."""

    name = "improved-dynamodb-auto-scaling"
    source = "nieuwo/improved-dynamodb-auto-scaling 2018-10; its cap of 1,000 units is the ceiling here"
    _dimensions = (Dimension.READ, Dimension.WRITE)

    def _wanted(self, seen: Seen, target: SeenTarget, last_decrease: int | None) -> int:
        asked = self._asked(target)
        may_lower = last_decrease is None or seen.now - last_decrease > _HOUR
        return asked if asked > target.units or (may_lower and target.requested(5)) else target.units
