"""Raises of bare tables: of a registered minimum, in one region and in one of two."""

from __future__ import annotations

from typing import Final

from acceptance.sending import check_sent, load_of, writes
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import REPLICA_CEILING, REPLICA_FLOOR, read_floor, read_units, register
from highwater.core import Dimension
from highwater.core.names import TargetName

_WITHIN: Final = 10 * MINUTE
_QUIET, _LOADED, _MOST = (10, 30), (30, 90), 150
# Throttled now and then at 30 units, and below 70 % of 90; for a minute before the raise, and for a while after it
_LEVELS: Final = ((4, 38),)

_REPLICA_RAISED: Final = 25
# In which the other region would follow
_PATIENCE: Final = 5 * MINUTE


@part(minutes=8, units=1 + _LOADED[1])
def raises(stage: Stage) -> None:
    """Seconds from a raised minimum to capacity, quiet and under load."""
    (name,) = stage.deploy("Raises", {"units": str(_QUIET[0])})
    register(stage.place, name, _QUIET[0], _MOST)
    _raise(stage, name, _QUIET[1], "quiet")

    def raise_it() -> None:
        stage.place.let_pass(MINUTE)
        _raise(stage, name, _LOADED[1], "loaded")

    load = load_of(stage, name.table, writes(_LEVELS, stage.now()))
    report, _ = stage.place.side_by_side([load], raise_it)
    check_sent(stage, report, _LEVELS, "the table whose minimum is raised under load")


def _raise(stage: Stage, name: TargetName, units: int, kind: str) -> None:
    register(stage.place, name, units, _MOST)
    took = stage.settle(f"capacity after a raise of the minimum, {kind}", units, read_units, name, _WITHIN)
    stage.measure(f"raise_{kind}_shown_seconds", took, assumed="2")


@part(minutes=25, units=2 * (REPLICA_CEILING + 1))
def replicas(stage: Stage) -> None:
    """A floor registered in one region of a global table, and the writes of the other."""
    there = stage.place.elsewhere()
    stage.deploy("Replicas", {"elsewhere": there.region})
    (table,) = stage.cdk.names_of_type("Replicas", "AWS::DynamoDB::GlobalTable")
    name = TargetName(table, None, Dimension.WRITE)
    stage.settle("floor after the deploy", REPLICA_FLOOR, read_floor, name)
    stage.check(f"floor in {there.region} after the deploy", REPLICA_FLOOR, read_floor(there, name))
    register(stage.place, name, _REPLICA_RAISED, REPLICA_CEILING)
    took = stage.settle("capacity after a raise of the floor", _REPLICA_RAISED, read_units, name, _WITHIN)
    stage.measure("replica_raise_seconds", took, assumed="2")
    stage.place.let_pass(_PATIENCE)
    stage.measure("replica_floor_elsewhere", read_floor(there, name), assumed=str(REPLICA_FLOOR))
    stage.measure("replica_units_elsewhere", read_units(there, name), assumed=str(REPLICA_FLOOR))
