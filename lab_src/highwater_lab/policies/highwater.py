"""Highwater's scaler in FLOOR and DIRECT mode, with the same decision code as the Lambda."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from highwater.core import Capacity, DecreaseBudget, HighWaterMark, Target, Units
from highwater.core.boosts import Lease
from highwater.core.plan.plan import TargetKey
from highwater.core.plan.zones import MINUTES_PER_DAY
from highwater.core.pulses import SLOTS_PER_MINUTE, Hint
from highwater.core.scaler import (
    Clock,
    Mode,
    Observation,
    ScaledPlan,
    SeenResource,
    SeenTable,
    SeenTarget,
    TableReview,
    due_targets,
    minutes_to_observe,
    needs_throttles,
    review,
)
from highwater.core.scaler.attention import THROTTLE_MINUTES, follows_closely, needs_past, scaled_targets
from highwater.core.scaler.fleet import COVERAGE_MINUTES
from highwater.core.throttles import ThrottleCause
from highwater.core.tracking import TargetTracking
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.plans import declared_plan
from highwater_lab.simulation.policy import Policy

if TYPE_CHECKING:
    from highwater_lab.simulation.policy import Calls, PolicyResource, PolicyTarget, Seen
    from highwater_lab.simulation.setup import TableSetup, TargetSetup
    from highwater_lab.traffic.series import Traffic

_SLOTS: Final = (COVERAGE_MINUTES + 5) * SLOTS_PER_MINUTE
# Metrics read for the throttles of a target: one, and three more if there are throttles (highwater.aws.cloudwatch).
_THROTTLE_METRICS, _METRICS_OF_CAUSES = 1, 3
# Throttles and provisioned capacity of the last day, and its consumption if less of that was read
_PAST_METRICS: Final = 2


class HighwaterScaler(Policy, ABC):
    """The parts common to both modes: which targets are due, their observations, and the core's review of them.

    As the Lambda does, the policy runs every minute, and when an alarm of a target goes to ALARM. In between, an alarm
    has the state of when it was judged last.

    Args:
        scaled: The table's plan. By default a plan with the bounds of the simulated table's setup.
        pulses: How the fleet sends pulses. By default as the class says.
        tracking_percent: The target utilization of target tracking in FLOOR mode, in percent. By default 90.
    """

    mode: Mode
    tracking_percent = 90
    source = "Highwater: highwater.core.scaler.turn, defaults of docs/decisions/0013"
    period_seconds = 60
    alarms_per_target = 1

    def __init__(
        self,
        scaled: ScaledPlan | None = None,
        pulses: Pulses | None = None,
        tracking_percent: int | None = None,
    ) -> None:
        self._scaled = scaled
        if pulses is not None:
            self.pulses = pulses
            self.name = f"{self.name}:{pulses.coverage_percent}"
        if tracking_percent is not None:
            self.tracking_percent = tracking_percent
            self.name = f"{self.name}:{tracking_percent}"
        self._hints: dict[TargetKey, Hint] = {}
        self._is_woken = False
        # the targets whose alarm is in ALARM, and whether one that has just gone there is why the policy runs
        self._in_alarm: frozenset[PolicyTarget] = frozenset()
        self._is_rung = False
        # threshold of each target's alarm in units consumed in a minute; empty until the first turn
        self._thresholds: dict[PolicyTarget, int] = {}
        self._metrics_requested = 0
        self._leases: tuple[Lease, ...] = ()
        # by target, the units of its floor or capacity that are for boosts
        self._boosted: dict[TargetKey, int] = {}

    def lease(self, leases: tuple[Lease, ...]) -> None:
        """Set the leases of the jobs' boosts."""
        self._leases = leases

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Remove scheduled actions. In FLOOR mode, add target tracking where the ceiling is above the floor."""
        self._scaled = self._scaled or _plan_of(setup, self.mode, self.tracking_percent)
        tracking = TargetTracking(target_percent=self.tracking_percent) if self.mode is Mode.FLOOR else None
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(
                target, tracking=tracking if target.max > target.min else None, actions=(), is_scaled=True
            )
        )

    def poll(self, seen: Seen, calls: Calls) -> int:
        """Run one turn and return how many metrics it requested from CloudWatch."""
        assert self._scaled is not None  # noqa: S101 - `arrange` comes first
        before = self._metrics_requested
        clock = Clock(seen.now // 60, datetime.fromtimestamp(seen.now, UTC))
        due = self._due(self._scaled, seen, clock)
        if due:
            reviewed = review(self._scaled, self._table(self._scaled, due, seen, clock), clock)
            self._apply(reviewed, calls)
            for each in reviewed.targets:
                self._follow(seen.targets[each.decision.key], each.alarm_threshold)
                self._boosted[each.decision.key] = each.decision.boosted
                if each.hint is not None:
                    self._hints[each.decision.key] = each.hint
        self._is_woken = self._is_rung = False
        return self._metrics_requested - before

    def _follow(self, target: PolicyTarget, wanted: int) -> None:
        """Move the threshold of a target's alarm, as the Lambda function does."""
        if not follows_closely(self._thresholds.get(target, 0), wanted, is_in_alarm=target in self._in_alarm):
            self._thresholds[target] = wanted

    def _is_breached(self, target: PolicyTarget) -> bool:
        """Whether the alarm of a target goes to ALARM, or stays there, when it is judged now."""
        # a target without a decision so far has no threshold
        return -(-target.newest_quanta // 60) > self._thresholds.get(target, 0)

    def rings(self, seen: Seen) -> bool:
        """Whether the alarm of any target goes to ALARM now."""
        before = self._in_alarm
        self._in_alarm = frozenset(
            target for resource in seen.resources for target in resource.targets if self._is_breached(target)
        )
        self._is_rung = bool(self._thresholds) and not self._in_alarm <= before
        return self._is_rung

    def needs_help(self, seen: Seen) -> bool:
        """Whether the fleet's pulses since the last turn show that any target needs help."""
        for key, hint in self._hints.items():
            target = seen.targets[key]
            # a hint looks at the slots after it alone
            slots = target.pulses(min(_SLOTS, target.base_slot + target.newest_slot - hint.slot))
            if slots is not None and hint.needs_help(slots):
                self._is_woken = True
                return True
        return False

    def _due(self, scaled: ScaledPlan, seen: Seen, clock: Clock) -> tuple[Target, ...]:
        if not self._thresholds or self._is_woken:
            return scaled_targets(scaled)

        def is_in_alarm(target: Target) -> bool:
            return seen.targets[target.key] in self._in_alarm

        due = due_targets(scaled, clock.now, is_in_alarm, self._leases)
        return tuple(target for target in due if is_in_alarm(target)) if self._is_rung else due

    def _table(self, scaled: ScaledPlan, due: tuple[Target, ...], seen: Seen, clock: Clock) -> SeenTable:
        resources = {resource.index: _resource(resource, seen.now) for resource in seen.resources}
        return SeenTable(
            resources,
            {
                target.key: self._observed(scaled, target, resources[target.index], seen, clock)
                for target in due
                # while the table is being changed, DynamoDB rejects UpdateTable, so metrics would be of no use
                if self.mode is Mode.FLOOR or resources[target.index].is_active
            },
            self._leases,
            self._boosted,
        )

    def _observed(
        self, scaled: ScaledPlan, target: Target, resource: SeenResource, seen: Seen, clock: Clock
    ) -> SeenTarget:
        simulated = seen.targets[target.key]
        minutes = minutes_to_observe(scaled, clock)
        pulses = simulated.pulses(_SLOTS)
        newest, consumed = seen.minute_of(simulated.newest), simulated.minutes(minutes)
        observation = Observation(newest, consumed, pulses=pulses)
        burst, regret, throttled = observation.burst_seconds, observation.regret, observation.throttled_units
        if needs_past(observation, has_pulses=pulses is not None):
            self._metrics_requested += _PAST_METRICS + (minutes < MINUTES_PER_DAY)
            past = simulated.past(target, seen.minute_of(0))
            burst, regret = past.burst_seconds(minutes), past.regret(MINUTES_PER_DAY)
        self._metrics_requested += 1
        if needs_throttles(scaled, target, resource, observation, clock):
            self._metrics_requested += _THROTTLE_METRICS
            if any(simulated.throttled(THROTTLE_MINUTES)):
                self._metrics_requested += _METRICS_OF_CAUSES
            recent = simulated.throttled_by(ThrottleCause.PROVISIONED, min(minutes, THROTTLE_MINUTES))
            throttled = tuple(-(-quanta // QUANTA_PER_UNIT) for quanta in recent)
        observation = Observation(newest, consumed, throttled, pulses=pulses, burst_seconds=burst, regret=regret)
        registered = simulated.bounds if self.mode is Mode.FLOOR else None
        return SeenTarget(registered=registered, observation=observation)

    @abstractmethod
    def _apply(self, reviewed: TableReview, calls: Calls) -> None:
        """Apply the review's changes."""


class HighwaterFloor(HighwaterScaler):
    """FLOOR mode: the scaler sets floors, and target tracking sets the capacity."""

    name = "highwater-floor"
    mode = Mode.FLOOR

    def _apply(self, reviewed: TableReview, calls: Calls) -> None:
        for each in reviewed.targets:
            if each.lowered is not None:
                calls.set_bounds(each.decision.index, each.decision.dimension, each.lowered)
            calls.set_bounds(each.decision.index, each.decision.dimension, each.bounds)


class HighwaterDirect(HighwaterScaler):
    """DIRECT mode: only the scaler sets the capacity."""

    name = "highwater-direct"
    mode = Mode.DIRECT

    def _apply(self, reviewed: TableReview, calls: Calls) -> None:
        for index, wanted in reviewed.capacity_changes():
            calls.update_table(index, wanted)


class HighwaterFloorPulse(HighwaterFloor):
    """FLOOR mode, with a fleet that sends pulses."""

    name = "highwater-floor-pulse"
    pulses = Pulses()


class HighwaterDirectPulse(HighwaterDirect):
    """DIRECT mode, with a fleet that sends pulses."""

    name = "highwater-direct-pulse"
    pulses = Pulses()


def _resource(resource: PolicyResource, now: int) -> SeenResource:
    last_decrease = _instant(resource.last_decrease)
    return SeenResource(
        provisioned=Units(resource.read.units, resource.write.units),
        is_active=not resource.is_busy(now),
        mark=resource.mark,
        last_increase=_instant(resource.last_increase),
        budget=DecreaseBudget(resource.decreases_today(now), last_decrease),
    )


def _instant(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _plan_of(setup: TableSetup, mode: Mode, tracking_percent: int) -> ScaledPlan:
    """Return a plan without windows, with the bounds of the table's setup and the target that the policy tracks."""
    declared = declared_plan(setup, partial(_capacity, tracking_percent=tracking_percent))
    plan = replace(declared, mark=HighWaterMark.none(), table_quota_units=setup.quota_units)
    # with an empty name, full ticks are at minutes divisible by five, so results do not depend on a trace's name
    return ScaledPlan(table="", mode=mode, plan=plan)


def _capacity(target: TargetSetup, tracking_percent: int) -> Capacity:
    return (
        Capacity.autoscaled(
            min_capacity=target.min, max_capacity=target.max, target_utilization_percent=tracking_percent
        )
        if target.min < target.max
        else Capacity.fixed(target.min)
    )
