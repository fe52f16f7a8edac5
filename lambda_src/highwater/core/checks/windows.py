"""Validation of a plan's windows, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from highwater.core.findings import (
    Finding,
    conflict,
    deploy_time_units,
    error,
    is_whole,
    name_missing,
    units_not_positive,
)
from highwater.core.limits import MAX_LEAD
from highwater.core.plan.capacity import is_deploy_time
from highwater.core.plan.plan import Plan
from highwater.core.plan.windows import Window, once_span, parse_days, parse_local, parse_time_of_day
from highwater.core.plan.zones import find_zone, similar_zone

_UNITS = ("read_min", "write_min", "read_max", "write_max")


def window_findings(plan: Plan) -> Iterator[Finding]:
    """Find duplicate names, unreadable times and zones, and bounds that are not positive whole numbers."""
    for windows in (plan.windows, *(index.windows or () for index in plan.indexes)):
        names: set[str] = set()
        for window in windows:
            if not isinstance(window.name, str) or not window.name:
                yield name_missing("window name", window.name)
                continue
            if window.name in names:
                yield conflict(
                    "duplicateWindow",
                    f"window {window.name!r}",
                    "two windows have this name",
                    "rename one of them, or merge the two",
                )
            names.add(window.name)
    for window in plan.all_windows():
        yield from _window_time_findings(window)
        yield from _window_unit_findings(window)


def _window_time_findings(window: Window) -> Iterator[Finding]:
    subject = f"window {window.name!r}"
    readable = True
    zone = find_zone(window.timezone) if isinstance(window.timezone, str) else None
    if zone is None:
        readable = False
        yield error(
            "unknownTimezone",
            f"{subject} timezone",
            f"{window.timezone!r}",
            "an IANA time zone name, not an abbreviation or offset",
            f"use a name such as {similar_zone(str(window.timezone))!r}",
        )
    if window.days is not None:
        try:
            parse_days(window.days)
        except ValueError:
            yield error(
                "unparsableDays",
                f"{subject} days",
                f"{window.days!r}",
                "MON to SUN, alone, as a range or as a list",
                "write the days as in 'MON-FRI' or 'SAT,SUN'",
            )
    times = list(_unreadable_times(window))
    yield from times
    readable = readable and not times
    if not (
        isinstance(window.lead, timedelta)
        and timedelta(0) <= window.lead <= MAX_LEAD
        and not window.lead % timedelta(minutes=1)
    ):
        readable = False
        yield error(
            "leadOutOfRange",
            f"{subject} lead",
            f"{window.lead}" if isinstance(window.lead, timedelta | int | str) else f"a {type(window.lead).__name__}",
            "whole minutes from 0 to 24 hours",
            "give a timedelta, e.g. timedelta(minutes=5), or declare a second window that opens earlier",
        )
    if readable and not window.is_recurring and parse_local(window.end) <= parse_local(window.start):
        yield error(
            "emptyWindow",
            f"{subject} end",
            f"{window.end!r}",
            f"later than its start {window.start!r}",
            "swap the two, or move the end",
        )
    elif readable and not window.is_recurring and once_span(window)[0] >= once_span(window)[1]:
        yield conflict(
            "emptyWindow",
            f"{subject} end",
            f"a clock change of {window.timezone} skips the whole window, up to its end {window.end!r}",
            "move the end to after the clock change, or move the window",
        )


def _unreadable_times(window: Window) -> Iterator[Finding]:
    for name, text in (("start", window.start), ("end", window.end)):
        try:
            if window.is_recurring:
                parse_time_of_day(text, is_end=name == "end")
            else:
                parse_local(text)
        except (ValueError, TypeError):
            allowed, example = "a local YYYY-MM-DDTHH:MM without offset, 2000 to 2199", "'2026-11-27T05:00'"
            if window.is_recurring:
                allowed, example = f"HH:MM from 00:00 to {'24:00' if name == 'end' else '23:59'}", "'05:00'"
            yield error(
                "unparsableTime",
                f"window {window.name!r} {name}",
                f"{text!r}",
                allowed,
                f"write it as in {example}",
            )


def _window_unit_findings(window: Window) -> Iterator[Finding]:
    subject = f"window {window.name!r}"
    declared = {name: units for name in _UNITS if (units := getattr(window, name)) is not None}
    if not declared:
        yield conflict(
            "windowWithoutUnits",
            subject,
            "the window raises no floor and no ceiling",
            "give at least one of read_min, write_min, read_max and write_max",
        )
    for name, units in declared.items():
        if is_deploy_time(units):
            yield deploy_time_units(f"{subject} {name}")
        elif not is_whole(units) or units < 1:
            yield units_not_positive(f"{subject} {name}", units)
