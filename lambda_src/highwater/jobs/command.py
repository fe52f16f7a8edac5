"""`highwater jobs`: how far the jobs of many workers are; stops, resumes and deletes them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import click
from botocore.exceptions import NoRegionError
from rich.box import SIMPLE_HEAD
from rich.table import Table

from highwater.cli.options import NO_REGION, account_options, as_json_option
from highwater.jobs.job_table import JobError, JobTable
from highwater.jobs.segments import JobProgress
from highwater.terminal.console import open_console, say, tell

_FINDING = 1
# a segment that takes so much longer than the mean keeps one worker busy while the others have nothing to do
_SKEWED = 3


@click.group(short_help="How far jobs of many workers are; stop and resume them.")
def jobs() -> None:
    """Show, stop and resume jobs, which workers do together with highwater.jobs.run_worker."""


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all these commands, give them the table of jobs, and print errors as one line."""

    @account_options
    @click.option("--coordinator", help="Name of the coordinator whose table has the jobs. By default the only one.")
    @functools.wraps(function)
    def run(*, coordinator: str | None, region: str | None, **rest: Any) -> None:
        try:
            function(JobTable(coordinator, boto3.Session(region_name=region)), **rest)
        except NoRegionError:
            raise click.ClickException(NO_REGION) from None
        except JobError as error:
            raise click.ClickException(str(error)) from error

    return run


@jobs.command("list")
@_command
@as_json_option
def list_jobs(table: JobTable, *, as_json: bool) -> None:
    """List all jobs. Reads the coordinator's whole table."""
    found = [table.read(id).progress(table.time.now()) for id in table.ids()]
    if as_json:
        click.echo(json.dumps([each.document() for each in found], indent=1))
    elif found:
        open_console(is_cut_when_piped=False).print(_shown(found))
    else:
        say("there are no jobs; start one with highwater.jobs.start_job")


@jobs.command("show")
@click.argument("id")
@_command
@as_json_option
def show_job(table: JobTable, *, id: str, as_json: bool) -> None:
    """Show how far job ID is: its rate, the time left, and its slowest segment.

    Exit status: 1 if it is not done and no worker is at work on it.
    """
    progress = table.read(id).progress(table.time.now())
    tell(progress.document(), lines_of(progress), as_json=as_json)
    if progress.state in ("waiting", "stopped"):
        raise click.exceptions.Exit(_FINDING)


@jobs.command("stop")
@click.argument("id")
@_command
def stop_job(table: JobTable, *, id: str) -> None:
    """Stop job ID: each worker ends within five seconds, after its page, and gives its segment back."""
    table.stop(id, is_stopped=True)
    say(f"job {id}: stopped; its workers end after their present page; go on with: highwater jobs resume {id}")


@jobs.command("resume")
@click.argument("id")
@_command
def resume_job(table: JobTable, *, id: str) -> None:
    """Let job ID go on; workers have to be started again."""
    table.stop(id, is_stopped=False)
    say(f"job {id}: may go on; start its workers again")


@jobs.command("delete")
@click.argument("id")
@_command
def delete_job(table: JobTable, *, id: str) -> None:
    """Delete the records of job ID, with what was reached. Refused while workers are at work on it."""
    progress = table.read(id).progress(table.time.now())
    if progress.workers:
        workers = f"{progress.workers} workers are" if progress.workers > 1 else "a worker is"
        say(f"highwater: job {id}: {workers} at work on it; first: highwater jobs stop {id}", err=True)
        raise click.exceptions.Exit(_FINDING)
    table.delete(id)
    say(f"job {id}: deleted")


def lines_of(progress: JobProgress) -> Iterator[str]:
    """Yield how far a job is in sentences."""
    yield f"job {progress.id}: {progress.state}"
    yield f"segments: {progress.segments_done:,} of {progress.segments:,} done, {progress.workers:,} at work"
    read = "" if progress.scanned == progress.items else f" of {progress.scanned:,} read"
    yield f"items: {progress.items:,}{read}, for {progress.units:,.1f} {progress.dimension} units"
    if progress.rejected:
        yield f"lines rejected: {progress.rejected:,}, with the reasons in {progress.rejects_at}"
        yield from (f"rejected at byte {at:,}: {why}" for at, why in progress.first_rejects)
    if progress.state == "running":
        yield f"rate: {progress.scanned_per_second:,.1f} items read a second; time left: {_time_left(progress)}"
    if progress.skew is not None:
        hint = "; more segments divide the work more evenly" if progress.skew >= _SKEWED else ""
        yield f"slowest segment: {progress.slowest}, {progress.skew:.1f} times the mean{hint}"


def _time_left(progress: JobProgress) -> str:
    return "not known" if progress.seconds_left is None else str(timedelta(seconds=progress.seconds_left))


def _shown(found: Iterable[JobProgress]) -> Table:
    view = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("job", "state"):
        view.add_column(name, no_wrap=True)
    for name in ("segments done", "at work", "items", "rejected", "items/s", "time left", "skew"):
        view.add_column(name, no_wrap=True, justify="right")
    for each in found:
        view.add_row(
            each.id,
            each.state,
            f"{each.segments_done:,} of {each.segments:,}",
            f"{each.workers:,}",
            f"{each.items:,}",
            f"{each.rejected:,}" if each.rejected else "-",
            f"{each.scanned_per_second:,.1f}",
            _time_left(each) if each.state == "running" else "-",
            "-" if each.skew is None else f"{each.skew:.1f}",
        )
    return view
