"""Writes the page and the pictures of the scoreboard."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import boosted
from benchmarks.policies import find_policy
from benchmarks.scores import Score, Scores, Trace, metrics_per_month, relative
from highwater_lab.policies.clairvoyant import NAME as CLAIRVOYANT
from highwater_lab.policies.clairvoyant import SOURCE
from highwater_lab.services.prices import load_prices

COLUMNS: Final = ("policy", "throttled per million", "minutes", "cost", "x bound", "decreases")


@dataclass(frozen=True, slots=True)
class Board:
    """All scores with their traces and policies; *base* is the policy to which the summary is relative."""

    traces: Sequence[Trace]
    scores: Scores
    serviceable: Sequence[Trace]
    policies: Sequence[str]
    base: str

    def score(self, trace: Trace, policy: str) -> Score:
        """Return the score of one policy under one trace."""
        return self.scores[trace.name, policy]

    def over_bound(self, trace: Trace, policy: str) -> float:
        """Return the policy's cost as a multiple of the clairvoyant bound's."""
        return self.score(trace, policy).cost_per_month / self.score(trace, CLAIRVOYANT).cost_per_month


def write_board(board: Board, path: Path) -> None:
    """Write the page to *path*, its tables as CSV beside it, and its pictures into the folder `pictures` there."""
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    kinds = list(dict.fromkeys(trace.kind for trace in board.traces))
    for kind in kinds:
        _draw(board, kind, pictures / f"benchmark-{kind}.png")
    lines = [*_head(), *_summary(board), *_others(board)]
    for kind in kinds:
        lines += ["", f"## Class: {kind}", "", f"![cost against throttles](pictures/benchmark-{kind}.png)"]
        for trace in board.traces:
            if trace.kind == kind:
                lines += _table(board, trace)
    path.write_text("\n".join([*lines, *_sources(board)]) + "\n", encoding="utf-8")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("class", "trace", *COLUMNS))
        writer.writerows((trace.kind, trace.name, *row) for trace in board.traces for row in _rows(board, trace))


def _head() -> list[str]:
    return [
        "# Scoreboard",
        "",
        "Made by `make benchmark NAME=scoreboard`: every policy is simulated under every trace. Traces are scaled to a",
        "mean of 1,000 write units per second; scenarios are not scaled. The table has a floor of 1, and a ceiling and",
        f"a high-water mark of 40,000. Prices are those of us-east-1 of {load_prices().dated}. [The model](model.md)",
        "lists what is simulated and how.",
        "",
        "The tables of the traces are also [data](benchmarks.csv).",
        "",
        "Throttles are throttled units per million requested units. *Cost* is in USD a month. *x bound* is the cost as",
        "a multiple of the clairvoyant bound, the lowest cost of provisioned capacity without throttling. On-demand is",
        "billed differently and can cost less than the bound if a trace is idle most of the time and then bursts.",
        "",
        f"In scenarios, *{boosted.NAME}* is target tracking at 70 % with a job that boosts the table two minutes",
        "before each jump, for half an hour.",
        "",
        "Some traces are marked: scaled-up low counts are burstier than a busy table with the same curve, and coarse",
        "traces hide the bursts within their bins.",
    ]


def _summary(board: Board) -> list[str]:
    lines = [
        "",
        "## Serviceable traces",
        "",
        f"The traces with bins of one or five minutes for which {board.base} throttles under 5 %: "
        + ", ".join(trace.name for trace in board.serviceable)
        + ".",
        f"*Throttled* is the sum of throttled shares, *cost* the geometric mean; both are relative to {board.base}.",
        "",
        "| policy | throttled | cost |",
        "|---|---:|---:|",
    ]
    for policy in board.policies:
        throttles, cost = relative(policy, board.serviceable, dict(board.scores))
        lines.append(f"| {policy} | {throttles:.3f} | {cost:.3f} |")
    metrics = [
        f"{policy} {metrics_per_month(policy, board.serviceable, dict(board.scores)):,.0f}"
        for policy in board.policies
        if policy.startswith("highwater")
    ]
    if metrics and board.serviceable:
        lines += ["", f"Metrics requested from CloudWatch, per scaled target and month: {', '.join(metrics)}."]
    return lines


def _others(board: Board) -> list[str]:
    others = [t for t in board.traces if t not in board.serviceable and t.kind != "scenario"]
    if not others:
        return []
    lines = [
        "",
        "## Other traces",
        "",
        "These traces are idle and then burst, or their bins are too long or too short to compare by minutes. The",
        f"table compares {board.base} with on-demand.",
        "",
        f"| trace | {board.base}, throttled | cost | on-demand, throttled | cost | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for trace in others:
        base, demand = board.score(trace, board.base), board.score(trace, "on-demand")
        lines.append(
            f"| {trace.name} | {base.throttled_per_million:,.0f} | {base.cost_per_month:,.0f} | "
            f"{demand.throttled_per_million:,.0f} | {demand.cost_per_month:,.0f} | {trace.coarse} |"
        )
    return lines


def _table(board: Board, trace: Trace) -> list[str]:
    about = [f"{trace.days:.1f} days"] + ([trace.coarse] if trace.coarse else [])
    lines = [
        "",
        f"### {trace.name}",
        "",
        f"{', '.join(about)}.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for policy, throttled, minutes, cost, bound, decreases in _rows(board, trace):
        lines.append(f"| {policy} | {throttled:,} | {minutes:,} | {cost:,} | {bound} | {decreases:,} |")
    return lines


def _rows(board: Board, trace: Trace) -> Iterator[tuple[str, int, int, int, str, int]]:
    """Yield the figures of each policy under a trace, in the order of `COLUMNS` and as precise as the page has them."""
    for policy in (*board.policies, boosted.NAME):
        if (trace.name, policy) in board.scores:
            score = board.score(trace, policy)
            throttled, cost = round(score.throttled_per_million), round(score.cost_per_month)
            bound = f"{board.over_bound(trace, policy):.2f}"
            yield policy, throttled, score.throttled_minutes, cost, bound, score.decreases


def _sources(board: Board) -> list[str]:
    lines = ["", "## Policies", "", "| policy | source |", "|---|---|"]
    for policy in board.policies:
        source = SOURCE if policy == CLAIRVOYANT else find_policy(policy).source
        lines.append(f"| {policy} | {source} |")
    return lines


def _color(board: Board, policy: str) -> str:
    """Return a colour of its own for target tracking at the base, for Highwater, and for the bound."""
    if policy == CLAIRVOYANT:
        return "#2c3e50"
    if policy.startswith("highwater"):
        return "#16805d"
    return "#c0392b" if policy == board.base else "#6b9ac4"


# a picture whose lowest point is above this begins there, not at 0
_LEAST_DECADE: Final = 100


def _draw(board: Board, kind: str, path: Path) -> None:
    """Draw each policy's cost, as a multiple of the bound, against its throttling: means over the traces of a class."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    traces = [trace for trace in board.traces if trace.kind == kind]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    points = []
    for number, policy in enumerate(board.policies, 1):
        cost = sum(board.over_bound(trace, policy) for trace in traces) / len(traces)
        throttles = sum(board.score(trace, policy).throttled_per_million for trace in traces) / len(traces)
        # names beside their points would lie upon each other
        label = f"{number}  {policy}"
        color = _color(board, policy)
        axes.scatter([cost], [throttles], s=170, color=color, edgecolor="white", label=label, zorder=3, clip_on=False)
        axes.annotate(
            str(number), (cost, throttles), ha="center", va="center", color="white", fontsize=8, weight="bold", zorder=4
        )
        points.append(throttles)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    axes.set_yscale("symlog", linthresh=10)
    lowest = min(points)
    axes.set_ylim(bottom=10 ** math.floor(math.log10(lowest)) if lowest >= _LEAST_DECADE else 0)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if value in (2, 3, 5, 20, 30, 50) else "")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("cost, times the clairvoyant bound")
    axes.set_ylabel("throttled units per million")
    axes.grid(alpha=0.25)
    names = ", ".join(trace.name for trace in traces)
    axes.set_title(f"{kind}: mean over {len(traces)} traces\n{names}", loc="left", fontsize=9, wrap=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
