"""Each finding by its whole text, what lies just beside it and is fine, and that all conflicts are told together."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.core import (
    Capacity,
    HighWaterMark,
    IndexCapacity,
    Plan,
    PlanError,
    Severity,
    Window,
    baseline,
    check,
)
from highwater.core.checks import checked
from tests.core.plans_to_check import (
    DECREASES,
    DEPLOY_TIME,
    FOLLOW,
    NOW,
    QUOTA,
    UNITS,
    WRITE,
    drops_a_day,
    once,
    one_off_days,
    plan,
    texts,
    window,
    with_windows,
)


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(plan(read=Capacity.autoscaled(min_capacity=13, max_capacity=13)), id="min equal to max"),
        pytest.param(
            plan(read=Capacity.autoscaled(min_capacity=1, max_capacity=1), write=Capacity.fixed(1)), id="one unit"
        ),
        pytest.param(
            plan(read=Capacity.autoscaled(min_capacity=1, max_capacity=2, target_utilization_percent=20)),
            id="target of 20",
        ),
        pytest.param(
            plan(read=Capacity.autoscaled(min_capacity=1, max_capacity=2, target_utilization_percent=90)),
            id="target of 90",
        ),
        pytest.param(plan(read=Capacity.autoscaled(min_capacity=1, max_capacity=40_000)), id="max equal to the quota"),
        pytest.param(plan(mark=HighWaterMark.units(read=11, write=22)), id="mark equal to the base floors"),
        pytest.param(plan(mark=HighWaterMark.units(write=40_000)), id="mark equal to the quota"),
        pytest.param(
            plan(read=Capacity.fixed(1), write=Capacity.fixed(1), table_quota_units=1), id="quota of a single unit"
        ),
        pytest.param(
            plan(read=Capacity.fixed(1), write=Capacity.fixed(1), mark=HighWaterMark.units(read=1, write=1)),
            id="mark of a single unit",
        ),
        pytest.param(
            plan(read=Capacity.autoscaled(min_capacity=2, max_capacity=9, scale_in_cooldown=timedelta(seconds=61))),
            id="cooldown of an odd number of seconds",
        ),
        pytest.param(
            plan(read=Capacity.autoscaled(min_capacity=5, max_capacity=DEPLOY_TIME)), id="deploy time, max alone"
        ),
        pytest.param(plan(mark=HighWaterMark.none()), id="no mark"),
        pytest.param(
            plan(write=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=DEPLOY_TIME)),
            id="deploy time, no windows",
        ),
        pytest.param(
            with_windows(window(), read=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=9)),
            id="deploy time, other dimension",
        ),
        pytest.param(with_windows(window(write_min=220)), id="window equal to the ceiling"),
        pytest.param(with_windows(window(write_min=221, write_max=221)), id="window that brings its ceiling"),
        pytest.param(with_windows(window(write_min=333), write=Capacity.fixed(22)), id="window over fixed capacity"),
        pytest.param(with_windows(window(write_min=None, write_max=221)), id="window that lifts the ceiling alone"),
        pytest.param(with_windows(window(lead=timedelta(0))), id="no lead"),
        pytest.param(with_windows(window(lead=timedelta(hours=24))), id="lead of a day"),
        pytest.param(with_windows(window(start="00:00", end="24:00")), id="whole day"),
        pytest.param(with_windows(window(start="9:05", end="9:05")), id="same time twice"),
        pytest.param(with_windows(window(days="sat-sun")), id="days in small letters"),
        pytest.param(with_windows(once(end="2027-11-26T00:01")), id="one-off window of a minute"),
        pytest.param(
            plan(
                indexes=(
                    IndexCapacity(index_name="a", windows=(window(),)),
                    IndexCapacity(index_name="b", windows=(window(),)),
                )
            ),
            id="one window name in two indexes",
        ),
        pytest.param(
            plan(indexes=(IndexCapacity(index_name="by_day", write=Capacity.fixed(22)),)), id="index equal to the table"
        ),
        pytest.param(
            plan(indexes=(IndexCapacity(index_name="by_day", read=Capacity.fixed(1)),)), id="index with fewer reads"
        ),
        pytest.param(with_windows(*drops_a_day(4)), id="four decreases in an hour"),
        pytest.param(
            with_windows(
                window("london", timezone="Europe/London", start="08:00", end="12:00"),
                window("berlin", timezone="Europe/Berlin", start="11:00", end="15:00", write_min=44),
            ),
            id="zones that change alike",
        ),
        pytest.param(
            with_windows(
                window("utc", timezone="UTC", start="00:00", end="01:00"),
                window("berlin", timezone="Europe/Berlin", start="12:00", end="13:00", write_min=44),
            ),
            id="zones that change apart, hours apart",
        ),
        pytest.param(
            with_windows(*one_off_days(100)),
            id="just 200 actions",
        ),
    ],
)
def test_check_of_what_works_finds_nothing(declared: Plan) -> None:
    assert check(declared) == ()


def test_mark_known_only_at_deploy_time_is_refused() -> None:
    findings = check(plan(mark=HighWaterMark.units(write=DEPLOY_TIME)))  # type: ignore[arg-type]
    assert texts(findings) == [
        "Shop/Orders: high-water mark write: the number is known only at deploy time, but synth needs it; "
        "write the number, or read it from context instead [highwater:deployTimeUnits]"
    ]


def test_index_is_not_compared_with_a_floor_known_only_at_deploy_time() -> None:
    unknown = Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=220)
    assert check(plan(write=unknown, indexes=(IndexCapacity(index_name="by_day", write=WRITE),))) == ()


def test_bounds_known_only_at_deploy_time_are_not_made_up() -> None:
    target = plan(write=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=220)).targets()[1]
    message = "table write: the bounds are known only at deploy time; read the plan from a deployed stack"
    with pytest.raises(ValueError, match=f"^{message}$"):
        baseline(target, NOW)


def test_window_that_lifts_nothing_is_warned_of() -> None:
    findings = check(with_windows(window(write_min=21), window("rush", write_min=55)))
    assert texts(findings) == [
        "Shop/Orders: window 'load': the window never raises a floor or ceiling above the base and the other windows; "
        "raise the window's units, or remove the window [highwater:windowWithoutEffect]"
    ]


def test_window_under_another_is_warned_of() -> None:
    shadowed = window("rush", start="05:30", end="06:00", write_min=32)
    ids = [finding.id for finding in check(with_windows(window(), shadowed))]
    assert ids == ["highwater:windowWithoutEffect"]


def test_one_off_window_that_the_clocks_skip_whole_is_refused() -> None:
    sale = once(start="2027-03-28T02:10", end="2027-03-28T02:50", lead=timedelta(0))
    assert texts(check(with_windows(sale))) == [
        "Shop/Orders: window 'sale' end: a clock change of Europe/Berlin skips the whole window, up to its end "
        "'2027-03-28T02:50'; move the end to after the clock change, or move the window [highwater:emptyWindow]"
    ]


def test_what_indexes_share_with_their_table_is_told_once() -> None:
    indexes = tuple(IndexCapacity(index_name=f"by_{number}") for number in range(3))
    ids = [finding.id for finding in check(with_windows(*one_off_days(101), indexes=indexes))]
    assert ids.count("highwater:tooManyActions") == 1


def test_window_above_the_quota_is_told_once() -> None:
    ids = [finding.id for finding in check(with_windows(window(write_min=40_001, write_max=40_002)))]
    assert ids == ["highwater:aboveQuota", "highwater:aboveQuota"], "its floor and its ceiling, and no mark"


def test_ceiling_for_boosts_equal_to_the_quota_is_fine() -> None:
    write = Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=900)
    assert check(plan(write=write, table_quota_units=900)) == ()


def test_window_equal_to_the_quota_is_fine() -> None:
    assert check(with_windows(window(write_min=900, write_max=900), table_quota_units=900)) == ()


def test_floor_of_a_window_above_the_quota_is_told_under_its_name() -> None:
    assert texts(check(with_windows(window(write_min=901), write=Capacity.fixed(22), table_quota_units=900))) == [
        f"Shop/Orders: window 'load' write_min of table write: got 901, allowed: up to 900, {QUOTA}"
    ]


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
    index = IndexCapacity(index_name="by-day", read=Capacity.fixed(0), write=Capacity.fixed(0))
    assert texts(check(plan(indexes=(index,)))) == [
        f"Shop/Orders: index 'by-day' {dimension} units: got 0, {UNITS}" for dimension in ("read", "write")
    ]


def test_actions_of_windows_that_have_ended_do_not_count() -> None:
    # two actions a window
    days = with_windows(*one_off_days(101))
    assert [finding.id for finding in check(days)] == ["highwater:tooManyActions"]
    after_the_first = datetime(2027, 1, 1, 5, tzinfo=UTC)
    assert [finding.id for finding in check(days, after_the_first)] == ["highwater:pastWindow"]


def test_window_of_a_single_unit_can_be_read() -> None:
    assert [finding.id for finding in check(with_windows(window(write_min=1)))] == ["highwater:windowWithoutEffect"]


def test_check_as_of_a_naive_time_is_refused() -> None:
    message = "an aware datetime is needed, got 2027-05-06T07:08:00 without a zone; add tzinfo=UTC or a ZoneInfo"
    with pytest.raises(ValueError, match=re.escape(message)):
        check(with_windows(once()), NOW.replace(tzinfo=None))


def test_check_without_an_instant_looks_for_no_past_windows() -> None:
    assert check(with_windows(once(start="2019-05-01T00:00", end="2019-05-02T00:00"))) == ()


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


def test_check_tells_all_conflicts_of_a_plan_together() -> None:
    broken = plan(
        read=Capacity.autoscaled(min_capacity=12, max_capacity=11, target_utilization_percent=5),
        write=Capacity.fixed(0),
        windows=(window(timezone="Mars/Base", days="XXX", start="x"), window(write_min=None)),
        indexes=(IndexCapacity(index_name="by_day"), IndexCapacity(index_name="by_day")),
        mark=HighWaterMark.units(write=-4),
    )
    assert [finding.id.removeprefix("highwater:") for finding in check(broken)] == [
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
    ]


def test_window_without_a_name_hides_no_later_conflict() -> None:
    declared = with_windows(window(name=""), window("load"), window("load", days="TUE"))
    assert [finding.id for finding in check(declared)] == ["highwater:nameMissing", "highwater:duplicateWindow"]


def test_index_without_a_name_hides_no_later_conflict() -> None:
    declared = plan(
        indexes=(IndexCapacity(index_name=""), IndexCapacity(index_name="by_day"), IndexCapacity(index_name="by_day"))
    )
    assert [finding.id for finding in check(declared)] == ["highwater:nameMissing", "highwater:duplicateIndex"]


def test_capacity_that_is_none_hides_no_later_conflict() -> None:
    ids = [finding.id for finding in check(plan(read=None, write=Capacity.fixed(0)))]
    assert ids == ["highwater:capacityMissing", "highwater:unitsNotPositive"]


@pytest.mark.parametrize(
    ("changes", "id"),
    [
        pytest.param({"timezone": "Mars/Base"}, "unknownTimezone", id="zone"),
        pytest.param({"lead": 5}, "leadOutOfRange", id="lead"),
        pytest.param({"start": "26 November"}, "unparsableTime", id="start"),
        pytest.param({"end": "27 November"}, "unparsableTime", id="end"),
    ],
)
def test_one_off_window_that_cannot_be_read_is_not_compared_with_itself(changes: dict[str, Any], id: str) -> None:
    assert [finding.id for finding in check(with_windows(once(**changes)))] == [f"highwater:{id}"]


def test_one_off_window_in_an_unknown_zone_that_also_ends_too_early_is_told_its_zone_first() -> None:
    backwards = once(timezone="Mars/Base", start="2027-11-27T00:00", end="2027-11-26T00:00")
    assert [finding.id for finding in check(with_windows(backwards))] == ["highwater:unknownTimezone"]


def test_recurring_window_that_ends_before_it_starts_is_not_empty() -> None:
    assert check(with_windows(window(start="22:00", end="04:00"))) == ()


def test_dimension_known_only_at_deploy_time_hides_no_later_conflict() -> None:
    declared = with_windows(
        window(write_min=221),
        read=Capacity.fixed(DEPLOY_TIME),
        indexes=(IndexCapacity(index_name="by_day", windows=()),),
    )
    assert [finding.subject for finding in check(declared)] == ["window 'load' write_min of table write"]


def test_window_that_lifts_the_ceiling_alone_hides_no_later_conflict() -> None:
    declared = with_windows(window("ceiling", write_min=None, write_max=230), window("rush", write_min=221))
    assert [finding.subject for finding in check(declared)] == ["window 'rush' write_min of table write"]


def test_index_compared_with_its_table_is_told_where_it_is_farthest_below() -> None:
    """22 below 33 for an hour and a half, 22 below 55 for another hour, 22 below 44 for a last one."""
    windows = (
        window("low", write_min=33),
        window("high", start="08:00", end="09:00", write_min=55),
        window("middle", start="11:00", end="12:00", write_min=44),
    )
    (finding,) = check(with_windows(*windows, indexes=(IndexCapacity(index_name="by_day", windows=()),)))
    assert finding.problem == "got 22, allowed: 55 (the table's write floor at that time) or more"


def test_every_index_below_its_table_is_told() -> None:
    indexes = (
        IndexCapacity(index_name="late", write=Capacity.fixed(DEPLOY_TIME)),
        IndexCapacity(index_name="by-day", write=Capacity.fixed(5)),
        IndexCapacity(index_name="by-week", write=Capacity.fixed(6)),
    )
    assert texts(check(plan(indexes=indexes))) == [
        f"Shop/Orders: index {name!r} write floor: got {units}, allowed: 22 {FOLLOW}"
        for name, units in (("by-day", 5), ("by-week", 6))
    ]


def test_index_below_its_table_on_one_day_alone_is_told() -> None:
    index = IndexCapacity(index_name="by-day", windows=())
    assert texts(check(with_windows(once(write_min=90), indexes=(index,)))) == [
        f"Shop/Orders: index 'by-day' write floor: got 22, allowed: 90 {FOLLOW}"
    ]


def test_of_two_times_at_which_an_index_is_as_far_below_the_first_is_told() -> None:
    windows = (window("load", write_min=55), window("rush", start="08:00", end="09:00", write_min=65))
    index = IndexCapacity(index_name="by-day", windows=(window("own", start="08:00", end="09:00", write_min=32),))
    (finding,) = check(with_windows(*windows, indexes=(index,)))
    assert finding.problem == "got 22, allowed: 55 (the table's write floor at that time) or more"


def test_index_below_its_table_where_a_long_window_begins_is_told() -> None:
    sale = once(start="2027-11-01T00:00", end="2027-12-01T00:00", write_min=90)
    index = IndexCapacity(index_name="by-day", windows=(once("own", start="2027-11-01T12:00", end=sale.end),))
    (finding,) = check(with_windows(sale, indexes=(index,)))[:1]
    assert finding.text("Shop/Orders") == (f"Shop/Orders: index 'by-day' write floor: got 22, allowed: 90 {FOLLOW}")


def test_ceiling_that_falls_is_no_decrease() -> None:
    ceilings = tuple(
        Window.daily(f"w{n}", start=f"10:{6 * n:02}", end=f"10:{6 * n + 3:02}", timezone="UTC", write_max=300 + n)
        for n in range(9)
    )
    assert check(with_windows(*ceilings)) == ()


def test_decreases_of_a_single_day_are_told() -> None:
    windows = tuple(
        once(f"w{n}", start=f"2027-11-26T10:{10 * n:02}", end=f"2027-11-26T10:{10 * n + 8:02}", lead=timedelta(0))
        for n in range(6)
    )
    (finding,) = check(with_windows(*windows))
    assert finding.text("Shop/Orders") == (
        "Shop/Orders: windows of the table: the windows lower capacity 6 times on Friday 2027-11-26 (UTC), and "
        f"DynamoDB at first refuses 2 of these decreases: {DECREASES}"
    )


def test_decreases_of_table_and_index_are_told_of_each() -> None:
    index = IndexCapacity(index_name="by-day", windows=drops_a_day(6))
    findings = check(with_windows(*(drops_a_day(6)), window("load"), indexes=(index,)))
    assert [finding.subject for finding in findings if finding.id == "highwater:decreasesOverBudget"] == [
        "windows of the table",
        "windows of index 'by-day'",
    ]


def test_check_tells_errors_before_warnings() -> None:
    office = window("office", start="09:00", end="17:00", timezone="America/New_York")
    evening = window("evening", start="18:00", end="23:00")
    past = once(start="2027-05-01T00:00", end="2027-05-02T00:00")
    findings = check(with_windows(past, office, evening), NOW)
    assert [finding.severity for finding in findings] == [Severity.ERROR, Severity.WARNING]


def test_check_tells_what_several_indexes_share_once() -> None:
    shared = plan(
        read=Capacity.autoscaled(min_capacity=12, max_capacity=11),
        indexes=(IndexCapacity(index_name="by_day"), IndexCapacity(index_name="by_hour")),
    )
    assert [finding.subject for finding in check(shared)] == ["table read max_capacity"]


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
    office = window("office", days="MON-FRI", start="09:00", end="17:00", timezone="America/New_York")

    def named(name: str) -> Plan:
        return with_windows(office, window(name, days="MON-FRI", start="18:00", end="23:00", write_min=44))

    long = named("e" * (size_bytes - named("").size_bytes))
    assert [finding.fix for finding in check(long)] == [
        f"give both windows the same timezone, or leave time between them{advice}"
    ]


def test_windows_that_no_action_can_say_are_sound_where_something_else_holds_them() -> None:
    plan = with_windows(
        window("office", days="MON-FRI", start="09:00", end="17:00", timezone="America/New_York"),
        window("evening", days="MON-FRI", start="18:00", end="23:00", write_min=44),
    )
    assert [finding.id for finding in check(plan)] == ["highwater:windowsAcrossZones"]
    assert check(plan, has_actions=False) == ()
