"""`highwater simulate`: simulate one table of a template under traffic, with other policies, jobs and boosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
from rich.markup import escape

from highwater.core.limits import DEFAULT_ACCOUNT_QUOTA_UNITS, DEFAULT_TABLE_QUOTA_UNITS
from highwater.terminal.console import open_console
from highwater.terminal.numbers import WholeNumber
from highwater_lab.commands.jobs import BoostOption, BufferOption, JobOption
from highwater_lab.commands.matched_traffic import listed_as
from highwater_lab.commands.options import (
    Finite,
    KeysOption,
    Misuse,
    Pairs,
    check_places,
    misuse_of_errors,
    parameters_options,
    progress_bar,
)
from highwater_lab.commands.traffic_source import TrafficSource, tell_notes, traffic_options
from highwater_lab.policies.catalogue import POLICY_NAMES
from highwater_lab.rehearse import Limits, PlannedBoost, PlannedJob, Workload, rehearse
from highwater_lab.report.document import rehearsal_document
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import write_picture
from highwater_lab.report.terminal import print_rehearsal
from highwater_lab.simulation import Buffer
from highwater_lab.template import find_table, load_templates, read_app
from highwater_lab.traffic import write_traffic

_FINDING = 1
_path = click.Path(path_type=Path)


@click.command("simulate", short_help="Simulate one table under traffic, with other policies, jobs and boosts.")
@click.argument("template", type=_path)
@traffic_options()
@click.option(
    "--table", help="The template's table: its construct's path or its address or any end of them, logical id, or name."
)
@parameters_options
@click.option(
    "--target",
    "targets",
    type=Pairs("LOGICAL_ID=TABLE"),
    multiple=True,
    help="Which table a scalable target belongs to, or TABLE/index/INDEX, where only the deployment knows.",
)
@click.option(
    "--compare", default="", help=f"Further policies to simulate, separated by commas: {', '.join(POLICY_NAMES)}."
)
@click.option(
    "--boost",
    "boosts",
    type=BoostOption(),
    multiple=True,
    help="A boost that a job asks for: 'write=8000 at 02:00 for 30m', every day (UTC); or at 2026-11-02T02:00, once.",
)
@click.option(
    "--job",
    "jobs",
    type=JobOption(),
    multiple=True,
    help="Work that keeps to a budget beside the traffic: 'write=2000 at 02:00 for 7200000 units slow', or boosted, or "
    "throttled; or a share, read=30%; or of several workers that share the rate, units by 6 workers.",
)
@click.option(
    "--buffered",
    "buffer",
    type=BufferOption(),
    help="A queue that all writes pass through, as BufferedWrites: '500 within 6h', write units a second, and the time "
    "within which each is to be written. By default that of the template.",
)
@click.option(
    "--keys",
    type=KeysOption(),
    multiple=True,
    help="Distribution of requests over keys: uniform, zipf[:EXPONENT], hot:PERCENT, rolling; INDEX=... "
    "for an index. hot:40/8 spreads the hot key over 8 shards.",
)
@click.option(
    "--index-share",
    type=Pairs("INDEX=PERCENT"),
    multiple=True,
    help="Units written to an index, in percent of the units written to the table; 100 by default.",
)
@click.option("--size-gb", type=WholeNumber(0, 1_000_000), default=0, help="Size of the table's data in GB.")
@click.option(
    "--new-items",
    type=WholeNumber(0, 100),
    default=0,
    help="Percentage of written units that add 1 KB of new data each.",
)
@click.option(
    "--table-quota",
    type=WholeNumber(1, 10_000_000),
    help=f"Your account's quota of units per table and index; by default AWS's {DEFAULT_TABLE_QUOTA_UNITS:,}.",
)
@click.option(
    "--account-quota",
    type=WholeNumber(1, 100_000_000),
    help=f"Your account's quota of all provisioned units; by default AWS's {DEFAULT_ACCOUNT_QUOTA_UNITS:,}.",
)
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    help="Highest allowed percentage of throttled units; exit status 1 above it.",
)
@click.option("--max-cost", type=Finite(0), help="Highest allowed cost in USD a month; exit status 1 above it.")
@click.option("--html", type=_path, help="Write the report to this HTML file.")
@click.option("--png", type=_path, help="Draw the capacity and the throttling to this PNG file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def simulate_command(
    template: Path,
    source: TrafficSource,
    table: str | None,
    parameters: Mapping[str, str],
    no_scaling: tuple[str, ...],
    targets: tuple[tuple[str, str], ...],
    compare: str,
    boosts: tuple[PlannedBoost, ...],
    jobs: tuple[PlannedJob, ...],
    buffer: Buffer | None,
    keys: tuple[tuple[str | None, object], ...],
    index_share: tuple[tuple[str, str], ...],
    size_gb: int,
    new_items: int,
    table_quota: int | None,
    account_quota: int | None,
    max_throttled: float | None,
    max_cost: float | None,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Simulate a table of TEMPLATE, a cdk.out folder, a CloudFormation template or a Terraform plan, under traffic.

    A plan or state of Terraform or OpenTofu is given as terraform show -json prints it.

    Shows how much is throttled, when and why, and the cost, for the template's own scaling and for each policy in
    --compare. Give the traffic with --traffic or --scenario, or with --live-table, which reads the past traffic of a
    live table. --table chooses one of several tables of the template. highwater rehearse is for all tables of an app,
    and for a change of it.

    \b
    highwater simulate cdk.out --scenario step --compare native:50,on-demand,clairvoyant
    highwater simulate cdk.out --live-table orders --days 14 --save orders.csv --html report.html
    highwater simulate cdk.out --table Shop/Orders --traffic orders.csv --max-throttled 0.1 --max-cost 900

    Exit status: 0 fine, 1 a limit is exceeded, or writes wait for the drain time of their queue or longer, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    limits = Limits(max_throttled_percent=max_throttled, max_cost_per_month=max_cost)
    check_places(
        {"TEMPLATE": template, **source.inputs},
        {"--save": source.save, "--html": html, "--png": png},
    )
    with misuse_of_errors():
        templates = load_templates(template)
        setup = find_table(
            templates,
            name=table,
            likely=source.live_table,
            parameters=parameters,
            targets=dict(targets),
            no_scaling=no_scaling,
        )
        listed = read_app(templates, parameters, no_scaling).tables
        traffic = source.read_traffic_of_table(listed_as(table, setup, listed), listed)
        workload = Workload(
            keys=dict(keys),  # type: ignore[arg-type] # KeysOption returns key distributions
            write_share_percent={index: _parse_percent(text) for index, text in index_share},
            size_gb=size_gb,
            new_items_percent=new_items,
            boosts=boosts,
            jobs=jobs,
            buffer=buffer,
        )
        with progress_bar("simulating") as progress:
            rehearsal = rehearse(
                setup,
                traffic,
                compare=[name.strip() for name in compare.split(",")] if compare else [],
                workload=workload,
                conditions=source.conditions(table_quota=table_quota, account_quota=account_quota),
                progress=progress,
            )
        if source.save is not None:
            write_traffic(traffic, source.save)
        if html is not None:
            write_page(rehearsal, html, limits.passed(rehearsal))
        if png is not None:
            write_picture(rehearsal, png)
    tell_notes(traffic)
    exceeded = limits.passed(rehearsal)
    if as_json:
        document = rehearsal_document(rehearsal) | {"passed": [limit.what for limit in exceeded]}
        click.echo(json.dumps(document))
    else:
        console = open_console()
        print_rehearsal(rehearsal, console)
        for file in (source.save, html, png):
            if file is not None:
                console.print(f"written: {file}", highlight=False, markup=False)
        for limit in exceeded:
            console.print(f"[red]✗[/] {escape(limit.text)}", highlight=False)
    if exceeded:
        raise click.exceptions.Exit(_FINDING)


def _parse_percent(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 10_000:
        raise Misuse(f"--index-share: {text!r} is not a percentage; give a whole number from 0 to 10,000")
    return int(text)
