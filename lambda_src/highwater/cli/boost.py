"""`highwater boost`: ask for capacity, and run a command while it is there."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from highwater.cli.coordinator_call import coordinator_option, told_in_a_line
from highwater.cli.durations import Duration
from highwater.cli.leased_command import ended_by_signals, run_in_lease
from highwater.cli.options import account_options, as_json_option
from highwater.cli.terminal import open_console, say
from highwater.client import (
    Boost,
    BoostAnswer,
    BoostError,
    BoostRefusedError,
    BoostState,
    read_units_for_scan,
    write_units_for_load,
)
from highwater.client import boost as make_boost

_units = click.IntRange(min=1)


@click.command(short_help="Ask for capacity, and run a command while it is there.")
@click.argument("table")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--write", type=_units, metavar="UNITS", help="Units per second of writes, on top of what is there.")
@click.option("--read", type=_units, metavar="UNITS", help="Units per second of reads, on top of what is there.")
@click.option(
    "--write-total", type=_units, metavar="UNITS", help="Units per second of writes in total, with what is there."
)
@click.option(
    "--read-total", type=_units, metavar="UNITS", help="Units per second of reads in total, with what is there."
)
@click.option(
    "--write-rate",
    type=_units,
    metavar="UNITS",
    help="Units per second that will be written, on top of present traffic.",
)
@click.option(
    "--read-rate", type=_units, metavar="UNITS", help="Units per second that will be read, on top of present traffic."
)
@click.option("--items", type=_units, metavar="NUMBER", help="Size the writes: how many items are loaded ...")
@click.option("--item-bytes", type=_units, metavar="NUMBER", help="... of how many bytes each ...")
@click.option("--scan", is_flag=True, help="Size the reads: the whole table is scanned, by the size DynamoDB knows ...")
@click.option("--done-in", type=Duration(), help="... and how long the job may take from now on, such as 40m.")
@click.option("--index", help="The index to boost. By default the table, and with its writes all its indexes.")
@click.option(
    "--for", "length", type=Duration(), required=True, help="How long the lease lasts, such as 30m; up to 1d."
)
@click.option("--at", type=str, help="When the job starts, such as 2027-03-04T02:00Z. By default now.")
@click.option(
    "--hold", type=click.Choice(["lease", "start"]), default="lease", help="start: until traffic has arrived."
)
@click.option("--reason", default="", help="Why, for the log.")
@click.option("--all-or-nothing", is_flag=True, help="Refuse what cannot be granted whole.")
@click.option("--timeout", type=Duration(), default="5m", show_default=True, help="How long to wait for the capacity.")
@click.option("--no-wait", is_flag=True, help="Return with the answer, before the capacity is there.")
@coordinator_option
@account_options
@as_json_option
def boost(
    table: str,
    command: tuple[str, ...],
    length: timedelta,
    at: str | None,
    timeout: timedelta,
    no_wait: bool,
    all_or_nothing: bool,
    items: int | None,
    item_bytes: int | None,
    scan: bool,
    done_in: timedelta | None,
    region: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Ask a BoostCoordinator for capacity of TABLE.

    With a COMMAND after `--`, wait for the capacity, run the command, renew the lease while it runs and give it back at
    its end. The exit status is the command's, and signals reach it. Without one, wait for the capacity and leave the
    lease to end by itself, or to `highwater unboost`.

    Exit status: 0 if the capacity is there, 1 if it is refused or does not come in time, 2 for misuse.
    """
    minutes, rest = divmod(length, timedelta(minutes=1))
    session = boto3.Session(region_name=region)
    with told_in_a_line():
        asked |= _sized(table, asked, items, item_bytes, done_in, session, scan=scan)
    made = make_boost(
        table,
        minutes=minutes + bool(rest),
        at=_instant(at),
        is_all_or_nothing=all_or_nothing,
        timeout=timeout,
        session=session,
        **asked,
    )
    if command and at is not None:
        raise click.UsageError("--at books capacity ahead; a command would start now")
    with told_in_a_line(), ended_by_signals():
        answer = _begin(made, is_kept=not command)
        _show(answer, as_json=as_json, err=bool(command))
        if not no_wait and at is None:
            _wait(made, quiet=as_json, is_kept=not command)
    return run_in_lease(made, command) if command else 0


def _sized(
    table: str,
    asked: dict[str, Any],
    items: int | None,
    item_bytes: int | None,
    done_in: timedelta | None,
    session: boto3.Session,
    *,
    scan: bool,
) -> dict[str, int]:
    """The units that a deadline asks for."""
    is_load = items is not None or item_bytes is not None
    if not is_load and not scan:
        if done_in is not None:
            raise click.UsageError("--done-in sizes a job; give --items and --item-bytes, or --scan")
        return {}
    if done_in is None or (is_load and (items is None or item_bytes is None)):
        raise click.UsageError("a job is sized by --items, --item-bytes and --done-in, or by --scan and --done-in")
    found: dict[str, int] = {}
    if is_load and items is not None and item_bytes is not None:
        found["write"] = write_units_for_load(items, item_bytes, done_in)
    if scan:
        found["read"] = read_units_for_scan(table, done_in, index=asked["index"], session=session)
    return found


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise click.UsageError(f"{text!r} is no instant with its zone; write it like 2027-03-04T02:00Z")
    return at.astimezone(UTC)


def _show(answer: BoostAnswer, *, as_json: bool, err: bool) -> None:
    if as_json:
        document = asdict(answer) | {"start": answer.start.isoformat(), "end": answer.end.isoformat()}
        click.echo(json.dumps(document | {"usd_per_hour": answer.usd_per_hour}, indent=1), err=err)
        return
    for line in (*answer.lines(), f"boost {answer.id}"):
        say(line, err=err)


def _begin(made: Boost, *, is_kept: bool) -> BoostAnswer:
    try:
        return made.begin()
    except BoostRefusedError:
        raise
    except BaseException:
        # it may have been granted, though the answer was lost
        if not is_kept:
            with suppress(BoostError):
                made.release()
        raise


def _wait(made: Boost, *, quiet: bool, is_kept: bool) -> None:
    """Wait for the capacity with a bar; a lease that nobody would use is given back if it does not come."""
    console = Console(quiet=True) if quiet else open_console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("asking for capacity", total=None)

        def on_progress(state: BoostState) -> None:
            ready, wanted = sum(t.provisioned for t in state.targets), sum(t.wanted for t in state.targets)
            progress.update(task, description=state.line(), completed=min(ready, wanted), total=wanted)

        made.on_progress = on_progress
        try:
            made.wait()
        except BaseException:
            if not is_kept:
                made.release()
            raise
