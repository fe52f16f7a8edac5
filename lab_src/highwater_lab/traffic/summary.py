"""What a series of traffic is like in a few numbers: its mean, its peak, and how its minutes lie between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic.series import MINUTE, Stream, Traffic


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """The minutes of one stream, in units per second; minutes in gaps are left out.

    Attributes:
        units: All units requested.
        mean: The mean rate.
        p99: The rate that 99 of 100 minutes do not exceed.
        peak: The mean rate of the busiest minute.
        shape: The busiest minute of each of up to *width* equally long parts of the time, from 0 to 1, where 1 is the
            peak; `None` for parts that are all gap.
    """

    units: float
    mean: float
    p99: float
    peak: float
    shape: tuple[float | None, ...]

    @property
    def peak_to_mean(self) -> float | None:
        """How many times the mean the peak is; `None` if nothing was requested."""
        return self.peak / self.mean if self.mean else None


def summarize(traffic: Traffic, stream: Stream, *, width: int = 40) -> StreamSummary:
    """Return the summary of a stream of *traffic*, with a shape of up to *width* parts, 1 or more."""
    minutes = list(_minutes(traffic, stream))
    known = sorted(rate for rate in minutes if rate is not None)
    peak = known[-1]
    parts = min(width, len(minutes))
    cuts = [number * len(minutes) // parts for number in range(parts + 1)]
    highest = [
        max((rate for rate in minutes[first:end] if rate is not None), default=None) for first, end in pairwise(cuts)
    ]
    return StreamSummary(
        units=_known_units(traffic, stream),
        mean=math.fsum(known) / len(known),
        p99=known[math.ceil(len(known) * 0.99) - 1],
        peak=peak,
        shape=tuple(None if rate is None else rate / peak if peak else 0.0 for rate in highest),
    )


def _minutes(traffic: Traffic, stream: Stream) -> Iterator[float | None]:
    """Yield the mean units per second of each minute, over those of its bins that are known; `None` without any."""
    rates, step = traffic.rates[stream], MINUTE // traffic.bin_seconds
    unknown = _unknown_bins(traffic)
    for first in range(0, len(rates), step):
        known = [rates[number] for number in range(first, first + step) if not unknown[number]]
        yield sum(known) / len(known) / QUANTA_PER_UNIT if known else None


def _known_units(traffic: Traffic, stream: Stream) -> float:
    unknown = _unknown_bins(traffic)
    known = sum(rate for number, rate in enumerate(traffic.rates[stream]) if not unknown[number])
    return known * traffic.bin_seconds / QUANTA_PER_UNIT


def _unknown_bins(traffic: Traffic) -> bytearray:
    """Return 1 for each bin of the rates that is in a gap; a bin of the source may be several or a part of one."""
    length = len(next(iter(traffic.rates.values())))
    unknown = bytearray(length)
    for first, count in traffic.gaps:
        begin, end = (number * traffic.source_bin_seconds // traffic.bin_seconds for number in (first, first + count))
        unknown[begin:end] = b"\1" * (min(end, length) - min(begin, length))
    return unknown
