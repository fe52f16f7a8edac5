"""`highwater recommend`: find the cheapest plan for known traffic."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from highwater.core import Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.month_days import DAYS
from highwater.core.plan.windows import parse_days
from highwater.core.scaler import ScalerSettings
from highwater.terminal.console import open_console, say
from highwater.terminal.numbers import WholeNumber
from highwater_lab.commands.matched_traffic import listed_as
from highwater_lab.commands.options import (
    Finite,
    check_places,
    misuse_of_errors,
    parameters_options,
    progress_bar,
    refuse_options,
    timezone_option,
)
from highwater_lab.commands.recommend_app import candidate_document, recommend_for_app
from highwater_lab.commands.traffic_source import TrafficSource, tell_notes, traffic_options
from highwater_lab.recommend import Candidate, Recommendation, Rule, recommend
from highwater_lab.recommend.advice import DECLARED_NOW, LIMIT_PERCENT, THROTTLE_PRICE
from highwater_lab.recommend.code import code_of, scaler_code_of
from highwater_lab.recommend.hcl import hcl_of
from highwater_lab.recommend.trials import without_windows
from highwater_lab.rehearse import PlanGoals
from highwater_lab.report.advice import advice_notes, change_text, figures
from highwater_lab.report.picture import write_curve
from highwater_lab.report.tradeoff import write_tradeoff
from highwater_lab.services.prices import Prices
from highwater_lab.simulation import TableSetup
from highwater_lab.simulation.run import percent_text
from highwater_lab.template import ListedApp, check_given, find_table, load_templates, read_app, tables_called
from highwater_lab.traffic import Traffic, write_traffic

_FINDING = 1
_MINUTES_PER_DAY, _MINUTES_PER_WEEK = 24 * 60, 7 * 24 * 60
_WRITERS: Final = {"cdk": code_of, "hcl": hcl_of}
_path = click.Path(path_type=Path)


@click.command("recommend", short_help="Find the cheapest plan that keeps throttling within a limit.")
@click.argument("template", type=_path, required=False)
@traffic_options(of_all=True)
@click.option("--table", help="Only this table: its construct's path or any end of it, logical id, or name.")
@parameters_options
@click.option(
    "--max-throttled",
    type=Finite(0, 100),
    help="Highest allowed percentage of throttled units, kept at any price. By default it is 0.01, and where that "
    "costs more than the table does now, or on demand, throttled units have a price.",
)
@click.option(
    "--throttle-price",
    type=Finite(0),
    default=THROTTLE_PRICE,
    show_default=True,
    help="Price of a throttled unit, in requests on demand for a unit, where no limit is given.",
)
@timezone_option
@click.option(
    "--table-quota",
    type=WholeNumber(1, 10_000_000),
    default=DEFAULT_TABLE_QUOTA_UNITS,
    show_default=True,
    help="Your account's quota of units per table and index.",
)
@click.option(
    "--code",
    "language",
    type=click.Choice(list(_WRITERS)),
    help="The code to print the plan as: the CDK's in Python, which is the default of one table, or Terraform's. Of "
    "several tables code is printed only with this option, that of each table which is to change.",
)
@click.option(
    "--least-gain",
    type=Finite(0),
    default=20.0,
    show_default=True,
    help="Keep what is declared, or on-demand where that is not known, if the best plan costs less than so many USD a "
    "month less.",
)
@click.option("--html", type=_path, help="Write the trade-off to this HTML file; a click on a plan shows its code.")
@click.option("--png", type=_path, help="Draw the trade-off curve to this PNG file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def recommend_command(
    template: Path | None,
    source: TrafficSource,
    table: str | None,
    parameters: Mapping[str, str],
    no_scaling: tuple[str, ...],
    max_throttled: float | None,
    throttle_price: float,
    timezone: str,
    table_quota: int,
    language: str | None,
    least_gain: float,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Search target utilizations, floors, windows and on-demand for the cheapest plan for known traffic.

    With TEMPLATE, a cdk.out folder, a CloudFormation template or a Terraform plan, the plans are for the app's tables,
    with their keys, indexes, class, replicas and region, each under its own traffic as for rehearse: a line for each
    table as it is found, then the sums.

    Of one table, of the app or without TEMPLATE, shows the trade-off between cost and throttling, and prints the code
    of the best plan, for the CDK or for Terraform. Ctrl-C ends the search and shows the best result so far. A table
    with vector indexes can only be on demand, whatever is cheapest.

    \b
    highwater recommend cdk.out --traffic traffic
    highwater recommend cdk.out --traffic traffic --table Shop/Orders
    highwater recommend --live-table orders --days 14 --timezone America/New_York
    highwater recommend --traffic orders.csv --max-throttled 0.1 --html tradeoff.html
    highwater recommend --traffic orders.csv --code hcl

    Exit status: 0 fine, 1 what is advised does not keep the limit, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    if template is None:
        of_app: dict[str, object] = {"--table": table, "--parameter or --parameters": parameters}
        of_app |= {"--no-scaling": no_scaling, "--live": source.is_live}
        refuse_options(of_app, "without TEMPLATE", "the tables of a template")
    check_places({"TEMPLATE": template, **source.inputs}, {"--save": source.save, "--html": html, "--png": png})
    rule = Rule(
        limit_percent=LIMIT_PERCENT if max_throttled is None else max_throttled,
        is_stated=max_throttled is not None,
        least_gain_usd=least_gain,
        throttle_price=throttle_price,
    )
    goals = PlanGoals(
        rule=rule,
        timezone=timezone,
        conditions=source.conditions(),
        table_quota_units=table_quota,
    )
    with misuse_of_errors():
        setup = None
        if template is None:
            traffic = source.read_traffic()
        else:
            templates = load_templates(template)
            check_given(templates, parameters, no_scaling)
            every = read_app(templates, parameters, no_scaling)
            app = _called(every, table or "", source.live_table or "")
            if len(app.tables) > 1:
                of_one = {"--html": html, "--png": png, **source.of_one}
                refuse_options(of_one, "here, or choose one with --table")
                traffics = source.read_traffic_of_tables([[each] for each in app.tables], every.tables)
                writer = None if language is None else _WRITERS[language]
                is_kept = recommend_for_app(app, traffics, goals, code_of=writer, as_json=as_json)
                raise click.exceptions.Exit(0 if is_kept else _FINDING)
            name = app.tables[0].name if app.tables else table
            setup = find_table(templates, name=name, parameters=parameters, no_scaling=no_scaling)
            own = listed_as(name, setup, every.tables)
            traffic = source.read_traffic_of_table(own, every.tables, tells_left_over=True)
        found = _search(source, setup, traffic, goals, language or "cdk")
        _write_files(found, html, png)
    tell_notes(traffic)
    for note in found.notes:
        say(note, err=True)
    if as_json:
        click.echo(json.dumps(_document(found)))
    else:
        _print(found)
        for file in (html, png):
            if file is not None:
                say(f"written: {file}")
    if not found.is_kept:
        raise click.exceptions.Exit(_FINDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found for one table, and from what."""

    traffic: Traffic
    # the table that code is for, `None` for none
    table: TableSetup | None
    goals: PlanGoals
    prices: Prices
    recommendation: Recommendation
    lines: list[str]
    advised: Candidate
    writer: _Writer
    # what is said beside the result
    notes: list[str]

    @property
    def is_kept(self) -> bool:
        """Whether the advised plan keeps the limit."""
        return self.advised.keeps(self.goals.rule.limit_percent)


def _search(
    source: TrafficSource,
    setup: TableSetup | None,
    traffic: Traffic,
    goals: PlanGoals,
    language: str,
) -> _Found:
    """Find the best plan for one table: *setup*, that of a template, the live table, or none that is known."""
    is_of_template = setup is not None
    live, unread = source.read_live_table()
    # what the code is for; without its scaling, a live table cannot be simulated as it is
    own = setup if setup is not None or live is None else live.setup
    setup = own if setup is not None or not unread else None
    prices = goals.conditions.prices(own.region if own else None)
    with progress_bar("searching") as progress:
        recommendation = recommend(
            traffic,
            table=setup,
            max_throttled_percent=goals.rule.limit_percent,
            timezone=goals.timezone,
            table_quota_units=goals.table_quota_units or DEFAULT_TABLE_QUOTA_UNITS,
            prices=prices,
            timing=goals.conditions.timing,
            # the search of a short traffic is over before other processes have started
            processes=(os.cpu_count() or 1) if traffic.minutes > _MINUTES_PER_DAY else 1,
            progress=progress,
        )
    if source.save is not None:
        write_traffic(traffic, source.save)
    notes = [note for note in (*setup.notes, without_windows(setup)) if note] if setup else []
    if unread and not is_of_template:
        notes.append(f"what is declared now is not compared, as its scaling could not be read: {unread}")
    if live is not None and live.is_bound_to_on_demand:
        notes.append(
            f"table {source.live_table!r} has vector indexes, which DynamoDB allows on on-demand tables only; none of "
            "the provisioned plans is for it until these are moved to another table"
        )
    lines, advised = verdict(recommendation, goals.rule)
    return _Found(
        traffic=traffic,
        table=own,
        goals=goals,
        prices=prices,
        recommendation=recommendation,
        lines=lines,
        advised=advised,
        writer=_Writer(language, own, recommendation.declared),
        notes=notes,
    )


def _write_files(found: _Found, html: Path | None, png: Path | None) -> None:
    """Write the trade-off as the page and as the picture that are asked for."""
    recommendation, traffic = found.recommendation, found.traffic
    if html is not None:
        said = found.lines or [f"stopped after {recommendation.tried} plans: {recommendation.best.summary}"]
        end = traffic.start + timedelta(minutes=traffic.minutes)
        said = [*said, f"{traffic.start:%a %Y-%m-%d %H:%M} to {end:%a %Y-%m-%d %H:%M} UTC; {found.prices.name}"]
        title, limit = f"The trade-off for {traffic.name}", found.goals.rule.limit_percent
        write_tradeoff(recommendation, found.advised, title, said, limit, found.writer.row, html)
    if png is not None:
        write_curve(recommendation, found.advised, f"{traffic.name}: cost of less throttling", png)


def _called(app: ListedApp, name: str, likely: str) -> ListedApp:
    """Return an app with the tables alone that people mean by a name, or if there are several by a likely one."""
    tables = tables_called(app.tables, name) if name else app.tables
    return app.only((tables_called(tables, likely) if likely else ()) or tables)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes candidates as code, for the table that was read, `None` for none."""

    language: str
    table: TableSetup | None
    declared: Candidate | None

    def code(self, candidate: Candidate) -> str | None:
        """Return the code of a candidate; there is none for what is declared already."""
        return None if candidate is self.declared else _WRITERS[self.language](candidate, self.table)

    def row(self, name: str, candidate: Candidate) -> str:
        """Return the code of a row of the trade-off; the scaler is code for the CDK in any case."""
        if name in ("", DECLARED_NOW):
            return self.code(candidate) or "nothing to change: this is declared already\n"
        return scaler_code_of(name, candidate, self.table)


def verdict(recommendation: Recommendation, rule: Rule) -> tuple[list[str], Candidate]:
    """Return lines on what to deploy, and this itself: it is marked, and its code is printed.

    The first line compares it with what is declared, or with on-demand where that is not known. The second has the
    price of the last step to the best plan; then come the notes. Of a search that was stopped there are no lines.
    """
    present, advised = recommendation.present, recommendation.advised(rule)
    if present is None or recommendation.on_demand is None or recommendation.was_stopped:
        return [], advised
    is_declared = recommendation.declared is not None
    where = f"{DECLARED_NOW}: {'' if present.plan else 'on demand, '}" if is_declared else "on demand: "
    lines = [f"{where}{figures(present)}; {change_text(recommendation, rule)}"]
    step = recommendation.last_step
    if step is not None and advised is recommendation.best:
        lines.append(
            f"the last step costs {step.usd_per_month:,.2f} USD a month and throttles {percent_text(step.percent)} % "
            f"of the units less: {step.usd_per_million:,.2f} USD for a million units that are not throttled"
        )
    notes = (*advice_notes(recommendation, rule), recommendation.remark)
    return [*lines, *(note for note in notes if note)], advised


def _print(found: _Found) -> None:
    console = open_console()
    for line in found.lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    _print_result(found, console)
    # click prints the code without wrapping or markup, so that it can be copied and piped
    say(found.writer.code(found.advised) or "", nl=False)
    _print_days_hint(found.advised, found.traffic)
    _print_unknown(found.advised, found.traffic, found.table)
    if not found.is_kept and found.goals.table_quota_units is not None:
        _print_quota_hint(found.traffic, found.goals.table_quota_units)


def _print_result(found: _Found, console: Console) -> None:
    """Print the rows of the trade-off, what throttles are worth to the scaler, and what the code below is."""
    recommendation, advised, prices = found.recommendation, found.advised, found.prices
    limit = found.goals.rule.limit_percent
    if recommendation.was_stopped:
        console.print(
            f"[yellow]![/] the search was stopped after {recommendation.tried} plans; this is the best result so far",
            highlight=False,
        )
    view = Table(box=None, pad_edge=False, header_style="dim")
    view.add_column("")
    for heading in ("$/month", "throttled", "used"):
        view.add_column(heading, justify="right", no_wrap=True)
    for name, candidate in recommendation.rows:
        utilization = candidate.utilization_percent
        summary = f"[bold]{candidate.summary}[/] ←" if candidate is advised else candidate.summary
        view.add_row(
            f"[dim]{name}: {summary}[/]" if name else summary,
            f"{candidate.cost_per_month:,.2f}",
            f"{candidate.throttled_percent:.4g} %",
            "" if utilization is None else f"{utilization:.0f} %",
        )
    console.print(view)
    console.print(f"[dim]{escape(prices.name)}[/]", highlight=False)
    _print_scaler(recommendation, limit, prices, console)
    tried = f"{recommendation.tried} plans simulated"
    if advised is recommendation.declared:
        told = f"{tried}; what is declared stays, and there is nothing to change"
    elif not advised.keeps(limit):
        told = f"[red]✗[/] {tried}; this one throttles more than {limit:g} %:\n"
    elif advised is recommendation.best:
        told = f"{tried}; the cheapest that throttles at most {limit:g} %:\n"
    else:
        told = f"{tried}; none gains enough over on-demand:\n"
    console.print(told, highlight=False)


def _throttle_prices(prices: Prices) -> dict[str, float]:
    """What the scaler spends at most, in USD, so that a million reads or writes are not throttled."""
    units, requests = prices.throughput(), ScalerSettings().throttle_price_requests
    return {"read": requests * units.on_demand_read_million, "write": requests * units.on_demand_write_million}


def _print_scaler(recommendation: Recommendation, limit: float, prices: Prices, console: Console) -> None:
    """Print what throttles are worth to the scaler, and whether it keeps the limit at a lower cost than the plan."""
    worth = _throttle_prices(prices)
    console.print(
        f"[dim]the scaler spends at most {worth['read']:,.2f} USD more than target tracking for a million reads that "
        f"are not throttled, and {worth['write']:,.2f} for a million writes[/]",
        highlight=False,
        soft_wrap=True,
    )
    within = {name: each for name, each in recommendation.scaled.items() if each.throttled_percent <= limit}
    name = min(within, key=lambda each: within[each].cost_per_month, default=None)
    if name is None or (
        recommendation.is_within_limit and within[name].cost_per_month >= recommendation.best.cost_per_month
    ):
        return
    needs = " and clients that pulse" if name.endswith("pulse") else ""
    console.print(
        f"[green]✓[/] {name} keeps the limit for {within[name].cost_per_month:,.2f} USD/month: it needs a "
        f"ThrottleAwareScaler{needs}",
        highlight=False,
        soft_wrap=True,
    )


def _print_days_hint(advised: Candidate, traffic: Traffic) -> None:
    """Print on standard error if the windows are for some days of the week only, as the traffic has no others."""
    plan = advised.plan
    if plan is None or not plan.windows or traffic.minutes >= _MINUTES_PER_WEEK:
        return
    known = {day for window in plan.windows if window.days for day in parse_days(window.days)}
    days = ", ".join(DAYS[day] for day in sorted(known))
    click.echo(
        f"the windows are on {days} because the traffic has {traffic.minutes / 1440:.1f} days; give a week or more, or "
        "add the days that you know of",
        err=True,
    )


def _print_unknown(advised: Candidate, traffic: Traffic, own: TableSetup | None) -> None:
    """Print on standard error if a table on demand is to have 1 unit of what the traffic does not know of."""
    known = {stream.dimension for stream in traffic.rates}
    for dimension in [each for each in Dimension if each not in known]:
        if own is not None and own.is_on_demand and advised.plan is not None:
            click.echo(
                f"the traffic has no {dimension}s, so {own.name} gets 1 {dimension} unit; give them too, or set "
                f"{dimension}= and initial_{dimension}_units= in the code",
                err=True,
            )


def _print_quota_hint(traffic: Traffic, table_quota: int) -> None:
    """Print on standard error if demand is above the quota per table, because then no provisioned plan can serve it."""
    busiest = max(traffic.busiest_minute(stream) for stream in traffic.rates)
    if busiest > table_quota:
        click.echo(
            f"the busiest minute requests {busiest:,.0f} units/s, above the quota of {table_quota:,} units per table; "
            "if your account's quota is higher, give it with --table-quota",
            err=True,
        )


def _document(found: _Found) -> dict[str, Any]:
    recommendation, advised, prices, writer = found.recommendation, found.advised, found.prices, found.writer
    return {
        "prices_region": prices.region,
        "prices_dated": prices.dated,
        "best": candidate_document(recommendation.best) | {"code": writer.code(recommendation.best)},
        "advised": candidate_document(advised) | {"code": writer.code(advised)},
        "is_within_limit": recommendation.is_within_limit,
        "keeps_limit": found.is_kept,
        "lines": found.lines,
        "curve": [candidate_document(candidate) for candidate in recommendation.curve],
        "scaled": {name: candidate_document(candidate) for name, candidate in recommendation.scaled.items()},
        "on_demand": None if recommendation.on_demand is None else candidate_document(recommendation.on_demand),
        "declared": None if recommendation.declared is None else candidate_document(recommendation.declared),
        "gain_usd": None if recommendation.gain is None else round(recommendation.gain, 2),
        "last_step_usd_per_million": None
        if recommendation.last_step is None
        else round(recommendation.last_step.usd_per_million, 4),
        "scaler_throttle_price_usd_per_million": _throttle_prices(prices),
        "tried": recommendation.tried,
        "was_stopped": recommendation.was_stopped,
    }
