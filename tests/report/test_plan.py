"""What a template declares, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Plan, Window
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.report.plan import declared_text, plan_lines, zone_of
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.plans import table_of
from tests.simulation.tables import READ, WRITE, table, tracked, writes


def test_window_of_a_plan_is_told_once_for_all_that_it_scales() -> None:
    plan = Plan(
        read=Capacity.fixed(30),
        write=Capacity.autoscaled(min_capacity=70, max_capacity=900),
        windows=(
            Window.weekly("sale", days="MON-FRI", start="09:00", end="17:30", timezone="Europe/Berlin", write_min=400),
        ),
    )
    setup = table_of(plan, "Orders")
    assert plan_lines(setup) == [
        "08:55 MON-FRI Europe/Berlin, floor 400, ceiling 900: table write",
        "17:30 MON-FRI Europe/Berlin, floor 70, ceiling 900: table write",
        "high-water mark: table 30 reads, 400 writes",
    ]
    assert zone_of(setup) == "Europe/Berlin"


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("at(2026-12-24T18:00:00)", "once, Thu 2026-12-24 18:00 UTC, floor 50: table write, index 'by_day' write"),
        ("rate(2 hours)", "every 2:00:00, floor 50: table write, index 'by_day' write"),
        (
            "cron(0,30 6-8 * * ? *)",
            "06:00, 06:30, 07:00, 07:30 and 2 more times every day UTC, floor 50: table write, index 'by_day' write",
        ),
        ("cron(15 4 1 6 ? 2027)", "04:15 day 1 month 6 2027 UTC, floor 50: table write, index 'by_day' write"),
    ],
)
def test_each_form_of_schedule_is_told(expression: str, line: str) -> None:
    parsed = parse_expression(expression, ZoneInfo("UTC"), datetime(2026, 11, 2, tzinfo=UTC))
    action = ScheduledChange(name="open", expression=parsed, min=50, max=None)
    write = replace(tracked(low=7), actions=(action,))
    index = ResourceSetup(index="by_day", read=TargetSetup.fixed(3), write=write)
    setup = table(write, indexes=(index,))
    assert plan_lines(setup)[:-1] == [line]
    assert zone_of(setup) is None


def test_scaler_and_the_windows_that_it_opens_are_told() -> None:
    windows = (
        Window.daily("import", start="03:00", end="04:30", timezone="Asia/Tokyo", write_min=1_800, write_max=9_000),
        Window.once("launch", start="2026-11-05T08:00", end="2026-11-05T20:00", timezone="UTC", read_min=60),
    )
    plan = Plan(
        read=Capacity.autoscaled(min_capacity=5, max_capacity=80),
        write=Capacity.autoscaled(min_capacity=6, max_capacity=8_000),
        windows=windows,
    )
    setup = TableSetup(
        name="Orders",
        resources=(ResourceSetup(index=None, read=tracked(5, 80), write=tracked(6, 8_000)),),
        scaler=ScaledPlan(table="orders", mode=Mode.FLOOR, plan=plan),
    )
    assert plan_lines(setup) == [
        "Highwater's scaler, in mode floor",
        "window import: every day 03:00-04:30 Asia/Tokyo, write floor 1,800, write ceiling 9,000",
        "window launch: 2026-11-05T08:00-2026-11-05T20:00 UTC, read floor 60",
    ]
    assert zone_of(setup) == "Asia/Tokyo"


def test_capacity_is_told_as_it_is_declared() -> None:
    setup = table(tracked(low=40, high=900, target=55))
    run = run_policy("declared", setup, writes(3, 4))
    assert declared_text(setup, run.target(WRITE)) == "40-900 at 55 %"
    assert declared_text(setup, run.target(READ)) == "5 units"
    unscaled = table(TargetSetup(units=40, min=40, max=900))
    assert declared_text(unscaled, run.target(WRITE)) == "40-900"
    assert declared_text(replace(setup, is_on_demand=True), run.target(READ)) == "on demand"
