"""The decrease budget: how often a day a resource's capacity may go down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from highwater.core.limits import DECREASE_SPACING, FREE_DECREASES_PER_DAY


@dataclass(frozen=True, slots=True)
class DecreaseBudget:
    """What is left of the day's decreases of one resource; reads and writes share it, table and indexes do not.

    The rule is DynamoDB's (text of its LimitExceededException, measured 2026-10): the first four of a UTC day at any
    time, each later one no sooner than 3,600 s after the last accepted one; at 00:00:00 UTC the count starts anew.

    Attributes:
        used: Decreases accepted on the UTC day of *last*.
        last: When the last one was accepted, `None` for never.
    """

    used: int = 0
    last: datetime | None = None

    def used_on(self, at: datetime) -> int:
        """Decreases used on the UTC day of *at*."""
        return self.used if self.last is not None and _day(self.last) == _day(at) else 0

    def next_allowed(self, at: datetime) -> datetime:
        """The earliest instant from *at* on at which a decrease is accepted."""
        if self.last is None or self.used_on(at) < FREE_DECREASES_PER_DAY:
            return at
        midnight = datetime.combine(_day(at) + timedelta(days=1), datetime.min.time(), UTC)
        return max(at, min(self.last + DECREASE_SPACING, midnight))

    def allows(self, at: datetime) -> bool:
        """Whether a decrease at *at* is accepted."""
        return self.next_allowed(at) <= at

    def after(self, at: datetime) -> DecreaseBudget:
        """The budget after a decrease accepted at *at*."""
        return DecreaseBudget(self.used_on(at) + 1, at)


def refused_decreases(instants: tuple[datetime, ...]) -> dict[date, tuple[int, int]]:
    """Planned and refused decreases of one resource per UTC day, for the days on which any would be refused."""
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
