"""Setting floors and ceilings after a deploy to the values that the plan asks for now.

CloudFormation registers a changed target with its base floor. If a window is open, the floor would stay too low until
the window next opens or closes. Also, Application Auto Scaling raises capacity to a floor only when the target is
registered, not later (measured 2026-10: for half an hour, capacity below the minimum did not change). If several
targets of a table are registered at once, DynamoDB may refuse the change for one of them because the table is being
changed for another. So this handler also compares the capacity, and registers a target below its floor again.
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
    """Capacity has not reached its floor in time. The message names the targets."""


def assert_floors(
    table: str,
    plan_json: str,
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
) -> str:
    """Set every target to the bounds that the plan asks for now, and wait until its capacity has reached the floor.

    Returns:
        A sentence about the changes, for CloudFormation.

    Raises:
        FloorsNotReachedError: The time is up, and a bound is wrong, or capacity is below a floor and the table is not
            being changed.
    """
    plan = Plan.from_json(plan_json)
    targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
    changes: dict[str, str] = {}
    for attempt in count():
        described = _describe(dynamodb, table, patience)
        registered = read_targets(autoscaling, targets)
        wanted = {name: bounds_at(target, registered.at) for name, target in targets.items()}
        wrong = [name for name in targets if registered.of(name) != wanted[name]]
        below_floor = _below_floor(described, wanted)
        if not wrong and not below_floor:
            at = f"{registered.at:%Y-%m-%d %H:%M:%S} UTC"
            return f"at {at}: {', '.join(changes.values()) if changes else 'floors and ceilings were as planned'}"
        for name in wrong or (below_floor if described.is_active else []):
            set_bounds(autoscaling, name, wanted[name])
            changes[targets[name].label] = f"{targets[name].label} to {wanted[name].min}..{wanted[name].max}"
        if attempt == 0:
            # compare again at once: most changes take effect immediately, and a window may have opened meanwhile
            continue
        try:
            patience.pause()
        except TimeIsUpError:
            if not wrong and not described.is_active:
                return f"{_labels(targets, below_floor)} is still being raised"
            raise FloorsNotReachedError(
                _not_reached(targets, wanted, below_floor, wrong or list(below_floor))
            ) from None
    raise AssertionError  # the loop above only returns or raises


def release(table: str, plan_json: str, autoscaling: ApplicationAutoScalingClient) -> str:
    """Set every registered target to the bounds that its plan alone asks for now.

    *autoscaling* is a client of the table's region. Returns a sentence about the changes, for CloudFormation.
    """
    plan = Plan.from_json(plan_json)
    targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
    registered = read_targets(autoscaling, targets)
    changes = []
    for name, target in targets.items():
        wanted = bounds_at(target, registered.at)
        # a target that was deregistered must not be registered again
        if registered.of(name) is not None and registered.of(name) != wanted:
            set_bounds(autoscaling, name, wanted)
            changes.append(f"{target.label} to {wanted.min}..{wanted.max}")
    return ", ".join(changes) if changes else "floors and ceilings were as planned"


def _describe(dynamodb: DynamoDBClient, table: str, patience: Patience) -> tables.DescribedTable:
    while True:
        try:
            return tables.describe_table(dynamodb, table)
        except tables.TableBusyError:
            patience.pause()


def _below_floor(described: tables.DescribedTable, wanted: Mapping[TargetName, Bounds]) -> dict[TargetName, int]:
    """The targets whose capacity is below their floor, each with its capacity in units per second."""
    below_floor = {}
    for name, bounds in wanted.items():
        capacity = described.capacities.get(name.index)
        # registration itself reports a missing index; an on-demand table has 0 units
        if capacity is None or capacity == Units(0, 0):
            continue
        units = capacity.read if name.dimension is Dimension.READ else capacity.write
        if units < bounds.min:
            below_floor[name] = units
    return below_floor


def _not_reached(
    targets: Mapping[TargetName, Target],
    wanted: Mapping[TargetName, Bounds],
    below_floor: Mapping[TargetName, int],
    names: list[TargetName],
) -> str:
    parts = [
        f"{targets[name].label} has {below_floor.get(name, wanted[name].min)} units per second and its floor is "
        f"{wanted[name].min}"
        for name in names
    ]
    return f"{'; '.join(parts)}; the table's scaling activities show why the capacity was not raised"


def _labels(targets: Mapping[TargetName, Target], names: Mapping[TargetName, int]) -> str:
    return ", ".join(targets[name].label for name in names)
