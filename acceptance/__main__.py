"""Runs the acceptance suite: `python -m acceptance`, by way of `make acceptance`."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TextIO, cast

import click
from rich.console import Console

from acceptance.cdk import ROOT
from acceptance.cleanup import clean_earlier_runs, tell_unfinished
from acceptance.costs import tell_cost
from acceptance.parts import choose
from acceptance.place import Place, forget_other_places, local_place, open_account
from acceptance.run import Run
from highwater.core import HighwaterError
from highwater.terminal.console import hear_interrupts
from highwater_lab.local.control import REGION, CloudError

_BUILD = ROOT / "build" / "acceptance"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--profile", default="", help="A profile of AWS credentials. Needs --account.")
@click.option("--account", default="", help="The 12 digits of the account that the profile must be of.")
@click.option("--region", default="", help="The region; the profile's by default.")
@click.option("--parts", default="", help="Names of the parts to run, all by default.")
@click.option("--most-usd", default=5.0, show_default=True, help="Do not begin if the run can cost more.")
@click.option("--cost", "tells_cost", is_flag=True, help="Only tell what the run can cost.")
@click.option("--clean", is_flag=True, help="Delete what earlier runs could not delete.")
@click.option("--build", type=click.Path(path_type=Path), default=_BUILD, help="Where the report and the ledgers go.")
def main(
    profile: str, account: str, region: str, parts: str, most_usd: float, build: Path, *, tells_cost: bool, clean: bool
) -> None:
    """Deploy tables, check what Highwater promises of them, measure AWS, and delete everything.

    Runs on a local cloud, offline and free, unless both --profile and --account are given. Exits with status 0 if every
    check holds, 1 if one does not or if anything is left, 2 if the suite cannot run, 130 if it was interrupted.
    """
    forget_other_places()
    hear_interrupts(signal.SIGINT, signal.SIGTERM)
    hear_hangup()
    console = _console()
    try:
        if clean:
            sys.exit(clean_earlier_runs(console, build))
        chosen = choose(parts)
        if bool(profile) is not bool(account):
            raise click.UsageError("PROFILE and ACCOUNT belong together: give both for an account, or neither")
        if tells_cost:
            tell_cost(console, chosen, region or REGION)
            return
        opened: AbstractContextManager[Place] = (
            nullcontext(open_account(profile, account, region)) if account else local_place()
        )
        with opened as place:
            sys.exit(Run(place, chosen, build, console, profile=profile, most_usd=most_usd).run())
    except (HighwaterError, CloudError) as error:
        console.print(f"acceptance: {error}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        # a new console: the old one would repeat the line in whose middle it was interrupted
        _console().print("acceptance: interrupted", style="red")
        if clean:
            tell_unfinished(_console(), build)
        sys.exit(130)
    finally:
        if not (clean or tells_cost):
            tell_unfinished(_console(), build)


def _console() -> Console:
    return Console(soft_wrap=True, file=cast("IO[str]", LastingOutput(sys.stdout)))


def hear_hangup() -> None:
    """Have SIGHUP raise `KeyboardInterrupt` once; a program that was started with `nohup` goes on not to hear it.

    The terminal and its shell may both send it; only the first counts, as a second one would end the deletion.
    """

    def hear(_: int, __: object) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hear)


class LastingOutput:
    """A stream that drops what is written once its reader is gone, such as `tee` after Ctrl-C or a closed terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding
        self.isatty = stream.isatty
        self.fileno = stream.fileno

    def write(self, text: str) -> int:
        """Write *text* at once, or drop it."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # what is still buffered would raise again at the end of the program
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        return len(text)

    def flush(self) -> None:
        """Do nothing more, as all is written at once."""


if __name__ == "__main__":
    main()
