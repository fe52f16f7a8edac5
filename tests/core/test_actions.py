"""Scheduled actions: names, schedules, and what the compiler makes of a few plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Plan, ScheduledAction, Target, Window, compile_actions
from highwater.core.schedule.compiler import effective, recurring_action, single_action
from highwater.core.schedule.cron_days import CronDays

BOUNDS = Bounds(33, 220)
BASE = Bounds(22, 220)


def target(*windows: Window, write: Capacity | None = None) -> Target:
    write = write or Capacity.autoscaled(min_capacity=22, max_capacity=220)
    return Plan(read=Capacity.fixed(1), write=write, windows=windows).targets()[1]


def weekly(days: str = "MON-FRI", **changes: Any) -> Window:
    fields = {"start": "05:00", "end": "06:30", "timezone": "Europe/Berlin", "write_min": 33, "lead": timedelta(0)}
    return Window.weekly("load", days=days, **{**fields, **changes})


def once(start: str, end: str, write_min: int = 44) -> Window:
    return Window.once("sale", start=start, end=end, timezone="UTC", write_min=write_min, lead=timedelta(0))


@pytest.mark.parametrize(
    ("days", "name", "schedule"),
    [
        pytest.param((2,), "WED 0507 UTC min 33 max 220", "cron(7 5 ? * WED *)", id="one day"),
        pytest.param((0, 1), "MON,TUE 0507 UTC min 33 max 220", "cron(7 5 ? * MON,TUE *)", id="two days are a list"),
        pytest.param((0, 1, 2), "MON-WED 0507 UTC min 33 max 220", "cron(7 5 ? * MON-WED *)", id="three are a range"),
        pytest.param(
            (0, 2, 3, 4, 6), "MON,WED-FRI,SUN 0507 UTC min 33 max 220", "cron(7 5 ? * MON,WED-FRI,SUN *)", id="a mix"
        ),
        pytest.param(tuple(range(7)), "daily 0507 UTC min 33 max 220", "cron(7 5 * * ? *)", id="all days"),
    ],
)
def test_recurring_action_tells_days_and_time(days: tuple[int, ...], name: str, schedule: str) -> None:
    assert recurring_action(CronDays(of_week=days), 307, "UTC", BOUNDS) == ScheduledAction(
        name, schedule, "UTC", BOUNDS
    )


def test_recurring_action_of_a_section_names_its_start_or_else_its_end() -> None:
    first, last = datetime(2027, 3, 4, 5, 7, tzinfo=UTC), datetime(2027, 5, 6, 7, 8, tzinfo=UTC)
    names = [
        recurring_action(CronDays(of_week=(0,)), 307, "America/Argentina/Salta", BOUNDS, start, end).name
        for start, end in ((first, None), (None, last), (first, last))
    ]
    assert names == [
        "MON 0507 America.Argentina.Salta min 33 max 220 from 2027-03-04 0507 UTC",
        "MON 0507 America.Argentina.Salta min 33 max 220 until 2027-05-06 0708 UTC",
        "MON 0507 America.Argentina.Salta min 33 max 220 from 2027-03-04 0507 UTC",
    ]


def test_single_action_is_told_in_utc() -> None:
    at = datetime.fromisoformat("2027-11-26T00:30:00+01:00")
    assert single_action(at, BOUNDS) == ScheduledAction(
        "once 2027-11-25 2330 UTC min 33 max 220", "at(2027-11-25T23:30:00)", "UTC", BOUNDS
    )


def test_target_without_windows_needs_no_actions() -> None:
    assert compile_actions(target()) == ()


def test_weekly_window_compiles_to_its_rise_and_its_fall() -> None:
    assert compile_actions(target(weekly())) == (
        ScheduledAction(
            "MON-FRI 0500 Europe.Berlin min 33 max 220", "cron(0 5 ? * MON-FRI *)", "Europe/Berlin", BOUNDS
        ),
        ScheduledAction("MON-FRI 0630 Europe.Berlin min 22 max 220", "cron(30 6 ? * MON-FRI *)", "Europe/Berlin", BASE),
    )


def test_window_over_fixed_capacity_moves_floor_and_ceiling_together() -> None:
    actions = compile_actions(target(weekly(), write=Capacity.fixed(22)))
    assert [action.bounds for action in actions] == [Bounds(33, 33), Bounds(22, 22)]


def test_rise_in_a_time_that_clocks_skip_comes_again_at_the_end_of_the_skipped_hour() -> None:
    """And once more an hour on, should AAS run the skipped time an hour late."""
    schedules = [action.schedule for action in compile_actions(target(weekly("SUN", start="02:30")))]
    assert schedules == [f"cron({at} ? * SUN *)" for at in ("30 2", "0 3", "0 4", "30 6")]


def test_bounds_that_never_change_are_set_once_a_day() -> None:
    """Else nothing would ever set them, or heal them after a hand edit."""
    actions = compile_actions(target(weekly("MON-SUN", start="05:00", end="05:00")))
    assert [(action.schedule, action.timezone) for action in actions] == [("cron(0 0 * * ? *)", "UTC")]


def test_window_on_all_days_at_the_same_time_twice_needs_no_actions_between_days() -> None:
    actions = compile_actions(target(weekly("MON", start="05:00", end="05:00")))
    assert [action.schedule for action in actions] == ["cron(0 5 ? * MON *)", "cron(0 5 ? * TUE *)"]


def test_one_off_window_over_a_weekly_one_parts_its_actions_in_sections() -> None:
    actions = compile_actions(target(weekly("MON"), once("2027-02-01T00:00", "2027-02-15T12:00")))
    before = datetime(2027, 1, 31, 23, 59, 30, tzinfo=UTC)
    rise, fall = (datetime(2027, 2, 22, hour, minute, tzinfo=UTC) for hour, minute in ((4, 0), (5, 30)))
    assert [(action.name, action.start, action.end) for action in actions] == [
        ("MON 0500 Europe.Berlin min 33 max 220 from 2027-02-22 0400 UTC", rise, None),
        ("MON 0500 Europe.Berlin min 33 max 220 until 2027-01-31 2359 UTC", None, before),
        ("MON 0630 Europe.Berlin min 22 max 220 from 2027-02-22 0530 UTC", fall, None),
        ("MON 0630 Europe.Berlin min 22 max 220 until 2027-01-31 2359 UTC", None, before),
        ("once 2027-02-01 0000 UTC min 44 max 220", None, None),
        ("once 2027-02-15 1200 UTC min 22 max 220", None, None),
    ]


def test_actions_compiled_after_a_one_off_window_know_nothing_of_it() -> None:
    windows = (weekly("MON"), once("2027-02-01T00:00", "2027-02-15T12:00"))
    assert compile_actions(target(*windows), datetime(2027, 2, 15, 12, tzinfo=UTC)) == compile_actions(
        target(windows[0])
    )


def test_actions_compiled_within_a_one_off_window_leave_its_beginning_out() -> None:
    actions = compile_actions(target(once("2027-02-01T00:00", "2027-02-15T12:00")), datetime(2027, 2, 9, tzinfo=UTC))
    assert [action.name for action in actions] == ["once 2027-02-15 1200 UTC min 22 max 220"]


def test_first_run_after_a_one_off_window_is_a_time_that_the_clocks_do_not_skip() -> None:
    """02:30 is skipped on 28 March: the action starts a week later, the one at the end of the skipped hour at once."""
    windows = (weekly("SUN", start="02:30", end="06:30"), once("2027-02-01T00:00", "2027-03-27T00:00"))
    starts = {action.schedule: action.start for action in compile_actions(target(*windows)) if action.start}
    assert starts == {
        "cron(30 2 ? * SUN *)": datetime(2027, 4, 4, 0, 30, tzinfo=UTC),
        "cron(0 3 ? * SUN *)": datetime(2027, 3, 28, 1, tzinfo=UTC),
        "cron(0 4 ? * SUN *)": datetime(2027, 3, 28, 2, tzinfo=UTC),
        "cron(30 6 ? * SUN *)": datetime(2027, 3, 28, 4, 30, tzinfo=UTC),
    }


def test_action_that_ends_with_its_section_does_not_run_at_the_very_end() -> None:
    """The one-off window opens just as the weekly one closes: the old fall must not run beside the new rise."""
    windows = (weekly("MON", timezone="UTC"), once("2027-02-01T06:30", "2027-02-02T00:00"))
    ends = {action.end for action in compile_actions(target(*windows)) if action.schedule == "cron(30 6 ? * MON *)"}
    assert ends == {datetime(2027, 2, 1, 6, 29, 30, tzinfo=UTC), None}


def test_action_that_would_not_run_again_before_a_one_off_window_is_left_out() -> None:
    """The window opens on a Monday: from the Thursday before, Wednesday's actions have their day only after it."""
    windows = (weekly("WED", timezone="UTC"), once("2027-02-01T00:00", "2027-02-02T00:00"))
    wednesday, thursday = datetime(2027, 1, 27, tzinfo=UTC), datetime(2027, 1, 28, tzinfo=UTC)
    until = [
        [action.name for action in compile_actions(target(*windows), as_of) if action.end]
        for as_of in (wednesday, thursday)
    ]
    assert until == [
        [
            "WED 0500 UTC min 33 max 220 until 2027-01-31 2359 UTC",
            "WED 0630 UTC min 22 max 220 until 2027-01-31 2359 UTC",
        ],
        [],
    ]


def test_no_more_changes_in_a_section_than_recurring_actions_are_single_ones() -> None:
    """A week and a half holds one Monday, thus two changes; two Mondays would be four, of the same two actions."""
    windows = (weekly("MON", timezone="UTC"), once("2027-02-03T00:00", "2027-02-14T00:00", write_min=25))
    within = [action.name for action in compile_actions(target(*windows)) if "25" in action.name or action.start]
    assert within == [
        "MON 0500 UTC min 33 max 220 from 2027-02-15 0500 UTC",
        "MON 0630 UTC min 22 max 220 from 2027-02-15 0630 UTC",
        "once 2027-02-03 0000 UTC min 25 max 220",
        "once 2027-02-08 0630 UTC min 25 max 220",
    ]
    longer = (windows[0], once("2027-02-03T00:00", "2027-02-16T00:00", write_min=25))
    within = [action.name for action in compile_actions(target(*longer)) if "25" in action.name]
    assert within == ["MON 0630 UTC min 25 max 220 from 2027-02-08 0630 UTC", "once 2027-02-03 0000 UTC min 25 max 220"]


def test_one_off_window_no_higher_than_the_base_needs_no_actions() -> None:
    low = target(once("2027-02-01T00:00", "2027-02-02T00:00", write_min=22))
    assert effective(low) == target(), "it has no effect"
    assert compile_actions(low) == ()


def test_of_two_windows_with_one_effect_that_of_the_first_zone_is_kept() -> None:
    amsterdam, berlin = (
        Window.daily(name, start="05:00", end="06:00", timezone=timezone, write_min=33)
        for name, timezone in (("x", "Europe/Amsterdam"), ("y", "Europe/Berlin"))
    )
    renamed = replace(amsterdam, name="z")
    for windows in ((amsterdam, berlin), (berlin, amsterdam), (berlin, renamed)):
        assert [window.window.timezone for window in effective(target(*windows)).windows] == ["Europe/Amsterdam"]


def test_window_is_hidden_by_one_of_a_zone_that_is_an_hour_ahead() -> None:
    over = Window.daily("over", start="09:00", end="12:00", timezone="Europe/Berlin", write_min=55, lead=timedelta(0))
    for start, end, is_hidden in (("08:00", "08:10", True), ("10:50", "11:00", True), ("10:50", "11:01", False)):
        under = weekly("MON", timezone="Europe/London", start=start, end=end)
        assert (effective(target(over, under)) == target(over)) is is_hidden


def test_bounds_that_never_change_are_set_daily_up_to_the_next_one_off_window() -> None:
    windows = (weekly("MON-SUN", start="05:00", end="05:00"), once("2027-02-01T00:00", "2027-02-15T12:00"))
    assert [(action.name, action.end) for action in compile_actions(target(*windows))] == [
        ("daily 0000 UTC min 33 max 220 until 2027-01-31 2359 UTC", datetime(2027, 1, 31, 23, 59, 30, tzinfo=UTC)),
        ("once 2027-02-01 0000 UTC min 44 max 220", None),
        ("once 2027-02-15 1200 UTC min 33 max 220", None),
    ]


@pytest.mark.parametrize(
    ("end", "first"),
    [
        pytest.param("2027-02-15T06:29", "2027-02-15T06:30", id="a minute later on the same day"),
        pytest.param("2027-02-15T06:30", "2027-02-22T06:30", id="not at its very end, which has an action of its own"),
    ],
)
def test_first_run_after_a_one_off_window_is_later_than_its_end(end: str, first: str) -> None:
    windows = (weekly("MON", timezone="UTC"), once("2027-02-01T00:00", end))
    falls = [action for action in compile_actions(target(*windows)) if action.schedule == "cron(30 6 ? * MON *)"]
    assert [f"{action.start:%Y-%m-%dT%H:%M}" for action in falls if action.start] == [first]
