"""Consumption by minute, with the figures that every turn needs of it, each worked out once when a minute is added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, overload

from highwater.core.plan.zones import MINUTES_PER_HOUR

# minutes over which a jump is averaged, and minutes before it whose peak it must exceed
_JUMP_MINUTES: Final = 4
_BEFORE_MINUTES: Final = 15
_BELOW_ZERO: Final = "units below zero"
_ALL: Final = slice(None)


class MinuteSeries:
    """Minutes in a row that only grows at its end; `window` returns some of them.

    The simulator has one for each target and adds a minute at a time. The Lambda function makes one of CloudWatch's
    answer. Either way a window answers the same.
    """

    __slots__ = ("_hour_peaks", "_jumps", "_jumps_at", "_sums", "_units")

    def __init__(self, units: Iterable[int | None] = ()) -> None:
        self._units = list(units)
        known = [each or 0 for each in self._units]
        if min(known, default=0) < 0:
            raise ValueError(_BELOW_ZERO)
        # the highest minute of each hour, so that the peak of a day need not look at each
        hours = range(0, len(known), MINUTES_PER_HOUR)
        self._hour_peaks = [max(known[at : at + MINUTES_PER_HOUR]) for at in hours]
        # the sum of all minutes before each
        self._sums = [0, *accumulate(known)]
        # minutes that may begin a jump, each with the sum of four minutes from it on and the highest of those before it
        self._jumps_at: list[int] = []
        self._jumps: list[tuple[int, int]] = []
        for at in range(_BEFORE_MINUTES, len(known) - _JUMP_MINUTES + 1):
            self._note_jump(at)

    def __len__(self) -> int:
        """How many minutes there are."""
        return len(self._units)

    def append(self, units: int | None) -> None:
        """Add the units consumed in the next minute, `None` for no datapoint; raises `ValueError` below zero."""
        if units is not None and units < 0:
            raise ValueError(_BELOW_ZERO)
        self._units.append(units)
        self._sums.append(self._sums[-1] + (units or 0))
        if len(self._units) % MINUTES_PER_HOUR == 1:
            self._hour_peaks.append(units or 0)
        elif units and units > self._hour_peaks[-1]:
            self._hour_peaks[-1] = units
        at = len(self._units) - _JUMP_MINUTES
        if at >= _BEFORE_MINUTES:
            self._note_jump(at)

    def _note_jump(self, at: int) -> None:
        after = self._sums[at + _JUMP_MINUTES] - self._sums[at]
        # quicker than the next comparison, which includes this one
        if after > _JUMP_MINUTES * (self._units[at - 1] or 0):
            highest = max(filter(None, self._units[at - _BEFORE_MINUTES : at]), default=0)
            if after > _JUMP_MINUTES * highest:
                self._jumps_at.append(at)
                self._jumps.append((after, highest))

    def window(self, end: int, minutes: int) -> Minutes:
        """Return up to so many *minutes* before the position *end*."""
        end = min(max(end, 0), len(self._units))
        return Minutes(self, max(0, end - minutes), end)


class Minutes(Sequence["int | None"]):
    """Some minutes of a series, oldest first: units consumed in each, `None` where CloudWatch has no datapoint.

    Equal to any sequence with the same values. A slice is a list.
    """

    __slots__ = ("_end", "_series", "_start")

    def __init__(self, series: MinuteSeries, start: int, end: int) -> None:
        self._series, self._start, self._end = series, start, end

    @classmethod
    def of(cls, units: Iterable[int | None]) -> Minutes:
        """Return *units* as minutes; raises `ValueError` for units below zero."""
        if isinstance(units, cls):
            return units
        series = MinuteSeries(units)
        return cls(series, 0, len(series))

    def __len__(self) -> int:
        """How many minutes there are."""
        return self._end - self._start

    @overload
    def __getitem__(self, at: int) -> int | None: ...

    @overload
    def __getitem__(self, at: slice) -> list[int | None]: ...

    def __getitem__(self, at: int | slice) -> int | list[int | None] | None:
        """One minute, or a list of minutes."""
        if isinstance(at, int):
            if not -len(self) <= at < len(self):
                message = f"minute {at} of {len(self)}"
                raise IndexError(message)
            return self._series._units[(self._end if at < 0 else self._start) + at]
        if at == _ALL:
            return self._series._units[self._start : self._end]
        first, last, step = at.indices(len(self))
        return self._series._units[self._start + first : self._start + max(first, last) : step]

    def __iter__(self) -> Iterator[int | None]:
        """The minutes, oldest first."""
        return iter(self[:])

    def __reversed__(self) -> Iterator[int | None]:
        """The minutes, newest first."""
        units = self._series._units
        return (units[at] for at in range(self._end - 1, self._start - 1, -1))

    def __eq__(self, other: object) -> bool:
        """Whether *other* is a sequence with the same values."""
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__: Any = None

    def __repr__(self) -> str:
        """The values."""
        return f"Minutes({self[:]})"

    @property
    def pending(self) -> int:
        """How many of the newest minutes are not known: all of them where none is."""
        units, at = self._series._units, self._end
        while at > self._start and units[at - 1] is None:
            at -= 1
        return self._end - at

    def before(self, minutes: int) -> Minutes:
        """Return all but the newest so many minutes."""
        return Minutes(self._series, self._start, max(self._start, self._end - minutes))

    def peak(self) -> int:
        """The most units consumed in a minute, 0 where none is known."""
        units, start, end = self._series._units, self._start, self._end
        first, last = -(-start // MINUTES_PER_HOUR), end // MINUTES_PER_HOUR
        if first >= last:
            return max(filter(None, units[start:end]), default=0)
        return max(
            max(filter(None, units[start : first * MINUTES_PER_HOUR]), default=0),
            max(self._series._hour_peaks[first:last]),
            max(filter(None, units[last * MINUTES_PER_HOUR : end]), default=0),
        )

    def count_jumps(self, minutes: int, jump_percent: int) -> int:
        """How often consumption jumped in the last *minutes*.

        It jumped where four minutes on average are above *jump_percent* of the highest of the fifteen before, and above
        the average of all the minutes. The fifteen minutes after a jump belong to it. Only consumption counts, so that
        throttles never make the answer smaller.
        """
        series, start = self._series, max(self._start, self._end - minutes)
        length, total = self._end - start, series._sums[self._end] - series._sums[start]
        jumps, following = 0, start + _BEFORE_MINUTES
        place = bisect_left(series._jumps_at, following)
        for at, (after, highest) in zip(series._jumps_at[place:], series._jumps[place:], strict=True):
            if at > self._end - _JUMP_MINUTES:
                break
            # sums of four minutes are compared, hence with four times an average minute and four times the highest
            if (
                at >= following
                and after * length > _JUMP_MINUTES * total
                and after * 100 > _JUMP_MINUTES * jump_percent * highest
            ):
                jumps += 1
                following = at + _BEFORE_MINUTES
        return jumps
