"""The report as people meet it: opened in a real browser."""

from __future__ import annotations

import base64
import json
import random
import re
import shutil
import zlib
from collections.abc import Iterator
from datetime import time, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from highwater_lab.policies.catalogue import run_policy
from highwater_lab.rehearse import Limits, PlannedJob, Rehearsal, Workload, rehearse
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import curves, shown_targets, write_picture
from highwater_lab.report.terminal import advice, share_text, work_lines
from highwater_lab.simulation import ResourceSetup, TableSetup
from highwater_lab.traffic import Stream, Traffic, scenario
from tests.simulation.tables import READ, START, WRITE, table, tracked, writes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; Debian's package has it")


@pytest.fixture(scope="module")
def rehearsal() -> Rehearsal:
    index = ResourceSetup(index="by_status", read=tracked(), write=tracked(low=200))
    setup = table(tracked(low=100), indexes=(index,))
    named = TableSetup(name="Orders </script><b>", resources=setup.resources, notes=("a note & more",))
    return rehearse(named, scenario("step"), compare=["native:50", "on-demand", "clairvoyant"])


@pytest.fixture(scope="module")
def page_file(rehearsal: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(rehearsal, path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


def opened(browser: Browser, file: Path, width: int = 1_280, height: int = 800) -> Page:
    """The page in a browser in New York, which notes its errors and requests."""
    page = browser.new_page(viewport={"width": width, "height": height}, timezone_id="America/New_York")
    page.add_init_script("window.problems = []; addEventListener('error', e => problems.push(e.message));")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.evaluate("asked => { window.asked = asked }", asked)
    return page


@pytest.fixture(scope="module")
def page(browser: Browser, page_file: Path) -> Page:
    page = opened(browser, page_file)
    page.wait_for_selector("body[data-ready]")
    return page


def hover(page: Page, number: int, part: float) -> str:
    """What is told where the pointer rests on a chart, at that part of its width."""
    canvas = page.locator("canvas").nth(number)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 48 + (box["width"] - 54) * part, box["y"] + 50)
    return page.inner_text("#tip")


def colours(page: Page, number: int) -> set[tuple[int, ...]]:
    """All colours that are drawn in a chart."""
    found = page.evaluate(
        "async number => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);"
        " const c = document.querySelectorAll('canvas')[number];"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, found = new Set();"
        " for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) found.add(`${d[i]},${d[i + 1]},${d[i + 2]}`);"
        " return [...found]; }",
        number,
    )
    return {tuple(map(int, each.split(","))) for each in found}


DECLARED, NATIVE = (0xC0, 0x39, 0x2B), (0x7D, 0x3C, 0xBA)


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
@pytest.mark.parametrize(("width", "height"), [(1_280, 800), (390, 844)])
def test_first_screen_has_verdict_dates_and_dollars(
    browser: Browser, page_file: Path, rehearsal: Rehearsal, width: int, height: int
) -> None:
    page = opened(browser, page_file, width, height)
    page.wait_for_selector("body[data-ready]")
    declared = rehearsal.declared
    assert page.inner_text(".verdict") == (
        f"As declared, Orders </script><b> costs ${declared.bill.per_month:,.0f} a month and throttles "
        f"{share_text(declared)} of the requested units (14 minutes, worst Mon 2026-11-02 01:00 UTC, Sun 20:00 "
        f"America/New_York). No compared policy costs less without throttling more."
    )
    assert page.inner_text(".verdict + p") == (
        "240 minutes, Mon 2026-11-02 00:00 UTC, Sun 19:00 America/New_York to Mon 2026-11-02 04:00 UTC, Sun 23:00 "
        "America/New_York; prices of us-east-1, 2026-11; without AWS Config: at most 13,140 items a month, 39.42 USD, "
        "if it records the account; --config-recorder adds them."
    )
    for selector in (".verdict", ".verdict + p", "tr[data-row='0'] td:nth-child(2)", "#policies th:nth-child(2)"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height
    assert page.inner_text("#policies th:nth-child(2)") == "$/month"
    assert page.inner_text("tr[data-row='0'] td:nth-child(2)") == f"${declared.bill.per_month:,.2f}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@needs_browser
def test_phone_shows_all_columns_and_several_days_below_the_charts(browser: Browser, tmp_path: Path) -> None:
    index = ResourceSetup(index="by_status", read=tracked(), write=tracked(low=30))
    traffic = writes(*[10 + minute // 60 % 24 for minute in range(7 * 1_440)])
    write_page(rehearse(table(tracked(low=30), indexes=(index,)), traffic, compare=["on-demand"]), tmp_path / "r.html")
    page = opened(browser, tmp_path / "r.html", 390, 844)
    page.wait_for_selector("body[data-ready]")
    cells = page.locator("#policies td, #plan td").all()
    boxes = [box for cell in cells if (box := cell.bounding_box()) is not None]
    assert len(boxes) > 20
    assert all(0 <= box["x"] <= box["x"] + box["width"] <= 390 for box in boxes)
    labels = page.locator("tr[data-row='0'] td:visible").evaluate_all("all => all.map(each => each.dataset.label)")
    assert labels == [None, "$/month", "throttled", "minutes", "used", "decreases", "refused"]
    said = page.evaluate(
        "async () => { const said = [], old = CanvasRenderingContext2D.prototype.fillText;"
        " CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { said.push(text);"
        " old.call(this, text, ...at); };"
        " draw(report.targets[0]); CanvasRenderingContext2D.prototype.fillText = old; return said; }"
    )
    days = [each for each in said if re.fullmatch("[A-Z][a-z]{2} [0-9]{2}", each)]
    assert len(days) >= 3
    assert [each for each in said if re.fullmatch("[A-Z][a-z]{2} 19:00", each)], "the day before, in New York"
    page.close()


def test_parts_without_requests_have_no_chart_and_say_why(page_file: Path) -> None:
    assert (
        "<p>Nothing is requested of table read, index &#39;by_status&#39; read: without a chart, but what is "
        "provisioned is paid for.</p>"
    ) in page_file.read_text()


@needs_browser
def test_floor_and_ceiling_are_lines_that_leave_the_chart_clear(page: Page) -> None:
    clear = page.evaluate(
        "async () => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);"
        " const c = document.querySelector('canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let clear = 0; for (let i = 3; i < d.length; i += 4) clear += d[i] === 0; return clear / (d.length / 4); }"
    )
    assert clear > 0.4
    assert (0x1E, 0x84, 0x49) in colours(page, 0)


def test_limits_exceeded_stand_below_the_verdict(rehearsal: Rehearsal, tmp_path: Path) -> None:
    write_page(rehearsal, tmp_path / "r.html", Limits(max_cost_per_month=7).passed(rehearsal))
    cost = f"${rehearsal.cost_per_month:,.2f}"
    line = f"<p class='limit'>✗ the cost is {cost} a month, the limit is $7.00</p>"
    assert line in (tmp_path / "r.html").read_text()


def test_cheapest_policy_that_throttles_no_more_is_named(tmp_path: Path) -> None:
    policies = ["fixed:1300", "fixed:1200", "fixed:200", "clairvoyant"]
    rehearsed = rehearse(table(tracked(low=4_000)), scenario("constant"), compare=policies)
    write_page(rehearsed, tmp_path / "r.html")
    assert rehearsed.runs[4].bill.per_month < rehearsed.runs[2].bill.per_month, "but the clairvoyant cannot be deployed"
    found = re.search("<p class='verdict'>(.*)</p>", (tmp_path / "r.html").read_text())
    assert found is not None
    assert re.sub("<.*?>", "", found[1]) == (
        "As declared, Orders costs $1,899 a month and throttles nothing. fixed:1200 would cost $569, $1,329 less, and "
        "throttle nothing."
    )


@needs_browser
@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("declared", "What the template declares: its own capacity, auto scaling, windows and scaler."),
        (
            "clairvoyant",
            "The cheapest hourly capacities that throttle nothing, with all demand known in advance: a lower bound of "
            "the cost, which nobody can deploy.",
        ),
        (
            "refused",
            "Decreases of capacity that DynamoDB refused, because the day's allowed decreases were used up. Capacity "
            "stays high, and is paid for, until the next is allowed.",
        ),
    ],
)
def test_words_are_explained_on_hover(page: Page, word: str, meaning: str) -> None:
    page.locator("#policies abbr", has_text=re.compile(f"^{word}$")).hover()
    assert page.is_visible("#tip")
    assert page.inner_text("#tip") == meaning
    page.mouse.move(2, 2)
    assert page.is_hidden("#tip")


@needs_browser
def test_each_part_of_the_table_has_its_cost_and_what_is_declared(page: Page, rehearsal: Rehearsal) -> None:
    for number, run in enumerate(rehearsal.runs):
        page.click(f"tr[data-row='{number}'] td:nth-child(3)")
        rows = [
            row.locator("td").all_inner_texts()
            for row in page.locator(f"#plan tbody[data-of='{number}'] tr").all()
            if row.is_visible()
        ]
        assert page.locator("#plan tbody:visible").count() == 1
        assert [row[0] for row in rows[:4]] == [
            "table read",
            "table write",
            "index 'by_status' read",
            "index 'by_status' write",
        ]
        assert [row[2] for row in rows[:4]] == [
            "5 units",
            "100-40,000 at 70 %",
            "1-40,000 at 70 %",
            "200-40,000 at 70 %",
        ]
        assert (rows[-1][0], rows[-1][1]) == (run.policy, f"{run.bill.per_month:,.2f}")
        parts = sum(float(row[1].replace(",", "")) for row in rows[:-1])
        assert parts == pytest.approx(run.bill.per_month, abs=0.03)
    assert page.inner_text("#schedule") == ("high-water mark: table 40,000 reads, 40,000 writes")
    page.click("tr[data-row='0'] td:nth-child(3)")


@needs_browser
def test_policies_lie_over_each_other_and_can_be_hidden(page: Page) -> None:
    assert {DECLARED, NATIVE} <= colours(page, 0)
    page.uncheck("tr[data-row='1'] input")
    assert DECLARED in colours(page, 0)
    assert NATIVE not in colours(page, 0)
    assert "native:50" not in hover(page, 0, 0.5)
    page.check("tr[data-row='1'] input")
    assert NATIVE in colours(page, 0)


@needs_browser
def test_hover_tells_values_times_and_why_capacity_changed(page: Page) -> None:
    page.click("tr[data-row='0'] td:nth-child(3)")
    told = hover(page, 0, 0.1).split("\n")
    assert re.fullmatch(r"Mon 2026-11-02 00:2[34] UTC, Sun 19:2[34] America/New_York", told[0])
    assert told[1:4] == ["requested 1,000/s", "declared 1,429/s", "native:50 2,000/s"]
    assert told[5] == "floor 100, ceiling 40,000"
    diamonds = page.evaluate("report.targets[0].diamonds.map(each => each.x)")
    width = page.locator("canvas").first.evaluate("canvas => canvas.clientWidth")
    told = hover(page, 0, (diamonds[0] - 48) / (width - 54)).split("\n")
    assert any(line.startswith("scale-out: target tracking: ") for line in told)
    told = hover(page, 0, 60.5 / 240).split("\n")
    assert told[1:3] == ["requested 4,000/s", "declared 1,429/s throttled 120,000 units: index"]


@needs_browser
def test_only_what_throttles_has_a_strip(page: Page) -> None:
    strips = "report.targets.map(isThrottled)"
    assert page.evaluate("report.targets.length") == 2, "reads are left out where nothing is requested"
    assert page.evaluate(strips) == [True, True]
    page.evaluate("look(0, 1800)")
    assert page.evaluate(strips) == [False, False]
    page.click("button[data-move='all']")
    assert page.evaluate("view") == [0, 14_400]


@needs_browser
def test_drag_and_buttons_zoom_and_double_click_goes_back(page: Page) -> None:
    hover(page, 0, 0.25)
    page.mouse.down()
    hover(page, 0, 0.5)
    page.mouse.up()
    first, last = page.evaluate("view")
    assert (first, last) == (pytest.approx(3_600, abs=30), pytest.approx(7_200, abs=30))
    page.click("button[data-move='in']")
    assert page.evaluate("view[1] - view[0]") == pytest.approx((last - first) / 2)
    page.click("button[data-move='on']")
    assert page.evaluate("view[0]") > first
    page.locator("canvas").first.dblclick()
    assert page.evaluate("view") == [0, 14_400]


@needs_browser
def test_what_the_terminal_says_of_throttling_stands_in_the_page(page: Page, rehearsal: Rehearsal) -> None:
    page.click("tr[data-row='1'] td:nth-child(3)")
    lines = page.locator("ul[data-of]:visible li").all_inner_texts()
    said = advice(rehearsal.runs[1])
    assert lines[1:] == said[1:]
    assert lines[0].startswith("worst minute: Mon 2026-11-02 ")
    assert any(line.startswith("cause: index, ") for line in lines)
    page.click("tr[data-row='0'] td:nth-child(3)")
    heads = page.locator("#policies th").all_inner_texts()
    assert heads == ["policy", "$/month", "throttled", "minutes", "once, $", "used", "decreases", "refused"]
    assert page.locator("tr[data-row='0'] td").all_inner_texts()[-1] == str(rehearsal.runs[0].refused_decreases)


def test_what_became_of_a_job_stands_in_the_page(tmp_path: Path) -> None:
    job = PlannedJob(dimension=WRITE, rate=30, units=9_000, at=time(0, 20))
    rehearsed = rehearse(table(tracked(low=100)), scenario("constant"), workload=Workload(jobs=[job]))
    write_page(rehearsed, tmp_path / "report.html")
    (line,) = work_lines(rehearsed.declared)
    assert line.startswith("job write=30 at 00:20 for 9000 units, 2026-11-02: done in 0:05:00, ")
    assert f"<li>{line}</li>" in (tmp_path / "report.html").read_text()


@needs_browser
def test_fortnight_of_six_targets_is_small_and_its_diamonds_are_thinned(browser: Browser, tmp_path: Path) -> None:
    indexes = tuple(ResourceSetup(index=name, read=tracked(low=40), write=tracked(low=70)) for name in ("by_a", "by_b"))
    setup = table(tracked(low=90), indexes=indexes)
    chance, minutes = random.Random(7), 14 * 1440  # noqa: S311 - no secret
    counts = {
        Stream(index, dimension): [
            60 * (600 if (minute // 30 + phase) % 8 == 1 else 60) * chance.uniform(0.8, 1.2)
            for minute in range(minutes)
        ]
        for phase, (index, dimension) in enumerate(product((None, "by_a", "by_b"), (READ, WRITE)))
    }
    traffic = Traffic.from_counts("fortnight", counts, bin_seconds=60, start=START)
    file = tmp_path / "r.html"
    write_page(rehearse(setup, traffic, compare=["native:50", "on-demand", "clairvoyant"]), file)
    assert file.stat().st_size < 1_500_000
    page = opened(browser, file)
    page.wait_for_selector("body[data-ready]")
    assert page.locator("canvas").count() == 6
    assert page.evaluate("report.targets.map(target => target.demand.length)") == [minutes] * 6
    assert colours(page, 1) > {DECLARED, NATIVE}
    assert page.evaluate("report.targets[1].runs[0].why.length") > 300
    assert 40 < page.evaluate("report.targets[1].diamonds.length") <= 140
    assert page.evaluate("report.targets[1].diamonds.some(each => each.more > 0)")
    page.evaluate("look(86400, 86400 + 7200)")
    assert DECLARED in colours(page, 1)
    assert 0 < page.evaluate("report.targets[1].diamonds.length") < 20
    assert page.evaluate("report.targets[1].diamonds.every(each => each.more === 0)")
    page.close()


def test_data_in_the_page_cannot_end_its_script(page_file: Path) -> None:
    text = page_file.read_text()
    found = re.search(r"<script type='text/plain' id='data'>([A-Za-z0-9+/=]+)</script>", text)
    assert found is not None
    data = json.loads(zlib.decompress(base64.b64decode(found[1])))
    assert [run["name"] for run in data["runs"]] == ["declared", "native:50", "on-demand", "clairvoyant"]
    assert text.count("</script>") == 2


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


def test_steps_begin_where_capacity_changes_and_end_with_the_run() -> None:
    run = run_policy("declared", table(tracked(low=100)), writes(*[50] * 5, *[95] * 10))
    drawn = curves(run, run.target(WRITE))
    assert drawn.provisioned is not None
    changed, end = drawn.times[10], drawn.times[0] + timedelta(minutes=15)
    assert drawn.provisioned.values == (100, 136, 136)
    assert drawn.provisioned.times[0] == drawn.times[0]
    assert changed - timedelta(minutes=1) < drawn.provisioned.times[1] <= changed
    assert drawn.provisioned.times[2] == end
    assert drawn.floor is not None
    assert (drawn.floor.values, drawn.floor.times) == ((100, 100), (drawn.times[0], end))
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
