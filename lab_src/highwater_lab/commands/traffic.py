"""`highwater local traffic`: load for a table of the local cloud, sent by real clients."""

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
from highwater_lab.commands.durations import Duration
from highwater_lab.commands.options import Finite, Misuse, progress_bar
from highwater_lab.local.cloud import CloudControl, CloudError
from highwater_lab.local.load import Load, LoadReport, steady
from highwater_lab.local.whereabouts import recall
from highwater_lab.traffic import SCENARIOS, Traffic, read_traffic, scenario


class Rate(click.ParamType[float]):
    """A click type for rates: `180/s`, or `180`, in units per second."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text; anything else, and a rate of zero, is misuse."""
        match = re.fullmatch(r"(\d{1,8}(?:\.\d{1,3})?)(?:/s)?", str(value), re.ASCII)
        if match is None:
            self.fail(f"{value!r} is no rate; write it as 180/s", param, ctx)
        if float(match[1]) == 0:
            self.fail(f"{value!r} asks for nothing; give a rate above 0, or leave it out", param, ctx)
        return float(match[1])


@click.command("traffic", short_help="Send load to a table of it.")
@click.argument("table")
@click.option("--writes", type=Rate(), help="Write units per second, such as 180/s.")
@click.option("--reads", type=Rate(), help="Read units per second.")
@click.option("--for", "length", type=Duration(), help="How long, by the cloud's clock; with --writes and --reads.")
@click.option("--traffic", "file", type=click.Path(path_type=Path), help="A CSV file instead, as rehearse reads it.")
@click.option("--scenario", "name", type=click.Choice(SCENARIOS), help="Made-up traffic instead.")
@click.option("--scale", type=Finite(0, 1e9), default=1.0, help="Multiply the file or scenario by this.")
@click.option("--retries", type=click.IntRange(0, 10), default=0, show_default=True, help="What the SDK sends again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def traffic_command(
    table: str,
    writes: float | None,
    reads: float | None,
    length: timedelta | None,
    file: Path | None,
    name: str | None,
    scale: float,
    retries: int,
    as_json: bool,
) -> None:
    """Send load to TABLE with real boto3 clients, and say what they saw.

    Rates are units per second of the cloud's clock. Where that runs faster than a machine can send, requests are made
    larger instead.

    \b
    highwater local traffic orders --writes 180/s --reads 40/s --for 10m
    highwater local traffic orders --scenario figure-2 --scale 0.01
    """  # noqa: D301 - a real backspace, which tells click to keep the lines as they are
    whereabouts = recall()
    if whereabouts is None:
        raise Misuse("no local cloud runs; start one with: highwater local up")
    control = CloudControl(whereabouts.port)
    try:
        traffic = _traffic(control, writes, reads, length, file, name, scale)
        with progress_bar("sending") as progress:
            load = Load(
                control,
                table,
                traffic,
                retries=retries,
                tell=lambda _, minute: progress(minute, traffic.minutes),
            )
            report = load.run()
    except (HighwaterError, CloudError) as refused:
        raise Misuse(str(refused)) from refused
    if as_json:
        click.echo(json.dumps(_document(report)))
    else:
        _print(report, Console())


def _traffic(
    control: CloudControl,
    writes: float | None,
    reads: float | None,
    length: timedelta | None,
    file: Path | None,
    name: str | None,
    scale: float,
) -> Traffic:
    has_rates = writes is not None or reads is not None
    if has_rates + (file is not None) + (name is not None) != 1:
        raise Misuse("give the load with --writes and --reads, or with --traffic FILE, or with --scenario NAME")
    now = control.status().now
    if has_rates:
        if length is None:
            raise Misuse("say how long with --for, such as --for 10m")
        return steady(reads or 0.0, writes or 0.0, length, now)
    traffic = read_traffic(file) if file is not None else scenario(str(name))
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
        f"{report.requests:,} requests, {report.throttled_requests:,} throttled, {report.retries:,} sent again; "
        f"latency {report.latency_ms(50):.1f} ms p50, {report.latency_ms(99):.1f} ms p99",
        highlight=False,
    )
    if report.most_behind_seconds > 60:
        console.print(
            f"[yellow]![/] the clients were late by up to {report.most_behind_seconds:,.0f} s of the clock: scale "
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
