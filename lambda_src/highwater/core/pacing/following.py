"""How much background work asks for per second, by what its table or index shows: slow starts, and shares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from highwater.core.pacing.bucket import MILLIUNITS, NANOSECONDS

# What target tracking usually has, where nobody knows
USUAL_TARGET_PERCENT: Final = 70
# Of the documented five minutes of burst capacity half are believed in, as AWS promises none
_BELIEVED_SECONDS: Final = 150
# Auto scaling answers within seven minutes in the article's figures 2 and 3 (docs/figures.md); until then a slow start
# spends a minute's capacity of the burst at the most
_ANSWERED_SECONDS: Final = 420
_BURST_SECONDS: Final = 60
# Without any burst capacity, so much of the provisioned capacity is used
_FULL_PERCENT: Final = 95
_STILL_NANOSECONDS: Final = 2 * _ANSWERED_SECONDS * NANOSECONDS
_LEAST_PARTS: Final = 100


class Start(StrEnum):
    """How background work begins."""

    FULL = "full"
    SLOW = "slow"
    BOOSTED = "boosted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGoal:
    """What background work wants; one of the two is given.

    Attributes:
        milliunits: Thousandths of a unit per second.
        percent: A share of the provisioned capacity, 1 to 100.
        is_slow: Whether it begins with what there is room for, and asks for more as the capacity follows.
    """

    milliunits: int | None = None
    percent: int | None = None
    is_slow: bool = False

    @property
    def follows(self) -> bool:
        """Whether its rate depends on the table."""
        return self.is_slow or self.percent is not None

    def rate_at(self, provisioned_units: int) -> int:
        """Thousandths of a unit per second that it wants of so much provisioned capacity."""
        if self.milliunits is not None:
            return self.milliunits
        return max(provisioned_units * MILLIUNITS * (self.percent or 0) // 100, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a table or an index shows of one dimension.

    Attributes:
        provisioned: Provisioned units per second.
        ceiling: The most that auto scaling provisions; `None` where nothing scales it, or nobody may ask.
        target_percent: The utilization that auto scaling aims at; `None` likewise.
        others: Thousandths of a unit per second that others consumed in the busiest of the last minutes that are known;
            `None` where nobody may ask.
    """

    provisioned: int
    ceiling: int | None = None
    target_percent: int | None = None
    others: int | None = None


@dataclass(slots=True)
class Follower:
    """Decides on the rate of background work on one table or index; times are in nanoseconds and do not go back.

    A slow start asks for no more than the provisioned capacity and a part of the burst capacity hold, beside what
    others consume. That is more than auto scaling's target, so that capacity rises, and the rate with it. The burst
    capacity that is left is estimated: half of what is documented at the start, less what was consumed above the
    provisioned capacity since, and none after a refusal. None is used at the ceiling.

    A share that is below auto scaling's target stays below it together with what others consume, as capacity that the
    work itself drives up would make the share larger, and so on up to the ceiling.

    Attributes:
        goal: What the work wants.
    """

    goal: RateGoal
    _provisioned: int = 0
    _risen_at: int | None = None
    _burst: int = 0
    _asked: int = 0
    _looked_at: int | None = None
    _guessed: int | None = None

    def refuse(self) -> None:
        """A request was refused for want of capacity: no burst capacity is left."""
        self._burst = 0

    def rate(self, now: int, shown: Shown) -> int:
        """Return thousandths of a unit per second to ask for from *now* on, 1 or more."""
        others = self._others(shown)
        self._estimate_burst(now, others)
        if self._risen_at is None or shown.provisioned > self._provisioned:
            self._risen_at = now
        self._provisioned = shown.provisioned
        if self._looked_at is None:
            self._burst = shown.provisioned * MILLIUNITS * _BELIEVED_SECONDS
        self._looked_at = now
        rate = self.goal.rate_at(shown.provisioned)
        least = min(rate, max(rate // _LEAST_PARTS, MILLIUNITS))
        if self.goal.percent is not None and not self.ratchets(shown) and shown.others is not None:
            target = shown.target_percent or USUAL_TARGET_PERCENT
            rate = min(rate, shown.provisioned * MILLIUNITS * target // 100 - shown.others)
        if self.goal.is_slow:
            rate = min(rate, self._room(shown) - others)
        self._asked = max(rate, least) + others
        return max(rate, least)

    def is_still(self, now: int) -> bool:
        """Whether the capacity has not risen for so long that nothing seems to scale it."""
        return self._risen_at is not None and now - self._risen_at > _STILL_NANOSECONDS

    def ratchets(self, shown: Shown) -> bool:
        """Whether the share alone is so large that auto scaling raises the capacity, and with it the share."""
        return self.goal.percent is not None and self.goal.percent >= (shown.target_percent or USUAL_TARGET_PERCENT)

    def _room(self, shown: Shown) -> int:
        """What the capacity holds, and of its burst capacity what may be spent until auto scaling has answered."""
        whole = shown.provisioned * MILLIUNITS
        if shown.ceiling is not None and shown.provisioned >= shown.ceiling:
            return whole * _FULL_PERCENT // 100
        most = whole + whole * _BURST_SECONDS // _ANSWERED_SECONDS
        return min(whole * _FULL_PERCENT // 100 + self._burst // _ANSWERED_SECONDS, most)

    def _estimate_burst(self, now: int, others: int) -> None:
        """Take off what was asked for above the capacity since the last look, or put back what was left of it."""
        if self._looked_at is None:
            return
        whole = self._provisioned * MILLIUNITS
        used = (max(self._asked, others) - whole) * (now - self._looked_at) // NANOSECONDS
        self._burst = min(max(self._burst - used, 0), max(whole * _BELIEVED_SECONDS, self._burst))

    def _others(self, shown: Shown) -> int:
        """What others consume; where nobody knows, what auto scaling would have kept the capacity of the start for."""
        if shown.others is not None:
            return shown.others
        if self._guessed is None:
            target = shown.target_percent or USUAL_TARGET_PERCENT
            self._guessed = shown.provisioned * MILLIUNITS * target // 100
        return self._guessed
