"""The report as people meet it: opened in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from highwater_lab.policies.catalogue import run_policy
from highwater_lab.rehearse import PlannedJob, Rehearsal, rehearse
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import curves, shown_targets, write_picture
from highwater_lab.report.terminal import advice, job_lines
from highwater_lab.simulation import ResourceSetup, TableSetup
from highwater_lab.traffic import scenario
from tests.simulation.tables import READ, WRITE, table, tracked, writes

if TYPE_CHECKING:
    from playwright.sync_api import Page

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; Debian's package has it")


@pytest.fixture(scope="module")
def rehearsal() -> Rehearsal:
    index = ResourceSetup(index="by_status", read=tracked(), write=tracked(low=200))
    setup = table(tracked(low=100), indexes=(index,))
    named = TableSetup(name="Orders </script><b>", resources=setup.resources, notes=("a note & more",))
    return rehearse(named, scenario("step"), compare=["native:50", "on-demand"])


@pytest.fixture(scope="module")
def page_file(rehearsal: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(rehearsal, path)
    return path


@pytest.fixture(scope="module")
def page(page_file: Path) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.add_init_script("window.problems = []; addEventListener('error', e => problems.push(e.message));")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(page_file.as_uri())
        page.wait_for_selector("#chart .main-svg")
        page.evaluate("asked => { window.asked = asked }", asked)
        yield page
        browser.close()


@needs_browser
def test_page_loads_nothing_from_elsewhere(page: Page, page_file: Path) -> None:
    assert page.evaluate("window.asked") == [page_file.as_uri()]
    assert page.evaluate("window.problems") == []
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


@needs_browser
def test_names_are_text_and_not_markup(page: Page) -> None:
    assert page.inner_text("h1") == "Orders </script><b> under step"
    assert page.inner_text(".note") == "a note & more"


@needs_browser
def test_traffic_of_less_than_a_day_is_counted_in_minutes(page: Page) -> None:
    said = page.inner_text("h1 + p")
    assert said == "240 minutes from 2026-11-02 00:00 UTC; prices of us-east-1, 2026-11."


@needs_browser
def test_curves_are_drawn(page: Page, rehearsal: Rehearsal) -> None:
    names = page.evaluate("document.getElementById('chart').data.map(trace => trace.name)")
    shown = {"ceiling", "floor", "consumed", "demand", "provisioned", "why"}
    assert shown | {"throttled: index", "throttled: provisioned"} <= set(names)
    # the busiest minute asked for 4,000/s, and a line was drawn to it
    drawn = page.evaluate(
        "(() => { const t = document.getElementById('chart').data.find(t => t.name === 'demand');"
        " return [t.x.length, Math.max(...t.y)]; })()"
    )
    assert drawn == [rehearsal.traffic.minutes, 4_000]
    lines = page.locator("#chart .scatterlayer .js-line")
    assert max(lines.evaluate_all("lines => lines.map(l => l.getAttribute('d').length)")) > 100
    assert page.locator("#chart .bars path").count() > 10


@needs_browser
def test_hover_shows_values_and_why_capacity_changed(page: Page) -> None:
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.10, box["y"] + box["height"] * 0.5)
    page.wait_for_selector("#chart .hoverlayer .legend text")
    told = " ".join(page.locator("#chart .hoverlayer text").evaluate_all("texts => texts.map(t => t.textContent)"))
    assert re.search(r"demand 1,000/s", told)
    assert re.search(r"provisioned 1,429/s", told)
    assert re.search(r"floor 100, ceiling 40,000", told)
    why = page.evaluate("document.getElementById('chart').data.find(t => t.name === 'why').text")
    assert any(text.startswith("scale-out: target tracking: ") for text in why)


@needs_browser
def test_other_runs_are_shown_when_chosen(page: Page) -> None:
    before = page.evaluate("document.getElementById('chart').data.find(t => t.name === 'provisioned').y[0]")
    page.select_option("#run", label="native:50")
    after = page.evaluate("document.getElementById('chart').data.find(t => t.name === 'provisioned').y[0]")
    assert (before, after) == (1_429, 2_000)
    page.click("tr[data-run='2']")
    assert page.evaluate("document.getElementById('chart').data.some(t => t.name === 'provisioned')") is False
    assert page.input_value("#run") == "2"
    page.click("tr[data-run='0']")


@needs_browser
def test_drag_zooms_and_double_click_goes_back(page: Page) -> None:
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    assert box is not None
    whole = page.evaluate("document.getElementById('chart')._fullLayout.xaxis.range")
    y = box["y"] + box["height"] * 0.5
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "whole => document.getElementById('chart')._fullLayout.xaxis.range[0] !== whole[0]", arg=whole
    )
    page.mouse.dblclick(box["x"] + box["width"] * 0.4, y)
    page.wait_for_function(
        "whole => document.getElementById('chart')._fullLayout.xaxis.range[0] === whole[0]", arg=whole
    )


@needs_browser
def test_every_cause_is_in_the_legend_once(page: Page) -> None:
    """The index throttles by a cause that the table, in the first panel, does not have."""
    traces = page.evaluate("document.getElementById('chart').data.map(t => [t.name, t.showlegend, t.yaxis])")
    causes = [(name, is_shown) for name, is_shown, _ in traces if str(name).startswith("throttled: ")]
    assert {name for name, _ in causes} == {name for name, is_shown in causes if is_shown}
    assert len([name for name, is_shown in causes if is_shown]) == len({name for name, _ in causes})
    texts = page.locator("#chart .legendtext").evaluate_all("texts => texts.map(t => t.textContent)")
    assert set(texts) >= {name for name, _ in causes}


@needs_browser
def test_what_the_terminal_says_of_throttling_stands_in_the_page(page: Page, rehearsal: Rehearsal) -> None:
    page.select_option("#run", index=1)
    lines = page.locator("#advice li").all_inner_texts()
    assert lines == advice(rehearsal.runs[1])
    assert lines[0].startswith("worst minute: Mon 2026-11-02 ")
    assert any(line.startswith("cause: index, ") for line in lines)
    page.select_option("#run", index=0)
    heads = page.locator("thead th").all_inner_texts()
    assert heads[-2:] == ["decreases", "refused"]
    assert page.locator("tr[data-run='0'] td").all_inner_texts()[-1] == str(rehearsal.runs[0].refused_decreases)


def test_what_became_of_a_job_stands_in_the_page(tmp_path: Path) -> None:
    job = PlannedJob(dimension=WRITE, rate=30, units=9_000, at=time(0, 20))
    rehearsed = rehearse(table(tracked(low=100)), scenario("constant"), jobs=[job])
    write_page(rehearsed, tmp_path / "report.html")
    (line,) = job_lines(rehearsed.declared)
    assert line.startswith("job write=30 at 00:20 for 9000 units, 2026-11-02: done in 0:05:00, ")
    assert f'"{line}"' in (tmp_path / "report.html").read_text()


@needs_browser
def test_high_ceiling_does_not_flatten_the_curves(page: Page) -> None:
    shown = page.evaluate("document.getElementById('chart').data.filter(t => t.name === 'ceiling').map(t => t.visible)")
    assert shown == ["legendonly", "legendonly"], "40,000 above a demand of 4,000"
    top = page.evaluate("document.getElementById('chart')._fullLayout.yaxis.range[1]")
    assert 4_000 < top < 8_000


@needs_browser
def test_diamonds_of_a_fortnight_are_thinned_until_the_reader_zooms_in(page: Page, tmp_path: Path) -> None:
    setup = table(tracked(low=10, target=50))
    minutes = 14 * 1440
    traffic = writes(*(600 if minute // 30 % 2 else 60 for minute in range(minutes)))
    write_page(rehearse(setup, traffic), tmp_path / "r.html")
    count = "document.getElementById('chart').data.find(t => t.name === 'why').x.length"
    browser = page.context.browser
    assert browser is not None
    busy = browser.new_page(viewport={"width": 1200, "height": 900})
    busy.goto((tmp_path / "r.html").as_uri())
    busy.wait_for_selector("#chart .main-svg")
    assert busy.evaluate("figures[0].data.find(t => t.name === 'why').x.length") > 300
    assert 40 < busy.evaluate(count) <= 80
    told = busy.evaluate(count.replace(".x.length", ".text"))
    assert any(re.search(r"<br>and \d+ more changes: zoom in$", text) for text in told)
    busy.screenshot(path=tmp_path / "r.png")
    times = busy.evaluate("figures[0].data.find(t => t.name === 'why').x")
    span = [times[100], times[130]]
    busy.evaluate("span => Plotly.relayout('chart', {'xaxis.range': span})", span)
    busy.wait_for_function(
        "span => document.getElementById('chart').data.find(t => t.name === 'why')"
        ".x.every(at => at >= span[0] && at <= span[1])",
        arg=span,
    )
    assert 31 <= busy.evaluate(count) <= 80
    assert not any("more changes" in text for text in busy.evaluate(count.replace(".x.length", ".text")))
    busy.close()


@needs_browser
def test_page_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        page.wait_for_function("() => !document.getElementById('more').hidden")
        assert page.is_visible("text=swipe it to the left")
        page.wait_for_function("() => document.querySelector('#chart .main-svg').getBoundingClientRect().width <= 390")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        page.set_viewport_size({"width": 1200, "height": 1000})
    page.wait_for_function("() => document.getElementById('more').hidden")


def test_data_in_the_page_cannot_end_its_script(page_file: Path) -> None:
    text = page_file.read_text()
    data = re.search(r"^const figures = (.*);$", text, re.MULTILINE)
    assert data is not None
    assert "</" not in data[1]
    assert len(json.loads(data[1])) == 3


def test_long_runs_are_thinned_and_keep_peaks_and_throttles() -> None:
    rates = [5] * 10_000
    rates[7_777] = 90_000
    run = run_policy("fixed:10", table(), writes(*rates))
    (target,) = shown_targets(run)
    drawn = curves(run, target, most_points=1_000)
    assert (drawn.minutes_per_point, len(drawn.times)) == (10, 1_000)
    assert max(drawn.demand) == 90_000
    throttled = sum(sum(values) for values in drawn.throttled.values())
    assert throttled == pytest.approx(run.throttled_units)


def test_steps_are_told_at_each_time() -> None:
    run = run_policy("declared", table(tracked(low=100)), writes(*[50] * 5, *[95] * 10))
    drawn = curves(run, run.target(WRITE))
    assert drawn.provisioned is not None
    assert drawn.provisioned.at_each(drawn.times) == [100] * 11 + [136] * 4
    assert drawn.floor is not None
    assert set(drawn.floor.at_each(drawn.times)) == {100}
    idle = run_policy("declared", table(tracked()), writes(0, 0))
    assert [target.dimension for target in shown_targets(idle)] == [WRITE], "READ is left out where nothing is asked"
    assert READ is not WRITE


def test_picture_is_a_png_of_some_size(rehearsal: Rehearsal, tmp_path: Path) -> None:
    path = tmp_path / "report.png"
    write_picture(rehearsal, path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
    assert width > 1_000
    assert height > 800, "a panel for the table's writes and one for the index's"
