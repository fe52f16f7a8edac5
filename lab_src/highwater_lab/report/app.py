"""A rehearsal of all tables of an app: as sentences for the terminal, as markdown for a pull request, and as JSON."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from rich.console import Console
from rich.markup import escape

from highwater.terminal.console import inert
from highwater_lab.rehearse import (
    AppRehearsal,
    Cheapest,
    FixedCost,
    Hazard,
    Outcome,
    Passed,
    TableChange,
    TableRehearsal,
)
from highwater_lab.report.document import config_document
from highwater_lab.report.plan import change_lines, mode_text
from highwater_lab.report.terminal import config_text
from highwater_lab.template import Remark
from highwater_lab.traffic.reading import is_traffic_file

# The first line of a stage's document, by which its comment is found again: the name of the app, which action.yml and
# ci/gitlab.yml fill in, and the stage, as `marked` writes it. A stage in which nothing differs has no comment.
_MARKER: Final = "<!-- highwater::{stage} -->"
_UNCHANGED: Final = "<!-- highwater::{stage}: unchanged -->"
# GitHub answers 422, "Body is too long (maximum is 65536 characters)" (telia-oss/github-pr-resource, issue 259, read
# 2026-11-28); GitLab takes a million. The rest is for the app's name, and for an address.
_MOST_CHARACTERS: Final = 65_000
_MOST_LEFT_OVER: Final = 10
_MOST_NAMED: Final = 3


def usd(amount: float) -> str:
    """Return an amount of US dollars: whole from 100 on, otherwise with cents."""
    return f"{amount:,.0f}" if abs(amount) >= 99.995 else f"{amount:,.2f}"


def share(percent: float) -> str:
    """Return a throttled share in percent with two decimals, or as `<0.01` where it is less and not 0."""
    if percent == 0:
        return "0"
    return "<0.01" if percent < 0.005 else f"{percent:.2f}"


def _difference(after: float, before: float) -> str:
    gap = after - before
    return "±0" if abs(gap) < 0.005 else f"{'+' if gap > 0 else '−'}{usd(abs(gap))}"


def sentence(table: TableRehearsal, against: str) -> str:
    """Return one table's result in words."""
    if table.unknown:
        return f"{table.name}: unknown: {table.unknown}."
    parts = [f"{'; '.join(changes)}."] if (changes := declared_changes(table)) else []
    if table.is_idle:
        parts.append("idle: nothing is requested of it.")
    if table.after is None:
        parts.append("removed.")
    else:
        parts.append(f"{_cost_and_throttles(table.after, table.before)}.")
    if against and table.before is not None:
        parts.append(_before(table.before, against))
    elif against:
        parts.append(f"Not in {against}.")
    if table.on_demand is not None:
        parts.append(f"On demand: {usd(table.on_demand.cost_per_month)}.")
    if table.cheapest is not None:
        parts.append(_cheapest(table.cheapest))
    if table.after is not None and table.after.warm_up >= 0.005:
        parts.append(f"Once: {usd(table.after.warm_up)}.")
    return f"{table.name}: {' '.join(parts)}"


def _cheapest(best: Cheapest) -> str:
    found = f"{usd(best.cost_per_month)}, {share(best.throttled_percent)} %, with {best.summary}."
    if best.is_within_limit:
        return f"Cheapest within {best.limit_percent:g} %: {found}"
    return f"No plan keeps {best.limit_percent:g} %; the one that throttles least: {found}"


def _before(outcome: Outcome, against: str) -> str:
    return f"Before ({against}): {usd(outcome.cost_per_month)}, {share(outcome.throttled_percent)} %."


def declared_changes(table: TableRehearsal) -> list[str]:
    """Return what is declared differently, in words; none of a table that is unchanged, removed or cannot be read."""
    if table.change is TableChange.UNCHANGED or table.setup_after is None:
        return []
    if table.setup_before is None:
        return [f"added, {mode_text(table.setup_after)}"] if table.change is TableChange.ADDED else []
    moved = [f"moved from {table.moved_from}"] if table.moved_from not in ("", table.name) else []
    return moved + change_lines(table.setup_before, table.setup_after)


def _cost_and_throttles(outcome: Outcome, before: Outcome | None = None) -> str:
    text = f"{usd(outcome.cost_per_month)} USD a month"
    if before is not None:
        gap = outcome.cost_per_month - before.cost_per_month
        than = f"{usd(abs(gap))} {'more' if gap > 0 else 'less'} than"
        text += f", {'as' if abs(gap) < 0.005 else than} before"
    text += f", {share(outcome.throttled_percent)} % throttled"
    if outcome.worst_at is None:
        return text
    minutes = "1 minute" if outcome.throttled_minutes == 1 else f"{outcome.throttled_minutes:,} minutes"
    return f"{text} ({minutes}, worst {outcome.worst_at:%a %H:%M} UTC)"


def hazard_sentence(hazard: Hazard) -> str:
    """Return a hazard in words, with a mark that shows whether it is a finding."""
    return f"{'✗' if hazard.is_finding else '!'} {'accepted: ' * hazard.is_accepted}{hazard.text}"


def accept_lines(app: AppRehearsal, quoted: Callable[[str], str] = str) -> list[str]:
    """Return how the findings can be accepted, and the accepted ones that fit no line; *quoted* is for a shell."""
    keys = list(dict.fromkeys(each.key for each in app.hazards if each.is_finding))
    lines = [f"--accept {key}: no line has this kind and name" for key in app.unaccepted]
    if keys:
        given = " ".join(f"--accept {quoted(key)}" for key in keys)
        lines.append(f"To accept {'this' if len(keys) == 1 else 'these'}: {given}")
    return lines


def total_sentence(app: AppRehearsal) -> str:
    """Return the sum of the app's known tables in words, and how many tables are unknown."""
    known = sum(table.after is not None for table in app.tables)
    fixed: Counter[str] = Counter()
    for each in app.fixed:
        fixed[each.what] += each.after
    what = ", ".join([counted(known, "table"), *(counted(number, noun) for noun, number in fixed.items() if number)])
    text = f"{what}: {_cost_and_throttles(app.after, app.before)}."
    if app.before is not None:
        text += f" {_before(app.before, app.against)}"
    if left := len(app.unknown()):
        text += f" {left} more {'is' if left == 1 else 'are'} unknown, and not in these sums."
    if any(not each.remark.tables for each in app.unread):
        text += " What is not read differs, so that these sums are not all that differs."
    return text


def remark_lines(app: AppRehearsal, said: Iterable[TableRehearsal] = ()) -> list[str]:
    """Return what was not read or contradicts itself, a sentence each: what differs first.

    What makes one of the tables *said* unknown is left out, as the table's own line has it.
    """
    names = {table.name for table in said}
    differs = [f"{each.text}." for each in app.unread if not names & set(each.remark.tables)]
    keys = {each.remark.key for each in app.unread}
    return [*differs, *(f"{each.text}." for each in app.remarks if each.key not in keys)]


def _split_notes(tables: Sequence[TableRehearsal]) -> tuple[list[list[str]], list[str]]:
    """Return for each table the notes that it has alone, and each note that several have once, with these tables.

    Notes on files of traffic are the same if they differ in the file alone.
    """
    found: dict[str, list[str]] = {}
    for table in tables:
        for key in dict.fromkeys(map(_without_file, table.notes)):
            found.setdefault(key, []).append(table.name)
    own = [[note for note in table.notes if len(found[_without_file(note)]) == 1] for table in tables]
    shared = []
    for note, names in found.items():
        if len(names) > 1:
            more = len(names) - _MOST_NAMED
            *first, last = names if more <= 0 else [*names[:_MOST_NAMED], f"{more:,} more"]
            shared.append(f"{', '.join(first)} and {last}: {note}")
    return own, shared


def _without_file(note: str) -> str:
    """Return a note without the file of traffic at its beginning."""
    place, _, text = note.partition(": ")
    return text if text and is_traffic_file(place) else note


def left_over_lines(left_over: Sequence[str]) -> list[str]:
    """Return the traffic that fits no table of the app, as one line without a period; none if all fits."""
    if not left_over:
        return []
    more = len(left_over) - _MOST_LEFT_OVER
    shown = ", ".join(left_over[:_MOST_LEFT_OVER]) + (f" and {more:,} more" if more > 0 else "")
    return [f"this traffic fits no table, and is not used: {shown}"]


def fixed_sentence(cost: FixedCost, against: str) -> str:
    """Return a fixed cost in words."""
    stage = f"{cost.stage}: " if cost.stage else ""
    text = f"{stage}{counted(cost.after, cost.what)}, whatever the traffic: {usd(cost.after * cost.usd)} USD a month."
    return f"{text} Before ({against}): {cost.before}, {usd(cost.before * cost.usd)}." if against else text


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def print_app(app: AppRehearsal, console: Console) -> None:
    """Print what AWS refuses or destroys, the sum, a line for each table that differs, and for each that is unknown."""
    for hazard in app.hazards:
        color = "red" if hazard.is_finding else "yellow"
        console.print(f"[{color}]{escape(hazard_sentence(hazard))}[/]", highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(total_sentence(app))}[/]", highlight=False, soft_wrap=True)
    shown = app.changed()
    notes, shared = _split_notes(shown)
    for table, own in zip(shown, notes, strict=True):
        console.print(escape(sentence(table, app.against)), highlight=False, soft_wrap=True)
        for note in own:
            console.print(f"  [yellow]![/] {escape(note)}", highlight=False, soft_wrap=True)
    for note in shared:
        console.print(f"[yellow]![/] {escape(note)}", highlight=False, soft_wrap=True)
    for each in app.fixed_changed():
        console.print(escape(fixed_sentence(each, app.against)), highlight=False, soft_wrap=True)
    same = len(app.tables) - len(shown) - len(app.unknown())
    if app.against and same:
        console.print(f"{same} {'is' if same == 1 else 'are'} unchanged.", highlight=False)
    unknown = (sentence(table, app.against) for table in app.unknown())
    left_over = (f"{line}." for line in left_over_lines(app.left_over))
    for line in (*unknown, *remark_lines(app, app.unknown()), *left_over):
        console.print(f"[yellow]![/] {escape(line)}", highlight=False, soft_wrap=True)
    for line in (*accept_lines(app, shlex.quote), sources(app)):
        console.print(f"[dim]{escape(line)}[/]", highlight=False, soft_wrap=True)


def sources(app: AppRehearsal) -> str:
    """Return what the figures come from: traffic, prices, and what is paid for already."""
    reserved = replace(app.commitments, has_savings_plan=False).name
    shared = f"; {reserved}, which the sums count and the tables do not" if reserved else ""
    return f"{app.traffic}; {app.prices or 'no prices'}{shared}{config_text(app.after, app.before)}"


def app_markdown(app: AppRehearsal, passed: Sequence[Passed] = ()) -> str:
    """Return a document for each stage of a pull request: a hidden line, a headline, a table of changes, details.

    It begins with what AWS refuses or destroys. The hidden line names the stage, and says whether nothing differs and
    no limit is exceeded. *passed* are the limits that were exceeded. The last tables of a document that is too long for
    a comment are left out, each with all of its lines, and a line says how many.
    """
    return "\n".join(_stage_markdown(app.in_stage(stage), stage, passed) for stage in app.stages)


def _stage_markdown(app: AppRehearsal, stage: str, passed: Sequence[Passed]) -> str:
    tables = _ordered(app)
    whole = _markdown_of(app, stage, passed, tables)
    if _length(whole) <= _MOST_CHARACTERS:
        return whole
    fits, too_many = 0, len(tables)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        is_short = _length(_markdown_of(app, stage, passed, tables[:middle])) <= _MOST_CHARACTERS
        fits, too_many = (middle, too_many) if is_short else (fits, middle)
    return _markdown_of(app, stage, passed, tables[:fits])


def _markdown_of(app: AppRehearsal, stage: str, passed: Sequence[Passed], kept: Sequence[TableRehearsal]) -> str:
    """Return the document of a stage with as many of its tables as are *kept*."""
    every = _ordered(app)
    left = {table.name for table in every[len(kept) :]}
    own = [each for each in passed if each.where in (stage, *(table.name for table in app.tables))]
    marker = _MARKER if own or app.differs() else _UNCHANGED
    lines = [marker.format(stage=marked(stage)), f"### DynamoDB capacity{f', {cell(stage)}' if stage else ''}", ""]
    hazards = [each for each in app.hazards if each.table not in left]
    lines += [f"- {'❌' if each.is_finding else '⚠️'} {cell(hazard_sentence(each)[2:])}" for each in hazards]
    lines += [""] * bool(hazards)
    lines += [cell(total_sentence(app)), ""]
    lines += [f"- ❌ {cell(each.text)}" for each in own if each.where not in left] + [""] * bool(own)
    shown = [table for table in kept if not table.unknown]
    if shown or app.fixed_changed():
        lines += [*_table(shown, app.fixed_changed(), app.against), ""]
    remarks = [f"- {cell(line)}" for line in remark_lines(app)]
    lines += [*remarks, ""] if remarks else []
    same = len(app.tables) - len(every)
    if same:
        lines += [f"{same} {'table' if same == 1 else 'tables'} unchanged.", ""]
    details = [
        *(f"- {cell(sentence(table, app.against))}" for table in kept),
        *(f"- {cell(table.name)}: {cell(note)}" for table in shown for note in table.notes),
    ]
    if details:
        lines += ["<details><summary>Details</summary>", "", *details, "", "</details>", ""]
    if count := len(every) - len(kept):
        what = "1 table is" if count == 1 else f"{count:,} tables are"
        lines += [
            f"**{what} left out**, as a comment has at most 65,536 characters; `--html` and `--json` have all.",
            "",
        ]
    lines += [f"<sub>{cell(text)}</sub>\n" for text in (*accept_lines(app), f"Simulated: {sources(app)}.")]
    lines += [f"<sub>{cell(text)}.</sub>\n" for text in left_over_lines(app.left_over)]
    return "\n".join(lines)


def _ordered(app: AppRehearsal) -> tuple[TableRehearsal, ...]:
    """Return the tables that differ or are unknown, first those that a document has to keep."""
    hazards = {each.table for each in app.hazards}
    return tuple(sorted((*app.changed(), *app.unknown()), key=lambda table: table.name not in hazards))


def _length(text: str) -> int:
    # in UTF-16, as no service counts more for a character
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class AppRow:
    """One row of the table of an app's costs; its texts are for any document, and not escaped.

    Attributes:
        name: What it is of, with a note such as ` (added)`.
        cost: As `costs` returns it.
        throttled: As `throttled` returns it, both "" for what has no traffic.
        on_demand: What the table would cost on demand, "" where that is not known.
    """

    name: str
    cost: tuple[str, str, str]
    throttled: tuple[str, str]
    on_demand: str


def app_rows(tables: Iterable[TableRehearsal], fixed: Iterable[FixedCost], against: str) -> list[AppRow]:
    """Return a row for each table and each fixed cost; with *against* those first that add or save most."""
    rows: list[tuple[float, AppRow]] = []
    for table in tables:
        note = f" ({table.change})" * (table.change in (TableChange.ADDED, TableChange.REMOVED))
        note += " (idle)" * table.is_idle
        on_demand = "" if table.on_demand is None else usd(table.on_demand.cost_per_month)
        old, now = (None if each is None else each.cost_per_month for each in (table.before, table.after))
        refused = throttled(table.before, table.after)
        rows.append((table.rise, AppRow(table.name + note, costs(old, now, against), refused, on_demand)))
    for each in fixed:
        now, old = each.after * each.usd, each.before * each.usd
        name = counted(each.after, each.what) + (f" (before: {each.before:,})" if against else "")
        rows.append((now - old, AppRow(name, costs(old, now, against), ("", ""), "")))
    if against:
        rows.sort(key=lambda row: -abs(row[0]))
    return [row for _, row in rows]


def _table(shown: Iterable[TableRehearsal], fixed: Iterable[FixedCost], against: str) -> list[str]:
    between = " (before → after)" if against else ""
    lines = [["table", f"USD a month{between}", f"throttled{between}", "on demand"], ["---", *["---:"] * 3]]
    for row in app_rows(shown, fixed, against):
        # where a narrow screen may break the name, so that the dollars and the throttling stay in sight
        name = re.sub(r"(/|\.|\\_)", r"\1<wbr>", cell(row.name))
        lines.append([name, _bold(row.cost), _bold(row.throttled), row.on_demand])
    return [f"| {' | '.join(line)} |" for line in lines]


def _bold(texts: Sequence[str]) -> str:
    before, now, *more = texts
    return "".join([before, f"**{now}**" if now else "", *more])


def costs(before: float | None, after: float | None, against: str) -> tuple[str, str, str]:
    """Return a cost before, the cost after, and the difference, as three texts to print in a row.

    The first and the last are "" without *against*; the first is, too, for what is new.
    """
    now = "0" if after is None else usd(after)
    if not against:
        return "", now, ""
    gap = _difference(after or 0.0, before or 0.0)
    return "" if before is None else f"{usd(before)} → ", now, f" ({gap})"


def throttled(before: Outcome | None, after: Outcome | None) -> tuple[str, str]:
    """Return the throttled share before, and that after, as two texts to print in a row.

    The first is "" where both are equal or there was none; the second is "" of a table that is removed.
    """
    old, now = ("" if each is None else share(each.throttled_percent) for each in (before, after))
    if not now:
        return f"{old} %", ""
    return "" if old in ("", now) else f"{old} → ", f"{now} %"


_LINKED: Final = re.compile(r"@|:(?=//)|www(?=\.)|GH(?=-\d)", re.IGNORECASE)


def marked(name: str) -> str:
    """Return a name as it stands in a hidden line: letters, digits and `/ _.-~`, all else as `%` and a hex number."""
    return quote(name, safe="/ ")


def cell(text: str) -> str:
    """Return a text that stays within a cell or a line of markdown, is no markup or link, and mentions nobody."""
    # first, as a character may be written as an entity, such as &commat;
    text = " ".join(inert(text).split()).replace("&", "&amp;")
    for mark in "\\`*_[]<>|#~":
        text = text.replace(mark, f"\\{mark}")
    # an invisible comment behind it keeps @everyone from being notified, and addresses and GH-1 from becoming links
    return _LINKED.sub(r"\g<0><!-- -->", text)


def app_document(app: AppRehearsal, passed: Sequence[Passed] = ()) -> dict[str, Any]:
    """Return the figures ready for `json.dumps`: USD and units are numbers, unknown values are null."""
    return {
        "against": app.against or None,
        "traffic": app.traffic,
        "prices": app.prices,
        "hazards": [
            {
                "kind": str(each.kind),
                "table": each.table,
                "stage": each.stage or None,
                "consequence": str(each.consequence),
                "is_finding": each.is_finding,
                "is_accepted": each.is_accepted,
                "what": each.what,
                "fix": each.fix or None,
            }
            for each in app.hazards
        ],
        "before": None if app.before is None else _outcome(app.before),
        "after": _outcome(app.after),
        "tables": [
            {
                "name": table.name,
                "stage": table.stage or None,
                "change": str(table.change),
                "moved_from": table.moved_from or None,
                "declared_changes": declared_changes(table),
                "before": None if table.before is None else _outcome(table.before),
                "after": None if table.after is None else _outcome(table.after),
                "on_demand": None if table.on_demand is None else _outcome(table.on_demand),
                "cheapest": None
                if table.cheapest is None
                else {
                    "summary": table.cheapest.summary,
                    "cost_per_month_usd": round(table.cheapest.cost_per_month, 2),
                    "throttled_percent": table.cheapest.throttled_percent,
                    "limit_percent": table.cheapest.limit_percent,
                    "is_within_limit": table.cheapest.is_within_limit,
                },
                "is_idle": table.is_idle,
                "unknown": table.unknown or None,
                "notes": list(table.notes),
            }
            for table in app.tables
        ],
        "fixed": [
            {
                "stage": each.stage or None,
                "what": each.what,
                "before": each.before if app.against else None,
                "after": each.after,
                "cost_per_month_usd": round(each.after * each.usd, 2),
            }
            for each in app.fixed
        ],
        "not_read": [
            _remark_document(each) | {"change": _change_of(each, app)}
            for each in dict.fromkeys((*(change.remark for change in app.unread), *app.remarks))
        ],
        "accepted_without_line": list(app.unaccepted),
        "traffic_without_table": list(app.left_over),
        "passed": [each.what for each in passed],
    }


def _remark_document(remark: Remark) -> dict[str, Any]:
    return {
        "kind": str(remark.kind),
        "where": remark.where,
        "what": remark.what,
        "stage": remark.stage or None,
        "tables": list(remark.tables),
    }


def _change_of(remark: Remark, app: AppRehearsal) -> str | None:
    """Return how a remark's subject differs from the old app; `None` if it does not, or the app is not compared."""
    return next((str(each.change) for each in app.unread if each.remark.key == remark.key), None)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "cost_per_month_usd": round(outcome.cost_per_month, 2),
        "warm_up_once_usd": round(outcome.warm_up, 2),
        "config": config_document(outcome),
        "throttled_percent": outcome.throttled_percent,
        "throttled_units": round(outcome.throttled_units, 3),
        "throttled_minutes": outcome.throttled_minutes,
        "worst_at": None if outcome.worst_at is None else outcome.worst_at.isoformat(),
    }
