"""Scaling policies that others have published, from their source code or articles; the scoreboard compares them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies import catalogue
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.policy import Calls, Policy, PolicyResource, PolicyTarget, Seen
from highwater_lab.traffic import Traffic

_DAY, _HOUR = 86_400, 3_600


class Poller(Policy):
    """A scaler of its own: nothing but it moves the capacity, between floor and ceiling."""

    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:  # noqa: ARG002
        """Take away target tracking and windows."""
        return replace(setup, is_on_demand=False).each_target(
            lambda target: replace(target, tracking=None, actions=(), is_scaled=True)
        )


def _clamp(target: PolicyTarget, units: float) -> int:
    """Return whole units within the target's bounds, rounded up."""
    return min(max(math.ceil(units), target.floor, 1), target.ceiling)


def _consumed(target: PolicyTarget, minutes: int) -> list[float]:
    """Return the consumed units per second of each of the last known minutes, oldest first."""
    return [quanta / (60 * QUANTA_PER_UNIT) for quanta in target.consumed_quanta(minutes)]


def _requested(target: PolicyTarget, minutes: int) -> list[float]:
    """Return the units per second that the application asked for, a metric that it publishes itself."""
    return [c + t / 60 for c, t in zip(_consumed(target, minutes), target.throttled(minutes), strict=True)]


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

    def _wanted(self, seen: Seen, target: PolicyTarget, last_decrease: int | None) -> int:  # noqa: ARG002
        return max(target.units, self._units_for_demand(target))

    def _units_for_demand(self, target: PolicyTarget) -> int:
        return _clamp(target, max(_requested(target, 5), default=0) * 100 / self._target_percent)


class ImprovedDynamodbAutoScaling(BetterDynamodbScaling):
    """The Python port: scales reads too, and its Lambda lowers capacity at most once an hour."""

    name = "improved-dynamodb-auto-scaling"
    source = "nieuwo/improved-dynamodb-auto-scaling 2018-10, with the table's ceiling in place of 1,000 units"
    _dimensions = (Dimension.READ, Dimension.WRITE)

    def _wanted(self, seen: Seen, target: PolicyTarget, last_decrease: int | None) -> int:
        wanted = self._units_for_demand(target)
        may_lower = last_decrease is None or seen.now - last_decrease > _HOUR
        return wanted if wanted > target.units or (may_lower and _requested(target, 5)) else target.units


_UPPER_PERCENT, _LOWER_PERCENT = 90, 30
_STEP_PERCENT = 50
_MINUTES_AGO = 10


class DynamicDynamodb(Poller):
    """Every five minutes: up or down by 50 %, by the utilization of five minutes that ended ten minutes ago."""

    name = "dynamic-dynamodb"
    source = "sebdah/dynamic-dynamodb 2.5.1 with its defaults, which leave its throttle thresholds off"
    period_seconds = 300
    metrics_per_target = 2

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Raise above 90 % utilization, lower below 30 % unless the target is idle.

        Each resource is changed in one UpdateTable call; if its decrease is refused, the increase is sent alone.
        """
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            wanted = {t.dimension: self._wanted(seen, t) for t in resource.targets}
            changed = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] != t.units}
            if changed and calls.update_table(resource.index, changed) is Refused.DECREASES:
                raised = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] > t.units}
                if raised:
                    calls.update_table(resource.index, raised)

    def _wanted(self, seen: Seen, target: PolicyTarget) -> int:
        # it asks for five minutes that ended ten minutes ago
        hidden = max(0, target.newest + 1 - (seen.now // 60 - seen.minute_of(0) - _MINUTES_AGO))
        minutes = _consumed(target, 5 + hidden)[: -hidden or None]
        if len(minutes) < 5:
            return target.units
        consumed = sum(minutes) / 5
        percent = 100 * consumed / target.units
        if percent > _UPPER_PERCENT:
            base = max(target.units, math.ceil(consumed))
            return _clamp(target, base + math.ceil(base * _STEP_PERCENT / 100))
        throttled = target.dimension is Dimension.WRITE and any(target.throttled(5 + hidden)[: -hidden or None])
        if 0 < percent < _LOWER_PERCENT and not throttled:
            return _clamp(target, max(target.units - int(target.units * _STEP_PERCENT / 100), consumed))
        return target.units


class JointPoller(Poller, ABC):
    """Changes each resource in one UpdateTable call for both dimensions."""

    def poll(self, seen: Seen, calls: Calls) -> None:
        """Set what each target wants, but for resources that are being changed."""
        for resource in seen.resources:
            if resource.is_busy(seen.now):
                continue
            wanted = {target.dimension: self._wanted(seen.now, resource, target) for target in resource.targets}
            changed = {t.dimension: wanted[t.dimension] for t in resource.targets if wanted[t.dimension] != t.units}
            if changed:
                calls.update_table(resource.index, changed)

    @abstractmethod
    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:
        """Return the units that a target should have; its present ones to leave it."""


_LAST_HALF_HOUR = 23 * _HOUR + 1_800
_DECREASES = 4


class DynamodbLambdaAutoscale(JointPoller):
    """Every minute: up above 75 % utilization or 25 throttles, down to consumption below 30 %.

    At most four decreases a day, spread evenly over the time left, each an hour after the last change and of more than
    five units; in the last half hour of the day (UTC) smaller ones too.
    """

    name = "dynamodb-lambda-autoscale"
    source = "channl/dynamodb-lambda-autoscale, DefaultProvisioner, e67b8bb, with the table's bounds"
    period_seconds = 60
    metrics_per_target = 2

    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:
        minutes = _consumed(target, 5)
        if not minutes:
            return target.units
        # as in the original, throttles are a count per minute and not a rate
        units, consumed, throttled = target.units, max(minutes), target.throttled(1)[0]
        if (consumed > 0.75 * units or throttled > 25 or units < target.floor) and units < target.ceiling:
            return _clamp(target, max(units + 3 + 0.7 * throttled, 1.3 * units + 0.7 * throttled, 1.3 * consumed))
        if (consumed < 0.30 * units or units > target.ceiling) and units > target.floor:
            wanted = min(units, _clamp(target, consumed))
            if self._may_lower(now, resource, units - wanted):
                return wanted
        return units

    def _may_lower(self, now: int, resource: PolicyResource, by: int) -> bool:
        midnight = now // _DAY * _DAY
        decreases = resource.decreases_today(now)
        if decreases >= _DECREASES:
            return False
        last = max(resource.last_decrease or 0, midnight)
        next_slot = last + (midnight + _LAST_HALF_HOUR - last) / (_DECREASES + 1 - decreases)
        has_paused = all(now - (at or 0) >= _HOUR for at in (resource.last_decrease, resource.last_increase))
        return now >= next_slot and has_paused and (by > 5 or now - midnight >= _LAST_HALF_HOUR)


_BUFFER_UNITS = 5


class Sprkem(JointPoller):
    """Every minute: raises to the average of the last two minutes plus five units; at most four decreases a day.

    A decrease needs an hour since the last one and a saving of 35 %, or capacity within ten units of the floor.
    Decreases are also spread over the hours left of the day.
    """

    name = "sprkem"
    source = (
        "sprkem/DynamoDB-AutoScale-Lambda 61f1fa7, without its hour-of-day settings and with the table's bounds in "
        "place of 1 and 50"
    )
    period_seconds = 60
    metrics_per_target = 1

    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:
        minutes = _consumed(target, 2)
        if not minutes:
            return target.units
        consumed = sum(minutes) / len(minutes)
        if consumed > 1 and consumed + _BUFFER_UNITS > target.units:
            return _clamp(target, consumed + _BUFFER_UNITS)
        wanted = min(target.units, _clamp(target, consumed))
        decreases, hours_left = resource.decreases_today(now), 24 - now % _DAY // _HOUR
        has_paused = resource.last_decrease is None or now - resource.last_decrease >= _HOUR
        is_worth_it = wanted <= 0.65 * target.units or target.units <= target.floor + 10
        if decreases < 4 and has_paused and is_worth_it and max(hours_left / 6, 1) <= 4 - decreases:
            return wanted
        return target.units


_NIGHT_END = 6 * _HOUR


class StepCron(JointPoller):
    """From 06:00 to midnight UTC 20 % up if utilization is above 80 %; from midnight to 06:00 back to a base value.

    The article's base value is hard-coded and not published; here it is the capacity at the start.
    """

    name = "step-cron"
    source = "T. Gross, Falling in and out of love with DynamoDB, part II, 2013"
    period_seconds = 900
    metrics_per_target = 1

    def __init__(self) -> None:
        self._base: dict[tuple[str | None, Dimension], int] = {}

    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:
        base = self._base.setdefault((resource.index, target.dimension), target.units)
        minutes = _consumed(target, 5)
        if not minutes:
            return target.units
        consumed = sum(minutes) / len(minutes)
        if now % _DAY < _NIGHT_END:
            return base if target.units > base and consumed < 0.8 * base else target.units
        return _clamp(target, target.units * 1.2) if consumed > 0.8 * target.units else target.units


_TARGET, _BUFFERED_TARGET = 0.8, 0.6
_LOW_INCREASE, _HIGH_INCREASE = 200, 1_000
_THROTTLING_THRESHOLD = 1_000


class ThrottleAwareLambda(JointPoller):
    """Every five minutes: a fixed step up if the target throttles, else capacity for a utilization of 80 %.

    Utilization is the average of five minutes; the policy lowers capacity if it is below 60 %. The article gives no
    values for its steps and thresholds. Here the step is 200 units, and 1,000 units if a minute has 1,000 or more
    throttled units.
    """

    name = "throttle-aware-lambda"
    source = "A. Tuso, Managing DynamoDB autoscaling with Lambda and CloudWatch, Jampp 2019"
    period_seconds = 300
    metrics_per_target = 2

    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:  # noqa: ARG002
        consumed_minutes, throttled_minutes = _consumed(target, 5), target.throttled(5)
        if not consumed_minutes:
            return target.units
        consumed = sum(consumed_minutes) / len(consumed_minutes)
        throttled = sum(throttled_minutes) / len(throttled_minutes)
        lowest = max(5, target.floor)
        can_increase = target.units < target.ceiling
        utilization = consumed / target.units
        if throttled and can_increase:
            step = _HIGH_INCREASE if throttled >= _THROTTLING_THRESHOLD else _LOW_INCREASE
            return _clamp(target, target.units + step)
        if target.units < lowest or not consumed:
            return _clamp(target, lowest)
        if (utilization > _TARGET and can_increase) or (not throttled and utilization < _BUFFERED_TARGET):
            return _clamp(target, max(int(consumed / _TARGET), 1))
        return target.units


_DOWN_EVERY = 6 * 3_600
_PADDING = 10


class Trek10(JointPoller):
    """Every minute: if the busiest of the last five minutes used 80 %, ten units above it; every six hours down."""

    name = "trek10"
    source = "trek10inc/dynamodb-autoscaling e6989cc, with the table's bounds in place of 1 and 100"
    period_seconds = 60
    metrics_per_target = 1

    def _wanted(self, now: int, resource: PolicyResource, target: PolicyTarget) -> int:
        consumed = max(_consumed(target, 5), default=0)
        if consumed >= 0.8 * target.units:
            return _clamp(target, max(target.units, consumed) + _PADDING)
        if now % _DOWN_EVERY < 60 and now - (resource.last_increase or 0) >= 1_800:
            return min(target.units, _clamp(target, max(_consumed(target, 30), default=0) / 0.8 - _PADDING))
        return target.units


# those that others have published, by name
OTHERS: Final[dict[str, Callable[[], Policy]]] = {
    policy.name: policy
    for policy in (
        DynamicDynamodb,
        DynamodbLambdaAutoscale,
        BetterDynamodbScaling,
        ImprovedDynamodbAutoScaling,
        Trek10,
        Sprkem,
        ThrottleAwareLambda,
        StepCron,
    )
}


def find_policy(name: str) -> Policy:
    """Create a policy of others, or one of the lab's catalogue; raises `PolicyError` for a name that neither has."""
    return OTHERS[name]() if name in OTHERS else catalogue.find_policy(name)


def run_policy(name: str, setup: TableSetup, traffic: Traffic) -> Run:
    """Simulate a policy of others, or one of the lab's catalogue; raises `PolicyError` for an unknown name."""
    if name in OTHERS:
        return simulate(setup, traffic, OTHERS[name]())
    return catalogue.run_policy(name, setup, traffic)
