"""Every policy over every trace and scenario: throttles and cost, beside the clairvoyant bound.

Each trace is scaled to a mean of 1,000 write units per second, on a table with a floor of 1, and a ceiling and a
high-water mark at the quota. Writes docs/benchmarks.md and a picture per class of traces. Run it with
`make benchmark`, or with --traces FOLDER over traces of your own: CSV files as `highwater rehearse` reads them, and,
if there is one, a manifest.json that gives each its character.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.scoreboard_page import Board, write_board
from benchmarks.scores import BASE, Score, Scores, Trace, serviceable, summary
from highwater_lab.policies.catalogue import find_policy, run_policy
from highwater_lab.services.billing import HOURS_PER_MONTH
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
    "clairvoyant",
)


def load(trace: Trace) -> Traffic:
    """Its traffic, scaled unless it is a scenario."""
    if trace.file is None:
        return scenario(trace.name)
    return read_traffic(trace.file).with_mean(MEAN_UNITS)


def make_setup(trace: Trace) -> TableSetup:
    """The trace's table: writes from 1 to the quota, and warm for as much."""
    write = TargetSetup(units=1, min=1, max=QUOTA)
    table = ResourceSetup(index=None, read=TargetSetup.fixed(1), write=write, warm_read_units=1, warm_write_units=QUOTA)
    return TableSetup(name=trace.name, resources=(table,))


def run(trace: Trace, policy: str) -> Score:
    """Simulate one policy over one trace."""
    found = run_policy(policy, make_setup(trace), load(trace))
    return score_of(trace, found.policy, found)


def score_of(trace: Trace, policy: str, found: Run) -> Score:
    """What a run over the trace came to, under the name of *policy*."""
    metrics = 1000 * found.bill.metrics / load_prices().thousand_metrics_requested
    return Score(
        trace.name,
        policy,
        found.throttled_per_million,
        len(found.throttled_minutes()),
        found.bill.per_month,
        found.decreases,
        metrics * HOURS_PER_MONTH * 3600 / found.bill.seconds,
    )


def find_traces(folder: Path) -> Iterator[Trace]:
    """The traces of a folder, by its manifest if it has one; files that are no traffic are named and left out."""
    manifest = folder / "manifest.json"
    told = {}
    if manifest.exists():
        told = {item["file"]: item for item in json.loads(manifest.read_text())["traces"]}
    for file in sorted(folder.glob("*.csv")):
        try:
            traffic = read_traffic(file)
        except TrafficError as unreadable:
            if not told or file.name in told:
                print(f"left out: {unreadable}", file=sys.stderr)
            continue
        item = told.get(file.name, {})
        yield Trace(
            file.stem,
            item.get("character", "traces"),
            file,
            traffic.source_bin_seconds,
            traffic.minutes / 1440,
            item.get("tier") == "P",
            "low-rate" in item.get("tags", []),
        )


def score(traces: Sequence[Trace], processes: int) -> Scores:
    """Every policy over every trace, in so many processes."""
    with ProcessPoolExecutor(processes) as pool:
        # the longest first, so that no core idles at the end
        work = sorted(((t, p) for t in traces for p in POLICIES), key=lambda pair: -pair[0].days)
        waiting = [pool.submit(run, trace, policy) for trace, policy in work]
        done = track(as_completed(waiting), "scoring", total=len(waiting), console=Console(stderr=True))
        scores = [future.result() for future in done]
    return {(score.trace, score.policy): score for score in scores}


def main(arguments: Sequence[str]) -> int:
    """Score everything and write the page."""
    parser = argparse.ArgumentParser(prog="scoreboard", description=__doc__)
    parser.add_argument("--traces", type=Path, default=DEFAULT_TRACES, help="folder of traces")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-scenarios", action="store_true", help="the traces alone")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write; pictures go beside it")
    given = parser.parse_args(arguments)
    if not given.traces.is_dir():
        print(f"SKIPPED: no traces at {given.traces}; give a folder of CSV files with --traces", file=sys.stderr)
        return 0
    began = time.monotonic()
    traces = [*find_traces(given.traces), *([] if given.no_scenarios else _scenarios())]
    if not traces:
        print(
            f"scoreboard: no traffic in {given.traces}; it takes CSV files as highwater rehearse does", file=sys.stderr
        )
        return 2
    scores = score(traces, given.processes)
    board = Board(traces, scores, serviceable(traces, scores), POLICIES, BASE)
    write_board(board, given.out)
    for line in summary(POLICIES, board.serviceable, scores):
        print(line)
    print(f"{len(scores)} runs in {time.monotonic() - began:.0f} s; written: {given.out}")
    return 0


def _scenarios() -> list[Trace]:
    return [Trace(name, "scenario", None, 1, scenario(name).minutes / 1440, is_proxy=False) for name in SCENARIOS]


# a policy that is no more is found here and not after minutes
for _name in POLICIES[:-1]:
    find_policy(_name)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
