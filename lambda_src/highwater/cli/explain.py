"""`highwater explain` and `highwater status`: the present capacity of managed tables and its reasons, read only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from highwater.aws.logs import client as logs_client
from highwater.aws.observe import Kept
from highwater.aws.region import AwsRegion
from highwater.aws.tables import TableBusyError, TableNotFoundError, TableRefusedError
from highwater.cli.listing import listed
from highwater.cli.options import account_options, as_json_option, aws_errors_in_a_line
from highwater.cli.situation import (
    Coordinators,
    MissingTable,
    Seen,
    Situation,
    find_plans,
    read_situations,
)
from highwater.core.limits import FREE_DECREASES_PER_DAY
from highwater.core.plan.windows import is_open
from highwater.core.plan.zones import find_zone
from highwater.core.scaler import ScaledPlan
from highwater.terminal.console import Hanging, open_console

_WATCH = click.option("--watch", is_flag=True, help="Refresh the output every ten seconds until interrupted.")
_EVERY_SECONDS = 10
_MINUTE = timedelta(minutes=1)
_FINDING = 1


@click.command(short_help="Why a table has the capacity it has.")
@click.argument("table")
@_WATCH
@account_options
@as_json_option
def explain(table: str, watch: bool, region: str | None, as_json: bool) -> None:
    """Explain the present capacity of TABLE: plan, open windows, relief, last decisions, decreases used, next change.

    Reads the same data as a ThrottleAwareScaler and makes the same decisions, but changes nothing.
    """
    _show(lambda: _seen(table, region, decides=True), _explained, watch=watch, as_json=as_json)


@click.command(short_help="All managed tables, one line per target.")
@_WATCH
@account_options
@as_json_option
def status(watch: bool, region: str | None, as_json: bool) -> None:
    """Show every table that a scaler manages, a line each, and then every target: capacity and how much of it is used,
    floor, relief, pauses, throttles of the last hour, decreases used, next change, open windows and boosts.

    Exit status: 1 if a table with a plan does not exist or cannot be described, which is shown with the others.
    """
    _show(lambda: _seen(None, region, decides=False), listed, watch=watch, as_json=as_json)


def _show(
    read: Callable[[], list[Seen]],
    render: Callable[[Sequence[Seen]], RenderableType],
    *,
    watch: bool,
    as_json: bool,
) -> None:
    console = open_console(is_cut_when_piped=False)
    if as_json or not watch or not console.is_terminal:
        seen = read()
        if as_json:
            click.echo(json.dumps([each.document() for each in seen], indent=1))
        else:
            console.print(render(seen))
        if any(isinstance(each, MissingTable) for each in seen):
            raise click.exceptions.Exit(_FINDING)
        return
    with Live(render(read()), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(_EVERY_SECONDS)
            live.update(render(read()), refresh=True)


@aws_errors_in_a_line()
def _seen(table: str | None, region: str | None, *, decides: bool) -> list[Seen]:
    region_of = cache(AwsRegion)
    plans = find_plans(table, region_of(region))
    logs = logs_client(region) if decides else None
    coordinators = Coordinators(region_of(region))
    return [
        each
        for scaled in plans
        for each in _of_table(scaled, region_of(scaled.region or region), logs, coordinators.of(scaled))
    ]


def _of_table(scaled: ScaledPlan, region: AwsRegion, logs: Any | None, kept: Kept | None) -> list[Seen]:
    """Return what is known of one table; that it cannot be described is one of the things to show."""
    name = region.dynamodb.meta.region_name
    try:
        return [replace(each, region=name) for each in read_situations(scaled, region, logs, kept)]
    except TableNotFoundError:
        return [MissingTable(scaled.label, name, scaled.scaler)]
    except (TableBusyError, TableRefusedError) as failed:
        return [MissingTable(scaled.label, name, scaled.scaler, str(failed))]


def _explained(seen: Sequence[Seen]) -> RenderableType:
    parts: list[RenderableType] = []
    for each in seen:
        if isinstance(each, Situation):
            parts.append(Text(f"{each.table}, {each.target.label}", style="bold"))
            parts.extend(Hanging(f"  {line}") for line in explanation(each))
        else:
            parts.append(Hanging(each.line()))
    return Group(*parts)


def explanation(situation: Situation) -> list[str]:
    """Return why a target's capacity is what it is, and what happens to it next, a sentence each."""
    planned, registered, decision = situation.planned, situation.registered, situation.decision
    names = ", ".join(each.name for each in situation.open_windows)
    windows = f", by window {names}" if names else ""
    lines = [
        f"provisioned: {situation.provisioned:,} units/s at {situation.at:%Y-%m-%d %H:%M:%S} UTC",
        *_use(situation),
        f"the plan asks for a floor of {planned.min:,} and a ceiling of {planned.max:,}{windows}",
    ]
    if situation.mode.moves_floors:
        if registered is None:
            lines.append("no scalable target is registered: deploy again")
        else:
            relief = f", {situation.relief:,} of it relief" if situation.relief else ""
            boosted = f", {situation.boosted:,} of it boosts" if situation.boosted else ""
            lines.append(f"the live floor is {registered.min:,}{relief}{boosted}; the live ceiling {registered.max:,}")
    if situation.failure:
        lines.append(situation.failure)
    if situation.mark is not None:
        lines.append(situation.mark.line())
    for lease in situation.boosts:
        since = "live" if lease.is_live(situation.at) else f"from {lease.start:%Y-%m-%d %H:%M:%S}"
        why = f": {lease.reason}" if lease.reason else ""
        total = " in total" if lease.is_total else ""
        until = f"until {lease.ends:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"boost {lease.id}, {since} {until}: {lease.units:,} units/s{total}, by {lease.owner}{why}")
    if situation.is_paused:
        lines.append("paused: scaling is suspended; resume it with: highwater resume " + situation.table)
    if situation.skip is not None and not situation.is_paused:
        lines.append(f"the scaler does not change this target: {situation.skip}")
    lines.extend(f"not read: {note}" for note in situation.notes)
    if decision is not None:
        lines.append(f"demand asks for {decision.wanted:,}: {decision.reason}")
        lines.extend(f"  {limit.before:,} becomes {limit.after:,}: {limit.sentence}" for limit in decision.limits)
        lines.append(
            f"the scaler's next run keeps {decision.granted:,}"
            if not decision.changes
            else f"the scaler's next run sets {decision.granted:,} instead of {decision.current:,}"
        )
        if decision.lowered_to is not None:
            lines.append(
                f"the scaler's next run lowers the capacity from {situation.provisioned:,} to {decision.lowered_to:,}, "
                "before the next hour is billed"
            )
        if decision.has_hot_key:
            lines.append("a single key is throttled: more capacity does not help, spread the key or cache it")
    lines.extend(
        f"decided at {logged.at:%Y-%m-%d %H:%M:%S} UTC: {logged.current:,} to {logged.granted:,}, {logged.why}"
        if logged.granted != logged.current
        else f"decided at {logged.at:%Y-%m-%d %H:%M:%S} UTC: kept at {logged.current:,}, {logged.why}"
        for logged in situation.last_decisions
    )
    if situation.log_refused is not None:
        lines.append(f"the last decisions could not be read from CloudWatch Logs: {situation.log_refused}")
    free = max(0, FREE_DECREASES_PER_DAY - situation.decreases_used)
    lines.append(f"decreases today: {situation.decreases_used}, {free} left at any time, then one an hour")
    lines.append(f"next change by the plan: {_next(situation) or 'none within eight days'}")
    return lines


def _use(situation: Situation) -> Iterator[str]:
    if situation.consumed is None or situation.throttled is None:
        return
    percent = "" if situation.used_percent is None else f", {situation.used_percent:,} % of it"
    throttled = f"{situation.throttled:,}" if situation.throttled else "no"
    requests = "request was" if situation.throttled == 1 else "requests were"
    yield f"used: {situation.consumed:,} units/s{percent}; {throttled} {requests} throttled in the last hour"


def _next(situation: Situation) -> str:
    if situation.next_change is None:
        return ""
    at, bounds = situation.next_change
    windows = [each.window for each in situation.target.windows]
    # the zones of the windows that open or close then
    changing = [window for window in windows if is_open(window, at) != is_open(window, at - _MINUTE)]
    zones = [zone for name in dict.fromkeys(window.timezone for window in changing) if (zone := find_zone(name))]
    local = ", ".join(f"{at.astimezone(zone):%H:%M} in {zone.key}" for zone in zones if at.astimezone(zone).utcoffset())
    shown = f" ({local})" if local else ""
    return f"{at:%a %d %b %H:%M} UTC{shown}: floor {bounds.min:,}, ceiling {bounds.max:,}"
