"""`highwater migrate`: how the tables of an app come under `manage_capacity`, with the code, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from highwater.core import Dimension
from highwater.core.tracking import NATIVE_TARGET_PERCENT, TargetTracking
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors, parameters_options
from highwater_lab.recommend.added import AddedResources, ComingTable, added_to
from highwater_lab.recommend.code import managed_code_of
from highwater_lab.simulation import ReplicaSetup, ResourceSetup, TableSetup, TargetSetup
from highwater_lab.template import (
    ListedTable,
    Remark,
    RemarkKind,
    check_given,
    is_plan,
    load_templates,
    read_app,
    tables_called,
    two_deploys,
)
from highwater_lab.template.intrinsics import how_to_give, references_of
from highwater_lab.template.stacks import is_open
from highwater_lab.template.tables import DEFAULT_TAKEN

_path = click.Path(path_type=Path)
_TWO_DEPLOYS = two_deploys(
    "its auto_scale_read_capacity, auto_scale_write_capacity and auto_scale_global_secondary_index_... calls, or its "
    "ScalableTarget and ScalingPolicy resources",
    "the code below",
)
_ONE_DEPLOY = ("deploy: add the code below; nothing has to be removed before",)
_GLOBAL = (
    "deploy: add the code below. CloudFormation keeps the scalable targets of a global table, and changes their bounds",
)
_CONFIG = (
    "Where AWS Config records continuously, each change of capacity is an item of the table, and two of each alarm of "
    "target tracking: highwater rehearse counts them, and docs/cost.md tells what to leave out"
)
_BACK = (
    "back: remove manage_capacity and deploy. The capacity stays as it is, and nothing scales it; then add "
    "auto_scale_... again and deploy"
)
_BACK_FIXED = "back: remove manage_capacity and deploy. The capacity stays as it is, and nothing scales it"
_BACK_GLOBAL = (
    "back: remove manage_capacity and deploy. CloudFormation keeps the scalable targets, with the bounds that the "
    "table's own billing declares"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One table's way under `manage_capacity`.

    Attributes:
        name: The table's name in the app.
        what: What it has now, in words; or why nothing is to be done.
        steps: The deploys, in their order, and the way back; none if nothing is to be done.
        code: The code to add, empty if nothing is to be done.
        notes: What the code leaves out, or has otherwise.
    """

    name: str
    what: str
    steps: tuple[str, ...] = ()
    code: str = ""
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "table": self.name,
            "what": self.what,
            "steps": list(self.steps),
            "code": self.code or None,
            "notes": list(self.notes),
        }


def migration_of(table: ListedTable, remarks: Sequence[Remark] = ()) -> Migration:
    """Return the way of one table; none where one of the app's *remarks* names it, as code may then give it less."""
    stack = (table.stage, "/".join(table.stacks))
    named = [
        remark
        for remark in remarks
        if remark.kind is not RemarkKind.VOUCHED
        and (table.name in remark.tables or (remark.may_change and (remark.stage, remark.stack) == stack))
    ]
    if named:
        why = f"{'; '.join(remark.text for remark in named)}. Code made without that could lower its capacity"
        options = " ".join(f"--no-scaling {remark.scales}" for remark in named if remark.scales)
        vouch = (f"if it does not scale the table, say so with {options}",) if options else ()
        return Migration(table.name, f"is left out: {why}", notes=vouch)
    setup = table.setup
    if setup is None:
        return Migration(table.name, f"cannot be read: {table.problem}")
    if table.dialect.words:
        return Migration(table.name, "is of a Terraform plan, and manage_capacity is for apps of the CDK")
    if table.is_managed:
        return Migration(table.name, "Highwater manages its capacity already")
    if setup.is_on_demand:
        return Migration(table.name, "is on demand; highwater recommend says whether provisioned costs less")
    if table.logical_id is None:
        return Migration(table.name, "is only scaled here; manage it where its table is defined, or import it by name")
    if open_names := [name for name in setup.indexes if is_open(name)]:
        names = references_of(open_names[0])
        fix = f"; {how_to_give(names)}" if names else ""
        return Migration(table.name, f"is left out: the name of index {open_names[0]} is not known{fix}")
    what = "; ".join(f"{resource.label}: {_described(resource)}" for resource in setup.resources)
    has_target = any(resource.target(dimension).has_target for resource in setup.resources for dimension in Dimension)
    own = (*_TWO_DEPLOYS, _BACK) if has_target else (*_ONE_DEPLOY, _BACK_FIXED)
    steps = (*_GLOBAL, _BACK_GLOBAL) if table.is_global else own
    return Migration(
        table.name,
        what,
        steps,
        managed_code_of(_kept(table.name, setup)),
        (*(note for note in setup.notes if note.startswith(DEFAULT_TAKEN)), *_notes(setup)),
    )


def added_by(tables: Sequence[ListedTable], migrations: Sequence[Migration]) -> list[AddedResources]:
    """Return what `manage_capacity` adds to each stack of which some *tables* come under it, by their *migrations*."""
    stacks: dict[str, list[tuple[ListedTable, Migration]]] = {}
    for table, migration in zip(tables, migrations, strict=True):
        stacks.setdefault("/".join(filter(None, (table.stage, *table.stacks))), []).append((table, migration))
    found = []
    for stack, members in stacks.items():
        coming = [
            ComingTable(table.setup, _kept(table.name, table.setup), is_global=table.is_global)
            for table, migration in members
            if migration.code and table.setup is not None
        ]
        if coming:
            has_function = any(table.is_managed and not table.is_global for table, _ in members)
            found.append(added_to(stack or "the template", coming, has_function=has_function))
    return found


def _kept(name: str, setup: TableSetup) -> TableSetup:
    """Return a table with at least what it has at any time: the highest floors of its schedule and of its replicas."""
    resources = tuple(
        each.with_targets(_shared(_at_all_times(each.read), each.index, setup.replicas), _at_all_times(each.write))
        for each in setup.resources
    )
    return replace(setup, name=name, resources=resources)


def _at_all_times(target: TargetSetup) -> TargetSetup:
    """Return a target with the highest floor and ceiling that it ever has, by its units or its scheduled actions."""
    # without a policy, its own units stay where they are within its bounds
    own = target.min if target.tracking is not None else int(target.capacity.min_capacity)
    floor = max((own, *(action.min or 0 for action in target.actions)))
    ceiling = max((target.max, floor, *(action.max or 0 for action in target.actions)))
    tracking = target.tracking
    if tracking is None and target.has_target and floor < ceiling:
        # its bounds stay, so something has to move it between them
        tracking = TargetTracking(target_percent=NATIVE_TARGET_PERCENT)
    return replace(target, units=max(target.units, floor), min=floor, max=ceiling, tracking=tracking)


def _shared(own: TargetSetup, index: str | None, replicas: Iterable[ReplicaSetup]) -> TargetSetup:
    """Return the reads that suffice for every replica, as `manage_capacity` gives all of them the same."""
    for replica in replicas:
        other = replica.read_targets.get(index, own)
        own = replace(
            own,
            units=max(own.units, other.units),
            min=max(own.min, other.min),
            max=max(own.max, other.max),
            tracking=_quicker(own.tracking, other.tracking),
            is_scaled=own.is_scaled or other.is_scaled,
        )
    return own


def _quicker(one: TargetTracking | None, other: TargetTracking | None) -> TargetTracking | None:
    """Return target tracking that has at no time less capacity than either."""
    if one is None or other is None:
        return one or other
    return TargetTracking(
        target_percent=min(one.target_percent, other.target_percent),
        scale_in_cooldown=max(one.scale_in_cooldown, other.scale_in_cooldown),
        scale_out_cooldown=min(one.scale_out_cooldown, other.scale_out_cooldown),
        disable_scale_in=one.disable_scale_in or other.disable_scale_in,
    )


def _described(resource: ResourceSetup) -> str:
    return ", ".join(f"{dimension} {_range(resource.target(dimension))}" for dimension in Dimension)


def _range(target: TargetSetup) -> str:
    if not target.has_target:
        return f"{target.units:,} fixed"
    how = "without a policy" if target.tracking is None else f"at {target.tracking.target_percent} %"
    return f"{target.min:,} to {target.max:,} {how}"


def _notes(setup: TableSetup) -> Iterator[str]:
    """Yield what the code has otherwise: scheduled actions, which become windows, and reads of replicas."""
    for resource in setup.resources:
        if _shared(resource.read, resource.index, setup.replicas) != resource.read:
            yield (
                f"{resource.label} read: replicas differ, and manage_capacity gives all the same; the code has the "
                "most of each"
            )
        for dimension in Dimension:
            kept = _at_all_times(resource.target(dimension))
            if kept.tracking is not None and resource.target(dimension).tracking is None:
                yield (
                    f"{resource.label} {dimension}: no policy that could be read moves it between its bounds; the code "
                    f"has target tracking at {kept.tracking.target_percent} %"
                )
            for action in resource.target(dimension).actions:
                given = {"min": action.min, "max": action.max}
                bounds = ", ".join(f"{name} {units:,}" for name, units in given.items() if units is not None)
                what = f"{resource.label} {dimension}: scheduled action {action.name!r} ({bounds})"
                if (action.min or 0) > resource.target(dimension).min:
                    yield (
                        f"{what} becomes a floor at all times, so that nothing is lost; declare it as a Window, which "
                        "opens and closes, and lower the floor"
                    )
                else:
                    yield f"{what} is not in the code; declare it as a Window, which opens and closes"


@click.command("migrate", short_help="Plan how existing tables come under manage_capacity.")
@click.argument("template", type=_path)
@click.option("--table", help="Only this table: its construct's path or any end of it, logical id, or name.")
@parameters_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def migrate_command(
    template: Path, table: str | None, parameters: Mapping[str, str], no_scaling: tuple[str, ...], as_json: bool
) -> None:
    """Plan how the tables of TEMPLATE, a cdk.out folder or a template, come under Highwater's manage_capacity.

    For each table: what scales it now, the deploys in their order with what owns the scalable targets meanwhile, the
    code that keeps its floors, ceilings and targets, and the way back. Nothing is changed.

    \b
    highwater migrate cdk.out
    highwater migrate cdk.out --table Orders

    Exit status: 0 fine, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    check_places({"TEMPLATE": template}, {})
    if is_plan(template):
        raise Misuse(
            f"{template}: is a plan or state of Terraform, and manage_capacity is for apps of the CDK; for Terraform, "
            "highwater recommend --code hcl prints tables with their scaling"
        )
    with misuse_of_errors():
        templates = load_templates(template)
        check_given(templates, parameters, no_scaling)
        app = read_app(templates, parameters, no_scaling)
    if not app.tables:
        raise Misuse(app.nothing)
    chosen = app if table is None else app.only(tables_called(app.tables, table))
    if not chosen.tables:
        raise Misuse(f"there is no table {table!r}; the tables are {', '.join(each.name for each in app.tables)}")
    migrations = [migration_of(each, chosen.remarks) for each in chosen.tables]
    added = added_by(chosen.tables, migrations)
    not_read = [each.text for each in chosen.remarks]
    if as_json:
        document = {"tables": [each.document() for each in migrations], "not_read": not_read}
        click.echo(json.dumps(document | {"added": [each.document() for each in added]}))
        return
    told = [*(each.text() for each in added), *([_CONFIG] if added else []), *(f"! {text}" for text in not_read)]
    lines = "".join(f"{line}.\n" for line in told)
    click.echo("\n".join((*map(_text, migrations), *([lines] if lines else []))), nl=False)


def _text(migration: Migration) -> str:
    lines = [f"{migration.name}: {migration.what}", *(f"  {step}." for step in migration.steps)]
    lines += [f"  ! {note}." for note in migration.notes]
    if migration.code:
        lines += ["", *(f"    {line}".rstrip() for line in migration.code.splitlines()), ""]
    return "\n".join(lines) + "\n"
