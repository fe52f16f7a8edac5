"""`highwater scan`: reads a whole table within a budget, into a file, and resumes where it stopped."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import click

from highwater import PacedWorkError, ScanPlan, ScanProgress, TableScan
from highwater.bulk.checkpoint import Checkpoint
from highwater.cli.items import ItemOutput, OutputError
from highwater.cli.options import (
    WORK_ERRORS,
    account_options,
    as_json_option,
    end_early,
    misuse_in_a_line,
    pace_options,
    shadow_document,
    shadow_text,
    warn,
)
from highwater.cli.rates import BulkRate, RateType
from highwater.core.documents import DocumentError, read_document
from highwater.core.pacing.segments import SCAN_SEGMENT_BYTES
from highwater.terminal.console import open_console, say, stopped_by_signals

_FINDING = 1


@click.command("scan", short_help="Read a whole table or index within a budget, into a file.")
@click.argument("table")
@click.option(
    "--read", type=RateType(), required=True, help="Read units per second, or a share of the capacity such as 30%."
)
@pace_options
@click.option(
    "--to",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file; .gz and .zst are compressed. By default standard output, which cannot be resumed.",
)
@click.option("--resume", is_flag=True, help="Go on where an earlier scan to the same file stopped.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Say what the scan costs and how long it takes, and end.")
@click.option("--index", help="Scan this index instead of the table.")
@click.option("--consistent", is_flag=True, help="Read strongly consistently, which costs twice as much.")
@click.option(
    "--segments",
    type=int,
    help=f"Divide the table into so many segments. By default one for {SCAN_SEGMENT_BYTES >> 20} MB.",
)
@click.option(
    "--filter", "filter_text", metavar="EXPRESSION", help="A FilterExpression; what it leaves out is paid for."
)
@click.option("--projection", metavar="EXPRESSION", help="A ProjectionExpression.")
@click.option("--names", metavar="JSON", help='ExpressionAttributeNames, such as {"#s": "status"}.')
@click.option("--values", metavar="JSON", help='ExpressionAttributeValues, such as {":s": {"S": "open"}}.')
@account_options
@as_json_option
def scan(
    table: str,
    read: float | str,
    pacing: dict[str, Any],
    path: Path | None,
    resume: bool,
    is_dry_run: bool,
    index: str | None,
    consistent: bool,
    segments: int | None,
    filter_text: str | None,
    projection: str | None,
    names: str | None,
    values: str | None,
    region: str | None,
    as_json: bool,
) -> None:
    """Read TABLE within a budget of read units per second, pages from all over it in turn.

    Items are written as lines {"Item": {...}} with DynamoDB's types, as DynamoDB's exports have them. Beside the file
    is a checkpoint, FILE.checkpoint, until the scan is done: a scan that stopped, or was killed, goes on with --resume.

    \b
    highwater scan orders --read 2000 --dry-run
    highwater scan orders --read 2000 --to orders.jsonl.zst
    highwater scan orders --read 2000 --to orders.jsonl.zst --resume

    Ctrl-C and SIGTERM end it after a page. Exit status: 0 done, 1 stopped before its end, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    request = {
        "FilterExpression": filter_text,
        "ProjectionExpression": projection,
        "ExpressionAttributeNames": _json_of(names, "--names"),
        "ExpressionAttributeValues": _json_of(values, "--values"),
    }
    if resume and path is None:
        raise click.UsageError("--resume goes on with a file; give --to too")
    place = None if path is None else path.with_name(f"{path.name}.checkpoint")
    paced = TableScan(
        table=table,
        read=read,
        **pacing,
        index=index,
        is_consistent=consistent,
        segments=segments,
        checkpoint=place,
        session=boto3.Session(region_name=region),
        request={name: value for name, value in request.items() if value is not None},
    )
    with misuse_in_a_line():
        plan = paced.plan
        rate, units_by_target = BulkRate(paced), {paced.target: plan.units}
        if is_dry_run:
            _print_plan(plan, rate, units_by_target, as_json=as_json)
            return
        # nobody knows how many units are left of a scan that is resumed
        warnings = rate.warnings(None if resume else units_by_target)
        scanned, units = _run(paced, path, place, warnings, is_resumed=resume)
    if as_json and path is not None:
        document = {"scanned": scanned, "units": units, "path": str(path)}
        click.echo(json.dumps(document | shadow_document(pacing)))
    else:
        say(f"{scanned:,} items read, {units:,.1f} read units consumed{shadow_text(pacing)}", err=True)


def _run(
    paced: TableScan, path: Path | None, place: Path | None, warnings: list[str], *, is_resumed: bool
) -> tuple[int, float]:
    """Write all pages; return the items and units of the whole scan."""
    if place is not None and not is_resumed and Checkpoint.output_of(place) is not None:
        raise PacedWorkError(f"{place}: an earlier scan stopped here; go on with --resume, or delete it to begin anew")
    warn("scan", warnings)
    last: list[ScanProgress] = []
    with (
        contextlib.ExitStack() as stack,
        stopped_by_signals(paced.is_stopped.set) as came,
        _progress(paced.table) as show,
    ):

        @functools.cache
        def output() -> ItemOutput:
            # opened only once the checkpoint is locked, as output after the checkpoint is cut off
            kept = None if place is None else Checkpoint.output_of(place)
            return stack.enter_context(contextlib.closing(ItemOutput(path, kept)))

        def told(progress: ScanProgress) -> None:
            last[:] = [progress]
            show(progress)

        pages = paced.pages(told, lambda: output().save())
        try:
            for page in pages:
                output().write(page.raw)
        except WORK_ERRORS as error:
            _close(pages)
            if not last:
                raise
            end_early("scan", str(error), _FINDING, can_resume=path is not None)
    if came and (not last or last[0].percent < 100):
        end_early("scan", "interrupted", 128 + came[0], can_resume=path is not None)
    return (last[0].scanned, last[0].units) if last else (0, 0.0)


def _close(pages: Any) -> None:
    """End the scan; if its checkpoint cannot be written any more, the last one that was written remains valid."""
    with contextlib.suppress(PacedWorkError, OutputError):
        pages.close()


def _json_of(text: str | None, option: str) -> Any:
    if text is None:
        return None
    try:
        found = read_document(text)
    except DocumentError:
        found = None
    if not isinstance(found, dict):
        raise click.UsageError(f"{option}: got {text!r}, allowed: a JSON object")
    return found


def _print_plan(plan: ScanPlan, rate: BulkRate, units: Mapping[str | None, int], *, as_json: bool) -> None:
    if as_json:
        document = {name: getattr(plan, name) for name in ScanPlan.__slots__}
        click.echo(json.dumps(document | rate.document(units)))
        return
    what = plan.table if plan.index is None else f"index {plan.index} of {plan.table}"
    say(f"{what}: {plan.items:,} items, {plan.size_bytes:,} bytes, as DynamoDB counted in the last six hours")
    say(f"read units: {plan.units:,}, in {plan.segments:,} segments")
    for line in rate.lines(units, plan.seconds):
        say(line)
    say(
        "to read everything without a filter, an export to S3 consumes no capacity: aws dynamodb "
        "export-table-to-point-in-time (it needs point-in-time recovery)"
    )
    warn("scan", rate.warnings(units))


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Callable[[ScanProgress], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.1f} %  {task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=open_console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=100.0, told="")

        def show(at: ScanProgress) -> None:
            progress.update(task, completed=at.percent, told=f"{at.scanned:,} items, {at.units:,.0f} units")

        yield show
