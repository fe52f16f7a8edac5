"""Auto scaling in the simulation: when it acts, what it says, what holds it back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from highwater.core import Capacity, Dimension, Plan
from highwater.core.scaler.regret import PastSeries
from highwater.core.tracking import TargetTracking
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.timing import PHASES, Timing
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TargetSetup, simulate
from highwater_lab.simulation.policy import Calls, Policy, Seen
from highwater_lab.simulation.run import EventKind
from tests.simulation.tables import START, WRITE, table, tracked, writes


def _changes(run: Run, dimension: Dimension = WRITE) -> list[tuple[int, int]]:
    return list(run.target(dimension).capacity[1:])


def _falls(run: Run) -> list[int]:
    return [event.at for event in run.events if event.kind is EventKind.SCALE_IN]


def _at(text: str, low: int | None, high: int | None = None, name: str = "x") -> ScheduledChange:
    return ScheduledChange(name=name, expression=parse_expression(text, ZoneInfo("UTC"), START), min=low, max=high)


def test_rise_comes_when_the_alarm_is_judged_after_the_second_datapoint() -> None:
    """Recorded: auto scaling acts at its alarm's instant, and each alarm is judged at a second of its own.

    radkawar/stackd 9dc356f, testdata/aws/applicationautoscaling/dynamodb_maintenance.
    """
    run = run_policy("declared", table(tracked(low=100)), writes(*[50] * 5, *[95] * 10))
    # minutes 5 and 6 are above 70; the latter's datapoint comes at 420 + 120, and the alarm is judged at second 25
    assert _changes(run) == [(420 + 120 + 25 + 2, 136)]
    event = run.events[0]
    assert (event.kind, event.before, event.after) == (EventKind.SCALE_OUT, 100, 136)
    assert event.text == "target tracking: 95 units/s consumed, above 70 % of 100"


def test_delays_add_up() -> None:
    timing = Timing(metric_delay=61, phase=replace(PHASES[0], tracking_alarm=14), autoscaling_update=5)
    from highwater_lab.policies.declared import Declared

    run = simulate(table(tracked(low=100)), writes(*[50] * 5, *[95] * 10), Declared(), timing=timing)
    assert _changes(run) == [(8 * 60 + 14 + 5, 136)]


def test_steps_follow_what_was_consumed_and_not_what_was_asked_for() -> None:
    run = run_policy("declared", table(tracked(low=10, high=40_000)), writes(*[5] * 5, *[5_000] * 40))
    units = [units for _, units in _changes(run)]
    # once the bucket is empty, a step is 1 / 0.7 of what is provisioned; rounding up gives a little more
    late = units[2:]
    assert all(after <= -(-before * 10 // 7) for before, after in pairwise(late))
    assert run.throttled_units > 0


def test_scale_in_waits_for_fifteen_minutes_and_is_tried_until_the_budget_allows() -> None:
    # five surges, an idle half hour after each: the fifth decrease of the day has to wait for an hour to pass
    traffic = writes(*([70] * 6 + [5] * 30) * 6)
    run = run_policy("declared", table(tracked(low=10)), traffic)
    falls = [e.at for e in run.events if e.kind is EventKind.SCALE_IN]
    assert falls[0] == 6 * 60 + 15 * 60 + 120 + 25 + 2
    assert run.decreases == len(falls) == 5
    assert falls[4] - falls[3] >= 3_600
    assert run.refused_decreases > 5
    refusals = [e for e in run.events if e.kind is EventKind.REFUSED]
    assert {e.text for e in refusals} == {"the quota of decreases is used up for now"}
    assert len(refusals) < run.refused_decreases, "told once and not each minute"


def test_cooldown_keeps_a_second_scale_in_away() -> None:
    target = TargetSetup(
        units=1, min=10, max=40_000, tracking=TargetTracking(target_percent=70, scale_in_cooldown=3_600)
    )
    traffic = writes(*[700] * 6, *[300] * 20, *[100] * 60)
    falls = _falls(run_policy("declared", table(target), traffic))
    without = _falls(run_policy("declared", table(tracked(low=10)), traffic))
    # it counts from the end of the activity, half a minute later, so the next alarm is one too early
    assert falls == [without[0], without[0] + 3_660], f"without a cooldown {without}"
    assert without[1] - without[0] < 3_600


TEN_LATE = Timing(scheduled_least=10, scheduled_most=10)


def test_scheduled_action_raises_late_and_capacity_is_there_two_seconds_after() -> None:
    actions = (_at("at(2026-11-03T10:07:00)", 900, 2_000, "load"),)
    run = run_policy("declared", table(tracked(low=100, actions=actions)), writes(*[5] * 12), timing=TEN_LATE)
    assert _changes(run) == [(7 * 60 + 12, 900)]
    assert run.target(WRITE).bounds == ((0, 100, 40_000), (7 * 60 + 10, 900, 2_000))
    assert [e.text for e in run.events] == [
        "scheduled action 'load': floor 900, ceiling 2,000",
        "scheduled action 'load'",
    ]


def test_scheduled_actions_of_reads_and_writes_at_once_both_come() -> None:
    actions = (_at("at(2026-11-03T10:07:00)", 900),)
    both = ResourceSetup(
        index=None,
        read=tracked(low=60, actions=actions),
        write=tracked(low=100, actions=actions),
        warm_read_units=900,
        warm_write_units=900,
    )
    setup = table()
    run = run_policy("declared", replace(setup, resources=(both,)), writes(*[5] * 12), timing=TEN_LATE)
    assert _changes(run, Dimension.READ) == [(7 * 60 + 12, 900)]
    assert _changes(run) == [(7 * 60 + 14, 900)], "one after the other: the table is being changed"


def test_crossed_bounds_fail_and_say_so() -> None:
    actions = (_at("at(2026-11-03T10:03:00)", 900, None, "too high"),)
    run = run_policy("declared", table(tracked(low=100, high=500, actions=actions)), writes(*[5] * 6))
    assert [e.text for e in run.events] == ["scheduled action 'too high' failed: floor 900 above ceiling 500"]
    assert _changes(run) == []


def test_table_starts_with_the_bounds_that_its_schedule_left() -> None:
    # Monday's actions, looked at on Tuesday at ten
    actions = (_at("cron(0 8 ? * MON *)", 700), _at("cron(0 9 ? * TUE *)", 300, None, "y"))
    run = run_policy("declared", table(tracked(low=100, actions=actions)), writes(5, 5))
    assert run.target(WRITE).bounds[0] == (0, 300, 40_000)
    assert run.target(WRITE).capacity[0] == (0, 300)


def test_table_starts_with_capacity_for_its_first_minute() -> None:
    run = run_policy("declared", table(tracked(low=10)), writes(140, 5))
    assert run.target(WRITE).capacity[0] == (0, 200)
    fixed = run_policy("declared", table(TargetSetup.fixed(77)), writes(140, 5))
    assert fixed.target(WRITE).capacity == ((0, 77),)


def test_hour_is_billed_at_its_highest_value() -> None:
    start = datetime(2026, 11, 3, 10, 30, tzinfo=UTC)
    actions = (_at("at(2026-11-03T10:40:00)", 900), _at("at(2026-11-03T11:10:00)", 100, None, "down"))
    target = tracked(low=100, actions=actions)
    run = run_policy("declared", table(target), writes(*[5] * 120, start=start))
    # from 10:30 to 12:30: three hours of the clock are begun
    assert run.target(WRITE).hour_peaks == (900, 900, 100)
    assert run.bill.hours == 3


def test_changing_minutes_do_not_change_a_fixed_table() -> None:
    run = run_policy("declared", table(TargetSetup.fixed(100)), writes(*[500] * 30))
    assert run.events == ()
    # 300 s of bucket over 400/s, in whole seconds, then 100/s
    assert run.throttled_units == 30 * 60 * 500 - (300 * 100 + 1_799 * 100)
    assert run.worst_minute() is not None
    assert run.start + timedelta(minutes=run.minutes) == START + timedelta(minutes=30)


class _Learns(Policy):
    """Changes nothing, and keeps what was known of the writes at its last look."""

    name = "learns"
    period_seconds = 60
    past: PastSeries

    def poll(self, seen: Seen, calls: Calls) -> int:  # noqa: ARG002 - it changes nothing
        capacity = Capacity.autoscaled(min_capacity=100, max_capacity=40_000)
        target = Plan(read=capacity, write=capacity).targets()[1]
        self.past = seen.resources[0].write.past(target, int(START.timestamp()) // 60)
        return 0


def test_datapoints_of_provisioned_capacity_are_85_seconds_older_than_their_label() -> None:
    """Lowered 84 s before eleven, the old capacity is taken for that of eleven o'clock; 101 s before, it is not.

    Recorded: radkawar/stackd 9dc356f, testdata/aws/applicationautoscaling/dynamodb_maintenance.
    """
    hours = {}
    for lowered in ("10:58:24", "10:58:07"):
        actions = (_at("at(2026-11-03T10:07:00)", 400), _at(f"at(2026-11-03T{lowered})", 100, 100, "y"))
        policy = _Learns()
        setup = table(tracked(low=100, actions=actions))
        simulate(setup, writes(*[5] * 90), policy, timing=TEN_LATE)
        regret = policy.past.regret(1_440)
        assert regret is not None
        hours[lowered] = regret.spent_unit_hours
    assert hours == {"10:58:24": 400 + 400, "10:58:07": 400 + 100}
