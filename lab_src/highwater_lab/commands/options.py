"""Options that the lab's commands share: the source of traffic, pairs, key distributions, progress bars."""

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
    """An error of usage: the command prints one line that begins with its name, and exits with status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))


class Finite(click.FloatRange):
    """A click type for finite numbers within a range; NaN and infinity are refused."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the number; raise `click.BadParameter` if it is not finite or out of range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def check_places(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise `Misuse` if an output is a folder or the same file as an input or another output.

    Both mappings are from the option's name to its path, `None` if the option is not given.
    """
    paths = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if not path.name or path.is_dir():
            raise Misuse(f"{name} {str(path)!r} is a folder; give the name of a file")
        for other_name, other_path in paths.items():
            is_same = path.resolve() == other_path.resolve()
            if is_same or (path.exists() and other_path.exists() and path.samefile(other_path)):
                raise Misuse(f"{name} and {other_name} are the same file, {path}; give another file")
        paths[name] = path


class Pairs(click.ParamType[tuple[str, str]]):
    """A click type for two texts with `=` between them; *name* is the form in messages, such as `NAME=VALUE`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split the text at its first `=`; raise `click.BadParameter` if there is none or no text before it."""
        if isinstance(value, tuple):
            return value
        left, equals, right = str(value).partition("=")
        if not left or not equals:
            self.fail(f"{value!r} does not have the form {self.name}", param, ctx)
        return left, right


class KeysOption(click.ParamType[tuple[str | None, KeyDistribution]]):
    """A click type for `uniform`, `zipf:1.2`, `hot:40` or `rolling`, for the table, or after `INDEX=` for an index."""

    name = "[INDEX=]DISTRIBUTION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, KeyDistribution]:
        """Parse the text; raise `click.BadParameter` if it is not a key distribution."""
        if isinstance(value, tuple):
            return value
        index, equals, text = str(value).rpartition("=")
        match = re.fullmatch(r"(uniform|rolling|zipf|zipf:[0-9]{1,4}(\.[0-9]{1,6})?|hot:[0-9]{1,9})", text)
        if match is None:
            self.fail(
                f"{value!r} is not a key distribution; give uniform, zipf[:EXPONENT], hot:PERCENT or rolling",
                param,
                ctx,
            )
        kind, _, number = text.partition(":")
        try:
            if kind == "zipf":
                distribution = KeyDistribution.zipf(float(number or "0.99"))
            elif kind == "hot":
                distribution = KeyDistribution.single_hot_key(int(number))
            else:
                distribution = KeyDistribution.rolling() if kind == "rolling" else KeyDistribution.uniform()
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        return (index if equals else None), distribution


def traffic_options(command: _Command) -> _Command:
    """Decorate a command with the options for the source of the traffic and for its simulation."""
    path = click.Path(path_type=Path)
    options = (
        click.option("--traffic", "traffic_file", type=path, help="CSV file of units per bin; see docs/rehearse.md."),
        click.option("--scenario", type=click.Choice(SCENARIOS), help="Use synthetic traffic instead."),
        click.option(
            "--table", "live_table", help="Use the past traffic of a live table from CloudWatch instead (about $0.01)."
        ),
        click.option(
            "--days",
            type=click.IntRange(1, 455),
            default=14,
            show_default=True,
            help="Number of past days for --table.",
        ),
        click.option("--save", type=path, help="Write the traffic to this CSV file, for later use with --traffic."),
        click.option(
            "--as",
            "units_are",
            type=click.Choice(["reads", "writes"]),
            default="writes",
            show_default=True,
            help="Whether a scenario, or a column `units`, is reads or writes.",
        ),
        click.option("--scale", type=Finite(0, 1e9), default=1.0, help="Multiply the traffic by this factor."),
        click.option("--mean", type=Finite(0, 1e7), help="Scale the traffic to this mean rate, in units per second."),
        click.option(
            "--start",
            type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
            help="Move the traffic so that it starts at this time (UTC).",
        ),
        click.option("--shift", type=Duration(), help="Move the traffic later by this duration, such as 2h30m."),
        click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random jitter in scenarios."),
        click.option(
            "--metric-delay",
            type=click.IntRange(0, 3600),
            default=150,
            show_default=True,
            help="Seconds from a minute's end to its datapoint in CloudWatch.",
        ),
        click.option("--region", default="us-east-1", show_default=True, help="Region whose prices apply."),
        click.option("--prices", "prices_file", type=path, help="Use the prices in this JSON file."),
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
    """Return the traffic that the options describe, scaled and moved in time.

    Raises `Misuse` unless there is exactly one source, with requests; `TrafficError` if the traffic cannot be read.
    """
    if sum(source is not None for source in (file, scenario, live_table)) != 1:
        raise Misuse("give the traffic with exactly one of --traffic FILE, --scenario NAME and --table NAME")
    if file is not None:
        traffic = read_traffic(file, units_are=dimension)
    elif scenario is not None:
        traffic = make_scenario(scenario, seed=seed, dimension=dimension)
    else:
        traffic = _fetch(str(live_table), days)
    if mean is not None:
        if mean == 0:
            raise Misuse("--mean must be above 0, got 0")
        traffic = traffic.with_mean(mean)
    if scale != 1.0:
        traffic = traffic.scaled(scale)
    if not any(any(rates) for rates in traffic.rates.values()):
        raise Misuse(f"traffic {traffic.name} has no requests after scaling, so there is nothing to simulate")
    if start is not None:
        traffic = traffic.starting(start)
    return traffic.starting(traffic.start + shift) if shift is not None else traffic


def _fetch(table: str, days: int) -> Traffic:
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
    except (BotoCoreError, ClientError, ValueError) as error:
        raise Misuse(f"table {table!r}: {error}") from error


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, if that is a terminal.

    Yields a function to call with the amount of work done and its total.
    """
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
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
