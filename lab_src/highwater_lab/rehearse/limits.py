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
        what: The limited value: `throttled`, `cost`, `queue`, `throttled-rise`, `cost-rise` or `unknown`.
        got: The value: percent of the units requested, USD a month, seconds that a write waits in a queue, or a number
            of tables.
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
        fails_on_unknown: Whether no table of the new app may be unknown. By default unknown tables exceed no limit.
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
            exceeded += self._cost_rise_of(app.in_stage(stage), stage)
        return tuple(exceeded)

    def _cost_rise_of(self, app: AppRehearsal, stage: str) -> list[Passed]:
        if self.max_cost_rise is None or app.before is None:
            return []
        after = app.after.cost_per_month
        rise = after - app.before.cost_per_month
        if rise <= self.max_cost_rise:
            return []
        text = (
            f"{f'{stage}: ' if stage else ''}the cost rises by ${rise:,.2f} a month to ${after:,.2f}, the limit is "
            f"${self.max_cost_rise:,.2f}"
        )
        return [Passed("cost-rise", rise, self.max_cost_rise, text, stage)]

    def _rise_of(self, table: TableRehearsal) -> list[Passed]:
        if self.max_throttled_rise is None or table.before is None or table.after is None:
            return []
        rise = table.after.throttled_percent - table.before.throttled_percent
        if rise <= self.max_throttled_rise:
            return []
        text = (
            f"{table.after.throttled_percent:.4g} % of the requested units are throttled, {rise:.4g} points more than "
            f"before, the limit is {self.max_throttled_rise:g}"
        )
        return [Passed("throttled-rise", rise, self.max_throttled_rise, text)]

    def _passed_by(self, throttled: float, cost: float) -> tuple[Passed, ...]:
        exceeded = []
        if self.max_throttled_percent is not None and throttled > self.max_throttled_percent:
            exceeded.append(
                Passed(
                    "throttled",
                    throttled,
                    self.max_throttled_percent,
                    f"{throttled:.4g} % of the requested units are throttled, the limit is "
                    f"{self.max_throttled_percent:g} %",
                )
            )
        if self.max_cost_per_month is not None and cost > self.max_cost_per_month:
            exceeded.append(
                Passed(
                    "cost",
                    cost,
                    self.max_cost_per_month,
                    f"the cost is ${cost:,.2f} a month, the limit is ${self.max_cost_per_month:,.2f}",
                )
            )
        return tuple(exceeded)


def _passed_by_queue(queue: QueueRun | None) -> list[Passed]:
    if queue is None or not queue.is_late:
        return []
    oldest, allowed = queue.oldest_seconds, queue.buffer.drain_seconds
    text = (
        f"queued writes wait for up to {timedelta(seconds=oldest)}, the limit is the declared drain time of "
        f"{timedelta(seconds=allowed)}"
    )
    return [Passed("queue", oldest, allowed, text)]
