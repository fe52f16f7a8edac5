"""`highwater rehearse`: simulate a template under traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
from rich.markup import escape

from highwater.cli.terminal import open_console
from highwater.core.limits import DEFAULT_ACCOUNT_QUOTA_UNITS, DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.commands.jobs import BoostOption, BufferOption, JobOption
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
from highwater_lab.commands.rehearse_app import FORMATS, refuse_options, run_for_app
from highwater_lab.commands.traffic_source import TrafficSource, live_option, tell_notes, traffic_options
from highwater_lab.policies.catalogue import POLICY_NAMES
from highwater_lab.rehearse import Limits, PlannedBoost, PlannedJob, rehearse
from highwater_lab.report.document import rehearsal_document
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import write_picture
from highwater_lab.report.terminal import print_rehearsal
from highwater_lab.simulation import Buffer
from highwater_lab.traffic import write_traffic

_FINDING = 1
_path = click.Path(path_type=Path)


@click.command("rehearse", short_help="Simulate a template under traffic before it is deployed.")
@click.argument("template", type=_path)
@live_option
@traffic_options
@click.option(
    "--all", "is_all", is_flag=True, help="Rehearse all tables of all stacks and stages, each under its own traffic."
)
@click.option(
    "--against",
    metavar="OLD",
    help="Compare with an older app: a cdk.out folder, a template, a Terraform plan or state, or a revision of git, "
    "which is synthesized; or prior, the state that the plan TEMPLATE was made from.",
)
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
@click.option("--size-gb", type=click.IntRange(0, 1_000_000), default=0, help="Size of the table's data in GB.")
@click.option(
    "--new-items",
    type=click.IntRange(0, 100),
    default=0,
    help="Percentage of written units that add 1 KB of new data each.",
)
@click.option(
    "--table-quota",
    type=click.IntRange(1, 10_000_000),
    help=f"Your account's quota of units per table and index; by default AWS's {DEFAULT_TABLE_QUOTA_UNITS:,}.",
)
@click.option(
    "--account-quota",
    type=click.IntRange(1, 100_000_000),
    help=f"Your account's quota of all provisioned units; by default AWS's {DEFAULT_ACCOUNT_QUOTA_UNITS:,}.",
)
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    help="Highest allowed percentage of throttled units; exit status 1 above it.",
)
@click.option("--max-cost", type=Finite(0), help="Highest allowed cost in USD a month; exit status 1 above it.")
@click.option(
    "--max-throttled-rise",
    type=Finite(0, 100),
    help="With --against: how many percentage points more may be throttled, of each table; exit status 1 above it.",
)
@click.option(
    "--max-cost-rise",
    type=Finite(0),
    help="With --against: how many USD a month more the tables of a stage may cost together; exit status 1 above it.",
)
@click.option(
    "--fail-on-unknown",
    is_flag=True,
    help="With --all or --against: exit status 1 if a table is unknown, as it has no traffic or cannot be read.",
)
@click.option(
    "--cheapest-within",
    type=Finite(0, 100),
    help="With --all or --against: also search for each table's cheapest plan that throttles at most this percentage, "
    "which takes minutes.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="With --all or --against: how to print. Markdown is for a comment on a pull request.",
)
@click.option("--html", type=_path, help="Write the report to this HTML file.")
@click.option("--png", type=_path, help="Draw the capacity and the throttling to this PNG file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def rehearse_command(
    template: Path,
    source: TrafficSource,
    is_all: bool,
    against: str | None,
    table: str | None,
    parameters: Mapping[str, str],
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
    max_throttled_rise: float | None,
    max_cost_rise: float | None,
    fail_on_unknown: bool,
    cheapest_within: float | None,
    form: str,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Simulate TEMPLATE, a cdk.out folder, a CloudFormation template or a Terraform plan, under traffic.

    A plan or state of Terraform or OpenTofu is given as terraform show -json prints it. A folder of templates and plans
    is read as one app.

    Shows how much is throttled, when and why, and the cost, for the template's own scaling and for each policy in
    --compare. Give the traffic with --traffic or --scenario, or with --live-table, which reads the past traffic of a
    live table. --table chooses one of several tables of the template.

    \b
    highwater rehearse cdk.out --scenario step --compare native:50,on-demand,clairvoyant
    highwater rehearse cdk.out --live-table orders --days 14 --save orders.csv --html report.html
    highwater rehearse cdk.out --table Shop/Orders --traffic orders.csv --max-throttled 0.1 --max-cost 900

    With --all, the tables of the whole app are rehearsed; with --against, what they cost and throttle is compared with
    an older app. The traffic is then a file or a folder with all tables, as highwater traffic fetch --all writes it. A
    table that cannot be read, or has no traffic, counts as unknown.

    \b
    highwater rehearse cdk.out --all --traffic traffic
    highwater rehearse cdk.out --against main --traffic traffic --format markdown --max-cost-rise 100
    highwater rehearse plan.json --against prior --traffic traffic

    Exit status: 0 fine, 1 a limit is exceeded, or writes wait for the drain time of their queue or longer, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    limits = Limits(
        max_throttled_percent=max_throttled,
        max_cost_per_month=max_cost,
        max_throttled_rise=max_throttled_rise,
        max_cost_rise=max_cost_rise,
        fails_on_unknown=fail_on_unknown,
    )
    if is_all or against is not None:
        if is_all and table is not None:
            raise Misuse("give either --all or --table")
        if against is None and (max_throttled_rise is not None or max_cost_rise is not None):
            raise Misuse("--max-throttled-rise and --max-cost-rise compare with an older app; give it with --against")
        for_one = {
            **{"--compare": compare, "--boost": boosts, "--job": jobs, "--buffered": buffer, "--keys": keys},
            **{
                "--index-share": index_share,
                "--target": targets,
                "--size-gb": size_gb,
                "--new-items": new_items,
                "--table-quota": table_quota,
            },
            **{"--account-quota": account_quota, "--save": source.save, "--png": png},
        }
        refuse_options(for_one, "beside --all and --against")
        is_exceeded = run_for_app(
            template,
            source,
            limits,
            against=against,
            table=table,
            parameters=parameters,
            cheapest_within=cheapest_within,
            form="json" if as_json else form,
            page=html,
        )
        if is_exceeded:
            raise click.exceptions.Exit(_FINDING)
        return
    refuse_options(
        {
            "--max-throttled-rise": max_throttled_rise is not None,
            "--max-cost-rise": max_cost_rise is not None,
            "--fail-on-unknown": fail_on_unknown,
            "--cheapest-within": cheapest_within is not None,
            "--format": form != "text",
        },
        "without --all and --against",
        "all tables",
    )
    check_places(
        {"TEMPLATE": template, **source.inputs},
        {"--save": source.save, "--html": html, "--png": png},
    )
    with misuse_of_errors():
        traffic = source.read_traffic(likely_table=table)
        with progress_bar("rehearsing") as progress:
            rehearsal = rehearse(
                template,
                traffic,
                table=table,
                likely_table=source.live_table,
                parameters=parameters,
                targets=dict(targets),
                compare=[name.strip() for name in compare.split(",")] if compare else [],
                boosts=boosts,
                jobs=jobs,
                buffer=buffer,
                keys=dict(keys),  # type: ignore[arg-type] # KeysOption returns key distributions
                write_share_percent={index: _parse_percent(text) for index, text in index_share},
                size_gb=size_gb,
                new_items_percent=new_items,
                table_quota_units=table_quota,
                account_quota_units=account_quota,
                timing=source.timing(),
                region=source.table_region,
                price_region=source.price_region,
                prices_file=source.prices_file,
                commitments=source.commitments,
                has_config_recorder=source.config_recorder,
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
