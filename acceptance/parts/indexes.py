"""Indexes: what is refused while one is built, and what a deploy leaves that adds one and fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError

from acceptance.cdk import CdkError
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import INDEX, INDEX_KEY, INDEX_UNITS, read_resource, read_units, register
from highwater.core import Dimension, HighwaterError
from highwater.core.names import TargetName

_UNITS, _INDEX_FLOOR, _MOST = 10, 8, 150
_ITEMS: Final = 25
_BUILT_WITHIN, _TRIES_EVERY = 30 * MINUTE, MINUTE / 2
_FOLLOWS_WITHIN, _WITHIN = 3 * MINUTE, 10 * MINUTE
_ACCEPTED: Final = "accepted"
_STUCK, _ROLLED_BACK = "UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_COMPLETE"


# each try during the build adds a unit where it is accepted
@part(minutes=30, units=1 + _UNITS + int(_BUILT_WITHIN / _TRIES_EVERY) + 1 + 1 + _INDEX_FLOOR)
def index_build(stage: Stage) -> None:
    """An index is built, and what is refused meanwhile."""
    (table,) = stage.deploy("IndexBuild", {"units": str(_UNITS)})
    index = TargetName(table.table, INDEX, Dimension.WRITE)
    dynamodb = stage.place.client("dynamodb")
    _create_index(dynamodb, table.table)
    registered = _words_of(register, stage.place, index, _INDEX_FLOOR, _MOST)
    answers, states = list[str](), set[str]()

    def is_built() -> bool:
        if read_resource(stage.place, table.table, INDEX)["IndexStatus"] == "ACTIVE":
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
    _put_items(dynamodb, table)
    index = {
        "IndexName": INDEX,
        "KeySchema": [{"AttributeName": INDEX_KEY, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": INDEX_UNITS},
    }
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("id", INDEX_KEY)],
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )


def _put_items(dynamodb: Any, table: str) -> None:
    for number in range(_ITEMS):
        item = {"id": {"S": f"item-{number}"}, INDEX_KEY: {"S": f"visitor-{number % 7}"}}
        dynamodb.put_item(TableName=table, Item=item)


def _see_it_follow(stage: Stage, index: TargetName) -> None:
    def has_followed() -> bool:
        return read_units(stage.place, index) >= _INDEX_FLOOR

    alone = stage.seconds_until(has_followed, _FOLLOWS_WITHIN)
    stage.measure("index_floor_applies_by_itself", "no" if alone is None else "yes", assumed="no")
    register(stage.place, index, _INDEX_FLOOR, _MOST)
    again = stage.seconds_until(has_followed, _WITHIN)
    stage.check("capacity of the new index once its floor is registered again", True, again is not None)


@part(minutes=40, units=1 + _UNITS + 1 + INDEX_UNITS)
def failed_index(stage: Stage) -> None:
    """A deploy that adds an index and fails, what is left of it, and the way back."""
    context = {"units": str(_UNITS), "index": "no"}
    (table,) = stage.deploy("FailedIndex", context)
    # an index of an empty table may be there before the deploy fails
    _put_items(stage.place.client("dynamodb"), table.table)
    try:
        stage.deploy("FailedIndex", context | {"index": "yes"})
    except CdkError:
        stage.tell("the deploy failed, as it was to")
    stage.measure("failed_index_stack", stage.cdk.status("FailedIndex"), assumed=f"{_STUCK}; or {_ROLLED_BACK}")
    stage.measure("failed_index_left", _index_status(stage, table.table), assumed="CREATING; or none")
    took = _mend(stage, table.table)
    stage.check("index once a deploy that added it is mended", "none", _index_status(stage, table.table))
    stage.measure("failed_index_mended_seconds", took, assumed="720; or 0, where nothing is left")


def _index_status(stage: Stage, table: str) -> str:
    indexes = read_resource(stage.place, table, None).get("GlobalSecondaryIndexes", ())
    return next((str(each["IndexStatus"]) for each in indexes if each["IndexName"] == INDEX), "none")


def _mend(stage: Stage, table: str) -> int:
    """Delete the index once it is built, and continue the rollback; return the seconds.

    Raises `HighwaterError` with the commands that do the same if that fails.
    """
    began, stack, said = stage.now(), stage.cdk.full_name("FailedIndex"), _ACCEPTED
    delete: Any = {"TableName": table, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": INDEX}}]}
    with stage.busy("the index is built, and deleted"):
        stage.seconds_until(lambda: _index_status(stage, table) in ("ACTIVE", "none"), _BUILT_WITHIN, _TRIES_EVERY)
        if _index_status(stage, table) != "none":
            said = _words_of(stage.place.client("dynamodb").update_table, **delete)
        is_gone = stage.seconds_until(lambda: _index_status(stage, table) == "none", _WITHIN, _TRIES_EVERY) is not None
    if is_gone and stage.cdk.status("FailedIndex") == _STUCK:
        said = _words_of(stage.place.client("cloudformation").continue_update_rollback, StackName=stack)
    if is_gone and stage.seconds_until(lambda: stage.cdk.status("FailedIndex") == _ROLLED_BACK, _WITHIN) is not None:
        return round((stage.now() - began).total_seconds())
    region = stage.place.region
    raise HighwaterError(
        f"stack {stack} is {stage.cdk.status('FailedIndex')} and index {INDEX} of {table} is "
        f"{_index_status(stage, table)} after {(stage.now() - began) // MINUTE} minutes: {said}; mend it with: "
        f"aws dynamodb update-table --region {region} --table-name {table} --global-secondary-index-updates "
        f"""'[{{"Delete":{{"IndexName":"{INDEX}"}}}}]'; """
        f"aws cloudformation continue-update-rollback --region {region} --stack-name {stack}; "
        f"aws cloudformation delete-stack --region {region} --stack-name {stack}"
    )
