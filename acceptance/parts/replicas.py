"""A global table in two regions: what a floor that is registered in one does to the writes of the other."""

from __future__ import annotations

from typing import Final

from acceptance.stage import MINUTE, Part, Stage
from acceptance.tables import REPLICA_CEILING, REPLICA_FLOOR, read_state, register
from highwater.core import Dimension
from highwater.core.names import TargetName

_RAISED: Final = 25
_WITHIN: Final = 10 * MINUTE
# In which the other region would follow
_PATIENCE: Final = 5 * MINUTE


def _run_replicas(stage: Stage) -> None:
    there = stage.place.elsewhere()
    stage.deploy("Replicas", {"elsewhere": there.region})
    (table,) = stage.cdk.names_of_type("Replicas", "AWS::DynamoDB::GlobalTable")
    name = TargetName(table, None, Dimension.WRITE)
    for place in (stage.place, there):
        stage.check(f"floor in {place.region} after the deploy", REPLICA_FLOOR, read_state(place, name).floor)
    register(stage.place, name, _RAISED, REPLICA_CEILING)
    took = stage.seconds_until(lambda: read_state(stage.place, name).units == _RAISED, _WITHIN)
    stage.measure("replica_raise_seconds", took, assumed="35")
    stage.place.let_pass(_PATIENCE)
    state = read_state(there, name)
    stage.measure("replica_floor_elsewhere", state.floor, assumed=str(REPLICA_FLOOR))
    stage.measure("replica_units_elsewhere", state.units, assumed=str(REPLICA_FLOOR))


REPLICAS: Final = Part(
    name="replicas",
    title="a floor registered in one region of a global table, and the writes of the other",
    minutes=25,
    units=2 * (REPLICA_CEILING + 1),
    run=_run_replicas,
)
