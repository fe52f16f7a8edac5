"""Runs the acceptance suite: `python -m acceptance`, by way of `make acceptance`."""

from __future__ import annotations

import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from acceptance.account import open_account
from acceptance.cdk import ROOT
from acceptance.cleanup import Cleanup, wait_for_nothing
from acceptance.ledger import Ledger
from acceptance.parts.catalogue import choose
from acceptance.place import Place, forget_other_places, local_place
from acceptance.run import Run
from highwater.cli.interrupts import hear_interrupts
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
    console = Console(soft_wrap=True)
    try:
        if clean:
            sys.exit(_clean(console, build))
        chosen = choose(parts)
        if bool(profile) is not bool(account):
            raise click.UsageError("PROFILE and ACCOUNT belong together: give both for an account, or neither")
        place: AbstractContextManager[Place] = (
            nullcontext(open_account(profile, account, region or None)) if account else local_place()
        )
        with place as where:
            run = Run(where, chosen, build, console, profile=profile, most_usd=most_usd)
            sys.exit(run.tell_cost() if tells_cost else run.run())
    except (HighwaterError, CloudError) as error:
        console.print(f"acceptance: {error}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        # a new console: the old one would repeat the line in whose middle it was interrupted
        Console().print("acceptance: interrupted", style="red")
        if any(Ledger.unfinished(build)):
            Console().print("not everything is deleted: run make acceptance CLEAN=yes", style="red")
        sys.exit(_INTERRUPTED)


def _clean(console: Console, build: Path) -> int:
    """Delete what the ledgers of earlier runs list; return the exit status."""
    left: list[Any] = []
    for ledger in Ledger.unfinished(build):
        place = open_account(ledger.profile, ledger.account, ledger.region)
        console.print(f"{ledger.prefix} in {place.title}", highlight=False)
        Cleanup(place, ledger, lambda text: console.print(text, highlight=False)).run()
        left += wait_for_nothing(place, ledger.prefix)
    for name in left:
        console.print(f"[red]left:[/] {name}", highlight=False)
    if not left:
        console.print("nothing is left of earlier runs")
    return 1 if left else 0


if __name__ == "__main__":
    main()
