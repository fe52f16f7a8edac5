"""The scoreboard's figures for each policy and trace, and summaries of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import track

BASE: Final = "native:70"
# A trace is serviceable if native:70 throttles less than this: a user could run such a table all day
SERVICEABLE_PER_MILLION = 50_000


_CHOSEN: Final = "chosen"


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one policy under one trace: cost in USD a month, metrics requested from CloudWatch per month."""

    trace: str
    policy: str
    throttled_per_million: float
    throttled_minutes: int
    cost_per_month: float
    decreases: int
    metrics_per_month: float


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace: a file, or a scenario if *file* is `None`.

    Attributes:
        name: The name of the trace.
        kind: The class of traces to which it belongs.
        file: The CSV file, `None` for a scenario.
        bin_seconds: The length of the source's bins.
        days: The length of the trace.
        is_proxy: Whether the source counts bytes, not requests.
        is_low: Whether the source has low counts, which scaling makes burstier than a busy table would be.
    """

    name: str
    kind: str
    file: Path | None
    bin_seconds: int
    days: float
    is_proxy: bool
    is_low: bool = False

    @property
    def coarse(self) -> str:
        """The limits of the trace's source, as text for the page; empty if there are none."""
        if self.is_proxy:
            return "bytes, not requests"
        limits = [f"coarse: bins of {self.bin_seconds // 60} min"] if self.bin_seconds > 60 else []
        return ", ".join(limits + (["low counts scaled up"] if self.is_low else []))


# The score of each policy under each trace, by the names of trace and policy
Scores: TypeAlias = dict[tuple[str, str], Score]


def serviceable(traces: Sequence[Trace], scores: Scores) -> list[Trace]:
    """Return the traces with bins of one or five minutes for which native:70 throttles less than 5 %."""
    return [
        trace
        for trace in traces
        if trace.file is not None
        and trace.bin_seconds in (60, 300)
        and scores[trace.name, BASE].throttled_per_million < SERVICEABLE_PER_MILLION
    ]


def summary(policies: Sequence[str], traces: Sequence[Trace], scores: Scores) -> list[str]:
    """Return a line per policy: its throttling and cost over *traces*, both relative to native:70."""
    lines = []
    for policy in policies:
        throttles, cost = relative(policy, traces, scores)
        lines.append(f"{policy:<32} throttled x {throttles:6.3f}   cost x {cost:6.3f}")
    return lines


def relative(policy: str, traces: Sequence[Trace], scores: Scores) -> tuple[float, float]:
    """Return throttling and cost of a policy over *traces*, both relative to native:70.

    Throttling is the sum of the throttled shares, cost the geometric mean of the costs.
    """
    base = sum(scores[t.name, BASE].throttled_per_million for t in traces)
    mine = sum(scores[t.name, policy].throttled_per_million for t in traces)
    logs = [math.log(scores[t.name, policy].cost_per_month / scores[t.name, BASE].cost_per_month) for t in traces]
    return mine / base if base else math.nan, math.exp(sum(logs) / len(logs)) if logs else math.nan


def collect(work: Sequence[Future[Score]], said: str) -> Scores:
    """Wait for runs in other processes, with a progress bar of that name, and return their scores."""
    done = track(as_completed(work), said, total=len(work), console=Console(stderr=True))
    return {(score.trace, score.policy): score for score in (each.result() for each in done)}


def choose(policies: Sequence[str], traces: Sequence[Trace], scores: Scores) -> str:
    """Return the policy with the lowest sum of throttles and cost over *traces*, the first at a tie.

    Where native:70 throttles nothing on them, cost alone chooses.
    """

    def total(policy: str) -> float:
        throttles, cost = relative(policy, traces, scores)
        return cost if math.isnan(throttles) else throttles + cost

    return min(policies, key=total)


def left_out(policies: Sequence[str], traces: Sequence[Trace], scores: Scores) -> tuple[tuple[float, float], list[str]]:
    """Let all traces but one choose the policy for that one.

    Returns:
        Throttling and cost as `relative` has them, each trace with what was chosen for it; and the policy of each.
    """
    chosen = [choose(policies, [other for other in traces if other is not trace], scores) for trace in traces]
    picked = {(trace.name, _CHOSEN): scores[trace.name, policy] for trace, policy in zip(traces, chosen, strict=True)}
    return relative(_CHOSEN, traces, {**scores, **picked}), chosen


def metrics_per_month(policy: str, traces: Sequence[Trace], scores: Scores) -> float:
    """Return the mean number of metrics that a policy requests from CloudWatch, per scaled target and month."""
    return sum(scores[t.name, policy].metrics_per_month for t in traces) / len(traces) if traces else math.nan
