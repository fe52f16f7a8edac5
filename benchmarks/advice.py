"""The advice of `recommend` on days that it has not seen: `make benchmark NAME=advice`.

Of each serviceable trace of the scoreboard, the first half of up to 14 days is given to `recommend`, and the plan that
it advises is simulated on the second half, beside target tracking at 70 % and at 90 % and on demand. Writes
docs/advice.md. For traces of your own give --traces FOLDER; --swapped gives it the second half and judges on the first.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track

from benchmarks.scoreboard import ROOT, add_traces, find_traces, load, make_setup
from benchmarks.scores import BASE, SERVICEABLE_PER_MILLION, Trace
from benchmarks.worlds import DAYS, first_days
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.recommend import Candidate, Rule, recommend
from highwater_lab.report.advice import warnings_of
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.plans import table_of
from highwater_lab.traffic import Traffic

PAGE: Final = ROOT / "docs" / "advice.md"
_DAY_SECONDS: Final = 86_400
# More throttles than native's by this many of a million count as worse
MARGIN_PER_MILLION: Final = 100
_NATIVE: Final = (BASE, "native:80", "native:90", "on-demand")


@dataclass(frozen=True, slots=True)
class Tried:
    """One trace: the advice, and the runs of its second half.

    Attributes:
        name: The trace.
        advice: The plan in words.
        throttled: Throttled units of a million, by policy; `advice` for the plan.
        usd: The USD a month, likewise.
        warnings: The lines that said before that the plan may throttle more.
    """

    name: str
    advice: str
    throttled: dict[str, float]
    usd: dict[str, float]
    warnings: tuple[str, ...]

    @property
    def cost(self) -> float:
        """The cost of the advice, relative to that of target tracking at 70 %."""
        return self.usd["advice"] / self.usd[BASE]

    @property
    def is_worse(self) -> bool:
        """Whether the advice throttles more than target tracking at 70 %."""
        return self.throttled["advice"] > self.throttled[BASE] + MARGIN_PER_MILLION

    @property
    def hindsight(self) -> float:
        """The least cost of targets of 70, 80 and 90 % and on demand that throttle no more than the first."""
        most = self.throttled[BASE] + MARGIN_PER_MILLION
        return (
            min(usd for name, usd in self.usd.items() if name != "advice" and self.throttled[name] <= most)
            / (self.usd[BASE])
        )


def is_serviceable(trace: Trace) -> bool:
    """Return whether target tracking at 70 % serves the first days of a trace, as for docs/worlds.md."""
    run = simulate(make_setup(trace), first_days(load(trace), DAYS), find_policy(BASE))
    return run.throttled_per_million < SERVICEABLE_PER_MILLION


def halves(traffic: Traffic) -> tuple[Traffic, Traffic]:
    """Return two parts of the first days of a traffic, of as many whole days, or of half a day of one."""
    days = min(DAYS, traffic.minutes / 1440)
    half = int(days / 2 + 0.01) if days >= 2 else days / 2
    cut, end = (int(each * _DAY_SECONDS) // traffic.bin_seconds for each in (half, days))
    parts = ((0, cut, traffic.start), (cut, end, traffic.start + timedelta(days=half)))
    first, second = (
        replace(
            traffic,
            rates={stream: rates[start:stop] for stream, rates in traffic.rates.items()},
            counts=None,
            gaps=(),
            start=at,
        )
        for start, stop, at in parts
    )
    return first, second


def try_advice(trace: Trace, *, is_swapped: bool = False) -> Tried:
    """Give one half of a trace to `recommend`, and simulate its advice on the other."""
    seen, unseen = halves(load(trace))
    if is_swapped:
        seen, unseen = unseen, seen
    found, setup, rule = recommend(seen, with_scaler=False), make_setup(trace), Rule()
    advised = found.advised(rule)
    runs = {name: simulate(setup, unseen, find_policy(name)) for name in _NATIVE}
    runs["advice"] = _run(advised, setup, unseen)
    return Tried(
        trace.name,
        advised.summary,
        {name: run.throttled_per_million for name, run in runs.items()},
        {name: run.bill.per_month for name, run in runs.items()},
        tuple(warnings_of(found, rule)),
    )


def _run(advised: Candidate, setup: TableSetup, traffic: Traffic) -> Run:
    if advised.plan is None:
        # the marks of the scoreboard's table are at the quota; those of the advice are what it raises
        resources = tuple(
            replace(
                each,
                warm_read_units=advised.mark[each.index].read if each.index in advised.mark else 1,
                warm_write_units=advised.mark[each.index].write if each.index in advised.mark else 1,
            )
            for each in setup.resources
        )
        return simulate(replace(setup, resources=resources), traffic, find_policy("on-demand"))
    return simulate(table_of(advised.plan, setup.name), traffic, Declared())


def page(tried: Sequence[Tried], *, is_swapped: bool) -> str:
    """Return the text of docs/advice.md."""
    worse = [each for each in tried if each.is_worse]
    warned = [each for each in tried if each.warnings]
    needless = [each for each in warned if not each.is_worse]
    cost, best = (math.exp(sum(map(math.log, costs)) / len(tried)) for costs in _costs(tried))
    order = "second half, and tried on the first" if is_swapped else "first half, and tried on the second"
    command = f"make benchmark NAME=advice{' ARGS=--swapped' if is_swapped else ''}"
    lines = [
        "# Advice on days that it has not seen",
        "",
        f"Made by `{command}`. [`recommend`](recommend.md) gets one half of each of",
        f"{len(tried)} traces of the [scoreboard](benchmarks.md), of up to {DAYS} days: the {order}.",
        "Costs are relative to target tracking at 70 % on the same days, throttled units are of a million.",
        "*Hindsight* is the cheapest of target tracking at 70, 80 and 90 % and on demand that throttles no more",
        f"than target tracking at 70 % and {MARGIN_PER_MILLION} of a million.",
        "",
        f"The advice throttles no more than that on {len(tried) - len(worse)} of {len(tried)} traces. The geometric",
        f"mean of its cost is {cost:.3f}, that of hindsight {best:.3f}. A line said before that it may throttle more",
        f"on {len(warned)} traces, of which {len(needless)} do not.",
        "",
        "| trace | advice | throttled | cost | 70 % | 90 % | on demand | hindsight | a line said so |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for each in sorted(tried, key=lambda each: each.name):
        throttled = f"**{each.throttled['advice']:,.0f}**" if each.is_worse else f"{each.throttled['advice']:,.0f}"
        others = [
            f"{each.throttled[name]:,.0f} at {each.usd[name] / each.usd[BASE]:.3f}"
            for name in (BASE, "native:90", "on-demand")
        ]
        said = "yes" if each.warnings else ""
        lines.append(
            f"| {each.name} | {each.advice} | {throttled} | {each.cost:.3f} | {' | '.join(others)} | "
            f"{each.hindsight:.3f} | {said} |"
        )
    return "\n".join([*lines, ""])


def _costs(tried: Sequence[Tried]) -> tuple[list[float], list[float]]:
    return [each.cost for each in tried], [each.hindsight for each in tried]


def main(arguments: Sequence[str]) -> int:
    """Try the advice for each trace, and write the page; return 2 without traces, else 0."""
    parser = argparse.ArgumentParser(prog="advice", description=__doc__)
    add_traces(parser)
    parser.add_argument("--swapped", action="store_true", help="choose on the second half; prints, and writes no page")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    given = parser.parse_args(arguments)
    fine = [trace for trace in find_traces(Path(given.traces)) if trace.bin_seconds in (60, 300)]
    with ProcessPoolExecutor(given.processes) as pool:
        served = [trace for trace, is_served in zip(fine, pool.map(is_serviceable, fine), strict=True) if is_served]
        if not served:
            print(f"advice: no serviceable traces in {given.traces}", file=sys.stderr)
            return 2
        work = [pool.submit(try_advice, trace, is_swapped=given.swapped) for trace in served]
        done = track(as_completed(work), "advice", total=len(work), console=Console(stderr=True))
        tried = [each.result() for each in done]
    text = page(tried, is_swapped=given.swapped)
    print(text)
    if not given.swapped and Path(given.traces).resolve() == (ROOT.parent / "shared" / "traces").resolve():
        PAGE.write_text(text, encoding="utf-8")
        print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
