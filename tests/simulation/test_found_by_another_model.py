"""What a second, independent model of the same rules once gave other numbers for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Plan, Window, timeline
from highwater.core.throttles import ThrottleCause
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import EventKind, ResourceSetup, ScheduledChange, TableSetup, TargetSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import WRITE, table, tracked, writes

TEN_LATE = Timing(scheduled_least=10, scheduled_most=10)

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def _action(schedule: str, **more: object) -> ScheduledChange:
    expression = parse_expression(schedule, ZoneInfo("UTC"), MONDAY)
    return ScheduledChange(name="x", expression=expression, **({"min": None, "max": None} | more))  # type: ignore[arg-type]


def test_action_whose_start_is_a_run_of_its_schedule_runs_then() -> None:
    action = _action("cron(0 2 * * ? *)", min=3_000, start=MONDAY + timedelta(hours=2))
    run = run_policy("declared", table(tracked(actions=(action,))), writes(*[100] * 300, start=MONDAY), timing=TEN_LATE)
    assert run.target(WRITE).bounds == ((0, 1, 40_000), (7_210, 3_000, 40_000))


def test_weekly_window_that_a_one_off_window_splits_comes_again_the_week_after() -> None:
    weekly = Window.weekly(
        "week", days="MON", start="08:00", end="20:00", timezone="America/New_York", write_min=3_000, lead=timedelta(0)
    )
    sale = Window.once(
        "sale",
        start="2026-11-04T12:00",
        end="2026-11-05T00:00",
        timezone="UTC",
        write_min=5_000,
        lead=timedelta(0),
    )
    plan = Plan(
        read=Capacity.fixed(1), write=Capacity.autoscaled(min_capacity=100, max_capacity=20_000), windows=(weekly, sale)
    )
    days = 14
    run = run_policy("declared", table_of(plan, "t"), writes(*[60] * days * 1440, start=MONDAY), timing=TEN_LATE)
    declared = timeline(plan.targets()[1], MONDAY, MONDAY + timedelta(days=days))
    lateness = timedelta(seconds=10)
    seen = [(MONDAY + timedelta(seconds=at) - lateness, floor) for at, floor, _ in run.target(WRITE).bounds[1:]]
    assert seen == [(at, bounds.min) for at, bounds in declared if at > MONDAY]


@pytest.mark.parametrize(("minutes", "start"), [(60, MONDAY), (61, MONDAY), (20, MONDAY + timedelta(minutes=50))])
def test_on_demand_costs_the_same_a_month_however_long_the_stretch(minutes: int, start: datetime) -> None:
    run = run_policy("on-demand", table(), writes(*[1_000] * minutes, start=start))
    assert run.bill.per_month == pytest.approx(1_000 * 3_600 * 730 * 0.625 / 1e6)


def test_coarse_bins_are_scaled_before_they_are_rounded() -> None:
    counts = {Stream(None, WRITE): [1.0, 0.0, 0.0, 0.0, 0.0, 0.0] * 8}
    traffic = Traffic.from_counts("made", counts, bin_seconds=300, start=MONDAY).with_mean(1_000)
    assert [rate // 60 for rate in traffic.rates[Stream(None, WRITE)][:6]] == [6_000] * 5 + [0]
    fine = Traffic.from_counts("made", {Stream(None, WRITE): [3.0] * 12}, bin_seconds=10, start=MONDAY).scaled(40)
    assert [rate // 60 for rate in fine.rates[Stream(None, WRITE)]] == [12] * 120


@pytest.mark.parametrize("minute", [1, 2, 3])
def test_floor_that_rises_while_a_decrease_is_under_way_is_kept(minute: int) -> None:
    rates = [1_400] * 44 + [100] * 35 + [1_400] * 60
    action = _action(f"at(2026-11-02T01:0{minute}:00)", min=1_500)
    run = run_policy("declared", table(tracked(actions=(action,))), writes(*rates, start=MONDAY))
    target = run.target(WRITE)
    assert run.throttled_units == 0
    # back at the floor within an update's time and that of the one before
    assert all(units >= 1_500 for units in list(target.capacity_by_minute())[60 + minute + 2 :])


def test_account_quota_counts_what_was_granted_in_the_same_second() -> None:
    action = _action("at(2026-11-02T00:30:00)", min=39_000)
    target = tracked(actions=(action,))
    indexes = tuple(
        ResourceSetup(index=name, read=TargetSetup.fixed(1), write=target, warm_write_units=40_000)
        for name in ("by_day", "by_status")
    )
    run = run_policy("declared", table(target, indexes=indexes), writes(*[1_000] * 60, start=MONDAY))
    highest = sorted(max(t.capacity_by_minute()) for t in run.targets if t.dimension is WRITE)
    assert highest == [1_429, 39_000, 39_000]
    assert "the capacity is above the account's quota" in [e.text for e in run.events if e.kind is EventKind.REFUSED]


@pytest.mark.parametrize(("share", "opened", "fixed"), [(10, 143, 100), (300, 4_286, 3_000)])
def test_index_opens_with_its_share(share: int, opened: int, fixed: int) -> None:
    index = ResourceSetup(
        index="by_day",
        read=TargetSetup.fixed(1),
        write=tracked(),
        warm_write_units=40_000,
        write_share_percent=share,
    )
    setup = table(tracked(), indexes=(index,))
    for policy, units in (("native:70", opened), ("fixed", fixed)):
        run = run_policy(policy, setup, writes(*[1_000] * 60, start=MONDAY))
        assert run.target(WRITE, "by_day").capacity == ((0, units),)
        assert run.throttled_units == 0


def test_clairvoyant_throttles_what_even_the_quota_cannot_serve() -> None:
    run = run_policy("clairvoyant", table(), writes(*[60_000] * 120, start=MONDAY))
    # each hour the quota, and in the first a full bucket
    assert run.target(WRITE).consumed_units == 40_000 * (7_200 + 300 - 1)
    assert run.throttled_by_cause() == {ThrottleCause.PROVISIONED: 60_000 * 7_200 - 40_000 * 7_499}


def test_alarm_of_a_minute_sees_the_bounds_that_came_before_its_datapoint() -> None:
    action = _action("at(2026-11-02T01:00:00)", max=20_000)
    rates = [600] * 20 + [6_000] * 100
    run = run_policy(
        "declared", table(tracked(high=1_000, actions=(action,))), writes(*rates, start=MONDAY), timing=TEN_LATE
    )
    assert next(at for at, units in run.target(WRITE).capacity if units > 1_000) == 3_627


def test_monthly_schedule_holds_from_its_last_run_on() -> None:
    action = _action("cron(0 5 1 * ? *)", min=400)
    setup = TableSetup(name="Orders", resources=table(tracked(actions=(action,))).resources)
    run = run_policy("declared", setup, writes(*[100] * 60, start=MONDAY + timedelta(days=18)))
    assert run.target(WRITE).bounds == ((0, 400, 40_000),)
