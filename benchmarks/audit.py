"""Measures `highwater audit`: the simulations of many tables, and a whole audit of a local cloud with planted faults.

The first part judges tables with a fortnight of minutes each on two processors. The second creates as many tables in a
local cloud, of which some have a known fault, lets two days pass, runs the command, and compares its findings with what
was planted. Exits with status 1 if the simulations take three minutes or more, if a planted fault is not found, or if
anything else is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track

from highwater.core.tracking import TargetTracking
from highwater_lab.audit import Judgement, LiveTable, Question, judge
from highwater_lab.local import LocalCloud
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic, Usage
from tests.audit.account import FAULTS, SOUND, Planted, plant

DAYS: Final = 14
MOST_SECONDS: Final = 180
# MiniStack copies all datapoints that it has at each request, and drops those of more than a fortnight
CLOUD_DAYS: Final = 2
# Of the tables in the local cloud, the number that has each fault; all others are sound
OF_EACH_FAULT: Final = 3
START: Final = datetime(2026, 11, 2, tzinfo=UTC)
QUESTION: Final = Question(
    days=DAYS,
    max_throttled=0.01,
    least_gain=20.0,
    timezone="UTC",
    language="cdk",
    has_savings_plan=False,
    prices_file="",
)


def table_of(number: int, planted: Planted) -> tuple[LiveTable, Usage]:
    """Return a table like *planted*, a little larger or smaller, with noise in its minutes."""
    generator = random.Random(number)  # noqa: S311 - no secret
    size = 0.8 + 0.4 * generator.random()
    setups = [_target(each, size) for each in (planted.read, planted.write)]
    resources = [ResourceSetup(index=None, read=setups[0], write=setups[1])]
    if planted.index is not None:
        read, write = (_target(each, size) for each in planted.index)
        resources.append(ResourceSetup(index="by_owner", read=read, write=write))
    setup = TableSetup(name=f"table-{number}", resources=tuple(resources), is_on_demand=planted.read is None)
    table = LiveTable(account="111122223333", region="us-east-1", name=setup.name, setup=setup)
    counts = {stream: [0.0] * (DAYS * 1440) for stream in table.streams}
    for stream in table.streams:
        rate = planted.rates.get((stream.index, stream.dimension.title()))
        if rate is not None:
            counts[stream] = [
                float(int(60 * size * rate(minute) * (0.9 + 0.2 * generator.random()))) for minute in range(DAYS * 1440)
            ]
    throttled = {}
    if planted.throttled is not None:
        throttled[Stream(None, table.streams[1].dimension)] = int(sum(map(planted.throttled, range(DAYS * 1440))))
    return table, Usage(Traffic.from_counts(table.name, counts, bin_seconds=60, start=START), throttled)


def _target(units: int | tuple[int, int, int] | None, size: float) -> TargetSetup:
    if units is None:
        return TargetSetup.fixed(0)
    if isinstance(units, int):
        return TargetSetup.fixed(int(size * units) or 1)
    low, high, percent = units
    return TargetSetup(units=low, min=low, max=high, tracking=TargetTracking(target_percent=percent))


def simulated(tables: int, processes: int) -> float:
    """Judge so many tables, all with a fortnight of dense traffic; return the seconds that it takes."""
    kinds = [*FAULTS.values(), *SOUND.values()]
    made = [table_of(number, kinds[number % len(kinds)]) for number in track(range(tables), "tables", console=_BAR)]
    prices = load_prices()
    context = multiprocessing.get_context("spawn")
    began = time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = [pool.submit(judge, table, usage, QUESTION, prices) for table, usage in made]
        found: list[Judgement] = [
            each.result() for each in track(as_completed(futures), "judged", total=tables, console=_BAR)
        ]
    seconds = time.perf_counter() - began
    findings = sum(len(each.findings) for each in found)
    print(f"{tables:,} tables of {DAYS} days judged in {processes} processes: {seconds:.0f} s, {findings:,} findings")
    return seconds


_BAR: Final = Console(stderr=True)


def planted_tables(tables: int) -> Iterator[tuple[str, Planted]]:
    """Yield the names of the tables of the local cloud, and what is planted in each."""
    for name, planted in FAULTS.items():
        for number in range(OF_EACH_FAULT):
            yield f"{name}-{number}", planted
    sound = list(SOUND.items())
    for number in range(tables - OF_EACH_FAULT * len(FAULTS)):
        name, planted = sound[number % len(sound)]
        yield f"{name}-{number}", planted


def audited(tables: int) -> bool:
    """Audit a local cloud with so many tables; return whether just the planted faults are found."""
    planted = dict(planted_tables(tables))
    with LocalCloud(clock="driven", has_instant_updates=True) as cloud, tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        plant(cloud, planted, CLOUD_DAYS)
        print(f"{tables:,} tables planted in the local cloud: {time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        script = Path(sys.executable).parent / "highwater"
        arguments = ("audit", "--days", str(CLOUD_DAYS), "--yes", "--json", "--out", str(Path(folder) / "audit"))
        environment = {**os.environ, **cloud.environment()}
        done = subprocess.run([script, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=False)
        seconds = time.perf_counter() - began
    if done.returncode not in (0, 1):
        print(f"the audit ended with status {done.returncode}")
        return False
    audit = json.loads(done.stdout)
    found = {(table["table"], each["kind"]) for table in audit["tables"] for each in table["findings"]}
    wanted = {(name, table.kind) for name, table in planted.items() if table.kind is not None}
    calls = ", ".join(f"{count:,} {operation}" for operation, count in sorted(audit["calls"].items()))
    print(f"audit of {tables:,} tables, {CLOUD_DAYS} days: {seconds:.0f} s; {calls}; {audit['metrics']:,} metrics")
    print(f"{audit['price_usd']:.2f} USD at CloudWatch's list price; {audit['gain_usd']:,.0f} USD a month to be saved")
    missed, invented = sorted(wanted - found), sorted(found - wanted)
    print(f"{len(wanted)} faults planted, {len(wanted & found)} found, {len(invented)} invented")
    for what, pairs in (("missed", missed), ("invented", invented)):
        for name, kind in pairs:
            print(f"  {what}: {name}: {kind}")
    return not missed and not invented


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if it takes too long or what is found is not what was planted."""
    parser = argparse.ArgumentParser(prog="audit", description=__doc__)
    parser.add_argument("--tables", type=int, default=300, help="number of tables (default %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    parser.add_argument("--no-cloud", action="store_true", help="only the simulations")
    options = parser.parse_args(arguments)
    is_fast = simulated(options.tables, options.processes) < MOST_SECONDS
    is_right = options.no_cloud or audited(options.tables)
    return 0 if is_fast and is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
