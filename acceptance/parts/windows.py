"""A window: it opens and closes in time, capacity follows, and a deploy while it is open does not lose its floor."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from acceptance.cdk import App
from acceptance.deployed import read_state
from acceptance.lowest import LowestFloor
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater.core.names import TargetName

_APP: Final = App("acceptance/parts/windows_app.py", "Windows")
_MINUTE: Final = timedelta(minutes=1)
# The first deploy must have ended when the window opens, and the second one while it is open
_OPENS_AFTER, _IS_OPEN_FOR = 15 * _MINUTE, 20 * _MINUTE
_BASE, _FLOOR, _LATER_FLOOR = 10, 40, 45
_CEILING, _LATER_CEILING = 100, 120


def _times(stage: Stage) -> tuple[datetime, datetime]:
    opens = (stage.now() + _OPENS_AFTER).replace(second=0, microsecond=0)
    return opens, opens + _IS_OPEN_FOR


def _context(opens: datetime, closes: datetime, floor: int, ceiling: int) -> dict[str, str]:
    times = {"opens": f"{opens:%Y-%m-%dT%H:%M}", "closes": f"{closes:%Y-%m-%dT%H:%M}"}
    return times | {"floor": str(floor), "ceiling": str(ceiling)}


def _run(stage: Stage) -> None:
    opens, closes = _times(stage)
    (table,) = stage.deploy(_APP, _context(opens, closes, _FLOOR, _CEILING))
    name = TargetName(table.table, None, Dimension.WRITE)
    stage.check("floor before the window", _BASE, read_state(stage.place, name).floor)
    stage.wait_until(opens, "the window opens")
    _see_it_open(stage, name)
    _deploy_while_open(stage, name, _context(opens, closes, _LATER_FLOOR, _LATER_CEILING))
    stage.wait_until(closes, "the window closes")
    closing = stage.seconds_until(lambda: read_state(stage.place, name).floor == _BASE, 5 * _MINUTE, "base floor")
    stage.check("floor after the window", _BASE, read_state(stage.place, name).floor)
    stage.measure(
        "window_close_seconds", closing, "s", question="seconds from a window's end to its base floor:", assumed="10 s"
    )
    down = stage.seconds_until(lambda: read_state(stage.place, name).units == _BASE, 30 * _MINUTE, "base capacity")
    stage.check("capacity without traffic after the window", _BASE, read_state(stage.place, name).units)
    stage.measure(
        "window_close_capacity_seconds",
        down,
        "s",
        question="seconds from the base floor until target tracking lowers unused capacity:",
        assumed="the next evaluation, as the low alarm is in ALARM",
    )


def _see_it_open(stage: Stage, name: TargetName) -> None:
    late = stage.seconds_until(lambda: read_state(stage.place, name).floor == _FLOOR, 5 * _MINUTE, "the window's floor")
    stage.check("floor in the window", _FLOOR, read_state(stage.place, name).floor)
    stage.measure(
        "window_open_seconds", late, "s", question="seconds from a window's start to its floor:", assumed="10 s"
    )

    def is_there() -> bool:
        state = read_state(stage.place, name)
        return state.is_active and state.units >= _FLOOR

    up = stage.seconds_until(is_there, 5 * _MINUTE, "the window's capacity")
    stage.check("capacity in the window reaches its floor", True, up is not None)
    stage.measure(
        "window_capacity_seconds", up, "s", question="seconds from the floor to its capacity:", assumed="35 s"
    )


def _deploy_while_open(stage: Stage, name: TargetName, context: dict[str, str]) -> None:
    lowest = LowestFloor(stage, name, _FLOOR)
    with lowest.watching():
        stage.deploy(_APP, context)
    state = read_state(stage.place, name)
    stage.check("floor after a deploy in the open window", _LATER_FLOOR, state.floor)
    stage.check("ceiling after a deploy in the open window", _LATER_CEILING, state.ceiling)
    stage.measure(
        "redeploy_lowest_floor",
        lowest.floor,
        "units",
        question="lowest floor while a deploy changes target and actions in an open window:",
        assumed=f"{_BASE}: the update of the target sets its base floor",
    )
    stage.measure(
        "redeploy_low_floor_seconds",
        lowest.seconds,
        "s",
        question="seconds for which the floor was too low during that deploy:",
        assumed="the time between two resources of a deploy",
    )


def _first_context(stage: Stage) -> dict[str, str]:
    return _context(*_times(stage), _FLOOR, _LATER_CEILING)


WINDOWS: Final = Part(
    name="windows",
    title="a window opens, survives a deploy, and closes",
    minutes=55,
    app=_APP,
    context=_first_context,
    run=_run,
)
