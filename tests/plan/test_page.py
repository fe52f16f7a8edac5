"""The planner as people meet it: dragged in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from highwater_lab.plan.engine import Engine
from highwater_lab.plan.server import PlannerServer
from highwater_lab.services.prices import load_prices
from highwater_lab.traffic import Stream, Traffic
from tests.plan.test_engine import ENGINE
from tests.report.test_page import BROWSER, needs_browser
from tests.simulation.tables import READ, START, WRITE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_browser
ANSWERED = "body[data-state=answered]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with PlannerServer(ENGINE) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(params=[(1_280, 800), (390, 844)], ids=["desk", "phone"])
def page(browser: Browser, url: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height = request.param
    context = browser.new_context(
        viewport={"width": width, "height": height},
        timezone_id="America/New_York",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    # the browser itself notes a plan that is refused
    page.on("console", lambda message: None if "status of 422" in message.text else problems.append(message.text))
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(url)
    page.wait_for_selector(ANSWERED)
    yield page
    assert problems == []
    assert {each.removeprefix(url) for each in asked} <= {"", "opening", "simulate"}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def place(page: Page, part: str) -> tuple[float, float, float]:
    """The middle and the width of a part's last rectangle, once nothing is to be drawn: a drawing replaces them all."""
    page.locator("#chart").scroll_into_view_if_needed()
    found: list[float] = page.evaluate(
        "async part => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);"
        " const box = [...document.querySelectorAll('#chart ' + part)].at(-1).getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2, box.width]; }",
        part,
    )
    return found[0], found[1], found[2]


def drag(page: Page, part: str, right: float, down: float) -> None:
    """Drag a part of the chart by pixels."""
    x, y, _ = place(page, part)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=3)
    page.mouse.up()
    page.wait_for_selector(ANSWERED)


def dollars(page: Page) -> int:
    return int(page.inner_text("#usd").removeprefix("$").replace(",", ""))


def code(page: Page) -> str:
    return page.inner_text("#code")


def test_floor_is_dragged_and_throttles_dollars_and_code_follow(page: Page) -> None:
    assert page.inner_text("h1") == "A plan for made"
    usd, throttled = dollars(page), page.inner_text("#throttled")
    assert throttled.endswith("% of the requested units")
    drag(page, "[data-part=floor] rect", 0, -400)
    assert page.input_value("#floor") == "1300", "a floor is not above its ceiling"
    assert page.inner_text("#throttled") == "nothing"
    assert dollars(page) > usd
    assert "write=Capacity.autoscaled(min_capacity=1_300, max_capacity=1_300)," in code(page)
    page.click("#copy")
    page.wait_for_selector("#copy:text('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == code(page)


def test_ceiling_and_target_are_dragged(page: Page) -> None:
    drag(page, "[data-part=target] rect", 0, 400)
    assert page.input_value("#target") == "20"
    drag(page, "[data-part=ceiling] rect", 0, 400)
    assert page.input_value("#ceiling") == "100", "a ceiling is not below its floor"
    assert "Capacity.autoscaled(min_capacity=100, max_capacity=100, target_utilization_percent=20)" in code(page)


def test_window_is_dragged_through_the_day_by_its_middle_sides_and_top(page: Page) -> None:
    page.click("#add-window")
    page.wait_for_selector(ANSWERED)
    # where most is throttled
    line = 'Window.weekly("write-window-1", days="MON-SUN", start="13:00", end="14:00", timezone="Europe/Berlin", '
    assert line + "write_min=700)" in code(page)
    hour = place(page, "[data-part=middle]")[2] / (1 + 5 / 60)
    drag(page, "[data-part=middle]", -hour, 0)
    assert 'start="12:00", end="13:00"' in code(page)
    drag(page, "[data-part=end]", hour, 0)
    assert 'start="12:00", end="14:00"' in code(page)
    drag(page, "[data-part=start]", hour / 2, 0)
    assert 'start="12:30", end="14:00"' in code(page)
    drag(page, "[data-part=top]", 0, -400)
    assert "write_min=1_300" in code(page)
    assert page.inner_text("#throttled") == "nothing"
    page.select_option("select", "MON-FRI")
    page.wait_for_selector(ANSWERED)
    assert 'days="MON-FRI"' in code(page)
    page.click("text=remove")
    page.wait_for_selector(ANSWERED)
    assert "Window" not in code(page)


def test_times_of_a_window_have_24_hours_and_their_zone_and_all_is_within_the_screen(page: Page) -> None:
    page.click("#add-window")
    page.wait_for_selector(ANSWERED)
    assert [page.input_value(f".time >> nth={number}") for number in (0, 1)] == ["13:00", "14:00"]
    assert page.get_attribute(".time", "aria-label") == "start, Europe/Berlin"
    page.fill(".time", "12:30")
    page.press(".time", "Enter")
    page.wait_for_selector(ANSWERED)
    assert 'start="12:30", end="14:00"' in code(page)
    width = page.evaluate("innerWidth")
    for cell in page.locator("#plan-parts td").all():
        box = cell.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    # the chart has both clocks, and the pointer on the button opens nothing over it
    texts = page.locator("#chart text").all_text_contents()
    assert {"UTC", "local", "12:00", "13:00"} <= set(texts)
    assert page.is_hidden("#tip")


def test_boost_is_dragged_and_is_in_the_jobs_code(page: Page) -> None:
    page.click("#add-boost")
    page.wait_for_selector(ANSWERED)
    assert "2026-11-03T12:00 UTC" in code(page)
    assert 'highwater.boost("table", write_total=700, minutes=120)' in code(page)
    drag(page, "[data-part=middle]", -place(page, "[data-part=middle]")[2], 0)
    assert "2026-11-03T10:00 UTC" in code(page)
    assert page.is_disabled("#add-boost")
    assert page.input_value(".stamp") == "2026-11-03T10:00"
    page.fill(".stamp", "")
    page.press(".stamp", "Enter")
    page.wait_for_selector(ANSWERED)
    assert page.inner_text("#problem") == (
        "boost start: got '', allowed: a time of the traffic in UTC, 2026-11-03T10:00 to 2026-11-03T15:59"
    )


def test_size_that_cannot_work_is_one_line_until_it_is_put_right(page: Page) -> None:
    before = page.inner_text("#verdict")
    page.fill("#floor", "0")
    page.press("#floor", "Enter")
    page.wait_for_selector(ANSWERED)
    assert page.inner_text("#problem") == (
        "plan: table write min_capacity: got 0, allowed: whole units per second, 1 or more; give 1 for the lowest "
        "capacity [highwater:unitsNotPositive]"
    )
    page.fill("#floor", "100")
    page.press("#floor", "Enter")
    page.wait_for_selector(ANSWERED)
    assert page.is_hidden("#problem")
    assert page.inner_text("#verdict") == before


def test_writes_and_reads_are_shown_one_at_a_time(browser: Browser) -> None:
    counts = {Stream(None, READ): [1_500] * 30, Stream(None, WRITE): [600] * 30}
    traffic = Traffic.from_counts("<two>", counts, bin_seconds=60, start=START)
    with PlannerServer(Engine(traffic=traffic, prices=load_prices())) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        page = browser.new_page()
        page.goto(server.url)
        page.wait_for_selector(ANSWERED)
        assert page.inner_text("h1") == "A plan for <two>"
        assert page.input_value("#floor") == "15", "10 units/s at 70 %"
        page.click("text=add a window")
        page.wait_for_selector(ANSWERED)
        assert page.locator("#chart [data-part=middle]").count() == 1
        page.click("button[value=read]")
        page.wait_for_selector("#chart:not(:has([data-part=middle]))")
        assert page.input_value("#floor") == "36", "25 units/s at 70 %"
        page.fill("#floor", "37")
        page.press("#floor", "Enter")
        page.wait_for_selector(ANSWERED)
        assert "read=Capacity.autoscaled(min_capacity=37," in code(page)
        assert "write=Capacity.autoscaled(min_capacity=15," in code(page)
        page.close()
        server.shutdown()


def test_part_of_the_time_says_so_and_a_window_goes_where_most_is_throttled(browser: Browser) -> None:
    rates = [60 * 100] * (1_440 * 9)
    # the eighth day has the only surge, out of sight when the page opens
    rates[1_440 * 7 + 600 : 1_440 * 7 + 660] = [60 * 900] * 60
    traffic = Traffic.from_counts("nine", {Stream(None, WRITE): rates}, bin_seconds=60, start=START)
    with PlannerServer(Engine(traffic=traffic, prices=load_prices())) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for width, days in ((1_280, 7), (390, 2)):
            page = browser.new_page(viewport={"width": width, "height": 844})
            page.goto(server.url)
            page.wait_for_selector(ANSWERED)
            until = "Tue 10" if days == 7 else "Thu 05"
            assert page.inner_text("#visible") == (
                f"Shown: {days} of 9 days, Tue 03 10:00 to {until} 10:00 UTC. ← and → move, “all” shows everything."
            )
            page.click("#add-window")
            page.wait_for_selector(ANSWERED)
            # the traffic begins at 10:00, so its surge is at 20:00
            assert 'start="20:00", end="23:00"' in code(page)
            first, last = page.evaluate("view")
            assert first <= 86_400 * 7 + 36_000 < last
            page.click("button[data-move=all]")
            assert page.is_hidden("#visible")
            assert page.locator("#chart text", has_text="local").count() == 0
            page.close()
        server.shutdown()
