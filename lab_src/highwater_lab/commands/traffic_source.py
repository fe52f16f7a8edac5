"""The traffic of `rehearse`, `simulate` and `recommend`, and the prices and delays for their simulations."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from highwater.core import Dimension
from highwater.terminal.console import say
from highwater.terminal.durations import DurationType
from highwater.terminal.numbers import WholeNumber
from highwater_lab.audit.account import LiveTable, read_table
from highwater_lab.commands.matched_traffic import AppTraffic, match_traffic, traffic_of_one
from highwater_lab.commands.options import Finite, Misuse, progress_bar
from highwater_lab.rehearse import Conditions
from highwater_lab.services.prices import Commitments, Prices
from highwater_lab.services.timing import Timing
from highwater_lab.template import ListedTable
from highwater_lab.traffic import SCENARIOS, FileTraffic, Traffic, TrafficError, fetch_traffic, read_files, read_traffic
from highwater_lab.traffic import scenario as make_scenario
from highwater_lab.traffic.text import place_of

if TYPE_CHECKING:
    from boto3 import Session

_path = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSource:
    """The values of a command's traffic options; `traffic_options` documents each."""

    traffic_file: Path | None
    scenario: str | None
    region: str | None
    profile: str | None
    days: int | None
    units_are: str
    scale: float
    mean: float | None
    start: datetime | None
    shift: timedelta | None
    noise: float | None
    seed: int | None
    metric_delay: int
    price_region: str | None
    prices_file: Path | None
    reserved_read: int
    reserved_write: int
    savings_plan: bool
    config_recorder: bool
    # of one table
    traffic_table: str | None = None
    live_table: str | None = None
    save: Path | None = None
    # of all tables
    is_live: bool = False

    @property
    def commitments(self) -> Commitments:
        """What was bought before: reserved capacity, a savings plan."""
        return Commitments(
            reserved_read_units=self.reserved_read,
            reserved_write_units=self.reserved_write,
            has_savings_plan=self.savings_plan,
        )

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files that are read, by option."""
        return {"--traffic": self.traffic_file, "--prices": self.prices_file}

    @property
    def of_one(self) -> dict[str, object]:
        """The values of the options that are for one table alone, by option."""
        return {"--traffic-table": self.traffic_table, "--live-table": self.live_table, "--save": self.save}

    @property
    def table_region(self) -> str | None:
        """The region of the live table from an option or AWS_REGION; `None` if neither is set, or for other sources."""
        # boto3 itself reads AWS_DEFAULT_REGION only
        return None if self.live_table is None else self.region or os.environ.get("AWS_REGION") or None

    def read_live_table(self) -> tuple[LiveTable | None, str]:
        """Return the live table as it is set up now, and why its scaling could not be read, empty if it was.

        It is `None` for traffic from other sources. Raises `Misuse` if the table cannot be read.
        """
        from botocore.exceptions import ClientError

        if self.live_table is None:
            return None, ""
        with telling_of(f"table {self.live_table!r}"):
            session = self._session()
            dynamodb = session.client("dynamodb")
            try:
                return read_table(dynamodb, session.client("application-autoscaling"), self.live_table), ""
            except ClientError as refused:
                return read_table(dynamodb, None, self.live_table), str(refused)

    def read_traffic(self) -> Traffic:
        """The traffic, scaled and moved in time. `tell_notes` is for what its source did not have.

        Raises:
            Misuse: No source or several are given, an option does not fit the source, CloudWatch rejects the call, or
                there is nothing to simulate.
            TrafficError: The file or the table has no usable traffic.
        """
        self._check_options("--live-table NAME")
        unscaled = self._unscaled()
        return self._usable(self._moved(unscaled), was_idle=unscaled.is_idle)

    def _usable(self, traffic: Traffic, *, was_idle: bool) -> Traffic:
        if traffic.is_unknown:
            raise TrafficError(traffic.notes[0])
        if traffic.is_idle and not was_idle:
            raise Misuse(f"traffic {traffic.name} has no requests after scaling, so there is nothing to simulate")
        return traffic

    def read_traffic_of_table(
        self, table: ListedTable, every: Iterable[ListedTable] = (), *, tells_left_over: bool = False
    ) -> Traffic:
        """The traffic of one table of a template, of which *every* has all tables; as `read_traffic`.

        Of files without `--traffic-table`, and with `--live`, it is that of the table by any name by which
        `ListedTable` knows it. With *tells_left_over*, a note names the traffic that fits no table.

        Raises:
            Misuse: As `read_traffic`.
            TrafficError: As `read_traffic`, or the files have no traffic of the table.
        """
        if self.is_live:
            traffic = self.read_traffic_of_tables([[table]])(table)
            if traffic is None or traffic.is_unknown:
                raise TrafficError(traffic.notes[0] if traffic else f"CloudWatch has no traffic of {table.name}")
            return traffic
        if self.traffic_file is None or self.traffic_table is not None:
            return self.read_traffic()
        self._check_options("--live-table NAME")
        read = self._read_files(self.traffic_file)
        matched = match_traffic(read, [[table]], every, self._moved, has_notes=False)
        file = place_of(self.traffic_file).file
        found = traffic_of_one(matched, table, read, file, tells_left_over=tells_left_over)
        return self._usable(found, was_idle=read[found.name].traffic.is_idle)

    def read_traffic_of_tables(
        self, asked: Sequence[Sequence[ListedTable]], every: Iterable[ListedTable] = ()
    ) -> AppTraffic:
        """The traffic of tables of an app, of which *every* has all; a table before and after a change is one.

        A scenario is the traffic of every table. The traffic is scaled and moved in time.

        Raises:
            Misuse: Neither `--traffic` nor `--scenario` is given, or an option does not fit the source.
            TrafficError: A file has no usable traffic.
        """
        self._check_options("--live")
        if self.is_live:
            return AppTraffic(self._live_traffic())
        if self.traffic_file is None:
            same = self._moved(self._unscaled())
            return AppTraffic(lambda _: same)
        return match_traffic(self._read_files(self.traffic_file), asked, every, self._moved)

    def _read_files(self, file: Path) -> dict[str, FileTraffic]:
        return read_files(file, units_are=Dimension(self.units_are.removesuffix("s")))

    def _live_traffic(self) -> Callable[[ListedTable], Traffic | None]:
        """Return a function that fetches the traffic of the live table that a table of an app is deployed as."""
        with telling_of("the tables"):
            session = open_session(self.profile, self.region or os.environ.get("AWS_REGION") or None)
            dynamodb, cloudwatch = session.client("dynamodb"), session.client("cloudwatch")
            names = [name for page in dynamodb.get_paginator("list_tables").paginate() for name in page["TableNames"]]
        now, days = datetime.now(UTC), 14 if self.days is None else self.days

        def fetch(table: ListedTable) -> Traffic | None:
            name = table.name_among(names)
            if name is None:
                return None
            try:
                with telling_of(f"table {name!r}"):
                    return self._moved(fetch_traffic(dynamodb, cloudwatch, name, days=days, now=now))
            except TrafficError as error:
                say(str(error), err=True)
                return None

        return fetch

    def _moved(self, traffic: Traffic) -> Traffic:
        """Return traffic as the options scale and move it; what is idle stays so."""
        if traffic.is_unknown:
            return traffic
        if self.mean is not None:
            if self.mean == 0:
                raise Misuse("--mean must be above 0, got 0")
            traffic = traffic if traffic.is_idle else traffic.with_mean(self.mean)
        if self.scale != 1.0:
            traffic = traffic.scaled(self.scale)
        if self.start is not None:
            traffic = traffic.starting(self.start.replace(tzinfo=UTC))
        if self.shift is not None:
            traffic = traffic.starting(traffic.start + self.shift)
        return traffic if self.noise is None else traffic.with_noise(self.noise, seed=self._seed)

    @property
    def _seed(self) -> int:
        return 1 if self.seed is None else self.seed

    def load_prices(self, region: str | None = None) -> Prices:
        """The prices of `--price-region`, *region*, the live table's or us-east-1, from a file if one is given.

        Raises `PriceError`.
        """
        return self.conditions().prices(region)

    def conditions(self, *, table_quota: int | None = None, account_quota: int | None = None) -> Conditions:
        """The conditions of a simulation that these options say, with an account's quotas of units."""
        return Conditions(
            timing=self.timing(),
            price_region=self.price_region,
            region=self.table_region,
            prices_file=self.prices_file,
            commitments=self.commitments,
            has_config_recorder=self.config_recorder,
            table_quota_units=table_quota,
            account_quota_units=account_quota,
        )

    def timing(self) -> Timing:
        """The delays of the AWS services."""
        return Timing(metric_delay=self.metric_delay)

    def _check_options(self, live: str) -> None:
        sources = (self.traffic_file, self.scenario, self.live_table, True if self.is_live else None)
        if sum(source is not None for source in sources) != 1:
            raise Misuse(f"give the traffic with exactly one of --traffic FILE, --scenario NAME and {live}")
        if self.traffic_file is None and self.traffic_table is not None:
            raise Misuse("--traffic-table is of --traffic, and chooses one of the tables of its file; remove it")
        source = "--traffic" if self.traffic_file is not None else "--scenario"
        if self.live_table is None and not self.is_live:
            given = {"--days": self.days, "--region": self.region, "--profile": self.profile}
            for option, value in given.items():
                if value is not None:
                    raise Misuse(f"{option} is of {live.partition(' ')[0]}; remove it beside {source}")
        if self.scenario is None and self.noise is None and self.seed is not None:
            raise Misuse("--seed is of --scenario and --noise, whose random numbers it decides; remove it")

    def _unscaled(self) -> Traffic:
        dimension = Dimension(self.units_are.removesuffix("s"))
        if self.traffic_file is not None:
            return read_traffic(self.traffic_file, table=self.traffic_table, units_are=dimension)
        if self.scenario is not None:
            return make_scenario(self.scenario, seed=self._seed, dimension=dimension)
        return self._fetch(str(self.live_table), 14 if self.days is None else self.days)

    def _fetch(self, table: str, days: int) -> Traffic:
        with telling_of(f"table {table!r}"), progress_bar("reading CloudWatch") as progress:
            session = self._session()
            return fetch_traffic(
                session.client("dynamodb"),
                session.client("cloudwatch"),
                table,
                days=days,
                now=datetime.now(UTC),
                progress=progress,
            )

    def _session(self) -> Session:
        return open_session(self.profile, self.table_region)


_OPTIONS = (
    click.option(
        "--traffic",
        "traffic_file",
        type=_path,
        help="File of units per bin: CSV, CloudWatch's CSV or JSON, Parquet, a folder of them, - for standard input. "
        "See docs/traffic.md.",
    ),
    click.option("--scenario", type=click.Choice(SCENARIOS), help="Use synthetic traffic instead."),
    click.option("--region", help="Region of live tables. By default AWS_REGION, or that of your AWS configuration."),
    click.option("--profile", help="Profile of your AWS configuration for live tables. By default AWS_PROFILE."),
    click.option("--days", type=WholeNumber(1, 455), help="Number of past days of live tables. [default: 14]"),
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
    click.option("--shift", type=DurationType(), help="Move the traffic later by this duration, such as 2h30m."),
    click.option(
        "--noise",
        type=Finite(0, 3),
        help="Draw the seconds within each minute at random, as minutes hide them: the standard deviation of the "
        "logarithm of the units in ten seconds, from 0.3 (calm) to 1.0 (bursts).",
    ),
    click.option("--seed", type=int, help="Seed of --noise, and of the random jitter in scenarios. [default: 1]"),
    click.option(
        "--metric-delay",
        type=WholeNumber(0, 3600),
        default=Timing().metric_delay,
        show_default=True,
        help="Seconds from a minute's end to its datapoint in CloudWatch.",
    ),
    click.option(
        "--price-region",
        help="Region whose prices apply. By default the template's own, that of a live table, or us-east-1.",
    ),
    click.option(
        "--prices", "prices_file", type=_path, help="Use the prices in this JSON file; `highwater prices` makes one."
    ),
    click.option(
        "--reserved-read",
        type=WholeNumber(0, 10_000_000),
        default=0,
        help="Reserved read units in the region: capacity up to them costs nothing more.",
    ),
    click.option(
        "--reserved-write",
        type=WholeNumber(0, 10_000_000),
        default=0,
        help="Reserved write units in the region, likewise.",
    ),
    click.option("--savings-plan", is_flag=True, help="A Database Savings Plan covers what is not reserved."),
    click.option(
        "--config-recorder",
        is_flag=True,
        help="AWS Config records the account continuously: each change of capacity costs configuration items.",
    ),
)
_OF_ONE = (
    click.option("--traffic-table", metavar="NAME", help="The table to read from a file or folder of several."),
    click.option("--live-table", help="Use the past traffic of a live table from CloudWatch instead (about $0.01)."),
    click.option("--save", type=_path, help="Write the traffic to this CSV file, for later use with --traffic."),
)
_OF_ALL = (
    click.option(
        "--live",
        "is_live",
        is_flag=True,
        help="Use the past traffic of every table from CloudWatch instead (about $0.01 each).",
    ),
)


def traffic_options(
    *, of_one: bool = True, of_all: bool = False
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add the options for the source of traffic to a command; it gets them as one argument, `source`.

    They are for one table, for all tables of an app with *of_all*, or for either.
    """

    def add(command: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(command)
        def with_source(**given: Any) -> object:
            names = [each.name for each in fields(TrafficSource) if each.name in given]
            return command(source=TrafficSource(**{name: given.pop(name) for name in names}), **given)

        for option in reversed(
            (*_OPTIONS[:1], *(_OF_ONE if of_one else ()), *(_OF_ALL if of_all else ()), *_OPTIONS[1:])
        ):
            with_source = option(with_source)
        return with_source

    return add


def tell_notes(traffic: Traffic) -> None:
    """Print the notes on traffic on standard error; for the end, as a command that refuses prints one line."""
    for note in traffic.notes:
        say(note, err=True)


def asked_of_cloudwatch(tables: str, days: int, metrics: int, usd: float, kept: int) -> str:
    """Return in a line what is asked of CloudWatch, two metrics a request, and what that costs."""
    price = "less than 0.01" if usd < 0.01 else f"{usd:.2f}"
    more = f"; {kept:,} kept from before" if kept else ""
    return f"{tables}, {days} days: {metrics // 2:,} requests to CloudWatch for {metrics:,} metrics, {price} USD{more}"


def open_session(profile: str | None, region: str | None) -> Session:
    """Return a session of *profile*, whose credentials then take precedence over those of the environment.

    Raises `Misuse` if there is no such profile.
    """
    import boto3
    from botocore.exceptions import ProfileNotFound

    try:
        return boto3.Session(profile_name=profile, region_name=region)
    except ProfileNotFound as missing:
        if profile is None:
            raise
        fix = "list them with: aws configure list-profiles"
        raise Misuse(f"--profile: no profile {profile!r} in your AWS configuration; {fix}") from missing


@contextlib.contextmanager
def telling_of(what: str) -> Iterator[None]:
    """Raise `Misuse` if a request to AWS fails; the message begins with *what* it was about, such as a live table."""
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    try:
        yield
    except TrafficError:
        raise
    except NoRegionError:
        raise Misuse(f"{what}: no region is set; give --region, or set AWS_REGION") from None
    except (BotoCoreError, ClientError, ValueError) as refused:
        raise Misuse(f"{what}: {refused}") from refused
