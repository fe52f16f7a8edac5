"""What a template declares, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Plan, Window
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.report.plan import change_lines, declared_text, mode_text, plan_lines, zone_of
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import Buffer, ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.simulation.setup import ReplicaSetup
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


def _plan(floor: int = 70, windows: tuple[Window, ...] = (), **more: Any) -> TableSetup:
    write = Capacity.autoscaled(**{"min_capacity": floor, "max_capacity": 900} | more)
    return table_of(Plan(read=Capacity.fixed(30), write=write, windows=windows), "Orders")


SALE = Window.weekly("sale", days="FRI", start="17:00", end="20:00", timezone="Europe/Berlin", write_min=400)
SALE_PLAN = Plan(
    read=Capacity.fixed(30),
    write=Capacity.autoscaled(min_capacity=70, max_capacity=900),
    windows=(SALE,),
)
CALM = _plan()
GLOBAL = replace(CALM, replicas=(ReplicaSetup(region="us-east-1", read_units=30),))


def _on_demand(read: int | None, write: int | None, *index_writes: int | None) -> TableSetup:
    """CALM on demand, with these maximums, and an index for each of *index_writes* with that maximum."""
    own = replace(CALM.resources[0], max_read_units=read, max_write_units=write)
    indexes = [replace(CALM.resources[0], index="by_status", max_write_units=units) for units in index_writes]
    return replace(CALM, is_on_demand=True, resources=(own, *indexes))


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (CALM, replace(CALM, notes=("other",), name="x"), []),
        (CALM, _plan(200), ["write floor 70 → 200 WCU"]),
        (
            CALM,
            _plan(50, max_capacity=1_200, target_utilization_percent=60, scale_in_cooldown=timedelta(minutes=2)),
            ["write floor 70 → 50 WCU, ceiling 900 → 1,200 WCU, target 70 → 60 %, scale-in cooldown 0 → 120 s"],
        ),
        (CALM, _plan(disable_scale_in=True), ["write scale-in disabled"]),
        (
            table_of(Plan(read=Capacity.fixed(30), write=Capacity.fixed(150)), "Orders"),
            CALM,
            ["write 150 units → 70-900 at 70 %"],
        ),
        (
            CALM,
            _plan(windows=(SALE,)),
            [
                "scheduled action added: 16:55 FRI Europe/Berlin, floor 400, ceiling 900 (write)",
                "scheduled action added: 20:00 FRI Europe/Berlin, floor 70, ceiling 900 (write)",
                "high-water mark none → table 30 reads, 400 writes",
            ],
        ),
        (
            CALM,
            _on_demand(4_000, 5_000),
            [
                "mode provisioned, read 30 units, write 70-900 at 70 % → on demand, at most 4,000 reads and 5,000 "
                "writes a second"
            ],
        ),
        (
            _on_demand(None, 5_000),
            replace(CALM, is_on_demand=True),
            ["mode on demand, at most 5,000 writes a second → on demand"],
        ),
        (
            _on_demand(None, None, None),
            _on_demand(None, None, 50),
            ["index 'by_status' no maximum → at most 50 writes a second"],
        ),
        (CALM, replace(CALM, is_infrequent_access=True), ["table class Standard → Standard-IA"]),
        (CALM, GLOBAL, ["replica us-east-1 added"]),
        (GLOBAL, CALM, ["replica us-east-1 removed"]),
        (
            GLOBAL,
            replace(GLOBAL, replicas=(ReplicaSetup(region="us-east-1", read_units=50),)),
            ["replica us-east-1 reads 30 → 50 RCU"],
        ),
        (
            CALM,
            replace(CALM, buffer=Buffer(units=500, drain_seconds=3_600)),
            ["queue before its writes none → 500 write units a second"],
        ),
        (CALM, replace(CALM, burst_seconds=60), ["burst seconds differs"]),
        (
            CALM,
            replace(CALM, scaler=ScaledPlan(table="orders", mode=Mode.FLOOR, plan=SALE_PLAN)),
            [
                "Highwater's scaler added, in mode floor",
                "window sale added: FRI 17:00-20:00 Europe/Berlin, write floor 400",
            ],
        ),
    ],
)
def test_change_of_a_declaration_is_told_in_words(old: TableSetup, new: TableSetup, lines: list[str]) -> None:
    assert change_lines(old, new) == lines


def test_change_of_a_table_with_indexes_names_what_it_is_of() -> None:
    def with_index(floor: int, index_floor: int, name: str = "by_day") -> TableSetup:
        index = ResourceSetup(index=name, read=TargetSetup.fixed(3), write=tracked(index_floor, 900))
        return table(tracked(floor, 900), indexes=(index,))

    assert change_lines(with_index(70, 70), with_index(90, 90)) == ["write floor 70 → 90 WCU (table, index 'by_day')"]
    assert change_lines(with_index(70, 70), with_index(70, 90)) == ["write floor 70 → 90 WCU (index 'by_day')"]
    assert change_lines(with_index(70, 70), with_index(70, 70, "by_hour")) == [
        "index 'by_hour' added",
        "index 'by_day' removed",
    ]


def test_schedule_that_changes_much_is_cut() -> None:
    windows = tuple(
        Window.weekly(day, days=day, start=f"1{number}:00", end="20:00", timezone="UTC", write_min=400)
        for number, day in enumerate(("MON", "TUE", "WED", "THU"))
    )
    lines = change_lines(CALM, _plan(windows=windows))
    assert len(lines) == 6
    assert lines[4].endswith(" more changes of the schedule")


def test_mode_is_told_with_what_it_declares() -> None:
    assert mode_text(CALM) == "provisioned, read 30 units, write 70-900 at 70 %"
    assert mode_text(replace(CALM, is_on_demand=True)) == "on demand"
