"""Validation of a plan: all conflicts of a table and its indexes are reported together, each as a finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from highwater.core.budget import refused_decreases
from highwater.core.errors import PlanError
from highwater.core.findings import (
    Finding,
    Severity,
    above_quota,
    caution,
    conflict,
    deploy_time_units,
    error,
    is_whole,
    name_missing,
    shown,
    units_not_positive,
    warning,
)
from highwater.core.limits import (
    FREE_DECREASES_PER_DAY,
    MAX_LEAD,
    MAX_PLAN_BYTES,
    MAX_TARGET_UTILIZATION_PERCENT,
    MIN_TARGET_UTILIZATION_PERCENT,
)
from highwater.core.names import resource_label
from highwater.core.plan.capacity import Capacity, is_deploy_time
from highwater.core.plan.month_days import MonthDay, is_day, is_nth, is_weekday
from highwater.core.plan.plan import Plan, Target, marks_of
from highwater.core.plan.windows import Window, once_span, openings, parse_days, parse_local, parse_time_of_day
from highwater.core.plan.zones import aware, find_zone, similar_zone
from highwater.core.schedule.bounds import timeline
from highwater.core.schedule.compiler import compile_actions, effective
from highwater.core.units import Dimension

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
    if window.month_day is not None:
        yield from _month_day_findings(subject, window.month_day)
        if window.days is not None:
            yield conflict(
                "monthDayUnclear",
                subject,
                "the window has both days of the week and a day of the month",
                "declare two windows",
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


def _month_day_findings(subject: str, month_day: MonthDay) -> Iterator[Finding]:
    is_on_weekday = month_day.weekday is not None or month_day.nth is not None
    if (month_day.day is not None) == is_on_weekday:
        given = "both a day and a weekday" if is_on_weekday else "neither a day nor a weekday"
        yield conflict(
            "monthDayUnclear",
            subject,
            f"the window has {given} of the month",
            "give either day=1 or day='last', or weekday='MON' and nth=1",
        )
    elif not is_on_weekday:
        if not is_day(month_day.day):
            yield error(
                "monthDayOutOfRange",
                f"{subject} day",
                shown(month_day.day),
                "1 to 31, or 'last'",
                "write it as in day=1 or day='last'",
            )
    else:
        if not is_weekday(month_day.weekday):
            yield error(
                "unparsableDays",
                f"{subject} weekday",
                shown(month_day.weekday),
                "one of MON to SUN",
                "write it as in weekday='MON'",
            )
        if not is_nth(month_day.nth):
            yield error(
                "monthDayOutOfRange",
                f"{subject} nth",
                shown(month_day.nth),
                "1 to 4, or 'last'",
                "write it as in nth=1 or nth='last'; not every month has a fifth",
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


def _capacities(plan: Plan) -> Iterator[tuple[str, object]]:
    yield "table read", plan.read
    yield "table write", plan.write
    for index in plan.indexes:
        if index.read is not None:
            yield f"{resource_label(index.index_name)} read", index.read
        if index.write is not None:
            yield f"{resource_label(index.index_name)} write", index.write


def _boost_findings(label: str, capacity: Capacity) -> Iterator[Finding]:
    """Find a ceiling for boosts that is not a number, or is below the ceiling without boosts."""
    units = capacity.max_with_boosts
    if units is None or not is_whole(capacity.max_capacity):
        return
    if not is_whole(units) or units < capacity.max_capacity:
        yield error(
            "boostCeilingBelowMax",
            f"{label} max_with_boosts",
            f"{units!r}",
            f"{capacity.max_capacity} (max_capacity) or more",
            "raise max_with_boosts, or leave it out: boosts then stay below max_capacity",
        )


def capacity_findings(plan: Plan) -> Iterator[Finding]:
    """Find bounds that are not positive whole numbers, ceilings below floors, and settings out of their range."""
    if not is_whole(plan.table_quota_units) or plan.table_quota_units < 1:
        yield units_not_positive("table_quota_units", plan.table_quota_units)
    for label, capacity in _capacities(plan):
        if not isinstance(capacity, Capacity):
            yield error(
                "capacityMissing",
                label,
                shown(capacity),
                "a cdk_highwater.Capacity",
                "give Capacity.autoscaled(min_capacity=, max_capacity=) or Capacity.fixed(units=)",
            )
            continue
        yield from _cooldown_findings(label, capacity)
        if not isinstance(capacity.disable_scale_in, bool):
            # text such as "no" would count as true
            yield error(
                "flagUnclear",
                f"{label} disable_scale_in",
                shown(capacity.disable_scale_in),
                "True or False",
                "write it without quotes",
            )
        bounds = {"units": capacity.min_capacity}
        if capacity.is_autoscaled:
            bounds = {"min_capacity": capacity.min_capacity, "max_capacity": capacity.max_capacity}
        are_comparable = True
        for name, units in bounds.items():
            if is_deploy_time(units):
                are_comparable = False
            elif not is_whole(units) or units < 1:
                are_comparable = False
                yield units_not_positive(f"{label} {name}", units)
        if are_comparable and capacity.max_capacity < capacity.min_capacity:
            yield error(
                "maxBelowMin",
                f"{label} max_capacity",
                f"{capacity.max_capacity}",
                f"{capacity.min_capacity} (min_capacity) or more",
                "raise max_capacity or lower min_capacity",
            )
        yield from _boost_findings(label, capacity)
        target = capacity.target_utilization_percent
        if is_deploy_time(target):
            yield deploy_time_units(f"{label} target_utilization_percent")
        elif capacity.is_autoscaled and not (
            isinstance(target, int)
            and is_whole(target)
            and MIN_TARGET_UTILIZATION_PERCENT <= target <= MAX_TARGET_UTILIZATION_PERCENT
        ):
            yield error(
                "targetOutOfRange",
                f"{label} target_utilization_percent",
                f"{target!r}",
                f"a whole percentage from {MIN_TARGET_UTILIZATION_PERCENT} to {MAX_TARGET_UTILIZATION_PERCENT}",
                "give a percentage, e.g. 70",
            )


def _cooldown_findings(label: str, capacity: Capacity) -> Iterator[Finding]:
    for name in ("scale_in_cooldown", "scale_out_cooldown"):
        cooldown = getattr(capacity, name)
        if not isinstance(cooldown, timedelta) or cooldown < timedelta(0) or cooldown % timedelta(seconds=1):
            yield error(
                "cooldownOutOfRange",
                f"{label} {name}",
                f"{cooldown}" if isinstance(cooldown, timedelta) else f"{cooldown!r}",
                "whole seconds, 0 or more",
                "give a timedelta, e.g. timedelta(seconds=60)",
            )


def index_name_findings(plan: Plan) -> Iterator[Finding]:
    """Find indexes without a name or listed twice."""
    names: set[str] = set()
    for index in plan.indexes:
        if not isinstance(index.index_name, str) or not index.index_name:
            yield name_missing("index name", index.index_name)
            continue
        if index.index_name in names:
            yield conflict(
                "duplicateIndex", f"index {index.index_name!r}", "the index is listed twice", "merge the two entries"
            )
        names.add(index.index_name)


def mark_findings(plan: Plan) -> Iterator[Finding]:
    """Find marks that are not positive whole numbers."""
    for name, units in (("read", plan.mark.read), ("write", plan.mark.write)):
        if is_deploy_time(units):
            yield deploy_time_units(f"high-water mark {name}")
        elif units is not None and (not is_whole(units) or units < 1):
            yield units_not_positive(f"high-water mark {name}", units)


def bounds_findings(plan: Plan) -> Iterator[Finding]:
    """Find windows above ceilings, capacity and marks above the quota, and marks below base floors."""
    for target in plan.targets():
        if target.capacity.is_deploy_time:
            if target.windows:
                yield deploy_time_units(
                    f"{target.label} min_capacity and max_capacity",
                    "write the numbers, or leave this dimension without windows",
                )
            continue
        yield from _ceiling_findings(plan, target)
        yield from _quota_findings(plan, target)
    for mark in marks_of(plan):
        subject = resource_label(mark.index)
        for dimension, units, base in (
            (Dimension.READ, mark.read, mark.base_read),
            (Dimension.WRITE, mark.write, mark.base_write),
        ):
            if units < base:
                yield error(
                    "markBelowMinimum",
                    f"high-water mark {dimension} of {subject}",
                    f"{units}",
                    f"{base} (the base floor, which the table supports at once anyway) or more",
                    "raise the mark, or omit high_water_mark to derive it from the windows",
                )
            elif plan.mark.is_units and units > plan.table_quota_units:
                yield above_quota(f"high-water mark {dimension} of {subject}", units, plan.table_quota_units)


def _ceiling_findings(plan: Plan, target: Target) -> Iterator[Finding]:
    ceiling = int(target.capacity.max_capacity)
    for target_window in target.windows:
        name = target_window.window.name
        window_ceiling = target_window.max
        if target_window.min is None:
            continue
        if window_ceiling is not None and window_ceiling < target_window.min:
            yield error(
                "maxBelowMin",
                f"window {name!r} {target.dimension}_max of {target.label}",
                f"{window_ceiling}",
                f"{target_window.min} ({target.dimension}_min) or more",
                f"raise {target.dimension}_max or lower {target.dimension}_min",
            )
        elif window_ceiling is None and target.capacity.is_autoscaled and target_window.min > ceiling:
            yield error(
                "windowAboveCeiling",
                f"window {name!r} {target.dimension}_min of {target.label}",
                f"{target_window.min}",
                f"1 to {ceiling} (max_capacity)",
                "raise max_capacity"
                if target_window.min > plan.table_quota_units
                else f"raise max_capacity, or give the window {target.dimension}_max={target_window.min} or more",
            )


def _quota_findings(plan: Plan, target: Target) -> Iterator[Finding]:
    if target.capacity.max_capacity > plan.table_quota_units:
        yield above_quota(f"{target.label} max_capacity", target.capacity.max_capacity, plan.table_quota_units)
    with_boosts = target.capacity.max_with_boosts
    if with_boosts is not None and with_boosts > plan.table_quota_units:
        yield above_quota(f"{target.label} max_with_boosts", with_boosts, plan.table_quota_units)
    for target_window in target.windows:
        for name, units in (("min", target_window.min), ("max", target_window.max)):
            if units is not None and units > plan.table_quota_units:
                subject = f"window {target_window.window.name!r} {target.dimension}_{name} of {target.label}"
                yield above_quota(subject, units, plan.table_quota_units)


# Weeks in which floors are compared and decreases counted: one in winter, one in summer. `_sample_spans` adds the days
# of each one-off window, and those of a year of each monthly one.
_SAMPLE_WEEKS = (datetime(2027, 1, 11, tzinfo=UTC), datetime(2027, 7, 12, tzinfo=UTC))
_SAMPLE_YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


def action_findings(plan: Plan, as_of: datetime | None) -> Iterator[Finding]:
    """Find windows that scheduled actions cannot express."""
    # an index with the windows and capacity of its table has the same findings, so they are reported for the table only
    unique: dict[Target, Target] = {}
    for target in plan.targets():
        unique.setdefault(replace(target, index=None), target)
    for target in unique.values():
        try:
            compile_actions(target, as_of)
        except PlanError as refused:
            yield from (replace(finding, fix=finding.fix + _scaler_advice(plan)) for finding in refused.findings)


def _scaler_advice(plan: Plan) -> str:
    if plan.size_bytes <= MAX_PLAN_BYTES:
        return ", or let a ThrottleAwareScaler open and close the windows with windows_held_by="
    return (
        f"; windows_held_by= does not help, because a scaler has room for a plan of {MAX_PLAN_BYTES:,} bytes, about 55 "
        f"windows, and this plan has {plan.size_bytes:,} bytes"
    )


def schedule_findings(plan: Plan, as_of: datetime | None) -> Iterator[Finding]:
    """Find windows without effect and one-off windows that have ended."""
    yield from _idle_window_findings(plan)
    for window in plan.all_windows():
        if as_of is not None and not window.is_recurring and once_span(window)[1] <= as_of:
            yield warning(
                "pastWindow",
                f"window {window.name!r} end",
                f"{window.end!r}",
                f"later than {as_of.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
                "remove the window: it has ended and has no effect any more",
            )


def _idle_window_findings(plan: Plan) -> Iterator[Finding]:
    """Find windows that raise no bound of any target."""
    with_effect = {w.window for target in plan.targets() for w in effective(target).windows}
    for window in dict.fromkeys(plan.all_windows()):
        if window not in with_effect:
            yield caution(
                "windowWithoutEffect",
                f"window {window.name!r}",
                "the window never raises a floor or ceiling above the base and the other windows",
                "raise the window's units, or remove the window",
            )


def index_findings(plan: Plan) -> Iterator[Finding]:
    """Find indexes whose write floor is below the table's at some time: the index may throttle table writes."""
    targets = {(target.index, target.dimension): target for target in plan.targets()}
    table = targets[None, Dimension.WRITE]
    for index in plan.indexes:
        index_target = targets[index.index_name, Dimension.WRITE]
        if index_target.capacity.is_deploy_time or table.capacity.is_deploy_time:
            continue
        for start, end in _sample_spans(plan):
            floors = _floors_of_largest_gap(index_target, table, start, end)
            if floors is None:
                continue
            index_units, table_units = floors
            yield warning(
                "indexBelowTable",
                f"index {index.index_name!r} write floor",
                f"{index_units}",
                f"{table_units} (the table's write floor at that time) or more",
                "let the index follow the table, unless it contains few of the table's items: an index without enough "
                "write capacity throttles the table's writes",
            )
            break


def _floors_of_largest_gap(index: Target, table: Target, start: datetime, end: datetime) -> tuple[int, int] | None:
    """The floors of index and table when the index is farthest below the table, `None` if it never is below."""
    index_line, table_line = dict(timeline(index, start, end)), dict(timeline(table, start, end))
    index_floor, table_floor = index_line[start].min, table_line[start].min
    worst: tuple[int, int] | None = None
    for at in sorted({*index_line, *table_line}):
        index_floor = index_line[at].min if at in index_line else index_floor
        table_floor = table_line[at].min if at in table_line else table_floor
        if index_floor < table_floor and (worst is None or table_floor - index_floor > worst[1] - worst[0]):
            worst = (index_floor, table_floor)
    return worst


def decrease_findings(plan: Plan) -> Iterator[Finding]:
    """Find days on which the plan lowers floors more often than DynamoDB accepts decreases of capacity."""
    for index in (None, *plan.indexes):
        name = index.index_name if index else None
        targets = [t for t in plan.targets() if t.index == name and not t.capacity.is_deploy_time]
        for start, end in _sample_spans(plan):
            lines = [timeline(target, start, end) for target in targets]
            drops = [at for line in lines for (_, before), (at, after) in pairwise(line) if after.min < before.min]
            refused = refused_decreases(tuple(drops))
            if refused:
                day, (planned_count, refused_count) = max(refused.items(), key=lambda item: item[1][1])
                yield caution(
                    "decreasesOverBudget",
                    f"windows of {'the table' if name is None else f'index {name!r}'}",
                    f"the windows lower capacity {planned_count} times on {day:%A} {day} (UTC), and DynamoDB at "
                    f"first refuses {refused_count} of these decreases: it allows {FREE_DECREASES_PER_DAY} at any time "
                    "of a UTC day, then one an hour, reads and writes together",
                    "let windows end together or merge them; capacity stays high until a decrease is allowed",
                )
                break


def _sample_spans(plan: Plan) -> Iterator[tuple[datetime, datetime]]:
    for week in _SAMPLE_WEEKS:
        yield week, week + timedelta(days=8)
    for window in plan.all_windows():
        if window.month_day is not None:
            for opens, closes in openings(window, *_SAMPLE_YEAR):
                yield opens - timedelta(days=1), closes + timedelta(days=1)
        elif not window.is_recurring:
            opens, closes = once_span(window)
            # the weeks in the middle of a long window are like the sample weeks
            last = min(closes, opens + timedelta(days=8))
            yield opens - timedelta(days=1), last + timedelta(days=1)
            if last < closes:
                yield closes - timedelta(days=8), closes + timedelta(days=1)


def check(plan: Plan, as_of: datetime | None = None, *, has_actions: bool = True) -> tuple[Finding, ...]:
    """Return every finding about *plan*: errors first, then warnings, each in the plan's order.

    Later checks run only if the earlier ones found no error, so that one mistake is reported once.

    Args:
        plan: The plan to validate.
        as_of: Warn about one-off windows that ended by this instant. By default, no such warning.
        has_actions: Whether scheduled actions open and close the windows. Scheduled actions cannot express every
            combination of windows, and the scaler can. By default true.
    """
    as_of = None if as_of is None else aware(as_of)
    findings = [*capacity_findings(plan), *window_findings(plan), *index_name_findings(plan), *mark_findings(plan)]
    if not _has_errors(findings):
        findings += bounds_findings(plan)
    if not _has_errors(findings):
        if has_actions:
            findings += action_findings(plan, as_of)
        findings += schedule_findings(plan, as_of)
        findings += index_findings(plan)
        findings += decrease_findings(plan)
    # without duplicates: a window that several indexes share has the same finding for each of them
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: list(Severity).index(finding.severity)))


def errors_of(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings of severity ERROR, which make synth fail."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def checked(plan: Plan, where: str = "plan") -> Plan:
    """Return *plan* if `check` finds no error; raise `PlanError` with all errors otherwise."""
    if errors := errors_of(check(plan)):
        raise PlanError(errors, where)
    return plan


def _has_errors(findings: list[Finding]) -> bool:
    return bool(errors_of(tuple(findings)))
