"""Target tracking's decrease: which of the low alarm's fifteen minutes it is sized by."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from acceptance.bare_table import make_bare_table, track_writes
from acceptance.deployed import read_state
from acceptance.parts.part import Part
from acceptance.sending import check_sent, load_of, sending
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater_lab.traffic import Stream, Traffic

_MINUTE: Final = timedelta(minutes=1)
_TARGET_PERCENT: Final = 70
_FLOOR, _UNITS = 10, 300
# 200 writes a second are between both alarms of 300 units at 70 %, which are at 150 and 210. The three levels after
# that are below the low alarm. Its fifteen minutes begin with them
_LEVELS: Final = ((3, 200), (2, 60), (4, 90), (18, 27))
_LOW_ALARM_MINUTES: Final = 15
_TOLERANCE: Final = 0.1


def _sized_by() -> dict[int, str]:
    """The units to which each way of reading the fifteen minutes would lower the capacity."""
    minutes = [rate for count, rate in _LEVELS[1:] for _ in range(count)][:_LOW_ALARM_MINUTES]
    ways = {"first": minutes[0], "highest": max(minutes), "last": minutes[-1]}
    units = {-(-rate * 100 // _TARGET_PERCENT): f"the {way} of the fifteen minutes" for way, rate in ways.items()}
    return units | {-(-sum(minutes) * 100 // (len(minutes) * _TARGET_PERCENT)): "the average of the fifteen minutes"}


def _way_of(units: int) -> str:
    """The way that comes to these units; a request that slips into the next minute makes a unit or two."""
    ways = _sized_by()
    nearest = min(ways, key=lambda each: abs(each - units))
    return ways[nearest] if abs(nearest - units) <= nearest * _TOLERANCE else "something else"


def _run(stage: Stage) -> None:
    table = make_bare_table(stage, "scale-in", units=(1, _UNITS))
    name = track_writes(stage, table, floor=_FLOOR, ceiling=_UNITS, target_percent=_TARGET_PERCENT)
    counts = [rate * 60.0 for minutes, rate in _LEVELS for _ in range(minutes)]
    traffic = Traffic.from_counts(
        "levels", {Stream(None, Dimension.WRITE): counts}, bin_seconds=60, start=_next_minute(stage)
    )
    length = len(counts) * _MINUTE

    def is_lowered() -> bool:
        return read_state(stage.place, name).units < _UNITS

    with sending(load_of(stage, table, traffic, threads=24, requests_per_second=200)) as (report,):
        lowered = stage.passed_until(is_lowered, length, "target tracking lowers the capacity")
        units = read_state(stage.place, name).units
        sent = report.result()
    check_sent(stage, sent, sum(counts), "the table that target tracking scales in")
    stage.check("capacity is lowered after fifteen minutes below the low alarm", True, lowered is not None)
    stage.measure(
        "scale_in_sized_by",
        f"{_way_of(units)}: {_UNITS} to {units} units",
        question="a decrease of target tracking is sized by:",
        assumed="the last of the fifteen minutes",
    )


def _next_minute(stage: Stage) -> datetime:
    at = stage.now().replace(second=0, microsecond=0) + _MINUTE
    stage.place.let_pass(at - stage.now())
    return at


SCALE_IN: Final = Part(
    name="scale_in",
    title="which minute a decrease of target tracking is sized by",
    minutes=30,
    bare_units=_UNITS + 1,
    run=_run,
)
