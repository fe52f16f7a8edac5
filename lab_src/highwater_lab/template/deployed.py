"""Reads the properties of a table that decide whether AWS can change it in one deploy: keys, indexes, replicas."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from highwater.core import Dimension, Units
from highwater_lab.template.document import Planned, TemplateError
from highwater_lab.template.open_values import UNREAD, OpenValues, as_placeholders, open_values
from highwater_lab.template.parts import Parts, identity
from highwater_lab.template.replacements import (
    GLOBAL_TABLE,
    KEYS,
    LOCAL_INDEXES,
    NAME,
    REPLACED_FOR,
    SIMPLE_TABLE,
    TABLE,
    TYPES,
)
from highwater_lab.template.stacks import Stack
from highwater_lab.template.tables import TemplateTable, simple_keys

Target: TypeAlias = tuple[str | None, Dimension]
# The custom resource of the CDK's `replicationRegions`. With SkipReplicaDeletion its function leaves the replica
# (aws-cdk-lib 2.275.0, aws-dynamodb/lib/table.js, read 2026-11-29).
REPLICA: Final = "Custom::DynamoDBReplica"


@dataclass(frozen=True, slots=True)
class Owner:
    """A resource that declares a scalable target.

    Attributes:
        name: Its logical id with its stack, or its address.
        previous: Its name before the change, if the plan of Terraform moves it; otherwise the same.
    """

    name: str
    previous: str


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica of a table in another region.

    Attributes:
        source: The resource that declares it: a logical id or address; empty for a part of the table.
        planned: The change of that resource in a Terraform plan; `None` without one.
        is_protected: Whether deletion protection is on.
        is_kept: Whether the replica stays when its declaration is removed.
        kms_key: The key that encrypts it, in a block of Terraform; empty if it is not declared.
        consistency: Its consistency mode, likewise.
    """

    source: str = ""
    planned: Planned | None = None
    is_protected: bool = False
    is_kept: bool = False
    kms_key: str = ""
    consistency: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index.

    Attributes:
        keys: Its keys and projection, as a text that is equal for equal ones.
        source: The address of its own resource; empty for a part of the table.
        planned: The change of that resource in a Terraform plan; `None` without one.
        attributes: The names of its key attributes.
    """

    keys: str
    source: str = ""
    planned: Planned | None = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The properties that decide whether AWS can bring a table from one declaration to another.

    Attributes:
        kind: Its resource type; `None` if no template defines it.
        where: Its template's file.
        account: Its account, if the assembly has it.
        region: Its region, likewise.
        fixed: By property of `REPLACED_FOR` the value, as a text; the name is empty if it is generated.
        types: By attribute its type.
        on_removal: The deletion policy, `Delete` by default.
        on_replacement: The update replace policy, likewise.
        is_protected: Whether deletion protection is on.
        is_on_demand: Whether it is billed by request.
        is_strong: Whether it is a global table of multi-Region strong consistency.
        units: By index and dimension the provisioned units that the template declares, if they can be read.
        marks: By index the warm throughput that the table itself declares, 0 for none.
        indexes: By name each global secondary index.
        owners: By index and dimension the resources that declare its scalable target.
        replicas: By region each replica; for a `GlobalTable` that of the stack's own region too.
        unscaled: The parts of a provisioned `GlobalTable` without auto scaling of writes: `table`, `index by-state`.
        planned: The actions of a Terraform plan for it; `None` without a plan.
    """

    kind: str | None = None
    where: str = ""
    account: str | None = None
    region: str | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    on_removal: str = "Delete"
    on_replacement: str = "Delete"
    is_protected: bool = False
    is_on_demand: bool = False
    is_strong: bool = False
    units: Mapping[Target, int] = field(default_factory=dict)
    marks: Mapping[str | None, Units] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    owners: Mapping[Target, tuple[Owner, ...]] = field(default_factory=dict)
    replicas: Mapping[str, Replica] = field(default_factory=dict)
    unscaled: tuple[str, ...] = ()
    planned: Planned | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of one table in a template, which can be read with other values of its references."""

    found: TemplateTable
    parts: Parts

    def read(self, values: Mapping[str, str] | None = None) -> Deployed:
        """Return the properties; *values* are those of parameters and pseudo parameters that have none in the template.

        Parts that cannot be read are left out: the reader of tables reports them.
        """
        return _Reading(self.found, self.parts, values or {}).deployed()

    def exists(self, values: Mapping[str, str]) -> bool:
        """Return whether the table's condition is true, and those of its nested stacks, or cannot be read."""
        try:
            return self.found.stack.exists_with(values, self.found.logical_id or "")
        except TemplateError:
            return True

    def reads_as(self, other: Declaration) -> bool:
        """Return whether another declaration has the same text, in all that the hazards of a table are read from."""
        return bool(self._text() == other._text())

    def _text(self) -> Any:
        stack, sections = self.found.stack, ("Parameters", "Mappings", "Conditions")
        resources = [
            stack.template.resource(self.found.logical_id or ""),
            *(stack.template.resource(logical_id) for logical_id, _ in stack.resources(REPLICA)),
            *(outer.template.resource(nested) for outer, nested in stack.parents),
        ]
        templates = [stack.template, *(outer.template for outer, _ in stack.parents)]
        return _read_parts(resources), [template.section(name) for template in templates for name in sections]

    def open_values(self) -> OpenValues:
        """Return the references that the table rests on and that have no value, with the values to try."""
        return open_values(self.found.stack, self.found.logical_id or "")


class _Reading:
    """One reading of a table."""

    def __init__(self, found: TemplateTable, parts: Parts, values: Mapping[str, str]) -> None:
        self._found, self._parts = found, parts
        self._stack: Stack = found.stack
        self._resource = self._stack.template.resource(found.logical_id or "")
        declared = self._resource.get("Properties")
        self._declared: dict[str, Any] = declared if isinstance(declared, dict) else {}
        if found.kind == SIMPLE_TABLE:
            self._declared = self._declared | simple_keys(self._declared)
        self._resolver = self._stack.resolver_with(values) if values else self._stack.resolver

    def deployed(self) -> Deployed:
        template, kind = self._stack.template, self._found.kind
        replicas = self._mappings(self._declared.get("Replicas")) if kind == GLOBAL_TABLE else []
        protected = (self._declared, *replicas)
        return Deployed(
            # SAM makes a table of it
            kind=TABLE if kind == SIMPLE_TABLE else kind,
            where=template.where,
            account=template.environment.account,
            region=template.environment.region,
            fixed={name: text for name in REPLACED_FOR.get(kind or "", ()) if (text := self._fixed(name))},
            types={
                self._plain(each.get("AttributeName")): self._plain(each.get("AttributeType"))
                for each in self._mappings(self._declared.get(TYPES))
            },
            on_removal=self._plain(self._resource.get("DeletionPolicy")) or "Delete",
            on_replacement=self._plain(self._resource.get("UpdateReplacePolicy")) or "Delete",
            is_protected=any(self._plain(each.get("DeletionProtectionEnabled")) == "true" for each in protected),
            is_on_demand=self._is_on_demand(),
            is_strong=self._plain(self._declared.get("MultiRegionConsistency")) == "STRONG",
            units=dict(self._units()),
            marks=dict(self._marks()),
            indexes={self._plain(each.get("IndexName")): self._index(each) for each in self._indexes()},
            owners=self._owners(),
            replicas=self._replicas(replicas),
            unscaled=tuple(self._unscaled()) if kind == GLOBAL_TABLE else (),
            planned=template.planned.get(self._found.logical_id or ""),
        )

    def _index(self, declared: dict[str, Any]) -> Index:
        keys = f"{self._keys(declared.get(KEYS))} {self._text(declared.get('Projection'))}"
        source = str(declared.get("Source") or "")
        attributes = tuple(self._plain(each.get("AttributeName")) for each in self._mappings(declared.get(KEYS)))
        return Index(keys, source, self._stack.template.planned.get(source), attributes)

    def _fixed(self, name: str) -> str:
        value = self._declared.get(name)
        # the types of attributes are compared one by one
        if self._text(value) in ("", "[]") or name in (TYPES, "PrimaryKey"):
            return ""
        if name == NAME:
            return self._plain(value)
        if name == KEYS:
            return self._keys(value)
        if name == LOCAL_INDEXES:
            indexes = self._mappings(value)
            return ", ".join(
                sorted(f"{self._plain(each.get('IndexName'))} {self._index(each).keys}" for each in indexes)
            )
        return self._text(value)

    def _keys(self, schema: Any) -> str:
        """Return a key schema as a text: in an index of several partition keys their order has a meaning."""
        try:
            keys = self._resolver.mappings(schema, "")
        except TemplateError:
            # equal to nothing, and different from nothing
            return f"${{{KEYS}}}"
        parts = {
            kind: [self._plain(each.get("AttributeName")) for each in keys if self._plain(each.get("KeyType")) == kind]
            for kind in dict.fromkeys(("HASH", "RANGE", *(self._plain(each.get("KeyType")) for each in keys)))
        }
        return "; ".join(f"{kind} {', '.join(names)}" for kind, names in parts.items() if names)

    def _is_on_demand(self) -> bool:
        mode = self._plain(self._declared.get("BillingMode"))
        if self._found.kind == SIMPLE_TABLE:
            return "ProvisionedThroughput" not in self._declared
        return mode == "PAY_PER_REQUEST"

    def _indexes(self) -> list[dict[str, Any]]:
        return self._mappings(self._declared.get("GlobalSecondaryIndexes"))

    def _of_resources(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """Yield `None` and the declaration of the table, then the name and the declaration of each index."""
        yield None, self._declared
        for index in self._indexes():
            yield self._plain(index.get("IndexName")), index

    def _units(self) -> Iterator[tuple[Target, int]]:
        """Yield the units of a table that is not a global one, which declares no units that a deploy sets again."""
        if self._found.kind == GLOBAL_TABLE and not self._stack.template.is_plan:
            return
        for index, each in self._of_resources():
            for dimension in Dimension:
                with contextlib.suppress(TemplateError):
                    declared = self._resolver.mapping(each.get("ProvisionedThroughput"), "")
                    settings = self._resolver.mapping(each.get(f"{dimension.title()}ProvisionedThroughputSettings"), "")
                    member = f"{dimension.title()}CapacityUnits"
                    units = self._resolver.units(declared.get(member, settings.get(member)), "")
                    if units is not None:
                        yield (index, dimension), units

    def _marks(self) -> Iterator[tuple[str | None, Units]]:
        for index, each in self._of_resources():
            with contextlib.suppress(TemplateError):
                warm = self._resolver.mapping(each.get("WarmThroughput"), "")
                read, write = (
                    self._resolver.units(warm.get(f"{name}UnitsPerSecond"), "") for name in ("Read", "Write")
                )
                yield index, Units(read or 0, write or 0)

    def _owners(self) -> dict[Target, tuple[Owner, ...]]:
        owners: dict[Target, tuple[Owner, ...]] = {}
        for part in self._parts.owners(self._stack.scope, self._found.table):
            template = part.stack.template
            where = "/".join(filter(None, template.environment.stacks))
            name = f"{part.logical_id} of {where}" if where else part.logical_id
            planned = template.planned.get(part.logical_id)
            owner = Owner(name, (planned and planned.previous) or name)
            if part.dimension is not None:
                target = (part.index, part.dimension)
                owners[target] = (*owners.get(target, ()), owner)
        return owners

    def _replicas(self, declared: list[dict[str, Any]]) -> dict[str, Replica]:
        replicas = {
            self._plain(each.get("Region")): Replica(
                source=(source := str(each.get("Source") or "")),
                planned=self._stack.template.planned.get(source),
                is_protected=self._plain(each.get("DeletionProtectionEnabled")) == "true",
                kms_key=self._plain(each.get("KmsKey")),
                consistency=self._plain(each.get("ConsistencyMode")),
            )
            for each in declared
        }
        # a reader of plans writes it
        unplaced = self._declared.get("UnplacedReplicas") if self._stack.template.is_plan else None
        for source in unplaced or ():
            replicas[source] = Replica(source=source, planned=self._stack.template.planned.get(source))
        for logical_id, properties in self._stack.resources(REPLICA):
            resource = self._stack.template.resource(logical_id)
            is_there = self._exists(resource.get("Condition"))
            if is_there and identity(self._stack, self._plain(properties.get(NAME))) == self._found.table:
                skips = self._plain(properties.get("SkipReplicaDeletion")) == "true"
                is_kept = skips or self._plain(resource.get("DeletionPolicy")).startswith("Retain")
                replicas[self._plain(properties.get("Region"))] = Replica(source=logical_id, is_kept=is_kept)
        return replicas

    def _unscaled(self) -> Iterator[str]:
        """Yield the parts of a global table with provisioned writes without auto scaling."""
        if self._is_on_demand():
            return
        for index, each in self._of_resources():
            settings = self._mapping(each.get("WriteProvisionedThroughputSettings"))
            if not settings.get("WriteCapacityAutoScalingSettings"):
                yield "table" if index is None else f"index {index}"

    def _exists(self, condition: Any) -> bool:
        try:
            return condition is None or self._resolver.holds(str(condition))
        except TemplateError:
            return True

    def _mapping(self, value: Any) -> dict[str, Any]:
        try:
            return self._resolver.mapping(value, "")
        except TemplateError:
            # it is there
            return {"WriteCapacityAutoScalingSettings": value}

    def _mappings(self, value: Any) -> list[dict[str, Any]]:
        try:
            return self._resolver.mappings(value, "")
        except TemplateError:
            return []

    def _plain(self, value: Any) -> str:
        """Return a scalar as a text without quotes."""
        text = self._text(value)
        return text[1:-1] if text.startswith('"') else text

    def _text(self, value: Any) -> str:
        """Return a value as a text that is equal for equal values; the order of a list's members does not matter."""
        # a value that cannot be evaluated is compared as it is written
        with contextlib.suppress(TemplateError):
            value = self._resolver.resolve(value)
        return "" if value is None else as_placeholders(_plain(value))


def _read_parts(value: Any) -> Any:
    """Return a part of a template without the parts that no hazard is about."""
    if isinstance(value, list):
        return [_read_parts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _read_parts(each) for name, each in value.items() if name not in UNREAD and name != "Metadata"}


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(sorted(_plain(each) for each in value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{key}: {_plain(each)}' for key, each in value.items()))}}}"
    return json.dumps(value, default=str, ensure_ascii=False)
