"""`highwater local traffic`: send load to a table of the local cloud with real boto3 clients."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from highwater.core import Dimension, HighwaterError
from highwater.terminal.console import open_console, say, stopped_by_signals
from highwater.terminal.durations import DurationType
from highwater.terminal.numbers import WholeNumber
from highwater_lab.commands.options import Finite, Misuse, progress_bar
from highwater_lab.commands.traffic_source import tell_notes
from highwater_lab.local.control import CloudControl, CloudError
from highwater_lab.local.load import Load, LoadReport, steady
from highwater_lab.local.whereabouts import find_cloud
from highwater_lab.traffic import SCENARIOS, Traffic, read_traffic, scenario

_FINDING = 1
_INTERRUPTED = 130


class LoadRate(click.ParamType[float]):
    """A click type for rates in units per second: `180/s` or `180`."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the text; raise `click.BadParameter` if it is not a rate, or zero."""
        match = re.fullmatch(r"(\d{1,8}(?:\.\d{1,3})?)(?:/s)?", str(value), re.ASCII)
        if match is None:
            self.fail(f"{value!r} is not a rate; write it like 180/s", param, ctx)
        if float(match[1]) == 0:
            self.fail(f"{value!r} sends nothing; give a rate above 0, or leave the option out", param, ctx)
        return float(match[1])


@click.command("traffic", short_help="Send load to one of its tables.")
@click.argument("table")
@click.option("--writes", type=LoadRate(), help="Write units per second, such as 180/s.")
@click.option("--reads", type=LoadRate(), help="Read units per second.")
@click.option("--for", "length", type=DurationType(), help="Duration on the cloud's clock; with --writes and --reads.")
@click.option(
    "--traffic",
    "file",
    type=click.Path(path_type=Path),
    help="Send the traffic of a file instead, as for rehearse. Of a file of several tables, that of TABLE.",
)
@click.option("--traffic-table", metavar="NAME", help="The table to read from the file, if it has another name there.")
@click.option("--scenario", "name", type=click.Choice(SCENARIOS), help="Send synthetic traffic instead.")
@click.option("--scale", type=Finite(0, 1e9), default=1.0, help="Multiply the file or scenario by this factor.")
@click.option(
    "--retries",
    type=WholeNumber(0, 10),
    default=0,
    show_default=True,
    help="How often the SDK retries a throttled request.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def traffic_command(
    table: str,
    writes: float | None,
    reads: float | None,
    length: timedelta | None,
    file: Path | None,
    traffic_table: str | None,
    name: str | None,
    scale: float,
    retries: int,
    as_json: bool,
) -> None:
    """Send load to TABLE with real boto3 clients, and show how much was granted and throttled.

    Rates are units per second of the cloud's clock. If the clock runs faster than this machine can send requests, the
    command sends fewer and larger requests. Ends with status 1 if the load ends before its time, because the cloud or
    the table is gone; what was sent until then is told, as after Ctrl-C.

    \b
    highwater local traffic orders --writes 180/s --reads 40/s --for 10m
    highwater local traffic orders --scenario figure-2 --scale 0.01
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    load: Load | None = None
    status = 0
    try:
        control = CloudControl(find_cloud().port)
        traffic = _traffic(control, writes, reads, length, file, (traffic_table, table), name, scale)
        with progress_bar("sending") as progress:
            load = Load(
                control,
                table,
                traffic,
                retries=retries,
                tell=lambda _, minute: progress(minute, traffic.minutes),
            )
            with stopped_by_signals(load.stop) as came:
                load.run()
            status = 128 + came[0] if came else 0
    except (HighwaterError, CloudError) as error:
        raise Misuse(str(error)) from error
    except KeyboardInterrupt:
        status = _INTERRUPTED
    report = None if load is None else load.report
    if report is not None and as_json:
        click.echo(json.dumps(_document(report)))
    elif report is not None:
        _print(report, open_console())
    if report is not None:
        tell_notes(traffic)
    if report is not None and report.failure:
        say(f"highwater local traffic: ended before its time: {report.failure}", err=True)
        status = status or _FINDING
    raise click.exceptions.Exit(status)


def _traffic(
    control: CloudControl,
    writes: float | None,
    reads: float | None,
    length: timedelta | None,
    file: Path | None,
    tables: tuple[str | None, str],
    name: str | None,
    scale: float,
) -> Traffic:
    has_rates = writes is not None or reads is not None
    if has_rates + (file is not None) + (name is not None) != 1:
        raise Misuse("give the load with --writes and --reads, or with --traffic FILE, or with --scenario NAME")
    if file is None and tables[0] is not None:
        raise Misuse("--traffic-table is of --traffic, and chooses one of the tables of its file; remove it")
    now = control.status().now
    if has_rates:
        if length is None:
            raise Misuse("--writes and --reads need a duration; give it with --for, such as --for 10m")
        return steady(reads or 0.0, writes or 0.0, length, now)
    traffic = scenario(str(name)) if file is None else read_traffic(file, table=tables[0], likely_table=tables[1])
    return (traffic if scale == 1.0 else traffic.scaled(scale)).starting(now)


def _print(report: LoadReport, console: Console) -> None:
    view = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    view.add_column("units")
    for heading in ("asked", "granted", "throttled", "throttled minutes", "units per request"):
        view.add_column(heading, justify="right", no_wrap=True)
    for dimension, minutes in report.minutes.items():
        view.add_row(
            f"{dimension}s",
            *(f"{report.total(dimension, member):,.0f}" for member in ("asked", "granted", "throttled")),
            f"{sum(minute.throttled > 0 for minute in minutes):,}",
            f"{report.units_per_request[dimension]:,}",
        )
    console.print(view)
    console.print(
        f"{report.requests:,} requests, {report.throttled_requests:,} throttled, {report.retries:,} retried; "
        f"latency {report.latency_ms(50):.1f} ms p50, {report.latency_ms(99):.1f} ms p99",
        highlight=False,
    )
    if report.most_behind_seconds > 60:
        console.print(
            f"[yellow]![/] the clients were up to {report.most_behind_seconds:,.0f} s behind the cloud's clock: scale "
            "the load down, or run the clock slower",
            highlight=False,
        )


def _document(report: LoadReport) -> dict[str, Any]:
    return {
        "begun": report.begun.isoformat(),
        "speed": report.speed,
        "requests": report.requests,
        "throttled_requests": report.throttled_requests,
        "retries": report.retries,
        "latency_ms": {"p50": round(report.latency_ms(50), 2), "p99": round(report.latency_ms(99), 2)},
        "failure": report.failure or None,
        "most_behind_seconds": round(report.most_behind_seconds, 2),
        "units": {
            str(dimension): {
                "asked": report.total(dimension, "asked"),
                "granted": report.total(dimension, "granted"),
                "throttled": report.total(dimension, "throttled"),
                "per_request": report.units_per_request[dimension],
                "minutes": [[minute.asked, minute.granted, minute.throttled] for minute in report.minutes[dimension]],
            }
            for dimension in (Dimension.READ, Dimension.WRITE)
            if dimension in report.minutes
        },
    }
