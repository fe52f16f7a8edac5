"""What a table saves that is provisioned, and on demand in the hours of its spikes. Run it with `make benchmark-hours`.

For each trace the scaler is simulated in FLOOR mode, and its bill of each hour compared with that of requests on
demand. Two schedules are chosen in hindsight, so that no real one saves more: one window of hours, the same on all
days; and for each day by itself up to four of them, as DynamoDB allows four switches to on-demand in 24 hours. A switch
takes minutes, in which the table serves as before, so the hour before a window is billed on demand too, and the first
hour after it. Hours of the day are counted from the trace's beginning. All figures are in USD a month. *Gain* is
against the cheaper of FLOOR and on-demand for the whole time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Final

from benchmarks.scoreboard import add_traces, find_traces, load, make_setup
from benchmarks.scores import Trace
from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.billing import HOURS_PER_MONTH
from highwater_lab.services.prices import load_prices
from highwater_lab.traffic import Stream

_POLICY: Final = "highwater-floor"
_DAY: Final = 24
_MOST_SWITCHES: Final = 4
# A gain below this share of the cost is none: the schedules were chosen in hindsight
_WORTH_PERCENT: Final = 5


@dataclass(frozen=True, slots=True)
class Row:
    """What a trace costs a month: by the scaler, on demand, with one window a day, and with up to four of any hours."""

    trace: str
    kind: str
    floor_usd: float
    on_demand_usd: float
    window_usd: float
    window: str
    free_usd: float

    @property
    def best_usd(self) -> float:
        """The cheaper of the two without hours."""
        return min(self.floor_usd, self.on_demand_usd)

    def gain_percent(self, usd: float) -> float:
        """What hours save of the cheaper of the two without."""
        return 100 * (1 - usd / self.best_usd)


def hours_of(trace: Trace) -> tuple[list[float], list[float]]:
    """Return the USD of each clock hour of a trace, by the scaler and on demand."""
    traffic = load(trace)
    run = run_policy(_POLICY, make_setup(trace), traffic)
    prices = load_prices().throughput()
    peaks = next(each for each in run.targets if each.dimension is Dimension.WRITE).hour_peaks
    rates, step = traffic.rates[Stream(None, Dimension.WRITE)], 3600 // traffic.bin_seconds
    first = step - int(traffic.start.timestamp()) % 3600 // traffic.bin_seconds
    cuts = [0, *range(first, len(rates), step), len(rates)]
    units = [sum(rates[a:b]) * traffic.bin_seconds / 60 for a, b in pairwise(cuts)]
    each = prices.on_demand_million(Dimension.WRITE) / 1e6
    provisioned = [peak * prices.unit_hour(Dimension.WRITE) for peak in peaks]
    return provisioned, [count * each for count in units[: len(provisioned)]]


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
            switched = extras[(start - 1) % _DAY] + extras[(start + length) % _DAY]
            best = min(best, (total - saved + switched, f"{length} h from hour {start}"))
    return best


def best_of_each_day(provisioned: Sequence[float], on_demand: Sequence[float]) -> float:
    """Return the USD with up to four windows a day, chosen for each day by itself."""
    return sum(
        _best_day(tuple(provisioned[first : first + _DAY]), tuple(on_demand[first : first + _DAY]))
        for first in range(0, len(provisioned), _DAY)
    )


def _best_day(provisioned: tuple[float, ...], on_demand: tuple[float, ...]) -> float:
    hours = len(provisioned)
    sums = [0.0, *accumulate(other - own for own, other in zip(provisioned, on_demand, strict=True))]

    @cache
    def least(hour: int, switches: int) -> float:
        """The least that windows from *hour* on change of the day's cost."""
        if hour >= hours or not switches:
            return 0.0
        best = least(hour + 1, switches)
        before = on_demand[hour - 1] if hour else 0.0
        for end in range(hour + 1, hours + 1):
            after = on_demand[end] if end < hours else 0.0
            best = min(best, sums[end] - sums[hour] + before + after + least(end + 1, switches - 1))
        return best

    return sum(provisioned) + least(0, _MOST_SWITCHES)


def row_of(trace: Trace) -> Row:
    """Compare the ways over one trace."""
    provisioned, on_demand = hours_of(trace)
    month = HOURS_PER_MONTH / len(provisioned)
    window_usd, window = best_window(provisioned, on_demand)
    return Row(
        trace.name,
        trace.kind,
        sum(provisioned) * month,
        sum(on_demand) * month,
        window_usd * month,
        window,
        best_of_each_day(provisioned, on_demand) * month,
    )


def main(arguments: Sequence[str]) -> int:
    """Print a line for each trace, the largest gain of one window first."""
    parser = argparse.ArgumentParser(prog="hours", description=__doc__)
    add_traces(parser)
    given = parser.parse_args(arguments)
    traces = [trace for trace in find_traces(given.traces) if trace.days >= 2]
    with ProcessPoolExecutor(2) as pool:
        rows = sorted(pool.map(row_of, traces), key=lambda row: -row.gain_percent(row.window_usd))
    print("| trace | class | FLOOR | on demand | one window a day | gain | hours | any four a day | gain |")
    print("|---|---|---:|---:|---:|---:|---|---:|---:|")
    for row in rows:
        print(
            f"| {row.trace} | {row.kind} | {row.floor_usd:,.0f} | {row.on_demand_usd:,.0f} | {row.window_usd:,.0f} | "
            f"{row.gain_percent(row.window_usd):.1f} % | {row.window} | {row.free_usd:,.0f} | "
            f"{row.gain_percent(row.free_usd):.1f} % |"
        )
    worth = [row.trace for row in rows if row.gain_percent(row.window_usd) >= _WORTH_PERCENT]
    said = ", ".join(worth) or "none"
    print(f"\none window a day saves {_WORTH_PERCENT} % or more for {len(worth)} of {len(rows)}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
