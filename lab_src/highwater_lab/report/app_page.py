"""A rehearsal of all tables of an app as one self-contained HTML page, for people who review a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from highwater_lab.files import replace_file
from highwater_lab.rehearse import AppRehearsal, Passed
from highwater_lab.report.app import (
    app_rows,
    counted,
    fixed_sentence,
    hazard_sentence,
    left_over_lines,
    remark_lines,
    sentence,
    sources,
    total_sentence,
)
from highwater_lab.report.pages import fill_page


def write_app_page(app: AppRehearsal, path: Path, passed: Sequence[Passed] = ()) -> None:
    """Write the HTML report of an app's tables to *path*: the sum, then a row for each table, those that differ first.

    Args:
        app: The rehearsal.
        path: The file, which is replaced.
        passed: The limits that are exceeded.

    Raises:
        OSError: The file cannot be written.
    """
    page = fill_page(
        "app.html",
        "DynamoDB capacity" + (f", compared with {app.against}" if app.against else ""),
        hazards=[(each, hazard_sentence(each)) for each in app.hazards],
        total=total_sentence(app),
        passed=passed,
        stages=[_stage(stage, app.in_stage(stage)) for stage in app.stages],
        sources="; ".join((sources(app), *left_over_lines(app.left_over))),
    )
    replace_file(path, page)


def _stage(name: str, app: AppRehearsal) -> dict[str, Any]:
    shown, fixed, unknown = app.changed(), app.fixed_changed(), app.unknown()
    same = [table for table in app.tables if table not in shown and not table.unknown]
    return {
        "name": name,
        "total": total_sentence(app),
        "rows": app_rows(shown, fixed, app.against),
        "said": [
            *(sentence(table, app.against) for table in shown),
            *(f"{table.name}: {note}" for table in shown for note in table.notes),
            *(fixed_sentence(each, app.against) for each in fixed),
        ],
        "notes": [*remark_lines(app, unknown), *(sentence(table, app.against) for table in unknown)],
        "same": app_rows(same, (), app.against),
        "heading": f"{counted(len(same), 'table')} unchanged",
    }
