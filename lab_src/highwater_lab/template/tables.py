"""The tables of templates, ready to be simulated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.template.document import Template, TemplateError
from highwater_lab.template.global_tables import as_table
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scaling import Key, Scaling, read_scaling, resources_of

_GLOBAL = "AWS::DynamoDB::GlobalTable"
_SIMPLE = "AWS::Serverless::SimpleTable"
_KINDS = ("AWS::DynamoDB::Table", _GLOBAL, _SIMPLE)
_Marks = dict[tuple[str, str | None], tuple[int, int]]


def find_table(
    templates: list[Template], *, name: str | None = None, parameters: Mapping[str, str] | None = None
) -> TableSetup:
    """The one table that *name* means: its logical id, the start of it, or its table name.

    Without a name there must be just one. Raises `TemplateError` where it is not one table.
    """
    tables = [table for template in templates for table in find_tables(template, parameters or {})]
    _check_parameters(templates, parameters or {})
    if not tables:
        where = templates[0].where if len(templates) == 1 else f"{len(templates)} templates"
        raise TemplateError(f"{where}: no DynamoDB table and no scalable target of one in it; nothing to rehearse")
    exact = [table for table in tables if name is not None and table.name == name]
    chosen = exact or [table for table in tables if name is None or table.name.startswith(name)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(sorted(table.name for table in chosen or tables))
    if not chosen:
        raise TemplateError(f"no table {name!r}; there are {names}")
    raise TemplateError(f"{len(chosen)} tables to choose from: {names}; name one with --logical-id")


def find_tables(template: Template, parameters: Mapping[str, str]) -> list[TableSetup]:
    """Every table of a template, and every table that it only scales; raises `TemplateError`."""
    resolver = Resolver(template, parameters)
    scaling = read_scaling(template, resolver)
    marks = _read_marks(template, resolver)
    tables = []
    named = set()
    for kind in _KINDS:
        for logical_id, properties in resources_of(template, resolver, kind):
            physical = str(resolver.resolve({"Ref": logical_id}))
            named.add(physical)
            notes: list[str] = []
            if kind == _GLOBAL:
                properties, own = as_table(resolver, properties, logical_id, physical, notes)
                scaling = own | scaling
            elif kind == _SIMPLE and "ProvisionedThroughput" not in properties:
                properties = {**properties, "BillingMode": "PAY_PER_REQUEST"}
            tables.append(_table(resolver, logical_id, physical, properties, scaling, marks, notes))
    tables.extend(_imported(name, scaling, marks) for name in dict.fromkeys(k[0] for k in scaling) if name not in named)
    return tables


def _table(
    resolver: Resolver,
    logical_id: str,
    physical: str,
    properties: dict[str, Any],
    scaling: dict[Key, Scaling],
    marks: _Marks,
    notes: list[str],
) -> TableSetup:
    is_on_demand = resolver.resolve(properties.get("BillingMode")) == "PAY_PER_REQUEST"
    indexes = resolver.resolve(properties.get("GlobalSecondaryIndexes")) or []
    resources = [
        _resource(resolver, logical_id, physical, resource, is_on_demand, scaling, marks)
        for resource in (properties, *indexes)
    ]
    for key, found in scaling.items():
        if key[0] == physical:
            notes.extend(found.notes)
    most = resolver.resolve(properties.get("OnDemandThroughput")) or {}
    return TableSetup(
        name=logical_id,
        resources=tuple(resources),
        is_on_demand=is_on_demand,
        max_read_units=_limit(resolver, most.get("MaxReadRequestUnits"), logical_id),
        max_write_units=_limit(resolver, most.get("MaxWriteRequestUnits"), logical_id),
        is_infrequent_access=resolver.resolve(properties.get("TableClass")) == "STANDARD_INFREQUENT_ACCESS",
        notes=tuple(notes),
    )


def _limit(resolver: Resolver, value: Any, logical_id: str) -> int | None:
    units = resolver.units(value, f"{logical_id} OnDemandThroughput") if value not in (None, -1) else None
    return units or None


def _resource(
    resolver: Resolver,
    logical_id: str,
    physical: str,
    properties: dict[str, Any],
    is_on_demand: bool,
    scaling: dict[Key, Scaling],
    marks: _Marks,
) -> ResourceSetup:
    index = resolver.resolve(properties.get("IndexName"))
    where = logical_id if index is None else f"{logical_id} index {index}"
    throughput = resolver.resolve(properties.get("ProvisionedThroughput")) or {}
    units = []
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        given = resolver.units(throughput.get(member), f"{where} {member}")
        if given is None and not is_on_demand:
            raise resolver.error(f"{where}: is of provisioned billing and has no {member}")
        units.append(max(1, given or 1))
    warm = resolver.resolve(properties.get("WarmThroughput")) or {}
    asked_read = resolver.units(warm.get("ReadUnitsPerSecond"), f"{where} WarmThroughput") or 0
    asked_write = resolver.units(warm.get("WriteUnitsPerSecond"), f"{where} WarmThroughput") or 0
    mark_read, mark_write = marks.get((physical, index), (0, 0))
    read = _target(units[0], scaling.get((physical, index, Dimension.READ)))
    write = _target(units[1], scaling.get((physical, index, Dimension.WRITE)))
    warm_read, warm_write = max(asked_read, mark_read), max(asked_write, mark_write)
    # what a new table takes anyway is not paid for
    free_read = ON_DEMAND_WARM_READ_UNITS if is_on_demand else max(read.units, read.min)
    free_write = ON_DEMAND_WARM_WRITE_UNITS if is_on_demand else max(write.units, write.min)
    return ResourceSetup(
        index=index,
        read=read,
        write=write,
        warm_read_units=warm_read,
        warm_write_units=warm_write,
        bought_read_units=max(0, warm_read - free_read),
        bought_write_units=max(0, warm_write - free_write),
    )


def _target(units: int, scaling: Scaling | None) -> TargetSetup:
    if scaling is None:
        return TargetSetup.fixed(units)
    return TargetSetup(
        units=units,
        min=max(1, scaling.min),
        max=max(1, scaling.max),
        tracking=scaling.tracking,
        actions=scaling.actions,
        is_scaled=scaling.tracking is not None,
    )


def _imported(name: str, scaling: dict[Key, Scaling], marks: _Marks) -> TableSetup:
    """A table that the template scales and does not make: it starts at its floors."""
    resources = []
    notes = [f"{name} is not made by this template: what it does not scale is taken to be 1 unit"]
    for index in dict.fromkeys((None, *(key[1] for key in scaling if key[0] == name))):
        read, write = (_target(1, scaling.get((name, index, dimension))) for dimension in Dimension)
        warm_read, warm_write = marks.get((name, index), (0, 0))
        resources.append(
            ResourceSetup(
                index=index,
                read=read,
                write=write,
                warm_read_units=warm_read,
                warm_write_units=warm_write,
                bought_read_units=max(0, warm_read - read.min),
                bought_write_units=max(0, warm_write - write.min),
            )
        )
    return TableSetup(name=name, resources=tuple(resources), notes=tuple(notes))


def _read_marks(template: Template, resolver: Resolver) -> _Marks:
    """Read and write units of each mark that Highwater raises, by table name and index."""
    found: _Marks = {}
    for logical_id, properties in resources_of(template, resolver, "Custom::HighwaterMarks"):
        table = str(resolver.resolve(properties.get("TableName")))
        try:
            marks = json.loads(str(resolver.resolve(properties.get("Marks"))))
            found |= {(table, mark["index"]): (int(mark["read"]), int(mark["write"])) for mark in marks}
        except (KeyError, TypeError, ValueError):
            raise resolver.error(f"{logical_id} has marks that only a deploy gives a value; give numbers") from None
    return found


def _check_parameters(templates: list[Template], parameters: Mapping[str, str]) -> None:
    known = {name for template in templates for name in template.section("Parameters")}
    for name in parameters:
        if name not in known:
            raise TemplateError(
                f"--parameter {name}: no such parameter; the templates have {', '.join(sorted(known)) or 'none'}"
            )
