"""A raised minimum: seconds until the capacity is there, on a quiet table and under load."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from acceptance.bare_table import make_bare_table
from acceptance.deployed import read_state, target_request
from acceptance.parts.part import Part
from acceptance.sending import check_sent, load_of, sending
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_lab.local.load import steady

_MINUTE: Final = timedelta(minutes=1)
_CEILING: Final = 300
_QUIET, _LOADED = (20, 60), (60, 180)
# Throttled now and then at 60 units, and below 70 % of 180
_WRITES_PER_SECOND: Final = 75
# The load goes on for a minute before the raise, and for a while after it
_BEFORE, _LOAD = _MINUTE, 4 * _MINUTE


def _run(stage: Stage) -> None:
    table = make_bare_table(stage, "raises", units=(1, _QUIET[0]))
    name = TargetName(table, None, Dimension.WRITE)
    autoscaling = stage.place.client("application-autoscaling")
    autoscaling.register_scalable_target(**target_request(name), MinCapacity=_QUIET[0], MaxCapacity=_CEILING)
    _measure(stage, name, _QUIET[1], "quiet", "without traffic")
    traffic = steady(0, _WRITES_PER_SECOND, _LOAD, stage.now())
    with sending(load_of(stage, table, traffic, threads=16)) as (report,):
        stage.place.let_pass(_BEFORE)
        _measure(stage, name, _LOADED[1], "loaded", f"under {_WRITES_PER_SECOND} writes/s")
        sent = report.result()
    check_sent(stage, sent, _WRITES_PER_SECOND * _LOAD.total_seconds(), "the table whose minimum is raised under load")


def _measure(stage: Stage, name: TargetName, units: int, kind: str, how: str) -> None:
    autoscaling = stage.place.client("application-autoscaling")
    autoscaling.register_scalable_target(**target_request(name), MinCapacity=units)
    began = stage.now()

    def is_shown() -> bool:
        return read_state(stage.place, name).units == units

    def is_done() -> bool:
        state = read_state(stage.place, name)
        return state.units == units and state.is_active

    shown = stage.passed_until(is_shown, 10 * _MINUTE, f"{units} units {how}")
    done = stage.passed_until(is_done, 10 * _MINUTE, f"{units} units {how}, table active")
    stage.check(f"capacity after a raise of the minimum {how}", units, read_state(stage.place, name).units)
    took = None if shown is None else round((shown - began).total_seconds(), 1)
    stage.measure(
        f"raise_{kind}_shown_seconds",
        took,
        "s",
        question=f"seconds from a raised minimum to capacity, {how}:",
        assumed="35 s",
    )
    took = None if done is None else round((done - began).total_seconds(), 1)
    stage.measure(
        f"raise_{kind}_active_seconds",
        took,
        "s",
        question=f"seconds until the table is active again, {how}:",
        assumed="35 s",
    )


RAISES: Final = Part(
    name="raises",
    title="seconds from a raised minimum to capacity, quiet and under load",
    minutes=8,
    bare_units=_LOADED[1] + 1,
    run=_run,
)
