"""The decrease budget: how often per UTC day DynamoDB lets the capacity of a resource be lowered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from highwater.core.limits import DECREASE_SPACING, FREE_DECREASES_PER_DAY


@dataclass(frozen=True, slots=True)
class DecreaseBudget:
    """The decreases of one resource. Reads and writes share a budget; the table and each index have their own.

    DynamoDB's rule (text of its LimitExceededException, measured 2026-10): it accepts the first four decreases of a UTC
    day at any time, and each later one no sooner than 3,600 s after the last accepted one. The count restarts at
    00:00:00 UTC.

    Attributes:
        used: Decreases accepted on the UTC day of *last*.
        last: When the last decrease was accepted, `None` for never.
    """

    used: int = 0
    last: datetime | None = None

    def used_on(self, at: datetime) -> int:
        """Return the decreases used on the UTC day of *at*."""
        return self.used if self.last is not None and _day(self.last) == _day(at) else 0

    def next_allowed(self, at: datetime) -> datetime:
        """Return the earliest instant, not before *at*, at which DynamoDB accepts a decrease."""
        if self.last is None or self.used_on(at) < FREE_DECREASES_PER_DAY:
            return at
        midnight = datetime.combine(_day(at) + timedelta(days=1), datetime.min.time(), UTC)
        return max(at, min(self.last + DECREASE_SPACING, midnight))

    def allows(self, at: datetime) -> bool:
        """Whether DynamoDB accepts a decrease at *at*."""
        return self.next_allowed(at) <= at

    def after(self, at: datetime) -> DecreaseBudget:
        """Return the budget after a decrease that was accepted at *at*."""
        return DecreaseBudget(self.used_on(at) + 1, at)


def refused_decreases(instants: tuple[datetime, ...]) -> dict[date, tuple[int, int]]:
    """Return the number of planned and of refused decreases by UTC day, for days with at least one refused decrease.

    *instants* are the planned decreases of one resource; a refused decrease is not tried again.
    """
    planned: dict[date, int] = {}
    refused: dict[date, int] = {}
    budget = DecreaseBudget()
    for at in sorted(instants):
        planned[_day(at)] = planned.get(_day(at), 0) + 1
        if budget.allows(at):
            budget = budget.after(at)
        else:
            refused[_day(at)] = refused.get(_day(at), 0) + 1
    return {day: (planned[day], count) for day, count in refused.items()}


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
