"""Traffic as the simulation takes it: whole quanta per second, by the second or by the minute."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic.errors import TrafficError

MINUTE: Final = 60
# Ten years of minutes, or two months of seconds: beyond that it is an error of units
MOST_BINS: Final = 5_300_000
_MOST_UNITS_PER_SECOND: Final = 10**7
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stream:
    """What a series of rates is sent to: reads or writes of the table (`None`) or of an index."""

    index: str | None
    dimension: Dimension

    @property
    def label(self) -> str:
        """The column's name in files: `writes`, `reads:by_status`."""
        return f"{self.dimension}s" + ("" if self.index is None else f":{self.index}")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Request rates over time.

    Attributes:
        name: For reports.
        start: The first bin's beginning, an aware instant at a whole minute.
        bin_seconds: 60 where a rate holds for a minute, 1 where it holds for a second.
        source_bin_seconds: How fine the source was: coarser ones were spread evenly and hide their bursts.
        rates: For each stream its rates, in quanta per second, one per bin; all of one length, whole minutes long.
        counts: The units of each bin of the source, where whole units lost something of them: what is scaled.
    """

    name: str
    start: datetime
    bin_seconds: int
    source_bin_seconds: int
    rates: Mapping[Stream, array[int]]
    counts: Mapping[Stream, array[float]] | None = None

    @classmethod
    def from_counts(
        cls,
        name: str,
        counts: Mapping[Stream, Iterable[float]],
        *,
        bin_seconds: int,
        start: datetime,
        scale: float = 1.0,
    ) -> Traffic:
        """Traffic from units per bin of *bin_seconds*, a divisor or multiple of 60; totals stay to half a unit.

        Bins finer than a minute become seconds, coarser ones minutes of even rates. What does not fill a last
        minute is dropped. Raises `TrafficError` for bins or amounts that cannot be.
        """
        if bin_seconds < 1 or (MINUTE % bin_seconds and bin_seconds % MINUTE):
            raise TrafficError(f"{name}: bins must divide a minute or be whole minutes, got {bin_seconds} s")
        fine = bin_seconds < MINUTE
        parts = bin_seconds if fine else bin_seconds // MINUTE
        exact = {stream: array("d", (value * scale for value in values)) for stream, values in counts.items()}
        if parts * max(map(len, exact.values()), default=0) > MOST_BINS:
            raise TrafficError(f"{name}: longer than {MOST_BINS:,} bins; give a shorter stretch or coarser bins")
        rates = {}
        for stream, values in exact.items():
            whole = _whole_units(name, stream, values, parts)
            if fine:
                whole = array("q", [units * QUANTA_PER_UNIT for units in whole])
                whole = whole[: len(whole) // MINUTE * MINUTE]
            rates[stream] = whole
        lengths = {len(series) for series in rates.values()}
        if lengths in (set(), {0}):
            raise TrafficError(f"{name}: holds less than one whole minute of traffic")
        if len(lengths) > 1:
            raise TrafficError(f"{name}: its columns are of different lengths")
        is_whole = parts == 1 and all(value.is_integer() for values in exact.values() for value in values)
        made = cls(name, _EARLIEST, 1 if fine else MINUTE, bin_seconds, rates, None if is_whole else exact)
        return made.starting(start)

    @property
    def minutes(self) -> int:
        """Its length."""
        return len(next(iter(self.rates.values()))) * self.bin_seconds // MINUTE

    @property
    def is_coarse(self) -> bool:
        """Whether the source's bins are longer than five minutes, the most that alarms of minutes stand for."""
        return self.source_bin_seconds > 300

    def total_units(self, stream: Stream) -> float:
        """All units asked of a stream."""
        return sum(self.rates[stream]) * self.bin_seconds / QUANTA_PER_UNIT

    def busiest_minute(self, stream: Stream) -> float:
        """The most that is asked of a stream in one minute, in units per second."""
        rates, step = self.rates[stream], MINUTE // self.bin_seconds
        most = max(sum(rates[at : at + step]) for at in range(0, len(rates), step))
        return most * self.bin_seconds / MINUTE / QUANTA_PER_UNIT

    def mean_units_per_second(self) -> float:
        """The mean rate of all streams together."""
        return sum(self.total_units(stream) for stream in self.rates) / (self.minutes * MINUTE)

    def scaled(self, factor: float) -> Traffic:
        """The same with every rate times *factor*, above 0; totals stay to half a unit."""
        if not (math.isfinite(factor) and factor > 0):
            raise TrafficError(f"the scale must be above 0, got {factor:g}")
        if self.counts is not None:
            return Traffic.from_counts(
                self.name, self.counts, bin_seconds=self.source_bin_seconds, start=self.start, scale=factor
            )
        step = QUANTA_PER_UNIT // self.bin_seconds if self.bin_seconds == 1 else 1
        units = {stream: (rate / step for rate in series) for stream, series in self.rates.items()}
        return Traffic.from_counts(self.name, units, bin_seconds=self.bin_seconds, start=self.start, scale=factor)

    def with_mean(self, units_per_second: float) -> Traffic:
        """The same scaled to this mean rate of all streams together."""
        mean = self.mean_units_per_second()
        if mean == 0:
            raise TrafficError(f"{self.name}: has no requests, so it has no scale")
        return self.scaled(units_per_second / mean)

    def starting(self, start: datetime) -> Traffic:
        """The same at another time; *start* is aware and loses its seconds.

        Raises `TrafficError` for years that zone rules and prices say nothing about.
        """
        try:
            at = start.astimezone(UTC).replace(second=0, microsecond=0)
            is_near = at >= _EARLIEST and at + timedelta(minutes=self.minutes) <= _LATEST
        except OverflowError:
            is_near = False
        if not is_near:
            raise TrafficError(
                f"{self.name}: begins at {start.isoformat()}; traffic lies between {_EARLIEST.year} and {_LATEST.year}"
            )
        return replace(self, start=at)

    def first_minutes(self, minutes: int) -> Traffic:
        """The same cut after so many minutes."""
        bins = minutes * MINUTE // self.bin_seconds
        rates = {stream: series[:bins] for stream, series in self.rates.items()}
        source, rest = divmod(minutes * MINUTE, self.source_bin_seconds)
        if self.counts is None or rest:
            return replace(self, rates=rates, counts=None)
        return replace(self, rates=rates, counts={stream: values[:source] for stream, values in self.counts.items()})


def _whole_units(name: str, stream: Stream, values: Iterable[float], parts: int) -> array[int]:
    """Each value over *parts* equal bins, in whole units whose sums stay right."""
    whole = array("q")
    exact = 0.0
    told = 0
    most = _MOST_UNITS_PER_SECOND * MINUTE
    for number, value in enumerate(values):
        share = value / parts
        if not 0 <= share <= most:
            raise TrafficError(
                f"{name}: {stream.label} of bin {number}, scaled, are {value:g}; allowed: from 0 to "
                f"{_MOST_UNITS_PER_SECOND:,} units per second"
            )
        for _ in range(parts):
            exact += share
            units = math.floor(exact + 0.5) - told
            whole.append(units)
            told += units
    return whole
