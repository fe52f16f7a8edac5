"""Reads a template's scalable targets with their policies and scheduled actions, by table, index and dimension."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater.core.plan.zones import find_zone
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.template.document import Template
from highwater_lab.template.intrinsics import Resolver

# rate(...) schedules count their periods from here; any instant before all traffic would do
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
Key = tuple[str, str | None, Dimension]


@dataclass(slots=True)
class Scaling:
    """The bounds in units, scheduled actions and target tracking of one scalable target."""

    min: int
    max: int
    actions: tuple[ScheduledChange, ...]
    tracking: TargetTracking | None = None
    notes: list[str] = field(default_factory=list)


def read_scaling(template: Template, resolver: Resolver) -> dict[Key, Scaling]:
    """Return every DynamoDB target of the template, by table name, index and dimension.

    Raises `TemplateError` for a target, policy or scheduled action that cannot be read.
    """
    targets: dict[Key, Scaling] = {}
    by_logical_id: dict[str, Key] = {}
    for logical_id, properties in resources_of(template, resolver, "AWS::ApplicationAutoScaling::ScalableTarget"):
        where = f"{logical_id} (ScalableTarget)"
        key = _key(resolver, properties.get("ResourceId"), properties.get("ScalableDimension"))
        if key is None:
            continue
        low = resolver.units(properties.get("MinCapacity"), f"{where} MinCapacity")
        high = resolver.units(properties.get("MaxCapacity"), f"{where} MaxCapacity")
        if low is None or high is None:
            raise resolver.error(f"{where} needs both MinCapacity and MaxCapacity")
        if low > high:
            raise resolver.error(
                f"{where} has MinCapacity {low:,} above MaxCapacity {high:,}; lower the one or raise the other"
            )
        scheduled = resolver.mappings(properties.get("ScheduledActions"), f"{where} ScheduledActions")
        actions = tuple(_read_action(resolver, where, action) for action in scheduled)
        by_logical_id[logical_id] = key
        targets[key] = Scaling(low, high, actions)
    for logical_id, properties in resources_of(template, resolver, "AWS::ApplicationAutoScaling::ScalingPolicy"):
        key = _policy_key(resolver, properties, by_logical_id)
        if key is None or key not in targets:
            continue
        tracking = resolver.mapping(
            properties.get("TargetTrackingScalingPolicyConfiguration"), f"{logical_id} (ScalingPolicy) configuration"
        )
        if not tracking or "CustomizedMetricSpecification" in tracking:
            targets[key].notes.append(
                f"{logical_id}: this policy is left out; only target tracking on DynamoDB's own metrics is rehearsed"
            )
            continue
        targets[key].tracking = read_tracking(resolver, tracking, f"{logical_id} (ScalingPolicy)", targets[key].notes)
    return targets


def read_tracking(resolver: Resolver, configuration: dict[str, Any], where: str, notes: list[str]) -> TargetTracking:
    """Read a target tracking configuration, which ScalingPolicy and GlobalTable write in the same form.

    The target utilization must be from 20 to 90 percent; a fraction is rounded, with a note added to *notes*. Cooldowns
    are in seconds and 0 by default. Raises `TemplateError`, naming *where*, for values out of range.
    """
    value = resolver.number(configuration.get("TargetValue"), f"{where} TargetValue")
    percent = round(value)
    if percent != value:
        notes.append(f"{where}: TargetValue {value:g} is rehearsed as {percent}")
    if not 20 <= percent <= 90:
        raise resolver.error(f"{where}: TargetValue is {value:g}, allowed: 20 to 90 percent")
    disable_scale_in = resolver.resolve(configuration.get("DisableScaleIn"))
    return TargetTracking(
        target_percent=percent,
        scale_in_cooldown=resolver.units(configuration.get("ScaleInCooldown"), f"{where} ScaleInCooldown") or 0,
        scale_out_cooldown=resolver.units(configuration.get("ScaleOutCooldown"), f"{where} ScaleOutCooldown") or 0,
        disable_scale_in=str(disable_scale_in).lower() == "true",
    )


def resources_of(template: Template, resolver: Resolver, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield logical id and unresolved properties of each resource of type *kind* whose condition, if any, is true."""
    for logical_id, resource in template.section("Resources").items():
        if isinstance(resource, dict) and resource.get("Type") == kind:
            condition = resource.get("Condition")
            if condition is None or resolver.holds(str(condition)):
                properties = resource.get("Properties")
                yield logical_id, properties if isinstance(properties, dict) else {}


def _policy_key(resolver: Resolver, properties: dict[str, Any], by_logical_id: dict[str, Key]) -> Key | None:
    if properties.get("ScalingTargetId") is not None:
        target_id = str(resolver.resolve(properties["ScalingTargetId"]))
        if match := re.fullmatch(r"\$\{([^}.]+)(?:\.Id)?\}", target_id):
            return by_logical_id.get(match[1])
        resource_id, _, rest = target_id.partition("|")
        return _key(resolver, resource_id, rest.partition("|")[0])
    return _key(resolver, properties.get("ResourceId"), properties.get("ScalableDimension"))


def _key(resolver: Resolver, resource_id: Any, dimension: Any) -> Key | None:
    """Return table, index and dimension of a target; `None` if the target belongs to another service."""
    name = TargetName.find(str(resolver.resolve(resource_id)), str(resolver.resolve(dimension)))
    return None if name is None else (name.table, name.index, name.dimension)


def _read_action(resolver: Resolver, target: str, action: dict[str, Any]) -> ScheduledChange:
    name = str(action.get("ScheduledActionName"))
    where = f"{target} scheduled action {name!r}"
    zone_name = str(action.get("Timezone") or "UTC")
    zone = find_zone(zone_name)
    if zone is None:
        raise resolver.error(f"{where} has unknown Timezone {zone_name!r}; use an IANA name such as Europe/Berlin")
    schedule = str(action.get("Schedule"))
    try:
        expression = parse_expression(schedule, zone, _ORIGIN)
    except ValueError:
        raise resolver.error(f"{where} has Schedule {schedule!r}; expected at(...), rate(...) or cron(...)") from None
    bounds = resolver.mapping(action.get("ScalableTargetAction"), f"{where} ScalableTargetAction")
    return ScheduledChange(
        name=name,
        expression=expression,
        min=resolver.units(bounds.get("MinCapacity"), f"{where} MinCapacity"),
        max=resolver.units(bounds.get("MaxCapacity"), f"{where} MaxCapacity"),
        start=_parse_instant(resolver, where, "StartTime", action.get("StartTime")),
        end=_parse_instant(resolver, where, "EndTime", action.get("EndTime")),
    )


def _parse_instant(resolver: Resolver, where: str, member: str, text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        raise resolver.error(f"{where} has {member} {text!r}; write it as 2026-11-02T05:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
