"""Raises of bare tables: of a registered minimum, also in one of two regions, and of capacity as an index is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError

from acceptance.sending import check_sent, load_of, writes
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import REPLICA_CEILING, REPLICA_FLOOR, read_floor, read_resource, read_units, register
from highwater.core import Dimension
from highwater.core.names import TargetName

_WITHIN: Final = 10 * MINUTE
_QUIET, _LOADED, _MOST = (10, 30), (30, 90), 150
# Throttled now and then at 30 units, and below 70 % of 90; for a minute before the raise, and for a while after it
_LEVELS: Final = ((4, 38),)

_INDEX: Final = "by-visitor"
_UNITS, _INDEX_UNITS, _INDEX_FLOOR = 10, 5, 8
_ITEMS: Final = 25
_BUILT_WITHIN, _TRIES_EVERY = 30 * MINUTE, MINUTE / 2
_FOLLOWS_WITHIN: Final = 3 * MINUTE
_ACCEPTED: Final = "accepted"
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


# each try during the build adds a unit where it is accepted
@part(minutes=30, units=1 + _UNITS + int(_BUILT_WITHIN / _TRIES_EVERY) + 1 + 1 + _INDEX_FLOOR)
def index_build(stage: Stage) -> None:
    """An index is built, and what is refused meanwhile."""
    (table,) = stage.deploy("IndexBuild", {"units": str(_UNITS)})
    index = TargetName(table.table, _INDEX, Dimension.WRITE)
    dynamodb = stage.place.client("dynamodb")
    _create_index(dynamodb, table.table)
    registered = _words_of(register, stage.place, index, _INDEX_FLOOR, _MOST)
    answers, states = list[str](), set[str]()

    def is_built() -> bool:
        if read_resource(stage.place, table.table, _INDEX)["IndexStatus"] == "ACTIVE":
            return True
        states.add(str(read_resource(stage.place, table.table, None)["TableStatus"]))
        units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": _UNITS + answers.count(_ACCEPTED) + 1}
        answers.append(_words_of(dynamodb.update_table, TableName=table.table, ProvisionedThroughput=units))
        return False

    took = stage.seconds_until(is_built, _BUILT_WITHIN, _TRIES_EVERY)
    stage.check("index is built within half an hour", True, took is not None)
    refusals = [answer for answer in answers if answer != _ACCEPTED]
    stage.measure("index_build_seconds", took, assumed="720")
    stage.measure("index_build_register", registered, assumed=_ACCEPTED)
    stage.measure("index_build_refusals", f"{len(refusals)} of {len(answers)}", assumed="all")
    stage.measure("index_build_words", refusals[-1] if refusals else None, assumed="ResourceInUseException")
    stage.measure("index_build_table_status", ", ".join(sorted(states)), assumed="ACTIVE or UPDATING")
    _see_it_follow(stage, index)


def _words_of(call: Callable[..., object], *arguments: Any, **more: Any) -> str:
    """Make a call; return code and message of its refusal, or `accepted`."""
    try:
        call(*arguments, **more)
    except ClientError as refused:
        error: Any = refused.response["Error"]
        return f"{error['Code']}: {error['Message']}"
    return _ACCEPTED


def _create_index(dynamodb: Any, table: str) -> None:
    """Create an index on a table that has some items."""
    for number in range(_ITEMS):
        item = {"id": {"S": f"item-{number}"}, "visitor": {"S": f"visitor-{number % 7}"}}
        dynamodb.put_item(TableName=table, Item=item)
    index = {
        "IndexName": _INDEX,
        "KeySchema": [{"AttributeName": "visitor", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": _INDEX_UNITS},
    }
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("id", "visitor")],
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )


def _see_it_follow(stage: Stage, index: TargetName) -> None:
    def has_followed() -> bool:
        return read_units(stage.place, index) >= _INDEX_FLOOR

    alone = stage.seconds_until(has_followed, _FOLLOWS_WITHIN)
    stage.measure("index_floor_applies_by_itself", "no" if alone is None else "yes", assumed="no")
    register(stage.place, index, _INDEX_FLOOR, _MOST)
    again = stage.seconds_until(has_followed, _WITHIN)
    stage.check("capacity of the new index once its floor is registered again", True, again is not None)


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
