"""Validation of a plan's schedule: limits of AAS, indexes that throttle their table, and too many decreases a day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from highwater.core.budget import refused_decreases
from highwater.core.errors import PlanError
from highwater.core.findings import Finding, caution, warning
from highwater.core.limits import FREE_DECREASES_PER_DAY, MAX_PLAN_BYTES
from highwater.core.plan.plan import Plan, Target
from highwater.core.plan.windows import once_span
from highwater.core.schedule.bounds import timeline
from highwater.core.schedule.compiler import compile_actions
from highwater.core.schedule.effective import effective
from highwater.core.units import Dimension

# Weeks in which floors are compared and decreases counted: one in winter, one in summer. `_sample_spans` adds the days
# of each one-off window.
_SAMPLE_WEEKS = (datetime(2027, 1, 11, tzinfo=UTC), datetime(2027, 7, 12, tzinfo=UTC))


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
        if not window.is_recurring:
            opens, closes = once_span(window)
            # the weeks in the middle of a long window are like the sample weeks
            last = min(closes, opens + timedelta(days=8))
            yield opens - timedelta(days=1), last + timedelta(days=1)
            if last < closes:
                yield closes - timedelta(days=8), closes + timedelta(days=1)
