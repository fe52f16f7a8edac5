"""`highwater migrate`: how the tables of an app come under `manage_capacity`, with the code, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from highwater.core import Dimension
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors, parameters_options
from highwater_lab.recommend.code import managed_code_of
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.template import ListedTable, is_plan, list_tables, load_templates

_path = click.Path(path_type=Path)
_TWO_DEPLOYS = (
    "deploy 1, in a quiet hour: remove its auto_scale_read_capacity, auto_scale_write_capacity and "
    "auto_scale_global_secondary_index_... calls, or its ScalableTarget and ScalingPolicy resources. CloudFormation "
    "deletes the scalable targets. The capacity stays as it is, and nothing scales it until deploy 2",
    "deploy 2, right after it: add the code below. CloudFormation registers the targets anew, and floors are at work "
    "when it ends. In one deploy it is refused: CloudFormation creates before it deletes, and AWS allows one target",
)
_ONE_DEPLOY = ("deploy: add the code below; nothing has to be removed before",)
_GLOBAL = (
    "deploy: add the code below. CloudFormation keeps the scalable targets of a global table, and changes their bounds",
)
_BACK = (
    "back: remove manage_capacity and deploy, which lowers the capacity to the base floors, or to the need of the last "
    "quarter of an hour; then add auto_scale_... again and deploy. In between nothing scales the table"
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
        notes: What the code leaves out.
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


def migration_of(table: ListedTable) -> Migration:
    """Return the way of one table."""
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
    what = "; ".join(f"{resource.label}: {_described(resource)}" for resource in setup.resources)
    has_target = any(_has_target(resource.target(dimension)) for resource in setup.resources for dimension in Dimension)
    own = (*_TWO_DEPLOYS, _BACK) if has_target else (*_ONE_DEPLOY, _BACK_FIXED)
    steps = (*_GLOBAL, _BACK_GLOBAL) if table.is_global else own
    return Migration(table.name, what, steps, managed_code_of(table.name, setup), tuple(_notes(setup)))


def _has_target(target: TargetSetup) -> bool:
    """Whether a scalable target is registered, with a policy, or with scheduled actions or bounds alone."""
    return target.is_scaled or bool(target.actions) or {target.min, target.max} != {target.units}


def _described(resource: ResourceSetup) -> str:
    return ", ".join(f"{dimension} {_range(resource.target(dimension))}" for dimension in Dimension)


def _range(target: TargetSetup) -> str:
    if not _has_target(target):
        return f"{target.units:,} fixed"
    how = "without a policy" if target.tracking is None else f"at {target.tracking.target_percent} %"
    return f"{target.min:,} to {target.max:,} {how}"


def _notes(setup: TableSetup) -> Iterator[str]:
    """Yield what the code leaves out: scheduled actions, which become windows."""
    for resource in setup.resources:
        for dimension in Dimension:
            for action in resource.target(dimension).actions:
                given = {"min": action.min, "max": action.max}
                bounds = ", ".join(f"{name} {units:,}" for name, units in given.items() if units is not None)
                yield (
                    f"{resource.label} {dimension}: scheduled action {action.name!r} ({bounds}) is not in the code; "
                    "declare it as a Window, which opens and closes"
                )


@click.command("migrate", short_help="Plan how existing tables come under manage_capacity.")
@click.argument("template", type=_path)
@click.option("--table", help="Only this table: its construct's path or any end of it, logical id, or name.")
@parameters_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def migrate_command(template: Path, table: str | None, parameters: Mapping[str, str], as_json: bool) -> None:
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
        listed = list_tables(load_templates(template), parameters)
    chosen = [each for each in listed if table is None or each.is_called(table)]
    if not chosen:
        names = ", ".join(each.name for each in listed) or "none"
        raise Misuse(f"there is no table {table!r}; the tables are {names}" if table else "there is no DynamoDB table")
    migrations = [migration_of(each) for each in chosen]
    if as_json:
        click.echo(json.dumps([each.document() for each in migrations]))
        return
    click.echo("\n".join(_text(each) for each in migrations), nl=False)


def _text(migration: Migration) -> str:
    lines = [f"{migration.name}: {migration.what}", *(f"  {step}." for step in migration.steps)]
    lines += [f"  ! {note}." for note in migration.notes]
    if migration.code:
        lines += ["", *(f"    {line}".rstrip() for line in migration.code.splitlines()), ""]
    return "\n".join(lines) + "\n"
