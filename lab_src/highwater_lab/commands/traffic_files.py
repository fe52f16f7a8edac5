"""`highwater traffic`: fetches the past traffic of live tables into files, and shows what is in files of traffic."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.table import Table

from highwater.core import Dimension
from highwater.terminal.console import open_console, say
from highwater.terminal.numbers import WholeNumber
from highwater_lab.commands.options import Misuse, misuse_of_errors, progress_bar
from highwater_lab.commands.traffic_source import asked_of_cloudwatch, open_session, telling_of
from highwater_lab.services.prices import load_prices
from highwater_lab.template import ListedTable
from highwater_lab.traffic import (
    FetchPlan,
    Traffic,
    TrafficError,
    fetch_traffic,
    plan_fetch,
    plan_fetch_of_all,
    read_traffic_by_table,
    summarize,
    write_traffic,
)

if TYPE_CHECKING:
    from boto3 import Session

_FINDING: Final = 1
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_HEADINGS: Final = ("units/s", "mean", "p99", "peak", "peak/mean")
_path = click.Path(path_type=Path)


@click.group("traffic", short_help="Fetch the past traffic of live tables, and show files of traffic.")
def traffic_group() -> None:
    """Files of traffic, for --traffic of `rehearse` and `recommend`.

    \b
    highwater traffic fetch --all --days 14 --out traffic
    highwater traffic show traffic
    highwater rehearse cdk.out --traffic traffic
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks


@traffic_group.command("fetch", short_help="Fetch traffic from CloudWatch into a file for each table.")
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All tables in the account and region.")
@click.option("--days", type=WholeNumber(1, 455), default=14, show_default=True, help="Number of past days.")
@click.option(
    "--out",
    "folder",
    type=_path,
    default="traffic",
    show_default=True,
    help="Folder for the files, TABLE.csv each. Files of earlier runs are replaced.",
)
@click.option("--resume", is_flag=True, help="Keep the files that are in the folder, and fetch only the other tables.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Say what is asked of CloudWatch and its price, and end.")
@click.option("--region", help="Region of the tables. By default AWS_REGION, or that of your AWS configuration.")
@click.option("--profile", help="Profile of your AWS configuration. By default AWS_PROFILE.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def fetch_command(
    tables: tuple[str, ...],
    is_all: bool,
    days: int,
    folder: Path,
    resume: bool,
    is_dry_run: bool,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Fetch what tables and their indexes consumed and throttled, from CloudWatch, into one CSV file for each table.

    Says first how many requests that takes and what they cost: CloudWatch charges for each metric requested, two for
    reads and two for writes of a table or an index. Bins are one minute long for up to 15 days, five minutes for up to
    63 days, and an hour for more. Needs dynamodb:ListTables (with --all), dynamodb:DescribeTable and
    cloudwatch:GetMetricData. Tables on demand have the same metrics.

    \b
    highwater traffic fetch orders carts
    highwater traffic fetch --all --days 14 --out traffic --dry-run
    highwater traffic fetch --all --days 14 --out traffic --resume

    Every table gets a file: an idle one has zeros, and one of which CloudWatch has nothing at all, neither consumption
    nor capacity, has a header alone. For a table without consumption two more metrics are requested.

    Exit status: 0 fine, 1 CloudWatch has nothing of any table, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    if is_all == bool(tables):
        raise Misuse(
            "give the names of tables, or --all" if not tables else "give the names of tables or --all, not both"
        )
    # boto3 itself reads AWS_DEFAULT_REGION only
    session = open_session(profile, region or os.environ.get("AWS_REGION") or None)
    with misuse_of_errors():
        with telling_of("the tables" if is_all else f"table {tables[0]!r}" if len(tables) == 1 else "the tables"):
            dynamodb = session.client("dynamodb")
            planned = plan_fetch_of_all(dynamodb) if is_all else plan_fetch(dynamodb, tables)
        kept = [table for table in planned.tables if resume and _file(folder, table).is_file()]
        plan = FetchPlan({table: streams for table, streams in planned.tables.items() if table not in kept})
        usd = plan.metrics * load_prices().thousand_metrics_requested / 1000
        what = f"{len(plan.tables):,} table{'' if len(plan.tables) == 1 else 's'}"
        say(asked_of_cloudwatch(what, days, plan.metrics, usd, len(kept)), err=True)
        fetched: dict[str, Traffic] = {}
        if not is_dry_run:
            folder.mkdir(parents=True, exist_ok=True)
            fetched = dict(_fetch(session, plan, days, folder, quietly=as_json))
    if as_json:
        without = [table for table in plan.tables if table not in fetched or fetched[table].is_unknown]
        without = [] if is_dry_run else without
        click.echo(json.dumps(_fetch_document(plan, kept, fetched, without, folder, usd)))
    if not is_dry_run and all(traffic.is_unknown for traffic in fetched.values()) and not kept:
        raise click.exceptions.Exit(_FINDING)


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.csv"


def _fetch(
    session: Session, plan: FetchPlan, days: int, folder: Path, *, quietly: bool
) -> Iterator[tuple[str, Traffic]]:
    """Write the file of each table, and yield its traffic as it is written."""
    dynamodb, cloudwatch = session.client("dynamodb"), session.client("cloudwatch")
    now = datetime.now(UTC)
    before = 0
    with progress_bar("reading CloudWatch") as progress:
        for table, streams in plan.tables.items():

            def report(done: int, _: int, before: int = before) -> None:
                progress(before + done, plan.requests)

            try:
                with telling_of(f"table {table!r}"):
                    traffic = fetch_traffic(dynamodb, cloudwatch, table, days=days, now=now, progress=report)
            except TrafficError as nothing:
                # it was deleted since
                say(str(nothing), err=True)
            except Misuse as refused:
                raise Misuse(f"{refused.message}; what is fetched is in {folder}: go on with --resume") from refused
            else:
                write_traffic(traffic, _file(folder, table))
                if not quietly:
                    say(f"written: {_file(folder, table)}: {_described(traffic)}")
                for note in traffic.notes:
                    say(f"! {note}", err=True)
                yield table, traffic
            before += streams


def _described(traffic: Traffic) -> str:
    """Return the length and the mean rate of traffic in words."""
    if traffic.is_unknown:
        return "nothing is known of the table"
    if traffic.is_idle:
        return f"{traffic.minutes:,} minutes, idle"
    return f"{traffic.minutes:,} minutes, {traffic.mean_units_per_second():,.2f} units/s on average"


def _fetch_document(
    plan: FetchPlan, kept: list[str], fetched: Mapping[str, Traffic], without: list[str], folder: Path, usd: float
) -> dict[str, Any]:
    return {
        "requests": plan.requests,
        "metrics": plan.metrics,
        "usd": round(usd, 6),
        "tables": {
            table: {
                "file": str(_file(folder, table)),
                "minutes": traffic.minutes,
                "mean_units_per_second": None if traffic.is_unknown else round(traffic.mean_units_per_second(), 4),
            }
            for table, traffic in fetched.items()
        },
        "without_traffic": without,
        "kept": kept,
    }


@traffic_group.command("show", short_help="Show what a file or folder of traffic has in it.")
@click.argument("file", type=_path)
@click.option("--table", help="Show only this table: its name, or the last part of its path, in capitals or not.")
@click.option(
    "--as",
    "units_are",
    type=click.Choice(["reads", "writes"]),
    default="writes",
    show_default=True,
    help="Whether a column `units` is reads or writes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def show_command(file: Path, table: str | None, units_are: str, as_json: bool) -> None:
    """Show the tables in FILE: of several their sum, and a line for each, the one with the most units first.

    Of one table, or with --table, shows its time, its bins and gaps, and the rates of its minutes for reads and writes.

    FILE is whatever --traffic of `rehearse` takes: CSV, CloudWatch's CSV or JSON, Parquet, a folder of them, or - for
    standard input. Rates are units per second: the mean, the rate that 99 % of the minutes do not exceed (p99), and the
    busiest minute (peak), in the line of a table that of its busiest column. Each block of the picture is the busiest
    minute of its part of the time. Minutes in gaps are left out of all of these.

    \b
    highwater traffic show orders.csv
    highwater traffic show traffic --table orders --json
    aws cloudwatch get-metric-data --cli-input-json file://query.json | highwater traffic show -

    Exit status: 0 fine, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    with misuse_of_errors():
        found = read_traffic_by_table(file, units_are=Dimension(units_are.removesuffix("s")))
    if table is not None:
        called = ListedTable(name=table, stage="", logical_id=table, physical=None, setup=None).name_among(found)
        if called is None:
            raise Misuse(f"{file}: has no traffic of table {table!r}; it has {', '.join(found)}")
        found = {called: found[called]}
    if as_json:
        click.echo(json.dumps({"tables": {name: _document(traffic) for name, traffic in found.items()}}))
        return
    if len(found) > 1:
        for line in summary_lines(list(found.values())):
            say(line)
        return
    (traffic,) = found.values()
    if not traffic.is_unknown:
        _print(traffic, open_console())
    for note in traffic.notes:
        say(f"! {note}")


@dataclass(frozen=True, slots=True)
class _Row:
    """A table with its indexes, as a line of the summary shows it."""

    traffic: Traffic
    units: dict[Dimension, float]
    means: dict[Dimension, float]
    peak: float
    peak_to_mean: float | None

    @classmethod
    def of(cls, traffic: Traffic) -> _Row:
        units, means = dict.fromkeys(Dimension, 0.0), dict.fromkeys(Dimension, 0.0)
        peak, ratio = 0.0, None
        for stream in traffic.rates:
            summary = summarize(traffic, stream)
            units[stream.dimension] += summary.units
            means[stream.dimension] += summary.mean
            if summary.peak > peak:
                peak, ratio = summary.peak, summary.peak_to_mean
        return cls(traffic, units, means, peak, ratio)

    @property
    def cells(self) -> tuple[str, ...]:
        missing = sum(length for _, length in self.traffic.gaps)
        more = [*(["idle"] if self.traffic.is_idle else []), *([f"{missing:,} missing"] if missing else [])]
        name = f"{self.traffic.name}: {', '.join(more)}" if more else self.traffic.name
        rates = (self.means[Dimension.READ], self.means[Dimension.WRITE], self.peak)
        ratio = "" if self.peak_to_mean is None else f"{self.peak_to_mean:,.1f}"
        return f"{sum(self.units.values()):,.0f}", *(f"{rate:,.2f}" for rate in rates), ratio, name


def summary_lines(tables: Sequence[Traffic]) -> list[str]:
    """Return the sum of several tables in a line, then a line for each, the one with the most units first."""
    known = [_Row.of(traffic) for traffic in tables if not traffic.is_unknown]
    known.sort(key=lambda row: (-sum(row.units.values()), row.traffic.name))
    unknown = [traffic.name for traffic in tables if traffic.is_unknown]
    said = [f"{len(tables):,} tables"]
    if known:
        start = min(row.traffic.start for row in known)
        end = max(row.traffic.start + timedelta(minutes=row.traffic.minutes) for row in known)
        sums = " and ".join(f"{sum(row.units[each] for row in known):,.0f} {each} units" for each in Dimension)
        said = [f"{said[0]}, {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({_shown(end - start)}): {sums}"]
    counts = {
        "idle": sum(row.traffic.is_idle for row in known),
        "unknown": len(unknown),
        "with gaps": sum(bool(row.traffic.gaps) for row in known),
    }
    said += [f"{number:,} {what}" for what, number in counts.items() if number]
    # the name is last, as it may be long
    rows = [("units", "reads/s", "writes/s", "peak/s", "peak/mean", "table"), *(row.cells for row in known)]
    rows += [("", "", "", "", "", f"{name}: unknown") for name in unknown]
    widths = [*(max(len(row[column]) for row in rows) for column in range(5)), 0]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    notes = len({note for traffic in tables for note in traffic.notes})
    hint = "--table NAME shows one of them" + (
        f" with its notes; in all {notes:,} note{'s' * (notes > 1)}" if notes else ""
    )
    return ["; ".join(said), *lines, hint]


def _print(traffic: Traffic, console: Console) -> None:
    end = traffic.start + timedelta(minutes=traffic.minutes)
    missing = sum(length for _, length in traffic.gaps)
    gaps = f"{missing:,} missing" if missing else "no gaps"
    say(
        f"{traffic.name}: {traffic.start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC "
        f"({_shown(timedelta(minutes=traffic.minutes))}), bins of "
        f"{_shown(timedelta(seconds=traffic.source_bin_seconds))}, {gaps}"
    )
    view = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    view.add_column(_HEADINGS[0], no_wrap=True)
    for heading in _HEADINGS[1:]:
        view.add_column(heading, justify="right", no_wrap=True)
    view.add_column("")
    rows = []
    for stream in traffic.rates:
        summary = summarize(traffic, stream)
        ratio = "" if summary.peak_to_mean is None else f"{summary.peak_to_mean:,.1f}"
        rates = (f"{rate:,.2f}" for rate in (summary.mean, summary.p99, summary.peak))
        rows.append((stream.label, *rates, ratio))
    # the picture has what the figures leave of the terminal's width
    left = console.width - sum(max(map(len, column)) + 2 for column in zip(_HEADINGS, *rows, strict=True)) - 2
    for stream, row in zip(traffic.rates, rows, strict=True):
        shape = summarize(traffic, stream, width=max(8, min(40, left))).shape
        blocks = (" " if level is None else _LEVELS[round(level * (len(_LEVELS) - 1))] for level in shape)
        view.add_row(*row, "".join(blocks))
    console.print(view)


def _shown(length: timedelta) -> str:
    """Return a length of time such as `14d`, `1h30m` or `20s`."""
    parts = {"d": length.days, "h": length.seconds // 3600, "m": length.seconds // 60 % 60, "s": length.seconds % 60}
    return "".join(f"{number}{unit}" for unit, number in parts.items() if number)


def _document(traffic: Traffic) -> dict[str, Any]:
    streams = {}
    for stream in traffic.rates:
        summary = summarize(traffic, stream)
        ratio = summary.peak_to_mean
        streams[stream.label] = {
            "units": round(summary.units, 2),
            "mean": round(summary.mean, 4),
            "p99": round(summary.p99, 4),
            "peak": round(summary.peak, 4),
            "peak_to_mean": None if ratio is None else round(ratio, 4),
        }
    bin_length = timedelta(seconds=traffic.source_bin_seconds)
    return {
        "start": traffic.start.isoformat(),
        "end": (traffic.start + timedelta(minutes=traffic.minutes)).isoformat(),
        "minutes": traffic.minutes,
        "bin_seconds": traffic.source_bin_seconds,
        "gaps": [
            {"start": (traffic.start + first * bin_length).isoformat(), "bins": length}
            for first, length in traffic.gaps
        ],
        "notes": list(traffic.notes),
        "units_per_second": streams,
    }
