"""Each finding by its whole text."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from highwater.core import (
    Capacity,
    HighWaterMark,
    IndexCapacity,
    Plan,
    Severity,
    Window,
    check,
)
from highwater.core.checks import errors_of
from tests.core.plans_to_check import (
    DAYS,
    DECREASES,
    DEPLOY_TIME,
    FOLLOW,
    LEAD,
    LOCAL,
    MARK,
    NAME,
    NOW,
    QUOTA,
    READ,
    STARTS,
    TARGET,
    TIMES,
    UNITS,
    WHOLE,
    ZONES,
    drops_a_day,
    fortnights,
    hours_of_a_day,
    once,
    one_off_days,
    plan,
    texts,
    window,
    with_windows,
)

FINDINGS = [
    pytest.param(
        with_windows(window(lead=5)),
        f"window 'load' lead: got 5, {LEAD}",
        id="lead as a number",
    ),
    pytest.param(
        with_windows(window(lead=[5])), f"window 'load' lead: got a list, {LEAD}", id="lead that is no length of time"
    ),
    pytest.param(with_windows(window(days=(1, 2))), f"window 'load' days: got (1, 2), {DAYS}", id="days as numbers"),
    pytest.param(with_windows(window(days=5)), f"window 'load' days: got (5,), {DAYS}", id="a day as a number"),
    pytest.param(with_windows(window(days="MON-")), f"window 'load' days: got 'MON-', {DAYS}", id="half a range"),
    pytest.param(
        with_windows(window(start="24:00", end="00:00")),
        f"window 'load' start: got '24:00', {STARTS}",
        id="start at the end of the day",
    ),
    pytest.param(
        with_windows(Window.daily("load", start=time(5, 0, 7), end="06:00", timezone="UTC", write_min=33)),
        f"window 'load' start: got '05:00:07', {STARTS}",
        id="start with seconds",
    ),
    pytest.param(
        with_windows(once(start="2027-10-31T02:30:00 (fold=1)")),
        f"window 'sale' start: got '2027-10-31T02:30:00 (fold=1)', {LOCAL}",
        id="start on the second coming of an hour",
    ),
    pytest.param(
        with_windows(once(start="1999-01-01T00:00")),
        f"window 'sale' start: got '1999-01-01T00:00', {LOCAL}",
        id="start long ago",
    ),
    pytest.param(
        with_windows(once(start="2027-11-26")), f"window 'sale' start: got '2027-11-26', {LOCAL}", id="date alone"
    ),
    pytest.param(
        with_windows(window(timezone="posixrules")),
        f"window 'load' timezone: got 'posixrules', {ZONES} 'UTC' [highwater:unknownTimezone]",
        id="zone that names no place",
    ),
    pytest.param(
        with_windows(window(write_min="20")), f"window 'load' write_min: got '20', {WHOLE}", id="units as text"
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=2, max_capacity=9, target_utilization_percent=None)),  # type: ignore[arg-type]
        f"table write target_utilization_percent: got None, {TARGET}",
        id="no target",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=2, max_capacity=9, target_utilization_percent=DEPLOY_TIME)),  # type: ignore[arg-type]
        "table read target_utilization_percent: the number is known only at deploy time, but synth needs it; write "
        "the number, or read it from context instead [highwater:deployTimeUnits]",
        id="target known only at deploy time",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=2, max_capacity=9, scale_in_cooldown=timedelta(seconds=-5))),
        "table read scale_in_cooldown: got -1 day, 23:59:55, allowed: whole seconds, 0 or more; give a timedelta, "
        "e.g. timedelta(seconds=60) [highwater:cooldownOutOfRange]",
        id="cooldown before it starts",
    ),
    pytest.param(
        plan(read=None),
        "table read: got None, allowed: a Capacity; give Capacity.autoscaled(min_capacity=, max_capacity=) or "
        "Capacity.fixed(units=) "
        "[highwater:capacityMissing]",
        id="no capacity",
    ),
    pytest.param(
        plan(read=17),
        "table read: got 17, allowed: a Capacity; give Capacity.autoscaled(min_capacity=, max_capacity=) or "
        "Capacity.fixed(units=) "
        "[highwater:capacityMissing]",
        id="units without a Capacity",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=2, max_capacity=9, scale_out_cooldown="60")),  # type: ignore[arg-type]
        "table read scale_out_cooldown: got '60', allowed: whole seconds, 0 or more; give a timedelta, "
        "e.g. timedelta(seconds=60) [highwater:cooldownOutOfRange]",
        id="cooldown as text",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=2, max_capacity=9, scale_out_cooldown=timedelta(seconds=1.5))),
        "table read scale_out_cooldown: got 0:00:01.500000, allowed: whole seconds, 0 or more; give a timedelta, "
        "e.g. timedelta(seconds=60) [highwater:cooldownOutOfRange]",
        id="cooldown with half a second",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=9, max_capacity=2.5)),
        f"table read max_capacity: got 2.5, {WHOLE}",
        id="max not whole is not compared with min",
    ),
    pytest.param(
        plan(table_quota_units=float("nan")), f"table_quota_units: got nan, {WHOLE}", id="quota that is no number"
    ),
    pytest.param(
        plan(indexes=(IndexCapacity(index_name=""),)),
        f"index name: got '', {NAME}",
        id="index without a name",
    ),
    pytest.param(
        with_windows(window(name=[])),  # type: ignore[arg-type]
        f"window name: got [], {NAME}",
        id="window named by a list",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=12, max_capacity=11)),
        "table read max_capacity: got 11, allowed: 12 (min_capacity) or more; raise max_capacity or lower "
        "min_capacity [highwater:maxBelowMin]",
        id="max of the table below its min",
    ),
    pytest.param(
        plan(
            indexes=(IndexCapacity(index_name="by_day", write=Capacity.autoscaled(min_capacity=34, max_capacity=31)),)
        ),
        "index 'by_day' write max_capacity: got 31, allowed: 34 (min_capacity) or more; raise max_capacity or "
        "lower min_capacity [highwater:maxBelowMin]",
        id="max of an index below its min",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=22, max_capacity=220, disable_scale_in="no")),  # type: ignore[arg-type]
        "table write disable_scale_in: got 'no', allowed: True or False; write it without quotes "
        "[highwater:flagUnclear]",
        id="flag that is a text",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=904), table_quota_units=903),
        f"table write max_with_boosts: got 904, allowed: up to 903, {QUOTA}",
        id="ceiling for boosts above the quota",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=219)),
        "table write max_with_boosts: got 219, allowed: 220 (max_capacity) or more; raise max_with_boosts, or leave it "
        "out: boosts then stay below max_capacity [highwater:boostCeilingBelowMax]",
        id="ceiling of boosts below the max",
    ),
    pytest.param(
        with_windows(window(write_min=51, write_max=50)),
        "window 'load' write_max of table write: got 50, allowed: 51 (write_min) or more; raise write_max or lower "
        "write_min [highwater:maxBelowMin]",
        id="max of a window below its min",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=22, max_capacity=220, target_utilization_percent=19)),
        f"table write target_utilization_percent: got 19, {TARGET}",
        id="target below 20",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=11, max_capacity=110, target_utilization_percent=91)),
        f"table read target_utilization_percent: got 91, {TARGET}",
        id="target above 90",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=11, max_capacity=110, target_utilization_percent=0.7)),  # type: ignore[arg-type]
        f"table read target_utilization_percent: got 0.7, {TARGET}",
        id="target as a fraction",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=0, max_capacity=9)),
        f"table read min_capacity: got 0, {UNITS}",
        id="min of nothing",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=2, max_capacity=9.5)),
        f"table write max_capacity: got 9.5, {WHOLE}",
        id="max not whole",
    ),
    pytest.param(plan(write=Capacity.fixed(-3)), f"table write units: got -3, {UNITS}", id="fixed units negative"),
    pytest.param(
        plan(write=Capacity.fixed(float("nan"))), f"table write units: got nan, {WHOLE}", id="fixed units no number"
    ),
    pytest.param(
        with_windows(window(read_min=0)), f"window 'load' read_min: got 0, {UNITS}", id="units of a window not positive"
    ),
    pytest.param(
        with_windows(window(write_max=True)), f"window 'load' write_max: got True, {WHOLE}", id="True is no number"
    ),
    pytest.param(
        plan(mark=HighWaterMark.units(read=0)), f"high-water mark read: got 0, {UNITS}", id="mark not positive"
    ),
    pytest.param(
        with_windows(window(write_min=221)),
        "window 'load' write_min of table write: got 221, allowed: 1 to 220 (max_capacity); raise max_capacity, "
        "or give the window "
        "write_max=221 or more [highwater:windowAboveCeiling]",
        id="window above the ceiling",
    ),
    pytest.param(
        plan(indexes=(IndexCapacity(index_name="by_day", windows=(window(write_min=None, read_min=111),)),)),
        "window 'load' read_min of index 'by_day' read: got 111, allowed: 1 to 110 (max_capacity); raise "
        "max_capacity, or give the "
        "window read_max=111 or more [highwater:windowAboveCeiling]",
        id="window of an index above its ceiling",
    ),
    pytest.param(
        with_windows(window(timezone="Europe/Belrin")),
        f"window 'load' timezone: got 'Europe/Belrin', {ZONES} 'Europe/Berlin' [highwater:unknownTimezone]",
        id="timezone misspelt",
    ),
    pytest.param(
        with_windows(window(timezone=None)),
        f"window 'load' timezone: got None, {ZONES} 'UTC' [highwater:unknownTimezone]",
        id="timezone missing",
    ),
    pytest.param(
        with_windows(window(timezone=[])),
        f"window 'load' timezone: got [], {ZONES} 'UTC' [highwater:unknownTimezone]",
        id="timezone as a list",
    ),
    pytest.param(
        with_windows(window(start="25:00")), f"window 'load' start: got '25:00', {STARTS}", id="start past midnight"
    ),
    pytest.param(with_windows(window(end="24:01")), f"window 'load' end: got '24:01', {TIMES}", id="end past 24:00"),
    pytest.param(with_windows(window(end=None)), f"window 'load' end: got None, {TIMES}", id="end missing"),
    pytest.param(
        with_windows(once(start="26 November")), f"window 'sale' start: got '26 November', {LOCAL}", id="date in words"
    ),
    pytest.param(
        with_windows(once(end="2027-11-27T00:00+01:00")),
        f"window 'sale' end: got '2027-11-27T00:00+01:00', {LOCAL}",
        id="local time with an offset",
    ),
    pytest.param(
        with_windows(once(start="2027-11-26T00:00:30")),
        f"window 'sale' start: got '2027-11-26T00:00:30', {LOCAL}",
        id="local time with seconds",
    ),
    pytest.param(
        with_windows(window(days="MON-FRY")), f"window 'load' days: got 'MON-FRY', {DAYS}", id="range of no days"
    ),
    pytest.param(with_windows(window(days="")), f"window 'load' days: got '', {DAYS}", id="days as an empty text"),
    pytest.param(with_windows(window(days=())), f"window 'load' days: got (), {DAYS}", id="days as an empty list"),
    pytest.param(
        with_windows(window(lead=timedelta(minutes=-2))),
        f"window 'load' lead: got -1 day, 23:58:00, {LEAD}",
        id="lead negative",
    ),
    pytest.param(
        with_windows(window(lead=timedelta(days=1, minutes=1))),
        f"window 'load' lead: got 1 day, 0:01:00, {LEAD}",
        id="lead of more than a day",
    ),
    pytest.param(
        with_windows(window(lead=timedelta(seconds=90))),
        f"window 'load' lead: got 0:01:30, {LEAD}",
        id="lead of one and a half minutes",
    ),
    pytest.param(
        with_windows(once(end="2027-11-26T00:00")),
        "window 'sale' end: got '2027-11-26T00:00', allowed: later than its start '2027-11-26T00:00'; swap the two, or "
        "move the end [highwater:emptyWindow]",
        id="one-off window that ends as it starts",
    ),
    pytest.param(
        with_windows(window(write_min=None)),
        "window 'load': the window raises no floor and no ceiling; give at least one of read_min, write_min, "
        "read_max and write_max [highwater:windowWithoutUnits]",
        id="window without units",
    ),
    pytest.param(
        with_windows(window(), window(days="TUE")),
        "window 'load': two windows have this name; rename one of them, or merge the two [highwater:duplicateWindow]",
        id="two windows of a name",
    ),
    pytest.param(
        plan(indexes=(IndexCapacity(index_name="by_day"), IndexCapacity(index_name="by_day", read=READ))),
        "index 'by_day': the index is listed twice; merge the two entries [highwater:duplicateIndex]",
        id="two indexes of a name",
    ),
    pytest.param(
        with_windows(window(), write=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=220)),
        "table write min_capacity and max_capacity: the number is known only at deploy time, but synth needs it; "
        "write the numbers, or leave this dimension without windows [highwater:deployTimeUnits]",
        id="window beside a floor known only at deploy time",
    ),
    pytest.param(
        with_windows(window(write_min=DEPLOY_TIME)),
        "window 'load' write_min: the number is known only at deploy time, but synth needs it; "
        "write the number, or read it from context instead [highwater:deployTimeUnits]",
        id="window with units known only at deploy time",
    ),
    pytest.param(
        plan(read=Capacity.autoscaled(min_capacity=11, max_capacity=40_001)),
        f"table read max_capacity: got 40001, allowed: up to 40000, {QUOTA}",
        id="max above the quota",
    ),
    pytest.param(
        with_windows(window(write_min=23, write_max=901), table_quota_units=900),
        f"window 'load' write_max of table write: got 901, allowed: up to 900, {QUOTA}",
        id="ceiling of a window above the quota",
    ),
    pytest.param(
        plan(mark=HighWaterMark.units(write=904), table_quota_units=903),
        f"high-water mark write of table: got 904, allowed: up to 903, {QUOTA}",
        id="mark above the quota",
    ),
    pytest.param(
        plan(mark=HighWaterMark.units(write=21)),
        f"high-water mark write of table: got 21, allowed: 22 {MARK}",
        id="mark below the base floor",
    ),
    pytest.param(
        plan(
            mark=HighWaterMark.units(read=15),
            indexes=(IndexCapacity(index_name="by_day", read=Capacity.autoscaled(min_capacity=16, max_capacity=110)),),
        ),
        f"high-water mark read of index 'by_day': got 15, allowed: 16 {MARK}",
        id="mark below the base floor of an index",
    ),
    pytest.param(
        with_windows(
            window("office", days="MON-FRI", start="09:00", end="17:00", timezone="America/New_York"),
            window("evening", days="MON-FRI", start="18:00", end="23:00", write_min=44),
        ),
        "windows 'office' and 'evening' of table write: the windows overlap or touch, but the clock changes of "
        "America/New_York and Europe/Berlin differ, and a scheduled action has a single time zone; give both windows "
        "the same timezone, or leave time between them, or let a ThrottleAwareScaler open and close the windows with "
        "windows_held_by= [highwater:windowsAcrossZones]",
        id="windows of different zones that meet",
    ),
    pytest.param(
        with_windows(*one_off_days(101)),
        "windows of table write: got 202 scheduled actions, allowed: at most 200 on a scalable target, a fixed quota; "
        "merge windows, let them start and end at the same times, or remove one-off windows that have ended; "
        "windows_held_by= does not help, because a scaler has room for a plan of 7,992 bytes, about 55 windows, and "
        "this plan has 14,048 bytes [highwater:tooManyActions]",
        id="more than 200 actions, of more windows than a scaler has room for",
    ),
    pytest.param(
        with_windows(*hours_of_a_day(10), *fortnights(10)),
        "windows of table write: got 262 scheduled actions, allowed: at most 200 on a scalable target, a fixed quota; "
        "merge windows, let them start and end at the same times, or remove one-off windows that have ended, or let a "
        "ThrottleAwareScaler open and close the windows with windows_held_by= [highwater:tooManyActions]",
        id="more than 200 actions, of windows that a scaler has room for",
    ),
]

WARNINGS = [
    pytest.param(
        with_windows(once(start="2027-05-01T00:00", end="2027-05-02T00:00")),
        "window 'sale' end: got '2027-05-02T00:00', allowed: later than 2027-05-06 07:08 UTC; remove the window: it "
        "has ended and has no effect any more [highwater:pastWindow]",
        id="window that is over",
    ),
    pytest.param(
        plan(
            indexes=(IndexCapacity(index_name="by_day", write=Capacity.autoscaled(min_capacity=8, max_capacity=220)),)
        ),
        f"index 'by_day' write floor: got 8, allowed: 22 {FOLLOW}",
        id="index below the table's base floor",
    ),
    pytest.param(
        with_windows(window(write_min=77), indexes=(IndexCapacity(index_name="by_day", windows=()),)),
        f"index 'by_day' write floor: got 22, allowed: 77 {FOLLOW}",
        id="index without the table's windows",
    ),
    pytest.param(
        with_windows(*drops_a_day(6)),
        "windows of the table: the windows lower capacity 6 times on Monday 2027-01-11 (UTC), and DynamoDB at first "
        f"refuses 2 of these decreases: {DECREASES}",
        id="six decreases in an hour",
    ),
    pytest.param(
        plan(indexes=(IndexCapacity(index_name="by_day", windows=drops_a_day(5)),)),
        "windows of index 'by_day': the windows lower capacity 5 times on Monday 2027-01-11 (UTC), and DynamoDB at "
        f"first refuses 1 of these decreases: {DECREASES}",
        id="five decreases of an index in an hour",
    ),
    pytest.param(
        with_windows(
            *(
                once(f"sale {n}", start="2027-06-01T00:00", end=f"2027-07-10T10:0{n}", timezone="UTC", write_min=59 - n)
                for n in range(6)
            )
        ),
        "windows of the table: the windows lower capacity 6 times on Saturday 2027-07-10 (UTC), and DynamoDB at first "
        f"refuses 2 of these decreases: {DECREASES}",
        id="six decreases at the end of long one-off windows",
    ),
]


@pytest.mark.parametrize(("declared", "expected"), FINDINGS)
def test_check_of_what_cannot_work_tells_the_error(declared: Plan, expected: str) -> None:
    findings = check(declared)
    assert texts(findings) == [f"Shop/Orders: {expected}"]
    assert errors_of(findings) == findings


@pytest.mark.parametrize(("declared", "expected"), WARNINGS)
def test_check_of_what_will_hurt_tells_the_warning(declared: Plan, expected: str) -> None:
    findings = check(declared, NOW)
    assert texts(findings) == [f"Shop/Orders: {expected}"]
    assert [finding.severity for finding in findings] == [Severity.WARNING]
