"""`highwater rehearse`: all tables of an app, before and after a change."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.markup import escape

from highwater.terminal.console import inert, open_console
from highwater_lab.commands.options import (
    Finite,
    Misuse,
    check_places,
    misuse_of_errors,
    parameters_options,
    progress_bar,
)
from highwater_lab.commands.traffic_source import TrafficSource, traffic_options
from highwater_lab.rehearse import AppRehearsal, Limits, Passed, rehearse_app
from highwater_lab.report.app import app_document, app_markdown, print_app
from highwater_lab.report.app_page import write_app_page
from highwater_lab.template import (
    HazardKind,
    ListedApp,
    check_given,
    is_plan,
    load_prior,
    load_templates,
    match_tables,
    read_app,
    tables_called,
)

# What --against is for the state that a Terraform plan was made from
PRIOR = "prior"
FORMATS = ("text", "markdown", "json")
_SYNTH_SECONDS = 600


_FINDING = 1
_path = click.Path(path_type=Path)


@click.command("rehearse", short_help="Simulate all tables of an app, or a change of it, before it is deployed.")
@click.argument("template", type=_path)
@traffic_options(of_one=False, of_all=True)
@click.option(
    "--against",
    metavar="OLD",
    help="Compare with an older app: a cdk.out folder, a template, a Terraform plan or state, or a revision of git, "
    "whose TEMPLATE is read, or whose app is synthesized if it has none; or prior, the state that the plan TEMPLATE "
    "was made from.",
)
@click.option("--table", help="Only this table: its construct's path or any end of it, logical id, or name.")
@parameters_options
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    help="Highest allowed percentage of throttled units; exit status 1 above it.",
)
@click.option("--max-cost", type=Finite(0), help="Highest allowed cost in USD a month; exit status 1 above it.")
@click.option(
    "--max-throttled-rise",
    type=Finite(0, 100),
    help="With --against: how many percentage points more may be throttled, of each table; exit status 1 above it.",
)
@click.option(
    "--max-cost-rise",
    type=Finite(0),
    help="With --against: how many USD a month more the tables of a stage may cost together; exit status 1 above it.",
)
@click.option(
    "--fail-on-unknown",
    is_flag=True,
    help="Exit status 1 if a table is unknown, as it has no traffic or cannot be read, or if it is not known whether "
    "the change replaces it.",
)
@click.option(
    "--accept",
    "accepted",
    metavar="KIND=TABLE",
    multiple=True,
    callback=lambda _context, _option, given: tuple(map(_accepted, given)),
    help="With --against: accept a refused change or a loss, by the kind and table that its line has, such as "
    "removed=Prod/Shop/Orders; it does not make the exit status 1. Can be repeated.",
)
@click.option(
    "--cheapest-within",
    type=Finite(0, 100),
    help="Also search for each table's cheapest plan that throttles at most this percentage, which takes minutes.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to print. Markdown is for a comment on a pull request.",
)
@click.option("--html", type=_path, help="Write the report to this HTML file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def rehearse_command(
    template: Path,
    source: TrafficSource,
    against: str | None,
    table: str | None,
    parameters: Mapping[str, str],
    no_scaling: tuple[str, ...],
    max_throttled: float | None,
    max_cost: float | None,
    max_throttled_rise: float | None,
    max_cost_rise: float | None,
    fail_on_unknown: bool,
    accepted: tuple[str, ...],
    cheapest_within: float | None,
    form: str,
    html: Path | None,
    as_json: bool,
) -> None:
    """Simulate all tables of TEMPLATE, a cdk.out folder, a CloudFormation template or a Terraform plan, under traffic.

    Each table has its own traffic, from a file or a folder with all tables, as highwater traffic fetch --all writes it,
    or from CloudWatch with --live. Shows what each costs and throttles; with --against, what a change makes of that. A
    table that cannot be read, or has no traffic, counts as unknown. What the template declares and is not read, such as
    a scaling plan, is named, and what it concerns is unknown where it differs.

    \b
    highwater rehearse cdk.out --traffic traffic
    highwater rehearse cdk.out --against main --traffic traffic --format markdown --max-cost-rise 100
    highwater rehearse plan.json --against prior --traffic traffic

    highwater simulate is for one table: with scenarios, other policies, jobs, boosts and pictures.

    Exit status: 0 fine, 1 a limit is exceeded, writes wait for the drain time of their queue or longer, or AWS refuses
    the change, or a table is lost or interrupted by it and the line is not accepted, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    if against is None and (max_throttled_rise is not None or max_cost_rise is not None):
        raise Misuse("--max-throttled-rise and --max-cost-rise compare with an older app; give it with --against")
    if against is None and accepted:
        raise Misuse("--accept is for the lines of a comparison; give the older app with --against")
    limits = Limits(
        max_throttled_percent=max_throttled,
        max_cost_per_month=max_cost,
        max_throttled_rise=max_throttled_rise,
        max_cost_rise=max_cost_rise,
        fails_on_unknown=fail_on_unknown,
    )
    check_places({"TEMPLATE": template, **source.inputs}, {"--html": html})
    with misuse_of_errors():
        apps = _read_apps(template, against, parameters, no_scaling)
        every = [each for app in apps.values() for each in app.tables]
        if table is not None:
            apps = _called(table, apps)
        old = apps["before"].tables if "before" in apps else ()
        pairs = [[each for each in pair if each is not None] for pair in match_tables(old, apps["after"].tables)]
        traffic_of = source.read_traffic_of_tables(pairs, every)
        with progress_bar("rehearsing") as progress:
            app = rehearse_app(
                apps["after"],
                traffic_of,
                before=apps.get("before"),
                against=against or "",
                conditions=source.conditions(),
                cheapest_within=cheapest_within,
                accepted=accepted,
                left_over=traffic_of.left_over,
                progress=progress,
            )
        exceeded = limits.passed_by_app(app)
        if html is not None:
            write_app_page(app, html, exceeded)
    _print(app, exceeded, "json" if as_json else form, html)
    if exceeded or any(each.is_finding for each in app.hazards):
        raise click.exceptions.Exit(_FINDING)


def _accepted(text: str) -> str:
    """Return an accepted line as the guard names it; raise `Misuse` for another form."""
    kind, _, table = text.partition("=")
    if kind not in list(HazardKind) or not table:
        kinds = ", ".join(HazardKind)
        raise Misuse(
            f"--accept {text}: is not KIND=TABLE as a line has them, such as removed=Prod/Shop/Orders; the kinds are "
            f"{kinds}"
        )
    return text


def _read_apps(
    template: Path, against: str | None, parameters: Mapping[str, str], no_scaling: tuple[str, ...]
) -> dict[str, ListedApp]:
    """Return the app as `after` and, if it is compared, the old one as `before`; raise `Misuse` if neither has a table.

    *against* is a folder, a template, a Terraform plan or state, `prior` for the state that the plan in *template* was
    made from, or a revision of git: its version of *template*, or the app of the revision, synthesized.
    """
    templates = {"after": load_templates(template)}
    if against == PRIOR and is_plan(template):
        templates["before"] = load_prior(template)
    elif against is not None:
        if is_plan(template) and not Path(against).exists():
            raise Misuse(
                f"--against {against}: is no file, and no plan of Terraform is made of a revision of git; compare "
                "with the state that the plan was made from: --against prior"
            )
        if not against:
            raise Misuse(
                "--against is empty; give a folder, a template, a Terraform plan or state, or a revision of git"
            )
        with _old_app(against, template) as old:
            # a template that the revision does not have is a new one, with all of its tables
            templates["before"] = [] if old is None else load_templates(old)
    check_given((each for loaded in templates.values() for each in loaded), parameters, no_scaling)
    apps = {
        which: read_app(each, parameters, no_scaling) if each else ListedApp(tables=())
        for which, each in templates.items()
    }
    if not any(each.tables or each.remarks for each in apps.values()):
        raise Misuse(apps["after"].nothing)
    return apps


def _called(name: str, apps: Mapping[str, ListedApp]) -> dict[str, ListedApp]:
    """Return each app with the tables alone that people may mean by a name; raises `Misuse` if neither has one."""
    chosen = {id(table) for table in tables_called((each for app in apps.values() for each in app.tables), name)}
    kept = {which: app.only(table for table in app.tables if id(table) in chosen) for which, app in apps.items()}
    if not any(app.tables for app in kept.values()):
        listed = ", ".join(sorted({table.name for app in apps.values() for table in app.tables}))
        raise Misuse(f"there is no table {name!r}; the tables are {listed}")
    return kept


def _print(app: AppRehearsal, exceeded: Sequence[Passed], form: str, page: Path | None) -> None:
    if form == "json":
        click.echo(json.dumps(app_document(app, exceeded)))
    elif form == "markdown":
        click.echo(inert(app_markdown(app, exceeded)), nl=False)
    else:
        console = open_console()
        print_app(app, console)
        if page is not None:
            console.print(f"written: {page}", highlight=False, markup=False)
        for limit in exceeded:
            console.print(f"[red]✗[/] {escape(limit.text)}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _old_app(against: str, template: Path) -> Iterator[Path | None]:
    """Yield the folder or template of the old app, which is removed afterwards if it is made of a revision of git.

    A revision that has the template has it as it was. Another one is synthesized, or has none yet: `None`.
    """
    if Path(against).exists():
        yield Path(against)
        return
    no_folder = f"--against {against}: is neither a folder or template nor a revision of git"
    place = _repository_of(template)
    verify = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{against}^{{commit}}"]
    commit = _run(verify, no_folder, place)
    here = _run(["git", "rev-parse", "--show-prefix"], no_folder, place)
    with tempfile.TemporaryDirectory(prefix="highwater-") as folder, _ended_by_exception():
        tree, out = Path(folder) / "tree", Path(folder) / "cdk.out"
        _run(["git", "worktree", "add", "--detach", "--quiet", str(tree), commit], no_folder, place)
        try:
            was = _version_of(template, tree, place)
            if was is not None:
                yield was
                return
            if not (tree / here / "cdk.json").exists():
                if not _is_in_repository(template, place):
                    raise Misuse(
                        f"--against {against}: has no {template}, which git ignores or does not have, and no cdk.json "
                        "of an app to synthesize; give the old app's folder or template"
                    )
                yield None
                return
            _lend(tree / here)
            _run([_cdk(), "synth", "--quiet", "--output", str(out)], f"--against {against}: cdk synth", tree / here)
            yield out
        finally:
            _run(["git", "worktree", "remove", "--force", str(tree)], f"--against {against}", place)


@contextlib.contextmanager
def _ended_by_exception() -> Iterator[None]:
    """Let a request to end the process, as a cancelled job gets, end it by an exception, so that it cleans up."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _repository_of(template: Path) -> Path:
    """Return the folder to run git in: that of a template which git has, the current one for another."""
    folder = template.resolve().parent
    return folder if _is_in_repository(template, folder) else Path.cwd()


def _is_in_repository(template: Path, place: Path) -> bool:
    """Return whether a template is in the repository of a folder, and not ignored there."""
    path = str(template.resolve())
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", path]
    try:
        return bool(_run(listed, "", place))
    except Misuse:
        return False


def _version_of(template: Path, tree: Path, place: Path) -> Path | None:
    """Return the version of a template, or of a folder of templates, in a work tree; `None` if it has none."""
    top = Path(_run(["git", "rev-parse", "--show-toplevel"], "--against", place)).resolve()
    path = template.resolve()
    version = tree / path.relative_to(top) if path.is_relative_to(top) else None
    is_app = version == tree and (tree / "cdk.json").exists()
    return version if version is not None and version.exists() and not is_app else None


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
