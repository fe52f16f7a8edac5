"""What a simulation needs of the rooms, which can be taken out: see `highwater.rooms`.

Nothing else in the lab imports one, and the simulator asks for one only where a job has several workers, or a table has
a queue.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from highwater_lab.simulation.setup import QueueRun, TableSetup
    from highwater_lab.simulation.table import SimulatedTable
    from highwater_lab.traffic.series import Traffic


class Sharers(Protocol):
    """The workers of one job, which share its rate."""

    def may_use(self, now: int, rate: int) -> int:
        """Return what all of them may use in the second from *now* on, of *rate*, in thousandths of a unit per second.

        *now* is in milliseconds since 1970.
        """


class Queue(Protocol):
    """A queue that has begun."""

    def result(self, end: int) -> QueueRun:
        """Return what became of it until second *end*, when the traffic ends."""


def workers_of(count: int) -> Sharers:
    """Return so many workers, 2 or more, which begin at once."""
    made: Sharers = import_module("highwater_lab.budgets.workers").Workers(count)
    return made


def drained(setup: TableSetup, traffic: Traffic) -> Traffic:
    """Return the traffic as a table's queue lets it through, if the table refuses nothing; as it is without a queue.

    The writes of each index that has a column of its own follow those of the table.
    """
    if setup.buffer is None:
        return traffic
    served: Traffic = _queue().drained(setup.buffer, traffic)
    return served


def start_queue(setup: TableSetup, table: SimulatedTable, traffic: Traffic) -> Queue | None:
    """Have the table's queue begin, `None` if it has none, or nothing is written."""
    if setup.buffer is None:
        return None
    started: Queue | None = _queue().start_queue(setup.buffer, table, traffic)
    return started


def _queue() -> Any:
    return import_module("highwater_lab.queues.queue")
