"""Demand of an application by minute, from CloudWatch metrics, and its peaks, jumps and values of a day ago."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from highwater.core.scaler.observations import Observation

MINUTES_PER_DAY = 1440
# minutes over which a jump is averaged, and minutes before it whose peak it must exceed
_JUMP_MINUTES, _BEFORE_MINUTES = 4, 15


def demand_by_minute(seen: Observation, retry_percent: int) -> list[int | None]:
    """Return the units demanded in each minute, oldest first: consumed units plus throttled units.

    *retry_percent* is how often a throttled request is sent, in percent (300: three times). Throttled units are divided
    by it, so that a request counts once however often a client repeats it. `None` is a minute without a datapoint and
    without throttles.
    """
    return [
        None if units is None and not throttled else (units or 0) + -(-throttled * 100 // retry_percent)
        for units, throttled in zip(seen.consumed_units, seen.throttled_units, strict=True)
    ]


def peak(demand: Sequence[int | None], minutes: int) -> int:
    """Return the highest known demand of the last *minutes*, 0 if none is known."""
    return max((units for units in islice(reversed(demand), minutes) if units is not None), default=0)


def count_jumps(consumed: Sequence[int | None], minutes: int, jump_percent: int, level_percent: int) -> int:
    """Return how often consumption jumped in the last *minutes*.

    At a jump, the average of four minutes exceeds *jump_percent* of the peak of the 15 minutes before, and
    *level_percent* of the average of all *minutes*. The 15 minutes after the start of a jump belong to that jump. Only
    consumed units count, because throttles would raise the peak before a jump and so hide jumps.
    """
    known = [units or 0 for units in consumed[-minutes:]]
    if len(known) < _BEFORE_MINUTES + _JUMP_MINUTES:
        return 0
    # sums of four minutes are compared, so the values of single minutes are multiplied by four
    lowest_jump = _JUMP_MINUTES * sum(known) * level_percent // (100 * len(known))
    jumps, at = 0, _BEFORE_MINUTES
    while at <= len(known) - _JUMP_MINUTES:
        after = sum(known[at : at + _JUMP_MINUTES])
        if (
            after > lowest_jump
            and after * 100 > _JUMP_MINUTES * jump_percent * known[at - 1]
            and after * 100 > _JUMP_MINUTES * jump_percent * max(known[at - _BEFORE_MINUTES : at])
        ):
            jumps += 1
            at += _BEFORE_MINUTES
        else:
            at += 1
    return jumps


def yesterday(demand: Sequence[int | None], minutes: int) -> int:
    """Return the peak demand, a day ago, of the *minutes* from now on; 0 if it is not known."""
    if len(demand) < MINUTES_PER_DAY:
        return 0
    start = len(demand) - MINUTES_PER_DAY
    return max((units for units in demand[start : start + minutes] if units is not None), default=0)
