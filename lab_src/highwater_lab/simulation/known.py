"""What is known of a table beside its capacity, as code that declares the table has to repeat it: name and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_TYPES: Final = ("S", "N", "B")
_PROJECTIONS: Final = ("ALL", "INCLUDE", "KEYS_ONLY")


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """An attribute of a key: its name, and its type as DynamoDB names it, `S`, `N` or `B`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a table or of an index.

    Attributes:
        partition: The attributes of the partition key, one or more.
        sort: Those of the sort key, in their order.
        projection: What an index contains, `ALL`, `INCLUDE` or `KEYS_ONLY`.
        non_key: The further attributes that it contains, with `INCLUDE`.
    """

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()
    projection: str = "ALL"
    non_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """A table that a template declares, or that was found in an account.

    Attributes:
        table_name: Its name in DynamoDB, `None` where only the deployment knows it.
        keys: The keys of the table (`None`) and of its indexes, by the index's name; those that are not known are left
            out.
        local_keys: The keys of its local secondary indexes.
        is_in_app: Whether a template of CloudFormation declares it, so that an app has a construct for it.
        is_live: Whether it was found in an account.
        is_global: Whether it is an `AWS::DynamoDB::GlobalTable`, which the CDK's `TableV2` makes.
    """

    table_name: str | None = None
    keys: Mapping[str | None, Keys] = field(default_factory=dict)
    local_keys: Mapping[str, Keys] = field(default_factory=dict)
    is_in_app: bool = False
    is_live: bool = False
    is_global: bool = False

    @classmethod
    def of_description(cls, described: Mapping[str, Any], **more: Any) -> KnownTable:
        """Return what a description says, which is of the form of DescribeTable's and of CloudFormation's properties.

        What cannot be read is left out. *more* are the other attributes.
        """
        types = {
            each.get("AttributeName"): each.get("AttributeType")
            for each in _objects(described.get("AttributeDefinitions"))
            if isinstance(each.get("AttributeName"), str)
        }
        keys: dict[str | None, Keys] = dict(_keys_of([described], types, None))
        keys |= dict(_keys_of(_objects(described.get("GlobalSecondaryIndexes")), types, "IndexName"))
        local = _keys_of(_objects(described.get("LocalSecondaryIndexes")), types, "IndexName")
        local_keys = {str(name): each for name, each in local if each.sort}
        return cls(keys=keys, local_keys=local_keys, **more)


def _keys_of(
    described: list[Mapping[str, Any]], types: Mapping[Any, Any], named_by: str | None
) -> Iterator[tuple[str | None, Keys]]:
    """Yield the name and the keys of each that has both."""
    for each in described:
        name = None if named_by is None else each.get(named_by)
        parts: dict[Any, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
        schema = _objects(each.get("KeySchema"))
        for key in schema:
            attribute = key.get("AttributeName")
            kind = types.get(attribute) if isinstance(attribute, str) and "${" not in attribute else None
            if kind in _TYPES and key.get("KeyType") in ("HASH", "RANGE"):
                parts[key["KeyType"]].append(KeyAttribute(str(attribute), kind))
        projected = each.get("Projection")
        projection = projected if isinstance(projected, Mapping) else {}
        known = projection.get("ProjectionType") or "ALL"
        others = projection.get("NonKeyAttributes") or []
        is_read = known in _PROJECTIONS and isinstance(others, list) and all(isinstance(one, str) for one in others)
        is_whole = sum(map(len, parts.values())) == len(schema) and is_read
        if parts["HASH"] and is_whole and (named_by is None or isinstance(name, str)):
            yield (
                name,
                Keys(
                    partition=tuple(parts["HASH"]), sort=tuple(parts["RANGE"]), projection=known, non_key=tuple(others)
                ),
            )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
