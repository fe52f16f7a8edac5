"""What AWS refuses or destroys comes first: in the terminal, in comments on pull requests, on the page, in JSON."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from highwater_lab.rehearse import Consequence, Hazard, HazardKind, TableChange, TableRehearsal
from highwater_lab.report.app import app_document, app_markdown, print_app
from highwater_lab.report.app_page import write_app_page
from tests.rehearse.apps import APP, CARTS, ORDERS

GONE = Hazard(
    HazardKind.REMOVED, "Prod/Shop/Gone", "Prod", Consequence.DESTROYED, "removed: it is deleted", "keep <it>"
)
KEPT = Hazard(HazardKind.REMOVED, "Beta/Shop/Old", "Beta", Consequence.KEPT, "removed: it stays")
HARMED = replace(APP, hazards=(KEPT, GONE))


def test_terminal_begins_with_hazards_marked_by_whether_they_are_findings() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_app(HARMED, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[:3] == [
        "! Beta/Shop/Old: removed: it stays",
        "✗ Prod/Shop/Gone: removed: it is deleted; keep <it>",
        "3 tables: 1,299 USD a month, 110 more than before, 1.72 % throttled. Before (main): 1,189, 3.37 %. 1 more is "
        "unknown, and not in these sums.",
    ]


def test_document_of_each_stage_begins_with_its_hazards() -> None:
    beta, prod = (part.splitlines()[:5] for part in re.split(r"(?=<!-- highwater)", app_markdown(HARMED)) if part)
    assert beta[:4] == [
        "<!-- highwater::Beta -->",
        "### DynamoDB capacity, Beta",
        "",
        "- ⚠️ Beta/Shop/Old: removed: it stays",
    ]
    assert prod[3] == "- ❌ Prod/Shop/Gone: removed: it is deleted; keep \\<it\\>"


def test_stage_of_unchanged_tables_with_a_hazard_has_a_document() -> None:
    same = replace(APP, tables=(CARTS,), hazards=(KEPT,))
    assert app_markdown(same).splitlines()[0] == "<!-- highwater::Beta -->"
    assert app_markdown(replace(same, hazards=())).splitlines()[0] == "<!-- highwater::Beta: unchanged -->"


def test_tables_with_hazards_are_left_out_of_a_long_document_last() -> None:
    many = tuple(replace(ORDERS, name=f"Prod/Shop/T{number:04}", change=TableChange.CHANGED) for number in range(1_000))
    cheap = TableRehearsal(name=GONE.table, stage="Prod", change=TableChange.REMOVED)
    text = app_markdown(replace(APP, tables=(*many, cheap), hazards=(GONE,)))
    assert "tables are left out" in text
    assert "- ❌ Prod/Shop/Gone: removed: it is deleted" in text


def test_page_begins_with_hazards(tmp_path: Path) -> None:
    write_app_page(HARMED, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    classes = re.findall(r"<p class='(\w+)'>(.*?)</p>", page)[:3]
    assert [(name, html.unescape(text)[:36]) for name, text in classes] == [
        ("note", "Beta/Shop/Old: removed: it stays"),
        ("limit", "✗ Prod/Shop/Gone: removed: it is del"),
        ("verdict", "3 tables: 1,299 USD a month, 110 mor"),
    ]
    assert "<it>" not in page


def test_document_has_each_hazard_in_its_parts() -> None:
    assert app_document(HARMED)["hazards"] == [
        {
            "kind": "removed",
            "table": "Beta/Shop/Old",
            "stage": "Beta",
            "consequence": "kept",
            "is_finding": False,
            "is_accepted": False,
            "what": "removed: it stays",
            "fix": None,
        },
        {
            "kind": "removed",
            "table": "Prod/Shop/Gone",
            "stage": "Prod",
            "consequence": "destroyed",
            "is_finding": True,
            "is_accepted": False,
            "what": "removed: it is deleted",
            "fix": "keep <it>",
        },
    ]


def test_moved_table_is_one_table_with_its_old_name() -> None:
    moved = replace(ORDERS, moved_from="Prod/Old/Orders")
    line = next(each for each in app_markdown(replace(APP, tables=(moved,))).splitlines() if "moved" in each)
    assert line.startswith("- Prod/Shop/Orders: moved from Prod/Old/Orders; write floor 300 → 900 WCU. 701 USD a month")
    assert app_document(replace(APP, tables=(moved,)))["tables"][0]["moved_from"] == "Prod/Old/Orders"
