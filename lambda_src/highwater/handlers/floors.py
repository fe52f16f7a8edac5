"""Asserting floors after a deploy: what the plan asks for now, whatever CloudFormation registered.

CloudFormation registers a changed target at its base floor and would leave it there until the window's next edge.
And where several targets of a table are registered at once, Application Auto Scaling may find the table being changed
for one of them and leave another below its floor. It enforces bounds when they are registered, not later (measured
2026-10: capacity below the minimum was left alone for half an hour). So this handler compares the capacity too, and
registers a target that was left behind again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from highwater.aws import tables
from highwater.aws.autoscaling import read_targets, set_bounds
from highwater.core.names import TargetName
from highwater.core.plan.plan import Plan, Target
from highwater.core.schedule.bounds import Bounds, bounds_at
from highwater.core.units import Dimension, Units
from highwater.handlers.patience import Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient


class FloorsNotReachedError(Exception):
    """Capacity stays below its floor; the message says where."""


def assert_floors(
    table: str,
    plan_json: str,
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
) -> str:
    """Set every target to its bounds of now, and wait until its capacity follows; answers what was done.

    Raises:
        FloorsNotReachedError: The time is up, and capacity lies below a floor though nothing is being changed.
    """
    plan = Plan.from_json(plan_json)
    targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
    done: dict[str, str] = {}
    for look in count():
        live = _describe(dynamodb, table, patience)
        seen = read_targets(autoscaling, targets)
        wanted = {name: bounds_at(target, seen.at) for name, target in targets.items()}
        wrong = [name for name in targets if seen.of(name) != wanted[name]]
        behind = _behind(live, wanted)
        if not wrong and not behind:
            at = f"{seen.at:%Y-%m-%d %H:%M:%S} UTC"
            return f"at {at}: {', '.join(done.values()) if done else 'floors and ceilings were as planned'}"
        for name in wrong or (behind if live.is_active else []):
            set_bounds(autoscaling, name, wanted[name])
            done[targets[name].label] = f"{targets[name].label} to {wanted[name].min}..{wanted[name].max}"
        if look == 0:
            # what was just set is mostly there; and a window may have opened between looking and setting
            continue
        try:
            patience.pause()
        except TimeIsUpError:
            if not wrong and not live.is_active:
                return f"{_told(targets, behind)} is still being raised"
            raise FloorsNotReachedError(_not_reached(targets, wanted, behind, wrong or list(behind))) from None
    raise AssertionError  # the loop above only returns or raises


def release(table: str, plan_json: str, autoscaling: ApplicationAutoScalingClient) -> str:
    """Put every target that is registered back to the bounds that its plan alone asks for now; answers what was done.

    *autoscaling* is a client of the table's region.
    """
    plan = Plan.from_json(plan_json)
    targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
    seen = read_targets(autoscaling, targets)
    done = []
    for name, target in targets.items():
        wanted = bounds_at(target, seen.at)
        # one that is gone is not registered again
        if seen.of(name) is not None and seen.of(name) != wanted:
            set_bounds(autoscaling, name, wanted)
            done.append(f"{target.label} to {wanted.min}..{wanted.max}")
    return ", ".join(done) if done else "floors and ceilings were as planned"


def _describe(dynamodb: DynamoDBClient, table: str, patience: Patience) -> tables.DescribedTable:
    while True:
        try:
            return tables.describe_table(dynamodb, table)
        except tables.TableBusyError:
            patience.pause()


def _behind(live: tables.DescribedTable, wanted: Mapping[TargetName, Bounds]) -> dict[TargetName, int]:
    """Targets whose capacity lies below their floor, and that capacity."""
    behind = {}
    for name, bounds in wanted.items():
        capacity = live.capacities.get(name.index)
        # registration itself reports a missing index; an on-demand table has no units
        if capacity is None or capacity == Units(0, 0):
            continue
        units = capacity.read if name.dimension is Dimension.READ else capacity.write
        if units < bounds.min:
            behind[name] = units
    return behind


def _not_reached(
    targets: Mapping[TargetName, Target],
    wanted: Mapping[TargetName, Bounds],
    behind: Mapping[TargetName, int],
    names: list[TargetName],
) -> str:
    parts = [
        f"{targets[name].label} stands at {behind.get(name, wanted[name].min)} units per second with its floor at "
        f"{wanted[name].min}"
        for name in names
    ]
    return f"{'; '.join(parts)}; the scaling activities of the table say why it did not follow"


def _told(targets: Mapping[TargetName, Target], names: Mapping[TargetName, int]) -> str:
    return ", ".join(targets[name].label for name in names)
