"""What the scaler looks at in a minute: decided from the plan, the alarms and the minute alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import Capacity, Dimension, IndexCapacity, Plan, Target, Units, Window
from highwater.core.scaler import (
    Clock,
    Mode,
    Observation,
    ScaledPlan,
    SeenResource,
    alarm_threshold,
    due_targets,
    minutes_to_observe,
    needs_throttles,
)
from highwater.core.scaler.attention import (
    follows_closely,
    is_daily_tick,
    is_full_tick,
    is_other_scalers_tick,
    is_throttle_tick,
)

MINUTE = timedelta(minutes=1)
# 13:20 is one of the table's full ticks, 13:21 to 13:24 are not
FULL = datetime(2027, 3, 4, 13, 20, 9, tzinfo=UTC)
CALM = FULL + 2 * MINUTE
UNITS = Capacity.autoscaled(min_capacity=7, max_capacity=900)
PLAN = Plan(
    read=UNITS,
    write=Capacity.autoscaled(min_capacity=12, max_capacity=400),
    indexes=(IndexCapacity(index_name="by-day"),),
)


def scaled(plan: Plan = PLAN, mode: Mode = Mode.FLOOR) -> ScaledPlan:
    return ScaledPlan(table="orders", mode=mode, plan=plan)


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


def clock(at: datetime) -> Clock:
    return Clock(minute_of(at), at)


def labels(targets: tuple[Target, ...]) -> list[str]:
    return [target.label for target in targets]


def nowhere(_: Target) -> bool:
    return False


def test_every_target_is_due_once_in_five_minutes() -> None:
    for start in (FULL, FULL + 17 * MINUTE, datetime(2027, 3, 4, 23, 59, tzinfo=UTC)):
        due = [due_targets(scaled(), start + n * MINUTE, nowhere) for n in range(5)]
        assert sorted(len(targets) for targets in due) == [0, 0, 0, 0, 4]


def test_every_target_of_every_table_is_due_two_minutes_before_an_hour_ends() -> None:
    at = datetime(2027, 3, 4, 23, 58, 9, tzinfo=UTC)
    # besides twelve times an hour, of which one is in that minute for the last table
    for table, times in (("orders", 13), ("orderr", 13), ("a", 12)):
        due = [due_targets(replace(scaled(), table=table), at + n * MINUTE, nowhere) for n in range(60)]
        assert len(due[0]) == 4
        assert sum(bool(targets) for targets in due) == times


def test_tables_take_turns_by_their_names() -> None:
    minute = minute_of(FULL)
    assert is_full_tick("orders", minute)
    assert not is_full_tick("orderr", minute)
    assert is_full_tick("orderr", minute + 1)


def test_fixed_dimension_is_never_due() -> None:
    plan = Plan(read=Capacity.fixed(5), write=UNITS)
    assert labels(due_targets(scaled(plan), FULL, lambda _: True)) == ["table write"]


def test_target_in_alarm_is_due_alone_in_floor_mode() -> None:
    due = due_targets(scaled(), CALM, lambda target: target.label == "index 'by-day' write")
    assert labels(due) == ["index 'by-day' write"]


def test_both_dimensions_are_due_in_direct_mode_as_one_call_moves_both() -> None:
    due = due_targets(scaled(mode=Mode.DIRECT), CALM, lambda target: target.label == "index 'by-day' write")
    assert labels(due) == ["index 'by-day' read", "index 'by-day' write"]


@pytest.mark.parametrize(("minutes", "is_due"), [(-1, False), (0, True), (1, False)])
def test_target_is_due_in_the_minute_in_which_a_window_opens(minutes: int, is_due: bool) -> None:
    opens = CALM.replace(second=0)
    window = Window.once(
        "load", start=f"{opens:%Y-%m-%dT%H:%M}", end="2027-03-04T15:00", timezone="UTC", write_min=333, lead=0 * MINUTE
    )
    plan = Plan(read=UNITS, write=UNITS, windows=(window,))
    due = due_targets(scaled(plan), CALM + minutes * MINUTE, nowhere)
    assert labels(due) == (["table write"] if is_due else [])


@pytest.mark.parametrize("table", ["orders", "orderr", "a"])
def test_throttle_tick_and_daily_tick_are_full_ticks(table: str) -> None:
    day = range(minute_of(FULL), minute_of(FULL) + 1440)
    throttle = [minute for minute in day if is_throttle_tick(table, minute)]
    daily = [minute for minute in day if is_daily_tick(table, minute)]
    assert (len(throttle), len(daily)) == (48, 1)
    assert all(is_full_tick(table, minute) for minute in throttle + daily)
    assert set(daily) <= set(throttle)


def test_a_day_and_a_little_is_observed_once_a_day() -> None:
    minutes = (minute_of(FULL) + n for n in range(1440))
    daily = next(minute for minute in minutes if is_daily_tick("orders", minute))
    at = datetime.fromtimestamp(daily * 60, UTC)
    assert minutes_to_observe(scaled(), clock(at)) == 1445
    assert minutes_to_observe(scaled(), clock(at + MINUTE)) == 480
    assert minutes_to_observe(scaled(mode=Mode.DIRECT), clock(at + MINUTE)) == 1440


def test_alarm_goes_off_above_97_percent_of_capacity() -> None:
    assert alarm_threshold(100) == 5_820
    assert alarm_threshold(1) == 58
    assert alarm_threshold(100, is_covered=True) == 6_600


def _needs(
    consumed: list[int | None], at: datetime = CALM, dimension: Dimension = Dimension.WRITE, **more: Any
) -> bool:
    resource = SeenResource(provisioned=Units(900, 100), **more)
    target = PLAN.targets()[list(Dimension).index(dimension)]
    observation = Observation.of(minute_of(at) - 3, consumed, [0] * len(consumed))
    return needs_throttles(scaled(), target, resource, observation, clock(at))


def test_throttles_of_a_calm_target_are_asked_for_at_the_throttle_tick_alone() -> None:
    assert not _needs([5_820] * 60)
    tick = next(FULL + n * MINUTE for n in range(30) if is_throttle_tick("orders", minute_of(FULL) + n))
    assert _needs([0] * 60, at=tick)


def test_throttles_are_asked_for_where_consumption_set_off_the_alarm_within_half_an_hour() -> None:
    assert _needs([*[0] * 40, 5_821, *[0] * 29])
    assert not _needs([*[0] * 39, 5_821, *[0] * 30])
    assert not _needs([5_821] * 70, dimension=Dimension.READ), "reads have nine times the capacity"
    assert _needs([52_381] * 70, dimension=Dimension.READ)
    assert not _needs([None] * 60)


def test_throttles_are_asked_for_within_half_an_hour_of_a_raise() -> None:
    assert _needs([0] * 60, last_increase=CALM - 30 * MINUTE)
    assert not _needs([0] * 60, last_increase=CALM - 30 * MINUTE - timedelta(seconds=1))


@pytest.mark.parametrize(("scaler", "minute"), [("a", 60 - 97 % 60), ("b", 60 - 98 % 60)])
def test_scalers_of_tagged_tables_look_for_others_once_an_hour(scaler: str, minute: int) -> None:
    """Each in a minute of its own name, 97 and 98 being the letters' bytes."""
    assert [at for at in range(120) if is_other_scalers_tick(scaler, at)] == [minute, minute + 60]


@pytest.mark.parametrize(
    ("threshold", "expected"), [(899, False), (900, True), (1_000, True), (1_020, True), (1_021, False)]
)
def test_threshold_may_stay_where_it_is_nearly_right(threshold: int, expected: bool) -> None:
    assert follows_closely(threshold, 1_000, is_in_alarm=False) is expected
    assert not follows_closely(threshold, 1_000, is_in_alarm=True), "one that rings is moved"


def test_threshold_that_may_stay_is_below_what_the_capacity_lets_through() -> None:
    for capacity in (1, 7, 100, 40_000):
        wanted = alarm_threshold(capacity)
        highest = max(
            each for each in range(wanted, wanted * 102 // 100 + 2) if follows_closely(each, wanted, is_in_alarm=False)
        )
        assert highest < capacity * 60
