"""Validation of a plan's capacities, marks and index names, and of windows against ceilings and quotas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from highwater.core.findings import (
    Finding,
    above_quota,
    conflict,
    deploy_time_units,
    error,
    is_whole,
    name_missing,
    shown,
    units_not_positive,
)
from highwater.core.limits import MAX_TARGET_UTILIZATION_PERCENT, MIN_TARGET_UTILIZATION_PERCENT
from highwater.core.names import resource_label
from highwater.core.plan.capacity import Capacity, is_deploy_time
from highwater.core.plan.marks import marks_of
from highwater.core.plan.plan import Plan, Target
from highwater.core.units import Dimension


def _capacities(plan: Plan) -> Iterator[tuple[str, object]]:
    yield "table read", plan.read
    yield "table write", plan.write
    for index in plan.indexes:
        if index.read is not None:
            yield f"{resource_label(index.index_name)} read", index.read
        if index.write is not None:
            yield f"{resource_label(index.index_name)} write", index.write


def _boost_findings(label: str, capacity: Capacity) -> Iterator[Finding]:
    """Find a ceiling for boosts that is no number, or below the ceiling that is there without them."""
    units = capacity.max_with_boosts
    if units is None or not is_whole(capacity.max_capacity):
        return
    if not is_whole(units) or units < capacity.max_capacity:
        yield error(
            "boostCeilingBelowMax",
            f"{label} max_with_boosts",
            f"{units!r}",
            f"{capacity.max_capacity} (max_capacity) or more",
            "raise max_with_boosts, or leave it out: boosts then stay below max_capacity",
        )


def capacity_findings(plan: Plan) -> Iterator[Finding]:
    """Find bounds that are not positive whole numbers, ceilings below floors, and settings out of their range."""
    if not is_whole(plan.table_quota_units) or plan.table_quota_units < 1:
        yield units_not_positive("table_quota_units", plan.table_quota_units)
    for label, capacity in _capacities(plan):
        if not isinstance(capacity, Capacity):
            yield error(
                "capacityMissing",
                label,
                shown(capacity),
                "a Capacity",
                "give Capacity.autoscaled(min_capacity=, max_capacity=) or Capacity.fixed(units=)",
            )
            continue
        yield from _cooldown_findings(label, capacity)
        if not isinstance(capacity.disable_scale_in, bool):
            # a text such as "no" would count as true
            yield error(
                "flagUnclear",
                f"{label} disable_scale_in",
                shown(capacity.disable_scale_in),
                "True or False",
                "write it without quotes",
            )
        bounds = {"units": capacity.min_capacity}
        if capacity.is_autoscaled:
            bounds = {"min_capacity": capacity.min_capacity, "max_capacity": capacity.max_capacity}
        are_comparable = True
        for name, units in bounds.items():
            if is_deploy_time(units):
                are_comparable = False
            elif not is_whole(units) or units < 1:
                are_comparable = False
                yield units_not_positive(f"{label} {name}", units)
        if are_comparable and capacity.max_capacity < capacity.min_capacity:
            yield error(
                "maxBelowMin",
                f"{label} max_capacity",
                f"{capacity.max_capacity}",
                f"{capacity.min_capacity} (min_capacity) or more",
                "raise max_capacity or lower min_capacity",
            )
        yield from _boost_findings(label, capacity)
        target = capacity.target_utilization_percent
        if is_deploy_time(target):
            yield deploy_time_units(f"{label} target_utilization_percent")
        elif capacity.is_autoscaled and not (
            isinstance(target, int)
            and is_whole(target)
            and MIN_TARGET_UTILIZATION_PERCENT <= target <= MAX_TARGET_UTILIZATION_PERCENT
        ):
            yield error(
                "targetOutOfRange",
                f"{label} target_utilization_percent",
                f"{target!r}",
                f"a whole percentage from {MIN_TARGET_UTILIZATION_PERCENT} to {MAX_TARGET_UTILIZATION_PERCENT}",
                "give a percentage, e.g. 70",
            )


def _cooldown_findings(label: str, capacity: Capacity) -> Iterator[Finding]:
    for name in ("scale_in_cooldown", "scale_out_cooldown"):
        cooldown = getattr(capacity, name)
        if not isinstance(cooldown, timedelta) or cooldown < timedelta(0) or cooldown % timedelta(seconds=1):
            yield error(
                "cooldownOutOfRange",
                f"{label} {name}",
                f"{cooldown}" if isinstance(cooldown, timedelta) else f"{cooldown!r}",
                "whole seconds, 0 or more",
                "give a timedelta, e.g. timedelta(seconds=60)",
            )


def index_name_findings(plan: Plan) -> Iterator[Finding]:
    """Find indexes without a name or listed twice."""
    names: set[str] = set()
    for index in plan.indexes:
        if not isinstance(index.index_name, str) or not index.index_name:
            yield name_missing("index name", index.index_name)
            continue
        if index.index_name in names:
            yield conflict(
                "duplicateIndex", f"index {index.index_name!r}", "the index is listed twice", "merge the two entries"
            )
        names.add(index.index_name)


def mark_findings(plan: Plan) -> Iterator[Finding]:
    """Find marks that are not positive whole numbers."""
    for name, units in (("read", plan.mark.read), ("write", plan.mark.write)):
        if is_deploy_time(units):
            yield deploy_time_units(f"high-water mark {name}")
        elif units is not None and (not is_whole(units) or units < 1):
            yield units_not_positive(f"high-water mark {name}", units)


def bounds_findings(plan: Plan) -> Iterator[Finding]:
    """Find windows above ceilings, capacity and marks above the quota, and marks below base floors."""
    for target in plan.targets():
        if target.capacity.is_deploy_time:
            if target.windows:
                yield deploy_time_units(
                    f"{target.label} min_capacity and max_capacity",
                    "write the numbers, or leave this dimension without windows",
                )
            continue
        yield from _ceiling_findings(plan, target)
        yield from _quota_findings(plan, target)
    for mark in marks_of(plan):
        subject = resource_label(mark.index)
        for dimension, units, base in (
            (Dimension.READ, mark.read, mark.base_read),
            (Dimension.WRITE, mark.write, mark.base_write),
        ):
            if units < base:
                yield error(
                    "markBelowMinimum",
                    f"high-water mark {dimension} of {subject}",
                    f"{units}",
                    f"{base} (the base floor, which the table supports at once anyway) or more",
                    "raise the mark, or omit high_water_mark to derive it from the windows",
                )
            elif plan.mark.is_units and units > plan.table_quota_units:
                yield above_quota(f"high-water mark {dimension} of {subject}", units, plan.table_quota_units)


def _ceiling_findings(plan: Plan, target: Target) -> Iterator[Finding]:
    ceiling = int(target.capacity.max_capacity)
    for target_window in target.windows:
        name = target_window.window.name
        window_ceiling = target_window.max
        if target_window.min is None:
            continue
        if window_ceiling is not None and window_ceiling < target_window.min:
            yield error(
                "maxBelowMin",
                f"window {name!r} {target.dimension}_max of {target.label}",
                f"{window_ceiling}",
                f"{target_window.min} ({target.dimension}_min) or more",
                f"raise {target.dimension}_max or lower {target.dimension}_min",
            )
        elif window_ceiling is None and target.capacity.is_autoscaled and target_window.min > ceiling:
            yield error(
                "windowAboveCeiling",
                f"window {name!r} {target.dimension}_min of {target.label}",
                f"{target_window.min}",
                f"1 to {ceiling} (max_capacity)",
                "raise max_capacity"
                if target_window.min > plan.table_quota_units
                else f"raise max_capacity, or give the window {target.dimension}_max={target_window.min} or more",
            )


def _quota_findings(plan: Plan, target: Target) -> Iterator[Finding]:
    if target.capacity.max_capacity > plan.table_quota_units:
        yield above_quota(f"{target.label} max_capacity", target.capacity.max_capacity, plan.table_quota_units)
    with_boosts = target.capacity.max_with_boosts
    if with_boosts is not None and with_boosts > plan.table_quota_units:
        yield above_quota(f"{target.label} max_with_boosts", with_boosts, plan.table_quota_units)
    for target_window in target.windows:
        for name, units in (("min", target_window.min), ("max", target_window.max)):
            if units is not None and units > plan.table_quota_units:
                subject = f"window {target_window.window.name!r} {target.dimension}_{name} of {target.label}"
                yield above_quota(subject, units, plan.table_quota_units)
