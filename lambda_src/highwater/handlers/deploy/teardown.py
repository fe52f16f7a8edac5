"""Cleanup when a scaler or a plan is removed: resets floors to the plan's, and leaves a table the capacity that it has.

Leaving never takes a table below what it had. A deletion does not fail for resources that no longer exist, nor for
calls that AWS rejects: CloudFormation would keep the whole stack, and retry a call that cannot succeed. The answer says
what was left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from highwater.aws import tables
from highwater.aws.autoscaling import read_targets, set_bounds
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableNotFoundError, TableRefusedError
from highwater.core.names import TargetName, resource_label
from highwater.core.plan.plan import Plan
from highwater.core.prices import prices_or_usual
from highwater.core.schedule.bounds import Bounds, bounds_at, require_bounds
from highwater.core.units import Dimension, Units
from highwater.handlers.deploy.waiting import Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient


NO_TABLE = "the table does not exist any more"
_LOWEST = Units(1, 1)
_NOT_SCALED = "if nothing else scales it, lower it with aws dynamodb update-table when less is enough"


class PlanUnreadableError(Exception):
    """The plan in an event, which may be of any version, cannot be read; the message says that nothing is changed."""


def read_plan(plan_json: str) -> Plan:
    """Return the plan; raises `PlanUnreadableError`."""
    try:
        plan = Plan.from_json(plan_json)
        require_bounds(plan.targets())
    except Exception as error:
        message = f"the plan cannot be read, so nothing is changed: {type(error).__name__}: {error}"
        raise PlanUnreadableError(message) from error
    return plan


def release_floors(
    table: str, plan: Plan, dynamodb: DynamoDBClient, autoscaling: ApplicationAutoScalingClient, patience: Patience
) -> str:
    """Set every registered target to the bounds that its plan alone asks for now.

    A ceiling is not set below the capacity, which Application Auto Scaling would lower at once: a window that the
    scaler held open may have raised both, and the targets may be deleted next.

    The clients are of the table's region. Returns a sentence about the changes, for CloudFormation.
    """
    try:
        described = patience.until_accepted(partial(tables.describe_table, dynamodb, table))
        targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
        registered = patience.until_accepted(partial(read_targets, autoscaling, targets))
        changes = []
        for name, target in targets.items():
            planned = bounds_at(target, registered.at)
            present = described.capacities.get(name.index, Units(0, 0))
            wanted = Bounds(planned.min, max(planned.max, present.of(name.dimension)))
            # a target that was deregistered must not be registered again
            if registered.of(name) is None or registered.of(name) == wanted:
                continue
            try:
                patience.until_accepted(partial(set_bounds, autoscaling, name, wanted))
                changes.append(f"{target.label} to {wanted.min}..{wanted.max}")
            except TableRefusedError as refused:
                changes.append(f"{target.label} could not be set to {wanted.min}..{wanted.max}: {refused}")
    except TableNotFoundError:
        return NO_TABLE
    except (TableRefusedError, TimeIsUpError) as refused:
        return f"floors and ceilings are left as they are: {refused}"
    return ", ".join(changes) if changes else "floors and ceilings were as planned"


def lower_new_table(table: str, dynamodb: DynamoDBClient, patience: Patience, *, since: datetime | None) -> str | None:
    """Lower a table that was created by the operation that is rolled back, with its indexes, to one unit each.

    It is retained, belongs to no stack, and nothing scales it; nobody has used it, so less throttles nobody.

    Args:
        table: The table's name.
        dynamodb: The client.
        patience: The time that is left.
        since: When the operation began; `None` if none is rolled back.

    Returns:
        A sentence for CloudFormation; `None` if the table was there before, or was not lowered.
    """
    if since is None:
        return None
    try:
        # while capacity is being raised, DescribeTable has the units before
        described = _wait_while(_is_in_use, dynamodb, table, patience)
        if described.created is None or described.created < since.replace(microsecond=0):
            return None
        for index, units in described.capacities.items():
            if units.covers(_LOWEST) and units != _LOWEST:
                patience.until_accepted(partial(tables.set_capacity, dynamodb, table, index, _LOWEST))
        _wait_while(_is_in_use, dynamodb, table, patience)
    except TableNotFoundError:
        return NO_TABLE
    except (TableRefusedError, TimeIsUpError, DecreaseRefusedError, OvertakenError):
        return None
    return (
        f"{table} was created by this deploy, which failed, and is lowered to one unit, as it may stay: to go on with "
        "it, deploy again with cdk deploy --import-existing-resources; to delete it, turn off its deletion protection"
    )


def leave_capacity(table: str, dynamodb: DynamoDBClient, patience: Patience, *, region: str) -> str:
    """Leave the table and its indexes at the capacity that they have, and wait until DynamoDB would delete the table.

    Nothing scales the table any longer until its owner deploys something that does. Too much capacity costs money, and
    too little throttles requests, so it is for the owner to lower it. *region* is the table's, for prices.

    Returns:
        A sentence for CloudFormation: the capacity, its cost, and how to lower it.
    """
    try:
        # DescribeTable does not return the new units while capacity is being raised. DynamoDB rejects the deletion of a
        # table meanwhile, while warm throughput is being raised, which takes some minutes, and while an index is being
        # built (measured by others, 2026-10).
        described = _wait_while(_is_in_use, dynamodb, table, patience)
    except TableNotFoundError:
        return NO_TABLE
    except (TableRefusedError, TimeIsUpError) as refused:
        # the permission for a table that was replaced is deleted before the table
        return f"{table} keeps its capacity, which cannot be read: {refused}; {_NOT_SCALED}"
    provisioned = {index: units for index, units in described.capacities.items() if units != Units(0, 0)}
    if not provisioned:
        return f"{table} is on demand, and has no capacity to keep"
    kept = ", ".join(
        f"{resource_label(index)} {units.read} RCU and {units.write} WCU" for index, units in provisioned.items()
    )
    return f"{table} keeps its capacity: {kept}, {_cost(provisioned.values(), region)}; {_NOT_SCALED}"


def _is_in_use(seen: tables.DescribedTable) -> bool:
    """Whether DynamoDB would reject the table's deletion for now."""
    return not seen.is_active or seen.is_warming or bool(seen.building)


def _cost(provisioned: Iterable[Units], region: str) -> str:
    prices = prices_or_usual(region)
    usd = 24 * sum(
        prices.provisioned(units.read, Dimension.READ) + prices.provisioned(units.write, Dimension.WRITE)
        for units in provisioned
    )
    return f"{usd:.2f} USD a day ({prices.region})"


def _wait_while(
    holds: Callable[[tables.DescribedTable], bool], dynamodb: DynamoDBClient, table: str, patience: Patience
) -> tables.DescribedTable:
    """Wait while *holds* says so of the table, as long as there is time; return the table's state after that."""
    describe = partial(tables.describe_table, dynamodb, table)
    while holds(described := patience.until_accepted(describe)) and not described.out_of_reach:
        try:
            patience.pause()
        except TimeIsUpError:
            break
    return described
