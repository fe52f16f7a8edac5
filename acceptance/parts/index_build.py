"""An index that is added to a table: how long it takes, and which changes DynamoDB refuses meanwhile."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from acceptance.bare_table import index_request, make_bare_table
from acceptance.deployed import read_resource, read_state, target_request
from acceptance.parts.part import Part
from acceptance.refusal import ACCEPTED, words_of
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater.core.names import TargetName

_MINUTE: Final = timedelta(minutes=1)
_INDEX: Final = "by-visitor"
_UNITS, _INDEX_UNITS, _INDEX_FLOOR = 10, 5, 8
_ITEMS: Final = 250
_BATCH: Final = 25
_MOST: Final = timedelta(minutes=30)
_POLL: Final = timedelta(seconds=15)
_FOLLOWS_WITHIN: Final = timedelta(minutes=3)


class _Changes:
    """Tries to raise the table's capacity by a unit again and again; notes when that is refused, and with what."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._units = _UNITS
        self.refused = self.accepted = 0
        self.words = "nothing"
        self.table_states: set[str] = set()

    def try_one(self) -> None:
        self.table_states.add(self._dynamodb.describe_table(TableName=self._table)["Table"]["TableStatus"])
        wanted = {"ReadCapacityUnits": 1, "WriteCapacityUnits": self._units + 1}
        words = words_of(partial(self._dynamodb.update_table, TableName=self._table, ProvisionedThroughput=wanted))
        if words == ACCEPTED:
            self._units += 1
            self.accepted += 1
        else:
            self.refused += 1
            self.words = words


def _run(stage: Stage) -> None:
    table = make_bare_table(stage, "index-build", units=(1, _UNITS))
    dynamodb = stage.place.client("dynamodb")
    _fill(dynamodb, table)
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": _INDEX_UNITS}
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("id", "visitor")],
        GlobalSecondaryIndexUpdates=[{"Create": index_request(_INDEX, "visitor", throughput)}],
    )
    registered = _register(stage, TargetName(table, _INDEX, Dimension.WRITE))
    _try_too_early(stage, dynamodb, table)
    changes = _Changes(dynamodb, table)

    def is_built() -> bool:
        if str(read_resource(stage.place, table, _INDEX)["IndexStatus"]) == "ACTIVE":
            return True
        changes.try_one()
        return False

    took = stage.seconds_until(is_built, _MOST, "the index is built", _POLL)
    stage.check("index is built within half an hour", True, took is not None)
    for name, value, unit, question, assumed in (
        ("index_build_seconds", took, "s", "seconds until an index of few items is active:", "720 s"),
        ("index_build_register", registered, "", "registering a target of an index that is built:", "accepted"),
        (
            "index_build_refusals",
            f"{changes.refused} refused, {changes.accepted} accepted",
            "",
            "changes of the table's capacity meanwhile:",
            "all refused",
        ),
        ("index_build_words", changes.words, "", "refused with:", "ResourceInUseException"),
        (
            "index_build_table_status",
            ", ".join(sorted(changes.table_states)),
            "",
            "the table's own status meanwhile:",
            "ACTIVE or UPDATING",
        ),
    ):
        stage.measure(name, value, unit, question=question, assumed=assumed)
    _see_it_follow(stage, TargetName(table, _INDEX, Dimension.WRITE))


def _try_too_early(stage: Stage, dynamodb: Any, table: str) -> None:
    """Read the index and create a second one while the first is built; record in which words that is refused."""
    create = {"Create": index_request("by-day", "day", {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})}
    keys = [{"AttributeName": key, "AttributeType": "S"} for key in ("id", "visitor", "day")]
    for name, call, question, assumed in (
        (
            "refused_early_read",
            partial(
                dynamodb.query,
                TableName=table,
                IndexName=_INDEX,
                KeyConditionExpression="visitor = :v",
                ExpressionAttributeValues={":v": {"S": "visitor-1"}},
            ),
            "a query of an index that is built:",
            f"ValidationException: Cannot read from backfilling global secondary index: {_INDEX}",
        ),
        (
            "refused_second_index",
            partial(
                dynamodb.update_table,
                TableName=table,
                AttributeDefinitions=keys,
                GlobalSecondaryIndexUpdates=[create],
            ),
            "a second index while one is built:",
            "LimitExceededException: Subscriber limit exceeded: Only 1 online index can be created or deleted "
            "simultaneously per table",
        ),
    ):
        stage.measure(name, words_of(call), question=question, assumed=assumed)


def _fill(dynamodb: Any, table: str) -> None:
    """Write some items, within the capacity that the table begins with."""
    items = [{"id": {"S": f"item-{number}"}, "visitor": {"S": f"visitor-{number % 7}"}} for number in range(_ITEMS)]
    for first in range(0, _ITEMS, _BATCH):
        left: Any = {table: [{"PutRequest": {"Item": item}} for item in items[first : first + _BATCH]]}
        while left:
            left = dynamodb.batch_write_item(RequestItems=left)["UnprocessedItems"]


def _register(stage: Stage, name: TargetName) -> str:
    register = stage.place.client("application-autoscaling").register_scalable_target
    return words_of(partial(register, **target_request(name), MinCapacity=_INDEX_FLOOR, MaxCapacity=4 * _INDEX_FLOOR))


def _see_it_follow(stage: Stage, name: TargetName) -> None:
    def has_followed() -> bool:
        return read_state(stage.place, name).units >= _INDEX_FLOOR

    alone = stage.seconds_until(has_followed, _FOLLOWS_WITHIN, "the index's floor applies by itself")
    stage.measure(
        "index_floor_applies_by_itself",
        "yes" if alone is not None else "no",
        question="a floor that was registered during the build applies after it by itself:",
        assumed="no",
    )
    _register(stage, name)
    again = stage.seconds_until(has_followed, 5 * _MINUTE, "the index's floor, registered again")
    stage.check("capacity of the new index once its floor is registered again", True, again is not None)


INDEX_BUILD: Final = Part(
    name="index_build",
    title="an index is built, and what is refused meanwhile",
    minutes=30,
    # each try during the build adds a unit where it is accepted
    bare_units=1 + _UNITS + int(_MOST / _POLL) + 1 + _INDEX_FLOOR,
    run=_run,
)
