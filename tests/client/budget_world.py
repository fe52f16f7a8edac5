"""Workers of one shared budget that wait by turns on one clock, and the record of the budget, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from highwater import Pacer
from highwater.core.units import Dimension
from tests.client.memory_budget import AT, SECOND, Record

# units per second, of all workers together
BUDGET = 600


@dataclass
class BudgetWorld(Record):
    """The record of a budget, which takes its time to answer, and workers, one of which works at a time.

    Attributes:
        budget: The rate of all workers together, in units per second.
        waiting: The workers that wait, with the time until which they do.
        sent: The time and the units of each request.
        pacers: The number of workers that there have been.
    """

    budget: int = BUDGET
    waiting: list[tuple[int, int, greenlet]] = field(default_factory=list)
    sent: list[tuple[int, float]] = field(default_factory=list)
    pacers: int = 0
    _turn: int = 0
    _hub: Any = None

    def start(self, work: Callable[[], None]) -> None:
        """Have a worker begin as soon as the present one waits."""
        self._wait(self.now, greenlet(work))

    def run(self, *workers: Callable[[], None]) -> None:
        """Have workers begin, and return when nobody waits any more."""
        self._hub = getcurrent()
        for work in workers:
            self.start(work)
        while self.waiting:
            self.waiting.sort(key=lambda each: each[:2])
            at, _, worker = self.waiting.pop(0)
            self.now = max(self.now, at)
            worker.switch()

    def pause(self, seconds: float) -> None:
        """Wait, while others work."""
        self._wait(self.now + round(seconds * SECOND), getcurrent())
        self._hub.switch()

    def _wait(self, at: int, worker: greenlet) -> None:
        self._turn += 1
        self.waiting.append((at, self._turn, worker))

    def get_item(self, **request: Any) -> dict[str, Any]:
        self.pause(0.004)
        return super().get_item(**request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.pause(0.003)
        answer = super().update_item(**request)
        self.pause(0.003)
        return answer

    def pacer(self, *, starts_full: bool = False) -> Pacer:
        """A worker's pacer."""
        self.pacers += 1
        made = Pacer(clock=lambda: self.now, pause=self.pause, shared=self.worker(), starts_full=starts_full)
        made.limit("orders", Dimension.WRITE, self.budget)
        return made

    def send(self, pacer: Pacer, cost: float, paid: float | None = None) -> None:
        """Send a request of *cost* units, for which *paid* are paid before that is known."""
        receipt = pacer.wait({AT: cost if paid is None else paid})
        self.sent.append((self.now, cost))
        self.pause(0.005)
        pacer.settle(receipt, {AT: cost})

    def worst(self, under_way: float) -> float:
        """The consumption of the worst window over its bound, which is rate * (W + 1) and what is under way."""
        worst = 0.0
        for first, (began, _) in enumerate(self.sent):
            total = 0.0
            for at, units in self.sent[first:]:
                total += units
                worst = max(worst, total / (self.budget * ((at - began) / SECOND + 1) + under_way))
        return worst
