"""Reads all tables of the templates of an app, and chooses one by a name that people use."""

from __future__ import annotations

import os
from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from highwater_lab.simulation.setup import TableSetup
from highwater_lab.template.deployed import Declaration
from highwater_lab.template.document import Planned, Template, TemplateError
from highwater_lab.template.intrinsics import PSEUDO_PARAMETERS, TABLE_TYPES
from highwater_lab.template.listed import ListedTable, tables_called
from highwater_lab.template.parts import Parts, Scope, fixed_of, may_exist
from highwater_lab.template.remarks import Remark, RemarkKind, remarks_of, scaling_resources
from highwater_lab.template.stacks import Stacks, is_open
from highwater_lab.template.tables import TemplateTable, is_on_demand, read_table, tables_of

_MOST_NAMES: Final = 6
_NESTED: Final = ("AWS::CloudFormation::Stack", "AWS::Serverless::Application")


def find_table(
    templates: list[Template],
    *,
    name: str | None = None,
    likely: str | None = None,
    parameters: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
    no_scaling: Collection[str] = (),
) -> TableSetup:
    """Find one table by *name*.

    Args:
        templates: A template, or those of an assembly, which are joined: one stack can import exports of another.
        name: A name of the table as in `tables_called`. Needed only if there is more than one table.
        likely: Such a name, too, but only to decide between several tables; ignored if it matches none of them.
        parameters: Values of template parameters; by default the template's own defaults.
        targets: By the logical id of a scalable target the name of its table, or `TABLE/index/INDEX`, if the templates
            leave that open.
        no_scaling: The logical ids or addresses of resources that are not read and do not scale.

    Raises:
        TemplateError: No table or more than one matches, a resource of the table cannot be read, or it is not known
            whether a target belongs to it.
    """
    stacks, parts, tables = _find(templates, parameters or {}, targets or {})
    check_given(templates, parameters or {}, no_scaling)
    _check_names("--target", targets or {}, {part.logical_id for part in parts.targets}, "scalable target")
    if not tables:
        raise TemplateError(_nothing(stacks))
    chosen = tables if name is None else _matching(tables, name)
    if likely is not None and len(chosen) > 1:
        chosen = _matching(chosen, likely) or chosen
    if len(chosen) == 1:
        ((label, found),) = chosen.items()
        setup = read_table(found, parts)
        own = [
            remark.text
            for remark in _remarks(stacks, parts, tables, no_scaling)
            if remark.kind is not RemarkKind.ON_DEMAND
            and (label in remark.tables or (not remark.tables and remark.is_of(found.stack.template)))
        ]
        return replace(setup, notes=(*own, *setup.notes))
    if not chosen:
        raise TemplateError(f"there is no table {name!r}; the tables are {_listed(tables)}")
    raise several_match(chosen)


def check_given(templates: Iterable[Template], parameters: Mapping[str, str], no_scaling: Collection[str]) -> None:
    """Raise `TemplateError` for a parameter, or a resource of *no_scaling*, that none of the templates has.

    Of the values in files those that no template has are ignored, as `aws cloudformation deploy` ignores them.
    """
    templates = list(templates)
    typed = parameters.maps[0] if isinstance(parameters, ChainMap) else parameters
    own = [each for each in typed if each not in PSEUDO_PARAMETERS]
    _check_names("--parameter", own, {each for it in templates for each in it.section("Parameters")}, "parameter")
    # with the copies that loops make
    stacks = [stack for each in templates if no_scaling for stack in Stacks([each], parameters).all]
    known = scaling_resources(stack.template for stack in stacks)
    _check_names("--no-scaling", no_scaling, known, "resource that may scale a table")


def several_match(names: Iterable[str]) -> TemplateError:
    """Return the error of one table that was asked for where several of these names match."""
    found = sorted(names)
    hint = "choose one with --table"
    if len(found) > _MOST_NAMES:
        hint += f", by its path or any end of it, such as {found[0]}"
    return TemplateError(f"{len(found)} tables match: {_listed(found)}; {hint}")


# The metadata of tables that belong to Highwater itself
_OWN: Final = "highwater:own"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedApp:
    """All that the templates of an app declare of tables.

    Attributes:
        tables: Every table that the templates define, then every table that they only scale; not Highwater's own. A
            table that cannot be read is listed with the reason.
        remarks: What was not read, or contradicts itself.
        fixed: By stage how many alarms and scalers there are: `("Prod", "alarm")`, `("Prod", "scaler")`.
        absent: The tables whose condition is false, or that of a nested stack around them; not among *tables*.
        nothing: Why there is no table; empty if there is one.
        plans: The changes of each Terraform plan, by address.
        stacks: The names of its stacks, as far as an assembly says them; of a nested stack that of the outermost one,
            then the logical ids down to it.
        beside_on_demand: What is not read beside tables on demand, which it cannot scale, to be compared.
    """

    tables: tuple[ListedTable, ...]
    absent: tuple[ListedTable, ...] = ()
    remarks: tuple[Remark, ...] = ()
    fixed: Counter[tuple[str, str]] = field(default_factory=Counter)
    nothing: str = ""
    plans: tuple[Mapping[str, Planned], ...] = ()
    stacks: frozenset[tuple[str, ...]] = frozenset()
    beside_on_demand: tuple[Remark, ...] = ()

    def only(self, tables: Iterable[ListedTable]) -> ListedApp:
        """Return the app with some of its tables alone, and with what was not read of them or names no table.

        What is paid for beside the tables is left out.
        """
        chosen = tuple(tables)
        names = {table.name for table in chosen}
        remarks, beside_on_demand = (
            tuple(each for each in every if not each.tables or names & set(each.tables))
            for every in (self.remarks, self.beside_on_demand)
        )
        return ListedApp(
            tables=chosen,
            absent=self.absent,
            remarks=remarks,
            plans=self.plans,
            stacks=self.stacks,
            beside_on_demand=beside_on_demand,
        )


def read_app(
    templates: list[Template], parameters: Mapping[str, str] | None = None, no_scaling: Collection[str] = ()
) -> ListedApp:
    """Return what the templates of an app declare; *no_scaling* as in `find_table`.

    Names of parameters and resources that the templates do not have are ignored; see `check_given`.
    """
    stacks, parts, tables = _find(templates, parameters or {}, {})
    listed = tuple(_list_table(label, found, parts) for label, found in tables.items() if not _is_own(found))
    absent = {found.name: found for found in tables_of(stacks, parts, are_absent=True)}
    remarks = _remarks(stacks, parts, tables, no_scaling)
    return ListedApp(
        tables=listed,
        absent=tuple(_list_table(label, found, parts) for label, found in absent.items() if not _is_own(found)),
        remarks=tuple(each for each in remarks if each.kind is not RemarkKind.ON_DEMAND),
        fixed=Counter((stack.template.stage, what) for stack in stacks.all for what in fixed_of(stack)),
        nothing="" if listed else _nothing(stacks),
        plans=_plans(templates),
        stacks=frozenset(stack.template.environment.stacks for stack in stacks.all),
        beside_on_demand=tuple(each for each in remarks if each.kind is RemarkKind.ON_DEMAND),
    )


def _remarks(
    stacks: Stacks, parts: Parts, tables: Mapping[str, TemplateTable], no_scaling: Collection[str]
) -> tuple[Remark, ...]:
    on_demand = {label for label, found in tables.items() if is_on_demand(found)}
    return remarks_of(stacks, parts, _labels(tables), on_demand=on_demand, no_scaling=no_scaling)


def _plans(templates: list[Template]) -> tuple[Mapping[str, Planned], ...]:
    """Return the plans that the templates were made from; the regions of one plan are several templates."""
    plans: list[Mapping[str, Planned]] = []
    for template in templates:
        if template.planned and template.planned not in plans:
            plans.append(template.planned)
    return tuple(plans)


def _list_table(label: str, found: TemplateTable, parts: Parts) -> ListedTable:
    setup, problem = None, ""
    declaration = Declaration(found, parts)
    try:
        setup = read_table(found, parts)
    except TemplateError as error:
        problem = str(error)
    return replace(
        _named(label, found),
        setup=setup,
        problem=problem,
        is_managed=parts.is_managed(found.stack.scope, found.table),
        plan=parts.plan(found.stack.scope, found.table),
        deployed=declaration.read(),
        declaration=declaration,
    )


def _named(label: str, found: TemplateTable) -> ListedTable:
    """Return a table with its names, of which nothing is read yet."""
    template = found.stack.template
    return ListedTable(
        name=label,
        stage=template.stage,
        stacks=template.environment.stacks,
        logical_id=found.logical_id,
        physical=None if is_open(found.table) else found.table,
        open_name=_open_name(found),
        setup=None,
        dialect=template.dialect,
        is_global=found.kind == "AWS::DynamoDB::GlobalTable",
    )


def _open_name(found: TemplateTable) -> str:
    """Return the name that a template declares with references that only the deployment knows; empty for others."""
    if found.logical_id is None:
        return ""
    properties = found.stack.template.resource(found.logical_id).get("Properties")
    is_declared = isinstance(properties, dict) and properties.get("TableName") is not None
    name = found.stack.name_of(found.logical_id) if is_declared else ""
    return name if is_open(name) and name != f"${{{found.logical_id}}}" else ""


def _is_own(found: TemplateTable) -> bool:
    if found.logical_id is None:
        return False
    metadata = found.stack.template.resource(found.logical_id).get("Metadata")
    return isinstance(metadata, dict) and metadata.get(_OWN) is True


def _find(
    templates: list[Template], parameters: Mapping[str, str], targets: Mapping[str, str]
) -> tuple[Stacks, Parts, dict[str, TemplateTable]]:
    stacks = Stacks(templates, parameters)
    defined = _by_label(list(tables_of(stacks, Parts(stacks, {}))))
    bound = {}
    for logical_id, named in targets.items():
        table, _, index = named.partition("/index/")
        matching = _matching(defined, table)
        if len(matching) > 1:
            raise TemplateError(f"--target {logical_id}: {len(matching)} tables match {table!r}: {_listed(matching)}")
        bound[logical_id] = (next((found.table for found in matching.values()), table), index or None)
    parts = Parts(stacks, bound)
    return stacks, parts, _by_label(list(tables_of(stacks, parts)))


def _by_label(tables: list[TemplateTable]) -> dict[str, TemplateTable]:
    """Return the tables by name; a name that occurs more than once is prefixed with its template's file.

    The file is named from the folder on that all templates are in, so that it is the same in another folder.
    """
    names = Counter(found.name for found in tables)
    folders = [Path(found.stack.template.folder).absolute() for found in tables]
    folder = os.path.commonpath(folders) if folders else ""
    return {
        found.name
        if names[found.name] == 1
        else f"{os.path.relpath(found.stack.template.where, folder)}/{found.name}": found
        for found in tables
    }


def _labels(tables: Mapping[str, TemplateTable]) -> dict[tuple[Scope, str], str]:
    return {(found.stack.scope, found.table): label for label, found in tables.items()}


def _matching(tables: dict[str, TemplateTable], name: str) -> dict[str, TemplateTable]:
    """Return the tables that people mean by *name*."""
    called = tables_called((_named(label, found) for label, found in tables.items()), name)
    return {each.name: tables[each.name] for each in called}


def _listed(tables: Iterable[str]) -> str:
    names = sorted(tables)
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"


def _nothing(stacks: Stacks) -> str:
    """Return why there is no table, and the remedy."""
    first = stacks.all[0].template
    where = first.where if len(stacks.all) == 1 else f"{len(stacks.all)} templates"
    message = f"{where}: no DynamoDB table and no scalable target for one"
    for stack in stacks.all:
        for logical_id in (name for kind in TABLE_TYPES for name, _ in stack.resources(kind)):
            if not may_exist(stack, logical_id):
                condition = stack.template.resource(logical_id).get("Condition")
                return f"{message}; {logical_id} has the condition {condition}, which is false; give its --parameter"
    unread = [f"{left.where} {left.what}" for stack in stacks.all for left in stack.left_out]
    nested = [
        (logical_id, properties)
        for stack in stacks.all
        for kind in _NESTED
        for logical_id, properties in stack.resources(kind)
    ]
    if unread:
        return f"{message}; {unread[0]}"
    if nested:
        logical_id, properties = nested[0]
        place = properties.get("TemplateURL") or properties.get("Location")
        file = Path(first.folder) / place if isinstance(place, str) and "://" not in place else None
        given = str(file) if file is not None and file.is_file() else "its template's file"
        return f"{message}; {logical_id} is a nested stack: give {given} in place of this template"
    return message


def _check_names(option: str, given: Iterable[str], known: set[str], what: str) -> None:
    """Raise `TemplateError` for the first name given with an option that the templates do not have."""
    for name in given:
        if name not in known:
            raise TemplateError(
                f"{option} {name}: the templates have no such {what}; they have {', '.join(sorted(known)) or 'none'}"
            )
