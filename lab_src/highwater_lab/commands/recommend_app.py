"""What `highwater recommend` prints of the tables of an app: a line for each as it is found, sums, code, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from highwater.core import Dimension
from highwater.terminal.console import open_console, say
from highwater_lab.commands.matched_traffic import AppTraffic
from highwater_lab.recommend import Candidate
from highwater_lab.rehearse import PlanGoals, PlanSum, TablePlan, advise_commitments, plan_app, sum_plans
from highwater_lab.report.app import counted, left_over_lines, share, usd
from highwater_lab.report.commitments import commitment_document, commitment_lines
from highwater_lab.services.commitments import CommitmentAdvice
from highwater_lab.simulation import TableSetup
from highwater_lab.template import ListedApp


def recommend_for_app(
    app: ListedApp,
    traffic_of: AppTraffic,
    goals: PlanGoals,
    *,
    least_gain: float,
    code_of: Callable[[Candidate, TableSetup | None], str] | None,
    as_json: bool,
) -> bool:
    """Print what is best for each table of an app; return whether every known table gets a plan within the limit.

    Ctrl-C ends the search, and the sums are those of the tables until then.

    Args:
        app: The app, with at least one table.
        traffic_of: Returns a table's traffic, `None` if it is not known.
        goals: What the plans have to keep.
        least_gain: The USD a month for which a change is worth it.
        code_of: Writes a plan as code; `None` for no code.
        as_json: Whether to print one JSON document instead.
    """
    console = open_console()
    limit = goals.max_throttled_percent
    tables: list[TablePlan] = []
    try:
        for table in plan_app(app, traffic_of, goals):
            if table.found is not None and table.found.was_stopped:
                raise KeyboardInterrupt
            tables.append(table)
            if not as_json:
                _print(table, limit, least_gain, console)
    except KeyboardInterrupt:
        say(f"stopped after {len(tables)} of {counted(len(app.tables), 'table')}", err=True)
    remarks = [f"{remark.text}." for remark in app.remarks]
    commitments = advise_commitments(tables, goals, least_gain)
    if as_json:
        document = _document(tables, remarks, limit, least_gain, commitments)
        click.echo(json.dumps(document | {"traffic_without_table": list(traffic_of.left_over)}))
        return _is_kept(tables, limit, least_gain)
    console.print(f"[bold]{escape(_sum_line(tables, limit, least_gain))}[/]", highlight=False, soft_wrap=True)
    if any(goals.conditions.commitments.reserved_units(dimension) for dimension in Dimension):
        line = "reserved capacity is shared by the tables, and not in these costs; highwater rehearse subtracts it"
        console.print(f"[yellow]![/] {line}", highlight=False, soft_wrap=True)
    for remark in (*remarks, *(f"{line}." for line in left_over_lines(traffic_of.left_over))):
        console.print(f"[yellow]![/] {escape(remark)}", highlight=False, soft_wrap=True)
    for line in commitment_lines(commitments, "these plans"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for table in tables if code_of is not None else ():
        advised = _changed(table, limit, least_gain)
        if advised is not None and code_of is not None:
            say(f"\n# {table.name}\n{code_of(advised, table.setup)}", nl=False)
    return _is_kept(tables, limit, least_gain)


def _print(table: TablePlan, limit: float, least_gain: float, console: Console) -> None:
    mark = "[yellow]![/] " if table.unknown else ""
    console.print(f"{mark}{escape(plan_sentence(table, limit, least_gain))}", highlight=False, soft_wrap=True)
    for note in table.notes:
        console.print(f"  [yellow]![/] {escape(note)}", highlight=False, soft_wrap=True)


def plan_sentence(table: TablePlan, limit: float, least_gain: float) -> str:
    """Return what is declared of a table, what is best, what that saves and throttles, and on-demand, in a line."""
    found = table.found
    if found is None or found.declared is None or found.on_demand is None:
        return f"{table.name}: unknown: {table.unknown}."
    now, best, advised = found.declared, found.best, found.advised(limit, least_gain)
    mode = "on demand now" if now.plan is None else "now"
    idle = "idle, " if table.is_idle else ""
    text = f"{table.name}: {idle}{mode} {_figures(now)}"
    gain = now.cost_per_month - best.cost_per_month
    shown = [now]
    if advised is now:
        text += "; stays"
        if found.is_within_limit and gain > 0:
            text += f", as the best costs {usd(gain)} less ({best.summary})"
            shown.append(best)
    else:
        shown.append(best)
        change = f"{usd(abs(gain))} {'less' if gain >= 0 else 'more'}"
        kept = "" if found.is_within_limit else f"no plan keeps {limit:g} %, the least throttled: "
        text += f"; {kept}{best.summary}: {_figures(best)}, {change}"
    if all(each.plan is not None for each in shown):
        throttled = found.on_demand.throttled_percent
        excess = "" if throttled <= limit else f", {share(throttled)} % throttled"
        text += f"; on demand {usd(found.on_demand.cost_per_month)}{excess}"
    return f"{text}."


def _figures(of: Candidate | PlanSum) -> str:
    amount = of.cost_per_month if isinstance(of, Candidate) else of.usd
    return f"{usd(amount)} USD a month, {share(of.throttled_percent)} % throttled"


def _changed(table: TablePlan, limit: float, least_gain: float) -> Candidate | None:
    """Return what to deploy in place of what is declared; `None` if nothing is to change, or nothing is known."""
    if table.found is None:
        return None
    advised = table.found.advised(limit, least_gain)
    return None if advised is table.found.declared else advised


def _is_kept(tables: Iterable[TablePlan], limit: float, least_gain: float) -> bool:
    """Whether what is advised keeps the limit, for every table that is known."""
    known = [each.found for each in tables if each.found is not None]
    return all(found.is_within_limit or found.advised(limit, least_gain) is found.declared for found in known)


def _sum_line(tables: list[TablePlan], limit: float, least_gain: float) -> str:
    sums = sum_plans(tables, limit, least_gain)
    known = sum(each.found is not None for each in tables)
    changes = sum(_changed(each, limit, least_gain) is not None for each in tables)
    gain = sums.now.usd - sums.advised.usd
    text = (
        f"{counted(known, 'table')}, {changes} to change: now {_figures(sums.now)}; then {_figures(sums.advised)}, "
        f"{usd(abs(gain))} {'less' if gain >= 0 else 'more'}; all on demand {usd(sums.on_demand.usd)}."
    )
    left = len(tables) - known
    return text + (f" {left} more {'is' if left == 1 else 'are'} unknown, and not in these sums." if left else "")


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON-ready values."""
    return {
        "summary": candidate.summary,
        "plan": None if candidate.plan is None else candidate.plan.to_document(),
        "cost_per_month_usd": round(candidate.cost_per_month, 2),
        "throttled_percent": candidate.throttled_percent,
        "utilization_percent": candidate.utilization_percent,
    }


def _document(
    tables: list[TablePlan], remarks: list[str], limit: float, least_gain: float, commitments: CommitmentAdvice
) -> dict[str, Any]:
    sums = sum_plans(tables, limit, least_gain)
    return {
        "tables": [_table_document(each, limit, least_gain) for each in sorted(tables, key=lambda each: each.name)],
        "sums": {
            name: {"cost_per_month_usd": round(each.usd, 2), "throttled_percent": each.throttled_percent}
            for name, each in (("now", sums.now), ("advised", sums.advised), ("on_demand", sums.on_demand))
        },
        "commitments": commitment_document(commitments),
        "not_read": remarks,
    }


def _table_document(table: TablePlan, limit: float, least_gain: float) -> dict[str, Any]:
    found = table.found
    members: dict[str, Any] = {
        "table": table.name,
        "stage": table.stage or None,
        "unknown": table.unknown or None,
        "is_idle": table.is_idle,
        "notes": list(table.notes),
    }
    if found is None:
        return members
    chosen = {
        "declared": found.declared,
        "best": found.best,
        "advised": found.advised(limit, least_gain),
        "on_demand": found.on_demand,
    }
    return members | {
        "is_within_limit": found.is_within_limit,
        "is_to_change": _changed(table, limit, least_gain) is not None,
        **{name: None if each is None else candidate_document(each) for name, each in chosen.items()},
    }
