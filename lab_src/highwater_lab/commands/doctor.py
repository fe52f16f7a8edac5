"""`highwater doctor`: whether an account, a region and an app in it are as Highwater needs them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from highwater.terminal.console import open_console, say
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors
from highwater_lab.commands.traffic_source import open_session, telling_of
from highwater_lab.doctor import CHECKS, CheckedPlace, Result, State, run_checks

_USUAL_FOLDER = Path("cdk.out")
_COLOURS = {State.OK: "green", State.WARNING: "yellow", State.FAILURE: "red"}
_path = click.Path(path_type=Path)


@click.command("doctor", short_help="Check an account and an app before a deploy, or when something is odd.")
@click.argument("folder", metavar="[CDK_OUT]", type=_path, required=False)
@click.option("--region", help="Region to check. By default AWS_REGION, or that of your AWS configuration.")
@click.option("--profile", help="Profile of your AWS configuration. By default AWS_PROFILE.")
@click.option("--only", "names", multiple=True, type=click.Choice(list(CHECKS)), help="Run this check; several may be.")
@click.option(
    "--prices", "prices_file", type=_path, help="Use the prices in this JSON file; `highwater prices` makes one."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def doctor_command(
    folder: Path | None,
    region: str | None,
    profile: str | None,
    names: Sequence[str],
    prices_file: Path | None,
    as_json: bool,
) -> int:
    """Check an account and region, and the app that cdk synth wrote to CDK_OUT, by default to cdk.out if it is there.

    Reads only. A line for each check: ok, warning, or failure with its fix. A check that may not be read is a warning
    with the missing permission. The page docs/doctor.md has them all, and the policy.

    \b
    highwater doctor
    highwater doctor cdk.out --only drift --only leftovers

    Exit status: 0 fine, or warnings alone; 1 a failure; 2 misuse, or no credentials.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    check_places({"--prices": prices_file}, {})
    if folder is None and _USUAL_FOLDER.is_dir():
        folder = _USUAL_FOLDER
    session = open_session(profile, region or os.environ.get("AWS_REGION") or None)
    if not session.region_name:
        raise Misuse("no region is set; give --region, or set AWS_REGION")
    with telling_of("the credentials"):
        place = CheckedPlace(session, prices_file)
    try:
        with misuse_of_errors():
            if folder is not None:
                place.open_app(folder)
            results = list(run_checks(place, [name for name in CHECKS if not names or name in names]))
    finally:
        place.close()
    counts = Counter(result.state for result in results)
    if as_json:
        document = {
            "account": place.account,
            "region": place.region,
            "app": None if folder is None else str(folder),
            "elsewhere": [] if place.app is None else list(place.app.elsewhere),
            "results": [result.document() for result in results],
        }
        click.echo(json.dumps(document, indent=1))
    else:
        _print(place, folder, results, counts)
    return int(bool(counts[State.FAILURE]))


def _print(place: CheckedPlace, folder: Path | None, results: Sequence[Result], counts: Counter[State]) -> None:
    app = "without an app: run cdk synth, or give its folder" if folder is None else f"with {folder}"
    say(f"account {place.account}, region {place.region}, {app}")
    if place.app is not None and place.app.elsewhere:
        say(f"left out, as they go to another account or region: {', '.join(place.app.elsewhere)}")
    console = open_console()
    for result in results:
        console.print(result.line, style=_COLOURS[result.state], markup=False, highlight=False, soft_wrap=True)
    failures, warnings = counts[State.FAILURE], counts[State.WARNING]
    say(f"{failures} failure{'s' * (failures != 1)}, {warnings} warning{'s' * (warnings != 1)}")
