"""The four laws of a plan, with random plans whose edges like to fall into the hours that clock changes skip or repeat.

Everything here is told in minutes of 1970, see `aas_model`; the windows are read by this module's own few lines.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from operator import itemgetter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

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
from tests.core.aas_model import (
    DAY,
    FIRST,
    Change,
    changes_only,
    clock_changes,
    clock_of,
    day_minute,
    instant_at,
    minute_of,
    play,
)
from tests.core.examples import examples

DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
SIXTY_DAYS = 60 * DAY
ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kolkata",
    "UTC",
    "America/Havana",  # skips the hour after midnight
    "Africa/Cairo",  # likewise, and repeats the one before
    "America/Santiago",
)
ALIKE = (("Europe/Berlin", "Europe/London"), ("Asia/Kolkata", "UTC"), ("America/New_York", "America/Toronto"))
UNLIKE = (
    ("Europe/Berlin", "America/New_York"),
    ("Africa/Cairo", "UTC"),
    ("Australia/Lord_Howe", "America/Santiago"),
    ("America/Havana", "America/New_York"),
)
ZERO = timedelta(0)
READ, WRITE = Capacity.fixed(7), Capacity.autoscaled(min_capacity=5, max_capacity=60)


def law(count: int) -> settings:
    return settings(
        max_examples=examples(count),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


# --- an independent reading of windows ------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def openings_of(window: Window, first: int, last: int) -> list[tuple[int, int]]:
    """First minute and the minute after the last of each opening, by the sentences of `Window`'s docstring.

    Those of recurring windows on the local days from *first* to *last*.
    """
    clock, lead = clock_of(window.timezone), int(window.lead.total_seconds()) // 60
    if window.days is None:
        walls = [(wall_of(window.start) - lead, wall_of(window.end))]
    else:
        names = window.days.split(",") if isinstance(window.days, str) else window.days
        opens, closes = clock_minutes(window.start), clock_minutes(window.end)
        if closes <= opens:
            closes += DAY
        walls = [
            (midnight + opens - lead, midnight + closes)
            for midnight in range(first, last, DAY)
            if DAYS[(midnight // DAY + 3) % 7] in names
        ]
    return [(clock.when(opens), clock.when(closes)) for opens, closes in walls]


def clock_minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def wall_of(text: str) -> int:
    return day_minute(date.fromisoformat(text[:10])) + clock_minutes(text[11:])


def reading(target: Target, start: int, end: int) -> tuple[Change, ...]:
    """Floor and ceiling at *start* and at every change before *end*: the highest of the base and the open windows."""
    # an opening lasts two days at most, a lead one, and no clock is further from UTC than one
    days = (start // DAY - 4) * DAY, (end // DAY + 4) * DAY
    spans = [(opens, closes, w.min, w.max) for w in target.windows for opens, closes in openings_of(w.window, *days)]
    spans = [span for span in spans if span[0] < end and span[1] > start]
    edges = {start, *(at for span in spans for at in span[:2] if start <= at < end)}
    waiting, opened, steps = sorted(spans, key=itemgetter(0), reverse=True), [], []
    for at in sorted(edges):
        while waiting and waiting[-1][0] <= at:
            opened.append(waiting.pop())
        opened = [span for span in opened if at < span[1]]
        floor = max([int(target.capacity.min_capacity), *(span[2] for span in opened if span[2] is not None)])
        ceiling = max([int(target.capacity.max_capacity), *(span[3] for span in opened if span[3] is not None)])
        steps.append((at, Bounds(floor, ceiling if target.capacity.is_autoscaled else floor)))
    return changes_only(steps)


def value_at(changes: Sequence[Change], minute: int) -> Bounds:
    return changes[bisect_right(changes, minute, key=itemgetter(0)) - 1][1]


# --- random plans ---------------------------------------------------------------------------------------------------


@lru_cache
def change_minutes(timezone: str) -> list[int]:
    """The minutes of 2027 at which the zone's clocks change; two days of New York's for a zone without."""
    year = range(day_minute(date(2027, 1, 1)), day_minute(date(2028, 1, 1)))
    return [at for at, _, _ in clock_changes(timezone) if at in year] or change_minutes("America/New_York")


@lru_cache
def touchy_walls(timezone: str) -> list[tuple[int, int]]:
    """The stretches of local time of 2027 that the clocks skip or repeat, a little more on both sides."""
    found = []
    for at, expected, shown in clock_changes(timezone) or clock_changes("America/New_York"):
        if at in range(day_minute(date(2027, 1, 1)), day_minute(date(2028, 1, 1))):
            found.append((min(expected, shown) - 10, max(expected, shown) + 10))
    return found


@lru_cache
def touchy_times(timezone: str) -> SearchStrategy[int]:
    """Minutes of a day in or close to a stretch that is skipped or repeated, round ones before others."""
    times = sorted({wall % DAY for low, high in touchy_walls(timezone) for wall in range(low, high + 1)})
    return st.sampled_from([t for t in times if t % 30 == 0]) | st.sampled_from(times)


@lru_cache
def times_of_day(timezone: str) -> SearchStrategy[int]:
    return touchy_times(timezone) | st.sampled_from(range(0, DAY, 30)) | st.integers(0, DAY - 1)


@lru_cache
def day_sets(timezone: str) -> SearchStrategy[tuple[str, ...]]:
    """Days of the week, above all those of the changes and their neighbours."""
    touchy = {(wall // DAY + 3 + step) % 7 for span in touchy_walls(timezone) for wall in span for step in (-1, 0, 1)}
    few = st.sets(st.sampled_from(sorted(touchy)), min_size=1, max_size=3)
    return (few | st.sets(st.integers(0, 6), min_size=1) | st.just(set(range(7)))).map(
        lambda days: tuple(DAYS[day] for day in sorted(days))
    )


# made once each: Hypothesis examines a strategy anew for every one that it is handed
NAMES = st.sampled_from("abcdefgh")
LEADS = st.sampled_from([0, 0, 5, 30, 60, 90, 240, 1440]) | st.integers(0, 400)
LENGTHS = st.sampled_from([30, 60, 90, 600, DAY, 3 * DAY, 14 * DAY, 40 * DAY]) | st.integers(1, 400)
DIMENSIONS = st.sampled_from([("write",), ("read",), ("read", "write")])
FLOORS = st.sampled_from([None, 3, 10, 20, 20, 40, 60, 80])
CEILINGS = st.sampled_from([None, None, 30, 70, 90])


@lru_cache
def sampled(values: Sequence[Any]) -> SearchStrategy[Any]:
    return st.sampled_from(values)


@lru_cache
def whole_numbers(low: int, high: int) -> SearchStrategy[int]:
    return st.integers(low, high)


@st.composite
def units(draw: DrawFn) -> dict[str, int]:
    """Bounds that pass the checks: a floor above the ceiling brings a ceiling of its own."""
    given_units: dict[str, int] = {}
    for dimension in draw(DIMENSIONS):
        floor, ceiling = draw(FLOORS), draw(CEILINGS)
        if floor is not None:
            given_units[f"{dimension}_min"] = floor
        if ceiling is None and dimension == "write" and (floor or 0) > 60:
            ceiling = 100
        if ceiling is not None or floor is None:
            given_units[f"{dimension}_max"] = max(ceiling or 65, floor or 0)
    return given_units


UNITS = units()


@lru_cache
def ends_of_day(timezone: str) -> SearchStrategy[tuple[bool, int]]:
    """Minutes of a day, or how long after the start: whether it is the latter, and the minutes."""
    at = times_of_day(timezone) | st.just(DAY)
    return st.tuples(st.just(False), at) | st.tuples(st.just(True), st.integers(1, 90))


@st.composite
def _recurring_windows(draw: DrawFn, timezone: str) -> Window:
    start = draw(times_of_day(timezone))
    is_length, end = draw(ends_of_day(timezone))
    return Window.weekly(
        draw(NAMES),
        days=draw(day_sets(timezone)),
        start=hh_mm(start),
        end=hh_mm((start + end) % DAY if is_length else end),
        timezone=timezone,
        lead=timedelta(minutes=draw(LEADS)),
        **draw(UNITS),
    )


@lru_cache
def recurring_windows(timezone: str) -> SearchStrategy[Window]:
    return _recurring_windows(timezone)


@lru_cache
def recurring_lists(timezone: str, most: int) -> SearchStrategy[list[Window]]:
    return st.lists(recurring_windows(timezone), max_size=most)


@lru_cache
def starts_around(timezone: str) -> SearchStrategy[tuple[bool, int]]:
    """Minutes of 1970 in or at a stretch that is skipped or repeated, or from some day on: whether it is the latter."""
    touchy = st.sampled_from([wall for low, high in touchy_walls(timezone) for wall in range(low, high + 1)])
    anywhere = st.builds(lambda days, minute: days * DAY + minute, st.integers(-35, 35), times_of_day(timezone))
    return st.tuples(st.just(False), touchy) | st.tuples(st.just(True), anywhere)


@st.composite
def _one_off_windows(draw: DrawFn, timezone: str, day: int) -> Window:
    is_from_day, start = draw(starts_around(timezone))
    start += day * DAY if is_from_day else 0
    return Window.once(
        draw(NAMES),
        start=iso(start),
        end=iso(start + draw(LENGTHS)),
        timezone=timezone,
        lead=timedelta(minutes=draw(LEADS)),
        **draw(UNITS),
    )


@lru_cache
def one_off_windows(timezone: str, around: int) -> SearchStrategy[Window]:
    return _one_off_windows(timezone, around // DAY)


@lru_cache
def one_off_lists(timezone: str, around: int, least: int, most: int) -> SearchStrategy[list[Window]]:
    return st.lists(one_off_windows(timezone, around), min_size=least, max_size=most)


def hh_mm(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def iso(wall: int) -> str:
    return f"{instant_at(wall):%Y-%m-%dT%H:%M}"


@st.composite
def spans(draw: DrawFn, timezone: str) -> int:
    """The first of sixty days that hold a clock change of the zone, near or far."""
    change: int = draw(sampled(tuple(change_minutes(timezone))))
    days: int = draw(sampled((0, 1, 2, 7, 30, 58)))
    return change - days * DAY - draw(whole_numbers(0, DAY - 1))


def named_apart(windows: Sequence[Window]) -> tuple[Window, ...]:
    return tuple(replace(window, name=f"{window.name}{number}") for number, window in enumerate(windows))


@st.composite
def schedules(draw: DrawFn, zones: Sequence[str] = ZONES, most: int = 4) -> tuple[Plan, int]:
    """A plan with windows in one zone, and the first of sixty days to look at it."""
    timezone = draw(sampled(zones))
    start = draw(spans(timezone))
    recurring = draw(recurring_lists(timezone, most))
    windows = [*recurring, *draw(one_off_lists(timezone, start // DAY * DAY + 30 * DAY, 0 if recurring else 1, 2))]
    return Plan(read=READ, write=WRITE, windows=named_apart(draw(st.permutations(windows)))), start


@lru_cache
def few_days(day: int) -> SearchStrategy[set[int]]:
    """A day of the week, those beside it, or several of these."""
    return st.sets(st.sampled_from([(day + step) % 7 for step in (-1, 0, 1)]), min_size=1)


@st.composite
def crowded_schedules(draw: DrawFn) -> tuple[Plan, int]:
    """A plan whose windows share a few edges, most of them in or at a stretch that is skipped or repeated."""
    timezone = draw(sampled(ZONES))
    change = draw(sampled(tuple(change_minutes(timezone))))
    local_day = clock_of(timezone).walls[change - FIRST] // DAY
    times = sorted(
        {wall % DAY for low, high in touchy_walls(timezone) for wall in range(low, high + 1) if wall % 30 == 0}
    )
    clock, lead = sampled((*times, (times[-1] + 90) % DAY)), sampled((0, 0, 30, 60))
    days = few_days((local_day + 3) % 7)
    windows = []
    for _ in range(draw(whole_numbers(1, 3))):
        names = tuple(DAYS[day] for day in sorted(draw(days)))
        start, end, minutes = hh_mm(draw(clock)), hh_mm(draw(clock)), timedelta(minutes=draw(lead))
        windows.append(
            Window.weekly("w", days=names, start=start, end=end, timezone=timezone, lead=minutes, **draw(UNITS))
        )
    for _ in range(draw(whole_numbers(0, 2))):
        opens = (local_day + draw(sampled((-8, -7, -1, 0, 1)))) * DAY + draw(clock)
        closes = (local_day + draw(sampled((-6, -1, 0, 1, 7, 14)))) * DAY + draw(clock)
        minutes = timedelta(minutes=draw(lead))
        if closes > opens:
            start, end = iso(opens), iso(closes)
            windows.append(Window.once("o", start=start, end=end, timezone=timezone, lead=minutes, **draw(UNITS)))
    return Plan(read=READ, write=WRITE, windows=named_apart(windows)), change - draw(sampled((2, 10, 30))) * DAY


@st.composite
def mixed_schedules(draw: DrawFn, pairs: Sequence[tuple[str, str]]) -> tuple[Plan, int]:
    """Like `schedules`, with recurring and one-off windows of two zones."""
    pair = draw(sampled(pairs))
    start = draw(spans(draw(sampled(pair))))
    windows = [draw(recurring_windows(timezone)) for timezone in pair]
    for timezone in pair:
        windows += draw(recurring_lists(timezone, 1))
        windows += draw(one_off_lists(timezone, start // DAY * DAY + 30 * DAY, 0, 1))
    return Plan(read=READ, write=WRITE, windows=named_apart(draw(st.permutations(windows)))), start


def compiled(plan: Plan, as_of: datetime | None = None) -> list[tuple[Target, tuple[ScheduledAction, ...]]]:
    return [(target, compile_actions(target, as_of)) for target in plan.targets()]


def moments_near_changes(changes: Sequence[Change], start: int, end: int) -> list[int]:
    """Minutes at, before and after each change, that lie within [*start*, *end*)."""
    near = {at + step for at, _ in changes for step in (-1, 0, 1)}
    return sorted(at for at in near if start <= at < end)


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
    assert not [finding for finding in check(plan) if finding.severity == "error"]
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
