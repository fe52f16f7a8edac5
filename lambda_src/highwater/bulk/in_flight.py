"""How many requests of paced work are under way at once: as many as the budget needs at the latency that is measured.

By Little's law a budget of 1,000 units a second, in requests of 25 units that take 0.2 seconds each, needs
1,000 / 25 * 0.2 = 8 requests under way. The pacer decides when each of them is sent, so that more of them never exceed
the budget.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

# Each request under way is a thread, a connection, and an answer of up to a megabyte in memory
MOST_IN_FLIGHT: Final = 64
# The number to begin with, before a latency is measured, is at most this
MOST_AT_FIRST: Final = 16
# Latencies vary, and what was missed while requests were slow is caught up with
_SPARE: Final = 1.5
# Weight of the newest request in the mean latency and cost
_WEIGHT: Final = 0.2


@dataclass(slots=True)
class InFlight:
    """The number of requests that may be under way at once; may be used from several threads.

    It rises when a request did not have to wait for the budget, so that the budget is not used up, and falls when half
    of it is enough.

    Attributes:
        rate: Returns the present budget in units per second, `None` for no limit.
        limit: The number to begin with, 1 to *most*; afterwards the present number. It never falls below the number
            that it began with.
        most: The highest number, 1 to 64. By default 64.
    """

    rate: Callable[[], float | None]
    limit: int
    most: int = MOST_IN_FLIGHT
    _least: int = field(init=False)
    _seconds: float | None = None
    _units: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Keep the number that it begins with as the lowest one."""
        self._least = self.limit

    def note(self, seconds: float, units: float, *, has_waited: bool) -> None:
        """Learn from an answered request.

        Args:
            seconds: The time from sending it to its answer, 0 or more.
            units: The units of the budget that it consumed, 0 or more.
            has_waited: Whether it had to wait for the budget before it was sent.
        """
        rate = self.rate()
        with self._lock:
            if self._seconds is None:
                self._seconds, self._units = seconds, units
            self._seconds += _WEIGHT * (seconds - self._seconds)
            self._units += _WEIGHT * (units - self._units)
            wanted = self._wanted(rate)
            if not has_waited:
                self.limit = max(self.limit, wanted)
            elif 2 * wanted <= self.limit:
                self.limit = wanted

    def _wanted(self, rate: float | None) -> int:
        if self._units <= 0:
            return self.limit
        needed = math.inf if rate is None else rate / self._units * (self._seconds or 0.0) * _SPARE
        return max(math.ceil(min(needed, self.most)), self._least)
