"""Boosts in a rehearsal: capacity is there before the job, whoever holds the floors, and gone after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Dimension, Plan
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.rehearse import PlannedBoost, RehearsalError, Workload, rehearse
from highwater_lab.rehearse.jobs import leases_of
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import Run, TableSetup
from highwater_lab.traffic import Traffic
from tests.simulation.tables import START, table, tracked, writes

# three hours: 60 units a second, for which a new table needs less than its floor of 100, and from minute 60 on forty
# minutes of a load of 3,000
LOAD = writes(*[60] * 60, *[3_000] * 40, *[60] * 80)
JOB_AT = START + timedelta(minutes=56)


def boost(**changed: Any) -> PlannedBoost:
    given: dict[str, Any] = {
        "dimension": Dimension.WRITE,
        "units": 4_300,
        "at": JOB_AT,
        "length": timedelta(minutes=45),
    }
    return PlannedBoost(**(given | changed))


def scaled(mode: Mode) -> TableSetup:
    plan = Plan(read=Capacity.fixed(1), write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000))
    target = tracked(low=100, high=9_000)
    return table(
        target if mode is Mode.FLOOR else replace(target, tracking=None),
        scaler=ScaledPlan(table="orders", mode=mode, plan=plan),
    )


SETUPS = {
    "alone": table(tracked(low=100, high=9_000)),
    "with the scaler": scaled(Mode.FLOOR),
    "with the scaler in DIRECT mode": scaled(Mode.DIRECT),
}


def capacity_at(run: Run, minute: int) -> int:
    return list(run.target(Dimension.WRITE).capacity_by_minute())[minute]


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
def test_job_that_asks_before_it_starts_is_not_throttled_and_leaves_nothing_behind(setup: TableSetup) -> None:
    without = rehearse(setup, LOAD).declared
    boosted = rehearse(setup, LOAD, workload=Workload(boosts=[boost()])).declared
    assert without.throttled_units > 50_000
    assert boosted.throttled_units == 0
    assert capacity_at(boosted, 59) >= 4_300
    floors = {at // 60: low for at, low, _ in boosted.target(Dimension.WRITE).bounds}
    if setup.scaler is None or setup.scaler.mode is Mode.FLOOR:
        assert floors[56] == 4_400, "the boost on top of the plan's floor of 100"
        assert list(floors.values())[-1] < 4_400, "and no longer after it"
    else:
        assert capacity_at(boosted, 179) < 4_300


def test_floor_after_a_boost_is_the_one_before() -> None:
    run = rehearse(SETUPS["alone"], LOAD, workload=Workload(boosts=[boost()])).declared
    assert [(at // 60, low) for at, low, _ in run.target(Dimension.WRITE).bounds] == [(0, 100), (56, 4_400), (101, 100)]


def test_two_boosts_at_once_add_up_and_stay_below_the_ceiling() -> None:
    more = boost(units=700, at=JOB_AT + timedelta(minutes=10), length=timedelta(minutes=5))
    total = boost(units=8_000, is_total=True, at=JOB_AT + timedelta(minutes=20), length=timedelta(minutes=5))
    huge = boost(units=50_000, at=JOB_AT + timedelta(minutes=30), length=timedelta(minutes=5))
    run = rehearse(SETUPS["alone"], LOAD, workload=Workload(boosts=[boost(), more, total, huge])).declared
    assert [(at // 60, low) for at, low, _ in run.target(Dimension.WRITE).bounds] == [
        (0, 100),
        (56, 4_400),
        (66, 5_100),
        (71, 4_400),
        (76, 8_000),
        (81, 4_400),
        (86, 9_000),
        (91, 4_400),
        (101, 100),
    ]


def test_window_that_opens_during_a_boost_is_boosted_too() -> None:
    """The scheduled action sets the window's own floor; the next turn puts the boost on top again."""
    origin, zone = datetime(2000, 1, 1, tzinfo=UTC), ZoneInfo("UTC")

    def action(name: str, minute: int, units: int) -> ScheduledChange:
        at = START + timedelta(minutes=minute)
        expression = parse_expression(f"at({at:%Y-%m-%dT%H:%M:%S})", zone, origin)
        return ScheduledChange(name=name, expression=expression, min=units, max=None, start=None, end=None)

    target = tracked(low=100, high=9_000, actions=(action("open", 70, 600), action("close", 80, 100)))
    run = rehearse(table(target), LOAD, workload=Workload(boosts=[boost()])).declared
    floors = [(at // 60, low) for at, low, _ in run.target(Dimension.WRITE).bounds]
    assert (70, 4_900) in floors
    assert (80, 4_400) in floors
    assert floors[-1] == (101, 100)


def test_job_of_every_day_boosts_every_day() -> None:
    traffic = Traffic.from_counts("long", {next(iter(LOAD.rates)): [60.0] * 3 * 1440}, bin_seconds=60, start=START)
    daily = boost(at=time(2, 30), length=timedelta(hours=10))
    found = leases_of([daily, boost(units=5)], "orders", traffic)
    first = START.replace(hour=2, minute=30)
    days = [first + timedelta(days=day) for day in (0, 1, 2, 3)]
    starts = [start for start in days if start < START + timedelta(days=3)]
    assert [(lease.units, lease.start) for lease in found if lease.units > 5] == [(4_300, start) for start in starts]
    assert {lease.end - lease.start for lease in found if lease.units > 5} == {timedelta(hours=10)}
    assert len({lease.id for lease in found}) == len(found)
    assert daily.label == "write=4300 at 02:30 for 600m"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"index": "by_state", "units": 5}, "boost by_state.write=5 at 2026-11-03T10:56 for 45m: nothing scales that "),
        (
            {"dimension": Dimension.READ, "is_total": True},
            "boost read=4300 in total at 2026-11-03T10:56 for 45m: nothing scales that ",
        ),
    ],
)
def test_boost_of_what_nothing_scales_is_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RehearsalError) as refused:
        rehearse(SETUPS["alone"], LOAD, workload=Workload(boosts=[boost(**changed)]))
    assert str(refused.value) == f"{message}capacity of Orders, so a boost cannot raise it; declare it as autoscaled"
