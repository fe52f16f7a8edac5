"""The error of the package `traffic`.

HighwaterError
└── TrafficError (also a ValueError): traffic cannot be read or used; the message is one line with place, problem, fix
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from highwater.core import Dimension, HighwaterError
from highwater.core.pulses import SLOT_SECONDS
from highwater_lab.physics import QUANTA_PER_UNIT


class TrafficError(HighwaterError, ValueError):
    """Traffic cannot be read, or cannot be scaled, moved or simulated as requested."""


MINUTE: Final = 60
# A Monday, so that weekly windows apply sensibly to a file without dates
DEFAULT_START: Final = datetime(2026, 11, 2, tzinfo=UTC)
# Ten years of minutes or two months of seconds; a longer series most likely has a wrong bin length
MOST_BINS: Final = 5_300_000
_MOST_UNITS_PER_SECOND: Final = 10**7
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stream:
    """The target of a series of rates: reads or writes of the table (index `None`) or of an index."""

    index: str | None
    dimension: Dimension

    @property
    def label(self) -> str:
        """The name of the stream's column in CSV files, such as `writes` or `reads:by_status`."""
        return f"{self.dimension}s" + ("" if self.index is None else f":{self.index}")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Request rates over time.

    Attributes:
        name: The name for reports and messages.
        start: The time at which the first bin begins: timezone-aware, a whole minute.
        bin_seconds: The length of a bin in *rates*: 60 or 1.
        source_bin_seconds: The length of a bin in the source. A bin longer than a minute is spread evenly over its
            minutes, so bursts within it are lost.
        rates: The rates of each stream in quanta per second, one per bin. All streams have the same length, a whole
            number of minutes.
        counts: The exact units of each source bin, from which scaling starts; `None` if *rates* are exact already.
        gaps: The source's bins whose units are not known, as the number of a first bin and how many follow from it, in
            order. In *rates* they have what `lay` assumes of them.
        notes: What a reader of the source should know, a sentence each: what was missing, ignored or assumed.
    """

    name: str
    start: datetime
    bin_seconds: int
    source_bin_seconds: int
    rates: Mapping[Stream, array[int]]
    counts: Mapping[Stream, array[float]] | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

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
        """Return traffic from the units in each bin of *bin_seconds*, a divisor or a multiple of 60.

        Bins shorter than a minute become one-second bins; longer ones become minutes of equal rates. All units are
        multiplied by *scale*. Rates are rounded to whole units such that each stream's total is right to half a unit.
        An incomplete last minute is dropped. Raises `TrafficError` for bins or units out of range.
        """
        if bin_seconds < 1 or (MINUTE % bin_seconds and bin_seconds % MINUTE):
            raise TrafficError(
                f"{name}: a bin is {bin_seconds} s long; its length must be a divisor or a multiple of 60 s"
            )
        fine = bin_seconds < MINUTE
        parts = bin_seconds if fine else bin_seconds // MINUTE
        exact = {stream: array("d", (value * scale for value in values)) for stream, values in counts.items()}
        if parts * max(map(len, exact.values()), default=0) > MOST_BINS:
            raise TrafficError(f"{name}: more than {MOST_BINS:,} bins; give a shorter period of time or longer bins")
        rates = {}
        for stream, values in exact.items():
            whole = _whole_units(name, stream, values, parts)
            if fine:
                whole = array("q", [units * QUANTA_PER_UNIT for units in whole])
                whole = whole[: len(whole) // MINUTE * MINUTE]
            rates[stream] = whole
        lengths = {len(series) for series in rates.values()}
        if lengths in (set(), {0}):
            raise TrafficError(f"{name}: is shorter than a minute; give at least one minute of traffic")
        if len(lengths) > 1:
            raise TrafficError(f"{name}: the streams have different lengths; give each the same number of bins")
        is_whole = parts == 1 and all(value.is_integer() for values in exact.values() for value in values)
        traffic = cls(name, _EARLIEST, 1 if fine else MINUTE, bin_seconds, rates, None if is_whole else exact)
        return traffic.starting(start)

    @classmethod
    def unknown(cls, name: str, why: str) -> Traffic:
        """Return traffic without a minute, of a table of which nothing is known, with *why* as its note."""
        return cls(name, DEFAULT_START, MINUTE, MINUTE, {}, notes=(why,))

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of it: it has no minute."""
        return not self.rates

    @property
    def is_idle(self) -> bool:
        """Whether it is known, and nothing is requested in it."""
        return not self.is_unknown and not any(any(rates) for rates in self.rates.values())

    @property
    def minutes(self) -> int:
        """The length in minutes."""
        return len(next(iter(self.rates.values()), ())) * self.bin_seconds // MINUTE

    @property
    def is_coarse(self) -> bool:
        """Whether the source's bins are longer than five minutes, too long to judge alarms on one-minute metrics."""
        return self.source_bin_seconds > 300

    def total_units(self, stream: Stream) -> float:
        """Return all units requested in a stream."""
        return sum(self.rates[stream]) * self.bin_seconds / QUANTA_PER_UNIT

    def busiest_minute(self, stream: Stream) -> float:
        """Return the mean units per second of a stream in its busiest minute."""
        rates, step = self.rates[stream], MINUTE // self.bin_seconds
        most = max(sum(rates[at : at + step]) for at in range(0, len(rates), step))
        return most * self.bin_seconds / MINUTE / QUANTA_PER_UNIT

    def mean_units_per_second(self) -> float:
        """Return the mean rate of all streams together."""
        return sum(self.total_units(stream) for stream in self.rates) / (self.minutes * MINUTE)

    def scaled(self, factor: float) -> Traffic:
        """Return this traffic with every rate multiplied by *factor*; totals are right to half a unit.

        Raises `TrafficError` if *factor* is not a finite number above 0, or if the rates become too high.
        """
        if not (math.isfinite(factor) and factor > 0):
            raise TrafficError(f"the scale must be above 0, got {factor:g}")
        seconds = self.bin_seconds
        if self.counts is not None:
            units: Mapping[Stream, Iterable[float]] = self.counts
            seconds = self.source_bin_seconds
        else:
            step = QUANTA_PER_UNIT // self.bin_seconds if self.bin_seconds == 1 else 1
            units = {stream: (rate / step for rate in series) for stream, series in self.rates.items()}
        scaled = Traffic.from_counts(self.name, units, bin_seconds=seconds, start=self.start, scale=factor)
        if seconds != self.source_bin_seconds:
            # noise has its seconds from the minutes of the source
            scaled = replace(scaled, source_bin_seconds=self.source_bin_seconds, counts=None)
        return replace(scaled, gaps=self.gaps, notes=self.notes)

    def with_mean(self, units_per_second: float) -> Traffic:
        """Return this traffic scaled so that all streams together have this mean rate.

        Raises `TrafficError` if the traffic has no requests, or if the rates become too high.
        """
        mean = self.mean_units_per_second()
        if mean == 0:
            raise TrafficError(f"{self.name}: has no requests, so it cannot be scaled to a mean rate")
        return self.scaled(units_per_second / mean)

    def with_noise(self, deviation: float, *, seed: int = 1) -> Traffic:
        """Return this traffic with seconds, where the slots of ten seconds of a minute differ at random.

        Minutes keep their units. Each slot's part of them is lognormal: *deviation* is the standard deviation of its
        logarithm. All streams have the same slots, as the writes of an index come with those of its table. *seed* makes
        the noise repeatable.

        Raises `TrafficError` if the traffic has seconds already, or is too long for them.
        """
        if self.bin_seconds < MINUTE:
            raise TrafficError(f"{self.name}: has seconds already; noise is for traffic with minutes alone")
        generator = random.Random(seed)  # noqa: S311 - no secret
        counts: dict[Stream, array[float]] = {stream: array("d") for stream in self.rates}
        for minute in range(self.minutes):
            slots = [generator.lognormvariate(0, deviation) for _ in range(MINUTE // SLOT_SECONDS)]
            total = sum(slots)
            for stream, rates in self.rates.items():
                units = rates[minute] * MINUTE / QUANTA_PER_UNIT
                counts[stream].extend(units * slot / total for slot in slots)
        noisy = Traffic.from_counts(self.name, counts, bin_seconds=SLOT_SECONDS, start=self.start)
        note = f"{self.name}: the seconds within minutes are drawn at random: noise {deviation:g}, seed {seed}"
        # the source's exact counts are of whole minutes, and its rates are exact
        return replace(
            noisy,
            source_bin_seconds=self.source_bin_seconds,
            counts=None,
            gaps=self.gaps,
            notes=(*self.notes, note),
        )

    def starting(self, start: datetime) -> Traffic:
        """Return this traffic moved to *start*, which is timezone-aware; seconds are cut off.

        Raises `TrafficError` if the traffic does not lie between 1970-01-02 and 2200-01-01.
        """
        try:
            at = start.astimezone(UTC).replace(second=0, microsecond=0)
            is_in_range = at >= _EARLIEST and at + timedelta(minutes=self.minutes) <= _LATEST
        except OverflowError:
            is_in_range = False
        if not is_in_range:
            raise TrafficError(
                f"{self.name}: the traffic begins at {start.isoformat()}; it must lie between {_EARLIEST.year} and "
                f"{_LATEST.year}"
            )
        return replace(self, start=at)


def _whole_units(name: str, stream: Stream, values: Iterable[float], parts: int) -> array[int]:
    """Spread each value over *parts* equal bins of whole units, and carry the rounding error on to the next bin."""
    whole = array("q")
    exact_total = 0.0
    whole_total = 0
    most = _MOST_UNITS_PER_SECOND * MINUTE
    for number, value in enumerate(values):
        share = value / parts
        if not 0 <= share <= most:
            raise TrafficError(
                f"{name}: bin {number} has {value:g} {stream.label} after scaling, allowed: 0 to "
                f"{_MOST_UNITS_PER_SECOND:,} units per second"
            )
        for _ in range(parts):
            exact_total += share
            units = math.floor(exact_total + 0.5) - whole_total
            whole.append(units)
            whole_total += units
    return whole
