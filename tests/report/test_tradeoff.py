"""The trade-off of a recommendation as people meet it: opened in a real browser."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from highwater_lab.recommend import Candidate, Recommendation, recommend
from highwater_lab.recommend.code import code_of, scaler_code_of
from highwater_lab.report.tradeoff import write_tradeoff
from tests.report.test_page import BROWSER, needs_browser
from tests.simulation.tables import writes

LINES = ["stay <on demand>", "Tue 2026-11-03 10:00 to 12:00 UTC; prices of us-east-1"]


def _code(name: str, candidate: Candidate) -> str:
    return scaler_code_of(name, candidate) if name else code_of(candidate)


@pytest.fixture(scope="module")
def found() -> Recommendation:
    return recommend(writes(*[40, 40, 40, 900, 900, 300] * 40), max_throttled_percent=0.5)


@pytest.fixture(scope="module")
def page(found: Recommendation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    file = tmp_path_factory.mktemp("tradeoff") / "t.html"
    write_tradeoff(found, found.best, "The trade-off for <made>", LINES, 0.5, _code, file)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        assert asked == [file.as_uri()]
        yield page


@needs_browser
def test_verdict_comes_first_and_names_are_text(page: Page) -> None:
    assert page.inner_text("h1") == "The trade-off for <made>"
    assert page.inner_text(".verdict") == "stay <on demand>"
    assert page.inner_text(".verdict + p") == LINES[1]


@needs_browser
def test_on_demand_and_the_scaler_have_rows_where_they_are_worse_too(page: Page, found: Recommendation) -> None:
    assert found.on_demand is not None
    assert found.on_demand not in found.curve, "so that its row is an added one"
    names = page.locator("#plans td:first-child").all_inner_texts()
    assert len(names) == len(found.curve) + 4
    assert names[len(found.curve)] == f"{len(found.curve) + 1}. on-demand"
    ends = ["highwater-floor", "highwater-floor-pulse", "highwater-direct-pulse"]
    assert [name.partition(". ")[2].partition(":")[0] for name in names[-3:]] == ends
    usd = page.locator("#plans td:nth-child(2)").all_inner_texts()
    assert usd == [f"{each.cost_per_month:,.2f}" for _, each in found.rows]


@needs_browser
def test_dollars_are_visible_on_a_phone(page: Page) -> None:
    for box in (page.locator("#plans th:nth-child(2)").bounding_box(), page.locator(".usd").first.bounding_box()):
        assert box is not None
        assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@needs_browser
@pytest.mark.parametrize("width", [390, 1_280])
def test_each_point_can_be_seen_and_read_at_its_place(page: Page, found: Recommendation, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1_200})
    points = page.evaluate(
        "[...document.querySelectorAll('svg g')].map(each => { const box = each.querySelector('circle')"
        ".getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;"
        " return [each.dataset.row, document.elementFromPoint(x, y).closest('g')?.dataset.row, x, y]; })"
    )
    assert len(points) == len(found.rows)
    assert all(row == seen for row, seen, _, _ in points)
    gaps = [math.dist(one[2:], other[2:]) for one, other in itertools.combinations(points, 2)]
    assert min(gaps) >= 20
    chosen = page.locator("#plans tr", has_text="recommended").get_attribute("data-row")
    assert points[-1][0] == chosen, "drawn last"
    sizes = page.evaluate("[...document.querySelectorAll('svg text')].map(each => each.getBoundingClientRect().height)")
    assert min(sizes) >= 12
    page.set_viewport_size({"width": 390, "height": 844})


@needs_browser
def test_words_of_the_axis_do_not_cover_each_other(page: Page) -> None:
    boxes = page.evaluate(
        "[...document.querySelectorAll('svg > text')].map(each => each.getBoundingClientRect())"
        ".map(box => [box.left, box.right, box.top, box.bottom])"
    )
    for one, other in itertools.combinations(boxes, 2):
        # a line's box is higher than its letters
        is_beside = one[1] <= other[0] or other[1] <= one[0]
        assert is_beside or one[3] <= other[2] + 3 or other[3] <= one[2] + 3


@needs_browser
def test_small_shares_have_two_digits(page: Page) -> None:
    shares = page.locator("#plans td:nth-child(3)").all_inner_texts()
    assert all(re.fullmatch(r"0 %|0\.0*[1-9]\d? %|[1-9]\d*\.\d\d %", each) for each in shares), shares


@needs_browser
def test_click_on_a_point_or_a_row_shows_the_code_of_its_plan(page: Page, found: Recommendation) -> None:
    shown = page.locator("section:visible pre")
    assert shown.inner_text().strip() == code_of(found.best).strip()
    page.locator("svg g[data-row='0']").click()
    assert shown.inner_text().strip() == code_of(found.curve[0]).strip()
    assert page.get_attribute("tr[data-row='0']", "aria-selected") == "true"
    last = len(found.rows) - 1
    page.click(f"tr[data-row='{last}'] td:nth-child(3)")
    assert shown.inner_text().strip() == scaler_code_of(*found.rows[last]).strip()
    page.locator("svg g[data-row='1']").focus()
    page.keyboard.press("Enter")
    assert shown.inner_text().strip() == code_of(found.curve[1]).strip()
    assert page.locator("section:visible h2").inner_text() == f"2. {found.curve[1].summary}"


@needs_browser
def test_what_is_advised_is_marked_and_shown_with_its_code(page: Page, found: Recommendation, tmp_path: Path) -> None:
    assert found.on_demand is not None
    missed = replace(found, is_within_limit=False)
    for told, advised, mark in (
        (found, found.best, "recommended"),
        (found, found.on_demand, "recommended"),
        (missed, found.best, "throttles least"),
    ):
        write_tradeoff(told, advised, "T", LINES, 0.5, _code, tmp_path / "t.html")
        assert page.context.browser is not None
        other = page.context.browser.new_page()
        other.goto((tmp_path / "t.html").as_uri())
        (marked,) = [name for name in other.locator("#plans td:first-child").all_inner_texts() if "←" in name]
        assert marked.partition(". ")[2] == f"{advised.summary} ← {mark}"
        assert other.locator("section:visible pre").inner_text().strip() == code_of(advised).strip()
