"""Scalable targets, policies and scheduled actions of a template, by the table and index that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.plan.zones import find_zone
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.template.document import Template
from highwater_lab.template.intrinsics import Resolver

_RESOURCE: Final = re.compile(r"table/(.+?)(?:/index/(.+))?")
_DIMENSIONS: Final = {"ReadCapacityUnits": Dimension.READ, "WriteCapacityUnits": Dimension.WRITE}
# What rates count from; any instant before all traffic would do
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
Key = tuple[str, str | None, Dimension]


@dataclass(slots=True)
class Scaling:
    """What a template declares for one target."""

    min: int
    max: int
    actions: tuple[ScheduledChange, ...]
    tracking: TargetTracking | None = None
    notes: list[str] = field(default_factory=list)


def read_scaling(template: Template, resolver: Resolver) -> dict[Key, Scaling]:
    """Every DynamoDB target of the template, by table name, index and dimension."""
    found: dict[Key, Scaling] = {}
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
            raise resolver.error(f"{where} has MinCapacity {low:,} above MaxCapacity {high:,}")
        planned = resolver.mappings(properties.get("ScheduledActions"), f"{where} ScheduledActions")
        actions = tuple(_action(resolver, where, action) for action in planned)
        by_logical_id[logical_id] = key
        found[key] = Scaling(low, high, actions)
    for logical_id, properties in resources_of(template, resolver, "AWS::ApplicationAutoScaling::ScalingPolicy"):
        key = _policy_key(resolver, properties, by_logical_id)
        if key is None or key not in found:
            continue
        tracking = resolver.mapping(
            properties.get("TargetTrackingScalingPolicyConfiguration"), f"{logical_id} (ScalingPolicy) configuration"
        )
        if not tracking or "CustomizedMetricSpecification" in tracking:
            found[key].notes.append(f"{logical_id}: only target tracking on DynamoDB's own metrics is rehearsed")
            continue
        found[key].tracking = read_tracking(resolver, tracking, f"{logical_id} (ScalingPolicy)", found[key].notes)
    return found


def read_tracking(resolver: Resolver, configuration: dict[str, Any], where: str, notes: list[str]) -> TargetTracking:
    """A target tracking configuration, as ScalingPolicy and GlobalTable both write it."""
    value = resolver.number(configuration.get("TargetValue"), f"{where} TargetValue")
    percent = round(value)
    if percent != value:
        notes.append(f"{where}: TargetValue {value:g} is rehearsed as {percent}")
    if not 20 <= percent <= 90:
        raise resolver.error(f"{where}: TargetValue is {value:g}; DynamoDB takes 20 to 90")
    disable = resolver.resolve(configuration.get("DisableScaleIn"))
    return TargetTracking(
        target_percent=percent,
        scale_in_cooldown=resolver.units(configuration.get("ScaleInCooldown"), f"{where} ScaleInCooldown") or 0,
        scale_out_cooldown=resolver.units(configuration.get("ScaleOutCooldown"), f"{where} ScaleOutCooldown") or 0,
        disable_scale_in=str(disable).lower() == "true",
    )


def resources_of(template: Template, resolver: Resolver, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Logical id and properties, not resolved yet, of each resource of a type whose condition holds."""
    for logical_id, resource in template.section("Resources").items():
        if isinstance(resource, dict) and resource.get("Type") == kind:
            condition = resource.get("Condition")
            if condition is None or resolver.holds(str(condition)):
                properties = resource.get("Properties")
                yield logical_id, properties if isinstance(properties, dict) else {}


def _policy_key(resolver: Resolver, properties: dict[str, Any], by_logical_id: dict[str, Key]) -> Key | None:
    if properties.get("ScalingTargetId") is not None:
        named = str(resolver.resolve(properties["ScalingTargetId"]))
        if match := re.fullmatch(r"\$\{([^}.]+)(?:\.Id)?\}", named):
            return by_logical_id.get(match[1])
        resource, _, rest = named.partition("|")
        return _key(resolver, resource, rest.partition("|")[0])
    return _key(resolver, properties.get("ResourceId"), properties.get("ScalableDimension"))


def _key(resolver: Resolver, resource_id: Any, dimension: Any) -> Key | None:
    """Table, index and dimension; `None` for targets of other services."""
    match = _RESOURCE.fullmatch(str(resolver.resolve(resource_id)))
    parts = str(resolver.resolve(dimension)).split(":")
    if match is None or len(parts) != 3 or parts[0] != "dynamodb" or parts[2] not in _DIMENSIONS:
        return None
    return match[1], match[2], _DIMENSIONS[parts[2]]


def _action(resolver: Resolver, where: str, resolved: dict[str, Any]) -> ScheduledChange:
    name = str(resolved.get("ScheduledActionName"))
    told = f"{where} scheduled action {name!r}"
    zone_name = str(resolved.get("Timezone") or "UTC")
    zone = find_zone(zone_name)
    if zone is None:
        raise resolver.error(f"{told} has unknown Timezone {zone_name!r}; use a name as Europe/Berlin")
    schedule = str(resolved.get("Schedule"))
    try:
        expression = parse_expression(schedule, zone, _ORIGIN)
    except ValueError:
        raise resolver.error(f"{told} has Schedule {schedule!r}; expected at(...), rate(...) or cron(...)") from None
    bounds = resolver.mapping(resolved.get("ScalableTargetAction"), f"{told} ScalableTargetAction")
    return ScheduledChange(
        name=name,
        expression=expression,
        min=resolver.units(bounds.get("MinCapacity"), f"{told} MinCapacity"),
        max=resolver.units(bounds.get("MaxCapacity"), f"{told} MaxCapacity"),
        start=_instant(resolver, told, "StartTime", resolved.get("StartTime")),
        end=_instant(resolver, told, "EndTime", resolved.get("EndTime")),
    )


def _instant(resolver: Resolver, where: str, member: str, text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        raise resolver.error(f"{where} has {member} {text!r}; write it as 2026-11-02T05:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
