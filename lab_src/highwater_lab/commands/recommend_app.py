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
from highwater_lab.recommend import Candidate, Rule
from highwater_lab.rehearse import PlanGoals, PlanSum, TablePlan, advise_commitments, plan_app, sum_plans
from highwater_lab.report.advice import advice_notes, change_text, figures
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
    code_of: Callable[[Candidate, TableSetup | None], str] | None,
    as_json: bool,
) -> bool:
    """Print what is best for each table of an app; return whether every known table gets a plan within the limit.

    Ctrl-C ends the search, and the sums are those of the tables until then.

    Args:
        app: The app, with at least one table.
        traffic_of: Returns a table's traffic, `None` if it is not known.
        goals: What the plans have to keep.
        code_of: Writes a plan as code; `None` for no code.
        as_json: Whether to print one JSON document instead.
    """
    console = open_console()
    rule = goals.rule
    tables: list[TablePlan] = []
    try:
        for table in plan_app(app, traffic_of, goals):
            if table.found is not None and table.found.was_stopped:
                raise KeyboardInterrupt
            tables.append(table)
            if not as_json:
                _print(table, rule, console)
    except KeyboardInterrupt:
        say(f"stopped after {len(tables)} of {counted(len(app.tables), 'table')}", err=True)
    remarks = [f"{remark.text}." for remark in app.remarks]
    # tables with traffic of the same days have one remark
    remarks += dict.fromkeys(f"{each.found.remark}." for each in tables if each.found is not None and each.found.remark)
    commitments = advise_commitments(tables, goals)
    if as_json:
        document = _document(tables, remarks, rule, commitments)
        click.echo(json.dumps(document | {"traffic_without_table": list(traffic_of.left_over)}))
        return _is_kept(tables, rule)
    console.print(f"[bold]{escape(_sum_line(tables, rule))}[/]", highlight=False, soft_wrap=True)
    if any(goals.conditions.commitments.reserved_units(dimension) for dimension in Dimension):
        line = "reserved capacity is shared by the tables, and not in these costs; highwater rehearse subtracts it"
        console.print(f"[yellow]![/] {line}", highlight=False, soft_wrap=True)
    for remark in (*remarks, *(f"{line}." for line in left_over_lines(traffic_of.left_over))):
        console.print(f"[yellow]![/] {escape(remark)}", highlight=False, soft_wrap=True)
    for line in commitment_lines(commitments, "these plans"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for table in tables if code_of is not None else ():
        advised = _changed(table, rule)
        if advised is not None and code_of is not None:
            say(f"\n# {table.name}\n{code_of(advised, table.setup)}", nl=False)
    return _is_kept(tables, rule)


def _print(table: TablePlan, rule: Rule, console: Console) -> None:
    mark = "[yellow]![/] " if table.unknown else ""
    console.print(f"{mark}{escape(plan_sentence(table, rule))}", highlight=False, soft_wrap=True)
    for note in (*table.notes, *(() if table.found is None else advice_notes(table.found, rule))):
        console.print(f"  [yellow]![/] {escape(note)}", highlight=False, soft_wrap=True)


def plan_sentence(table: TablePlan, rule: Rule) -> str:
    """Return a table's line: what is declared, what is advised, what that saves or adds and why, and on-demand."""
    found = table.found
    if found is None or found.declared is None or found.on_demand is None:
        return f"{table.name}: unknown: {table.unknown}."
    now = found.declared
    mode = "on demand now" if now.plan is None else "now"
    idle = "idle, " if table.is_idle else ""
    text = f"{table.name}: {idle}{mode} {figures(now)}; {change_text(found, rule)}"
    if not found.unknown and "on-demand" not in text and now.plan is not None:
        throttled = found.on_demand.throttled_percent
        excess = "" if throttled <= rule.limit_percent else f", {share(throttled)} % throttled"
        text += f"; on demand {usd(found.on_demand.cost_per_month)}{excess}"
    return f"{text}."


def _sum_figures(of: PlanSum) -> str:
    return f"{usd(of.usd)} USD a month, {share(of.throttled_percent)} % throttled"


def _changed(table: TablePlan, rule: Rule) -> Candidate | None:
    """Return what to deploy in place of what is declared; `None` if nothing is to change, or nothing is known."""
    if table.found is None:
        return None
    advised = table.found.advised(rule)
    return None if advised is table.found.declared else advised


def _is_kept(tables: Iterable[TablePlan], rule: Rule) -> bool:
    """Whether the advised plan keeps the limit, for every table that is known."""
    return all(each.found.advised(rule).keeps(rule.limit_percent) for each in tables if each.found is not None)


def _sum_line(tables: list[TablePlan], rule: Rule) -> str:
    sums = sum_plans(tables, rule)
    known = sum(each.found is not None for each in tables)
    changes = sum(_changed(each, rule) is not None for each in tables)
    parts = [(sums.saved_usd, "saved"), (sums.added_usd, "added")]
    changed = " and ".join(f"{usd(amount)} {word}" for amount, word in parts if amount >= 0.005) or "nothing saved"
    text = (
        f"{counted(known, 'table')}, {changes} to change: now {_sum_figures(sums.now)}; then "
        f"{_sum_figures(sums.advised)}, {changed}; all on demand {usd(sums.on_demand.usd)}"
    )
    if sums.left_out:
        text += f", without {counted(sums.left_out, 'table')} of which the traffic lacks reads or writes"
    left = len(tables) - known
    return f"{text}." + (f" {left} more {'is' if left == 1 else 'are'} unknown, and not in these sums." if left else "")


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON-ready values."""
    return {
        "summary": candidate.summary,
        "plan": None if candidate.plan is None else candidate.plan.to_document(),
        "cost_per_month_usd": round(candidate.cost_per_month, 2),
        "throttled_percent": candidate.throttled_percent,
        "utilization_percent": candidate.utilization_percent,
        "throttled_percent_chosen": None if candidate.parts is None else candidate.parts[0],
        "throttled_percent_judged": None if candidate.parts is None else candidate.parts[1],
        "once_usd": round(candidate.once_usd, 2),
    }


def _document(tables: list[TablePlan], remarks: list[str], rule: Rule, commitments: CommitmentAdvice) -> dict[str, Any]:
    sums = sum_plans(tables, rule)
    return {
        "tables": [_table_document(each, rule) for each in sorted(tables, key=lambda each: each.name)],
        "saved_usd": round(sums.saved_usd, 2),
        "added_usd": round(sums.added_usd, 2),
        "sums": {
            name: {"cost_per_month_usd": round(each.usd, 2), "throttled_percent": each.throttled_percent}
            for name, each in (("now", sums.now), ("advised", sums.advised), ("on_demand", sums.on_demand))
        },
        "commitments": commitment_document(commitments),
        "not_read": remarks,
    }


def _table_document(table: TablePlan, rule: Rule) -> dict[str, Any]:
    found = table.found
    members: dict[str, Any] = {
        "table": table.name,
        "stage": table.stage or None,
        "unknown": table.unknown or None,
        "is_idle": table.is_idle,
        "notes": [*table.notes, *(() if found is None else advice_notes(found, rule))],
    }
    if found is None:
        return members
    chosen = {
        "declared": found.declared,
        "best": found.best,
        "advised": found.advised(rule),
        "on_demand": found.on_demand,
    }
    return members | {
        "is_within_limit": found.is_within_limit,
        "keeps_limit": found.advised(rule).keeps(rule.limit_percent),
        "is_to_change": _changed(table, rule) is not None,
        **{name: None if each is None else candidate_document(each) for name, each in chosen.items()},
    }
