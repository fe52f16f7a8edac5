"""The four laws of a plan, with random plans; see `random_plans`. Times are minutes of 1970."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import (
    Bounds,
    Capacity,
    Plan,
    PlanError,
    ScheduledAction,
    Window,
    baseline,
    bounds_at,
    check,
    compile_actions,
    timeline,
)
from tests.core.aas_model import (
    DAY,
    instant_at,
    minute_of,
    play,
)
from tests.core.random_plans import (
    ALIKE,
    DAYS,
    READ,
    SIXTY_DAYS,
    UNLIKE,
    WRITE,
    ZERO,
    ZONES,
    change_minutes,
    clock_minutes,
    compiled,
    crowded_schedules,
    hh_mm,
    iso,
    law,
    mixed_schedules,
    moments_near_changes,
    one_off_windows,
    reading,
    recurring_windows,
    schedules,
    value_at,
    wall_of,
)

# --- law 1: the baseline is the highest of the base and the open windows --------------------------------------------


@law(60)
@given(schedules(), st.lists(st.integers(0, SIXTY_DAYS - 1), max_size=50))
def test_bounds_at_any_minute_are_the_highest_of_base_and_open_windows(
    schedule: tuple[Plan, int], anywhere: list[int]
) -> None:
    """At each change, in the minutes beside it, and in some between."""
    plan, start = schedule
    for target in plan.targets():
        expected = reading(target, start, start + SIXTY_DAYS)
        near = moments_near_changes(expected, start, start + SIXTY_DAYS)
        for minute in (*near, *(start + later for later in anywhere)):
            assert bounds_at(target, instant_at(minute)) == value_at(expected, minute), instant_at(minute)
            assert baseline(target, instant_at(minute)) == value_at(expected, minute).min


@law(80)
@given(schedules(zones=ZONES[:3] + ZONES[5:], most=2), st.data())
def test_bounds_are_right_at_every_minute_around_a_clock_change(
    schedule: tuple[Plan, int], data: st.DataObject
) -> None:
    plan, _ = schedule
    change = data.draw(st.sampled_from(change_minutes(plan.windows[0].timezone)))
    for target in plan.targets():
        expected = reading(target, change - 150, change + 150)
        for minute in range(change - 150, change + 150):
            assert bounds_at(target, instant_at(minute)) == value_at(expected, minute), instant_at(minute)


@law(80)
@given(schedules())
def test_timeline_is_the_bounds_of_every_minute(schedule: tuple[Plan, int]) -> None:
    plan, start = schedule
    for target in plan.targets():
        line = timeline(target, instant_at(start), instant_at(start + SIXTY_DAYS))
        assert tuple((minute_of(at), bounds) for at, bounds in line) == reading(target, start, start + SIXTY_DAYS)


# --- law 2: the compiled actions hold the baseline at every minute --------------------------------------------------


@law(150)
@given(schedules() | crowded_schedules())
def test_actions_played_over_a_clock_change_hold_the_bounds_of_every_minute(schedule: tuple[Plan, int]) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        expected = reading(target, start, start + SIXTY_DAYS)
        assert bounds_at(target, instant_at(start)) == expected[0][1]
        assert play(actions, expected[0][1], start, start + SIXTY_DAYS) == expected, actions


@law(150)
@given(schedules() | crowded_schedules(), st.integers(0, 59 * DAY))
def test_actions_compiled_in_the_middle_of_things_hold_the_bounds_from_then_on(
    schedule: tuple[Plan, int], later: int
) -> None:
    plan, start = schedule
    as_of, end = start + later, start + SIXTY_DAYS
    for target, actions in compiled(plan, instant_at(as_of)):
        expected = reading(target, as_of, end)
        assert play(actions, expected[0][1], as_of, end) == expected, actions


@law(150)
@given(schedules() | crowded_schedules(), st.data())
def test_actions_compiled_at_the_very_edge_of_a_window_hold_the_bounds(
    schedule: tuple[Plan, int], data: st.DataObject
) -> None:
    plan, start = schedule
    for target in plan.targets():
        changes = reading(target, start, start + 40 * DAY)
        as_of = data.draw(st.sampled_from(moments_near_changes(changes, start, start + 40 * DAY)))
        expected = reading(target, as_of, start + SIXTY_DAYS)
        actions = compile_actions(target, instant_at(as_of))
        assert play(actions, expected[0][1], as_of, start + SIXTY_DAYS) == expected, actions


@law(60)
@given(mixed_schedules(ALIKE))
def test_actions_of_zones_that_change_alike_hold_the_bounds_and_are_never_refused(schedule: tuple[Plan, int]) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        expected = reading(target, start, start + SIXTY_DAYS)
        assert play(actions, expected[0][1], start, start + SIXTY_DAYS) == expected, actions


@law(150)
@given(mixed_schedules(UNLIKE))
def test_actions_of_zones_that_change_apart_hold_the_bounds_where_they_are_not_refused(
    schedule: tuple[Plan, int],
) -> None:
    plan, start = schedule
    for target in plan.targets():
        try:
            actions = compile_actions(target)
        except PlanError:
            continue
        expected = reading(target, start, start + SIXTY_DAYS)
        assert play(actions, expected[0][1], start, start + SIXTY_DAYS) == expected, actions


# --- law 3: the floor is never above the ceiling --------------------------------------------------------------------


@law(200)
@given(crowded_schedules())
def test_actions_of_windows_that_share_edges_hold_the_bounds_of_every_minute(schedule: tuple[Plan, int]) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        expected = reading(target, start, start + SIXTY_DAYS)
        assert play(actions, expected[0][1], start, start + SIXTY_DAYS) == expected, actions


@law(100)
@given(schedules())
def test_floor_is_never_above_the_ceiling_in_timeline_or_actions(schedule: tuple[Plan, int]) -> None:
    plan, start = schedule
    errors = {finding.id for finding in check(plan) if finding.severity == "error"}
    assert errors <= {"highwater:emptyWindow"}, "a one-off window may lie in an hour that the clocks skip"
    for target, actions in compiled(plan):
        line = timeline(target, instant_at(start), instant_at(start + SIXTY_DAYS))
        assert all(bounds.min <= bounds.max for _, bounds in line)
        assert all(action.bounds.min <= action.bounds.max for action in actions)
        if not target.capacity.is_autoscaled:
            assert all(action.bounds.min == action.bounds.max for action in actions)


# --- law 4: plans that mean the same compile to the same actions ----------------------------------------------------


def all_actions(plan: Plan) -> list[tuple[ScheduledAction, ...]]:
    return [actions for _, actions in compiled(plan)]


@law(80)
@given(schedules(), st.randoms(use_true_random=False))
def test_actions_do_not_depend_on_the_order_or_names_of_windows(schedule: tuple[Plan, int], random: Random) -> None:
    plan, _ = schedule
    shuffled = list(plan.windows)
    random.shuffle(shuffled)
    renamed = tuple(replace(window, name=f"other {number}") for number, window in enumerate(shuffled))
    assert all_actions(replace(plan, windows=renamed)) == all_actions(plan)


@law(60)
@given(schedules())
def test_actions_do_not_depend_on_how_days_are_written(schedule: tuple[Plan, int]) -> None:
    plan, _ = schedule
    for rewrite in (",".join, lambda days: tuple(reversed(days)), lambda days: f"{','.join(days)}".lower()):
        rewritten = [
            window if window.days is None else replace(window, days=rewrite(window.days)) for window in plan.windows
        ]
        assert all_actions(replace(plan, windows=tuple(rewritten))) == all_actions(plan)


@law(60)
@given(schedules(), st.data())
def test_actions_of_a_window_split_where_its_parts_touch_are_those_of_the_whole(
    schedule: tuple[Plan, int], data: st.DataObject
) -> None:
    plan, _ = schedule
    parts: list[Window] = []
    text: Callable[[int], str]
    for window in plan.windows:
        if window.days is None:
            low, high, text = wall_of(window.start), wall_of(window.end), iso
        else:
            low, high, text = clock_minutes(window.start), clock_minutes(window.end), hh_mm
            high = high if high > low else DAY
        if high - low < 2:
            parts.append(window)
            continue
        middle = text(data.draw(st.integers(low + 1, high - 1)))
        parts += [
            replace(window, end=middle),
            replace(window, name=f"{window.name} rest", start=middle, lead=timedelta(0)),
        ]
    assert all_actions(replace(plan, windows=tuple(parts))) == all_actions(plan)


@law(60)
@given(schedules(), st.data())
def test_actions_ignore_a_window_that_another_one_hides(schedule: tuple[Plan, int], data: st.DataObject) -> None:
    plan, _ = schedule
    hidden = replace(data.draw(st.sampled_from(plan.windows)), name="hidden", lead=timedelta(0))
    assert all_actions(replace(plan, windows=(*plan.windows, hidden))) == all_actions(plan)


@law(40)
@given(schedules(), st.data())
def test_actions_ignore_a_window_no_higher_than_the_base(schedule: tuple[Plan, int], data: st.DataObject) -> None:
    plan, start = schedule
    zone = plan.windows[0].timezone
    low = data.draw(recurring_windows(zone) | one_off_windows(zone, start + 30 * DAY))
    low = replace(low, name="low", read_min=7, write_min=5, read_max=None, write_max=60)
    assert all_actions(replace(plan, windows=(low, *plan.windows))) == all_actions(plan)


def test_daily_is_weekly_on_all_seven_days() -> None:
    times: dict[str, Any] = {"start": "22:00", "end": "04:00", "timezone": "Europe/Berlin", "write_min": 40}
    daily = Plan(read=READ, write=WRITE, windows=(Window.daily("night", **times),))
    for days in ("MON-SUN", "SAT-FRI", "SUN,MON,TUE,WED,THU,FRI,SAT", DAYS):
        weekly = Plan(read=READ, write=WRITE, windows=(Window.weekly("week", days=days, **times),))
        assert all_actions(weekly) == all_actions(daily)


def test_a_range_of_days_is_the_list_of_its_days() -> None:
    times: dict[str, Any] = {"start": time(8), "end": time(18, 30), "timezone": "America/New_York", "read_min": 90}
    spelled = [
        Plan(read=READ, write=WRITE, windows=(Window.weekly("office", days=days, **times),))
        for days in ("MON-FRI", ["FRI", "MON", "TUE", "THU", "WED"], "mon-wed,thu,FRI", ("MON-TUE", "WED-FRI"))
    ]
    assert all(all_actions(plan) == all_actions(spelled[0]) for plan in spelled)


@law(80)
@given(schedules() | mixed_schedules(ALIKE))
def test_names_of_actions_are_unique_and_such_as_the_service_takes(schedule: tuple[Plan, int]) -> None:
    plan, _ = schedule
    for _, actions in compiled(plan):
        names = [action.name for action in actions]
        assert names == sorted(set(names))
        assert all(1 <= len(name) <= 256 and not set(":/|") & set(name) for name in names)


# --- what no schedule can say ---------------------------------------------------------------------------------------


def test_windows_of_new_york_and_berlin_that_meet_are_refused_with_the_finding() -> None:
    office = Window.daily("office", start="09:00", end="17:00", timezone="America/New_York", write_min=20)
    evening = Window.daily("evening", start="18:00", end="23:00", timezone="Europe/Berlin", write_min=30)
    plan = Plan(read=READ, write=WRITE, windows=(office, evening))
    with pytest.raises(PlanError) as refused:
        compile_actions(plan.targets()[1])
    assert [finding.id for finding in refused.value.findings] == ["highwater:windowsAcrossZones"]
    assert "'office'" in str(refused.value)
    assert "'evening'" in str(refused.value)


def test_the_hour_that_cairo_skips_never_closes_a_window_of_utc() -> None:
    """Cairo's end at midnight may be skipped, hence an action on Fridays at 01:00: within the window of UTC."""
    windows = (
        Window.daily("cairo", start="04:30", end="24:00", timezone="Africa/Cairo", lead=ZERO, write_min=20),
        Window.daily("utc", start="22:01", end="01:00", timezone="UTC", lead=ZERO, write_min=40),
    )
    target = Plan(read=READ, write=WRITE, windows=windows).targets()[1]
    start, end = minute_of(datetime(2027, 1, 13, tzinfo=UTC)), minute_of(datetime(2027, 1, 20, tzinfo=UTC))
    try:
        actions = compile_actions(target)
    except PlanError as refused:
        assert [finding.id for finding in refused.findings] == ["highwater:windowsAcrossZones"]  # noqa: PT017
    else:
        expected = reading(target, start, end)
        assert play(actions, expected[0][1], start, end) == expected


def test_window_that_lifts_nothing_changes_no_action() -> None:
    """Neither by its zone's name, which sorts first, nor by meeting a window of a zone with other rules."""
    load = Window.daily("load", start="05:00", end="06:00", timezone="Europe/Berlin", write_min=40)
    idle = [
        Window.daily(f"idle {zone}", start="05:30", end="07:00", timezone=zone, write_min=3)
        for zone in ("Africa/Ceuta", "America/New_York")
    ]
    capacity = Capacity.autoscaled(min_capacity=5, max_capacity=50)
    alone = Plan(read=capacity, write=capacity, windows=(load,)).targets()[1]
    beside = Plan(read=capacity, write=capacity, windows=(*idle, load)).targets()[1]
    assert compile_actions(beside) == compile_actions(alone)


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param(
            (("gap", "02:15", "02:45", "America/New_York", 500), ("utc", "07:50", "08:10", "UTC", 500)),
            id="west of UTC, where New Year's Eve is a day earlier",
        ),
        pytest.param(
            (("gap", "00:15", "01:00", "America/Havana", 500), ("apart", "01:30", "01:35", "America/St_Johns", 700)),
            id="an edge at the very end of the gap",
        ),
    ],
)
def test_actions_that_stand_in_for_skipped_ones_never_meet_a_window_of_another_zone(
    windows: tuple[tuple[str, str, str, str, int], ...],
) -> None:
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=20_000)
    declared = tuple(
        Window.weekly(name, days="SUN", start=start, end=end, timezone=zone, write_min=units, lead=ZERO)
        for name, start, end, zone, units in windows
    )
    with pytest.raises(PlanError, match="highwater:windowsAcrossZones"):
        compile_actions(Plan(read=capacity, write=capacity, windows=declared).targets()[1])


def test_windows_that_meet_are_named_whatever_their_order() -> None:
    """Not 'lunch', which never meets the window of UTC."""
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=20_000)
    berlin: dict[str, Any] = {"timezone": "Europe/Berlin", "write_min": 500, "lead": ZERO}
    windows = (
        Window.daily("lunch", start="12:00", end="13:00", **berlin),
        Window.weekly("night", days="SUN", start="02:15", end="02:45", **berlin),
        Window.weekly("utc", days="SUN", start="01:55", end="02:02", timezone="UTC", write_min=500, lead=ZERO),
    )
    for order in itertools.permutations(windows):
        with pytest.raises(PlanError, match=r"windows '(utc' and 'night|night' and 'utc)'"):
            compile_actions(Plan(read=capacity, write=capacity, windows=order).targets()[1])


def test_window_that_opens_a_minute_after_a_skipped_hour_is_not_named_for_one_in_it() -> None:
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=20_000)
    berlin: dict[str, Any] = {"timezone": "Europe/Berlin", "write_min": 500, "lead": ZERO}
    windows = (
        Window.weekly("late", days="SUN", start="03:01", end="03:30", **berlin),
        Window.weekly("night", days="SUN", start="02:15", end="02:45", **berlin),
        # ends as the action at the end of the skipped hour runs
        Window.weekly("utc", days="SUN", start="01:55", end="02:00", timezone="UTC", write_min=500, lead=ZERO),
    )
    for order in itertools.permutations(windows):
        with pytest.raises(PlanError, match=r"windows '(utc' and 'night|night' and 'utc)'"):
            compile_actions(Plan(read=capacity, write=capacity, windows=order).targets()[1])


def test_windows_of_the_same_times_are_compared_with_those_of_another_zone() -> None:
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=1_000)
    times: dict[str, Any] = {"start": "05:00", "end": "06:00", "timezone": "Europe/Berlin"}
    windows = (
        Window.daily("floor", **times, write_min=500),
        Window.daily("ceiling", **times, write_max=2_000),
        Window.daily("utc", start="15:00", end="16:00", timezone="UTC", write_min=300),
    )
    actions = compile_actions(Plan(read=capacity, write=capacity, windows=windows).targets()[1])
    assert {action.bounds for action in actions} == {Bounds(500, 2_000), Bounds(300, 1_000), Bounds(100, 1_000)}


def test_window_under_another_changes_no_action() -> None:
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=20_000)
    over = Window.weekly("over", days="MON-FRI", start="08:00", end="12:00", timezone="Europe/Berlin", write_min=500)
    hidden = (
        Window.weekly("a", days="MON-FRI", start="09:00", end="10:00", timezone="Europe/Amsterdam", write_min=300),
        Window.weekly("b", days="TUE", start="08:30", end="12:00", timezone="Africa/Ceuta", write_min=500),
    )
    alone = Plan(read=capacity, write=capacity, windows=(over,)).targets()[1]
    beside = Plan(read=capacity, write=capacity, windows=(*hidden, over)).targets()[1]
    assert compile_actions(beside) == compile_actions(alone)


def test_section_without_a_further_run_is_not_taken_for_a_steady_one() -> None:
    """Compiled inside the one-off window, after the daily one's last edge in it."""
    capacity = Capacity.autoscaled(min_capacity=100, max_capacity=1_000)
    windows = (
        Window.once(
            "once", start="2027-09-25T02:30", end="2027-09-26T02:30", timezone="UTC", write_min=500, write_max=500
        ),
        Window.daily(
            "daily", start="02:15", end="23:30", timezone="Pacific/Chatham", lead=ZERO, write_min=500, write_max=1_500
        ),
    )
    target = Plan(read=capacity, write=capacity, windows=windows).targets()[1]
    as_of = datetime(2027, 9, 25, 14, tzinfo=UTC)
    start, end = minute_of(as_of), minute_of(as_of) + 3 * DAY
    expected = reading(target, start, end)
    assert play(compile_actions(target, as_of), expected[0][1], start, end) == expected
