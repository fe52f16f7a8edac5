"""Reads the blocks and keys of Terraform resources as the properties that CloudFormation has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from highwater_lab.template.references import as_object


@dataclass(slots=True)
class TableKeys:
    """The keys of a table and of its indexes, as CloudFormation declares them."""

    schema: list[dict[str, Any]]
    types: dict[str, Any]
    local: list[dict[str, Any]]
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_table(cls, values: Mapping[str, Any]) -> TableKeys:
        """Read the attributes of a table, and of the indexes in its own blocks."""
        attributes = [as_object(each) for each in blocks_of(values.get("attribute"))]
        keys = cls(_key_schema(values), {str(each.get("name")): each.get("type") for each in attributes}, [])
        for each in map(as_object, blocks_of(values.get("local_secondary_index"))):
            schema = _key_schema({"hash_key": values.get("hash_key"), "range_key": each.get("range_key")})
            keys.local.append({"IndexName": each.get("name"), "KeySchema": schema, "Projection": _projection(each)})
        for each in map(as_object, blocks_of(values.get("global_secondary_index"))):
            keys.indexes[str(each.get("name"))] = {"KeySchema": _key_schema(each), "Projection": _projection(each)}
        return keys

    def add_index(self, address: str, values: Mapping[str, Any]) -> None:
        """Add an index that is a resource of its own, and has the types of its attributes."""
        projected = as_object(first_of(values.get("projection")))
        keys = {"KeySchema": _key_schema(values), "Projection": _projection(projected), "Source": address}
        self.indexes[str(values.get("index_name"))] = keys
        for each in map(as_object, blocks_of(values.get("key_schema"))):
            self.types.setdefault(str(each.get("attribute_name")), each.get("attribute_type"))

    def properties(self) -> dict[str, Any]:
        """Return the properties of the table."""
        definitions = [{"AttributeName": name, "AttributeType": kind} for name, kind in self.types.items()]
        return {
            "KeySchema": self.schema or None,
            "AttributeDefinitions": definitions or None,
            "LocalSecondaryIndexes": self.local or None,
        }

    def of_index(self, name: Any) -> dict[str, Any]:
        """Return the properties of an index."""
        return self.indexes.get(str(name), {})


def _key_schema(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the key schema of a table or index: its blocks, or its two attributes."""
    blocks = [as_object(each) for each in blocks_of(values.get("key_schema"))]
    if not blocks:
        parts = {"HASH": values.get("hash_key"), "RANGE": values.get("range_key")}
        blocks = [{"attribute_name": name, "key_type": kind} for kind, name in parts.items() if name]
    return [{"AttributeName": each.get("attribute_name"), "KeyType": each.get("key_type")} for each in blocks]


def _projection(values: Mapping[str, Any]) -> dict[str, Any]:
    others = values.get("non_key_attributes") or None
    return given({"ProjectionType": values.get("projection_type"), "NonKeyAttributes": others})


def given(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that have a value."""
    return {key: value for key, value in properties.items() if value is not None}


def renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of these names that have a value; an empty text is none, as the provider writes it."""
    return {new: values[old] for old, new in names.items() if values.get(old) not in (None, "")}


def blocks_of(value: Any) -> list[Any]:
    """Return the blocks of one kind; none for what is no list of blocks."""
    return value if isinstance(value, list) else []


def is_wrong(value: Any) -> bool:
    """Return whether a value is no list of blocks, and not one that only apply makes either."""
    if isinstance(value, list):
        return not all(isinstance(each, dict) for each in value)
    return value is not None and not (isinstance(value, str) and value.startswith("${"))


def first_of(value: Any) -> Any:
    """Return the only block of its kind, `None` for none or one that only apply makes, or what is there instead."""
    if isinstance(value, list):
        return value[0] if value else None
    return None if isinstance(value, str) and re.fullmatch(r"\$\{.*\}", value) else value


def block_of(value: Any, names: Mapping[str, str]) -> Any:
    """Return the attributes of these names of the only block, or the value that is no block."""
    first = first_of(value)
    return renamed(first, names) if isinstance(first, dict) else first
