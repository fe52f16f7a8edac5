"""Finds the tables of templates and converts them to the simulator's `TableSetup`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.template.document import Template, TemplateError
from highwater_lab.template.global_tables import as_table
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scalers import read_scalers
from highwater_lab.template.scaling import Key, Scaling, read_scaling, resources_of

_GLOBAL = "AWS::DynamoDB::GlobalTable"
_SIMPLE = "AWS::Serverless::SimpleTable"
_KINDS = ("AWS::DynamoDB::Table", _GLOBAL, _SIMPLE)
_Marks = dict[tuple[str, str | None], tuple[int, int]]


def find_table(
    templates: list[Template], *, name: str | None = None, parameters: Mapping[str, str] | None = None
) -> TableSetup:
    """Find one table by *name*: its logical id, its start, or the name of a table that the template only scales.

    Without a name the templates must contain exactly one table. *parameters* are values of template parameters.
    Raises `TemplateError` if no table or more than one matches.
    """
    tables = _by_label(
        [(template, table) for template in templates for table in find_tables(template, parameters or {})]
    )
    _check_parameters(templates, parameters or {})
    if not tables:
        where = templates[0].where if len(templates) == 1 else f"{len(templates)} templates"
        raise TemplateError(
            f"{where}: no DynamoDB table and no scalable target for one, so there is nothing to rehearse"
        )
    chosen = tables
    if name is not None:
        exact = {label: table for label, table in tables.items() if name in (label, table.name)}
        chosen = exact or {label: t for label, t in tables.items() if name and t.name.startswith(name)}
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    names = ", ".join(sorted(chosen or tables))
    if not chosen:
        raise TemplateError(f"there is no table {name!r}; the tables are {names}")
    raise TemplateError(f"{len(chosen)} tables match: {names}; choose one with --logical-id")


def _by_label(tables: list[tuple[Template, TableSetup]]) -> dict[str, TableSetup]:
    """Return the tables by name; a name that occurs more than once gets its template's file in front."""
    names = [table.name for _, table in tables]
    return {
        table.name if names.count(table.name) == 1 else f"{template.where}/{table.name}": table
        for template, table in tables
    }


def find_tables(template: Template, parameters: Mapping[str, str]) -> list[TableSetup]:
    """Return every table that a template defines, then every table that it only scales.

    Raises `TemplateError` for a resource that cannot be read.
    """
    resolver = Resolver(template, parameters)
    scaling = read_scaling(template, resolver)
    marks = _read_marks(template, resolver)
    scalers = read_scalers(template, resolver)
    tables = []
    defined = set()
    for kind in _KINDS:
        for logical_id, properties in resources_of(template, resolver, kind):
            physical = str(resolver.resolve({"Ref": logical_id}))
            defined.add(physical)
            notes: list[str] = []
            if kind == _GLOBAL:
                properties, table_scaling = as_table(resolver, properties, logical_id, physical, notes)
                scaling = table_scaling | scaling
            elif kind == _SIMPLE and "ProvisionedThroughput" not in properties:
                properties = {**properties, "BillingMode": "PAY_PER_REQUEST"}
            table = _table(resolver, logical_id, physical, properties, scaling, marks, notes)
            tables.append(_with_scaler(table, scalers.get(physical)))
    imported = [name for name in dict.fromkeys(key[0] for key in scaling) if name not in defined]
    tables.extend(_with_scaler(_imported(name, scaling, marks), scalers.get(name)) for name in imported)
    return [replace(table, notes=(*table.notes, *resolver.notes)) for table in tables]


def _table(
    resolver: Resolver,
    logical_id: str,
    physical: str,
    properties: dict[str, Any],
    scaling: dict[Key, Scaling],
    marks: _Marks,
    notes: list[str],
) -> TableSetup:
    is_on_demand = is_billed_by_request(resolver, properties, logical_id)
    if properties.get("VectorIndexes"):
        if not is_on_demand:
            raise resolver.error(
                f"{logical_id} has vector indexes, which DynamoDB allows on on-demand tables only; set its BillingMode "
                "to PAY_PER_REQUEST"
            )
        notes.append("vector indexes are allowed on on-demand tables only; their own requests are not simulated")
    resources = [_resource(resolver, logical_id, (physical, None), properties, is_on_demand, scaling, marks)]
    indexes = resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
    for number, index in enumerate(indexes):
        name = resolver.text(index.get("IndexName"), f"{logical_id} index {number} IndexName")
        if name in (resource.index for resource in resources):
            raise resolver.error(f"{logical_id} has two indexes named {name}; rename or remove one")
        resources.append(_resource(resolver, logical_id, (physical, name), index, is_on_demand, scaling, marks))
    for key, target in scaling.items():
        if key[0] == physical:
            notes.extend(target.notes)
    maximums = resolver.mapping(properties.get("OnDemandThroughput"), f"{logical_id} OnDemandThroughput")
    return TableSetup(
        name=logical_id,
        resources=tuple(resources),
        is_on_demand=is_on_demand,
        max_read_units=_limit(resolver, maximums.get("MaxReadRequestUnits"), logical_id),
        max_write_units=_limit(resolver, maximums.get("MaxWriteRequestUnits"), logical_id),
        is_infrequent_access=resolver.resolve(properties.get("TableClass")) == "STANDARD_INFREQUENT_ACCESS",
        notes=tuple(notes),
    )


def _with_scaler(table: TableSetup, scaler: ScaledPlan | None) -> TableSetup:
    if scaler is None or table.is_on_demand:
        return table
    note = f"the policy 'declared' includes the template's scaler, in {scaler.mode.upper()} mode"
    return replace(table, scaler=scaler, notes=(*table.notes, note))


def is_billed_by_request(resolver: Resolver, properties: dict[str, Any], where: str) -> bool:
    """Return whether a table's billing mode is on-demand; raises `TemplateError` for an unknown mode."""
    mode = resolver.resolve(properties.get("BillingMode"))
    if mode not in (None, "PROVISIONED", "PAY_PER_REQUEST"):
        raise resolver.error(f"{where} has BillingMode {str(mode)[:60]!r}; expected PROVISIONED or PAY_PER_REQUEST")
    return bool(mode == "PAY_PER_REQUEST")


def _limit(resolver: Resolver, value: Any, logical_id: str) -> int | None:
    units = resolver.units(value, f"{logical_id} OnDemandThroughput") if value not in (None, -1) else None
    return units or None


def _resource(
    resolver: Resolver,
    logical_id: str,
    key: tuple[str, str | None],
    properties: dict[str, Any],
    is_on_demand: bool,
    scaling: dict[Key, Scaling],
    marks: _Marks,
) -> ResourceSetup:
    physical, index = key
    where = logical_id if index is None else f"{logical_id} index {index}"
    throughput = resolver.mapping(properties.get("ProvisionedThroughput"), f"{where} ProvisionedThroughput")
    units = []
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        given = resolver.units(throughput.get(member), f"{where} {member}")
        if given is None and not is_on_demand:
            raise resolver.error(
                f"{where}: has provisioned billing but no {member}; set it, or set BillingMode to PAY_PER_REQUEST"
            )
        units.append(max(1, given or 1))
    warm = resolver.mapping(properties.get("WarmThroughput"), f"{where} WarmThroughput")
    asked_read = resolver.units(warm.get("ReadUnitsPerSecond"), f"{where} WarmThroughput") or 0
    asked_write = resolver.units(warm.get("WriteUnitsPerSecond"), f"{where} WarmThroughput") or 0
    mark_read, mark_write = marks.get((physical, index), (0, 0))
    read = _target(units[0], scaling.get((physical, index, Dimension.READ)))
    write = _target(units[1], scaling.get((physical, index, Dimension.WRITE)))
    warm_read, warm_write = max(asked_read, mark_read), max(asked_write, mark_write)
    # AWS charges only for warm throughput above what a new table of this capacity can take anyway
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
    """Return the setup of a table that the template scales but does not define; its capacity starts at the floors."""
    resources = []
    notes = [f"{name} is not defined in this template: capacity without a scalable target is taken to be 1 unit"]
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
    """Return read and write units of each high-water mark that Highwater raises, by table name and index."""
    marks: _Marks = {}
    for logical_id, properties in resources_of(template, resolver, "Custom::HighwaterMarks"):
        table = str(resolver.resolve(properties.get("TableName")))
        text, where = resolver.resolve(properties.get("Marks")), f"{logical_id} Marks"
        try:
            document = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            document = None
        for mark in resolver.mappings(document if isinstance(document, list) else "no list", where):
            read = resolver.units(mark.get("read"), f"{where} read") or 0
            marks[table, mark.get("index")] = (read, resolver.units(mark.get("write"), f"{where} write") or 0)
    return marks


def _check_parameters(templates: list[Template], parameters: Mapping[str, str]) -> None:
    defined = {name for template in templates for name in template.section("Parameters")}
    for name in parameters:
        if name not in defined:
            raise TemplateError(
                f"--parameter {name}: the templates have no such parameter; they have "
                f"{', '.join(sorted(defined)) or 'none'}"
            )
