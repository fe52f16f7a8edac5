"""Plans that checks are tried with, and the texts of what is found."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

from highwater.core import Capacity, Finding, IndexCapacity, Plan, Window

DEPLOY_TIME: float = struct.unpack(">d", b"\xfb\xff\x00\x00\x00\x00\x00\x01")[0]
READ = Capacity.autoscaled(min_capacity=11, max_capacity=110)
WRITE = Capacity.autoscaled(min_capacity=22, max_capacity=220)
NOW = datetime(2027, 5, 6, 7, 8, tzinfo=UTC)


def plan(**changes: Any) -> Plan:
    return Plan(**{"read": READ, "write": WRITE, **changes})


def reads(**changes: Any) -> Plan:
    """A plan whose read capacity is READ with these changes."""
    return plan(read=Capacity.autoscaled(**{"min_capacity": 11, "max_capacity": 110, **changes}))


def writes(**changes: Any) -> Plan:
    """A plan whose write capacity is WRITE with these changes."""
    return plan(write=Capacity.autoscaled(**{"min_capacity": 22, "max_capacity": 220, **changes}))


def index(name: str = "by_day", **fields: Any) -> IndexCapacity:
    return IndexCapacity(index_name=name, **fields)


def with_indexes(*indexes: IndexCapacity, **changes: Any) -> Plan:
    return plan(indexes=indexes, **changes)


def window(name: str = "load", **changes: Any) -> Window:
    fields = {"days": "MON", "start": "05:00", "end": "06:30", "timezone": "Europe/Berlin", "write_min": 33}
    return Window(**{"name": name, **fields, **changes})


def once(name: str = "sale", **changes: Any) -> Window:
    return window(name, **{"days": None, "start": "2027-11-26T00:00", "end": "2027-11-27T00:00", **changes})


def monthly(**changes: Any) -> Window:
    fields = {"start": "05:00", "end": "06:30", "timezone": "Europe/Berlin", "write_min": 33}
    return Window.monthly("payday", **{**fields, **changes})


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
