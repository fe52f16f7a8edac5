"""`highwater check`: runs an app, without the CDK CLI, and prints what Highwater finds in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from highwater.core import Severity
from highwater.terminal.console import open_console
from highwater_lab.commands.options import Misuse, misuse_of_errors
from highwater_lab.template.synthesized import SynthFinding, read_findings

_SYNTH_SECONDS = 600
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}
# where the CDK CLI looks for values of context, those later in the list first
_CONTEXT_FILES = (("cdk.json", "context"), ("cdk.context.json", None))


@click.command("check", short_help="Print the findings of an app in seconds, without the CDK CLI.")
@click.argument("app", type=click.Path(path_type=Path))
@click.option(
    "--context", "-c", "pairs", multiple=True, metavar="KEY=VALUE", help="A value of context, as for cdk synth."
)
@click.option("--strict", is_flag=True, help="Exit with status 1 for warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def check_command(app: Path, pairs: Sequence[str], strict: bool, as_json: bool) -> int:
    """Run the Python file APP, as cdk synth would, and print the findings of Highwater: errors, warnings, information.

    APP may be a folder that cdk synth wrote, too. A file runs in this folder with this Python, and with the context in
    cdk.json and cdk.context.json. Nothing is written here, and the CDK CLI is not needed.

    \b
    highwater check app.py
    highwater check app.py --strict -c stage=prod
    highwater check cdk.out

    What the app prints itself goes to standard error.

    Exit status: 0 fine, 1 a finding is an error, or with --strict a warning; 2 misuse, or an app that fails.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    given = _context(pairs)
    if app.is_dir() and pairs:
        raise Misuse("--context is for an app that is run; remove it for a folder that is synthesized already")
    if not app.exists():
        raise Misuse(f"{app}: does not exist; give the app's Python file, or the folder that cdk synth wrote")
    with misuse_of_errors():
        findings = read_findings(app) if app.is_dir() else _synthesized(app, given)
    counts = Counter(finding.severity for finding in findings)
    if as_json:
        listed = [
            {"severity": each.severity, "id": each.id, "where": each.where, "text": each.text} for each in findings
        ]
        click.echo(json.dumps({"findings": listed}))
    else:
        _print(findings, counts)
    return int(bool(counts[Severity.ERROR] or (strict and counts[Severity.WARNING])))


def _print(findings: Sequence[SynthFinding], counts: Counter[Severity]) -> None:
    console = open_console()
    for each in findings:
        colour = _COLOURS[each.severity]
        console.print(f"[{colour}]{each.severity}:[/] {escape(each.text)}", highlight=False, soft_wrap=True)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    total = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    console.print(total, highlight=False, soft_wrap=True)


def _context(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the values of the files and, before them, of the options."""
    values: dict[str, Any] = {}
    for name, member in _CONTEXT_FILES:
        file = Path(name)
        if not file.is_file():
            continue
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            values |= dict(document if member is None else document.get(member, {}))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise Misuse(f"{file}: cannot be read as the CDK's context: {error}") from error
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Misuse(f"--context: got {pair!r}, allowed: KEY=VALUE, such as stage=prod")
        values[key] = value
    return values


def _synthesized(app: Path, context: dict[str, Any]) -> list[SynthFinding]:
    """Run the app in a process of its own with a folder that is removed afterwards; return its findings."""
    with tempfile.TemporaryDirectory(prefix="highwater-check-", ignore_cleanup_errors=True) as folder:
        variables = {
            "CDK_OUTDIR": folder,
            "CDK_CONTEXT_JSON": json.dumps(context),
            # the CDK's own rules for templates take most of a synth, and are not what is asked for
            "CDK_VALIDATION": "false",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
            # so that what is printed to both streams stays in its order
            "PYTHONUNBUFFERED": "1",
        }
        try:
            done = subprocess.run(
                [sys.executable, str(app)],
                env=os.environ | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=_SYNTH_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            _pass_on(late.stdout)
            raise Misuse(f"{app}: has not ended after {_SYNTH_SECONDS} seconds; run it by itself") from late
        printed = _pass_on(done.stdout)
        if done.returncode != 0:
            lines = [line.strip() for line in printed.splitlines() if line.strip()]
            said = lines[-1] if lines else f"exit status {done.returncode}"
            raise Misuse(f"{app}: fails when it runs: {said}; run it by itself: python {app}")
        if not (Path(folder) / "manifest.json").exists():
            raise Misuse(f"{app}: wrote no cloud assembly; end it with app.synth(), and give App no outdir")
        return read_findings(Path(folder))


def _pass_on(output: bytes | None) -> str:
    """Print what an app printed to standard error, and return it."""
    text = (output or b"").decode(errors="replace")
    click.echo(text, nl=False, err=True)
    return text
