"""What a pacer asks of a budget that several workers share, whoever shares it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from highwater.core.errors import HighwaterError
from highwater.core.units import Dimension

# The table or index that requests consume capacity of, and the dimension; writes of indexes follow their table
Lane = tuple[str, str | None, Dimension]


class WorkEndedError(HighwaterError):
    """The work ended while a request waited for its budget; it was not sent."""


class SharedBudgetError(HighwaterError):
    """The budget cannot be shared: there is no coordinator, or the caller has no grant for it."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a budget that a worker leases now; times are of the monotonic clock, in nanoseconds, but *wall_end*.

    Attributes:
        milliunits: Thousandths of a unit per second.
        ends_at: When the lease ends unless it is renewed.
        wall_end: The same in seconds since 1970.
        term: The span of time without a gap that the lease belongs to. What was saved up in one is lost in the next.
        number: Its number among this worker's shares, of which later ones replace earlier ones.
    """

    milliunits: int = 0
    ends_at: int = -1
    wall_end: float = 0.0
    term: int = 0
    number: int = 0

    def is_live(self, now: int, wall: float) -> bool:
        """Whether the lease lasts by both clocks: one of them may have stood still while the process was frozen."""
        return now < self.ends_at and wall < self.wall_end


class Sharing(Protocol):
    """This worker's side of a shared budget, such as `highwater.budgets.SharedBudget`.

    Attributes:
        name: The budget's name.
    """

    name: str

    def enter(
        self, lane: Lane, rate: int, spent: int, percent: int = 100, is_stopped: threading.Event | None = None
    ) -> Share:
        """Return this worker's share of a lane, in which it has consumed *spent*; waits until it has one.

        *rate* is that of the whole budget and *spent* an amount, both in thousandths of a unit; *percent* is how much
        of its share the worker uses at most, 1 to 100. Raises `SharedBudgetError` if there will be none, and
        `WorkEndedError` if *is_stopped* is set before there is one.
        """

    def may_send(self, lane: Lane) -> bool:
        """Whether this worker has a share of a lane now."""

    def note(self, lane: Lane, *, has_waited: bool) -> None:
        """Count a request by its first attempt, and whether that had to wait."""

    def waiting(self, lanes: Iterable[Lane]) -> AbstractContextManager[None]:
        """Count a request as one that has to wait, while the block runs."""

    def leave(self, lane: Lane | None = None) -> None:
        """Give the shares back, of one lane or of all; nothing is raised."""
