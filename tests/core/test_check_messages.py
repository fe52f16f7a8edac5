"""Each finding by its whole text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from highwater.core import Capacity, HighWaterMark, Plan, Severity, Window, check
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

CAPACITY = (
    "allowed: a cdk_highwater.Capacity; give Capacity.autoscaled(min_capacity=, max_capacity=) or "
    "Capacity.fixed(units=) [highwater:capacityMissing]"
)
COOLDOWN = (
    "allowed: whole seconds, 0 or more; give a timedelta, e.g. timedelta(seconds=60) [highwater:cooldownOutOfRange]"
)
KNOWN_LATE = "the number is known only at deploy time, but synth needs it; write the number"
ELSEWHERE = f"{KNOWN_LATE}, or read it from context instead [highwater:deployTimeUnits]"
ABOVE_MAX = "(max_capacity); raise max_capacity, or give the window"
TIMED_BY_SCALER = ", or let a ThrottleAwareScaler open and close the windows with windows_held_by="
UNKNOWN_ZONE = "[highwater:unknownTimezone]"
# what is changed of the plan, and what is told of it
Changes = dict[str, tuple[dict[str, Any], str]]

OF_A_WINDOW: Changes = {
    "lead as a number": ({"lead": 5}, f"lead: got 5, {LEAD}"),
    "lead that is no length of time": ({"lead": [5]}, f"lead: got a list, {LEAD}"),
    "lead negative": ({"lead": timedelta(minutes=-2)}, f"lead: got -1 day, 23:58:00, {LEAD}"),
    "lead of more than a day": ({"lead": timedelta(days=1, minutes=1)}, f"lead: got 1 day, 0:01:00, {LEAD}"),
    "lead of one and a half minutes": ({"lead": timedelta(seconds=90)}, f"lead: got 0:01:30, {LEAD}"),
    "days as numbers": ({"days": (1, 2)}, f"days: got (1, 2), {DAYS}"),
    "a day as a number": ({"days": 5}, f"days: got (5,), {DAYS}"),
    "half a range": ({"days": "MON-"}, f"days: got 'MON-', {DAYS}"),
    "range of no days": ({"days": "MON-FRY"}, f"days: got 'MON-FRY', {DAYS}"),
    "days as an empty text": ({"days": ""}, f"days: got '', {DAYS}"),
    "days as an empty list": ({"days": ()}, f"days: got (), {DAYS}"),
    "start at the end of the day": ({"start": "24:00", "end": "00:00"}, f"start: got '24:00', {STARTS}"),
    "start past midnight": ({"start": "25:00"}, f"start: got '25:00', {STARTS}"),
    "end past 24:00": ({"end": "24:01"}, f"end: got '24:01', {TIMES}"),
    "end missing": ({"end": None}, f"end: got None, {TIMES}"),
    "zone that names no place": (
        {"timezone": "posixrules"},
        f"timezone: got 'posixrules', {ZONES} 'UTC' {UNKNOWN_ZONE}",
    ),
    "timezone misspelt": (
        {"timezone": "Europe/Belrin"},
        f"timezone: got 'Europe/Belrin', {ZONES} 'Europe/Berlin' {UNKNOWN_ZONE}",
    ),
    "timezone missing": ({"timezone": None}, f"timezone: got None, {ZONES} 'UTC' {UNKNOWN_ZONE}"),
    "timezone as a list": ({"timezone": []}, f"timezone: got [], {ZONES} 'UTC' {UNKNOWN_ZONE}"),
    "units as text": ({"write_min": "20"}, f"write_min: got '20', {WHOLE}"),
    "units of a window not positive": ({"read_min": 0}, f"read_min: got 0, {UNITS}"),
    "True is no number": ({"write_max": True}, f"write_max: got True, {WHOLE}"),
    "window with units known only at deploy time": ({"write_min": DEPLOY_TIME}, f"write_min: {ELSEWHERE}"),
    "max of a window below its min": (
        {"write_min": 51, "write_max": 50},
        "write_max of table write: got 50, allowed: 51 (write_min) or more; raise write_max or lower write_min "
        "[highwater:maxBelowMin]",
    ),
    "window above the ceiling": (
        {"write_min": 221},
        f"write_min of table write: got 221, allowed: 1 to 220 {ABOVE_MAX} write_max=221 or more "
        "[highwater:windowAboveCeiling]",
    ),
}
OF_A_ONE_OFF_WINDOW: Changes = {
    "start on the second coming of an hour": (
        {"start": "2027-10-31T02:30:00 (fold=1)"},
        f"start: got '2027-10-31T02:30:00 (fold=1)', {LOCAL}",
    ),
    "start long ago": ({"start": "1999-01-01T00:00"}, f"start: got '1999-01-01T00:00', {LOCAL}"),
    "date alone": ({"start": "2027-11-26"}, f"start: got '2027-11-26', {LOCAL}"),
    "date in words": ({"start": "26 November"}, f"start: got '26 November', {LOCAL}"),
    "local time with an offset": ({"end": "2027-11-27T00:00+01:00"}, f"end: got '2027-11-27T00:00+01:00', {LOCAL}"),
    "local time with seconds": ({"start": "2027-11-26T00:00:30"}, f"start: got '2027-11-26T00:00:30', {LOCAL}"),
    "one-off window that ends as it starts": (
        {"end": "2027-11-26T00:00"},
        "end: got '2027-11-26T00:00', allowed: later than its start '2027-11-26T00:00'; swap the two, or move the end "
        "[highwater:emptyWindow]",
    ),
    "one-off window that the clocks skip whole": (
        {"start": "2027-03-28T02:10", "end": "2027-03-28T02:50", "lead": timedelta(0)},
        "end: a clock change of Europe/Berlin skips the whole window, up to its end '2027-03-28T02:50'; move the end "
        "to after the clock change, or move the window [highwater:emptyWindow]",
    ),
}
DAY = "allowed: 1 to 31, or 'last'; write it as in day=1 or day='last' [highwater:monthDayOutOfRange]"
NTH = (
    "allowed: 1 to 4, or 'last'; write it as in nth=1 or nth='last'; not every month has a fifth "
    "[highwater:monthDayOutOfRange]"
)
WEEKDAY = "allowed: one of MON to SUN; write it as in weekday='MON' [highwater:unparsableDays]"
OF_A_MONTHLY_WINDOW: Changes = {
    "day 32": ({"day": 32}, f"day: got 32, {DAY}"),
    "day 0": ({"day": 0}, f"day: got 0, {DAY}"),
    "day as text": ({"day": "15"}, f"day: got '15', {DAY}"),
    "day as truth": ({"day": True}, f"day: got True, {DAY}"),
    "first day in words": ({"day": "first"}, f"day: got 'first', {DAY}"),
    "days of the month": ({"day": [1, 15]}, f"day: got [1, 15], {DAY}"),
    "weekday written out": ({"weekday": "monday", "nth": 1}, f"weekday: got 'monday', {WEEKDAY}"),
    "weekdays": ({"weekday": "MON-FRI", "nth": 1}, f"weekday: got 'MON-FRI', {WEEKDAY}"),
    "nth without a weekday": ({"nth": 1}, f"weekday: got None, {WEEKDAY}"),
    "weekday without an nth": ({"weekday": "MON"}, f"nth: got None, {NTH}"),
    "fifth weekday": ({"weekday": "MON", "nth": 5}, f"nth: got 5, {NTH}"),
    "nth in words": ({"weekday": "MON", "nth": "first"}, f"nth: got 'first', {NTH}"),
    "start as a date": (
        {"day": 1, "start": "2027-11-01T00:00"},
        "start: got '2027-11-01T00:00', allowed: HH:MM from 00:00 to 23:59; write it as in '05:00' "
        "[highwater:unparsableTime]",
    ),
}
OF_READS: Changes = {
    "target known only at deploy time": (
        {"target_utilization_percent": DEPLOY_TIME},
        f"target_utilization_percent: {ELSEWHERE}",
    ),
    "target above 90": ({"target_utilization_percent": 91}, f"target_utilization_percent: got 91, {TARGET}"),
    "target as a fraction": ({"target_utilization_percent": 0.7}, f"target_utilization_percent: got 0.7, {TARGET}"),
    "cooldown before it starts": (
        {"scale_in_cooldown": timedelta(seconds=-5)},
        f"scale_in_cooldown: got -1 day, 23:59:55, {COOLDOWN}",
    ),
    "cooldown as text": ({"scale_out_cooldown": "60"}, f"scale_out_cooldown: got '60', {COOLDOWN}"),
    "cooldown with half a second": (
        {"scale_out_cooldown": timedelta(seconds=1.5)},
        f"scale_out_cooldown: got 0:00:01.500000, {COOLDOWN}",
    ),
    "min of nothing": ({"min_capacity": 0}, f"min_capacity: got 0, {UNITS}"),
    "max not whole is not compared with min": ({"max_capacity": 2.5}, f"max_capacity: got 2.5, {WHOLE}"),
    "max of the table below its min": (
        {"min_capacity": 12, "max_capacity": 11},
        "max_capacity: got 11, allowed: 12 (min_capacity) or more; raise max_capacity or lower min_capacity "
        "[highwater:maxBelowMin]",
    ),
    "max above the quota": ({"max_capacity": 40_001}, f"max_capacity: got 40001, allowed: up to 40000, {QUOTA}"),
}
OF_WRITES: Changes = {
    "no target": ({"target_utilization_percent": None}, f"target_utilization_percent: got None, {TARGET}"),
    "target below 20": ({"target_utilization_percent": 19}, f"target_utilization_percent: got 19, {TARGET}"),
    "max not whole": ({"max_capacity": 9.5, "min_capacity": 2}, f"max_capacity: got 9.5, {WHOLE}"),
    "flag that is a text": (
        {"disable_scale_in": "no"},
        "disable_scale_in: got 'no', allowed: True or False; write it without quotes [highwater:flagUnclear]",
    ),
    "ceiling of boosts below the max": (
        {"max_with_boosts": 219},
        "max_with_boosts: got 219, allowed: 220 (max_capacity) or more; raise max_with_boosts, or leave it out: boosts "
        "then stay below max_capacity [highwater:boostCeilingBelowMax]",
    ),
}
OF_A_PLAN: Changes = {
    "no capacity": ({"read": None}, f"table read: got None, {CAPACITY}"),
    "units without a Capacity": ({"read": 17}, f"table read: got 17, {CAPACITY}"),
    "fixed units negative": ({"write": Capacity.fixed(-3)}, f"table write units: got -3, {UNITS}"),
    "fixed units no number": ({"write": Capacity.fixed(float("nan"))}, f"table write units: got nan, {WHOLE}"),
    "quota that is no number": ({"table_quota_units": float("nan")}, f"table_quota_units: got nan, {WHOLE}"),
    "mark not positive": ({"mark": HighWaterMark.units(read=0)}, f"high-water mark read: got 0, {UNITS}"),
    "mark known only at deploy time": (
        {"mark": HighWaterMark.units(write=DEPLOY_TIME)},  # type: ignore[arg-type]
        f"high-water mark write: {ELSEWHERE}",
    ),
    "mark above the quota": (
        {"mark": HighWaterMark.units(write=904), "table_quota_units": 903},
        f"high-water mark write of table: got 904, allowed: up to 903, {QUOTA}",
    ),
    "mark below the base floor": (
        {"mark": HighWaterMark.units(write=21)},
        f"high-water mark write of table: got 21, allowed: 22 {MARK}",
    ),
}


def _rows(made: Callable[..., Plan], subject: str, changes: Changes) -> Iterator[Any]:
    for case, (changed, told) in changes.items():
        yield pytest.param(made(**changed), f"{subject}{told}", id=case)


FINDINGS = [
    *_rows(lambda **changed: with_windows(window(**changed)), "window 'load' ", OF_A_WINDOW),
    *_rows(lambda **changed: with_windows(once(**changed)), "window 'sale' ", OF_A_ONE_OFF_WINDOW),
    *_rows(lambda **changed: with_windows(monthly(**changed)), "window 'payday' ", OF_A_MONTHLY_WINDOW),
    *(
        pytest.param(
            with_windows(monthly(**changed)),
            f"window 'payday': the window has {given} of the month; give either day=1 or day='last', or weekday='MON' "
            "and nth=1 [highwater:monthDayUnclear]",
            id=case,
        )
        for case, changed, given in (
            ("no day of the month", {}, "neither a day nor a weekday"),
            ("a day and a weekday", {"day": 1, "weekday": "MON", "nth": 1}, "both a day and a weekday"),
            ("a day and an nth", {"day": 1, "nth": 1}, "both a day and a weekday"),
        )
    ),
    pytest.param(
        with_windows(replace(monthly(day=1), days="MON")),
        "window 'payday': the window has both days of the week and a day of the month; declare two windows "
        "[highwater:monthDayUnclear]",
        id="days of the week and of the month",
    ),
    *_rows(reads, "table read ", OF_READS),
    *_rows(writes, "table write ", OF_WRITES),
    *_rows(plan, "", OF_A_PLAN),
    pytest.param(
        with_windows(Window.daily("load", start=time(5, 0, 7), end="06:00", timezone="UTC", write_min=33)),
        f"window 'load' start: got '05:00:07', {STARTS}",
        id="start with seconds",
    ),
    pytest.param(with_indexes(index("")), f"index name: got '', {NAME}", id="index without a name"),
    pytest.param(with_windows(window(name=[])), f"window name: got [], {NAME}", id="window named by a list"),  # type: ignore[arg-type]
    pytest.param(
        with_indexes(index(write=Capacity.autoscaled(min_capacity=34, max_capacity=31))),
        "index 'by_day' write max_capacity: got 31, allowed: 34 (min_capacity) or more; raise max_capacity or "
        "lower min_capacity [highwater:maxBelowMin]",
        id="max of an index below its min",
    ),
    pytest.param(
        plan(write=Capacity.autoscaled(min_capacity=22, max_capacity=220, max_with_boosts=904), table_quota_units=903),
        f"table write max_with_boosts: got 904, allowed: up to 903, {QUOTA}",
        id="ceiling for boosts above the quota",
    ),
    pytest.param(
        with_indexes(index(windows=(window(write_min=None, read_min=111),))),
        f"window 'load' read_min of index 'by_day' read: got 111, allowed: 1 to 110 {ABOVE_MAX} read_max=111 or more "
        "[highwater:windowAboveCeiling]",
        id="window of an index above its ceiling",
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
        with_indexes(index(), index(read=READ)),
        "index 'by_day': the index is listed twice; merge the two entries [highwater:duplicateIndex]",
        id="two indexes of a name",
    ),
    pytest.param(
        with_windows(window(), write=Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=220)),
        f"table write min_capacity and max_capacity: {KNOWN_LATE}s, or leave this dimension without windows "
        "[highwater:deployTimeUnits]",
        id="window beside a floor known only at deploy time",
    ),
    pytest.param(
        with_windows(window(write_min=23, write_max=901), table_quota_units=900),
        f"window 'load' write_max of table write: got 901, allowed: up to 900, {QUOTA}",
        id="ceiling of a window above the quota",
    ),
    pytest.param(
        with_windows(window(write_min=901), write=Capacity.fixed(22), table_quota_units=900),
        f"window 'load' write_min of table write: got 901, allowed: up to 900, {QUOTA}",
        id="floor of a window above the quota",
    ),
    pytest.param(
        with_indexes(
            index(read=Capacity.autoscaled(min_capacity=16, max_capacity=110)), mark=HighWaterMark.units(read=15)
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
        f"the same timezone, or leave time between them{TIMED_BY_SCALER} [highwater:windowsAcrossZones]",
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
        "merge windows, let them start and end at the same times, or remove one-off windows that have ended"
        f"{TIMED_BY_SCALER} [highwater:tooManyActions]",
        id="more than 200 actions, of windows that a scaler has room for",
    ),
]

REFUSES_TWO = f"DynamoDB at first refuses 2 of these decreases: {DECREASES}"
WARNINGS = [
    pytest.param(
        with_windows(window(write_min=21), window("rush", write_min=55)),
        "window 'load': the window never raises a floor or ceiling above the base and the other windows; raise the "
        "window's units, or remove the window [highwater:windowWithoutEffect]",
        id="window that lifts nothing",
    ),
    pytest.param(
        with_windows(once(start="2027-05-01T00:00", end="2027-05-02T00:00")),
        "window 'sale' end: got '2027-05-02T00:00', allowed: later than 2027-05-06 07:08 UTC; remove the window: it "
        "has ended and has no effect any more [highwater:pastWindow]",
        id="window that is over",
    ),
    pytest.param(
        with_indexes(index(write=Capacity.autoscaled(min_capacity=8, max_capacity=220))),
        f"index 'by_day' write floor: got 8, allowed: 22 {FOLLOW}",
        id="index below the table's base floor",
    ),
    pytest.param(
        with_windows(window(write_min=77), indexes=(index(windows=()),)),
        f"index 'by_day' write floor: got 22, allowed: 77 {FOLLOW}",
        id="index without the table's windows",
    ),
    pytest.param(
        with_windows(once(write_min=90), indexes=(index(windows=()),)),
        f"index 'by_day' write floor: got 22, allowed: 90 {FOLLOW}",
        id="index below its table on one day alone",
    ),
    pytest.param(
        with_windows(*drops_a_day(6)),
        f"windows of the table: the windows lower capacity 6 times on Monday 2027-01-11 (UTC), and {REFUSES_TWO}",
        id="six decreases in an hour",
    ),
    pytest.param(
        with_indexes(index(windows=drops_a_day(5))),
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
        f"windows of the table: the windows lower capacity 6 times on Saturday 2027-07-10 (UTC), and {REFUSES_TWO}",
        id="six decreases at the end of long one-off windows",
    ),
    pytest.param(
        with_windows(
            *(
                once(f"w{n}", start=f"2027-11-26T10:{n}0", end=f"2027-11-26T10:{n}8", lead=timedelta(0))
                for n in range(6)
            )
        ),
        f"windows of the table: the windows lower capacity 6 times on Friday 2027-11-26 (UTC), and {REFUSES_TWO}",
        id="decreases of a single day",
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
