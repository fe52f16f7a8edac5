"""Tables, indexes and alarms that a template names: what CloudFormation refuses and MiniStack takes as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from highwater_local import ministack
from highwater_local.index_names import index_name_refusal

Document = dict[str, Any]


class NamedResourceError(ValueError):
    """A resource cannot be created under the name that the template gives it."""


class NamedResources:
    """Refuses names of tables, indexes and alarms in stacks; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        for kind in (ministack.TABLE, ministack.GLOBAL_TABLE):
            ministack.wrap_resource_handler(kind, "create", partial(_checking, "TableName", _table_refusal))
            ministack.wrap_resource_handler(kind, "create", _creating_indexes)
            ministack.wrap_resource_handler(kind, "update", _updating_indexes)
        ministack.wrap_resource_handler(ministack.ALARM, "create", partial(_checking, "AlarmName", _alarm_refusal))


def _checking(
    member: str, refusal: Callable[[str], str | None], own: Callable[..., Any]
) -> Callable[[str, Document, str], Any]:
    def create(logical_id: str, properties: Document, stack: str) -> Any:
        name = properties.get(member)
        # names that the engine makes up are free and fit
        refused = refusal(name) if isinstance(name, str) else None
        if refused is not None:
            raise NamedResourceError(refused)
        return own(logical_id, properties, stack)

    return create


def _creating_indexes(own: Callable[..., Any]) -> Callable[..., Any]:
    def create(logical_id: str, properties: Document, stack: str) -> Any:
        _check_indexes(properties)
        return own(logical_id, properties, stack)

    return create


def _updating_indexes(own: Callable[..., Any]) -> Callable[..., Any]:
    def update(name: str, old: Document, new: Document, *rest: Any) -> Any:
        before = [index["IndexName"] for index in old.get("GlobalSecondaryIndexes") or []]
        added = [index for index in new.get("GlobalSecondaryIndexes") or [] if index["IndexName"] not in before]
        _check_indexes({"GlobalSecondaryIndexUpdates": [{"Create": index} for index in added]})
        return own(name, old, new, *rest)

    return update


def _check_indexes(request: Document) -> None:
    refusal = index_name_refusal(request)
    if refusal is not None:
        raise NamedResourceError(f"{refusal.message} (Service: DynamoDb, Status Code: 400, {refusal.code})")


def _table_refusal(name: str) -> str | None:
    wrong = ministack.refuse_table_name(name)
    if wrong is not None:
        answer = json.loads(wrong[2])
        return f"{answer['message']} (Service: DynamoDb, Status Code: 400, {answer['__type'].rpartition('#')[2]})"
    return _exists(name) if ministack.find_table(name) is not None else None


def _alarm_refusal(name: str) -> str | None:
    return _exists(name) if name in ministack.alarms_by_name() else None


def _exists(name: str) -> str:
    return f"{name} already exists"
