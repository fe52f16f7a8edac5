"""The report of all tables of an app: its rows and words, and how it looks in a real browser."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from highwater_lab.rehearse import FixedCost, Limits
from highwater_lab.report.app_page import write_app_page
from tests.rehearse.apps import APP, CARTS
from tests.report.test_page import BROWSER, needs_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PASSED = Limits(max_cost_per_month=700, max_cost_rise=50, max_throttled_rise=0).passed_by_app(APP)


def _written(path: Path) -> str:
    write_app_page(APP, path, PASSED)
    return path.read_text()


def _rows(page: str) -> list[list[str]]:
    return [
        [html.unescape(re.sub("<[^>]+>", "", each)) for each in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(<td>.*?)</tr>", page)
    ]


def test_page_has_the_sum_the_limits_and_a_row_for_each_table_with_those_of_a_stage_together(tmp_path: Path) -> None:
    page = _written(tmp_path / "page.html")
    assert html.unescape(page).count("3 tables: 1,299 USD a month, 110 more than before, 1.72 % throttled.") == 1
    assert re.findall(r"class='limit'>(.*?)</p>", page) == [
        "✗ Prod/Shop/Orders: the cost is $701.20 a month, the limit is $700.00",
        "✗ Prod: the cost rises by $100.80 a month to $701.20, the limit is $50.00",
    ]
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Beta", "Prod"]
    assert _rows(page) == [
        ["Beta/Shop/New_1 (added)", "9.50 (+9.50)", "<0.01 %", ""],
        ["Beta/Shop/Carts", "588 → 588 (±0)", "5.06 %", ""],
        ["Prod/Shop/Orders", "588 → 701 (+113)", "5.06 → 0.09 %", "1,039"],
        ["Prod/Shop/Gone (removed)", "12.00 → 0 (−12.00)", "0 %", ""],
    ]
    assert "<summary>1 table unchanged</summary>" in page
    assert "class='note'>Prod/Shop/Lost: unknown: no traffic.<" in page
    assert "<li>Prod/Shop/Orders: a | b</li>" in page


def test_page_of_an_app_alone_compares_nothing_and_names_are_no_markup(tmp_path: Path) -> None:
    path, alarms = tmp_path / "page.html", FixedCost(stage="Beta", what="alarm", before=0, after=12, usd=0.1)
    named = replace(CARTS, name="<b>&", before=None)
    write_app_page(replace(APP, against="", tables=(named,), fixed=(alarms,)), path)
    page = path.read_text()
    assert _rows(page) == [["<b>&", "588", "5.06 %", ""], ["12 alarms", "1.20", "", ""]]
    assert "<b>&" not in page
    assert "before" not in page.partition("<body>")[2].partition("<script>")[0]


def test_row_of_alarms_says_how_many_there_were(tmp_path: Path) -> None:
    path, alarms = tmp_path / "page.html", FixedCost(stage="Beta", what="alarm", before=8, after=1, usd=0.1)
    write_app_page(replace(APP, tables=(CARTS,), fixed=(alarms,)), path)
    assert _rows(path.read_text())[0] == ["1 alarm (before: 8)", "0.80 → 0.10 (−0.70)", "", ""]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


@needs_browser
@pytest.mark.parametrize("width", [1_280, 390])
def test_dollars_and_throttling_are_in_sight_at_any_width(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    _written(path)
    page = browser.new_page(viewport={"width": width, "height": 800})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for text in ("588 → 701 (+113)", "5.06 → 0.09 %"):
        box = page.locator("td", has_text=text).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    wider = "[...document.querySelectorAll('td')].filter(cell => cell.scrollWidth > cell.clientWidth)"
    assert page.evaluate(f"{wider}.map(cell => cell.textContent)") == [], "what is wider than its cell covers the next"
    page.locator("summary", has_text="unchanged").click()
    assert page.locator("td", has_text="Beta/Shop/Carts").is_visible()
    page.locator("abbr", has_text="throttled").first.focus()
    assert "refuses because capacity is missing" in page.locator("#tip").inner_text()
    assert (problems, asked) == ([], [path.as_uri()])
    page.close()
