"""The scaler's two modes in the simulator: the core's own decision, at the times at which the Lambda would run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from highwater_lab.policies.catalogue import find_policy, run_policy
from highwater_lab.simulation import simulate
from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.run import EventKind
from highwater_lab.traffic import Traffic
from highwater_lab.traffic.series import Stream
from tests.simulation.tables import START, WRITE, table, tracked, writes

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
QUIET, SURGE = [95] * 60, [380] * 20
_TABLE, _JUMP = table(tracked(low=10, target=70)), writes(*QUIET, *([950] * 40))


def test_floor_mode_sets_the_floor_when_the_first_datapoint_is_there() -> None:
    run = run_policy("highwater-floor", table(tracked(low=10, target=70)), writes(*QUIET, *SURGE))
    surge = 60 * 60
    floors = [(at - surge, floor) for at, floor, _ in run.target(WRITE).bounds if at >= surge]
    # minute 60 is over after 60 s, known after 120 more, and the scaler's alarm judged at second 25; capacity is there
    # after 2
    assert floors[0][0] == 205
    assert floors[0][1] >= 380
    raised = [(at - surge, units) for at, units in run.target(WRITE).capacity if at >= surge]
    assert raised[0][0] == 205 + 2


def test_floor_mode_leaves_the_headroom_of_the_target_utilization() -> None:
    # until ten minutes before an hour ends; two minutes before, capacity is lowered to the floor
    after = {
        name: run_policy(name, table(tracked(low=10, target=70)), writes(*([840] * 170))).target(WRITE).capacity[-1][1]
        for name in ("highwater-floor:60", "highwater-floor:80", "highwater-floor:90", "highwater-floor")
    }
    assert list(after.values()) == [1_400, 1_050, after["highwater-floor"], 934]


def test_floor_mode_never_leaves_its_bounds() -> None:
    run = run_policy("highwater-floor", table(tracked(low=40, high=300, target=70)), writes(*QUIET, *SURGE, *QUIET))
    assert all(40 <= floor <= 300 for _, floor, _ in run.target(WRITE).bounds)
    assert run.target(WRITE).bounds[-1][1] < 300, "it falls again when the surge is half an hour old"


def test_direct_mode_raises_two_seconds_after_it_sees_and_lowers_late_in_the_hour() -> None:
    traffic = writes(*QUIET, *SURGE, *([95] * 120))
    run = run_policy("highwater-direct", table(tracked(low=10, target=70)), traffic)
    surge = 60 * 60
    changes = [change for change in pairwise(run.target(WRITE).capacity) if change[1][0] >= surge]
    raised = [at - surge for (_, before), (at, after) in changes if after > before]
    lowered = [
        (traffic.start.minute + at // 60) % 60
        for (_, before), (at, after) in pairwise(run.target(WRITE).capacity)
        if after < before
    ]
    assert raised[0] == 205 + 2
    assert lowered
    assert all(minute >= 50 for minute in lowered)


@pytest.mark.parametrize("times", [3, 5])
def test_direct_mode_is_ready_for_what_came_at_the_same_time_yesterday(times: float) -> None:
    day = [int(300 * times) if 540 <= minute < 600 else 300 for minute in range(1440)]
    setup = table(tracked(low=10, target=70))
    first, all_days = (run_policy("highwater-direct", setup, writes(*day * days)) for days in (1, 3))
    assert first.throttled_units > 0
    assert all_days.throttled_units == first.throttled_units, "half of the capacity, and a bucket that lasts"


def test_daily_jump_of_a_table_with_short_bursts_throttles_less_than_with_target_tracking() -> None:
    day = [750 if 540 <= minute < 600 else 300 for minute in range(1440)]
    setup = replace(table(tracked(low=10, target=70)), burst_seconds=120)

    def throttled_later(policy: str) -> float:
        first, all_days = (run_policy(policy, setup, writes(*day * days)).throttled_units for days in (1, 3))
        return all_days - first

    assert 0 < throttled_later("highwater-direct") < throttled_later("native:70")


def test_direct_mode_stays_within_the_days_decreases() -> None:
    run = run_policy("highwater-direct", table(tracked(low=10, target=70)), writes(*([90, 400] * 700)))
    assert not [event for event in run.events if event.kind is EventKind.REFUSED]


@pytest.mark.parametrize("policy", ["highwater-floor", "highwater-direct"])
def test_bill_has_the_scalers_own_alarms_and_metrics(policy: str) -> None:
    run = run_policy(policy, table(tracked(low=10, target=70)), writes(*QUIET))
    # of each target twelve looks in an hour, and the first
    assert run.bill.metrics > 0
    assert run.bill.alarms > 0


@pytest.mark.parametrize(("name", "most_seconds"), [("highwater-floor-pulse", 60), ("highwater-direct-pulse", 0)])
def test_fleet_that_tells_gets_help_while_the_bucket_lasts(name: str, most_seconds: int) -> None:
    run = run_policy(name, _TABLE, _JUMP)
    assert len(run.throttled_minutes()) * 60 <= most_seconds


@pytest.mark.parametrize("name", ["highwater-floor-pulse", "highwater-direct-pulse"])
def test_batch_right_after_capacity_was_lowered_is_met(name: str) -> None:
    """Late in each hour capacity falls; from then on the fleet may not rely on what it was."""
    hour = [150] * 51 + [825] * 3 + [150] * 6
    ours = run_policy(name, table(tracked(low=10, high=40_000, target=70)), writes(*hour * 4))
    native = run_policy("native:70", table(tracked(low=10, high=40_000, target=70)), writes(*hour * 4))
    assert ours.throttled_units == 0 < native.throttled_units


@pytest.mark.parametrize("quiet", ["highwater-floor", "highwater-direct"])
def test_fleet_of_which_nobody_tells_gets_what_it_gets_without_pulses(quiet: str) -> None:
    told = run_policy(f"{quiet}-pulse:0", _TABLE, _JUMP)
    without = run_policy(quiet, _TABLE, _JUMP)
    assert [t.capacity for t in told.targets] == [t.capacity for t in without.targets]
    assert told.throttled_units == without.throttled_units > 0


def test_half_the_fleet_tells_for_the_whole_and_half_a_minute_is_soon_enough() -> None:
    jump = writes(*QUIET, *([380] * 40))
    for pulses in (Pulses(coverage_percent=50), Pulses(delay_seconds=25)):
        policy = find_policy("highwater-direct-pulse")
        policy.pulses = pulses
        assert simulate(_TABLE, jump, policy).throttled_units == 0


@pytest.mark.parametrize(
    "name", ["highwater-floor", "highwater-direct", "highwater-floor-pulse", "highwater-direct-pulse"]
)
@pytest.mark.parametrize(("base", "batch"), [(967, 2_901), (930, 5_115)])
def test_minute_of_each_hour_that_the_bucket_serves_buys_nothing_for_long(name: str, base: int, batch: int) -> None:
    """Native target tracking does not see it at all, and throttles nothing: so it is the price to meet."""
    hour = [base] * 7 + [batch] + [base] * 52
    ours = run_policy(name, table(tracked(low=10, high=40_000, target=70)), writes(*hour * 24))
    native = run_policy("native:70", table(tracked(low=10, high=40_000, target=70)), writes(*hour * 24))
    assert ours.throttled_units == native.throttled_units == 0
    assert ours.bill.per_month < 1.15 * native.bill.per_month


@pytest.mark.parametrize("name", ["highwater-floor-pulse", "highwater-direct-pulse"])
@pytest.mark.parametrize(("every", "seconds", "times"), [(10, 10, 3), (15, 30, 5), (5, 10, 5)])
def test_spikes_within_minutes_that_native_scaling_does_not_see_cost_no_more_and_throttle_nothing(
    name: str, every: int, seconds: int, times: int
) -> None:
    """No minute is above the capacity, though some of its seconds are; and little fills the bucket between them."""
    cycle = [*[880] * 180, *[880 * times] * seconds, *[880] * (60 * every - 180 - seconds)] * (24 * 60 // every)
    traffic = Traffic.from_counts("made", {Stream(None, WRITE): cycle}, bin_seconds=1, start=START)
    targets = table(tracked(low=10, high=40_000, target=70))
    ours, native = (run_policy(policy, targets, traffic) for policy in (name, "native:70"))
    assert ours.throttled_units == native.throttled_units == 0
    assert ours.bill.per_month < 1.15 * native.bill.per_month


def test_tables_of_all_modes_start_alike_and_native_ones_at_their_own_target() -> None:
    demand = writes(*[840] * 3)
    names = ("native:70", "native:90", "highwater-floor", "highwater-floor:80", "highwater-direct-pulse")
    runs = [run_policy(name, table(tracked(low=10, target=70)), demand) for name in names]
    assert [run.target(WRITE).capacity[0] for run in runs] == [(0, 1_200), (0, 934), *[(0, 1_200)] * 3]


def test_spikes_that_are_not_worth_it_are_bought_for_an_hour_only() -> None:
    """Six seconds of twenty times the base, every five minutes: nothing that target tracking would see."""
    seconds = [*[870] * 180, *[17_400] * 6, *[870] * 114] * 12 * 48
    traffic = Traffic.from_counts("made", {Stream(None, WRITE): seconds}, bin_seconds=1, start=START)
    targets = table(tracked(low=10, high=40_000, target=70))
    ours, native = (run_policy(name, targets, traffic) for name in ("highwater-floor-pulse", "native:70"))
    assert ours.throttled_units == native.throttled_units == 0
    # at first it buys three times as much, for less than an hour
    assert max(units for _, units in ours.target(WRITE).capacity) > 3 * native.target(WRITE).capacity[0][1]
    assert ours.bill.per_month < 1.1 * native.bill.per_month


@pytest.mark.parametrize("name", ["highwater-floor-pulse", "highwater-direct-pulse"])
@pytest.mark.parametrize(("times", "every"), [(5, 15), (6, 20)])
def test_surge_after_batches_that_were_not_worth_their_price_throttles_no_more_than_native(
    name: str, times: int, every: int
) -> None:
    """Nine hours of a batch of a minute every so often, and then 2.5 times the base for eight minutes."""
    night = [1_000 * times if minute % every == 7 else 1_000 for minute in range(9 * 60)]
    traffic = writes(*night, *[1_000] * 20, *[2_500] * 8, *[1_000] * 32)
    native = run_policy("native:70", table(), traffic)
    run = run_policy(name, table(), traffic)
    assert native.throttled_units == run.throttled_units == 0
    assert run.bill.per_month < 1.3 * native.bill.per_month
