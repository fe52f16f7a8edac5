"""What a plan's schedule runs into: what AAS cannot say, indexes that hold their table back, too many decreases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from highwater.core.budget import refused_decreases
from highwater.core.errors import PlanError
from highwater.core.findings import Finding, caution, warning
from highwater.core.limits import FREE_DECREASES_PER_DAY
from highwater.core.plan.plan import Plan, Target
from highwater.core.plan.windows import once_span
from highwater.core.schedule.bounds import timeline
from highwater.core.schedule.compiler import compile_actions
from highwater.core.schedule.effective import effective
from highwater.core.units import Dimension

# Weeks in which planned decreases are counted: one on either side of the year, and each one-off window's own days
_SAMPLE_WEEKS = (datetime(2027, 1, 11, tzinfo=UTC), datetime(2027, 7, 12, tzinfo=UTC))


def action_findings(plan: Plan, as_of: datetime | None) -> Iterator[Finding]:
    """What scheduled actions cannot say."""
    # what indexes share with their table is told once, for the table
    told: dict[Target, Target] = {}
    for target in plan.targets():
        told.setdefault(replace(target, index=None), target)
    for target in told.values():
        try:
            compile_actions(target, as_of)
        except PlanError as refused:
            yield from refused.findings


def schedule_findings(plan: Plan, as_of: datetime | None) -> Iterator[Finding]:
    """Windows that lift nothing, and one-off windows that are over."""
    yield from _idle_window_findings(plan)
    for window in plan.all_windows():
        if as_of is not None and not window.is_recurring and once_span(window)[1] <= as_of:
            yield warning(
                "pastWindow",
                f"window {window.name!r} end",
                f"{window.end!r}",
                f"later than {as_of.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
                "take the window out: it is over and does nothing any more",
            )


def _idle_window_findings(plan: Plan) -> Iterator[Finding]:
    """Windows that lift nothing anywhere."""
    lifting = {w.window for target in plan.targets() for w in effective(target).windows}
    for window in dict.fromkeys(plan.all_windows()):
        if window not in lifting:
            yield caution(
                "windowWithoutEffect",
                f"window {window.name!r}",
                "it raises no floor and no ceiling above the base and the other windows at any time",
                "raise what the window asks for, or take it out",
            )


def index_findings(plan: Plan) -> Iterator[Finding]:
    """Indexes whose write floor lies below their table's at some time: back-pressure then throttles the table."""
    targets = {(target.index, target.dimension): target for target in plan.targets()}
    table = targets[None, Dimension.WRITE]
    for index in plan.indexes:
        own = targets[index.index_name, Dimension.WRITE]
        if own.capacity.is_deploy_time or table.capacity.is_deploy_time:
            continue
        for start, end in _sample_spans(plan):
            below = _lowest_margin(own, table, start, end)
            if below is None:
                continue
            index_units, table_units = below
            yield warning(
                "indexBelowTable",
                f"index {index.index_name!r} write floor",
                f"{index_units}",
                f"{table_units} (the table's write floor at that time) or more",
                "let the index follow the table, unless it holds few of its items: an index that runs out throttles "
                "the table's writes",
            )
            break


def _lowest_margin(own: Target, table: Target, start: datetime, end: datetime) -> tuple[int, int] | None:
    """The floors of index and table where the index is farthest below, `None` where it never is."""
    own_line, table_line = dict(timeline(own, start, end)), dict(timeline(table, start, end))
    own_floor = table_floor = 0
    worst: tuple[int, int] | None = None
    for at in sorted({*own_line, *table_line}):
        own_floor = own_line[at].min if at in own_line else own_floor
        table_floor = table_line[at].min if at in table_line else table_floor
        if own_floor < table_floor and (worst is None or table_floor - own_floor > worst[1] - worst[0]):
            worst = (own_floor, table_floor)
    return worst


def decrease_findings(plan: Plan) -> Iterator[Finding]:
    """Days on which the plan lets floors down more often than DynamoDB lets capacity go down."""
    for index in (None, *plan.indexes):
        name = index.index_name if index else None
        targets = [t for t in plan.targets() if t.index == name and not t.capacity.is_deploy_time]
        for start, end in _sample_spans(plan):
            lines = [timeline(target, start, end) for target in targets]
            drops = [at for line in lines for (_, before), (at, after) in pairwise(line) if after.min < before.min]
            refused = refused_decreases(tuple(drops))
            if refused:
                day, (planned, late) = max(refused.items(), key=lambda item: item[1][1])
                yield caution(
                    "decreasesOverBudget",
                    f"windows of {'the table' if name is None else f'index {name!r}'}",
                    f"they lower capacity {planned} times on {day:%A} {day} (UTC), {late} of which DynamoDB refuses at "
                    f"first: it allows {FREE_DECREASES_PER_DAY} decreases at any time of a UTC day, then one an hour, "
                    "reads and writes together",
                    "let windows end together or merge them; capacity stays high until a decrease is allowed",
                )
                break


def _sample_spans(plan: Plan) -> Iterator[tuple[datetime, datetime]]:
    for week in _SAMPLE_WEEKS:
        yield week, week + timedelta(days=8)
    for window in plan.all_windows():
        if not window.is_recurring:
            opens, closes = once_span(window)
            # weeks in the middle of a long one are like the sample weeks
            last = min(closes, opens + timedelta(days=8))
            yield opens - timedelta(days=1), last + timedelta(days=1)
            if last < closes:
                yield closes - timedelta(days=8), closes + timedelta(days=1)
