"""A global table in two regions: what a floor that is registered in one does to the writes of the other."""

from __future__ import annotations

from typing import Final

from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import REPLICA_CEILING, REPLICA_FLOOR, read_floor, read_units, register
from highwater.core import Dimension
from highwater.core.names import TargetName

_RAISED: Final = 25
_WITHIN: Final = 10 * MINUTE
# In which the other region would follow
_PATIENCE: Final = 5 * MINUTE


@part(minutes=25, units=2 * (REPLICA_CEILING + 1))
def replicas(stage: Stage) -> None:
    """A floor registered in one region of a global table, and the writes of the other."""
    there = stage.place.elsewhere()
    stage.deploy("Replicas", {"elsewhere": there.region})
    (table,) = stage.cdk.names_of_type("Replicas", "AWS::DynamoDB::GlobalTable")
    name = TargetName(table, None, Dimension.WRITE)
    stage.settle("floor after the deploy", REPLICA_FLOOR, read_floor, name)
    stage.check(f"floor in {there.region} after the deploy", REPLICA_FLOOR, read_floor(there, name))
    register(stage.place, name, _RAISED, REPLICA_CEILING)
    took = stage.settle("capacity after a raise of the floor", _RAISED, read_units, name, _WITHIN)
    stage.measure("replica_raise_seconds", took, assumed="35")
    stage.place.let_pass(_PATIENCE)
    stage.measure("replica_floor_elsewhere", read_floor(there, name), assumed=str(REPLICA_FLOOR))
    stage.measure("replica_units_elsewhere", read_units(there, name), assumed=str(REPLICA_FLOOR))
