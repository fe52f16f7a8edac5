"""Counts the cells that the scaler serves worse than native target tracking: `make benchmark NAME=cells`.

A cell is a traffic in a world: the first days of a trace of the scoreboard, a random day or a batch that comes every so
often, in the recorded world or in one that departs from it (docs/worlds.md). A mode serves a cell worse if it throttles
more than target tracking at 70 % by over 50 of a million, or if it costs over 1.15 of it where that throttles nothing.
Each run is kept in a file as it comes, so that a measurement that was stopped goes on where it was; --again begins
anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import track

from benchmarks.batches import Batch
from benchmarks.random_days import day
from benchmarks.scoreboard import ROOT, add_traces, find_traces, load, make_setup, table_to_quota
from benchmarks.scores import BASE
from benchmarks.worlds import DEAR_PERCENT, MODES, WORLDS, WORSE_PER_MILLION, World, first_days, simulate_in
from highwater_lab.simulation import TableSetup
from highwater_lab.traffic import Traffic

KEPT: Final = ROOT / "build" / "cells.jsonl"
TRACE_DAYS: Final = 3
# one of each of the fifteen families
RANDOM_DAYS: Final = range(15, 30)
BATCHES: Final = (
    Batch(10, 60, 3, 3),
    Batch(15, 10, 5, 3),
    Batch(15, 60, 5, 3),
    Batch(20, 30, 10, 3),
    Batch(30, 180, 5, 3),
    Batch(60, 10, 10, 7),
    Batch(60, 30, 10, 50),
    Batch(60, 60, 3, 7),
    Batch(60, 60, 5.5, 57),
    Batch(60, 60, 10, 7),
    Batch(60, 180, 3, 52),
    Batch(60, 600, 3, 57),
)
KINDS: Final = ("trace", "day", "batch")
NOTHING: Final = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What is simulated: a change of the scaler (none by default), a world, a traffic and a policy, by their names."""

    world: str
    traffic: str
    policy: str
    change: str = NOTHING


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to: units throttled of a million, and USD a month."""

    throttled: float
    cost: float

    def throttles_more(self, native: Result) -> bool:
        """Whether it throttles more than native target tracking, by over 50 of a million."""
        return self.throttled > native.throttled + WORSE_PER_MILLION

    def is_dear(self, native: Result) -> bool:
        """Whether it costs over 1.15 of native target tracking where that throttles nothing."""
        return native.throttled < 1 and 100 * self.cost > DEAR_PERCENT * native.cost


Results: TypeAlias = dict[Run, Result]
# Puts a change of the scaler in force for as long as it is entered
Changes: TypeAlias = Callable[[str], AbstractContextManager[None]]


def unchanged(change: str) -> AbstractContextManager[None]:
    """For runs of the scaler as it is."""
    assert change == NOTHING, change
    return nullcontext()


def traffics(folder: Path, kinds: Iterable[str]) -> list[str]:
    """Return the names of all traffics of the given kinds."""
    names = {
        "trace": [f"trace {trace.name}" for trace in find_traces(folder) if trace.bin_seconds in (60, 300)],
        "day": [f"day {number}" for number in RANDOM_DAYS],
        "batch": [f"batch {batch.label}" for batch in BATCHES],
    }
    return [name for kind in kinds for name in names[kind]]


@cache
def traffic_of(name: str, folder: Path) -> tuple[TableSetup, Traffic]:
    """Return a table and its traffic."""
    kind, _, rest = name.partition(" ")
    if kind == "day":
        return table_to_quota(name), day(int(rest))[1]
    if kind == "batch":
        return table_to_quota(name), next(batch for batch in BATCHES if batch.label == rest).traffic()
    trace = next(trace for trace in find_traces(folder) if trace.name == rest)
    return make_setup(trace), first_days(load(trace), TRACE_DAYS)


def simulate_run(run: Run, folder: Path, changes: Changes) -> tuple[Run, Result]:
    """Simulate one run."""
    world = next(world for world in WORLDS if world.key == run.world)
    setup, traffic = traffic_of(run.traffic, folder)
    with changes(run.change):
        done = simulate_in(world, setup, traffic, run.policy)
    return run, Result(done.throttled_per_million, done.bill.per_month)


def kept(path: Path) -> Results:
    """The runs of earlier measurements."""
    if not path.exists():
        return {}
    documents = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {Run(*document["run"]): Result(*document["result"]) for document in documents}


def measure(
    runs: Iterable[Run], results: Results, path: Path, folder: Path, processes: int, changes: Changes = unchanged
) -> None:
    """Simulate what *results* lack, in so many processes, and keep each result in the file as it comes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool, path.open("a", encoding="utf-8") as file:
        work: list[Future[tuple[Run, Result]]] = [
            pool.submit(simulate_run, run, folder, changes) for run in dict.fromkeys(runs) if run not in results
        ]
        for future in track(as_completed(work), "cells", total=len(work), console=Console(stderr=True)):
            run, result = future.result()
            results[run] = result
            fields = {
                "run": [run.world, run.traffic, run.policy, run.change],
                "result": [result.throttled, result.cost],
            }
            print(json.dumps(fields), file=file, flush=True)


def native_of(run: Run) -> Run:
    """The native run to compare with: of the recorded world for what only a fleet's pulses differ in."""
    world = next(world for world in WORLDS if world.key == run.world)
    return Run(run.world if world.pulses is None else WORLDS[0].key, run.traffic, BASE)


@dataclass(frozen=True, slots=True)
class Count:
    """How many of the cells of a mode are served worse than by native target tracking, and the worst of them."""

    cells: int
    more: int
    dear: int
    most_throttled: tuple[float, str]
    dearest: tuple[float, str]

    @classmethod
    def of(cls, runs: Sequence[Run], results: Mapping[Run, Result]) -> Count:
        """Count over *runs* of one mode."""
        pairs = [(results[run], results[native_of(run)], f"{run.traffic} ({run.world})") for run in runs]
        more = [(one.throttled - native.throttled, name) for one, native, name in pairs if one.throttles_more(native)]
        dear = [(one.cost / native.cost, name) for one, native, name in pairs if one.is_dear(native)]
        return cls(len(pairs), len(more), len(dear), max(more, default=(0, "none")), max(dear, default=(1, "none")))


def lines_of(worlds: Sequence[World], names: Sequence[str], results: Results) -> Iterator[str]:
    """Yield a table of counts, and then the worst cells of each mode."""
    yield "cells that throttle more, and that are dear, of all\n"
    yield "| world | " + " | ".join(mode.removeprefix("highwater-") for mode in MODES) + " |"
    yield "|---|" + "---:|" * len(MODES)
    for world in worlds:
        cells = [
            _cell(Count.of([Run(world.key, name, mode) for name in names], results)) if mode in world.policies else ""
            for mode in MODES
        ]
        yield f"| {world.text} | " + " | ".join(cells) + " |"
    every = {
        mode: Count.of(
            [Run(world.key, name, mode) for world in worlds if mode in world.policies for name in names], results
        )
        for mode in MODES
    }
    yield "| all | " + " | ".join(_cell(count) for count in every.values()) + " |"
    yield ""
    for mode, count in every.items():
        (throttled, where), (cost, dearest) = count.most_throttled, count.dearest
        yield f"{mode}: +{throttled:,.0f} of a million on {where}; {cost:.2f} of native's cost on {dearest}"


def _cell(count: Count) -> str:
    return f"{count.more}, {count.dear} of {count.cells}"


def main(arguments: Sequence[str]) -> int:
    """Count the cells of all worlds, or of those that were chosen; return 0."""
    parser = argparse.ArgumentParser(prog="cells", description=__doc__)
    add_traces(parser)
    parser.add_argument("--world", action="append", help="only this world; may be given several times")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these traffics")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of runs (default %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="forget the runs that are kept")
    given = parser.parse_args(arguments)
    # one set of seconds and one seed stand for all
    worlds = list({world.name.split()[0]: world for world in reversed(WORLDS)}.values())[::-1]
    if unknown := sorted(set(given.world or ()) - {world.name.split()[0] for world in worlds}):
        parser.error(f"there is no world {unknown[0]!r}")
    chosen = [world for world in worlds if given.world is None or world.name.split()[0] in given.world]
    if given.again:
        given.kept.unlink(missing_ok=True)
    results = kept(given.kept)
    names = traffics(given.traces, given.kind or KINDS)
    runs = [Run(world.key, name, policy) for world in chosen for policy in world.policies for name in names]
    measure([*runs, *map(native_of, runs)], results, given.kept, given.traces, given.processes)
    for line in lines_of(chosen, names, results):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
