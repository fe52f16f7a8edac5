"""Windows: one that opens, is deployed in and closes, and CloudFormation's order inside an open one."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from rich.markup import escape

from acceptance.cdk import CdkError
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import FLOOR, LowestFloor, raising, read_bounds, read_floor, read_units
from highwater.core.names import TargetName

# The first deploy must have ended when the window opens, and the second one while it is open
_OPENS_AFTER, _IS_OPEN_FOR = 15 * MINUTE, 20 * MINUTE
_OPEN_FLOOR, _LATER_FLOOR = 40, 45
_CEILING, _LATER_CEILING = 50, 60
# The ceiling of a deploy beside which the floor is raised
_BUSY_CEILING: Final = 70
_READ_UNITS: Final = 5
# How late scheduled actions ran (recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle, 2026-09)
_LATE_SECONDS: Final = "4 to 64"
_SOON: Final = 5 * MINUTE
# Target tracking lowers unused capacity once its low alarm has been below for 15 minutes
_LOWERED_WITHIN: Final = 30 * MINUTE
# What the function for deploys logs of each call
_CALL: Final = re.compile(r'"request": "(\w+)", "resource": "\w*?(Aftermath|Floors|Marks)')
# CloudWatch has a line some time after it was logged
_LOGGED_WITHIN, _LOOKS_EVERY = 2 * MINUTE, timedelta(seconds=10)


def _context(opens: datetime, closes: datetime, floor: int, ceiling: int, tables: str = "Orders") -> dict[str, str]:
    times = {"opens": f"{opens:%Y-%m-%dT%H:%M}", "closes": f"{closes:%Y-%m-%dT%H:%M}"}
    capacity = {"floor": str(floor), "ceiling": str(ceiling)}
    return times | capacity | {"tables": tables, "key": "id", "broken": "no"}


@part(minutes=55, units=_READ_UNITS + _BUSY_CEILING)
def windows(stage: Stage) -> None:
    """A window opens, survives a deploy, a revert of drift is healed, and it closes."""
    stage.measure("scaling_role_before", _scaling_role(stage), assumed="the first registration creates it")
    opens = (stage.now() + _OPENS_AFTER).replace(second=0, microsecond=0)
    closes = opens + _IS_OPEN_FOR
    (name,) = stage.deploy("Windows", _context(opens, closes, _OPEN_FLOOR, _CEILING))
    stage.settle("floor before the window", FLOOR, read_floor, name)
    stage.wait_until(opens, "the window opens")
    late = stage.settle("floor in the window", _OPEN_FLOOR, read_floor, name, _SOON)
    stage.measure("window_open_seconds", late, assumed=_LATE_SECONDS)
    up = stage.seconds_until(lambda: read_units(stage.place, name) >= _OPEN_FLOOR, _SOON)
    stage.check("capacity in the window reaches its floor", True, up is not None)
    stage.measure("window_capacity_seconds", up, assumed="5")
    later = _context(opens, closes, _LATER_FLOOR, _LATER_CEILING)
    _deploy_while_open(stage, name, later)
    _revert_drift(stage, name, later)
    _deploy_while_raised(stage, name, later | {"ceiling": str(_BUSY_CEILING)})
    stage.wait_until(closes, "the window closes")
    closing = stage.settle("floor after the window", FLOOR, read_floor, name, _SOON)
    stage.measure("window_close_seconds", closing, assumed=_LATE_SECONDS)
    down = stage.settle("capacity without traffic after the window", FLOOR, read_units, name, _LOWERED_WITHIN)
    stage.measure("window_close_capacity_seconds", down, assumed="the next evaluation of an alarm that is in ALARM")


def _deploy_while_open(stage: Stage, name: TargetName, context: dict[str, str]) -> None:
    with LowestFloor(stage.place, name, _OPEN_FLOOR).watching() as lowest:
        stage.deploy("Windows", context)
    bounds = (_LATER_FLOOR, _LATER_CEILING)
    stage.settle("bounds after a deploy in the open window", bounds, read_bounds, name)
    stage.measure("redeploy_lowest_floor", lowest.floor, assumed=f"{FLOOR}: the target's update sets its base floor")
    stage.measure("redeploy_low_floor_seconds", lowest.seconds, assumed="the time between two resources of a deploy")


def _revert_drift(stage: Stage, name: TargetName, context: dict[str, str]) -> None:
    stage.deploy("Windows", context, "--revert-drift")
    assumed = f"{FLOOR}: bounds are reverted"
    stage.measure("revert_floor", read_floor(stage.place, name), assumed=assumed)
    assumed = f"{_LATER_FLOOR}: AWS manages it"
    stage.measure("revert_capacity", read_units(stage.place, name), assumed=assumed)
    stage.deploy("Windows", context | {"highwater:setFloors": f"{stage.now():%H:%M:%S}"})
    bounds = (_LATER_FLOOR, _LATER_CEILING)
    stage.settle("bounds after a deploy that sets floors again", bounds, read_bounds, name)


def _deploy_while_raised(stage: Stage, name: TargetName, context: dict[str, str]) -> None:
    """Deploy another ceiling while the floor is raised, as a scaler does in a surge."""
    with raising(stage.place, name, range(_LATER_FLOOR + 1, _BUSY_CEILING), _BUSY_CEILING) as met:
        try:
            stage.deploy("Windows", context)
        except CdkError as error:
            stage.tell(f"the deploy failed: {escape(str(error))}")
    counts = ", ".join(f"{count} {answer}" for answer, count in sorted(Counter(met).items()))
    stage.measure("busy_deploy_raises", counts, assumed="all accepted, or ConcurrentUpdateException")
    stage.measure("busy_deploy_stack", stage.cdk.status("Windows"), assumed="UPDATE_COMPLETE")


def _scaling_role(stage: Stage) -> str:
    """Whether the account has the role with which auto scaling changes capacity."""
    path = "/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    return "is there" if stage.place.client("iam").list_roles(PathPrefix=path)["Roles"] else "is not there"


# two tables, and then one beside the one that replaces it
@part(minutes=30, units=2 * (_READ_UNITS + _LATER_CEILING))
def stack_order(stage: Stage) -> None:
    """CloudFormation's order: a deploy that fails, a table that leaves, one replaced."""
    now = stage.now()
    context = _context(now - timedelta(hours=1), now + timedelta(hours=12), _OPEN_FLOOR, _CEILING, "Kept+Leaving")
    # names of tables are made from the constructs' ids
    names = sorted(stage.deploy("StackOrder", context), key=lambda name: "Leaving" in name.table)
    kept = names[0]
    for name in names:
        stage.settle(f"floor of {name.resource_id} inside the window", _OPEN_FLOOR, read_floor, name)
    later = context | {"ceiling": str(_LATER_CEILING)}
    _fail_a_deploy(stage, kept, later | {"broken": "yes"})
    later["tables"] = "Kept"
    assumed = "Update of the table that stays, then Delete of the other's"
    left = _deploy_changed(stage, later, "leaving_calls", assumed=assumed)
    stage.check("tables of the stack that a table has left", [kept], left)
    stage.settle("floor of the table that stays", _OPEN_FLOOR, read_floor, kept)
    assumed = "Update, then Delete of the old table's"
    (new,) = _deploy_changed(stage, later | {"key": "pk"}, "replacement_calls", assumed=assumed)
    stage.check("the table was replaced", True, new != kept)
    stage.settle("floor of the new table inside the window", _OPEN_FLOOR, read_floor, new)


def _deploy_changed(stage: Stage, context: dict[str, str], fact: str, *, assumed: str) -> list[TargetName]:
    """Deploy without a table that was there; return the tables, and measure which custom resources are called."""
    # so that the calls of custom resources of the step before are of an earlier time
    stage.place.let_pass(MINUTE)
    began = stage.now()
    names = stage.deploy("StackOrder", context)
    stage.check("status after a deploy", "UPDATE_COMPLETE", stage.cdk.status("StackOrder"))
    stage.check("deletions that failed", set(), _failed_deletions(stage))
    stage.measure(fact, _calls(stage, began, "Update Floors", "Delete Floors", "Delete Aftermath"), assumed=assumed)
    return names


def _fail_a_deploy(stage: Stage, kept: TargetName, context: dict[str, str]) -> None:
    # so that the calls of custom resources of the step before are of an earlier time
    stage.place.let_pass(MINUTE)
    began = stage.now()
    with LowestFloor(stage.place, kept, _OPEN_FLOOR).watching() as lowest:
        try:
            stage.deploy("StackOrder", context)
        except CdkError:
            stage.tell("the deploy failed, as it was to")
    stage.check("status after a deploy that fails", "UPDATE_ROLLBACK_COMPLETE", stage.cdk.status("StackOrder"))
    bounds = (_OPEN_FLOOR, _CEILING)
    stage.settle("bounds after a deploy that failed inside the window", bounds, read_bounds, kept, _SOON)
    stage.measure("rollback_lowest_floor", lowest.floor, assumed=f"{FLOOR}: the target's base floor")
    stage.measure("rollback_low_seconds", lowest.seconds, assumed="until Aftermath")
    calls = _calls(stage, began, *["Update Aftermath"] * 3)
    stage.measure("rollback_calls", calls, assumed="Update Aftermath: in the deploy, in the rollback, after it")


def _calls(stage: Stage, since: datetime, *expected: str) -> str:
    """The calls of custom resources since then, once those *expected* are in the log or two minutes have passed."""
    calls: list[str] = []

    def are_there() -> bool:
        logs = stage.place.client("logs").get_paginator("filter_log_events")
        events = [
            event
            for group in stage.cdk.names_of_type("StackOrder", "AWS::Logs::LogGroup")
            for page in logs.paginate(logGroupName=group, startTime=int(since.timestamp() * 1000))
            for event in page["events"]
        ]
        calls[:] = [
            f"{call[1]} {call[2]}"
            for event in sorted(events, key=lambda each: int(each["timestamp"]))
            if (call := _CALL.search(event["message"]))
        ]
        return not Counter(expected) - Counter(calls)

    stage.seconds_until(are_there, _LOGGED_WITHIN, _LOOKS_EVERY)
    return ", ".join(calls) or "none"


def _failed_deletions(stage: Stage) -> set[str]:
    pages = stage.place.client("cloudformation").get_paginator("describe_stack_events")
    return {
        str(event["LogicalResourceId"])
        for page in pages.paginate(StackName=stage.cdk.full_name("StackOrder"))
        for event in page["StackEvents"]
        if event.get("ResourceStatus") == "DELETE_FAILED"
    }
