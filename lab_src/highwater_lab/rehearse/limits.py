"""Limits on throttling and cost that a rehearsal must stay within, for continuous integration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from highwater_lab.rehearse.app import AppRehearsal, TableChange, TableRehearsal
from highwater_lab.rehearse.rehearsal import Rehearsal
from highwater_lab.simulation import QueueRun


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit that a rehearsal exceeded.

    Attributes:
        what: The limited value: `throttled`, `cost`, `queue`, `throttled-rise`, `cost-rise`, `unknown` or `not-read`.
        got: The value: percent of the units requested, USD a month, seconds that a write waits in a queue, or a number
            of tables or of parts that are not read.
        allowed: The limit, in the same unit.
        text: The finding as a sentence.
        where: The table or the stage, empty for the only one.
    """

    what: str
    got: float
    allowed: float
    text: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the run of the policy `declared`. That of a queue is the drain time that is declared for it.

    Attributes:
        max_throttled_percent: The highest percentage of requested units that may be throttled; `None` for no limit.
        max_cost_per_month: The highest cost in USD a month, of one table; `None` for no limit.
        max_throttled_rise: How many percentage points more than in the old app may be throttled, of each table.
        max_cost_rise: How many USD a month more than in the old app all tables of a stage together may cost.
        fails_on_unknown: Whether no table of the new app may be unknown, and no effect of the change on a table. By
            default what is unknown exceeds no limit.
    """

    max_throttled_percent: float | None = None
    max_cost_per_month: float | None = None
    max_throttled_rise: float | None = None
    max_cost_rise: float | None = None
    fails_on_unknown: bool = False

    def passed(self, rehearsal: Rehearsal) -> tuple[Passed, ...]:
        """Return the limits that the rehearsal exceeded."""
        return (
            *_passed_by_queue(rehearsal.declared.queue),
            *self._passed_by(rehearsal.throttled_percent, rehearsal.cost_per_month),
        )

    def passed_by_app(self, app: AppRehearsal) -> tuple[Passed, ...]:
        """Return the limits that an app, or a table of it, exceeded."""
        exceeded: list[Passed] = []
        if self.fails_on_unknown:
            exceeded += [
                Passed("unknown", 1, 0, f"{each.name}: unknown: {each.unknown}; no table may be unknown", each.name)
                for each in app.unknown()
                if each.change is not TableChange.REMOVED
            ]
            exceeded += [Passed("unknown", 1, 0, each.text, each.table) for each in app.hazards if each.is_unknown]
        for table in app.tables:
            if table.after is None:
                continue
            own = [
                *_passed_by_queue(table.after.queue),
                *self._passed_by(table.after.throttled_percent, table.after.cost_per_month),
                *self._rise_of(table),
            ]
            exceeded += [replace(each, text=f"{table.name}: {each.text}", where=table.name) for each in own]
        for stage in app.stages:
            exceeded += self._unread_of(app.in_stage(stage), stage)
            exceeded += self._cost_rise_of(app.in_stage(stage), stage)
        return tuple(exceeded)

    def _unread_of(self, app: AppRehearsal, stage: str) -> list[Passed]:
        """Return what differs and is not read, if a limit of cost or throttling depends on it."""
        limits = (self.max_throttled_percent, self.max_cost_per_month, self.max_throttled_rise, self.max_cost_rise)
        if all(limit is None for limit in limits):
            return []
        of = f"{stage}: " if stage else ""
        kept = "; whether the limits are kept is not known"
        return [Passed("not-read", 1, 0, f"{of}{each.text}{kept}", stage) for each in app.unread]

    def _cost_rise_of(self, app: AppRehearsal, stage: str) -> list[Passed]:
        if app.before is None:
            return []
        after = app.after.cost_per_month
        rise = after - app.before.cost_per_month
        text = f"{f'{stage}: ' if stage else ''}the cost rises by ${rise:,.2f} a month to ${after:,.2f}"
        return _above("cost-rise", rise, self.max_cost_rise, text, "${:,.2f}", stage)

    def _rise_of(self, table: TableRehearsal) -> list[Passed]:
        if table.before is None or table.after is None:
            return []
        now = table.after.throttled_percent
        rise = now - table.before.throttled_percent
        text = f"{now:.4g} % of the requested units are throttled, {rise:.4g} points more than before"
        return _above("throttled-rise", rise, self.max_throttled_rise, text, "{:g}")

    def _passed_by(self, throttled: float, cost: float) -> list[Passed]:
        text = f"{throttled:.4g} % of the requested units are throttled"
        return [
            *_above("throttled", throttled, self.max_throttled_percent, text, "{:g} %"),
            *_above("cost", cost, self.max_cost_per_month, f"the cost is ${cost:,.2f} a month", "${:,.2f}"),
        ]


def _above(what: str, got: float, allowed: float | None, text: str, form: str, where: str = "") -> list[Passed]:
    """Return what exceeds a limit, nothing if there is no limit; *form* is how the limit is shown behind the text."""
    if allowed is None or got <= allowed:
        return []
    return [Passed(what, got, allowed, f"{text}, the limit is {form.format(allowed)}", where)]


def _passed_by_queue(queue: QueueRun | None) -> list[Passed]:
    if queue is None or not queue.is_late:
        return []
    oldest, allowed = queue.oldest_seconds, queue.buffer.drain_seconds
    text = (
        f"queued writes wait for up to {timedelta(seconds=oldest)}, the limit is the declared drain time of "
        f"{timedelta(seconds=allowed)}"
    )
    return [Passed("queue", oldest, allowed, text)]
