"""The brake: the share of its rate that a budget uses since requests were throttled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.core.units import NANOSECONDS

# One cut for all requests that are throttled at about the same time
_BRAKED_EVERY: Final = 5 * NANOSECONDS
_BRAKED_PERCENT: Final = 70
_RECOVERS_EVERY: Final = 10 * NANOSECONDS
_RECOVERED_PERCENT: Final = 5
_LEAST_PERCENT: Final = 1


@dataclass(slots=True)
class Brake:
    """The share of its rate that a budget uses now.

    A throttled request cuts the share to 70 % of its present value, at most every five seconds; every ten seconds
    without one add five percentage points.

    Attributes:
        percent: The share, 1 to 100.
        changed_at: When it last changed, in nanoseconds.
    """

    percent: int = 100
    changed_at: int = -(10**30)

    def press(self, now: int) -> bool:
        """Cut the share after a throttled request; return whether it has changed."""
        if now - self.changed_at < _BRAKED_EVERY:
            return False
        self.percent = max(self.percent * _BRAKED_PERCENT // 100, _LEAST_PERCENT)
        self.changed_at = now
        return True

    def recover(self, now: int) -> bool:
        """Raise the share by the time that has passed; return whether it has changed."""
        steps = (now - self.changed_at) // _RECOVERS_EVERY
        if self.percent == 100 or steps < 1:
            return False
        self.percent = min(self.percent + steps * _RECOVERED_PERCENT, 100)
        self.changed_at += steps * _RECOVERS_EVERY
        return True
