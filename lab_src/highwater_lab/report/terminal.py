"""Prints a rehearsal in the terminal: a short summary, and remedies for throttling."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from highwater.core.throttles import ThrottleCause
from highwater_lab.rehearse import Outcome, Rehearsal
from highwater_lab.rehearse.rehearsal import WITHOUT_SHARDS
from highwater_lab.services.billing import Bill
from highwater_lab.simulation import QueueRun, Run, TargetRun
from highwater_lab.simulation.remedies import remedies
from highwater_lab.simulation.setup import RETENTION_SECONDS


def span_text(minutes: int) -> str:
    """Return a length of time: in days to a tenth, below one day in minutes."""
    return f"{minutes / 1440:.1f} days" if minutes >= 1440 else f"{minutes} minutes"


def print_rehearsal(rehearsal: Rehearsal, console: Console) -> None:
    """Print the figures of the policy `declared` and of the compared policies, then the remedies for throttling."""
    traffic, run = rehearsal.traffic, rehearsal.declared
    console.print(
        f"[bold]{escape(rehearsal.setup.name)}[/] under [bold]{escape(traffic.name)}[/]: {span_text(traffic.minutes)} "
        f"from {traffic.start:%a %Y-%m-%d %H:%M} UTC, {traffic.mean_units_per_second():,.0f} units/s on average",
        highlight=False,
    )
    if traffic.is_coarse:
        console.print(
            f"[yellow]![/] the traffic has bins of {traffic.source_bin_seconds // 60} minutes, which hide shorter "
            "bursts: real throttling is higher than shown here",
            highlight=False,
        )
    for note in rehearsal.setup.notes:
        console.print(f"[yellow]![/] {escape(note)}", highlight=False)
    console.print(_comparison(rehearsal))
    for line in work_lines(run):
        console.print(line, highlight=False, markup=False)
    for line in shard_lines(rehearsal):
        console.print(line, highlight=False, markup=False)
    console.print(f"[dim]{escape(rehearsal.prices.name)}{config_text(run.bill)}[/]", highlight=False)
    _print_advice(run, console)


def config_text(costs: Bill | Outcome, before: Outcome | None = None) -> str:
    """Return the end of a line about prices: what AWS Config costs, and whether that is included; empty for nothing.

    *before* is the old app's, if it is compared.
    """
    if not costs.config_items_per_month and (before is None or not before.config_items_per_month):
        return ""
    items = f"at most {costs.config_items_per_month:,.0f} items a month, {costs.config_per_month:,.2f} USD"
    if before is not None:
        items += f" (before: {before.config_items_per_month:,.0f} items, {before.config_per_month:,.2f} USD)"
    if costs.has_config_recorder:
        return f": {items}"
    return f"; without AWS Config: {items}, if it records the account; --config-recorder adds them"


def _comparison(rehearsal: Rehearsal) -> Table:
    view = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    # the name gives way in a narrow terminal, not the figures
    view.add_column("", overflow="fold")
    for heading in figures(rehearsal.declared):
        view.add_column(heading, justify="right", no_wrap=True)
    for run in rehearsal.runs:
        name = f"[bold]{run.policy}[/]" if run is rehearsal.declared else run.policy
        view.add_row(name, *figures(run).values())
    return view


def figures(run: Run) -> dict[str, str]:
    """Return the figures of a run for a table, by their headings."""
    used = run.utilization_percent
    return {
        "throttled": share_text(run),
        "minutes": f"{len(run.throttled_minutes()):,}",
        "$/month": f"{run.bill.per_month:,.2f}",
        "once": f"{run.bill.warm_up:,.2f}" if run.bill.warm_up else "",
        "used": "" if used is None else f"{used:.0f} %",
        "decreases": f"{run.decreases:,}",
        "refused": f"{run.refused_decreases:,}",
    }


def work_lines(run: Run) -> list[str]:
    """Return lines on the queue, and one for each job: its duration, and what was throttled meanwhile."""
    lines = [] if run.queue is None else list(_queue_lines(run, run.queue))
    for each in run.jobs:
        rate = (
            "" if each.full_at is None else f", at its full rate after {timedelta(seconds=each.full_at - each.start)}"
        )
        took = (
            f"not done, {each.units:,.0f} of {each.job.units:,} units{rate}"
            if each.end is None
            else f"done in {timedelta(seconds=each.end - each.start)}{rate}"
        )
        if each.job.workers > 1:
            # all workers have one second's rate as burst beside the rate: docs/fleet-budget.md, The bound
            bound = 2 * (each.job.goal.milliunits or 0) // 1_000
            took += f", at most {each.most_units:,} units in a second"
            took += f", where the bound is {bound:,}" if bound else ""
        own = f"{each.throttled_units:,.0f} of its own units throttled" if each.throttled_units else "never throttled"
        hurt = f"{each.others_throttled_units:,.0f} units of other traffic throttled meanwhile"
        lines.append(f"job {each.job.name}: {took}; {own}, {hurt if each.others_throttled_units else 'nobody hurt'}")
    return lines


def shard_lines(rehearsal: Rehearsal) -> list[str]:
    """Return a line that compares throttling of key ranges with and without shards; none without shards."""
    return [
        f"shards: {_by_key_range(rehearsal.declared):,.0f} units throttled by the limit of a partition, "
        f"{_by_key_range(run):,.0f} without shards"
        for run in rehearsal.runs
        if run.policy == WITHOUT_SHARDS
    ]


def _by_key_range(run: Run) -> float:
    return sum(target.throttled_by_cause().get(ThrottleCause.KEY_RANGE, 0.0) for target in run.targets)


def _queue_lines(run: Run, queue: QueueRun) -> Iterator[str]:
    def moment(second: int) -> str:
        return f"{run.start + timedelta(seconds=second):%a %Y-%m-%d %H:%M} UTC"

    if not queue.most_units:
        yield f"queue at {queue.buffer.units:,} units/s: nothing ever waits"
    else:
        end = (
            f"empty from {moment(queue.empty_at)} on"
            if queue.empty_at is not None
            else f"{queue.left_units:,} wait at the end"
        )
        throttled = f"; {queue.throttled_units:,.0f} units throttled, which came back" if queue.throttled_units else ""
        yield (
            f"queue at {queue.buffer.units:,} units/s: at most {queue.most_units:,} units wait "
            f"({moment(queue.most_at)}), the oldest for {timedelta(seconds=queue.oldest_seconds)} "
            f"({moment(queue.oldest_at)}), {end}{throttled}"
        )
    if queue.oldest_seconds > RETENTION_SECONDS:
        yield "writes are lost: SQS deletes what waits for longer than 14 days; raise the rate of the queue"
    elif queue.is_late:
        drain = timedelta(seconds=queue.buffer.drain_seconds)
        yield f"writes wait for the drain time of {drain} or longer; raise the rate of the queue, or send less"


def share_text(run: Run | TargetRun) -> str:
    """Return the throttled share of requested units as text: in percent, or per million if below 0.01 %."""
    per_million = run.throttled_per_million
    if per_million == 0:
        return "0"
    return f"{per_million / 10_000:.2f} %" if per_million >= 100 else f"{per_million:.1f} of 1M"


def advice(run: Run) -> list[str]:
    """Return the worst minute of a run, and each cause of its throttling with its remedy; nothing if none throttles."""
    worst = run.worst_minute()
    if worst is None:
        return []
    at = run.start + timedelta(minutes=worst[0])
    lines = [f"worst minute: {at:%a %Y-%m-%d %H:%M} UTC, {worst[1]:,.0f} units throttled ({worst[1] / 60:,.0f}/s)"]
    for remedy in remedies(run):
        share = 100 * remedy.units / run.throttled_units
        part = f"{share:.0f} %" if share >= 1 else "under 1 %"
        lines.append(f"cause: {remedy.cause}, {part} of the throttled units; {remedy.text}")
    return lines


def _print_advice(run: Run, console: Console) -> None:
    lines = advice(run)
    if not lines:
        console.print("[green]✓[/] nothing is throttled", highlight=False)
    for line in lines:
        console.print(line, highlight=False, markup=False)
