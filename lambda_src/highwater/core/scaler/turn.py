"""One turn of the scaler: what is known of a table goes in, what is to be done comes out.

The function, `highwater explain` and the simulator share it; each only supplies what AWS, or its model, says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from highwater.core.boosts import boosts_at
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.pulses import Hint
from highwater.core.scaler.attention import alarm_threshold, fixed_targets, is_daily_tick, is_full_tick
from highwater.core.scaler.decision import Decision, LimitCode, in_one_call, one_lowered, wanted_units
from highwater.core.scaler.fleet import FleetDemand, fleet_demand, help_seconds
from highwater.core.scaler.inputs import Clock, SeenResource, SeenTable, SeenTarget, TargetState
from highwater.core.scaler.on_demand import on_demand_percent
from highwater.core.scaler.plan import ScaledPlan
from highwater.core.scaler.settings import Mode
from highwater.core.scaler.stages import decide
from highwater.core.schedule.bounds import Bounds, bounds_at
from highwater.core.units import Dimension, Units


class SkipReason(StrEnum):
    """Why a turn leaves a target alone although it is due."""

    NO_INDEX = "the table has no such index"
    NOT_REGISTERED = "no scalable target is registered"
    LEFT_TO_AUTO_SCALING = "left to Application Auto Scaling, which has a scalable target"
    PAUSED = "scaling is suspended"
    ON_DEMAND = "the table is on demand: it has no capacity to scale"
    BEING_CHANGED = "the last change is still under way"
    RAISED_MEANWHILE = "capacity was raised while the scaler looked"


@dataclass(frozen=True, slots=True)
class Skip:
    """A target that is left alone, and why."""

    target: Target
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class TargetReview:
    """What is to be done about one target.

    Attributes:
        decision: The value that it should have: its floor, or in DIRECT mode its capacity.
        bounds: Floor and ceiling that its scalable target should have, in FLOOR mode.
        alarm_threshold: Units consumed in a minute above which its alarm should go off.
        hint: What the fleet is told, where it tells what it asks for; else `None`.
        is_below_floor: Whether its capacity is below the floor that it has and should have, and nothing is changing it.
            Application Auto Scaling does not correct this until the target is registered again.
    """

    decision: Decision
    bounds: Bounds
    alarm_threshold: int
    hint: Hint | None = None
    is_below_floor: bool = False

    @property
    def lowered(self) -> Bounds | None:
        """The bounds to set before *bounds*, to lower the capacity; `None` where it is not lowered.

        Application Auto Scaling moves capacity above a ceiling down to it when the bounds are set (API Reference,
        RegisterScalableTarget, read 2026-11).
        """
        lowered_to = self.decision.lowered_to
        return None if lowered_to is None else Bounds(self.bounds.min, lowered_to)


@dataclass(frozen=True, slots=True)
class TableReview:
    """What is to be done about one table.

    Attributes:
        scaled: The table.
        clock: When the turn was.
        targets: The targets that were decided for, in the order of the plan.
        skips: The targets that were due and are left alone.
        unmanaged: At the table's full ticks: its provisioned indexes that the plan leaves out, so that nothing scales
            them. A tagged table's plan follows its indexes.
        on_demand_percent: Once a day: what the last day would have cost on demand, in percent of the least that
            provisioned capacity could; `None` in other turns and where it is not known.
        fixed_below_floor: The targets of fixed capacity that are to be registered again.
    """

    scaled: ScaledPlan
    clock: Clock
    targets: tuple[TargetReview, ...]
    skips: tuple[Skip, ...]
    unmanaged: tuple[str, ...] = ()
    on_demand_percent: int | None = None
    fixed_below_floor: tuple[Target, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions alone."""
        return tuple(reviewed.decision for reviewed in self.targets)

    def capacity_changes(self) -> Iterator[tuple[str | None, Mapping[Dimension, int]]]:
        """In DIRECT mode, the table and indexes that UpdateTable is to be called for: index, units by dimension."""
        for index in dict.fromkeys(decision.index for decision in self.decisions):
            wanted = wanted_units([decision for decision in self.decisions if decision.index == index])
            if wanted and self.scaled.mode is Mode.DIRECT:
                yield index, wanted


def review(scaled: ScaledPlan, seen: SeenTable, clock: Clock) -> TableReview:
    """Decide for every target in *seen*; pure.

    Args:
        scaled: The table's plan and what is moved.
        seen: What AWS knows of the table and of the targets that are due.
        clock: The times of the turn.
    """
    reviewed: list[TargetReview] = []
    skips: list[Skip] = []
    for index, *targets in scaled.plan.resources():
        looked = {target: seen.targets[target.key] for target in targets if target.key in seen.targets}
        resource = seen.resources.get(index)
        if resource is None:
            skips += (Skip(target, SkipReason.NO_INDEX) for target in looked)
            continue
        reasons = {target: _reason_to_skip(scaled.mode, resource, looked[target]) for target in looked}
        skips += (Skip(target, reason) for target, reason in reasons.items() if reason)
        kept = [target for target, reason in reasons.items() if not reason]
        bounds = [bounds_at(target, clock.now) for target in kept]
        fleets = [_fleet(target, resource, looked[target]) for target in kept]
        decided = [
            _decide(
                scaled,
                target,
                planned,
                resource,
                seen.targets[target.key],
                seen,
                clock,
                fleet,
            )
            for target, planned, fleet in zip(kept, bounds, fleets, strict=True)
        ]
        if scaled.mode is Mode.DIRECT:
            decided = [_with_part_of_boosts(each, seen) for each in in_one_call(decided)]
            if _was_raised_meanwhile(resource, decided, clock):
                skips += (Skip(target, SkipReason.RAISED_MEANWHILE) for target in kept)
                continue
        decided = _lowered(resource, decided)
        reviewed += (
            TargetReview(
                decision,
                # the ceiling rises for boosts where the plan allows it, and falls with them
                Bounds(decision.granted, max(planned.max, decision.granted) if decision.boosted else planned.max),
                _threshold(resource, decision, seen.targets[decision.key], fleet),
                _hint(scaled.mode, resource, seen.targets[decision.key], decision, fleet),
                is_below_floor=scaled.mode.moves_floors and _is_below_floor(resource, decision),
            )
            for planned, decision, fleet in zip(bounds, decided, fleets, strict=True)
        )
    unmanaged, percent = _unmanaged(scaled, seen, clock), _on_demand_percent(scaled, seen, clock)
    fixed = fixed_below_floor(scaled, seen.resources, seen.fixed_floors)
    return TableReview(scaled, clock, tuple(reviewed), tuple(skips), unmanaged, percent, fixed)


def fixed_below_floor(
    scaled: ScaledPlan, resources: Mapping[str | None, SeenResource], floors: Mapping[TargetKey, int]
) -> tuple[Target, ...]:
    """Return the targets of fixed capacity that the scaler registers again, as their capacity is below their floor.

    Application Auto Scaling does not correct it by itself. While anything is changing the table, or one of its indexes
    is being built, DynamoDB refuses other changes, so there are none.

    Args:
        scaled: The table's plan.
        resources: The table and its indexes.
        floors: The registered floors of these targets.
    """
    if not all(resource.is_active for resource in resources.values()):
        return ()
    return tuple(
        target
        for target in fixed_targets(scaled)
        if target.key in floors
        and (resource := resources.get(target.index)) is not None
        and resource.provisioned != Units(0, 0)
        and resource.provisioned.of(target.dimension) < floors[target.key]
    )


def _with_part_of_boosts(decision: Decision, seen: SeenTable) -> Decision:
    """Return a decision that is not lowered yet with what boosts have of the capacity that is kept."""
    if not decision.limited_by(LimitCode.RAISE_FIRST):
        return decision
    part = min(decision.current, seen.boosted.get(decision.key, 0))
    return replace(decision, boosted=max(decision.boosted, part))


def _reason_to_skip(mode: Mode, resource: SeenResource, target: SeenTarget) -> SkipReason | None:
    """Return the first reason of *mode* that holds; `None` for a target that is decided for."""
    found = (reason for reason, holds in _REASONS[mode] if holds(resource, target))
    return next(found, None)


_REASONS_OF_FLOORS: Final = (
    (SkipReason.NOT_REGISTERED, lambda _, target: target.registered is None),
    (SkipReason.PAUSED, lambda _, target: target.is_suspended),
    (SkipReason.ON_DEMAND, lambda resource, _: resource.provisioned == Units(0, 0)),
)
_REASONS: Final[Mapping[Mode, Sequence[tuple[SkipReason, Callable[[SeenResource, SeenTarget], bool]]]]] = {
    Mode.FLOOR: _REASONS_OF_FLOORS,
    Mode.BOOSTS: _REASONS_OF_FLOORS,
    Mode.DIRECT: (
        (SkipReason.LEFT_TO_AUTO_SCALING, lambda _, target: target.registered is not None),
        (SkipReason.ON_DEMAND, lambda resource, _: resource.provisioned == Units(0, 0)),
        (SkipReason.BEING_CHANGED, lambda resource, _: not resource.is_active),
    ),
}


def _decide(
    scaled: ScaledPlan,
    target: Target,
    planned: Bounds,
    resource: SeenResource,
    looked: SeenTarget,
    seen: SeenTable,
    clock: Clock,
    fleet: FleetDemand,
) -> Decision:
    boosts = boosts_at(seen.leases, target.key, clock.now)
    provisioned = resource.provisioned.of(target.dimension)
    state = TargetState(
        index=target.index,
        dimension=target.dimension,
        current=provisioned if looked.registered is None else looked.registered.min,
        provisioned=provisioned,
        mark_units=_mark(resource, target.dimension),
        last_increase=resource.last_increase,
        baseline=min(planned.min, planned.max),
        ceiling=planned.max,
        ceiling_with_boosts=target.capacity.max_with_boosts or 0,
        boosts=boosts.added,
        boosted_total=boosts.total,
        boosted=seen.boosted.get(target.key, 0),
        quota_units=scaled.plan.table_quota_units,
        tracked_percent=target.capacity.target_utilization_percent or 100,
        budget=resource.budget,
        lacks_leases=seen.lacks_leases,
        patience=clock.patience,
    )
    return decide(scaled.settings, state, looked.observation, now=clock.now, fleet=fleet)


def _fleet(target: Target, resource: SeenResource, looked: SeenTarget) -> FleetDemand:
    capacity = resource.provisioned.of(target.dimension)
    return fleet_demand(looked.observation, capacity_units=capacity, last_increase=resource.last_increase)


def _was_raised_meanwhile(resource: SeenResource, decisions: Sequence[Decision], clock: Clock) -> bool:
    """Whether another run raised the capacity after this one looked, and this one would lower it."""
    is_newer = resource.last_increase is not None and resource.last_increase > clock.now
    return is_newer and any(decision.granted < decision.current for decision in decisions)


def _is_below_floor(resource: SeenResource, decision: Decision) -> bool:
    floor = min(decision.current, decision.granted)
    return resource.is_active and resource.provisioned.of(decision.dimension) < floor


def _lowered(resource: SeenResource, decisions: Sequence[Decision]) -> list[Decision]:
    if not resource.is_active:
        return [replace(decision, lowered_to=None) for decision in decisions]
    return list(one_lowered(decisions, {dimension: resource.provisioned.of(dimension) for dimension in Dimension}))


def _threshold(resource: SeenResource, decision: Decision, looked: SeenTarget, fleet: FleetDemand) -> int:
    # auto scaling may keep capacity above the floor; an alarm on the floor alone would then go off all the time
    capacity = max(decision.granted, resource.provisioned.of(decision.dimension))
    is_covered = fleet.coverage_percent > 0 and not any(looked.observation.throttled_units)
    return alarm_threshold(capacity, is_covered=is_covered)


def _mark(resource: SeenResource, dimension: Dimension) -> int | None:
    """The high-water mark; a table has at least one partition, whatever it was ever provisioned with."""
    if resource.mark is None:
        return None
    partition = PARTITION_READ_UNITS if dimension is Dimension.READ else PARTITION_WRITE_UNITS
    return max(resource.mark.of(dimension), partition)


def _hint(
    mode: Mode, resource: SeenResource, looked: SeenTarget, decision: Decision, fleet: FleetDemand
) -> Hint | None:
    """The hint for the fleet: the bucket as it is, and the capacity that was granted, which is there or on its way.

    Capacity that is being lowered does not count: a fleet that relied on it would ask for help minutes late.
    """
    pulses = looked.observation.pulses
    if not mode.follows_demand or pulses is None or pulses.is_empty:
        return None
    return Hint(
        pulses.newest,
        decision.granted,
        fleet.level_units,
        fleet.coverage_percent or 100,
        help_seconds(mode, fleet.rate, _mark(resource, decision.dimension)),
        fleet.burst_seconds,
        is_most=any(limit.code.is_most for limit in decision.limits),
    )


def _unmanaged(scaled: ScaledPlan, seen: SeenTable, clock: Clock) -> tuple[str, ...]:
    if scaled.is_tagged or not is_full_tick(scaled.table, clock.turn_minute):
        return ()
    planned = {index for index, *_ in scaled.plan.resources()}
    left = ((index, each) for index, each in seen.resources.items() if index is not None and index not in planned)
    return tuple(sorted(index for index, each in left if each.provisioned != Units(0, 0)))


def _on_demand_percent(scaled: ScaledPlan, seen: SeenTable, clock: Clock) -> int | None:
    if not is_daily_tick(scaled.table, clock.turn_minute):
        return None
    targets = scaled.plan.targets()
    if any(target.key not in seen.targets for target in targets):
        # a dimension that is not scaled, so that the table's cost is not known whole
        return None
    return on_demand_percent((t.dimension, seen.targets[t.key].observation.known_units) for t in targets)
