"""Findings: what works has none, what lies just beside is found, and all conflicts are told together."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import Capacity, HighWaterMark, Plan, PlanError, Severity, Window, baseline, check
from highwater.core.checks import checked
from tests.core.plans_to_check import (
    DEPLOY_TIME,
    FOLLOW,
    NOW,
    UNITS,
    WRITE,
    drops_a_day,
    index,
    monthly,
    once,
    one_off_days,
    plan,
    reads,
    texts,
    window,
    with_indexes,
    with_windows,
    writes,
)

OFFICE = window("office", days="MON-FRI", start="09:00", end="17:00", timezone="America/New_York")
ONE_UNIT = Capacity.fixed(1)
WORKS = {
    "min equal to max": reads(min_capacity=13, max_capacity=13),
    "one unit": plan(read=Capacity.autoscaled(min_capacity=1, max_capacity=1), write=ONE_UNIT),
    "target of 20": reads(target_utilization_percent=20),
    "target of 90": reads(target_utilization_percent=90),
    "max equal to the quota": reads(max_capacity=40_000),
    "mark equal to the base floors": plan(mark=HighWaterMark.units(read=11, write=22)),
    "mark equal to the quota": plan(mark=HighWaterMark.units(write=40_000)),
    "quota of a single unit": plan(read=ONE_UNIT, write=ONE_UNIT, table_quota_units=1),
    "mark of a single unit": plan(read=ONE_UNIT, write=ONE_UNIT, mark=HighWaterMark.units(read=1, write=1)),
    "cooldown of an odd number of seconds": reads(scale_in_cooldown=timedelta(seconds=61)),
    "deploy time, max alone": reads(max_capacity=DEPLOY_TIME),
    "no mark": plan(mark=HighWaterMark.none()),
    "deploy time, no windows": writes(min_capacity=DEPLOY_TIME, max_capacity=DEPLOY_TIME),
    "deploy time, other dimension": with_windows(
        window(), read=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=9)
    ),
    "deploy time, index not compared with it": with_indexes(
        index(write=WRITE), write=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=220)
    ),
    "window equal to the ceiling": with_windows(window(write_min=220)),
    "window that brings its ceiling": with_windows(window(write_min=221, write_max=221)),
    "window over fixed capacity": with_windows(window(write_min=333), write=Capacity.fixed(22)),
    "window that lifts the ceiling alone": with_windows(window(write_min=None, write_max=221)),
    "window equal to the quota": with_windows(window(write_min=900, write_max=900), table_quota_units=900),
    "ceiling for boosts equal to the quota": plan(
        write=Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=900), table_quota_units=900
    ),
    "ceiling for boosts equal to the ceiling": plan(
        write=Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=220)
    ),
    "ceiling that falls, which is no decrease": with_windows(
        *(
            Window.daily(f"w{n}", start=f"10:{6 * n:02}", end=f"10:{6 * n + 3:02}", timezone="UTC", write_max=300 + n)
            for n in range(9)
        )
    ),
    "latest day of a month": with_windows(monthly(day=31)),
    "last of four weekdays of a month": with_windows(monthly(weekday="FRI", nth=4)),
    "no lead": with_windows(window(lead=timedelta(0))),
    "lead of a day": with_windows(window(lead=timedelta(hours=24))),
    "whole day": with_windows(window(start="00:00", end="24:00")),
    "same time twice": with_windows(window(start="9:05", end="9:05")),
    "recurring window that ends before it starts": with_windows(window(start="22:00", end="04:00")),
    "days in small letters": with_windows(window(days="sat-sun")),
    "one-off window of a minute": with_windows(once(end="2027-11-26T00:01")),
    "past window where nobody says what time it is": with_windows(
        once(start="2019-05-01T00:00", end="2019-05-02T00:00")
    ),
    "one window name in two indexes": with_indexes(index("a", windows=(window(),)), index("b", windows=(window(),))),
    "index equal to the table": with_indexes(index(write=Capacity.fixed(22))),
    "index with fewer reads": with_indexes(index(read=ONE_UNIT)),
    "four decreases in an hour": with_windows(*drops_a_day(4)),
    "zones that change alike": with_windows(
        window("london", timezone="Europe/London", start="08:00", end="12:00"),
        window("berlin", timezone="Europe/Berlin", start="11:00", end="15:00", write_min=44),
    ),
    "zones that change apart, hours apart": with_windows(
        window("utc", timezone="UTC", start="00:00", end="01:00"),
        window("berlin", timezone="Europe/Berlin", start="12:00", end="13:00", write_min=44),
    ),
    "just 200 actions": with_windows(*one_off_days(100)),
}


@pytest.mark.parametrize("declared", WORKS.values(), ids=WORKS)
def test_check_of_what_works_finds_nothing(declared: Plan) -> None:
    assert check(declared) == ()


FOUND = {
    "window under another": (
        with_windows(window(), window("rush", start="05:30", end="06:00", write_min=32)),
        ["windowWithoutEffect"],
    ),
    "window of a single unit": (with_windows(window(write_min=1)), ["windowWithoutEffect"]),
    "floor and ceiling of a window above the quota, and no mark": (
        with_windows(window(write_min=40_001, write_max=40_002)),
        ["aboveQuota", "aboveQuota"],
    ),
    "what three indexes share with their table, once": (
        with_windows(*one_off_days(101), indexes=tuple(index(f"by_{number}") for number in range(3))),
        ["tooManyActions"],
    ),
    "window without a name hides no later conflict": (
        with_windows(window(name=""), window("load"), window("load", days="TUE")),
        ["nameMissing", "duplicateWindow"],
    ),
    "index without a name hides no later conflict": (
        with_indexes(index(""), index(), index()),
        ["nameMissing", "duplicateIndex"],
    ),
    "capacity that is none hides no later conflict": (
        plan(read=None, write=Capacity.fixed(0)),
        ["capacityMissing", "unitsNotPositive"],
    ),
    "one-off window is not compared with itself, zone": (with_windows(once(timezone="Mars/Base")), ["unknownTimezone"]),
    "one-off window is not compared with itself, lead": (with_windows(once(lead=5)), ["leadOutOfRange"]),
    "one-off window is not compared with itself, start": (with_windows(once(start="26 November")), ["unparsableTime"]),
    "one-off window is not compared with itself, end": (with_windows(once(end="27 November")), ["unparsableTime"]),
    "one-off window that ends too early in an unknown zone": (
        with_windows(once(timezone="Mars/Base", start="2027-11-27T00:00", end="2027-11-26T00:00")),
        ["unknownTimezone"],
    ),
    "all conflicts of a plan together": (
        plan(
            read=Capacity.autoscaled(min_capacity=12, max_capacity=11, target_utilization_percent=5),
            write=Capacity.fixed(0),
            windows=(window(timezone="Mars/Base", days="XXX", start="x"), window(write_min=None)),
            indexes=(index(), index()),
            mark=HighWaterMark.units(write=-4),
        ),
        [
            "maxBelowMin",
            "targetOutOfRange",
            "unitsNotPositive",
            "duplicateWindow",
            "unknownTimezone",
            "unparsableDays",
            "unparsableTime",
            "windowWithoutUnits",
            "duplicateIndex",
            "unitsNotPositive",
        ],
    ),
}


@pytest.mark.parametrize(("declared", "ids"), FOUND.values(), ids=FOUND)
def test_check_finds_these_and_no_others(declared: Plan, ids: list[str]) -> None:
    assert [finding.id.removeprefix("highwater:") for finding in check(declared)] == ids


SUBJECTS = {
    "dimension known only at deploy time hides no later conflict": (
        with_windows(window(write_min=221), read=Capacity.fixed(DEPLOY_TIME), indexes=(index(windows=()),)),
        ["window 'load' write_min of table write"],
    ),
    "window that lifts the ceiling alone hides no later conflict": (
        with_windows(window("ceiling", write_min=None, write_max=230), window("rush", write_min=221)),
        ["window 'rush' write_min of table write"],
    ),
    "what several indexes share is told once": (
        with_indexes(index(), index("by_hour"), read=Capacity.autoscaled(min_capacity=12, max_capacity=11)),
        ["table read max_capacity"],
    ),
}


@pytest.mark.parametrize(("declared", "subjects"), SUBJECTS.values(), ids=SUBJECTS)
def test_check_tells_of_these_and_no_others(declared: Plan, subjects: list[str]) -> None:
    assert [finding.subject for finding in check(declared)] == subjects


def test_bounds_known_only_at_deploy_time_are_not_made_up() -> None:
    target = writes(min_capacity=DEPLOY_TIME).targets()[1]
    message = "table write: the bounds are known only at deploy time; read the plan from a deployed stack"
    with pytest.raises(ValueError, match=f"^{message}$"):
        baseline(target, NOW)


@pytest.mark.parametrize(
    ("units", "fix"),
    [
        pytest.param(900, "raise max_capacity, or give the window write_max=900 or more", id="as high as the quota"),
        pytest.param(901, "raise max_capacity", id="above the quota, where no write_max helps"),
    ],
)
def test_window_above_the_ceiling_is_told_what_helps(units: int, fix: str) -> None:
    finding = check(with_windows(window(write_min=units), table_quota_units=900))[0]
    assert finding.text("Shop/Orders") == (
        f"Shop/Orders: window 'load' write_min of table write: got {units}, allowed: 1 to 220 (max_capacity); {fix} "
        "[highwater:windowAboveCeiling]"
    )


def test_capacity_of_an_index_is_told_under_the_name_of_the_index() -> None:
    assert texts(check(with_indexes(index("by-day", read=Capacity.fixed(0), write=Capacity.fixed(0))))) == [
        f"Shop/Orders: index 'by-day' {dimension} units: got 0, {UNITS}" for dimension in ("read", "write")
    ]


def test_actions_of_windows_that_have_ended_do_not_count() -> None:
    # two actions a window
    days = with_windows(*one_off_days(101))
    assert [finding.id for finding in check(days)] == ["highwater:tooManyActions"]
    after_the_first = datetime(2027, 1, 1, 5, tzinfo=UTC)
    assert [finding.id for finding in check(days, after_the_first)] == ["highwater:pastWindow"]


def test_check_as_of_a_naive_time_is_refused() -> None:
    message = "an aware datetime is needed, got 2027-05-06T07:08:00 without a zone; add tzinfo=UTC or a ZoneInfo"
    with pytest.raises(ValueError, match=re.escape(message)):
        check(with_windows(once()), NOW.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("end", "ids"),
    [
        pytest.param("2027-05-06T09:08", ["highwater:pastWindow"], id="ends now: half-open, so it is over"),
        pytest.param("2027-05-06T09:09", [], id="ends in a minute"),
    ],
)
def test_past_window_is_one_whose_end_has_come(end: str, ids: list[str]) -> None:
    findings = check(with_windows(once(start="2027-05-01T00:00", end=end)), NOW)
    assert [finding.id for finding in findings] == ids


def test_index_compared_with_its_table_is_told_where_it_is_farthest_below() -> None:
    """22 below 33 for an hour and a half, 22 below 55 for another hour, 22 below 44 for a last one."""
    windows = (
        window("low", write_min=33),
        window("high", start="08:00", end="09:00", write_min=55),
        window("middle", start="11:00", end="12:00", write_min=44),
    )
    (finding,) = check(with_windows(*windows, indexes=(index(windows=()),)))
    assert finding.problem == "got 22, allowed: 55 (the table's write floor at that time) or more"


def test_every_index_below_its_table_is_told() -> None:
    units = (("late", DEPLOY_TIME), ("by-day", 5), ("by-week", 6))
    assert texts(check(with_indexes(*(index(name, write=Capacity.fixed(each)) for name, each in units)))) == [
        f"Shop/Orders: index {name!r} write floor: got {each}, allowed: 22 {FOLLOW}" for name, each in units[1:]
    ]


def test_of_two_times_at_which_an_index_is_as_far_below_the_first_is_told() -> None:
    windows = (window("load", write_min=55), window("rush", start="08:00", end="09:00", write_min=65))
    own = window("own", start="08:00", end="09:00", write_min=32)
    (finding,) = check(with_windows(*windows, indexes=(index(windows=(own,)),)))
    assert finding.problem == "got 22, allowed: 55 (the table's write floor at that time) or more"


def test_index_below_its_table_where_a_long_window_begins_is_told() -> None:
    sale = once(start="2027-11-01T00:00", end="2027-12-01T00:00", write_min=90)
    own = once("own", start="2027-11-01T12:00", end=sale.end)
    found = texts(check(with_windows(sale, indexes=(index(windows=(own,)),))))
    assert found[0] == f"Shop/Orders: index 'by_day' write floor: got 22, allowed: 90 {FOLLOW}"


def test_decreases_of_table_and_index_are_told_of_each() -> None:
    findings = check(with_windows(*drops_a_day(6), window("load"), indexes=(index(windows=drops_a_day(6)),)))
    assert [finding.subject for finding in findings if finding.id == "highwater:decreasesOverBudget"] == [
        "windows of the table",
        "windows of index 'by_day'",
    ]


def test_decreases_of_a_day_of_the_month_are_told() -> None:
    """On a day that is in no sample week."""
    given: dict[str, Any] = {"day": 25, "timezone": "UTC", "lead": timedelta(0)}
    windows = (
        Window.monthly(f"w{n}", start=f"10:{10 * n:02}", end=f"10:{10 * n + 5:02}", write_min=33 + n, **given)
        for n in range(6)
    )
    (finding,) = check(with_windows(*windows))
    assert finding.problem == (
        "the windows lower capacity 6 times on Monday 2027-01-25 (UTC), and DynamoDB at first refuses 2 of these "
        "decreases: it allows 4 at any time of a UTC day, then one an hour, reads and writes together"
    )


def test_check_tells_errors_before_warnings() -> None:
    evening = window("evening", start="18:00", end="23:00")
    past = once(start="2027-05-01T00:00", end="2027-05-02T00:00")
    findings = check(with_windows(past, OFFICE, evening), NOW)
    assert [finding.severity for finding in findings] == [Severity.ERROR, Severity.WARNING]


def test_checked_of_a_sound_plan_is_the_plan_itself() -> None:
    sound = with_windows(*drops_a_day(6))
    assert checked(sound) is sound


def test_checked_of_a_broken_plan_raises_with_every_error_on_a_line() -> None:
    broken = plan(read=Capacity.autoscaled(min_capacity=12, max_capacity=11), write=Capacity.fixed(0))
    message = (
        "Shop/Orders: table read max_capacity: got 11, allowed: 12 (min_capacity) or more; raise max_capacity or "
        "lower min_capacity "
        f"[highwater:maxBelowMin]\nShop/Orders: table write units: got 0, {UNITS}"
    )
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$") as refused:
        checked(broken, "Shop/Orders")
    with pytest.raises(PlanError, match=r"^plan: table read max_capacity: got 11"):
        checked(broken)
    assert refused.value.findings == check(broken)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("size_bytes", "advice"),
    [
        pytest.param(
            7_992,
            ", or let a ThrottleAwareScaler open and close the windows with windows_held_by=",
            id="as long as fits",
        ),
        pytest.param(
            7_993,
            "; windows_held_by= does not help, because a scaler has room for a plan of 7,992 bytes, about 55 windows, "
            "and this plan has 7,993 bytes",
            id="a byte longer",
        ),
    ],
)
def test_a_scaler_is_recommended_where_it_has_room_for_the_plan(size_bytes: int, advice: str) -> None:
    def named(name: str) -> Plan:
        return with_windows(OFFICE, window(name, days="MON-FRI", start="18:00", end="23:00", write_min=44))

    long = named("e" * (size_bytes - named("").size_bytes))
    assert [finding.fix for finding in check(long)] == [
        f"give both windows the same timezone, or leave time between them{advice}"
    ]


def test_windows_that_no_action_can_say_are_sound_where_something_else_holds_them() -> None:
    apart = with_windows(OFFICE, window("evening", days="MON-FRI", start="18:00", end="23:00", write_min=44))
    assert [finding.id for finding in check(apart)] == ["highwater:windowsAcrossZones"]
    assert check(apart, has_actions=False) == ()
