"""`highwater audit`: what the tables of accounts waste and throttle, and the changes, with dollars and code."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

import click

from highwater.terminal.console import say
from highwater.terminal.numbers import WholeNumber
from highwater_lab.audit import (
    AuditFolder,
    Judgement,
    LiveTable,
    Question,
    RegionClients,
    judge,
    list_tables,
    read_data,
    read_idle,
    read_tables,
)
from highwater_lab.audit.account import WORKERS
from highwater_lab.audit.deviations import PlacedDeviation
from highwater_lab.commands.options import Finite, Misuse, check_places, misuse_of_errors, progress_bar, timezone_option
from highwater_lab.commands.traffic_source import asked_of_cloudwatch, open_session, telling_of
from highwater_lab.doctor import CheckedPlace, Result, State, run_checks, unread
from highwater_lab.files import replace_file
from highwater_lab.report.audit import Audit, audit_csv, audit_document, audit_lines, audit_page
from highwater_lab.services.commitments import CommitmentAdvice, HourlyUsage, advise
from highwater_lab.services.data_costs import DataCosts, TableData, data_costs
from highwater_lab.services.prices import Commitments, PriceError, Prices, load_prices
from highwater_lab.traffic import Usage, fetch_usage

_FINDING: Final = 1
# Judgements that wait for a processor; the traffic of more tables would only fill memory
_MOST_WAITING: Final = 32
# What of the doctor's needs no app
_CHECKS: Final = ("leftovers", "drift")
# Opens an account and region, with a file of prices
_OpenPlace: TypeAlias = Callable[[Path | None], CheckedPlace]
_path = click.Path(path_type=Path)


@click.command("audit", short_help="Find what the tables of accounts waste and throttle.")
@click.option(
    "--role", "roles", multiple=True, metavar="ARN", help="Role to read an account with; several are allowed."
)
@click.option("--region", "regions", multiple=True, help="Region to read; several are allowed. By default AWS_REGION.")
@click.option("--all-regions", is_flag=True, help="Every region that has DynamoDB; those that refuse are listed.")
@click.option("--profile", help="Profile of your AWS configuration. By default AWS_PROFILE.")
@click.option("--days", type=WholeNumber(1, 455), default=14, show_default=True, help="Number of past days.")
@click.option(
    "--least-gain",
    type=Finite(0),
    default=20.0,
    show_default=True,
    help="Say nothing of a change that saves less than so many USD a month.",
)
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    default=0.01,
    show_default=True,
    help="Highest allowed percentage of throttled requests.",
)
@timezone_option
@click.option(
    "--code", "language", type=click.Choice(["cdk", "hcl"]), default="cdk", show_default=True, help="The code."
)
@click.option(
    "--prices", "prices_file", type=_path, help="Use the prices in this JSON file; `highwater prices` makes one."
)
@click.option("--savings-plan", is_flag=True, help="A Database Savings Plan covers the tables.")
@click.option("--price-only", is_flag=True, help="List the tables, say what CloudWatch will charge, and end.")
@click.option("--yes", is_flag=True, help="Do not ask before CloudWatch is read.")
@click.option("--out", type=_path, help="Folder to keep what is read and found, so that the audit can be resumed.")
@click.option("--html", "html_file", type=_path, help="Write the findings to this HTML file.")
@click.option("--csv", "csv_file", type=_path, help="Write the findings to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def audit_command(
    roles: tuple[str, ...],
    regions: tuple[str, ...],
    all_regions: bool,
    profile: str | None,
    days: int,
    least_gain: float,
    max_throttled: float,
    timezone: str,
    language: str,
    prices_file: Path | None,
    savings_plan: bool,
    price_only: bool,
    yes: bool,
    out: Path | None,
    html_file: Path | None,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """Find tables that waste, throttle, lack scaling, or would cost less in another mode, class or with windows.

    Reads only. Lists the tables first, says how many metrics it will request from CloudWatch and what they cost, and
    asks before it does. Each finding has its dollars a month, its throttles before and after, and in HTML, CSV and JSON
    the code of the change. What deleted tables have left, and what differs from a scaler's plan, has the command that
    ends it. Then it says which commitments are worth it. With --out, an audit that was interrupted goes on where it
    was.

    \b
    highwater audit --all-regions --price-only
    highwater audit --role arn:aws:iam::111122223333:role/audit --region eu-west-1 --out audit --html audit.html --yes

    Exit status: 0 nothing found, 1 findings, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    check_places({"--prices": prices_file}, {"--html": html_file, "--csv": csv_file})
    if regions and all_regions:
        raise Misuse("give --region or --all-regions, not both")
    question = Question(
        days=days,
        max_throttled=max_throttled,
        least_gain=least_gain,
        timezone=timezone,
        language=language,
        has_savings_plan=savings_plan,
        prices_file=str(prices_file or ""),
    )
    with misuse_of_errors():
        work = _Audit(question, AuditFolder(out), _Accounts(profile, roles, regions, all_regions))
        work.read_tables()
        say(work.price, err=True)
        if price_only:
            return
        if work.metrics and not yes:
            _ask()
        audit = work.run()
        if html_file is not None:
            replace_file(html_file, audit_page(audit))
        if csv_file is not None:
            replace_file(csv_file, audit_csv(audit).encode("utf-8", "replace"))
    if as_json:
        click.echo(json.dumps(audit_document(audit)))
    else:
        for line in audit_lines(audit):
            say(line)
    if audit.findings or audit.deviations:
        raise click.exceptions.Exit(_FINDING)


def _ask() -> None:
    if not sys.stdin.isatty():
        raise Misuse(
            "CloudWatch charges for this, and nobody is at the terminal to be asked; add --yes or --price-only"
        )
    if not click.confirm("Go on?", err=True):
        raise Misuse("not confirmed; nothing was read from CloudWatch")


class _Accounts:
    """The sessions of the accounts to read, and the requests that they sent."""

    def __init__(self, profile: str | None, roles: Sequence[str], regions: Sequence[str], is_all: bool) -> None:
        self._profile, self._roles, self._regions = profile, roles, regions
        self.is_all = is_all
        self.calls: Counter[str] = Counter()
        self._lock = Lock()

    def each(self) -> Iterator[tuple[str, RegionClients, _OpenPlace]]:
        """Yield for each account and region its name in messages, clients, and what opens it for the doctor."""
        own = open_session(self._profile, os.environ.get("AWS_REGION") or None)
        for role in self._roles or ("",):
            given: dict[str, str] = {}
            if role:
                with telling_of(f"role {role!r}"):
                    sts = own.client("sts", region_name=own.region_name or next(iter(self._regions), "us-east-1"))
                    given = sts.assume_role(RoleArn=role, RoleSessionName="highwater-audit")["Credentials"]
            partition = role.split(":")[1] if role.count(":") > 1 else "aws"
            if not role and own.region_name:
                partition = own.get_partition_for_region(own.region_name)
            sessions = self._session(given, in_seconds=False), self._session(given, in_seconds=True)
            regions = own.get_available_regions("dynamodb", partition) if self.is_all else self._regions
            for region in regions or [own.region_name]:
                if region is None:
                    raise Misuse("no region is set; give --region, or set AWS_REGION")
                name = f"{role}/{region}" if role else region
                yield name, _clients(*sessions, region), partial(self._place, given, region)

    def _place(self, given: Any, region: str, prices_file: Path | None) -> CheckedPlace:
        return CheckedPlace(self._session(given, in_seconds=False, region=region), prices_file)

    def _session(self, given: Any, *, in_seconds: bool, region: str | None = None) -> Any:
        import boto3
        import botocore.session

        session = botocore.session.Session(profile=self._profile)
        if given:
            session.set_credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        if in_seconds:
            # botocore takes a minute to convert a million timestamps to datetime
            session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_seconds)
        session.register("request-created", self._count)
        return boto3.Session(botocore_session=session, region_name=region)

    def _count(self, **event: Any) -> None:
        with self._lock:
            self.calls[event["operation_name"]] += 1


def _clients(session: Any, in_seconds: Any, region: str) -> RegionClients:
    from highwater.calls.attempts import RARE, client_config

    more: Any = {"region_name": region, "config": client_config(RARE)}
    names = ("dynamodb", "application-autoscaling", "compute-optimizer")
    dynamodb, autoscaling, optimizer = (session.client(name, **more) for name in names)
    return RegionClients(region, dynamodb, autoscaling, in_seconds.client("cloudwatch", **more), optimizer)


def _seconds(at: Any) -> float:
    from botocore.utils import parse_timestamp

    return float(at) if isinstance(at, int | float) else float(parse_timestamp(at).timestamp())


@dataclass(slots=True)
class _Audit:
    """The work of one audit: list, tell the price, fetch and judge."""

    question: Question
    folder: AuditFolder
    accounts: _Accounts
    until: datetime = field(init=False)
    tables: list[tuple[LiveTable, RegionClients]] = field(default_factory=list)
    places: list[tuple[str, _OpenPlace]] = field(default_factory=list)
    prices: dict[str, Prices] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    judged: dict[str, Judgement] = field(default_factory=dict)
    kept: int = 0
    metrics: int = 0

    def read_tables(self) -> None:
        """List the tables of all accounts and regions, and find out what has to be fetched."""
        from botocore.exceptions import BotoCoreError, ClientError

        for name, clients, open_place in self.accounts.each():
            try:
                names, now = list_tables(clients.dynamodb)
            except (BotoCoreError, ClientError) as refused:
                if not self.accounts.is_all:
                    raise Misuse(f"{name}: {refused}") from refused
                self.refused[name] = str(refused)
                continue
            self.places.append((name, open_place))
            if not self.tables:
                self.until = self.folder.open(self.question, now)
            if names:
                with telling_of(name):
                    days = self.question.days
                    read = read_tables(clients, names, self.until - timedelta(days=days), can_be_fewer=days > 1)
                self.tables += [(table, clients) for table in read]
        if self.refused and not self.tables:
            name, reason = next(iter(self.refused.items()))
            raise Misuse(f"no region could be read; {name}: {reason}")
        for table, _ in self.tables:
            kept = self.folder.judgement(table)
            problem = table.problem or self._load_prices(table.region)
            if kept is not None:
                self.judged[table.label] = kept
                self.kept += 1
            elif problem:
                self.judged[table.label] = Judgement(
                    account=table.account, region=table.region, table=table.name, problem=problem
                )
            elif not self.folder.has_usage(table):
                # consumed and throttled for each stream
                self.metrics += 2 * len(table.streams)

    def _load_prices(self, region: str) -> str:
        """Load the prices of a region; return why there are none, empty if there are."""
        if region not in self.prices:
            file = Path(self.question.prices_file) if self.question.prices_file else None
            savings_plan = Commitments(has_savings_plan=self.question.has_savings_plan)
            try:
                self.prices[region] = load_prices(region, file).committed(savings_plan)
            except PriceError as unknown:
                return str(unknown)
        return ""

    @property
    def price_usd(self) -> float:
        """What CloudWatch charges for the metrics at the list price."""
        return self.metrics * load_prices().thousand_metrics_requested / 1000

    @property
    def price(self) -> str:
        """What is going to be requested, in a line."""
        tables = f"{len(self.tables):,} tables"
        return asked_of_cloudwatch(tables, self.question.days, self.metrics, self.price_usd, self.kept)

    def run(self) -> Audit:
        """Fetch and judge what is not judged yet; return everything."""
        waiting = [(table, clients) for table, clients in self.tables if table.label not in self.judged]
        if waiting:
            with progress_bar("auditing") as progress:
                for done, judgement in enumerate(self._judge(waiting), len(self.judged) + 1):
                    self.folder.keep_judgement(judgement)
                    self.judged[judgement.label] = judgement
                    progress(done, len(self.tables))
        deviations, unchecked = self._deviations()
        data = self._data(unchecked)
        return Audit(
            judgements=tuple(self.judged[table.label] for table, _ in self.tables),
            commitments=self._commitments(),
            deviations=tuple(sorted(deviations, key=lambda each: each.deviation.rank)),
            unchecked=tuple(unchecked),
            data=data,
            until=self.until,
            days=self.question.days,
            refused=self.refused,
            idle=self._idle(),
            calls=self.accounts.calls,
            metrics=self.metrics,
            price_usd=self.price_usd,
        )

    def _judge(self, waiting: Sequence[tuple[LiveTable, RegionClients]]) -> Iterator[Judgement]:
        """Yield judgements as they are made, while threads fetch the traffic of the next tables."""
        pool = ProcessPoolExecutor(
            min(os.cpu_count() or 1, len(waiting)),
            # a fork would copy the locks of the thread that draws the progress
            mp_context=multiprocessing.get_context("spawn"),
            # Ctrl-C ends this process, which ends the others
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )
        pending: set[Future[Judgement]] = set()
        try:
            with ThreadPoolExecutor(WORKERS) as threads:
                for start in range(0, len(waiting), WORKERS):
                    part = waiting[start : start + WORKERS]
                    for (table, _), usage in zip(part, threads.map(self._usage, part), strict=True):
                        pending.add(pool.submit(judge, table, usage, self.question, self.prices[table.region]))
                    while len(pending) > _MOST_WAITING:
                        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                        yield from (each.result() for each in finished)
            yield from (each.result() for each in as_completed(pending))
        finally:
            pool.shutdown(cancel_futures=True)

    def _usage(self, waiting: tuple[LiveTable, RegionClients]) -> Usage:
        table, clients = waiting
        if self.folder.has_usage(table):
            return self.folder.usage(table)
        with telling_of(table.label):
            usage = fetch_usage(clients.cloudwatch, table.name, table.streams, days=self.question.days, now=self.until)
        self.folder.keep_usage(table, usage)
        return usage

    def _deviations(self) -> tuple[list[PlacedDeviation], list[str]]:
        """Return what is left over or differs in each account and region, and what of that could not be read."""
        deviations, unchecked = [], []
        with ThreadPoolExecutor(WORKERS) as threads:
            checked = zip(self.places, threads.map(self._checked, self.places), strict=True)
            for (name, _), (account, region, results) in checked:
                for result in results:
                    if result.deviation is not None:
                        deviations.append(PlacedDeviation(account, region, result.deviation))
                    elif result.state is not State.OK:
                        unchecked.append(f"{name}: {result.check}: {result.text}")
        return deviations, unchecked

    def _checked(self, place: tuple[str, _OpenPlace]) -> tuple[str, str, list[Result]]:
        name, open_place = place
        with telling_of(name):
            opened = open_place(Path(self.question.prices_file) if self.question.prices_file else None)
        try:
            return opened.account, opened.region, list(run_checks(opened, _CHECKS))
        finally:
            opened.close()

    def _data(self, unchecked: list[str]) -> DataCosts:
        """Return what the data of all tables costs; why it is not known of a place is added to *unchecked*."""
        from botocore.exceptions import BotoCoreError, ClientError

        places: dict[str, tuple[RegionClients, list[LiveTable]]] = {}
        for table, clients in self.tables:
            places.setdefault(f"{table.account}/{table.region}", (clients, []))[1].append(table)
        data: list[TableData] = []
        for place, (clients, tables) in places.items():
            if tables[0].region not in self.prices and (problem := self._load_prices(tables[0].region)):
                unchecked.append(f"{place}: {problem}")
                continue
            try:
                data += read_data(clients, tables)
            except (BotoCoreError, ClientError) as error:
                unchecked.append(f"{place}: {unread('storage and backups', error).text}")
        return data_costs(data, self.prices.__getitem__)

    def _commitments(self) -> CommitmentAdvice:
        usages = [
            HourlyUsage.of_capacity(
                judged.capacity, self.prices[judged.region], is_infrequent_access=judged.is_infrequent_access
            )
            for judged in self.judged.values()
            if judged.capacity is not None
        ]
        held = Commitments(has_savings_plan=self.question.has_savings_plan)
        return advise(usages, self.prices.__getitem__, held, least_gain=self.question.least_gain)

    def _idle(self) -> dict[str, float] | None:
        """Return what Compute Optimizer says of idle tables; `None` if it says nothing in a region that has some."""
        from botocore.exceptions import BotoCoreError, ClientError

        idle = [(table, clients) for table, clients in self.tables if self.judged[table.label].is_idle]
        found: dict[str, float] = {}
        for place, clients in {f"{table.account}/{table.region}": clients for table, clients in idle}.items():
            try:
                found.update({f"{place}/{name}": usd for name, usd in read_idle(clients.optimizer).items()})
            except (BotoCoreError, ClientError):
                return None
        return found
