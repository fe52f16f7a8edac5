"""`highwater explain` and `highwater status`: the present capacity of managed tables and its reasons, read only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache

import click
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from highwater.aws.logs import client as logs_client
from highwater.aws.region import AwsRegion
from highwater.aws.tables import TableBusyError, TableNotFoundError, TableRefusedError
from highwater.cli.options import NO_REGION, account_options, as_json_option
from highwater.cli.situation import Coordinators, Situation, find_plans, read_situations
from highwater.cli.terminal import open_console, say
from highwater.core.limits import FREE_DECREASES_PER_DAY
from highwater.core.plan.windows import is_open
from highwater.core.plan.zones import find_zone

_WATCH = click.option("--watch", is_flag=True, help="Refresh the output every ten seconds until interrupted.")
_EVERY_SECONDS = 10
_MINUTE = timedelta(minutes=1)
# wider than any line
_UNBOUNDED = 10_000
_SHORTEST_NAME = 6


@click.command(short_help="Why a table has the capacity it has.")
@click.argument("table")
@_WATCH
@account_options
@as_json_option
def explain(table: str, watch: bool, region: str | None, as_json: bool) -> None:
    """Explain the present capacity of TABLE: plan, open windows, relief, last decisions, decreases used, next change.

    Reads the same data as a ThrottleAwareScaler and makes the same decisions, but changes nothing.
    """
    _show(lambda: _situations(table, region, decides=True), _explained, watch=watch, as_json=as_json)


@click.command(short_help="All managed tables, one line per target.")
@_WATCH
@account_options
@as_json_option
def status(watch: bool, region: str | None, as_json: bool) -> None:
    """List every target that a scaler manages: capacity, floor, relief, pauses, decreases used, next change."""
    _show(lambda: _situations(None, region, decides=False), _listed, watch=watch, as_json=as_json)


def _show(
    read: Callable[[], list[Situation]],
    render: Callable[[Sequence[Situation]], RenderableType],
    *,
    watch: bool,
    as_json: bool,
) -> None:
    if as_json:
        click.echo(json.dumps([situation.document() for situation in _read_or_fail(read)], indent=1))
        return
    console = open_console()
    if not watch or not console.is_terminal:
        console.print(render(_read_or_fail(read)))
        return
    with Live(render(_read_or_fail(read)), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(_EVERY_SECONDS)
            live.update(render(_read_or_fail(read)), refresh=True)


def _read_or_fail(read: Callable[[], list[Situation]]) -> list[Situation]:
    try:
        return read()
    except TableNotFoundError as not_found:
        raise click.ClickException(f"a table with a plan does not exist: {not_found}") from not_found
    except NoRegionError:
        raise click.ClickException(NO_REGION) from None
    except (TableBusyError, TableRefusedError, ClientError, BotoCoreError) as failed:
        raise click.ClickException(f"a request to AWS failed: {failed}") from failed


def _situations(table: str | None, region: str | None, *, decides: bool) -> list[Situation]:
    region_of = cache(AwsRegion)
    plans, unreadable = find_plans(table, region_of(region))
    for line in unreadable:
        say(f"highwater: a plan could not be read: {line}", err=True)
    if table is not None and not plans:
        raise click.ClickException(
            f"no scaler manages a table {table!r} in this region; list the managed tables with: highwater status, or "
            "give --region"
        )
    logs = logs_client(region) if decides else None
    coordinators = Coordinators(region_of(region))
    return [
        situation
        for scaled in plans
        for situation in read_situations(scaled, region_of(scaled.region or region), logs, coordinators.of(scaled))
    ]


def _listed(situations: Sequence[Situation]) -> RenderableType:
    if not situations:
        return Text("no scaler manages a table in this region")
    by_scaler: dict[str, list[Situation]] = {}
    for situation in situations:
        by_scaler.setdefault(situation.scaler, []).append(situation)
    return Group(*(_Listing(scaler, by_scaler[scaler]) for scaler in sorted(by_scaler)))


class _Listing:
    """The targets of one scaler, each on one line; on a narrow terminal, names are cut and numbers are not."""

    def __init__(self, scaler: str, situations: Sequence[Situation]) -> None:
        self._title = f"Scaler {scaler}" if scaler else "Tables chosen by tags"
        self._rows = [_row(situation) for situation in situations]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = [max(len(row[position]) for row in self._rows) for position in range(2)]
        natural = console.measure(self._table(longest), options=options.update(max_width=_UNBOUNDED)).maximum
        excess = natural - options.max_width
        for position in range(2):
            cut = max(0, min(excess, longest[position] - _SHORTEST_NAME))
            longest[position] -= cut
            excess -= cut
        yield self._table(longest)

    def _table(self, longest: list[int]) -> Table:
        view = Table(title=self._title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for name, width in zip(("table", "target"), longest, strict=True):
            view.add_column(name, no_wrap=True, overflow="ellipsis", max_width=max(len(name), width))
        for name in ("now", "floor", "relief", "ceiling", "lowered", "next, UTC"):
            view.add_column(name, no_wrap=True, justify="right")
        for row in self._rows:
            view.add_row(*row)
        return view


def _row(situation: Situation) -> tuple[str, ...]:
    bounds = situation.registered or situation.planned
    return (
        situation.table,
        situation.target.label,
        f"{situation.provisioned:,}",
        f"{bounds.min:,}",
        "paused" if situation.is_paused else f"{situation.relief:,}" if situation.relief else "",
        f"{bounds.max:,}",
        str(situation.decreases_used),
        "" if situation.next_change is None else f"{situation.next_change[0]:%a %H:%M}",
    )


def _explained(situations: Sequence[Situation]) -> RenderableType:
    parts: list[RenderableType] = []
    for situation in situations:
        parts.append(Text(f"{situation.table}, {situation.target.label}", style="bold"))
        parts.extend(Text(f"  {line}") for line in _lines(situation))
    return Group(*parts)


def _lines(situation: Situation) -> list[str]:
    planned, registered, decision = situation.planned, situation.registered, situation.decision
    windows = f", by window {', '.join(situation.open_windows)}" if situation.open_windows else ""
    lines = [
        f"provisioned: {situation.provisioned:,} units/s at {situation.at:%Y-%m-%d %H:%M:%S} UTC",
        f"the plan asks for a floor of {planned.min:,} and a ceiling of {planned.max:,}{windows}",
    ]
    if situation.mode.moves_floors:
        if registered is None:
            lines.append("no scalable target is registered: deploy again")
        else:
            relief = f", {situation.relief:,} of it relief" if situation.relief else ""
            boosted = f", {situation.boosted:,} of it boosts" if situation.boosted else ""
            lines.append(f"the live floor is {registered.min:,}{relief}{boosted}; the live ceiling {registered.max:,}")
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
                f"and lowers the capacity of {situation.provisioned:,} to {decision.lowered_to:,} at the hour's end"
            )
        if decision.has_hot_key:
            lines.append("a single key is throttled: more capacity does not help, spread the key or cache it")
    lines.extend(
        f"decided at {logged.at:%Y-%m-%d %H:%M:%S} UTC: {logged.current:,} to {logged.granted:,}, {logged.reason}"
        if logged.granted != logged.current
        else f"decided at {logged.at:%Y-%m-%d %H:%M:%S} UTC: kept at {logged.current:,}, {logged.reason}"
        for logged in situation.last_decisions
    )
    if situation.log_refused is not None:
        lines.append(f"the last decisions could not be read from CloudWatch Logs: {situation.log_refused}")
    free = max(0, FREE_DECREASES_PER_DAY - situation.decreases_used)
    lines.append(f"decreases today: {situation.decreases_used}, {free} left at any time, then one an hour")
    lines.append(f"next change by the plan: {_next(situation) or 'none within eight days'}")
    return lines


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
