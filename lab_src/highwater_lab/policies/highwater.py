"""Highwater's scaler: the very `decide` that runs in the Lambda, in FLOOR and in DIRECT mode."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from highwater.core import Bounds, DecreaseBudget
from highwater.core.scaler import Decision, Observation, ScalerSettings, TargetState, decide, in_one_call, wanted_units
from highwater.core.scaler.attention import (
    FULL_TICK_MINUTES,
    THROTTLE_MINUTES,
    alarm_threshold,
    is_throttle_tick,
    may_have_throttled,
)
from highwater_lab.physics import Cause
from highwater_lab.policies.planned_bounds import PlannedBounds
from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.simulation.policy import Policy, Poller

if TYPE_CHECKING:
    from highwater_lab.simulation.seen import Calls, Seen, SeenResource, SeenTarget
    from highwater_lab.simulation.setup import TableSetup
    from highwater_lab.traffic.series import Traffic

_TRACKING_PERCENT: Final = 90
_MINUTE = timedelta(minutes=1)


class _Scaler:
    """What both modes share: when a target is looked at, and what is seen of it.

    The Lambda runs every minute, here when a minute's datapoint has come and alarms have been judged. It asks for a
    target's metrics every few minutes, and in between only while the target's alarm is in ALARM.
    """

    def __init__(self, settings: ScalerSettings, planned: PlannedBounds | None) -> None:
        self._settings = settings
        self._planned = planned
        self._thresholds: dict[SeenTarget, int] = {}
        self.metrics_requested = 0

    def keep(self, setup: TableSetup) -> None:
        """Keep the bounds of the setup where there is no plan."""
        self._planned = self._planned or PlannedBounds.of_setup(setup)

    def bounds(self, seen: Seen, resource: SeenResource, target: SeenTarget) -> Bounds | None:
        """What is planned for the target now, `None` where nothing scales it."""
        planned = self._planned and self._planned.at(seen.now, resource.index, target.dimension)
        return planned if planned and planned.min < planned.max else None

    def is_due(self, seen: Seen, resource: SeenResource, target: SeenTarget) -> bool:
        """Whether the target is looked at in this minute."""
        if seen.now // 60 % FULL_TICK_MINUTES == 0 or target not in self._thresholds:
            return True
        if self._planned and self._planned.has_changed(seen.now, resource.index, target.dimension):
            return True
        newest = target.consumed_quanta(1)
        return bool(newest) and -(-newest[0] // 60) > self._thresholds[target]

    def arm(self, target: SeenTarget, units: int) -> None:
        """Set the target's alarm for the capacity that it will have."""
        self._thresholds[target] = alarm_threshold(units)

    def decide(self, seen: Seen, resource: SeenResource, target: SeenTarget, current: int, planned: Bounds) -> Decision:
        """What the core says of the target now."""
        minutes = self._settings.history // _MINUTE
        consumed = tuple(-(-quanta // 60) for quanta in target.consumed_quanta(minutes))
        now = datetime.fromtimestamp(seen.now, UTC)
        throttled = [0] * len(consumed)
        self.metrics_requested += 1
        is_its_turn = is_throttle_tick("", seen.now // 60)
        if is_its_turn or may_have_throttled(consumed, target.units, _instant(resource.last_increase), now):
            # throttles; where there are some, requests and throttles by cause
            self.metrics_requested += 4 if any(target.throttled(THROTTLE_MINUTES)) else 1
            recent = target.throttled_by(Cause.PROVISIONED, min(minutes, THROTTLE_MINUTES))
            throttled[len(consumed) - len(recent) :] = [-(-quanta // 60) for quanta in recent]
        state = TargetState(
            index=resource.index,
            dimension=target.dimension,
            current=current,
            baseline=planned.min,
            ceiling=planned.max,
            budget=DecreaseBudget(resource.decreases_today(seen.now), _instant(resource.last_decrease)),
        )
        observation = Observation(seen.minute_of(target.newest), consumed, throttled)
        return decide(self._settings, state, observation, now=now)


def _instant(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


class HighwaterFloor(Policy):
    """FLOOR mode: target tracking at 90 %, and the scaler moves its floor."""

    name = "highwater-floor"
    source = "Highwater: highwater.core.scaler.decide, defaults of docs/decisions/0013"
    period_seconds = 60
    offset_seconds = 40
    alarms_per_target = 1

    def __init__(self, settings: ScalerSettings | None = None, planned: PlannedBounds | None = None) -> None:
        self._scaler = _Scaler(settings or ScalerSettings.floor(), planned)

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Every target tracked that has room to move, none with a schedule."""
        self._scaler.keep(setup)
        tracking = TargetTracking(target_percent=_TRACKING_PERCENT)
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(
                target, tracking=tracking if target.max > target.min else None, actions=(), is_scaled=True
            )
        )

    def poll(self, seen: Seen, calls: Calls) -> int:
        """Set the bounds of every target that is due; how many metrics that took."""
        before = self._scaler.metrics_requested
        for resource in seen.resources:
            for target in resource.targets:
                planned = self._scaler.bounds(seen, resource, target)
                if planned and self._scaler.is_due(seen, resource, target):
                    decision = self._scaler.decide(seen, resource, target, target.floor, planned)
                    calls.set_bounds(resource.index, target.dimension, Bounds(decision.granted, planned.max))
                    self._scaler.arm(target, max(decision.granted, target.units))
        return self._scaler.metrics_requested - before


class HighwaterDirect(Poller):
    """DIRECT mode: the scaler moves capacity itself, and nothing else does."""

    name = "highwater-direct"
    source = HighwaterFloor.source
    period_seconds = 60
    offset_seconds = 40
    alarms_per_target = 1

    def __init__(self, settings: ScalerSettings | None = None, planned: PlannedBounds | None = None) -> None:
        self._scaler = _Scaler(settings or ScalerSettings.direct(), planned)

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """As any scaler of its own."""
        self._scaler.keep(setup)
        return super().arrange(setup, traffic)

    def poll(self, seen: Seen, calls: Calls) -> int:
        """One call for each resource that has a target due; how many metrics that took."""
        before = self._scaler.metrics_requested
        for resource in seen.resources:
            bounds = {target: self._scaler.bounds(seen, resource, target) for target in resource.targets}
            targets = {target: planned for target, planned in bounds.items() if planned}
            if resource.is_busy(seen.now) or not any(self._scaler.is_due(seen, resource, target) for target in targets):
                continue
            decisions = in_one_call(
                [
                    self._scaler.decide(seen, resource, target, target.units, planned)
                    for target, planned in targets.items()
                ]
            )
            wanted = wanted_units(decisions)
            if wanted:
                calls.update_table(resource.index, wanted)
            for target in targets:
                self._scaler.arm(target, wanted.get(target.dimension, target.units))
        return self._scaler.metrics_requested - before
