"""What the commands of the lab share: where traffic comes from, pairs, key distributions, progress."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from highwater.core import Dimension
from highwater_lab.commands.durations import Duration
from highwater_lab.physics import KeyDistribution
from highwater_lab.traffic import SCENARIOS, Traffic, TrafficError, fetch_traffic, read_traffic
from highwater_lab.traffic import scenario as make_scenario

_Command = TypeVar("_Command", bound=Callable[..., object])


class Misuse(click.UsageError):
    """One line that begins with the command's name, exit status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))


class Finite(click.FloatRange):
    """A number within a range; no number at all, such as NaN, is misuse."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


def check_places(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise `Misuse` where a file would be written over one that is read, or two over one another."""
    seen = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if not path.name or path.is_dir():
            raise Misuse(f"{name} {str(path)!r} is a folder; name a file in it")
        for other, taken in seen.items():
            is_same = path.resolve() == taken.resolve()
            if is_same or (path.exists() and taken.exists() and path.samefile(taken)):
                raise Misuse(f"{name} {path} is the file of {other} too; name another")
        seen[name] = path


class Pairs(click.ParamType[tuple[str, str]]):
    """Two texts with `=` between them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first `=`; anything else is misuse."""
        if isinstance(value, tuple):
            return value
        left, equals, right = str(value).partition("=")
        if not left or not equals:
            self.fail(f"{value!r} is no {self.name}", param, ctx)
        return left, right


class KeysOption(click.ParamType[tuple[str | None, KeyDistribution]]):
    """`uniform`, `zipf:1.2`, `hot:40` or `rolling`, for the table or, after `INDEX=`, for an index."""

    name = "[INDEX=]DISTRIBUTION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, KeyDistribution]:
        """Read the text; anything else is misuse."""
        if isinstance(value, tuple):
            return value
        index, equals, text = str(value).rpartition("=")
        match = re.fullmatch(r"(uniform|rolling|zipf|zipf:[0-9]{1,4}(\.[0-9]{1,6})?|hot:[0-9]{1,9})", text)
        if match is None:
            self.fail(f"{value!r} is none of uniform, zipf[:EXPONENT], hot:PERCENT, rolling", param, ctx)
        kind, _, number = text.partition(":")
        try:
            if kind == "zipf":
                made = KeyDistribution.zipf(float(number or "0.99"))
            elif kind == "hot":
                made = KeyDistribution.single_hot_key(int(number))
            else:
                made = KeyDistribution.rolling() if kind == "rolling" else KeyDistribution.uniform()
        except ValueError as wrong:
            self.fail(f"{value!r}: {wrong}", param, ctx)
        return (index if equals else None), made


def traffic_options(command: _Command) -> _Command:
    """The options that say where traffic comes from and how it is simulated."""
    path = click.Path(path_type=Path)
    options = (
        click.option("--traffic", "traffic_file", type=path, help="CSV file of units per bin; see docs/rehearse.md."),
        click.option("--scenario", type=click.Choice(SCENARIOS), help="Made-up traffic instead."),
        click.option("--table", "live_table", help="A live table's traffic instead, from CloudWatch (about $0.01)."),
        click.option(
            "--days", type=click.IntRange(1, 455), default=14, show_default=True, help="So many days of --table."
        ),
        click.option("--save", type=path, help="Write the traffic to this CSV file, to use again with --traffic."),
        click.option(
            "--as",
            "units_are",
            type=click.Choice(["reads", "writes"]),
            default="writes",
            show_default=True,
            help="What a column `units` or a scenario is.",
        ),
        click.option("--scale", type=Finite(0, 1e9), default=1.0, help="Multiply the traffic by this."),
        click.option("--mean", type=Finite(0, 1e7), help="Scale the traffic to this mean, in units per second."),
        click.option("--start", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]), help="Let it start then (UTC)."),
        click.option("--shift", type=Duration(), help="Let it start so much later, such as 2h30m."),
        click.option("--seed", type=int, default=1, show_default=True, help="Seed of what is random in scenarios."),
        click.option(
            "--metric-delay",
            type=click.IntRange(0, 3600),
            default=150,
            show_default=True,
            help="Seconds from a minute's end to its datapoint in CloudWatch.",
        ),
        click.option("--region", default="us-east-1", show_default=True, help="For prices."),
        click.option("--prices", "prices_file", type=path, help="A price file of your own."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def traffic_from(
    file: Path | None,
    scenario: str | None,
    live_table: str | None,
    *,
    days: int,
    dimension: Dimension,
    scale: float,
    mean: float | None,
    start: datetime | None,
    shift: timedelta | None,
    seed: int,
) -> Traffic:
    """The traffic that the options ask for, scaled and moved."""
    if sum(source is not None for source in (file, scenario, live_table)) != 1:
        raise Misuse("give the traffic with one of --traffic FILE, --scenario NAME and --table NAME")
    if file is not None:
        traffic = read_traffic(file, units_are=dimension)
    elif scenario is not None:
        traffic = make_scenario(scenario, seed=seed, dimension=dimension)
    else:
        traffic = _live(str(live_table), days)
    if mean is not None:
        if mean == 0:
            raise Misuse("--mean must be above 0, got 0")
        traffic = traffic.with_mean(mean)
    if scale != 1.0:
        traffic = traffic.scaled(scale)
    if not any(any(rates) for rates in traffic.rates.values()):
        raise Misuse(f"traffic {traffic.name} has no requests, scaled as it is, so there is nothing to simulate")
    if start is not None:
        traffic = traffic.starting(start)
    return traffic.starting(traffic.start + shift) if shift is not None else traffic


def _live(table: str, days: int) -> Traffic:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session = boto3.Session()
        with progress_bar("reading CloudWatch") as progress:
            return fetch_traffic(
                session.client("dynamodb"),
                session.client("cloudwatch"),
                table,
                days=days,
                now=datetime.now(UTC),
                progress=progress,
            )
    except TrafficError:
        raise
    except (BotoCoreError, ClientError, ValueError) as refused:
        raise Misuse(f"table {table!r}: {refused}") from refused


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal; yields what to call with the work done and all of it."""
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
