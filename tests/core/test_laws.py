"""The four laws of a plan, with random plans; see `random_plans`. Times are minutes of 1970."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
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
    Target,
    Window,
    baseline,
    bounds_at,
    check,
    compile_actions,
    timeline,
)
from tests.core.aas_model import DAY, instant_at, minute_of, play
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

# a plan, and the first minute that is looked at
Schedule = tuple[Plan, int]


def assert_held(target: Target, actions: Sequence[ScheduledAction], start: int, end: int) -> None:
    """Played from *start* to *end*, the actions make the bounds that the windows ask for, at every minute."""
    expected = reading(target, start, end)
    assert play(actions, expected[0][1], start, end) == expected, actions


def writes(*windows: Window, low: int = 100, high: int = 20_000) -> Target:
    """The writes of a table with these windows."""
    capacity = Capacity.autoscaled(min_capacity=low, max_capacity=high)
    return Plan(read=capacity, write=capacity, windows=windows).targets()[1]


def daily(name: str, start: str, end: str, timezone: str = "Europe/Berlin", units: int = 500, **more: Any) -> Window:
    return Window.daily(name, start=start, end=end, timezone=timezone, **{"write_min": units, "lead": ZERO, **more})


def on_sundays(name: str, start: str, end: str, timezone: str = "Europe/Berlin", units: int = 500) -> Window:
    return replace(daily(name, start, end, timezone, units), days="SUN")


# --- law 1: the baseline is the highest of the base and the open windows --------------------------------------------


@law(60)
@given(schedules(), st.lists(st.integers(0, SIXTY_DAYS - 1), max_size=50))
def test_bounds_at_any_minute_are_the_highest_of_base_and_open_windows(schedule: Schedule, anywhere: list[int]) -> None:
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
def test_bounds_are_right_at_every_minute_around_a_clock_change(schedule: Schedule, data: st.DataObject) -> None:
    plan, _ = schedule
    change = data.draw(st.sampled_from(change_minutes(plan.windows[0].timezone)))
    for target in plan.targets():
        expected = reading(target, change - 150, change + 150)
        for minute in range(change - 150, change + 150):
            assert bounds_at(target, instant_at(minute)) == value_at(expected, minute), instant_at(minute)


@law(80)
@given(schedules())
def test_timeline_is_the_bounds_of_every_minute(schedule: Schedule) -> None:
    plan, start = schedule
    for target in plan.targets():
        line = timeline(target, instant_at(start), instant_at(start + SIXTY_DAYS))
        assert tuple((minute_of(at), bounds) for at, bounds in line) == reading(target, start, start + SIXTY_DAYS)


# --- law 2: the compiled actions hold the baseline at every minute --------------------------------------------------


@law(150)
@given(schedules() | crowded_schedules())
def test_actions_played_over_a_clock_change_hold_the_bounds_of_every_minute(schedule: Schedule) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        assert bounds_at(target, instant_at(start)) == reading(target, start, start + SIXTY_DAYS)[0][1]
        assert_held(target, actions, start, start + SIXTY_DAYS)


@law(150)
@given(schedules() | crowded_schedules(), st.integers(0, 59 * DAY))
def test_actions_compiled_in_the_middle_of_things_hold_the_bounds_from_then_on(schedule: Schedule, later: int) -> None:
    plan, start = schedule
    for target, actions in compiled(plan, instant_at(start + later)):
        assert_held(target, actions, start + later, start + SIXTY_DAYS)


@law(150)
@given(schedules() | crowded_schedules(), st.data())
def test_actions_compiled_at_the_very_edge_of_a_window_hold_the_bounds(schedule: Schedule, data: st.DataObject) -> None:
    plan, start = schedule
    for target in plan.targets():
        changes = reading(target, start, start + 40 * DAY)
        as_of = data.draw(st.sampled_from(moments_near_changes(changes, start, start + 40 * DAY)))
        assert_held(target, compile_actions(target, instant_at(as_of)), as_of, start + SIXTY_DAYS)


@law(60)
@given(mixed_schedules(ALIKE))
def test_actions_of_zones_that_change_alike_hold_the_bounds_and_are_never_refused(schedule: Schedule) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        assert_held(target, actions, start, start + SIXTY_DAYS)


@law(150)
@given(mixed_schedules(UNLIKE))
def test_actions_of_zones_that_change_apart_hold_the_bounds_where_they_are_not_refused(
    schedule: Schedule,
) -> None:
    plan, start = schedule
    for target in plan.targets():
        try:
            actions = compile_actions(target)
        except PlanError:
            continue
        assert_held(target, actions, start, start + SIXTY_DAYS)


# --- law 3: the floor is never above the ceiling --------------------------------------------------------------------


@law(200)
@given(crowded_schedules())
def test_actions_of_windows_that_share_edges_hold_the_bounds_of_every_minute(schedule: Schedule) -> None:
    plan, start = schedule
    for target, actions in compiled(plan):
        assert_held(target, actions, start, start + SIXTY_DAYS)


@law(100)
@given(schedules())
def test_floor_is_never_above_the_ceiling_in_timeline_or_actions(schedule: Schedule) -> None:
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
def test_actions_do_not_depend_on_the_order_or_names_of_windows(schedule: Schedule, random: Random) -> None:
    plan, _ = schedule
    shuffled = list(plan.windows)
    random.shuffle(shuffled)
    renamed = tuple(replace(window, name=f"other {number}") for number, window in enumerate(shuffled))
    assert all_actions(replace(plan, windows=renamed)) == all_actions(plan)


@law(60)
@given(schedules())
def test_actions_do_not_depend_on_how_days_are_written(schedule: Schedule) -> None:
    plan, _ = schedule
    for rewrite in (",".join, lambda days: tuple(reversed(days)), lambda days: f"{','.join(days)}".lower()):
        rewritten = [
            window if window.days is None else replace(window, days=rewrite(window.days)) for window in plan.windows
        ]
        assert all_actions(replace(plan, windows=tuple(rewritten))) == all_actions(plan)


@law(60)
@given(schedules(), st.data())
def test_actions_of_a_window_split_where_its_parts_touch_are_those_of_the_whole(
    schedule: Schedule, data: st.DataObject
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
def test_actions_ignore_a_window_that_another_one_hides(schedule: Schedule, data: st.DataObject) -> None:
    plan, _ = schedule
    hidden = replace(data.draw(st.sampled_from(plan.windows)), name="hidden", lead=timedelta(0))
    assert all_actions(replace(plan, windows=(*plan.windows, hidden))) == all_actions(plan)


@law(40)
@given(schedules(), st.data())
def test_actions_ignore_a_window_no_higher_than_the_base(schedule: Schedule, data: st.DataObject) -> None:
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
def test_names_of_actions_are_unique_and_such_as_the_service_takes(schedule: Schedule) -> None:
    plan, _ = schedule
    for _, actions in compiled(plan):
        names = [action.name for action in actions]
        assert names == sorted(set(names))
        assert all(1 <= len(name) <= 256 and not set(":/|") & set(name) for name in names)


# --- what no schedule can say ---------------------------------------------------------------------------------------


def test_windows_of_new_york_and_berlin_that_meet_are_refused_with_the_finding() -> None:
    office = daily("office", "09:00", "17:00", "America/New_York", 200)
    with pytest.raises(PlanError) as refused:
        compile_actions(writes(office, daily("evening", "18:00", "23:00", units=300)))
    assert [finding.id for finding in refused.value.findings] == ["highwater:windowsAcrossZones"]
    assert "'office'" in str(refused.value)
    assert "'evening'" in str(refused.value)


def test_the_hour_that_cairo_skips_never_closes_a_window_of_utc() -> None:
    """Cairo's end at midnight may be skipped, hence an action on Fridays at 01:00: within the window of UTC."""
    cairo, utc = daily("cairo", "04:30", "24:00", "Africa/Cairo", 20), daily("utc", "22:01", "01:00", "UTC", 40)
    target = writes(cairo, utc, low=5, high=60)
    start, end = minute_of(datetime(2027, 1, 13, tzinfo=UTC)), minute_of(datetime(2027, 1, 20, tzinfo=UTC))
    try:
        actions = compile_actions(target)
    except PlanError as refused:
        assert [finding.id for finding in refused.findings] == ["highwater:windowsAcrossZones"]  # noqa: PT017
    else:
        assert_held(target, actions, start, end)


def test_window_that_lifts_nothing_changes_no_action() -> None:
    """Neither by its zone's name, which sorts first, nor by meeting a window of a zone with other rules."""
    load = daily("load", "05:00", "06:00")
    idle = [daily(f"idle {zone}", "05:30", "07:00", zone, 3) for zone in ("Africa/Ceuta", "America/New_York")]
    assert compile_actions(writes(*idle, load)) == compile_actions(writes(load))


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param(
            (on_sundays("gap", "02:15", "02:45", "America/New_York"), on_sundays("utc", "07:50", "08:10", "UTC")),
            id="west of UTC, where New Year's Eve is a day earlier",
        ),
        pytest.param(
            (
                on_sundays("gap", "00:15", "01:00", "America/Havana"),
                on_sundays("apart", "01:30", "01:35", "America/St_Johns", 700),
            ),
            id="an edge at the very end of the gap",
        ),
    ],
)
def test_actions_that_stand_in_for_skipped_ones_never_meet_another_zones_window(
    windows: tuple[Window, ...],
) -> None:
    with pytest.raises(PlanError, match="highwater:windowsAcrossZones"):
        compile_actions(writes(*windows))


@pytest.mark.parametrize(
    ("other", "end"),
    [
        pytest.param(daily("lunch", "12:00", "13:00"), "02:02", id="one that never meets the window of UTC"),
        # the window of UTC ends as the action at the end of the skipped hour runs
        pytest.param(on_sundays("late", "03:01", "03:30"), "02:00", id="one that opens a minute after a skipped hour"),
    ],
)
def test_windows_that_meet_are_named_whatever_their_order_and_not_another(other: Window, end: str) -> None:
    windows = (other, on_sundays("night", "02:15", "02:45"), on_sundays("utc", "01:55", end, "UTC"))
    for order in itertools.permutations(windows):
        with pytest.raises(PlanError, match=r"windows '(utc' and 'night|night' and 'utc)'"):
            compile_actions(writes(*order))


def test_windows_of_the_same_times_are_compared_with_those_of_another_zone() -> None:
    windows = (
        daily("floor", "05:00", "06:00"),
        daily("ceiling", "05:00", "06:00", write_min=None, write_max=2_000),
        daily("utc", "15:00", "16:00", "UTC", 300),
    )
    actions = compile_actions(writes(*windows, high=1_000))
    assert {action.bounds for action in actions} == {Bounds(500, 2_000), Bounds(300, 1_000), Bounds(100, 1_000)}


def test_window_under_another_changes_no_action() -> None:
    over = replace(daily("over", "08:00", "12:00"), days="MON-FRI")
    hidden = (
        replace(daily("a", "09:00", "10:00", "Europe/Amsterdam", 300), days="MON-FRI"),
        replace(daily("b", "08:30", "12:00", "Africa/Ceuta"), days="TUE"),
    )
    assert compile_actions(writes(*hidden, over)) == compile_actions(writes(over))


def test_section_without_a_further_run_is_not_taken_for_a_steady_one() -> None:
    """Compiled inside the one-off window, after the daily one's last edge in it."""
    once = Window.once(
        "once", start="2027-09-25T02:30", end="2027-09-26T02:30", timezone="UTC", write_min=500, write_max=500
    )
    target = writes(once, daily("daily", "02:15", "23:30", "Pacific/Chatham", write_max=1_500), high=1_000)
    as_of = datetime(2027, 9, 25, 14, tzinfo=UTC)
    assert_held(target, compile_actions(target, as_of), minute_of(as_of), minute_of(as_of) + 3 * DAY)
