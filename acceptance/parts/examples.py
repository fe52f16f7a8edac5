"""The examples as they are: every floor, ceiling, schedule and high-water mark is the one that was declared."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from acceptance.bare_table import bare_table_name, make_bare_table
from acceptance.cdk import App
from acceptance.deployed import Deployed, read_resource, read_schedules, read_state
from acceptance.parts.part import Part
from acceptance.place import Place
from acceptance.stage import Stage
from highwater.core import bounds_at, compile_actions, marks_of
from highwater.core.names import TargetName

# A mark of 18,000 units may need partitions; 514 s is the longest that was measured by others
_MARK: Final = timedelta(minutes=20)
_CAPACITY: Final = timedelta(minutes=5)
_EVENTS: Final = "events"


def _example(name: str, stack: str, title: str) -> Part:
    app = App(f"examples/{name}/app.py", stack)

    def run(stage: Stage) -> None:
        for table in stage.deploy(app):
            check_table(stage, table)

    return Part(name=name, title=title, minutes=15, app=app, run=run)


def check_table(stage: Stage, table: Deployed) -> None:
    """Compare everything of one table with its plan."""
    for target in table.plan.targets():
        name = table.name_of(target)
        # a window may open between both looks at the clock
        before = bounds_at(target, stage.now())
        state = read_state(stage.place, name)
        planned = {(each.min, each.max) for each in (before, bounds_at(target, stage.now()))}
        bounds = (state.floor, state.ceiling)
        shown = bounds if bounds in planned else max(planned)
        stage.check(f"bounds of {target.label} after the deploy", shown, bounds)
        schedules = sorted(action.schedule for action in compile_actions(target))
        stage.check(f"schedules of {target.label}", schedules, read_schedules(stage.place, name))
        late = stage.seconds_until(partial(_has_its_floor, stage.place, name), _CAPACITY, f"capacity of {target.label}")
        stage.check(f"capacity of {target.label} reaches its floor", True, late is not None)
    _check_marks(stage, table)


def _has_its_floor(place: Place, name: TargetName) -> bool:
    state = read_state(place, name)
    return state.is_active and state.floor is not None and state.units >= state.floor


def _check_marks(stage: Stage, table: Deployed) -> None:
    wanted = {mark.index: (mark.read, mark.write) for mark in marks_of(table.plan) if mark.is_above_base}

    def marks() -> dict[str | None, tuple[int, int]]:
        resources = {index: read_resource(stage.place, table.table, index)["WarmThroughput"] for index in wanted}
        return {
            index: (warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"])
            for index, warm in resources.items()
            if warm.get("Status", "ACTIVE") == "ACTIVE"
        }

    if not wanted:
        return
    took = stage.seconds_until(
        lambda: marks() == wanted, _MARK, f"high-water marks of {table.table}", timedelta(seconds=15)
    )
    shown = {index or "table": units for index, units in marks().items()}
    stage.check("high-water marks, read and write", {index or "table": units for index, units in wanted.items()}, shown)
    if took is not None:
        most = max(units for pair in wanted.values() for units in pair)
        stage.measure(
            f"mark_{most}_seconds_after_deploy",
            took,
            "s",
            question=f"seconds from the deploy's end until marks of up to {most:,} units are active:",
            assumed="272 to 514 s from the call",
        )


def _run_existing_table(stage: Stage) -> None:
    make_bare_table(stage, _EVENTS, units=(6, 7), index="by-visitor")
    for deployed in stage.deploy(_EXISTING, _events(stage)):
        check_table(stage, deployed)


def _events(stage: Stage) -> dict[str, str]:
    return {"table": bare_table_name(stage, _EVENTS)}


_EXISTING: Final = App("examples/existing_table/app.py", "ExistingTable")
EXAMPLES: Final = (
    _example("bulk_load", "BulkLoad", "windows for a bulk load; a mark of 18,000 writes"),
    _example("indexes", "Indexes", "indexes that follow their table or differ from it"),
    _example("surges", "Surges", "scaler, alarms, dashboard"),
    Part(
        name="existing_table",
        title="a table that another owns, and its index",
        minutes=15,
        app=_EXISTING,
        context=_events,
        bare_units=26,
        run=_run_existing_table,
    ),
)
