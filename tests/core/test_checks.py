"""Each finding by its whole text, what lies just beside it and is fine, and that all conflicts are told together."""

from __future__ import annotations

import re
import struct
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from highwater.core import (
    Capacity,
    Finding,
    HighWaterMark,
    IndexCapacity,
    Plan,
    PlanError,
    Severity,
    Window,
    baseline,
    check,
)
from highwater.core.checks import checked, errors_of

DEPLOY_TIME: float = struct.unpack(">d", b"\xfb\xff\x00\x00\x00\x00\x00\x01")[0]
READ = Capacity.autoscaled(min_capacity=11, max_capacity=110)
WRITE = Capacity.autoscaled(min_capacity=22, max_capacity=220)
NOW = datetime(2027, 5, 6, 7, 8, tzinfo=UTC)


def plan(**changes: Any) -> Plan:
    return Plan(**{"read": READ, "write": WRITE, **changes})


def window(name: str = "load", **changes: Any) -> Window:
    fields = {"days": "MON", "start": "05:00", "end": "06:30", "timezone": "Europe/Berlin", "write_min": 33}
    return Window(**{"name": name, **fields, **changes})


def once(name: str = "sale", **changes: Any) -> Window:
    return window(name, **{"days": None, "start": "2027-11-26T00:00", "end": "2027-11-27T00:00", **changes})


def with_windows(*windows: Window, **changes: Any) -> Plan:
    return plan(windows=windows, **changes)


def texts(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.text("Shop/Orders") for finding in findings]


def drops_a_day(count: int) -> tuple[Window, ...]:
    """Windows that let the write floor down *count* times a day, ten minutes apart."""
    return tuple(
        Window.daily(
            f"w{n}",
            start=f"10:{10 * n:02}",
            end=f"10:{10 * n + 5:02}",
            timezone="UTC",
            write_min=33 + n,
            lead=timedelta(0),
        )
        for n in range(count)
    )


def one_off_days(count: int) -> tuple[Window, ...]:
    """One-off windows of one hour each, on days that follow one another."""
    days = [date(2027, 1, 1) + timedelta(days=number) for number in range(count)]
    return tuple(once(f"day {day}", start=f"{day}T01:00", end=f"{day}T02:00") for day in days)


def hours_of_a_day(count: int) -> tuple[Window, ...]:
    """Daily windows of half an hour each, one an hour, each higher than the one before."""
    return tuple(
        window(f"hour {hour}", days="MON-SUN", start=f"{hour:02}:00", end=f"{hour:02}:30", write_min=33 + hour)
        for hour in range(count)
    )


def fortnights(count: int) -> tuple[Window, ...]:
    """One-off windows of two weeks each, two weeks apart: recurring windows need other actions in each of them."""
    days = [date(2027, 1, 1) + timedelta(days=28 * number) for number in range(count)]
    return tuple(
        once(f"from {day}", start=f"{day}T00:00", end=f"{day + timedelta(days=14)}T00:00", write_min=80) for day in days
    )


WHOLE = "allowed: whole units per second, 1 or more; write a whole number [highwater:unitsNotPositive]"
UNITS = "allowed: whole units per second, 1 or more; give 1 for the lowest capacity [highwater:unitsNotPositive]"
TARGET = "allowed: a whole percentage from 20 to 90; give a percentage, e.g. 70 [highwater:targetOutOfRange]"
DAYS = (
    "allowed: MON to SUN, alone, as a range or as a list; write the days as in 'MON-FRI' or 'SAT,SUN' "
    "[highwater:unparsableDays]"
)
ZONES = "allowed: an IANA time zone name, not an abbreviation or offset; use a name such as"
NAME = "allowed: a text of at least one character; give it a name in quotes [highwater:nameMissing]"
STARTS = "allowed: HH:MM from 00:00 to 23:59; write it as in '05:00' [highwater:unparsableTime]"
TIMES = "allowed: HH:MM from 00:00 to 24:00; write it as in '05:00' [highwater:unparsableTime]"
LOCAL = (
    "allowed: a local YYYY-MM-DDTHH:MM without offset, 2000 to 2199; write it as in '2026-11-27T05:00' "
    "[highwater:unparsableTime]"
)
LEAD = (
    "allowed: whole minutes from 0 to 24 hours; give a timedelta, e.g. timedelta(minutes=5), or declare a second "
    "window that opens earlier [highwater:leadOutOfRange]"
)
QUOTA = (
    "the account's quota for a table or index; lower the value, or request a higher quota from AWS and give it as "
    "table_quota_units "
    "[highwater:aboveQuota]"
)
MARK = (
    "(the base floor, which the table supports at once anyway) or more; raise the mark, or omit high_water_mark to "
    "derive it from the windows [highwater:markBelowMinimum]"
)
FOLLOW = (
    "(the table's write floor at that time) or more; let the index follow the table, unless it contains few of the "
    "table's items: an index without enough write capacity throttles the table's writes [highwater:indexBelowTable]"
)
DECREASES = (
    "it allows 4 at any time of a UTC day, then one an hour, reads and writes together; let windows end "
    "together or merge them; capacity stays high until a decrease is allowed [highwater:decreasesOverBudget]"
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
