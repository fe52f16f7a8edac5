"""Sets the floors and ceilings that the plan asks for now, after a deploy or a rollback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from highwater.aws import tables
from highwater.aws.autoscaling import read_targets, register_again, set_bounds
from highwater.aws.stacks import StackState, read_stack
from highwater.core.names import TargetName
from highwater.core.plan.plan import Plan, Target
from highwater.core.schedule.bounds import Bounds, bounds_at
from highwater.core.units import Dimension, Units
from highwater.handlers.deploy.waiting import Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient


logger = logging.getLogger("highwater")

# Pauses of five seconds between two attempts to raise the capacity of an index that is being built
_PAUSES_PER_TRY = 12
# How often a table whose indexes are built is described while its capacity is below the floors
_TRIES_AFTER_BUILD = 60


class FloorsNotReachedError(Exception):
    """Capacity has not reached its floor in time. The message names the targets."""


@dataclass(frozen=True, slots=True)
class Asserted:
    """The result of setting the floors.

    Attributes:
        reason: A sentence about the changes, for CloudFormation.
        building: Indexes that are being built: if there are any, call `raise_to_floors` for the table.
    """

    reason: str
    building: frozenset[str]


def assert_floors(
    table: str,
    plan_json: str,
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
) -> Asserted:
    """Set every target to the bounds that the plan asks for now, and wait until its capacity has reached the floor.

    An index that is being built is not waited for, because that can take hours. Meanwhile DynamoDB may reject changes
    of the table's own capacity, so capacity that is still below its floor at the first check is not waited for either.

    Raises:
        FloorsNotReachedError: The time is up, and a bound is wrong, or capacity is below a floor and the table is not
            being changed.
    """
    plan = Plan.from_json(plan_json)
    targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
    changes: dict[str, str] = {}
    for attempt in count():
        described = patience.until_found(partial(tables.describe_table, dynamodb, table))
        registered = patience.until_accepted(partial(read_targets, autoscaling, targets))
        wanted = {name: bounds_at(target, registered.at) for name, target in targets.items()}
        wrong = [name for name in targets if registered.of(name) != wanted[name]]
        below_floor = _below_floor(described, wanted)
        # a decrease that is in progress would end below the floor
        is_settled = described.is_active or bool(described.building)
        if not wrong and not below_floor and is_settled:
            at = f"{registered.at:%Y-%m-%d %H:%M:%S} UTC"
            done = ", ".join(changes.values()) if changes else "floors and ceilings were as planned"
            return Asserted(f"at {at}: {done}{_left_out(described, targets)}", described.building)
        for name in wrong or (below_floor if described.is_active else []):
            patience.until_accepted(partial(set_bounds, autoscaling, name, wanted[name]))
            changes[targets[name].label] = f"{targets[name].label} to {wanted[name].min}..{wanted[name].max}"
        if not wrong and described.building and attempt > 0:
            names = ", ".join(repr(name) for name in sorted(described.building))
            reason = f"capacity follows when index {names} is built: {_labels(targets, below_floor)}"
            return Asserted(reason, described.building)
        if attempt == 0:
            # compare again at once: most changes take effect immediately, and a window may have opened meanwhile
            continue
        try:
            patience.pause()
        except TimeIsUpError:
            if not wrong and not described.is_active:
                left = (
                    f"{_labels(targets, below_floor)} is still being raised" if below_floor else "the table is changing"
                )
                return Asserted(left, described.building)
            raise FloorsNotReachedError(
                _not_reached(targets, wanted, below_floor, wrong or list(below_floor))
            ) from None
    raise AssertionError  # the loop above only returns or raises


def _left_out(described: tables.DescribedTable, targets: Mapping[TargetName, Target]) -> str:
    """Return what to say of indexes that the plan leaves out: an imported table's indexes are not known at synth."""
    planned = {name.index for name in targets}
    left = sorted(index for index in described.capacities if index is not None and index not in planned)
    # while an index is deleted by the same deploy, the table is not active
    if not left or not described.is_active:
        return ""
    names = ", ".join(map(repr, left))
    logger.warning("%s is not in the plan, so nothing scales it; name it in indexes= and deploy", names)
    return f"; index {names} is not in the plan, so nothing scales it: name it in indexes= and deploy"


def raise_to_floors(
    table: str, dynamodb: DynamoDBClient, autoscaling: ApplicationAutoScalingClient, patience: Patience
) -> bool:
    """Raise capacity to the floors of the table's targets, each minute until no index is being built.

    An index that is being built gets the table's present write capacity, within its own floor and ceiling. It is built
    with its own write capacity, which may be raised meanwhile: with 1 unit a build takes days, and with less than the
    table it may throttle the table's writes (DynamoDB Developer Guide, "Managing Global Secondary Indexes", read
    2026-11). Other targets below their floors are registered again. The floors are those registered by then: a later
    deploy may have changed the plan. A table on demand has none.

    Returns:
        Whether the capacity has reached the floors; false after some minutes in which no index was being built.

    Raises:
        TableNotFoundError: The table does not exist any more.
        TimeIsUpError: An index is still being built.
    """
    tries_left = _TRIES_AFTER_BUILD
    for attempt in count():
        described = patience.until_accepted(partial(tables.describe_table, dynamodb, table))
        is_built = not described.building
        if attempt % _PAUSES_PER_TRY == 0 or (is_built and described.is_active):
            names = [TargetName(table, index, dimension) for index in described.capacities for dimension in Dimension]
            registered = patience.until_accepted(partial(read_targets, autoscaling, names))
            live = {name: bounds for name in names if (bounds := registered.of(name)) is not None}
            below_floor = _below_floor(described, live)
            for name in below_floor:
                if name.index not in described.building:
                    _try(partial(register_again, autoscaling, name), patience)
            for index, units in _while_built(table, described, live).items():
                _try(partial(tables.set_capacity, dynamodb, table, index, units), patience)
            # of several targets registered at once, one may be rejected while the table is changed for another
            if is_built and not below_floor:
                return True
        tries_left -= is_built
        if tries_left == 0:
            return False
        patience.pause()
    raise AssertionError  # the loop above only returns or raises


def _while_built(table: str, described: tables.DescribedTable, live: Mapping[TargetName, Bounds]) -> dict[str, Units]:
    """Return the indexes that are being built with too little capacity, each with the units to provision meanwhile."""
    wanted = {}
    of_table = described.capacities[None]
    for index in sorted(described.building):
        present = described.capacities[index]
        read, write = (live.get(TargetName(table, index, dimension)) for dimension in Dimension)
        if read is None or write is None or present == Units(0, 0):  # not managed, or on demand by now
            continue
        units = Units(read.min, min(max(of_table.write, write.min), write.max)).at_least(present)
        if units != present:
            wanted[index] = units
    return wanted


def _try(change: Callable[[], None], patience: Patience) -> None:
    """Try a change once; one that AWS rejects, as while an index is being built, is retried a minute later."""
    try:
        patience.until_permitted(change)
    except (tables.TableBusyError, tables.OvertakenError, tables.TableRefusedError) as refused:
        logger.info("capacity is left as it is for now: %s", refused)


def _below_floor(described: tables.DescribedTable, wanted: Mapping[TargetName, Bounds]) -> dict[TargetName, int]:
    """Return the targets whose capacity is below their floor, each with its capacity in units per second."""
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


_ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
# A failed rollback can be continued or abandoned; a continued one does not repeat the updates that it has done
_NOT_OVER = frozenset({_ROLLING_BACK, "UPDATE_ROLLBACK_FAILED"})
# Targets are as they were before the deploy; only new resources may still have to be deleted.
_ROLLED_BACK = frozenset({"UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})


UPDATE_FAILED = "UPDATE_FAILED"
_UPDATED = frozenset({"UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", UPDATE_FAILED})


def find_stack(cloudformation: CloudFormationClient, stack_id: str, patience: Patience) -> StackState:
    """Return the state of the stack; raises the errors of `Patience.until_accepted`."""
    return patience.until_accepted(partial(read_stack, cloudformation, stack_id))


# In these, what a failed operation had created is deleted.
_TAKING_BACK = frozenset({"ROLLBACK_IN_PROGRESS", _ROLLING_BACK, "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})


def find_failed_operation(state: StackState) -> datetime | None:
    """Return when the operation began that is being rolled back; `None` if none is."""
    return state.began if state.status in _TAKING_BACK else None


def is_rolling_back(state: StackState) -> bool:
    """Whether the stack is being rolled back."""
    return state.status == _ROLLING_BACK


def wait_until_updated(
    cloudformation: CloudFormationClient, stack_id: str, updated: str, patience: Patience
) -> str | None:
    """Wait until the update that began at *updated* is over; return its last status.

    Returns:
        `None` if it is being rolled back, or if another operation has begun.

    Raises:
        TimeIsUpError: The update is still in progress.
    """
    while True:
        state = find_stack(cloudformation, stack_id, patience)
        if state.updated != updated:
            return None
        if state.status != "UPDATE_IN_PROGRESS":
            return state.status if state.status in _UPDATED else None
        patience.pause()


def wait_until_rolled_back(cloudformation: CloudFormationClient, stack_id: str, patience: Patience) -> bool:
    """Wait until the rollback is over; false if the stack then has another state, such as that of a later deploy.

    A rollback that failed is waited for too, because it may be continued.

    Raises:
        TimeIsUpError: The rollback is still in progress.
    """
    while (status := find_stack(cloudformation, stack_id, patience).status) in _NOT_OVER:
        patience.pause()
    return status in _ROLLED_BACK
