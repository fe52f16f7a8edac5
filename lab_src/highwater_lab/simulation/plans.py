"""Plans as they would be deployed: compiled by the core, ready to be simulated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from highwater.core import Capacity, IndexCapacity, Plan, Target, Units, compile_actions, marks_of
from highwater.core.limits import DEFAULT_ACCOUNT_QUOTA_UNITS
from highwater.core.plan.zones import find_zone
from highwater.core.tracking import TargetTracking
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup

# what rates would count from
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)


def table_of(plan: Plan, name: str) -> TableSetup:
    """The table that a plan makes; the plan must have passed `check`, as the compiler takes no other."""
    marks = {mark.index: mark for mark in marks_of(plan)}
    resources = []
    for index, read, write in plan.resources():
        mark = marks.get(index)
        resource = ResourceSetup(index=index, read=_target(read), write=_target(write))
        if mark is not None:
            resource = resource.warmed(Units(mark.read, mark.write), Units(mark.base_read, mark.base_write))
        resources.append(resource)
    return TableSetup(
        name=name,
        resources=tuple(resources),
        quota_units=plan.table_quota_units,
        account_quota_units=max(plan.table_quota_units, DEFAULT_ACCOUNT_QUOTA_UNITS),
    )


def declared_plan(setup: TableSetup, capacity_of: Callable[[TargetSetup], Capacity]) -> Plan:
    """The plan that declares a table and its indexes; *capacity_of* says what is declared for a target."""
    own, *indexes = setup.resources
    return Plan(
        read=capacity_of(own.read),
        write=capacity_of(own.write),
        indexes=tuple(
            IndexCapacity(index_name=str(each.index), read=capacity_of(each.read), write=capacity_of(each.write))
            for each in indexes
        ),
    )


def _target(target: Target) -> TargetSetup:
    capacity = target.capacity
    tracking = None
    if capacity.target_utilization_percent is not None:
        tracking = TargetTracking(
            target_percent=capacity.target_utilization_percent,
            scale_in_cooldown=int(capacity.scale_in_cooldown.total_seconds()),
            scale_out_cooldown=int(capacity.scale_out_cooldown.total_seconds()),
            disable_scale_in=capacity.disable_scale_in,
        )
    return TargetSetup(
        units=int(capacity.min_capacity),
        min=int(capacity.min_capacity),
        max=int(capacity.max_capacity),
        tracking=tracking,
        actions=tuple(_action(target)),
        is_scaled=capacity.is_autoscaled,
    )


def _action(target: Target) -> list[ScheduledChange]:
    made = []
    for action in compile_actions(target):
        zone = find_zone(action.timezone)
        assert zone is not None  # noqa: S101 - the compiler names only zones that are there
        made.append(
            ScheduledChange(
                name=action.name,
                # compiled actions are at(...) and cron(...), which count from nothing
                expression=parse_expression(action.schedule, zone, action.start or _NEVER),
                min=action.bounds.min,
                max=action.bounds.max,
                start=action.start,
                end=action.end,
            )
        )
    return made
