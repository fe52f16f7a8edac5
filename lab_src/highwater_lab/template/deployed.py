"""Reads of a table what decides whether AWS can change it in one deploy: its name, keys, indexes, marks and targets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from highwater.core import Dimension, Units
from highwater_lab.template.document import Planned, TemplateError
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.parts import Parts
from highwater_lab.template.stacks import Stack
from highwater_lab.template.tables import TemplateTable

GLOBAL: Final = "AWS::DynamoDB::GlobalTable"
# What CloudFormation replaces a table for, beside its name, in words. Source: CloudFormation Template Reference,
# AWS::DynamoDB::Table and AWS::DynamoDB::GlobalTable, "Update requires", by its machine-readable form in aws-cdk
# 2.1148.1, read 2026-11-28; of SimpleTable: AWS SAM Developer Guide, read 2026-11. DynamoDB has no request that
# changes local secondary indexes.
_FIXED: Final = {
    "KeySchema": "its key schema",
    "PrimaryKey": "its primary key",
    "LocalSecondaryIndexes": "its local secondary indexes",
    "ImportSourceSpecification": "the source of its import",
}
Target: TypeAlias = tuple[str | None, Dimension]


@dataclass(frozen=True, slots=True)
class Owner:
    """A resource that declares a scalable target.

    Attributes:
        name: Its logical id with its stack, or its address.
        previous: Its name before the change, if the plan of Terraform moves it; otherwise the same.
    """

    name: str
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What decides whether AWS can bring a table from one declaration to another.

    Attributes:
        kind: Its resource type; `None` if no template defines it.
        account: Its account, as far as the assembly says.
        region: Its region, likewise.
        fixed: By words such as `its key schema` the values, as texts, for whose change a table is replaced.
        types: By attribute its type.
        on_removal: The deletion policy, `Delete` by default.
        on_replacement: The update replace policy, likewise.
        is_protected: Whether deletion protection is on.
        marks: By index the warm throughput that the table itself declares, 0 where none.
        indexes: By name of each global secondary index its keys and projection, as a text.
        owners: By index and dimension the resources that declare its scalable target.
        replicas: The regions of all replicas of a global table.
        unscaled: What of a provisioned `GlobalTable` has no auto scaling of writes: `table`, `index by-state`.
        planned: What the plan of Terraform does with it; `None` without a plan.
    """

    kind: str | None = None
    account: str | None = None
    region: str | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    on_removal: str = "Delete"
    on_replacement: str = "Delete"
    is_protected: bool = False
    marks: Mapping[str | None, Units] = field(default_factory=dict)
    indexes: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[Target, tuple[Owner, ...]] = field(default_factory=dict)
    replicas: tuple[str, ...] = ()
    unscaled: tuple[str, ...] = ()
    planned: Planned | None = None


def read_deployed(found: TemplateTable, parts: Parts) -> Deployed:
    """Return it of one table; what cannot be read is left out, as the reader of tables says it."""
    stack, template = found.stack, found.stack.template
    resource = template.resource(found.logical_id or "")
    properties = resource.get("Properties")
    properties = properties if isinstance(properties, dict) else {}
    resolver = stack.resolver
    replicas = _mappings(resolver, properties.get("Replicas"))
    protected = (properties, *(each for each in replicas if found.kind == GLOBAL))
    return Deployed(
        kind=found.kind,
        account=template.environment.account,
        region=template.environment.region,
        fixed={words: _text(resolver, properties[name]) for name, words in _FIXED.items() if properties.get(name)},
        types={
            _text(resolver, each.get("AttributeName")): _text(resolver, each.get("AttributeType"))
            for each in _mappings(resolver, properties.get("AttributeDefinitions"))
        },
        on_removal=str(resource.get("DeletionPolicy") or "Delete"),
        on_replacement=str(resource.get("UpdateReplacePolicy") or "Delete"),
        is_protected=any(
            _text(resolver, each.get("DeletionProtectionEnabled")).strip('"') == "true" for each in protected
        ),
        marks=dict(_marks(resolver, properties)),
        indexes={
            str(each.get("IndexName")): _text(resolver, [each.get("KeySchema"), each.get("Projection")])
            for each in _mappings(resolver, properties.get("GlobalSecondaryIndexes"))
        },
        owners=_owners(parts, stack, found.table),
        replicas=tuple(str(each.get("Region")) for each in replicas),
        unscaled=tuple(_unscaled(resolver, properties)) if found.kind == GLOBAL else (),
        planned=template.planned.get(found.logical_id or ""),
    )


def _owners(parts: Parts, stack: Stack, table: str) -> dict[Target, tuple[Owner, ...]]:
    owners: dict[Target, tuple[Owner, ...]] = {}
    for part in parts.owners(stack.scope, table):
        template = part.stack.template
        where = "/".join(filter(None, template.environment.stacks))
        name = f"{part.logical_id} of {where}" if where else part.logical_id
        planned = template.planned.get(part.logical_id)
        owner = Owner(name, (planned and planned.previous) or name)
        if part.dimension is not None:
            target = (part.index, part.dimension)
            owners[target] = (*owners.get(target, ()), owner)
    return owners


def _marks(resolver: Resolver, properties: dict[str, Any]) -> Iterator[tuple[str | None, Units]]:
    for index, each in (
        (None, properties),
        *(
            (str(index.get("IndexName")), index)
            for index in _mappings(resolver, properties.get("GlobalSecondaryIndexes"))
        ),
    ):
        try:
            warm = resolver.mapping(each.get("WarmThroughput"), "WarmThroughput")
            read, write = (
                resolver.units(warm.get(f"{name}UnitsPerSecond"), "WarmThroughput") or 0 for name in ("Read", "Write")
            )
        except TemplateError:
            continue
        yield index, Units(read, write)


def _unscaled(resolver: Resolver, properties: dict[str, Any]) -> Iterator[str]:
    """Yield what of a global table has provisioned writes without auto scaling."""
    if _text(resolver, properties.get("BillingMode")) == '"PAY_PER_REQUEST"':
        return
    for label, each in (
        ("table", properties),
        *(
            (f"index {index.get('IndexName')}", index)
            for index in _mappings(resolver, properties.get("GlobalSecondaryIndexes"))
        ),
    ):
        settings = each.get("WriteProvisionedThroughputSettings")
        if not isinstance(settings, dict) or not settings.get("WriteCapacityAutoScalingSettings"):
            yield label


def _mappings(resolver: Resolver, value: Any) -> list[dict[str, Any]]:
    try:
        return resolver.mappings(value, "")
    except TemplateError:
        return []


def _text(resolver: Resolver, value: Any) -> str:
    """Return a value as a text that is equal for equal values; the order of a list's members does not matter."""
    # what cannot be evaluated is compared as it is written
    with contextlib.suppress(TemplateError):
        value = resolver.resolve(value)
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(sorted(_plain(each) for each in value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{key}: {_plain(each)}' for key, each in value.items()))}}}"
    return json.dumps(value, default=str)
