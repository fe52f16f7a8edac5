"""What an application asked for, from what CloudWatch counted; and what that demand does: peaks, jumps, yesterday."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from highwater.core.scaler.observations import Observation

MINUTES_PER_DAY = 1440
# minutes of a jump, and of the peak before that it rises above
_JUMP_MINUTES, _BEFORE_MINUTES = 4, 15


def demand_by_minute(seen: Observation, retry_percent: int) -> list[int | None]:
    """Units asked for in each minute, oldest first: consumed, and what was throttled, once however often it was sent.

    `None` where there is no datapoint, unless throttles tell of a demand.
    """
    return [
        None if units is None and not throttled else (units or 0) + -(-throttled * 100 // retry_percent)
        for units, throttled in zip(seen.consumed_units, seen.throttled_units, strict=True)
    ]


def peak(demand: Sequence[int | None], minutes: int) -> int:
    """The highest of the last minutes that are known, 0 where none is."""
    return max((units for units in islice(reversed(demand), minutes) if units is not None), default=0)


def count_jumps(consumed: Sequence[int | None], minutes: int, jump_percent: int, level_percent: int) -> int:
    """How often in the last minutes consumption jumped: four on average above so much of the peak just before.

    Only what was consumed counts, so that throttles never make the answer smaller; jumps to less than *level_percent*
    of the average are none, and the quarter of an hour after a jump belongs to it.
    """
    known = [units or 0 for units in consumed[-minutes:]]
    if len(known) < _BEFORE_MINUTES + _JUMP_MINUTES:
        return 0
    # sums of four minutes are compared, hence four times a minute
    least = _JUMP_MINUTES * sum(known) * level_percent // (100 * len(known))
    jumps, at = 0, _BEFORE_MINUTES
    while at <= len(known) - _JUMP_MINUTES:
        after = sum(known[at : at + _JUMP_MINUTES])
        if (
            after > least
            and after * 100 > _JUMP_MINUTES * jump_percent * known[at - 1]
            and after * 100 > _JUMP_MINUTES * jump_percent * max(known[at - _BEFORE_MINUTES : at])
        ):
            jumps += 1
            at += _BEFORE_MINUTES
        else:
            at += 1
    return jumps


def yesterday(demand: Sequence[int | None], minutes: int) -> int:
    """The peak of the coming *minutes* a day ago, 0 where that is not known."""
    if len(demand) < MINUTES_PER_DAY:
        return 0
    start = len(demand) - MINUTES_PER_DAY
    return max((units for units in demand[start : start + minutes] if units is not None), default=0)
