"""`highwater load`: puts many items from a file within a budget, and resumes where it stopped."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import boto3
import click

from highwater import PacedWorkError, Put, Rejected, WritePlan, WriteProgress
from highwater.bulk.items import Unreadable
from highwater.bulk.write import PacedWrite
from highwater.cli.items import Line, read_lines
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
from highwater.terminal.console import open_console, say, stopped_by_signals

_MOST_SHOWN: Final = 10
_EVERY: Final = 1_000
# Amazon DynamoDB API Reference, "ImportTable" and "StartBulkPutItems" (read 2026-11): formats, and the least
# MaxWriteRequestUnits. A table with replicas cannot be written so (Developer Guide, "Bulk put items considerations")
_TYPED: Final = "DYNAMODB_JSON"
_CSV: Final = "CSV"
_LEAST_BULK_UNITS: Final = 1_024


def _native_ways(described: Mapping[str, Any], form: str, write: float) -> Iterator[str]:
    """Yield the ways in which DynamoDB itself would write the items, once they are in S3.

    Args:
        described: The table, as DescribeTable returns it.
        form: DynamoDB's name of the input's format, empty for one that it does not read.
        write: The rate of the load in write units per second.
    """
    if form and not described.get("ItemCount"):
        yield (
            "the table is empty: an import from S3, which makes a new table, consumes no capacity: "
            f"aws dynamodb import-table --input-format {form}"
        )
    if form == _TYPED and write >= _LEAST_BULK_UNITS and not described.get("Replicas"):
        yield (
            "DynamoDB can write such a file from S3 itself, at a rate that you limit: "
            f"aws dynamodb start-bulk-put-items --max-write-request-units {write:.0f}"
        )


def _print_plan(
    plan: WritePlan,
    rejects: list[tuple[str, str]],
    rate: BulkRate,
    native: Iterable[str],
    *,
    as_json: bool,
) -> None:
    """Print the cost of a load at a rate, and the ways of *native* to do without it.

    *rejects* are the places of the first items that DynamoDB would reject, with the reasons.
    """
    units = dict[str | None, int]([(None, plan.table_units), *plan.index_units.items()])
    if as_json:
        first = [{"at": place, "why": why} for place, why in rejects]
        rest = {"units": plan.units, "first_rejects": first}
        click.echo(json.dumps(asdict(plan) | rest | rate.document(units)))
        return
    say(f"{plan.table}: {plan.items:,} items, {plan.size_bytes:,} bytes")
    say(f"write units: {plan.table_units:,} of the table, for items that are not there yet")
    for index, of_index in plan.index_units.items():
        say(f"write units of index {index}: {of_index:,}")
    for line in (*rate.lines(units, plan.seconds), *native):
        say(line)
    warn("load", rate.warnings(units))
    for place, why in rejects:
        say(f"{place}: would be rejected: {why}", err=True)
    if plan.rejected > len(rejects):
        say(f"{plan.rejected - len(rejects):,} more items would be rejected", err=True)


@contextlib.contextmanager
def _status(title: str) -> Iterator[Callable[[str], None]]:
    """Show how far the load is on standard error, if that is a terminal; yields what changes the text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with open_console(stderr=True).status(f"{title} …") as status:
        yield lambda text: status.update(f"{title}: {text}")


_FINDING = 1
_STANDARD_INPUT = "-"
# more than the actions of a block
_KEPT_LINES = 2_000


@click.command("load", short_help="Put many items within a budget, from a file.")
@click.argument("table")
@click.option(
    "--write", type=RateType(), required=True, help="Write units per second, or a share of the capacity such as 30%."
)
@pace_options
@click.option(
    "--from",
    "source",
    required=True,
    help="A file of JSON lines or CSV, also .gz and .zst; the folder of an export of DynamoDB; - for standard input.",
)
@click.option("--resume", is_flag=True, help="Go on where an earlier load of the same file stopped.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Say what the load costs and how long it takes, and end.")
@click.option(
    "--rejects",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what DynamoDB does not take to this file, with the reason. By default the first one ends the load.",
)
@click.option("--number", "numbers", multiple=True, metavar="COLUMN", help="A column of CSV that holds numbers.")
@account_options
@as_json_option
def load(
    table: str,
    write: float | str,
    pacing: dict[str, Any],
    source: str,
    resume: bool,
    is_dry_run: bool,
    rejects: Path | None,
    numbers: tuple[str, ...],
    region: str | None,
    as_json: bool,
) -> None:
    """Put the items of a file into TABLE within a budget of write units per second.

    Lines of JSON are items with DynamoDB's types, {"Item": {...}}, as highwater scan and DynamoDB's exports write them,
    or objects as they are. Items are shuffled a thousand at a time. What has been put is kept in FILE.load: a load that
    stopped, or was killed, goes on with --resume, and puts up to a thousand items again.

    \b
    highwater load orders --write 200 --from orders.jsonl.zst --dry-run
    highwater load orders --write 200 --from orders.jsonl.zst
    highwater load orders --write 200 --from orders.csv --number total --rejects rejects.jsonl
    highwater load orders --write 200 --from orders.jsonl.zst --resume

    Ctrl-C and SIGTERM end it after the items under way. Exit status: 0 done, 1 stopped before its end or with rejects
    (with --dry-run: some would be), 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    path = None if source == _STANDARD_INPUT else Path(source)
    place = None if path is None else path.with_name(f"{path.name}.load")
    work = _Load(table, pacing | {"write": write}, path, place, region, frozenset(numbers))
    if is_dry_run:
        if resume or rejects is not None:
            raise click.UsageError("--dry-run writes nothing, so it goes with neither --resume nor --rejects")
        with misuse_in_a_line():
            work.tell_plan(as_json=as_json)
        return
    if resume and place is None:
        raise click.UsageError("--resume goes on with a file; standard input cannot be read again")
    if place is not None and place.exists() and not resume:
        raise click.UsageError(
            f"{place}: an earlier load stopped here; go on with --resume, or delete it to begin anew"
        )
    with (
        misuse_in_a_line(),
        _rejects(rejects, is_resumed=resume) as file,
        stopped_by_signals(work.is_stopped.set) as came,
        _status(table) as show,
    ):
        try:
            done = work.run(file, show)
        except WORK_ERRORS as error:
            if not work.has_begun:
                raise
            _end_early(str(error), place, _FINDING)
    if came and not work.is_done(done):
        _end_early("interrupted", place, 128 + came[0])
    _print(done, rejects, pacing, as_json=as_json)
    if done.rejected:
        raise click.exceptions.Exit(_FINDING)


@dataclass(slots=True)
class _Load:
    """One load; `has_begun` is whether an item may have been put."""

    table: str
    pacing: dict[str, Any]
    path: Path | None
    place: Path | None
    region: str | None
    numbers: frozenset[str]
    is_stopped: threading.Event = field(default_factory=threading.Event)
    has_begun: bool = False
    # the newest lines by the number of their action, needed if one of them is rejected
    _lines: dict[int, Line] = field(default_factory=dict)
    _is_read: bool = False
    _count: int = 0
    _is_typed: bool = True

    def is_done(self, told: WriteProgress) -> bool:
        """Whether all lines were read and their items are done."""
        return self._is_read and told.done == self._count

    def run(self, rejects: IO[str] | None, show: Callable[[str], None]) -> WriteProgress:
        """Put all items, and show how far that is."""

        def reject(rejected: Rejected) -> None:
            line = self._lines[rejected.number]
            if rejects is None:
                raise PacedWorkError(f"{line.place}: {rejected.why}; give --rejects to go on without such items")
            rejects.write(f"{json.dumps({'at': line.place, 'why': rejected.why, 'line': line.text})}\n")
            rejects.flush()

        def told(at: WriteProgress) -> None:
            rejected = f", {at.rejected:,} rejected" if at.rejected else ""
            show(f"{at.done:,} items, {at.units:,.0f} write units{rejected}")

        work = self._work
        warn("load", BulkRate(work).warnings())
        return work.run(self._actions(), reject, told)

    def tell_plan(self, *, as_json: bool) -> None:
        """Read all lines, put nothing, and print the cost; exits with 1 if an item would be rejected."""
        work, shown = self._work, list[tuple[str, str]]()
        with _status(self.table) as show:

            def counted() -> Iterator[Put]:
                for number, item in enumerate(self._actions()):
                    if number % _EVERY == 0:
                        show(f"{number:,} items read")
                    yield item

            def reject(rejected: Rejected) -> None:
                if len(shown) < _MOST_SHOWN:
                    shown.append((self._lines[rejected.number].place, rejected.why))

            plan = work.plan(counted(), reject)
        native = _native_ways(work.described, self._form, work.rate)
        _print_plan(plan, shown, BulkRate(work), native, as_json=as_json)
        if plan.rejected:
            raise click.exceptions.Exit(_FINDING)

    @property
    def _form(self) -> str:
        """DynamoDB's name of the format of the lines that were read, empty for one that its imports do not read."""
        if self.path is None:
            return ""
        if ".csv" in self.path.suffixes:
            # an import makes strings of all columns but those of keys
            return "" if self.numbers else _CSV
        return _TYPED if self._is_typed else ""

    @property
    def _work(self) -> PacedWrite:
        return PacedWrite(
            table=self.table,
            **self.pacing,
            checkpoint=self.place,
            is_same_by="content",
            session=boto3.Session(region_name=self.region),
            is_stopped=self.is_stopped,
        )

    def _actions(self) -> Iterator[Put]:
        for number, line in enumerate(read_lines(self.path, self.numbers)):
            self._lines[number] = line
            self._lines.pop(number - _KEPT_LINES, None)
            self.has_begun, self._count = True, number + 1
            self._is_typed = self._is_typed and (line.action.is_raw or isinstance(line.action, Unreadable))
            yield line.action
        self._is_read = True


@contextlib.contextmanager
def _rejects(path: Path | None, *, is_resumed: bool) -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    try:
        file = path.open("a" if is_resumed else "x")
    except FileExistsError:
        raise click.UsageError(f"{path}: is there already; give another file, or delete it") from None
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be written: {error.strerror}") from error
    with file:
        yield file


def _end_early(why: str, place: Path | None, status: int) -> NoReturn:
    end_early("load", why, status, can_resume=place is not None and place.exists())


def _print(done: WriteProgress, rejects: Path | None, pacing: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        document = {"items": done.done, "units": done.units, "rejected": done.rejected}
        click.echo(json.dumps(document | shadow_document(pacing)))
        return
    put = f"{done.done - done.rejected:,} items put, {done.units:,.1f} write units consumed"
    say(f"{put}{shadow_text(pacing)}", err=True)
    if done.rejected:
        say(f"{done.rejected:,} items rejected, with the reasons in {rejects}", err=True)
