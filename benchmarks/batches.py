"""Simulates batches that run every so often, and prints the scaler's cost and throttles beside native target tracking.

A batch is a number of seconds at several times the base rate, every so many minutes of a day whose mean is 1,000 write
units per second. The burst bucket serves the short ones for nothing. Run it with `make benchmark NAME=batches`; it
takes half a minute, and with --all some minutes. Exit status 1 means that a cell costs more than 1.15 of native-70
where native throttles nothing, or throttles more than native.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.scoreboard import table_to_quota
from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.traffic import Traffic
from highwater_lab.traffic.series import Stream

POLICIES = ("native:70", "highwater-floor", "highwater-floor-pulse", "highwater-direct", "highwater-direct-pulse")
MEAN_UNITS = 1_000
_DAY = 86_400
# the share of native's cost, and the units per million throttled above native's, that a result may have
_MOST_COST, _MOST_OVER = 1.15, 1.0


@dataclass(frozen=True, slots=True)
class Result:
    """One policy over one traffic: throttled units per million, and USD a month."""

    throttled: float
    cost: float

    def throttles_more(self, native: Result) -> bool:
        """Whether it throttles more than native target tracking."""
        return self.throttled > native.throttled + _MOST_OVER

    def is_dear(self, native: Result) -> bool:
        """Whether it costs more than 1.15 of native target tracking where that throttles nothing."""
        return native.throttled < 1 and self.cost > _MOST_COST * native.cost

    def is_marked(self, native: Result) -> bool:
        """Whether it is worse than native target tracking in either way."""
        return self.is_dear(native) or self.throttles_more(native)


def results_of(name: str, traffic: Traffic) -> tuple[Result, ...]:
    """Simulate all policies, native target tracking first."""
    runs = [run_policy(policy, table_to_quota(name), traffic) for policy in POLICIES]
    return tuple(Result(run.throttled_per_million, run.bill.per_month) for run in runs)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: minutes between two beginnings, its length, how many times the base it is, and its first minute."""

    every_minutes: int
    seconds: int
    times: float
    first_minute: int

    @property
    def label(self) -> str:
        """`60 min: 180 s x 5.5 from minute 51`."""
        return f"{self.every_minutes} min: {self.seconds} s x {self.times:g} from minute {self.first_minute}"

    def traffic(self) -> Traffic:
        """A day of it, by seconds if it is no whole number of minutes."""
        period = 60 * self.every_minutes
        base = MEAN_UNITS * period / (period - self.seconds + self.seconds * self.times)
        rates = [
            base * (self.times if (second - 60 * self.first_minute) % period < self.seconds else 1)
            for second in range(_DAY)
        ]
        bin_seconds = 1 if self.seconds % 60 else 60
        counts = [sum(rates[at : at + bin_seconds]) for at in range(0, _DAY, bin_seconds)]
        stream = Stream(None, Dimension.WRITE)
        start = datetime(2026, 1, 5, tzinfo=UTC)
        return Traffic.from_counts(self.label, {stream: counts}, bin_seconds=bin_seconds, start=start)


def batches(*, is_short: bool) -> Iterator[Batch]:
    """Yield the cells of the grid: all, or the six that the decision record shows."""
    if is_short:
        yield from (Batch(60, 60, 3, 7), Batch(60, 60, 5.5, 7), Batch(60, 60, 10, 7))
        yield from (Batch(15, 60, 5, 7), Batch(60, 10, 10, 7), Batch(15, 10, 5, 7), Batch(60, 180, 3, 51))
        return
    for every in (5, 10, 15, 20, 30, 60):
        for seconds in (10, 30, 60, 180, 600):
            if seconds < every * 30:
                for times in (2, 3, 5, 10):
                    for first in (0, 7, 22, 37, 45, 50, 52, 57) if every == 60 else (3,):
                        yield Batch(every, seconds, times, first)


def run(batch: Batch) -> tuple[Batch, tuple[Result, ...]]:
    """Simulate all policies on a day of the batch."""
    return batch, results_of("batch", batch.traffic())


def main(arguments: Sequence[str]) -> int:
    """Print a row for each batch; return 1 if one is marked, else 0."""
    parser = argparse.ArgumentParser(prog="batches", description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole grid")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    options = parser.parse_args(arguments)
    print("| batch | " + " | ".join(POLICIES) + " |\n|---|" + "---:|" * len(POLICIES))
    marked = 0
    with ProcessPoolExecutor(options.processes) as pool:
        for batch, (native, *results) in pool.map(run, batches(is_short=not options.all)):
            cells = [f"{native.cost:,.0f} USD, {native.throttled:,.0f}"]
            for one in results:
                is_marked = one.is_marked(native)
                marked += is_marked
                cells.append(f"{one.cost / native.cost:.2f}, {one.throttled:,.0f}{' !' if is_marked else ''}")
            print(f"| {batch.label} | " + " | ".join(cells) + " |", flush=True)
    print(
        f"\n{marked} cells marked: dearer than {_MOST_COST} of native-70 where it throttles nothing, or more throttled"
    )
    return 1 if marked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
