"""Cleanup when nothing scales a table any longer: resets floors to the plan's, and lowers capacity that is too high.

A deletion does not fail for resources that no longer exist, nor for calls that AWS rejects: CloudFormation would keep
the whole stack, and retry a call that cannot succeed. The answer says what was left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from highwater.aws import tables
from highwater.aws.autoscaling import read_targets, set_bounds
from highwater.aws.cloudwatch import read_consumption
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableNotFoundError, TableRefusedError
from highwater.core.names import TargetName, resource_label
from highwater.core.plan.plan import Plan
from highwater.core.prices import prices_or_usual
from highwater.core.schedule.bounds import bounds_at, bounds_with, require_bounds
from highwater.core.units import Dimension, Units
from highwater.handlers.deploy.waiting import Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient


NO_TABLE = "the table does not exist any more"
# The remaining capacity must be enough for the traffic of these minutes. CloudWatch has the newest some minutes late.
_TRAFFIC_MINUTES = 15
# The default target utilization of target tracking, which leaves room for growing traffic. A lower one that is declared
# keeps its room, as nothing scales the table afterwards.
_UTILIZATION_PERCENT = 70


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

    The clients are of the table's region. Returns a sentence about the changes, for CloudFormation.
    """
    try:
        patience.until_accepted(partial(tables.describe_table, dynamodb, table))
        targets = {TargetName(table, target.index, target.dimension): target for target in plan.targets()}
        registered = patience.until_accepted(partial(read_targets, autoscaling, targets))
        changes = []
        for name, target in targets.items():
            wanted = bounds_at(target, registered.at)
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


def lower_capacity(
    table: str,
    plan: Plan,
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    cloudwatch: CloudWatchClient,
    patience: Patience,
    *,
    region: str,
    is_rollback: bool = False,
) -> str:
    """Lower the capacity of the table and its indexes to their base floors, but not below their recent traffic.

    Without the scheduled actions nothing would close an open window, and without the policies nothing would scale in.
    After a rollback (*is_rollback*) nothing is lowered: the deploy never took hold, and the capacity may be from before
    it. Nor is it where CloudWatch has no datapoint of any of the table's targets, so that nothing is known. *region* is
    the table's, for prices.

    Returns:
        A sentence for CloudFormation: the capacity that was lowered, and the capacity that was not, with its cost and
        how to lower it by hand.
    """
    try:
        # DescribeTable does not return the new units while capacity is being raised
        described = _wait_while(lambda seen: not seen.is_active, dynamodb, table, patience)
        if described.out_of_reach:
            why = f"the table is {described.out_of_reach}"
            return f"capacity of {table} is left as it is: {why}; {_by_hand(plan, region)}"
        needed = _needed(table, plan, autoscaling, cloudwatch, patience)
        done, left = [], []
        for index, units in needed.items():
            provisioned = described.capacities.get(index)
            if provisioned is None or provisioned == Units(0, 0):
                continue
            if units is None:
                left.append(_unknown(table, index, provisioned))
                continue
            goal = units.at_most(provisioned)
            if goal == provisioned:
                continue
            if index in described.building or is_rollback:
                why = "the deploy was rolled back" if is_rollback else "the index is being built"
                left.append(_left(table, index, provisioned, goal, region, why))
                continue
            try:
                patience.until_accepted(partial(tables.set_capacity, dynamodb, table, index, goal))
                done.append(f"{resource_label(index)} to {goal.read} RCU and {goal.write} WCU")
            except (DecreaseRefusedError, OvertakenError, TableRefusedError, TimeIsUpError) as refused:
                left.append(_left(table, index, provisioned, goal, region, str(refused)))
        # DynamoDB rejects the deletion of a table while its capacity is being changed, while warm throughput is being
        # raised, which takes some minutes, and while an index is being built (measured by others, 2026-10)
        _wait_while(
            lambda seen: not seen.is_active or seen.is_warming or bool(seen.building), dynamodb, table, patience
        )
    except TableNotFoundError:
        return NO_TABLE
    except (TableRefusedError, TimeIsUpError) as refused:
        # the permission for a table that was replaced is deleted before the table
        return f"capacity of {table} is left as it is: {refused}; {_by_hand(plan, region)}"
    lowered = f"lowered {', '.join(done)}" if done else "no capacity was lowered"
    return "; ".join([lowered, *left])


def _by_hand(plan: Plan, region: str) -> str:
    """Return a sentence with the possible cost of retained capacity that could not be read, and how to lower it."""
    surplus = dict.fromkeys(Dimension, 0)
    for target in plan.targets():
        surplus[target.dimension] += bounds_with(target, target.windows).min - bounds_with(target, ()).min
    units = Units(surplus[Dimension.READ], surplus[Dimension.WRITE])
    most = "" if units == Units(0, 0) else f"; floors of windows are up to {_cost(units, region)} above the base floors"
    return f"if the table is retained, lower its capacity with aws dynamodb update-table{most}"


def _needed(
    table: str,
    plan: Plan,
    autoscaling: ApplicationAutoScalingClient,
    cloudwatch: CloudWatchClient,
    patience: Patience,
) -> dict[str | None, Units | None]:
    """Return the capacity that the table and each index need for their base floors and the last minutes' traffic.

    `None` for each if no traffic is known at all; otherwise a target without datapoints has none.
    """
    names = {TargetName(table, *target.key): target for target in plan.targets()}
    now = patience.until_accepted(partial(read_targets, autoscaling, names)).at
    # raises if the metrics cannot be read: nothing may be lowered without knowing the traffic
    consumed = patience.until_accepted(partial(read_consumption, cloudwatch, names, _TRAFFIC_MINUTES, now))
    if not any(minute is not None for each in consumed.values() for minute in each.consumed_units):
        return dict.fromkeys(index for index, *_ in plan.resources())
    units: dict[tuple[str | None, Dimension], int] = {}
    for name, target in names.items():
        busiest = max((minute or 0 for minute in consumed[name].consumed_units), default=0)
        percent = min(_UTILIZATION_PERCENT, target.capacity.target_utilization_percent or _UTILIZATION_PERCENT)
        for_traffic = -(-busiest * 100 // (60 * percent))
        units[target.key] = max(bounds_with(target, ()).min, for_traffic)
    return {
        index: Units(units[index, Dimension.READ], units[index, Dimension.WRITE]) for index, _, _ in plan.resources()
    }


def _left(table: str, index: str | None, provisioned: Units, goal: Units, region: str, why: str) -> str:
    surplus = Units(provisioned.read - goal.read, provisioned.write - goal.write)
    return (
        f"{resource_label(index)} of {table} stays at {provisioned.read} RCU and {provisioned.write} WCU, which is "
        f"{_cost(surplus, region)} more than needed: {why}; lower it with aws dynamodb update-table"
    )


def _unknown(table: str, index: str | None, provisioned: Units) -> str:
    return (
        f"{resource_label(index)} of {table} stays at {provisioned.read} RCU and {provisioned.write} WCU, as "
        "CloudWatch has no metrics of its traffic; lower it with aws dynamodb update-table if that is more than needed"
    )


def _cost(units: Units, region: str) -> str:
    prices = prices_or_usual(region)
    usd = 24 * (prices.provisioned(units.read, Dimension.READ) + prices.provisioned(units.write, Dimension.WRITE))
    return f"{units.read} RCU and {units.write} WCU or {usd:.2f} USD a day ({prices.region})"


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
