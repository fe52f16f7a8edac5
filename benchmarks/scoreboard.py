"""Simulates every policy under every trace and scenario, and compares throttling and cost with the clairvoyant bound.

Each trace is scaled to a mean of 1,000 write units per second. The table has a floor of 1, and its ceiling and
high-water mark are at the quota. Writes docs/benchmarks.md, its tables as docs/benchmarks.csv, and a picture for each
class of traces. Run it with `make benchmark NAME=scoreboard`. For traces of your own give --traces FOLDER: a folder of
CSV files in the format of `highwater simulate`, and optionally a manifest.json that gives the class of each trace.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import boosted
from benchmarks.policies import find_policy, run_policy
from benchmarks.scoreboard_page import Board, write_board
from benchmarks.scores import BASE, Score, Scores, Trace, collect, serviceable, summary
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import SCENARIOS, Traffic, TrafficError, read_traffic, scenario

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_TRACES = ROOT.parent / "shared" / "traces"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "pictures"
MEAN_UNITS = 1_000
QUOTA = 40_000
POLICIES = (
    "native:30",
    "native:50",
    BASE,
    "native:90",
    "on-demand",
    "fixed",
    "better-dynamodb-scaling",
    "improved-dynamodb-auto-scaling",
    "dynamic-dynamodb",
    "dynamodb-lambda-autoscale",
    "sprkem",
    "trek10",
    "throttle-aware-lambda",
    "step-cron",
    "highwater-floor",
    "highwater-direct",
    "highwater-floor-pulse",
    "highwater-direct-pulse",
    "clairvoyant",
)


def load(trace: Trace) -> Traffic:
    """Return the traffic of a trace; only a trace from a file is scaled to the common mean."""
    if trace.file is None:
        return scenario(trace.name)
    return read_traffic(trace.file).with_mean(MEAN_UNITS)


def make_setup(trace: Trace) -> TableSetup:
    """The trace's table."""
    return table_to_quota(trace.name)


def table_to_quota(name: str) -> TableSetup:
    """A table with writes from 1 to the quota, and warm for as much."""
    write = TargetSetup(units=1, min=1, max=QUOTA)
    table = ResourceSetup(index=None, read=TargetSetup.fixed(1), write=write, warm_read_units=1, warm_write_units=QUOTA)
    return TableSetup(name=name, resources=(table,))


def served_traces(program: str, folder: Path) -> tuple[list[Trace], Scores] | None:
    """The serviceable traces of a folder, of which one at a time can be left out, and the scores of native:70.

    If there are fewer than two, a message on standard error says so, and there are none.
    """
    fine = [trace for trace in find_traces(folder) if trace.bin_seconds in (60, 300)]
    scores: Scores = {(trace.name, BASE): run(trace, BASE) for trace in fine}
    traces = serviceable(fine, scores)
    if len(traces) < 2:
        print(
            f"{program}: {len(traces)} serviceable traces in {folder}; one of at least 2 is left out at a time",
            file=sys.stderr,
        )
        return None
    return traces, scores


def run(trace: Trace, policy: str) -> Score:
    """Simulate one policy under one trace."""
    if policy == boosted.NAME:
        return score_of(trace, policy, boosted.run_boosted(make_setup(trace), load(trace)))
    simulated = run_policy(policy, make_setup(trace), load(trace))
    return score_of(trace, simulated.policy, simulated)


def score_of(trace: Trace, policy: str, simulated: Run) -> Score:
    """What a run over the trace came to, under the name of *policy*."""
    metrics = 1000 * simulated.bill.metrics / load_prices().thousand_metrics_requested
    return Score(
        trace.name,
        policy,
        simulated.throttled_per_million,
        len(simulated.throttled_minutes()),
        simulated.bill.per_month,
        simulated.decreases,
        metrics * HOURS_PER_MONTH * 3600 / simulated.bill.seconds,
    )


def add_traces(parser: argparse.ArgumentParser) -> None:
    """Add the option for the folder of traces; if the folder is missing, the program says so and ends with status 0."""
    parser.add_argument("--traces", type=_existing, default=str(DEFAULT_TRACES), help="folder of traces")


def _existing(folder: str) -> Path:
    if not Path(folder).is_dir():
        print(f"SKIPPED: no traces at {folder}; give a folder of CSV files with --traces", file=sys.stderr)
        sys.exit(0)
    return Path(folder)


def find_traces(folder: Path) -> Iterator[Trace]:
    """Yield the traces of a folder, with the classes of its manifest if it has one.

    A file that cannot be read as traffic is left out, with a message on standard error if the manifest lists it or
    there is no manifest.
    """
    manifest = folder / "manifest.json"
    listed = {}
    if manifest.exists():
        listed = {item["file"]: item for item in json.loads(manifest.read_text())["traces"]}
    for file in sorted(folder.glob("*.csv")):
        try:
            traffic = read_traffic(file)
        except TrafficError as error:
            if not listed or file.name in listed:
                print(f"left out: {error}", file=sys.stderr)
            continue
        item = listed.get(file.name, {})
        yield Trace(
            file.stem,
            item.get("character", "traces"),
            file,
            traffic.source_bin_seconds,
            traffic.minutes / 1440,
            item.get("tier") == "P",
            "low-rate" in item.get("tags", []),
        )


def _policies(trace: Trace) -> tuple[str, ...]:
    """All policies; for a scenario, whose jumps somebody may know beforehand, also target tracking with boosts."""
    return (*POLICIES, boosted.NAME) if trace.file is None else POLICIES


def score(traces: Sequence[Trace], processes: int, only: Sequence[str] = ()) -> Scores:
    """Simulate every policy under every trace, or *only* some and native target tracking, in so many *processes*."""
    with ProcessPoolExecutor(processes) as pool:
        pairs = (
            (trace, policy)
            for trace in traces
            for policy in (dict.fromkeys((BASE, *only)) if only else _policies(trace))
        )
        # the longest traces first, so that no core idles at the end
        work = sorted(pairs, key=lambda pair: -pair[0].days)
        futures = [pool.submit(run, trace, policy) for trace, policy in work]
        return collect(futures, "scoring")


def main(arguments: Sequence[str]) -> int:
    """Simulate everything and write the page; return 2 if the folder has no traces, else 0."""
    parser = argparse.ArgumentParser(prog="scoreboard", description=__doc__)
    add_traces(parser)
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    parser.add_argument("--no-scenarios", action="store_true", help="leave out the scenarios")
    parser.add_argument(
        "--out", type=Path, default=PAGE, help="page to write; its data and its folder pictures go beside it"
    )
    parser.add_argument("--only", action="append", default=[], help="print this policy alone and write no page")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    traces = [*find_traces(options.traces), *([] if options.no_scenarios or options.only else _scenarios())]
    if not traces:
        print(
            f"scoreboard: no traffic in {options.traces}; give a folder of CSV files in the format of "
            "highwater simulate",
            file=sys.stderr,
        )
        return 2
    scores = score(traces, options.processes, options.only)
    if options.only:
        for line in summary(options.only, serviceable(traces, scores), scores):
            print(line)
        return 0
    board = Board(traces, scores, serviceable(traces, scores), POLICIES, BASE)
    write_board(board, options.out)
    for line in summary(POLICIES, board.serviceable, scores):
        print(line)
    print(f"{len(scores)} runs in {time.monotonic() - began:.0f} s; written: {options.out}")
    return 0


def _scenarios() -> list[Trace]:
    # nothing happens in the figures' calm traffic
    names = [name for name in SCENARIOS if name != "figures-calm"]
    return [Trace(name, "scenario", None, 1, scenario(name).minutes / 1440, is_proxy=False) for name in names]


# an unknown policy name fails here, at import, and not after minutes of simulation
for _name in POLICIES[:-1]:
    find_policy(_name)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
