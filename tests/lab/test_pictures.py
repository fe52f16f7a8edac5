"""Pictures of plans."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from PIL import Image

from highwater.core import Capacity, Plan, Window
from highwater_lab.pictures import save_png, terminal_chart

ZONE = ZoneInfo("America/New_York")
MONDAY = datetime(2027, 2, 1, tzinfo=ZONE)
PLAN = Plan(
    read=Capacity.fixed(units=7),
    write=Capacity.autoscaled(min_capacity=100, max_capacity=20_000),
    windows=(
        Window.weekly(
            "load", days="MON-FRI", start="05:00", end="11:00", timezone="America/New_York", write_min=18_000
        ),
    ),
)


def test_terminal_chart_shows_the_window_on_its_days_under_the_ceiling() -> None:
    chart = terminal_chart(PLAN.targets()[1], MONDAY, 7, ZONE, 66).plain.splitlines()
    assert chart[0].startswith("20,000 ┬")
    assert chart[0].endswith(" ceiling")
    top, bottom = chart[1].split("│")[1], chart[6].split("│")[1]
    width = len(top) // 7
    days = [top[day * width : (day + 1) * width] for day in range(7)]
    assert [bool(day.strip()) for day in days] == [True] * 5 + [False] * 2
    assert days[0][0] == " ", "nothing before 04:55"
    assert set(bottom) == {"█"}, "the base floor is never nothing"
    assert " ".join(chart[7].split("└")[1].split()) == "Mon 01 Tue 02 Wed 03 Thu 04 Fri 05 Sat 06 Sun 07"


def test_terminal_chart_of_the_smallest_capacity_is_drawn() -> None:
    plan = Plan(read=Capacity.fixed(units=1), write=Capacity.autoscaled(min_capacity=1, max_capacity=1))
    assert terminal_chart(plan.targets()[0], MONDAY, 2, ZONE, 20).plain.splitlines()[0].startswith("1 ┬")


def test_png_has_a_panel_for_each_target_and_is_not_blank(tmp_path: Path) -> None:
    path = tmp_path / "below" / "plan.png"
    save_png(PLAN, "Shop/Orders", MONDAY, 7, ZONE, path)
    with Image.open(path) as picture:
        assert picture.size[0] > 1_000
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 20)
    assert colours is not None
    assert len(colours) > 50
