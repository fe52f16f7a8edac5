"""Bounds of the cost: the plans that a search for the cheapest one alone need not simulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from highwater.core import Dimension
from highwater.core.bucket import BURST_SECONDS
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.recommend.candidates import Choice
from highwater_lab.recommend.days import Days
from highwater_lab.services.prices import Prices
from highwater_lab.traffic import Stream, Traffic

# A capacity unit serves at most this many units in an hour: a full burst bucket, and each second's own
_UNITS_OF_AN_HOUR = 3600 + BURST_SECONDS


class OnlyBest:
    """What a search for the cheapest plan alone leaves out: what bounds of the cost exclude."""

    def __init__(self, days: Days, prices: Prices, limit_percent: float, below_usd: float) -> None:
        self._allowed = {each: units * limit_percent / 100 for each, units in arriving_units(days.chosen).items()}
        self._below_usd = below_usd
        self._prices = prices
        # a plan has to keep the limit in the days that it is chosen on, and the price to beat is that of all days
        self._bounds = [_Needs.of(traffic, limit_percent) for traffic in (days.chosen, days.whole)]

    def least_usd(self, floors: Mapping[Dimension, int], *, of_all_days: bool = True) -> dict[Dimension, float]:
        """Return by dimension the USD a month below which no capacity with these floors keeps the limit."""
        bound = self._bounds[of_all_days]
        found = dict.fromkeys(Dimension, 0.0)
        for stream, needs in bound.hours.items():
            floor, dimension = floors.get(stream.dimension, 1), stream.dimension
            missed = bound.most_throttled[dimension] / _UNITS_OF_AN_HOUR
            # reserved capacity costs nothing more; here each index has all of it, which only lowers the bound
            reserved = self._prices.commitments.reserved_units(dimension)
            units = max(0.0, sum(max(0.0, max(floor, need) - reserved) for need in needs) - missed)
            price = self._prices.throughput().unit_hour(dimension) * self._prices.commitments.provisioned_factor
            found[dimension] += price * units / len(needs) * HOURS_PER_MONTH
        return found

    def is_hopeless(self, dimension: Dimension, floor: int, choices: Sequence[Choice]) -> bool:
        """Whether a floor costs more than what is looked for, or than a choice that keeps the limit."""
        best = min((each.cost for each in choices if self.is_enough(dimension, each.throttled_units)), default=None)
        if best is not None and self.least_usd({dimension: floor}, of_all_days=False)[dimension] >= best:
            return True
        return sum(self.least_usd({dimension: floor}).values()) >= self._below_usd

    def is_enough(self, dimension: Dimension, throttled_units: float) -> bool:
        """Whether a dimension by itself keeps the limit."""
        return throttled_units <= self._allowed[dimension]


@dataclass(frozen=True, slots=True)
class _Needs:
    """The least that a traffic needs: units of each clock hour by stream, without those that may be throttled."""

    hours: Mapping[Stream, Sequence[float]]
    most_throttled: Mapping[Dimension, float]

    @classmethod
    def of(cls, traffic: Traffic, limit_percent: float) -> _Needs:
        throttled = dict.fromkeys(Dimension, 0.0)
        for stream in traffic.rates:
            throttled[stream.dimension] += traffic.total_units(stream) * limit_percent / 100
        return cls({stream: _hourly_needs(traffic, stream) for stream in traffic.rates}, throttled)


def arriving_units(traffic: Traffic) -> dict[Dimension, float]:
    """Return the units that applications ask for; as in a run, an index's share of a write is not counted again."""
    units = dict.fromkeys(Dimension, 0.0)
    for stream in traffic.rates:
        if stream.index is None or stream.dimension is Dimension.READ:
            units[stream.dimension] += traffic.total_units(stream)
    return units


def _hourly_needs(traffic: Traffic, stream: Stream) -> list[float]:
    """Return, for each clock hour, the least capacity that can serve its units if the burst bucket is full before."""
    rates, step = traffic.rates[stream], 3600 // traffic.bin_seconds
    first = step - int(traffic.start.timestamp()) % 3600 // traffic.bin_seconds
    cuts = [0, *range(first, len(rates), step), len(rates)]
    per_unit = QUANTA_PER_UNIT * _UNITS_OF_AN_HOUR
    return [sum(rates[start:end]) * traffic.bin_seconds / per_unit for start, end in pairwise(cuts)]


def least_usd(traffic: Traffic, prices: Prices, max_throttled_percent: float) -> float:
    """Return USD a month below which no provisioned capacity keeps the limit of throttled units under *traffic*.

    An hour is billed at its highest capacity, and at most serves 3,600 seconds of it and a full burst bucket.
    """
    whole = Days(traffic, traffic, None)
    return sum(OnlyBest(whole, prices, max_throttled_percent, 0.0).least_usd({}).values())
