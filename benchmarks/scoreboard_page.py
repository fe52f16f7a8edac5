"""The page and the pictures of the scoreboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scores import Score, Scores, Trace, metrics_per_month, relative
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.clairvoyant import NAME as CLAIRVOYANT
from highwater_lab.policies.clairvoyant import SOURCE
from highwater_lab.services.prices import load_prices


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that was scored."""

    traces: Sequence[Trace]
    scores: Scores
    serviceable: Sequence[Trace]
    policies: Sequence[str]
    base: str

    def score(self, trace: Trace, policy: str) -> Score:
        """One policy over one trace."""
        return self.scores[trace.name, policy]

    def over_bound(self, trace: Trace, policy: str) -> float:
        """Its cost over the clairvoyant bound's."""
        return self.score(trace, policy).cost_per_month / self.score(trace, CLAIRVOYANT).cost_per_month


def write_board(board: Board, path: Path) -> None:
    """Write the page to *path* and its pictures into the folder `pictures` beside it."""
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


def _head() -> list[str]:
    return [
        "# Scoreboard",
        "",
        "Made by `make benchmark`. Every policy over every trace, each scaled to a mean of 1,000 write units per",
        "second, on a table with a floor of 1, a ceiling and a high-water mark of 40,000; scenarios are not scaled.",
        f"Prices are us-east-1's of {load_prices().dated}. What is modelled, and how: [the model](model.md).",
        "",
        "Throttles are units per million asked for; *cost* is USD a month; *x bound* is the cost over that of the",
        "clairvoyant bound, the least that provisioned capacity could cost without a throttle. On-demand is another",
        "way to pay, and under it where a trace idles and then bursts.",
        "",
        "Low counts scaled up are burstier than a busy table of the same shape would be, and coarse traces hide the",
        "bursts inside their bins; both are marked.",
    ]


def _summary(board: Board) -> list[str]:
    lines = [
        "",
        "## Serviceable traces",
        "",
        f"The traces by the minute or by five on which {board.base} throttles under 5 %: "
        + ", ".join(trace.name for trace in board.serviceable)
        + ".",
        f"Throttled shares summed, costs as geometric mean, both relative to {board.base}.",
        "",
        "| policy | throttled | cost |",
        "|---|---:|---:|",
    ]
    for policy in board.policies:
        throttles, cost = relative(policy, board.serviceable, dict(board.scores))
        lines.append(f"| {policy} | {throttles:.3f} | {cost:.3f} |")
    asked = [
        f"{policy} {metrics_per_month(policy, board.serviceable, dict(board.scores)):,.0f}"
        for policy in board.policies
        if policy.startswith("highwater")
    ]
    if asked and board.serviceable:
        lines += ["", f"Metrics asked for, per target that is moved and month: {', '.join(asked)}."]
    return lines


def _others(board: Board) -> list[str]:
    others = [t for t in board.traces if t not in board.serviceable and t.kind != "scenario"]
    if not others:
        return []
    lines = [
        "",
        "## The others",
        "",
        "Idle, then bursts; or too coarse or too fine to be judged by minutes. Beside each what on-demand costs.",
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
        "| policy | throttled per million | minutes | cost | x bound | decreases |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for policy in board.policies:
        score = board.score(trace, policy)
        lines.append(
            f"| {policy} | {score.throttled_per_million:,.0f} | {score.throttled_minutes:,} | "
            f"{score.cost_per_month:,.0f} | {board.over_bound(trace, policy):.2f} | {score.decreases:,} |"
        )
    return lines


def _sources(board: Board) -> list[str]:
    lines = ["", "## Policies", "", "| policy | source |", "|---|---|"]
    for policy in board.policies:
        source = SOURCE if policy == CLAIRVOYANT else find_policy(policy).source
        lines.append(f"| {policy} | {source} |")
    return lines


def _draw(board: Board, kind: str, path: Path) -> None:
    """Cost over the bound against throttles, each the mean over the class's traces."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    traces = [trace for trace in board.traces if trace.kind == kind]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for policy in board.policies:
        cost = sum(board.over_bound(trace, policy) for trace in traces) / len(traces)
        throttles = sum(board.score(trace, policy).throttled_per_million for trace in traces) / len(traces)
        axes.plot([cost], [throttles], marker="o", color="#c0392b" if policy == board.base else "#1f77b4")
        axes.annotate(policy, (cost, throttles), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
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
