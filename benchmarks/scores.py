"""What the scoreboard measured of each policy and trace, and the figures that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

BASE: Final = "native:70"
# what a user could run all day: the share of demand that native-70 throttles of it
SERVICEABLE_PER_MILLION = 50_000


@dataclass(frozen=True, slots=True)
class Score:
    """One policy over one trace."""

    trace: str
    policy: str
    throttled_per_million: float
    throttled_minutes: int
    cost_per_month: float
    decreases: int
    metrics_per_month: float


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace: a file, or a scenario where that is `None`."""

    name: str
    kind: str
    file: Path | None
    bin_seconds: int
    days: float
    is_proxy: bool
    is_low: bool = False

    @property
    def coarse(self) -> str:
        """What a reader must know about its bins."""
        if self.is_proxy:
            return "bytes, not requests"
        told = [f"coarse: bins of {self.bin_seconds // 60} min"] if self.bin_seconds > 60 else []
        return ", ".join(told + (["low counts scaled up"] if self.is_low else []))


# by the names of the trace and of the policy
Scores: TypeAlias = dict[tuple[str, str], Score]


def serviceable(traces: Sequence[Trace], scores: Scores) -> list[Trace]:
    """The traces by the minute or five on which native-70 throttles under five percent."""
    return [
        trace
        for trace in traces
        if trace.file is not None
        and trace.bin_seconds in (60, 300)
        and scores[trace.name, BASE].throttled_per_million < SERVICEABLE_PER_MILLION
    ]


def summary(policies: Sequence[str], traces: Sequence[Trace], scores: Scores) -> list[str]:
    """A line per policy: throttles summed and cost as geometric mean over *traces*, relative to native-70."""
    lines = []
    for policy in policies:
        throttles, cost = relative(policy, traces, scores)
        lines.append(f"{policy:<32} throttled x {throttles:6.3f}   cost x {cost:6.3f}")
    return lines


def relative(policy: str, traces: Sequence[Trace], scores: Scores) -> tuple[float, float]:
    """Throttled share summed over *traces*, and the geometric mean of cost, each over native-70's."""
    base = sum(scores[t.name, BASE].throttled_per_million for t in traces)
    mine = sum(scores[t.name, policy].throttled_per_million for t in traces)
    logs = [math.log(scores[t.name, policy].cost_per_month / scores[t.name, BASE].cost_per_month) for t in traces]
    return mine / base if base else math.nan, math.exp(sum(logs) / len(logs)) if logs else math.nan


def metrics_per_month(policy: str, traces: Sequence[Trace], scores: Scores) -> float:
    """Metrics that a policy asks CloudWatch for on average, per target that it moves and month."""
    return sum(scores[t.name, policy].metrics_per_month for t in traces) / len(traces) if traces else math.nan
