"""The rate of background work that follows its table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from highwater.core.bucket import BURST_SECONDS, settle
from highwater.core.tracking import NATIVE_TARGET_PERCENT
from highwater.core.units import MILLIUNITS, NANOSECONDS

# Half of the documented burst capacity is counted on, as AWS does not guarantee it
_HALF_SECONDS: Final = BURST_SECONDS // 2
# Auto scaling raises capacity within seven minutes in the article's figures 2 and 3 (docs/figures.md); until then a
# slow start spends at most one minute's capacity of the burst
_ANSWERED_SECONDS: Final = 420
_BURST_SECONDS: Final = 60
# The share of the provisioned capacity that is used when there is no burst capacity
_FULL_PERCENT: Final = 95
_STILL_NANOSECONDS: Final = 2 * _ANSWERED_SECONDS * NANOSECONDS
_LEAST_PARTS: Final = 100


class Start(StrEnum):
    """How background work starts."""

    FULL = "full"
    SLOW = "slow"
    BOOSTED = "boosted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGoal:
    """The rate that background work was given: either *milliunits* or *percent*.

    Attributes:
        milliunits: Thousandths of a unit per second.
        percent: A share of the provisioned capacity, 1 to 100.
        is_slow: Whether it starts at the rate for which there is capacity, and speeds up as the capacity rises.
    """

    milliunits: int | None = None
    percent: int | None = None
    is_slow: bool = False

    @property
    def follows(self) -> bool:
        """Whether its rate depends on the table."""
        return self.is_slow or self.percent is not None

    def rate_at(self, provisioned_units: int) -> int:
        """Return the rate for this provisioned capacity, in thousandths of a unit per second."""
        if self.milliunits is not None:
            return self.milliunits
        return max(provisioned_units * MILLIUNITS * (self.percent or 0) // 100, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """State and metrics of one dimension of a table or index.

    Attributes:
        provisioned: Provisioned units per second.
        ceiling: The most that auto scaling provisions; `None` if nothing scales it, or it cannot be read.
        target_percent: The target utilization of auto scaling; `None` likewise.
        others: Thousandths of a unit per second that others consumed in the busiest of the newest known minutes;
            `None` if that cannot be read.
    """

    provisioned: int
    ceiling: int | None = None
    target_percent: int | None = None
    others: int | None = None


@dataclass(slots=True)
class Follower:
    """Decides on the rate of background work on one table or index; times are of a monotonic clock, in nanoseconds.

    A slow start uses the provisioned capacity and a part of the burst capacity, less the consumption of others. That is
    above auto scaling's target, so capacity rises, and the rate with it. The remaining burst capacity is estimated:
    half of the documented amount at the start, less the consumption above the provisioned capacity since, and none
    after a throttled request. No burst capacity is used at the ceiling.

    A share below auto scaling's target utilization is limited so that it stays below the target together with the
    consumption of others. Otherwise the work itself would raise the capacity, and with it the share, up to the ceiling.

    Attributes:
        goal: The rate that the work was given.
    """

    goal: RateGoal
    _provisioned: int = 0
    _risen_at: int | None = None
    _burst: int = 0
    _asked: int = 0
    _looked_at: int | None = None
    _guessed: int | None = None

    def refuse(self) -> None:
        """Note that a request was throttled because of insufficient capacity: no burst capacity is left."""
        self._burst = 0

    def rate(self, now: int, shown: Shown) -> int:
        """Return the rate from *now* on, in thousandths of a unit per second, 1 or more."""
        others = self._others(shown)
        self._estimate_burst(now, others)
        if self._risen_at is None or shown.provisioned > self._provisioned:
            self._risen_at = now
        self._provisioned = shown.provisioned
        if self._looked_at is None:
            self._burst = shown.provisioned * MILLIUNITS * _HALF_SECONDS
        self._looked_at = now
        rate = self.goal.rate_at(shown.provisioned)
        least = min(rate, max(rate // _LEAST_PARTS, MILLIUNITS))
        if self.goal.percent is not None and not self.ratchets(shown) and shown.others is not None:
            target = shown.target_percent or NATIVE_TARGET_PERCENT
            rate = min(rate, shown.provisioned * MILLIUNITS * target // 100 - shown.others)
        if self.goal.is_slow:
            rate = min(rate, self._room(shown) - others)
        self._asked = max(rate, least) + others
        return max(rate, least)

    def is_still(self, now: int) -> bool:
        """Whether the capacity has not risen for 14 minutes, so that nothing seems to scale it."""
        return self._risen_at is not None and now - self._risen_at > _STILL_NANOSECONDS

    def ratchets(self, shown: Shown) -> bool:
        """Whether the share alone is so large that auto scaling raises the capacity, and with it the share."""
        return self.goal.percent is not None and self.goal.percent >= (shown.target_percent or NATIVE_TARGET_PERCENT)

    def _room(self, shown: Shown) -> int:
        """Return the provisioned capacity and the part of the burst that may be spent until auto scaling raises it."""
        whole = shown.provisioned * MILLIUNITS
        if shown.ceiling is not None and shown.provisioned >= shown.ceiling:
            return whole * _FULL_PERCENT // 100
        most = whole + whole * _BURST_SECONDS // _ANSWERED_SECONDS
        return min(whole * _FULL_PERCENT // 100 + self._burst // _ANSWERED_SECONDS, most)

    def _estimate_burst(self, now: int, others: int) -> None:
        """Subtract the demand above the capacity since the last call from the burst, or add the capacity not used."""
        if self._looked_at is None:
            return
        whole = self._provisioned * MILLIUNITS
        used = (max(self._asked, others) - whole) * (now - self._looked_at) // NANOSECONDS
        self._burst, _ = settle(self._burst, 0, used, max(whole * _HALF_SECONDS, self._burst))

    def _others(self, shown: Shown) -> int:
        """Return the others' consumption; if unknown, the one for which auto scaling keeps the first capacity seen."""
        if shown.others is not None:
            return shown.others
        if self._guessed is None:
            target = shown.target_percent or NATIVE_TARGET_PERCENT
            self._guessed = shown.provisioned * MILLIUNITS * target // 100
        return self._guessed
