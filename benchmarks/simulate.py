"""Measures speed and memory of the simulator: a month of one table by minutes and by seconds, and many table-months.

Prints the seconds and the memory for a month of one table, and the seconds for many months in several processes. Exits
with status 1 if a month by minutes takes 0.5 s or more on one core, or a month by seconds 5 s or more.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import track

from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic

DAYS = 30
ROUNDS = 3
LIMITS = {60: 0.5, 1: 5.0}
START = datetime(2026, 11, 1, tzinfo=UTC)


def traffic_of(bin_seconds: int, seed: int) -> Traffic:
    """Return a month of reads and writes: a daily curve with noise and one surge each day."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    per_day = 86_400 // bin_seconds
    counts: dict[Stream, list[float]] = {}
    for dimension, mean in ((Dimension.READ, 900), (Dimension.WRITE, 300)):
        day = [mean * (0.4 + 1.2 * abs(2 * at / per_day - 1)) for at in range(per_day)]
        surge = range(per_day // 4, per_day // 4 + per_day // 48)
        counts[Stream(None, dimension)] = [
            units * bin_seconds * (0.9 + 0.2 * generator.random()) * (4 if at in surge else 1)
            for _ in range(DAYS)
            for at, units in enumerate(day)
        ]
    return Traffic.from_counts("month", counts, bin_seconds=bin_seconds, start=START)


def table_month(traffic: Traffic) -> Run:
    """Simulate a month of one table with target tracking at 70 % for reads and writes."""
    target = TargetSetup(units=1, min=50, max=20_000, tracking=TargetTracking(target_percent=70))
    table = ResourceSetup(index=None, read=target, write=target, warm_read_units=20_000, warm_write_units=20_000)
    return run_policy("declared", TableSetup(name="Orders", resources=(table,)), traffic)


def seconds_for(traffic: Traffic) -> float:
    """Return the median time of `ROUNDS` simulations, in seconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        table_month(traffic)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def bytes_for(traffic: Traffic) -> int:
    """Return the memory that a finished run occupies, in bytes."""
    tracemalloc.start()
    run = table_month(traffic)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert run.minutes == DAYS * 1440
    return allocated


def _simulate_month(seed: int) -> float:
    run = table_month(_MONTHS[seed % len(_MONTHS)])
    return run.throttled_per_million


_MONTHS: list[Traffic] = []


def _prepare() -> None:
    _MONTHS.extend(traffic_of(60, seed) for seed in range(4))


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a month takes longer than its limit, else 0."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000, help="number of table-months (default %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    options = parser.parse_args(arguments)
    status = 0
    for bin_seconds, bin_name in ((60, "minutes"), (1, "seconds")):
        traffic = traffic_of(bin_seconds, 1)
        seconds = seconds_for(traffic)
        print(f"a month of one table by {bin_name}: {seconds:.2f} s (limit {LIMITS[bin_seconds]:g} s)")
        status |= seconds >= LIMITS[bin_seconds]
        print(
            f"  memory of the run: {bytes_for(traffic) / 2**20:.1f} MiB; of its traffic: {_mebibytes(traffic):.1f} MiB"
        )
    began = time.perf_counter()
    with ProcessPoolExecutor(options.processes, initializer=_prepare) as pool:
        futures = [pool.submit(_simulate_month, seed) for seed in range(options.tables)]
        done = track(as_completed(futures), "table-months", total=options.tables, console=Console(stderr=True))
        for future in done:
            future.result()
    seconds = time.perf_counter() - began
    print(f"{options.tables:,} table-months in {options.processes} processes: {seconds:.0f} s")
    return status


def _mebibytes(traffic: Traffic) -> float:
    return sum(len(rates) * rates.itemsize for rates in traffic.rates.values()) / 2**20


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
