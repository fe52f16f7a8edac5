"""A rehearsal of all tables of an app as one self-contained HTML page, for people who review a change."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from highwater_lab.files import replace_file
from highwater_lab.rehearse import AppRehearsal, FixedCost, Passed, TableRehearsal
from highwater_lab.report.app import (
    AppRow,
    app_rows,
    counted,
    fixed_sentence,
    hazard_sentence,
    remark_lines,
    sentence,
    sources,
    total_sentence,
)
from highwater_lab.report.page import fill_page, word

_WORDS: Final = {
    "USD a month": "For 730 hours of this traffic, without what is paid once.",
    "throttled": "The share of the requested units that DynamoDB refuses because capacity is missing.",
    "on demand": "What the table would cost a month in on-demand capacity mode, in USD.",
}


def write_app_page(app: AppRehearsal, path: Path, passed: Sequence[Passed] = ()) -> None:
    """Write the HTML report of an app's tables to *path*: the sum, then a row for each table, those that differ first.

    Args:
        app: The rehearsal.
        path: The file, which is replaced.
        passed: The limits that are exceeded.

    Raises:
        OSError: The file cannot be written.
    """
    title = "DynamoDB capacity" + (f", compared with {app.against}" if app.against else "")
    stages = list(app.stages)
    body = [
        f"<h1>{html.escape(title)}</h1>",
        *(
            f"<p class='{'limit' if each.is_finding else 'note'}'>{html.escape(hazard_sentence(each))}</p>"
            for each in app.hazards
        ),
        f"<p class='verdict'>{html.escape(total_sentence(app))}</p>",
        *(f"<p class='limit'>✗ {html.escape(each.text)}</p>" for each in passed),
    ]
    for stage in stages:
        own = app.in_stage(stage)
        if stage:
            body.append(f"<h2>{html.escape(stage)}</h2>")
        if len(stages) > 1:
            body.append(f"<p>{html.escape(total_sentence(own))}</p>")
        body += _stage(own)
    body.append(f"<p>Simulated: {html.escape(sources(app))}.</p>")
    replace_file(path, fill_page(title, "\n".join(body), ""))


def _stage(app: AppRehearsal) -> Iterator[str]:
    shown = app.changed()
    if shown or app.fixed_changed():
        yield _table(shown, app.fixed_changed(), app.against)
    said = [
        *(sentence(table, app.against) for table in shown),
        *(f"{table.name}: {note}" for table in shown for note in table.notes),
        *(fixed_sentence(each, app.against) for each in app.fixed_changed()),
    ]
    if said:
        items = "".join(f"<li>{html.escape(each)}</li>" for each in said)
        yield f"<details open><summary>In words</summary><ul>{items}</ul></details>"
    unknown = app.unknown()
    for line in (*remark_lines(app, unknown), *(sentence(table, app.against) for table in unknown)):
        yield f"<p class='note'>{html.escape(line)}</p>"
    same = [table for table in app.tables if table not in shown and not table.unknown]
    if same:
        heading = f"{counted(len(same), 'table')} unchanged"
        yield f"<details><summary>{heading}</summary>{_table(same, (), app.against)}</details>"


def _table(tables: Iterable[TableRehearsal], fixed: Iterable[FixedCost], against: str) -> str:
    head = "".join(f"<th>{word(name, _WORDS)}</th>" for name in ("table", *_WORDS))
    rows = "".join(_row(row) for row in app_rows(tables, fixed, against))
    return f"<div class='scroll folds'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(row: AppRow) -> str:
    before, after, gap = row.cost
    # a small share begins with <
    old, now = map(html.escape, row.throttled)
    cells = [
        f"<td>{html.escape(row.name)}</td>",
        f"<td>{before}<span class='usd'>{after}</span>{gap}</td>",
        f"<td>{old}<b>{now}</b></td>" if now else f"<td>{old}</td>",
        f"<td data-label='on demand'>{row.on_demand}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"
