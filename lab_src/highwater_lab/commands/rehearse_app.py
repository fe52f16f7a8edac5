"""`highwater rehearse --all` and `--against`: all tables of an app, before and after a change."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.markup import escape

from highwater.cli.terminal import open_console
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors, progress_bar
from highwater_lab.commands.traffic_source import TrafficSource
from highwater_lab.rehearse import AppRehearsal, Limits, Passed, rehearse_app
from highwater_lab.report.app import app_document, app_markdown, print_app
from highwater_lab.report.app_page import write_app_page
from highwater_lab.template import ListedTable, count_fixed, is_plan, list_tables, load_prior, load_templates

# What --against is for the state that a Terraform plan was made from
PRIOR = "prior"
FORMATS = ("text", "markdown", "json")
_SYNTH_SECONDS = 600


def run_for_app(
    template: Path,
    source: TrafficSource,
    limits: Limits,
    *,
    against: str | None,
    table: str | None,
    parameters: Mapping[str, str],
    cheapest_within: float | None,
    form: str,
    page: Path | None,
) -> bool:
    """Rehearse all tables of an app and print the result; return whether a limit is exceeded, or a hazard found.

    Args:
        template: The app's `cdk.out` folder, a template, or a Terraform plan.
        source: The traffic.
        limits: What may not be exceeded.
        against: The old app: a folder, a template, a Terraform plan or state, `prior` for the state that the plan in
            *template* was made from, or a revision of git, which is synthesized; `None` for none.
        table: The end of the path, or another name, of the only table to rehearse; `None` for all.
        parameters: Values of template parameters, of both apps.
        cheapest_within: The highest percentage of throttled units of a cheapest plan to search for, `None` for none.
        form: `text`, `markdown` or `json`.
        page: The HTML file to write, `None` for none.

    Raises:
        Misuse: The apps or the traffic cannot be read, or nothing is left to rehearse.
    """
    check_places({"TEMPLATE": template, **source.inputs}, {"--html": page})
    with misuse_of_errors():
        templates = {"after": load_templates(template)}
        if against == PRIOR and is_plan(template):
            templates["before"] = load_prior(template)
        elif against is not None:
            if is_plan(template) and not Path(against).exists():
                raise Misuse(
                    f"--against {against}: is no file, and no plan of Terraform is made of a revision of git; compare "
                    "with the state that the plan was made from: --against prior"
                )
            with _old_app(against) as old:
                templates["before"] = load_templates(old)
        tables = {which: list_tables(each, parameters) for which, each in templates.items()}
        if not any(tables.values()):
            raise Misuse(f"{template}: no DynamoDB table, so there is nothing to rehearse")
        fixed: dict[str, Counter[tuple[str, str]]] = {}
        if table is None:
            # what is paid for beside the tables, if they are all rehearsed
            fixed = {which: count_fixed(each, parameters) for which, each in templates.items()}
        else:
            tables = _called(table, tables)
        traffic_of = source.read_traffic_of_tables()
        with progress_bar("rehearsing") as progress:
            app = rehearse_app(
                tables["after"],
                traffic_of,
                before=tables.get("before"),
                against=against or "",
                timing=source.timing(),
                price_region=source.price_region,
                prices_file=source.prices_file,
                commitments=source.commitments,
                has_config_recorder=source.config_recorder,
                fixed=fixed.get("after"),
                fixed_before=fixed.get("before", fixed.get("after")),
                cheapest_within=cheapest_within,
                progress=progress,
            )
        exceeded = limits.passed_by_app(app)
        if page is not None:
            write_app_page(app, page, exceeded)
    _print(app, exceeded, form, page)
    return bool(exceeded) or any(each.is_finding for each in app.hazards)


def _called(name: str, tables: Mapping[str, Sequence[ListedTable]]) -> dict[str, list[ListedTable]]:
    """Return of each app the tables that people may mean by a name; raises `Misuse` if there is none in either."""
    kept = {which: [table for table in each if table.is_called(name)] for which, each in tables.items()}
    if not any(kept.values()):
        names = ", ".join(sorted({table.name for each in tables.values() for table in each}))
        raise Misuse(f"there is no table {name!r}; the tables are {names}")
    return kept


def _print(app: AppRehearsal, exceeded: Sequence[Passed], form: str, page: Path | None) -> None:
    if form == "json":
        click.echo(json.dumps(app_document(app, exceeded)))
    elif form == "markdown":
        click.echo(app_markdown(app, exceeded), nl=False)
    else:
        console = open_console()
        print_app(app, console)
        if page is not None:
            console.print(f"written: {page}", highlight=False, markup=False)
        for limit in exceeded:
            console.print(f"[red]✗[/] {escape(limit.text)}", highlight=False, soft_wrap=True)


def refuse_options(given: Mapping[str, object], where: str, of: str = "one table") -> None:
    """Raise `Misuse` for the first option that has a value, saying what it is *of* and *where* it has no effect."""
    for option, value in given.items():
        if value:
            raise Misuse(f"{option} is for {of}; remove it {where}")


@contextlib.contextmanager
def _old_app(against: str) -> Iterator[Path]:
    """Yield the folder or template of the old app; a revision of git is synthesized, and removed afterwards."""
    if Path(against).exists():
        yield Path(against)
        return
    no_folder = f"--against {against}: is neither a folder or template nor a revision of git"
    commit = _run(["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{against}^{{commit}}"], no_folder)
    here = _run(["git", "rev-parse", "--show-prefix"], no_folder)
    with tempfile.TemporaryDirectory(prefix="highwater-") as folder:
        tree, out = Path(folder) / "tree", Path(folder) / "cdk.out"
        _run(["git", "worktree", "add", "--detach", "--quiet", str(tree), commit], no_folder)
        try:
            _lend(tree / here)
            _run([_cdk(), "synth", "--quiet", "--output", str(out)], f"--against {against}: cdk synth", tree / here)
            yield out
        finally:
            _run(["git", "worktree", "remove", "--force", str(tree)], f"--against {against}")


def _lend(place: Path) -> None:
    """Link what is installed beside the app, and is not in its repository, into the folder of the old app."""
    for name in (".venv", "venv", "node_modules"):
        own = Path.cwd() / name
        if own.is_dir() and place.is_dir() and not (place / name).exists():
            (place / name).symlink_to(own)


def _cdk() -> str:
    """Return the CDK CLI: the project's own, or that on the path."""
    own = [folder / "node_modules" / ".bin" for folder in (Path.cwd(), *Path.cwd().parents)]
    path = os.pathsep.join([*(str(folder) for folder in own if folder.is_dir()), os.environ.get("PATH", "")])
    found = shutil.which("cdk", path=path)
    if found is None:
        raise Misuse("--against: the CDK CLI is not found, so a revision cannot be synthesized; npm install aws-cdk")
    return found


def _run(command: Sequence[str], what: str, folder: Path | None = None) -> str:
    """Return what a command prints; raise `Misuse` with the last line of what it complains of."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_SYNTH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise Misuse(f"{what}: {failed}") from failed
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Misuse(f"{what}: {lines[-1]}" if lines else what)
    return done.stdout.strip()
