"""CloudFormation's order: a deploy that fails inside an open window, a table that leaves its stack, one replaced."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from acceptance.cdk import App, CdkError
from acceptance.deployed import Deployed, names_of_type, read_state
from acceptance.lowest import LowestFloor
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater.core.names import TargetName

_APP: Final = App("acceptance/parts/stack_order_app.py", "StackOrder")
_BOTH, _ONE = "Kept+Leaving", "Kept"
_FLOOR, _CEILING, _LATER_CEILING = 40, 100, 120
_SOON: Final = timedelta(minutes=5)
_LOGGED_WITHIN, _LOOKS_EVERY = timedelta(minutes=2), timedelta(seconds=10)


def _context(stage: Stage, **changed: str) -> dict[str, str]:
    opens, closes = stage.now() - timedelta(hours=1), stage.now() + timedelta(hours=12)
    given = {"tables": _BOTH, "key": "id", "ceiling": str(_CEILING), "broken": "no"}
    return given | {"opens": f"{opens:%Y-%m-%dT%H:%M}", "closes": f"{closes:%Y-%m-%dT%H:%M}"} | changed


def _run(stage: Stage) -> None:
    context = _context(stage)
    tables = stage.deploy(_APP, context)
    kept, leaving = (_target(table) for table in sorted(tables, key=_logical_order))
    for name in (kept, leaving):
        stage.check(f"floor of {name.resource_id} inside the window", _FLOOR, read_state(stage.place, name).floor)
    log = _CallLog(stage)
    _fail_a_deploy(stage, kept, context, log)
    context |= {"tables": _ONE, "ceiling": str(_LATER_CEILING)}
    stage.deploy(_APP, context)
    _see_it_gone(stage, kept, leaving, log)
    (replaced,) = stage.deploy(_APP, context | {"key": "pk"})
    _see_it_replaced(stage, _target(replaced), kept, log)


def _fail_a_deploy(stage: Stage, kept: TargetName, context: dict[str, str], log: _CallLog) -> None:
    lowest = LowestFloor(stage, kept, _FLOOR)
    with lowest.watching():
        try:
            stage.deploy(_APP, context | {"broken": "yes", "ceiling": str(_LATER_CEILING)})
        except CdkError:
            stage.tell("the deploy failed, as it was to")
    stage.check("status of the stack after a deploy that fails", "UPDATE_ROLLBACK_COMPLETE", _status(stage))
    late = stage.seconds_until(lambda: read_state(stage.place, kept).floor == _FLOOR, _SOON, "the window's floor")
    state = read_state(stage.place, kept)
    stage.check("floor after a deploy that failed inside the window", _FLOOR, state.floor)
    stage.check("ceiling after a deploy that failed", _CEILING, state.ceiling)
    for name, value, unit, question, assumed in (
        (
            "rollback_calls",
            log.new(*["Update Aftermath"] * 3),
            "",
            "custom resources called by a deploy that fails:",
            "Update Aftermath: in the deploy, in the rollback, after it",
        ),
        ("rollback_lowest_floor", lowest.floor, "units", "lowest floor meanwhile:", "10: the target's base floor"),
        ("rollback_low_seconds", lowest.seconds, "s", "seconds for which it was too low:", "until Aftermath"),
        ("rollback_late_seconds", late, "s", "seconds from the rollback's end to the window's floor:", "0 s"),
    ):
        stage.measure(name, value, unit, question=question, assumed=assumed)


def _see_it_gone(stage: Stage, kept: TargetName, leaving: TargetName, log: _CallLog) -> None:
    stage.check("status of the stack that a table has left", "UPDATE_COMPLETE", _status(stage))
    stage.check("deletions that failed", "none", _failed_deletions(stage))
    stage.check("the table that left is there", False, _is_there(stage, leaving.table))
    stage.check("floor of the table that stays", _FLOOR, read_state(stage.place, kept).floor)
    stage.measure(
        "leaving_calls",
        log.new("Update Floors", "Delete Floors", "Delete Aftermath"),
        question="custom resources called when a table leaves its stack:",
        assumed="Update of the table that stays, then Delete of the other's",
    )


def _see_it_replaced(stage: Stage, new: TargetName, old: TargetName, log: _CallLog) -> None:
    stage.check("the table was replaced", True, new.table != old.table)
    stage.check("status of the stack whose table was replaced", "UPDATE_COMPLETE", _status(stage))
    stage.check("deletions that failed after the replacement", "none", _failed_deletions(stage))
    stage.check("floor of the new table inside the window", _FLOOR, read_state(stage.place, new).floor)
    calls = log.new("Update Floors", "Delete Floors", "Delete Aftermath")
    stage.measure(
        "replacement_calls",
        calls,
        question="custom resources called when a table is replaced:",
        assumed="Update, then Delete of the old table's",
    )
    stage.measure(
        "replacement_deletes",
        "yes" if "Delete" in calls else "no",
        question="a custom resource is told Delete for the table that was replaced:",
        assumed="yes",
    )


class _CallLog:
    """The calls of custom resources, in the order in which the stack's function has logged them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._lines_before: list[str] = []
        self._lines_before = self._settled(("Create Floors",) * len(_BOTH.split("+")))

    def new(self, *expected: str) -> str:
        """The calls since the last time, such as `Update Aftermath`.

        CloudWatch has a line some time after it was logged. So this looks until the calls *expected* are there and the
        next look shows no other, for two minutes at the most.
        """
        lines = self._settled(expected)
        fresh, self._lines_before = lines[len(self._lines_before) :], lines
        return ", ".join(fresh) or "none"

    def _settled(self, expected: tuple[str, ...]) -> list[str]:
        seen: list[str] = []

        def is_settled() -> bool:
            nonlocal seen
            before, seen = seen, list(self._lines())
            fresh = seen[len(self._lines_before) :]
            return seen == before and not Counter(expected) - Counter(fresh)

        self._stage.seconds_until(is_settled, _LOGGED_WITHIN, "the log", _LOOKS_EVERY)
        return seen

    def _lines(self) -> Iterator[str]:
        stage = self._stage
        logs = stage.place.client("logs").get_paginator("filter_log_events")
        events: list[Any] = [
            event
            for group in names_of_type(stage.place, stage.cdk.stack_name(_APP), "AWS::Logs::LogGroup")
            for page in logs.paginate(logGroupName=group)
            for event in page["events"]
        ]
        for event in sorted(events, key=lambda each: int(each["timestamp"])):
            text = str(event["message"])
            if '{"request":' not in text:
                continue
            call = json.loads(text[text.index("{") :])
            kind = next(kind for kind in ("Aftermath", "Floors", "Marks", "") if kind in call["resource"])
            yield f"{call['request']} {kind or call['resource']}"


def _status(stage: Stage) -> str:
    cloudformation = stage.place.client("cloudformation")
    return str(cloudformation.describe_stacks(StackName=stage.cdk.stack_name(_APP))["Stacks"][0]["StackStatus"])


def _failed_deletions(stage: Stage) -> str:
    pages = (
        stage.place.client("cloudformation")
        .get_paginator("describe_stack_events")
        .paginate(StackName=stage.cdk.stack_name(_APP))
    )
    events = [event for page in pages for event in page["StackEvents"]]
    failed = {event["LogicalResourceId"] for event in events if event.get("ResourceStatus") == "DELETE_FAILED"}
    return ", ".join(sorted(failed)) or "none"


def _is_there(stage: Stage, table: str) -> bool:
    dynamodb = stage.place.client("dynamodb")
    try:
        dynamodb.describe_table(TableName=table)
    except dynamodb.exceptions.ResourceNotFoundException:
        return False
    return True


def _target(table: Deployed) -> TargetName:
    return TargetName(table.table, None, Dimension.WRITE)


def _logical_order(table: Deployed) -> bool:
    """The table that stays comes first; names are made from the constructs' ids."""
    return "Leaving" in table.table


STACK_ORDER: Final = Part(
    name="stack_order",
    title="CloudFormation's order: a deploy that fails, a table that leaves, one replaced",
    minutes=30,
    app=_APP,
    context=_context,
    run=_run,
)
