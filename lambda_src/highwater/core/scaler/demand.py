"""Demand of an application by minute, from CloudWatch metrics, and its peaks, jumps and values of a day ago."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

from highwater.core.scaler.observations import Observation

MINUTES_PER_DAY = 1440
# minutes over which a jump is averaged, and minutes before it whose peak it must exceed
_JUMP_MINUTES, _BEFORE_MINUTES = 4, 15
# A climb is so many pairs of minutes, each above the pair before.
_CLIMB_PAIRS, _PAIR_MINUTES = 4, 2


def demand_by_minute(seen: Observation) -> list[int | None]:
    """Return the units demanded in each minute, oldest first: consumed units plus throttled units.

    `None` is a minute without a datapoint and without throttles.
    """
    return [
        None if units is None and not throttled else (units or 0) + throttled
        for units, throttled in zip(seen.consumed_units, seen.throttled_units, strict=True)
    ]


def peak(demand: Sequence[int | None], minutes: int) -> int:
    """Return the highest known demand of the last *minutes*, 0 if none is known."""
    return max((units for units in islice(reversed(demand), minutes) if units is not None), default=0)


def count_jumps(consumed: Sequence[int | None], minutes: int, jump_percent: int) -> int:
    """How often consumption jumped in the last *minutes*.

    It jumped where four minutes on average are above *jump_percent* of the highest of the fifteen before, and above the
    average of all the minutes. The fifteen minutes after a jump belong to it. Only consumption counts, so that
    throttles never make the answer smaller.
    """
    known = [units or 0 for units in consumed[-minutes:]]
    total = sum(known)
    jumps, at = 0, _BEFORE_MINUTES
    while at <= len(known) - _JUMP_MINUTES:
        # sums of four minutes are compared, hence with four times an average minute and four times the highest
        after = sum(known[at : at + _JUMP_MINUTES])
        if (
            after * len(known) > _JUMP_MINUTES * total
            # quicker than the next comparison, which includes this one
            and after * 100 > _JUMP_MINUTES * jump_percent * known[at - 1]
            and after * 100 > _JUMP_MINUTES * jump_percent * max(known[at - _BEFORE_MINUTES : at])
        ):
            jumps += 1
            at += _BEFORE_MINUTES
        else:
            at += 1
    return jumps


def rise_of_climb(consumed: Sequence[int | None], minutes: int, hold_minutes: int) -> int:
    """By how many units a minute consumption will have risen in *minutes* if it climbs on; 0 where it does not climb.

    *consumed* ends with the newest known minute. Consumption climbs where that minute is the highest of *hold_minutes*
    and each of the last four pairs of minutes is above the pair before it. The least of these three rises is
    extrapolated: a jump is no climb, and noise seldom rises three times in a row. Only consumption counts, so that
    throttles never make the answer smaller.
    """
    length = _CLIMB_PAIRS * _PAIR_MINUTES
    known = [units for units in consumed[-length:] if units is not None]
    if len(known) < length or known[-1] < peak(consumed, hold_minutes):
        return 0
    pairs = [sum(known[at : at + _PAIR_MINUTES]) for at in range(0, length, _PAIR_MINUTES)]
    least = min(after - before for before, after in pairwise(pairs))
    # sums of two minutes that begin two minutes apart rise by four times what a minute does
    return max(0, minutes * least // _PAIR_MINUTES**2)


def yesterday(demand: Sequence[int | None], minutes: int) -> int:
    """Return the peak demand, a day ago, of the *minutes* from now on; 0 if it is not known."""
    if len(demand) < MINUTES_PER_DAY:
        return 0
    start = len(demand) - MINUTES_PER_DAY
    return max((units for units in demand[start : start + minutes] if units is not None), default=0)
