"""How a budget gives way where its table or index refuses requests for want of capacity, and recovers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.core.pacing.bucket import NANOSECONDS

# Once for all requests that are refused at about the same time
_BRAKED_EVERY: Final = 5 * NANOSECONDS
_BRAKED_PERCENT: Final = 70
_RECOVERS_EVERY: Final = 10 * NANOSECONDS
_RECOVERED_PERCENT: Final = 5
_LEAST_PERCENT: Final = 1


@dataclass(slots=True)
class Brake:
    """The share of its rate that a budget uses now.

    A refused request cuts the rate to 70 % of what it is, at most every five seconds; every ten seconds without one
    give five percent of the whole rate back.

    Attributes:
        percent: The share, 1 to 100.
        changed_at: When it last changed, in nanoseconds.
    """

    percent: int = 100
    changed_at: int = -(10**30)

    def press(self, now: int) -> bool:
        """A request was refused; return whether the share has changed."""
        if now - self.changed_at < _BRAKED_EVERY:
            return False
        self.percent = max(self.percent * _BRAKED_PERCENT // 100, _LEAST_PERCENT)
        self.changed_at = now
        return True

    def recover(self, now: int) -> bool:
        """Give back what time has passed for; return whether the share has changed."""
        steps = (now - self.changed_at) // _RECOVERS_EVERY
        if self.percent == 100 or steps < 1:
            return False
        self.percent = min(self.percent + steps * _RECOVERED_PERCENT, 100)
        self.changed_at += steps * _RECOVERS_EVERY
        return True
