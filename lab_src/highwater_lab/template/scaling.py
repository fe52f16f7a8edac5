"""Reads scalable targets with their policies and scheduled actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from highwater.core import Dimension, Plan
from highwater.core.plan.zones import find_zone
from highwater.core.schedule.bounds import bounds_with
from highwater.core.tracking import TargetTracking
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import ScalableTargetSetup
from highwater_lab.template.intrinsics import Resolver

# rate(...) schedules count their periods from here; any instant before all traffic would do
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
Key = tuple[str, str | None, Dimension]


@dataclass(slots=True, kw_only=True)
class TemplateScaling(ScalableTargetSetup):
    """A scalable target of a template, with what was taken for granted about it."""

    notes: list[str] = field(default_factory=list)


def read_target(resolver: Resolver, logical_id: str, properties: dict[str, Any]) -> TemplateScaling:
    """Return the bounds and scheduled actions of a `ScalableTarget`; raises `TemplateError` if it cannot be read."""
    where = f"{logical_id}{resolver.word(' (ScalableTarget)')}"
    low = resolver.units(properties.get("MinCapacity"), f"{where} {resolver.word('MinCapacity')}")
    high = resolver.units(properties.get("MaxCapacity"), f"{where} {resolver.word('MaxCapacity')}")
    if low is None or high is None:
        raise resolver.error(f"{where} needs both {resolver.word('MinCapacity')} and {resolver.word('MaxCapacity')}")
    if low > high:
        raise resolver.error(
            f"{where} has {resolver.word('MinCapacity')} {low:,} above {resolver.word('MaxCapacity')} {high:,}; "
            "lower the one or raise the other"
        )
    notes = []
    suspended = resolver.mapping(properties.get("SuspendedState"), f"{where} {resolver.word('SuspendedState')}")
    if any(str(value).lower() == "true" for value in suspended.values()):
        notes.append(
            f"{logical_id}: its scaling is suspended {resolver.word('in the template')}; it is rehearsed as if it "
            "were not"
        )
    scheduled = resolver.mappings(properties.get("ScheduledActions"), f"{where} ScheduledActions")
    actions = tuple(_read_action(resolver, where, action) for action in scheduled)
    return TemplateScaling(min=low, max=high, actions=actions, notes=notes)


def take_base(targets: dict[Key, TemplateScaling], table: str, plan: str) -> None:
    """Give targets with windows the base floor and ceiling of *plan*, a Highwater plan as JSON.

    A template has the highest ceiling of all windows, so that no deploy limits an open window, and Highwater sets the
    present ceiling right after the deploy. If the plan cannot be read, the targets remain as in the template.
    """
    try:
        planned = Plan.from_json(plan).targets()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return
    for target in planned:
        scaling = targets.get((table, *target.key))
        if scaling is not None and target.windows and not target.capacity.is_deploy_time:
            base = bounds_with(target, ())
            scaling.min, scaling.max = base.min, base.max


def read_policy(
    resolver: Resolver, logical_id: str, properties: dict[str, Any], dimension: Dimension, notes: list[str]
) -> TargetTracking | None:
    """Return the target tracking of a `ScalingPolicy`, or `None` if it is not rehearsed; *notes* gets what is assumed.

    Raises `TemplateError` if it cannot be read.
    """
    if why_not_tracked(resolver, logical_id, properties, dimension):
        return None
    where = f"{logical_id}{resolver.word(' (ScalingPolicy)')}"
    tracking = resolver.mapping(
        properties.get("TargetTrackingScalingPolicyConfiguration"),
        f"{logical_id}{resolver.word(' (ScalingPolicy) configuration')}",
    )
    return read_tracking(resolver, tracking, where, notes)


def why_not_tracked(resolver: Resolver, logical_id: str, properties: dict[str, Any], dimension: Dimension) -> str:
    """Return why a `ScalingPolicy` is not rehearsed, in words behind its name; empty if it is.

    Raises `TemplateError` if it cannot be read.
    """
    where = f"{logical_id}{resolver.word(' (ScalingPolicy)')}"
    tracking = resolver.mapping(
        properties.get("TargetTrackingScalingPolicyConfiguration"),
        f"{logical_id}{resolver.word(' (ScalingPolicy) configuration')}",
    )
    if not tracking:
        return "scales by steps, which is not rehearsed: only target tracking is"
    if "CustomizedMetricSpecification" in tracking:
        return "scales by a metric of its own, which is not rehearsed: only DynamoDB's own metrics are"
    metric = resolver.mapping(
        tracking.get("PredefinedMetricSpecification"), f"{where} {resolver.word('PredefinedMetricSpecification')}"
    )
    type_label = f"{where} {resolver.word('PredefinedMetricType')}"
    kind, wanted = (
        resolver.closed(metric.get("PredefinedMetricType"), type_label),
        f"DynamoDB{dimension.title()}CapacityUtilization",
    )
    if kind is None or kind == wanted:
        return ""
    return (
        f"tracks {kind} for {dimension}s, so {dimension} traffic does not move their capacity: it is not rehearsed; "
        f"set {resolver.word('PredefinedMetricType')} to {wanted}"
    )


def read_tracking(resolver: Resolver, configuration: dict[str, Any], where: str, notes: list[str]) -> TargetTracking:
    """Read a target tracking configuration, which has the same form in ScalingPolicy and GlobalTable.

    The target utilization must be from 20 to 90 percent; a fraction is rounded down, with a note added to *notes*.
    Cooldowns are in seconds and 0 by default. Raises `TemplateError`, naming *where*, for values out of range.
    """
    value = resolver.number(configuration.get("TargetValue"), f"{where} {resolver.word('TargetValue')}")
    # rounded down: a whole percentage above the declared one would keep less capacity
    percent = int(value)
    if percent != value:
        notes.append(f"{where}: {resolver.word('TargetValue')} {value:g} is rehearsed as {percent}")
    if not 20 <= value <= 90:
        raise resolver.error(f"{where}: {resolver.word('TargetValue')} is {value:g}, allowed: 20 to 90 percent")
    disable_scale_in = resolver.closed(
        configuration.get("DisableScaleIn"), f"{where} {resolver.word('DisableScaleIn')}"
    )
    return TargetTracking(
        target_percent=percent,
        scale_in_cooldown=resolver.units(
            configuration.get("ScaleInCooldown"), f"{where} {resolver.word('ScaleInCooldown')}"
        )
        or 0,
        scale_out_cooldown=resolver.units(
            configuration.get("ScaleOutCooldown"), f"{where} {resolver.word('ScaleOutCooldown')}"
        )
        or 0,
        disable_scale_in=str(disable_scale_in).lower() == "true",
    )


def _read_action(resolver: Resolver, target: str, action: dict[str, Any]) -> ScheduledChange:
    name = str(action.get("ScheduledActionName"))
    where = f"{target} scheduled action {name!r}"

    def text(member: str) -> Any:
        return resolver.closed(action.get(member), f"{where} {resolver.word(member)}")

    zone_name = str(text("Timezone") or "UTC")
    zone = find_zone(zone_name)
    if zone is None:
        raise resolver.error(
            f"{where} has unknown {resolver.word('Timezone')} {zone_name!r}; use an IANA name such as Europe/Berlin"
        )
    schedule = str(text("Schedule"))
    try:
        expression = parse_expression(schedule, zone, _ORIGIN)
    except ValueError:
        raise resolver.error(
            f"{where} has {resolver.word('Schedule')} {schedule!r}; expected at(...), rate(...) or cron(...)"
        ) from None
    bounds = resolver.mapping(action.get("ScalableTargetAction"), f"{where} {resolver.word('ScalableTargetAction')}")
    return ScheduledChange(
        name=name,
        expression=expression,
        min=resolver.units(bounds.get("MinCapacity"), f"{where} {resolver.word('MinCapacity')}"),
        max=resolver.units(bounds.get("MaxCapacity"), f"{where} {resolver.word('MaxCapacity')}"),
        start=_parse_instant(resolver, where, "StartTime", text("StartTime")),
        end=_parse_instant(resolver, where, "EndTime", text("EndTime")),
    )


def _parse_instant(resolver: Resolver, where: str, member: str, text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        raise resolver.error(
            f"{where} has {resolver.word(member)} {text!r}; write it as 2026-11-02T05:00:00Z"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
