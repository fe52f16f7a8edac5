"""Measures speed and memory of the simulator: a month of one table by minutes and by seconds, and many table-months.

Prints the seconds and the memory for a month of one table, and the seconds for many months in several processes. Exits
with status 1 if a month by minutes takes 0.5 s or more on one core, or a month by seconds 5 s or more.

With --modes it prints the processor time of a month by minutes with the scaler, in FLOOR and in DIRECT mode, without
pulses and with them.

With --recommend it measures `highwater recommend` instead, for a fortnight of a table with two indexes, reads and
writes: its seconds, those of all processors, and how many months of one table could have been simulated in these, which
depends less on the machine.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from itertools import product

from rich.console import Console
from rich.progress import track

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterDirectPulse, HighwaterFloor, HighwaterFloorPulse
from highwater_lab.recommend import recommend
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic

DAYS = 30
ROUNDS = 3
LIMITS = {60: 0.5, 1: 5.0}
MODES = tuple(each.name for each in (HighwaterFloor, HighwaterDirect, HighwaterFloorPulse, HighwaterDirectPulse))
START = datetime(2026, 11, 1, tzinfo=UTC)


def traffic_of(bin_seconds: int, seed: int, days: int = DAYS, indexes: Sequence[str] = ()) -> Traffic:
    """Return a month of reads and writes, of indexes too: a daily curve with noise and one surge each day."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    per_day = 86_400 // bin_seconds
    counts: dict[Stream, list[float]] = {}
    means = ((Dimension.READ, 900), (Dimension.WRITE, 300))
    for index, (dimension, mean) in product((None, *indexes), means):
        day = [mean * (0.4 + 1.2 * abs(2 * at / per_day - 1)) for at in range(per_day)]
        surge = range(per_day // 4, per_day // 4 + per_day // 48)
        counts[Stream(index, dimension)] = [
            units * bin_seconds * (0.9 + 0.2 * generator.random()) * (4 if at in surge else 1)
            for _ in range(days)
            for at, units in enumerate(day)
        ]
    return Traffic.from_counts("month", counts, bin_seconds=bin_seconds, start=START)


def table_month(traffic: Traffic, policy: str = "declared") -> Run:
    """Simulate a month of one table with target tracking at 70 % for reads and writes, or with another *policy*."""
    target = TargetSetup(units=1, min=50, max=20_000, tracking=TargetTracking(target_percent=70))
    table = ResourceSetup(index=None, read=target, write=target, warm_read_units=20_000, warm_write_units=20_000)
    return run_policy(policy, TableSetup(name="Orders", resources=(table,)), traffic)


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


def measure_modes() -> None:
    """Print the processor time of a month with the scaler, the least of `ROUNDS`, for each of its modes."""
    traffic = traffic_of(60, 1)
    for policy in MODES:
        times = []
        for _ in range(ROUNDS):
            began = time.process_time()
            table_month(traffic, policy)
            times.append(time.process_time() - began)
        print(f"a month of one table by minutes, {policy}: {min(times):.1f} s of processor")


def measure_recommend(processes: int) -> None:
    """Print the seconds of `recommend` for a fortnight of six targets."""
    month = seconds_for(traffic_of(60, 1))
    traffic = traffic_of(60, 1, days=14, indexes=("by_day", "by_user"))
    began, before = time.perf_counter(), _processor_seconds()
    found = recommend(traffic, processes=processes)
    seconds, used = time.perf_counter() - began, _processor_seconds() - before
    print(
        f"recommend, 14 days of {len(traffic.rates)} targets: {seconds:.0f} s in {processes} processes, {used:.0f} s "
        f"of processors, or {used / processes:.0f} s where {processes} are idle; as much as {used / month:,.0f} "
        f"table-months of {month:.2f} s"
    )
    print(f"  its best: {found.best.summary}, {found.best.cost_per_month:,.2f} USD a month")


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


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
    parser.add_argument("--modes", action="store_true", help="measure the scaler's modes instead")
    parser.add_argument("--recommend", action="store_true", help="measure recommend instead")
    options = parser.parse_args(arguments)
    if options.modes:
        measure_modes()
        return 0
    if options.recommend:
        measure_recommend(options.processes)
        return 0
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
