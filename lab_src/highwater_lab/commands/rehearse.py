"""`highwater rehearse`: a template against traffic."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from highwater.core import HighwaterError
from highwater.core.limits import DEFAULT_ACCOUNT_QUOTA_UNITS, DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.commands.options import (
    Finite,
    KeysOption,
    Misuse,
    Pairs,
    check_places,
    progress_bar,
)
from highwater_lab.commands.traffic_source import TrafficSource, traffic_options
from highwater_lab.policies.catalogue import POLICY_NAMES
from highwater_lab.rehearse import Limits, rehearse
from highwater_lab.report.document import rehearsal_document
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import write_picture
from highwater_lab.report.terminal import print_rehearsal
from highwater_lab.traffic import write_traffic

_FINDING = 1
_path = click.Path(path_type=Path)


@click.command("rehearse", short_help="A template against traffic, before it is deployed.")
@click.argument("template", type=_path)
@traffic_options
@click.option("--logical-id", help="Which table of the template, by logical id or the start of it.")
@click.option("--parameter", "parameters", type=Pairs("NAME=VALUE"), multiple=True, help="A template parameter.")
@click.option("--compare", default="", help=f"Other policies, by comma: {', '.join(POLICY_NAMES)}.")
@click.option(
    "--keys",
    type=KeysOption(),
    multiple=True,
    help="How keys spread: uniform, zipf[:EXPONENT], hot:PERCENT, rolling; INDEX=... for an index.",
)
@click.option(
    "--index-share",
    type=Pairs("INDEX=PERCENT"),
    multiple=True,
    help="Units written to an index per unit of the table; 100 by default.",
)
@click.option("--size-gb", type=click.IntRange(0, 1_000_000), default=0, help="Data in the table.")
@click.option(
    "--new-items", type=click.IntRange(0, 100), default=0, help="Percent of written units that add new data (1 KB)."
)
@click.option(
    "--table-quota",
    type=click.IntRange(1, 10_000_000),
    help=f"Your account's quota per table and index; by default AWS's, {DEFAULT_TABLE_QUOTA_UNITS:,}.",
)
@click.option(
    "--account-quota",
    type=click.IntRange(1, 100_000_000),
    help=f"Your account's quota of all provisioned capacity; by default AWS's, {DEFAULT_ACCOUNT_QUOTA_UNITS:,}.",
)
@click.option("--max-throttled", type=Finite(0, 100), help="Percent that may be throttled; exit 1 above.")
@click.option("--max-cost", type=Finite(0), help="USD a month that it may cost; exit 1 above.")
@click.option("--html", type=_path, help="Write the report as one page.")
@click.option("--png", type=_path, help="Write the picture.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def rehearse_command(
    template: Path,
    source: TrafficSource,
    logical_id: str | None,
    parameters: tuple[tuple[str, str], ...],
    compare: str,
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
    """Simulate TEMPLATE, a cdk.out folder or a CloudFormation template, under traffic.

    Says how much would be throttled, when, why and at what cost, for what is declared and for what --compare names.
    Give the traffic with --traffic, --scenario or --table.

    \b
    highwater rehearse cdk.out --scenario step --compare native:50,on-demand,clairvoyant
    highwater rehearse cdk.out --table orders --days 14 --save orders.csv --html report.html
    highwater rehearse cdk.out --traffic orders.csv --max-throttled 0.1 --max-cost 900

    Exit status: 0 fine, 1 a limit is passed, 2 misuse.
    """  # noqa: D301 - a real backspace, which tells click to keep the lines as they are
    check_places(
        {"TEMPLATE": template, **source.inputs},
        {"--save": source.save, "--html": html, "--png": png},
    )
    try:
        traffic = source.read_traffic()
        prices = source.load_prices()
        with progress_bar("rehearsing") as progress:
            rehearsal = rehearse(
                template,
                traffic,
                logical_id=logical_id,
                parameters=dict(parameters),
                compare=[name.strip() for name in compare.split(",")] if compare else [],
                keys=dict(keys),  # type: ignore[arg-type] # the option makes them
                write_share_percent={index: _percent(text) for index, text in index_share},
                size_gb=size_gb,
                new_items_percent=new_items,
                table_quota_units=table_quota,
                account_quota_units=account_quota,
                timing=source.timing(),
                prices=prices,
                progress=progress,
            )
        if source.save is not None:
            write_traffic(traffic, source.save)
        if html is not None:
            write_page(rehearsal, html)
        if png is not None:
            write_picture(rehearsal, png)
    except HighwaterError as error:
        raise Misuse(str(error)) from error
    except OSError as error:
        raise Misuse(f"{error.filename}: cannot be written: {error.strerror}") from error
    passed = Limits(max_throttled_percent=max_throttled, max_cost_per_month=max_cost).passed(rehearsal)
    if as_json:
        document = rehearsal_document(rehearsal) | {"passed": [found.what for found in passed]}
        click.echo(json.dumps(document))
    else:
        console = Console()
        print_rehearsal(rehearsal, console)
        for made in (source.save, html, png):
            if made is not None:
                console.print(f"written: {made}", highlight=False, markup=False)
        for found in passed:
            console.print(f"[red]✗[/] {escape(found.text)}", highlight=False)
    if passed:
        raise click.exceptions.Exit(_FINDING)


def _percent(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 10_000:
        raise Misuse(f"--index-share: {text!r} is no percentage; allowed: 0 to 10,000")
    return int(text)
