"""`highwater recommend`: the cheapest plan for known traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from highwater.core import HighwaterError
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.commands.options import Finite, Misuse, check_places, progress_bar
from highwater_lab.commands.traffic_source import TrafficSource, traffic_options
from highwater_lab.recommend import Candidate, Recommendation, recommend
from highwater_lab.recommend.code import code_of
from highwater_lab.report.curve import write_curve
from highwater_lab.traffic import Traffic, write_traffic

_FINDING = 1
_path = click.Path(path_type=Path)


@click.command("recommend", short_help="The cheapest plan that keeps throttles under a limit.")
@traffic_options
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    default=0.01,
    show_default=True,
    help="Percent of the units asked for that may be throttled.",
)
@click.option("--timezone", default="UTC", show_default=True, help="Zone in which surges come again; for windows.")
@click.option(
    "--table-quota",
    type=click.IntRange(1, 10_000_000),
    default=DEFAULT_TABLE_QUOTA_UNITS,
    show_default=True,
    help="Your account's quota per table and index.",
)
@click.option("--png", type=_path, help="Write the trade-off curve.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def recommend_command(
    source: TrafficSource,
    max_throttled: float,
    timezone: str,
    table_quota: int,
    png: Path | None,
    as_json: bool,
) -> None:
    """Search targets, floors, windows and on-demand for the cheapest plan for known traffic.

    Shows what each step less of throttling costs, and prints the Python code of the plan. Ctrl-C ends the search and
    shows the best so far.

    \b
    highwater recommend --table orders --days 14 --timezone America/New_York
    highwater recommend --traffic orders.csv --max-throttled 0.1 --png curve.png

    Exit status: 0 fine, 1 no plan keeps the limit, 2 misuse.
    """  # noqa: D301 - a real backspace, which tells click to keep the lines as they are
    check_places(source.inputs, {"--save": source.save, "--png": png})
    try:
        traffic = source.read_traffic()
        with progress_bar("searching") as progress:
            found = recommend(
                traffic,
                max_throttled_percent=max_throttled,
                timezone=timezone,
                table_quota_units=table_quota,
                prices=source.load_prices(),
                timing=source.timing(),
                progress=progress,
            )
        if source.save is not None:
            write_traffic(traffic, source.save)
        if png is not None:
            write_curve(found, f"{traffic.name}: what less throttling costs", png)
    except HighwaterError as error:
        raise Misuse(str(error)) from error
    except OSError as error:
        raise Misuse(f"{error.filename}: cannot be written: {error.strerror}") from error
    if as_json:
        click.echo(json.dumps(_document(found)))
    else:
        _print(found, max_throttled, Console())
        if not found.is_within_limit:
            _print_why_not(traffic, table_quota)
        if png is not None:
            click.echo(f"written: {png}")
    if not found.is_within_limit:
        raise click.exceptions.Exit(_FINDING)


def _print(found: Recommendation, limit: float, console: Console) -> None:
    if found.was_stopped:
        console.print(f"[yellow]![/] stopped after {found.tried} plans; this is the best so far", highlight=False)
    view = Table(box=None, pad_edge=False, header_style="dim")
    view.add_column("")
    for heading in ("$/month", "throttled", "used"):
        view.add_column(heading, justify="right", no_wrap=True)
    for candidate in found.curve:
        used = candidate.utilization_percent
        view.add_row(
            f"[bold]{candidate.summary}[/] ←" if candidate is found.best else candidate.summary,
            f"{candidate.cost_per_month:,.2f}",
            f"{candidate.throttled_percent:.4g} %",
            "" if used is None else f"{used:.0f} %",
        )
    console.print(view)
    if found.is_within_limit:
        console.print(f"the cheapest of {found.tried} plans that throttles at most {limit:g} %:\n", highlight=False)
    else:
        console.print(
            f"[red]✗[/] none of {found.tried} plans throttles at most {limit:g} %; the one that throttles least:\n",
            highlight=False,
        )
    # as it is, so that it can be copied and piped
    click.echo(code_of(found.best), nl=False)


def _print_why_not(traffic: Traffic, table_quota: int) -> None:
    """Say on standard error where the quota is what stands in the way."""
    busiest = max(traffic.busiest_minute(stream) for stream in traffic.rates)
    if busiest > table_quota:
        click.echo(
            f"the busiest minute asks for {busiest:,.0f} units/s, above the quota of {table_quota:,}: give yours with "
            "--table-quota if it is higher",
            err=True,
        )


def _document(found: Recommendation) -> dict[str, Any]:
    return {
        "best": _candidate(found.best) | {"code": code_of(found.best)},
        "is_within_limit": found.is_within_limit,
        "curve": [_candidate(candidate) for candidate in found.curve],
        "tried": found.tried,
        "was_stopped": found.was_stopped,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "summary": candidate.summary,
        "plan": None if candidate.plan is None else candidate.plan.to_document(),
        "cost_per_month_usd": round(candidate.cost_per_month, 2),
        "throttled_percent": candidate.throttled_percent,
        "utilization_percent": candidate.utilization_percent,
    }
