"""All pages alike: whatever a name holds is text on them, and they can be read in both schemes on any screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from highwater_lab.audit import AuditFinding, Judgement
from highwater_lab.audit.deviations import Deviation, DeviationKind, PlacedDeviation
from highwater_lab.audit.judgement import Kind
from highwater_lab.recommend import recommend
from highwater_lab.rehearse import FixedCost, Passed, TableChange, rehearse
from highwater_lab.rehearse.app import UnreadChange
from highwater_lab.report.app_page import write_app_page
from highwater_lab.report.audit import Audit, audit_page
from highwater_lab.report.page import write_page
from highwater_lab.report.tradeoff import write_tradeoff
from highwater_lab.simulation import ResourceSetup, TableSetup
from highwater_lab.template import Remark, RemarkKind
from highwater_lab.traffic import Stream, Traffic
from tests.rehearse.apps import APP, CARTS, LOST
from tests.report.test_commitments import ADVICE
from tests.report.test_hazards import GONE, KEPT
from tests.report.test_page import BROWSER, needs_browser
from tests.simulation.tables import START, WRITE, table, tracked, writes

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "</script></style></title><img src=x onerror=alert(1)>'\" onfocus=alert(2) x='&amp;{{ 7 * 7 }}{% raw %}"
HARMLESS = "Orders"
PAGES = ("rehearsal", "app", "audit", "tradeoff")


def named(value: Any, name: str) -> Any:
    """A value with that name in place of each text in it."""
    if isinstance(value, tuple):
        return tuple(named(each, name) for each in value)
    if isinstance(value, str) and not isinstance(value, Enum):
        return name if value else value
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: named(getattr(value, each.name), name) for each in fields(value)})
    return value


def written(page: str, name: str, file: Path) -> str:
    """A page on which everything that has a name has this one."""
    passed = [Passed("cost", 11.0, 7.0, name, name)]
    if page == "rehearsal":
        index = ResourceSetup(index=name, read=tracked(), write=tracked(low=90))
        setup = TableSetup(name=name, resources=table(tracked(low=100), indexes=(index,)).resources, notes=(name,))
        units = {Stream(index, WRITE): [60 * each for each in [80] * 20 + [4_000] * 40] for index in (None, name)}
        traffic = Traffic.from_counts(name, units, bin_seconds=60, start=START)
        write_page(rehearse(setup, traffic, compare=["on-demand", "native:50"]), file, passed)
    elif page == "app":
        remarks = (Remark(kind=RemarkKind.NOT_READ, where="w", what="x", stage="Beta"),)
        unread = (UnreadChange(replace(remarks[0], where="other", stage="Prod"), TableChange.CHANGED),)
        fixed = (FixedCost(stage="Beta", what="alarm", before=3, after=8, usd=0.1),)
        tables = (*APP.tables, replace(CARTS, name="Moved", moved_from="Old", change=TableChange.CHANGED), LOST)
        whole = replace(APP, tables=tables, hazards=(GONE, KEPT), remarks=remarks, unread=unread, fixed=fixed)
        write_app_page(named(whole, name), file, passed)
    elif page == "audit":
        found = AuditFinding(
            kind=Kind.WASTE, what="w", gain_usd=41.5, throttled_before=3, throttled_after=17, code="c\n" * 9
        )
        judgements = (
            Judgement(account="1", region="r", table="t", cost_usd=99, findings=(found, replace(found, code=""))),
            Judgement(account="1", region="r", table="u", problem="p"),
            Judgement(account="1", region="r", table="v", is_idle=True),
        )
        until = datetime(2026, 11, 3, 10, tzinfo=UTC)
        left = Deviation(kind=DeviationKind.LEFTOVER, subject="s", problem="p", command="c", usd_month=2.5)
        audit = Audit(
            judgements=named(judgements, name),
            commitments=ADVICE,
            until=until,
            days=14,
            deviations=named((PlacedDeviation("1", "r", left),), name),
            refused={name: name},
            unchecked=(name,),
            idle={name: 12.5},
        )
        file.write_bytes(audit_page(audit))
    else:
        found_plans = recommend(writes(*[40, 40, 40, 900, 900, 300] * 40), max_throttled_percent=0.5)
        plans = replace(found_plans, scaled={name: found_plans.best})
        write_tradeoff(plans, plans.best, name, [name, name], 0.5, lambda _name, _plan: f"{name}\n" * 3, file)
    return file.read_text()


class Read(HTMLParser):
    """Collects the elements of a page with the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_change_no_element_and_no_attribute_of_a_page(page: str, tmp_path: Path) -> None:
    harmless, hostile = (Read(written(page, name, tmp_path / "page.html")) for name in (HARMLESS, HOSTILE))
    assert hostile.elements == harmless.elements
    assert hostile.text.count(HOSTILE) > 5
    # an index is in quotes, as Python writes it
    shown = hostile.text.replace(repr(HOSTILE), repr(HARMLESS)).replace(HOSTILE, HARMLESS)
    assert shown == harmless.text


@pytest.mark.parametrize("page", PAGES)
def test_page_has_one_style_sheet_and_a_policy_that_forbids_requests(page: str, tmp_path: Path) -> None:
    text = written(page, HARMLESS, tmp_path / "page.html")
    policy = "default-src 'none'; style-src 'unsafe-inline'" + "; script-src 'unsafe-inline'" * (page != "audit")
    assert text.count(f"<meta http-equiv='Content-Security-Policy' content=\"{policy}\">") == 1
    assert text.count("<style>") == 1
    assert "style=" not in text
    assert ("<script" in text) == (page != "audit")


def test_half_of_a_surrogate_pair_is_written_as_a_question_mark(tmp_path: Path) -> None:
    text = written("audit", "a\ud83db", tmp_path / "page.html")
    assert "<td>a?b/a?b/a?b</td>" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


# the least contrast of a text to what is behind it, and of a policy's colour to the page, by WCAG 2.2, 1.4.3 and 1.4.11
_CONTRASTS = """() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = numbers(colour).map(each => each / 255).map(
      each => each <= .04045 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + .05) / (low + .05);
  };
  const behind = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return numbers(colour)[3] === 0 ? behind(element.parentElement) : colour;
  };
  const texts = [...document.querySelectorAll("body :not(script, button, svg *, #tip)")].filter(
    each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  const lines = [...document.querySelectorAll("input")].map(each => getComputedStyle(each).accentColor);
  const least = values => Math.min(99, ...values);
  return [least(texts.map(each => contrast(getComputedStyle(each).color, behind(each)))),
    least(lines.map(each => contrast(each, getComputedStyle(document.body).backgroundColor)))];
}"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_page_can_be_read_in_both_schemes_on_a_phone(browser: Browser, page: str, scheme: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    written(page, HARMLESS, file)
    opened = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("request", lambda request: problems.append(request.url))
    opened.goto(file.as_uri())
    assert problems == [file.as_uri()]
    opened.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    text, lines = opened.evaluate(_CONTRASTS)
    assert text >= 4.5
    assert lines >= 3
    back = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 26)"}[scheme]
    opened.close()


@needs_browser
def test_charts_follow_a_change_of_the_scheme(browser: Browser, tmp_path: Path) -> None:
    written("rehearsal", HARMLESS, tmp_path / "page.html")
    opened = browser.new_page(color_scheme="light")
    opened.goto((tmp_path / "page.html").as_uri())
    opened.wait_for_selector("body[data-ready]")
    assert opened.evaluate("report.runs.map(each => each.colour)") == ["#c0392b", "#7d3cba", "#117a65"]
    # the page's own listener was there first, so it has run when this one is called
    dark = "matchMedia('(prefers-color-scheme: dark)').addEventListener('change', done)"
    opened.evaluate(f"void (window.changed = new Promise(done => {dark}))")
    opened.emulate_media(color_scheme="dark")
    opened.evaluate("window.changed.then(() => null)")
    assert opened.evaluate("report.runs[0].colour") == "#ff7b72"
    opened.close()
