"""What a table saves that is provisioned, and on demand in the hours of its spikes: `make benchmark NAME=hours`.

For each trace the scaler is simulated in FLOOR mode, and its bill of each hour compared with that of requests on
demand. Three schedules are chosen in hindsight, so that no real one saves more: one window of hours, the same on all
days; one on the weekdays on which it saves something, as `Window.weekly` has it; and for each day by itself up to four
of them, as DynamoDB allows four switches to on-demand in 24 hours. A switch takes minutes, in which the table serves
and is billed as before. So it begins three minutes before a window, which are billed on demand too, as are the 77
seconds of the switch back. Hours of the day are counted from the trace's beginning, at which its weekdays begin too.
Dollars are USD a month. *Gain* is against the cheaper of FLOOR and on-demand for the whole time. *Throttled* is
throttled units per million requested units; with a window, those of FLOOR outside of it and of on-demand within,
without those of each switch back. *Openings that save* are those of the window on weekdays that cost less than FLOOR:
where it is one, an event was found and no habit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate, pairwise
from operator import attrgetter, itemgetter
from typing import Final

from benchmarks.scoreboard import add_traces, find_traces, load, make_setup
from benchmarks.scores import Trace
from highwater.core import Dimension
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.services.prices import load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run
from highwater_lab.traffic import Stream

_POLICY: Final = "highwater-floor"
_DAY: Final = 24
MOST_SWITCHES: Final = 4
# more than the first switch to on-demand takes (129 to 172 s), so that a window's first minute is served by it
LEAD_SECONDS: Final = 180
# the parts of the hour before a window and of the hour after it that are billed on demand
_BEFORE, _AFTER = LEAD_SECONDS / 3600, Timing().to_provisioned_again / 3600
# A gain below this share of the cost is none: the schedules were chosen in hindsight
WORTH_PERCENT: Final = 5


@dataclass(frozen=True, slots=True)
class Row:
    """What a trace costs a month and throttles of a million: by the scaler, on demand, and with hours on demand."""

    trace: str
    kind: str
    days: float
    floor_usd: float
    floor_throttled: float
    on_demand_usd: float
    on_demand_throttled: float
    window_usd: float
    window: str
    weekly_usd: float
    weekly: str
    weekly_throttled: float
    paying: int
    openings: int
    free_usd: float

    @property
    def best_usd(self) -> float:
        """The cheaper of the two without hours."""
        return min(self.floor_usd, self.on_demand_usd)

    def gain_percent(self, usd: float) -> float:
        """What hours save of the cheaper of the two without."""
        return 100 * (1 - usd / self.best_usd)


@dataclass(frozen=True, slots=True)
class Hours:
    """The clock hours of a trace: USD and throttled units of each, by the scaler and on demand, and all units asked."""

    start: datetime
    provisioned: list[float]
    on_demand: list[float]
    throttled: list[float]
    throttled_on_demand: list[float]
    units: float


@dataclass(frozen=True, slots=True)
class Weekly:
    """A window of *length* hours from hour *start* of the day, on these days of the week from the trace's beginning."""

    start: int
    length: int
    days: tuple[int, ...]

    def openings(self, hours: int) -> Iterator[range]:
        """Yield the hours of each opening among the first *hours*."""
        for day in range(-(-hours // _DAY)):
            if day % 7 in self.days:
                first = day * _DAY + self.start
                yield range(min(first, hours), min(first + self.length, hours))

    def text(self, start: datetime) -> str:
        """Return the days and hours as people write them, of a trace that begins at *start*."""
        if not self.days:
            return "none"
        names = [f"{start + timedelta(days=day):%a}" for day in self.days]
        return f"{'daily' if len(names) == 7 else ' '.join(names)}, {self.length} h from hour {self.start}"


def hours_of(trace: Trace, policy: str = _POLICY) -> Hours:
    """Return the hours of a trace by a policy."""
    traffic = load(trace)
    run = run_policy(policy, make_setup(trace), traffic)
    other = run_policy(OnDemandMode.name, make_setup(trace), traffic)
    prices = load_prices().throughput()
    peaks = next(each for each in run.targets if each.dimension is Dimension.WRITE).hour_peaks
    rates, step = traffic.rates[Stream(None, Dimension.WRITE)], 3600 // traffic.bin_seconds
    first = step - int(traffic.start.timestamp()) % 3600 // traffic.bin_seconds
    cuts = [0, *range(first, len(rates), step), len(rates)]
    units = [sum(rates[a:b]) * traffic.bin_seconds / 60 for a, b in pairwise(cuts)]
    each = prices.on_demand_million(Dimension.WRITE) / 1e6
    provisioned = [peak * prices.unit_hour(Dimension.WRITE) for peak in peaks]
    return Hours(
        traffic.start,
        provisioned,
        [count * each for count in units[: len(provisioned)]],
        _throttled(run, len(provisioned)),
        _throttled(other, len(provisioned)),
        run.demanded_units,
    )


def _throttled(run: Run, hours: int) -> list[float]:
    """Return the units throttled in each clock hour of a run."""
    units = [0.0] * hours
    for minute, causes in run.target(Dimension.WRITE).throttled.items():
        units[(run.start.minute + minute) // 60] += sum(causes.values()) / QUANTA_PER_UNIT
    return units


def best_window(provisioned: Sequence[float], on_demand: Sequence[float]) -> tuple[float, str]:
    """Return the USD of the best window of hours of the day, the same on all days, and what it is."""
    gains = [0.0] * _DAY
    extras = [0.0] * _DAY
    for hour, (own, other) in enumerate(zip(provisioned, on_demand, strict=True)):
        gains[hour % _DAY] += own - other
        extras[hour % _DAY] += other
    total, best = sum(provisioned), (sum(provisioned), "none")
    for start in range(_DAY):
        for length in range(1, _DAY - 1):
            saved = sum(gains[(start + number) % _DAY] for number in range(length))
            switched = _BEFORE * extras[(start - 1) % _DAY] + _AFTER * extras[(start + length) % _DAY]
            best = min(best, (total - saved + switched, f"{length} h from hour {start}"))
    return best


def best_weekly(provisioned: Sequence[float], on_demand: Sequence[float]) -> tuple[float, Weekly]:
    """Return the USD of the best window of hours on chosen days of the week, and what it is."""
    total = sum(provisioned)
    best = (total, Weekly(0, 0, ()))
    for start in range(_DAY):
        for length in range(1, _DAY - 1):
            gains = [sum(gains_of(Weekly(start, length, (day,)), provisioned, on_demand)) for day in range(7)]
            days = tuple(day for day, gain in enumerate(gains) if gain > 0)
            best = min(best, (total - sum(gains[day] for day in days), Weekly(start, length, days)), key=itemgetter(0))
    return best


def gains_of(weekly: Weekly, provisioned: Sequence[float], on_demand: Sequence[float]) -> list[float]:
    """Return the USD that each opening of a window saves, with the hours of its switches."""
    hours, gains = len(provisioned), []
    for opening in weekly.openings(hours):
        if opening:
            before = _BEFORE * on_demand[opening.start - 1] if opening.start else 0.0
            after = _AFTER * on_demand[opening.stop] if opening.stop < hours else 0.0
            within = slice(opening.start, opening.stop)
            gains.append(sum(provisioned[within]) - sum(on_demand[within]) - before - after)
    return gains


def best_of_each_day(provisioned: Sequence[float], on_demand: Sequence[float]) -> float:
    """Return the USD with up to four windows a day, chosen for each day by itself."""
    return sum(
        best_day(provisioned[first : first + _DAY], on_demand[first : first + _DAY])[0]
        for first in range(0, len(provisioned), _DAY)
    )


def best_day(provisioned: Sequence[float], on_demand: Sequence[float]) -> tuple[float, tuple[range, ...]]:
    """Return the USD of some hours with the best up to four windows, and the hours of these."""
    hours = len(provisioned)
    sums = [0.0, *accumulate(other - own for own, other in zip(provisioned, on_demand, strict=True))]

    @cache
    def least(hour: int, switches: int) -> tuple[float, tuple[range, ...]]:
        """The least that windows from *hour* on change of the day's cost, and these."""
        if hour >= hours or not switches:
            return 0.0, ()
        best = least(hour + 1, switches)
        before = _BEFORE * on_demand[hour - 1] if hour else 0.0
        for end in range(hour + 1, hours + 1):
            after = _AFTER * on_demand[end] if end < hours else 0.0
            later, windows = least(end + 1, switches - 1)
            changed = sums[end] - sums[hour] + before + after + later
            if changed < best[0]:
                best = changed, (range(hour, end), *windows)
        return best

    changed, windows = least(0, MOST_SWITCHES)
    return sum(provisioned) + changed, windows


def row_of(trace: Trace) -> Row:
    """Compare the ways over one trace."""
    found = hours_of(trace)
    provisioned, on_demand, million = found.provisioned, found.on_demand, 1e6 / found.units
    month = HOURS_PER_MONTH / len(provisioned)
    window_usd, window = best_window(provisioned, on_demand)
    weekly_usd, weekly = best_weekly(provisioned, on_demand)
    gains = gains_of(weekly, provisioned, on_demand)
    within = {hour for opening in weekly.openings(len(provisioned)) for hour in opening}
    both = enumerate(zip(found.throttled, found.throttled_on_demand, strict=True))
    return Row(
        trace=trace.name,
        kind=trace.kind,
        days=trace.days,
        floor_usd=sum(provisioned) * month,
        floor_throttled=sum(found.throttled) * million,
        on_demand_usd=sum(on_demand) * month,
        on_demand_throttled=sum(found.throttled_on_demand) * million,
        window_usd=window_usd * month,
        window=window,
        weekly_usd=weekly_usd * month,
        weekly=weekly.text(found.start),
        weekly_throttled=sum(other if hour in within else own for hour, (own, other) in both) * million,
        paying=sum(gain > 0 for gain in gains),
        openings=len(gains),
        free_usd=best_of_each_day(provisioned, on_demand) * month,
    )


def main(arguments: Sequence[str]) -> int:
    """Print a line for each trace, the largest gain of one window first, and another where windows save something."""
    parser = argparse.ArgumentParser(prog="hours", description=__doc__)
    add_traces(parser)
    given = parser.parse_args(arguments)
    traces = [trace for trace in find_traces(given.traces) if trace.days >= 2]
    with ProcessPoolExecutor(2) as pool:
        rows = sorted(pool.map(row_of, traces), key=lambda row: -row.gain_percent(row.window_usd))
    print("| trace | class | days | FLOOR | throttled | on demand | throttled | any four a day | gain |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row.trace} | {row.kind} | {row.days:.0f} | {row.floor_usd:,.0f} | {row.floor_throttled:,.0f} | "
            f"{row.on_demand_usd:,.0f} | {row.on_demand_throttled:,.0f} | {row.free_usd:,.0f} | "
            f"{row.gain_percent(row.free_usd):.1f} % |"
        )
    print(
        "\n| trace | one window a day | gain | hours | on chosen weekdays | gain | throttled | days and hours "
        "| openings that save |"
    )
    print("|---|---:|---:|---|---:|---:|---:|---|---:|")
    for row in rows:
        if row.openings:
            print(
                f"| {row.trace} | {row.window_usd:,.0f} | {row.gain_percent(row.window_usd):.1f} % | {row.window} | "
                f"{row.weekly_usd:,.0f} | {row.gain_percent(row.weekly_usd):.1f} % | {row.weekly_throttled:,.0f} | "
                f"{row.weekly} | {row.paying} of {row.openings} |"
            )
    for name, usd_of in (
        ("one window a day", attrgetter("window_usd")),
        ("one on chosen weekdays", attrgetter("weekly_usd")),
    ):
        worth = [row.trace for row in rows if row.gain_percent(usd_of(row)) >= WORTH_PERCENT]
        said = ", ".join(worth) or "none"
        print(f"\n{name} saves {WORTH_PERCENT} % or more for {len(worth)} of {len(rows)}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
