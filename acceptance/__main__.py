"""Runs the acceptance suite: `python -m acceptance`, by way of `make acceptance`."""

from __future__ import annotations

import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, cast

import click
from rich.console import Console

from acceptance.account import AccountPlace, open_account, require_bootstrap
from acceptance.cdk import ROOT
from acceptance.clean import clean as clean_up
from acceptance.clean import tell_unfinished
from acceptance.hangup import LastingOutput, hear_hangup
from acceptance.parts.catalogue import choose
from acceptance.place import Place, forget_other_places, local_place
from acceptance.run import Run
from highwater.cli.terminal import hear_interrupts
from highwater.core import HighwaterError
from highwater_lab.local.control import CloudError

BUILD = ROOT / "build" / "acceptance"
_INTERRUPTED = 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--profile", default="", help="A profile of AWS credentials. Needs --account.")
@click.option("--account", default="", help="The 12 digits of the account that the profile must be of.")
@click.option("--region", default="", help="The region; the profile's by default.")
@click.option("--parts", default="", help="Names of the parts to run, all by default.")
@click.option("--most-usd", default=75.0, show_default=True, help="Do not begin if the run can cost more.")
@click.option("--cost", "tells_cost", is_flag=True, help="Only tell what the run can cost.")
@click.option("--clean", is_flag=True, help="Delete what earlier runs could not delete.")
@click.option(
    "--build", type=click.Path(path_type=Path), default=BUILD, help="Where report.md, facts.json and the ledgers go."
)
def main(
    profile: str,
    account: str,
    region: str,
    parts: str,
    most_usd: float,
    build: Path,
    *,
    tells_cost: bool,
    clean: bool,
) -> None:
    """Deploy the examples, check what they promise, measure AWS, and delete everything.

    Runs on a local cloud, offline and free, unless both --profile and --account are given. Exits with status 0 if every
    check holds, 1 if one does not or if anything is left, 2 if the suite cannot run, 130 if it was interrupted.
    """
    forget_other_places()
    hear_interrupts(signal.SIGINT, signal.SIGTERM)
    hear_hangup()
    console = _console()
    try:
        if clean:
            sys.exit(clean_up(console, build))
        chosen = choose(parts)
        if bool(profile) is not bool(account):
            raise click.UsageError("PROFILE and ACCOUNT belong together: give both for an account, or neither")
        place: AbstractContextManager[Place] = (
            nullcontext(_ready_account(profile, account, region)) if account else local_place()
        )
        with place as where:
            run = Run(where, chosen, build, console, profile=profile, most_usd=most_usd)
            sys.exit(run.tell_cost(region) if tells_cost else run.run())
    except (HighwaterError, CloudError) as error:
        console.print(f"acceptance: {error}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        # a new console: the old one would repeat the line in whose middle it was interrupted
        _console().print("acceptance: interrupted", style="red")
        if clean:
            tell_unfinished(_console(), build)
        sys.exit(_INTERRUPTED)
    finally:
        if not (clean or tells_cost):
            tell_unfinished(_console(), build)


def _console() -> Console:
    return Console(soft_wrap=True, file=cast("IO[str]", LastingOutput(sys.stdout)))


def _ready_account(profile: str, account: str, region: str) -> AccountPlace:
    place = open_account(profile, account, region or None)
    require_bootstrap(place, profile)
    return place


if __name__ == "__main__":
    main()
