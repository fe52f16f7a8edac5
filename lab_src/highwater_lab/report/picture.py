"""Pictures of a rehearsal and of a recommendation: the curves of a run, and cost against throttling."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import replace_file
from highwater_lab.physics.throughput import Cause
from highwater_lab.pictures import drawable, load_pyplot, quiet_about_glyphs
from highwater_lab.recommend import Candidate, Recommendation
from highwater_lab.rehearse import Rehearsal
from highwater_lab.report.terminal import share_text
from highwater_lab.simulation import Run, TargetRun

_MOST_POINTS: Final = 3_000


@dataclass(frozen=True, slots=True)
class Step:
    """A step line: each value applies from its time to the next time; the last time ends the line.

    Attributes:
        times: The times at which the value changes, then the end of the run.
        values: One value per time; the last one repeats the one before.
    """

    times: tuple[datetime, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of one target; rates and capacity in units per second.

    Attributes:
        minutes_per_point: The number of minutes that one point stands for.
        times: The time at which the minutes of each point begin.
        demand: For each point, the requested units per second of its busiest minute.
        consumed: For each point, the consumed units per second of its busiest minute.
        throttled: By cause, the number of units throttled in the minutes of each point: a count, not a rate.
        provisioned: The provisioned capacity; `None` on demand, as are floor and ceiling.
        floor: The floor, Application Auto Scaling's MinCapacity.
        ceiling: The ceiling, Application Auto Scaling's MaxCapacity.
    """

    minutes_per_point: int
    times: tuple[datetime, ...]
    demand: tuple[float, ...]
    consumed: tuple[float, ...]
    throttled: Mapping[Cause, tuple[float, ...]]
    provisioned: Step | None
    floor: Step | None
    ceiling: Step | None


def shown_targets(run: Run) -> tuple[TargetRun, ...]:
    """Return the targets that have traffic, or the table's writes if there is no traffic at all."""
    busy = tuple(target for target in run.targets if target.demanded_units)
    return busy or run.targets[1:2]


def curves(run: Run, target: TargetRun, most_points: int = _MOST_POINTS) -> Curves:
    """Return the curves of one target of a run, with at most *most_points* points."""
    step = -(-run.minutes // most_points)
    firsts = range(0, run.minutes, step)
    demand, consumed = [], []
    for first in firsts:
        minutes = range(first, min(first + step, run.minutes))
        demand.append(max(target.demand_quanta(minute) for minute in minutes) / 3600)
        consumed.append(max(target.consumed[minute] for minute in minutes) / 3600)
    throttled = {cause: [0.0] * len(firsts) for cause in target.throttled_by_cause()}
    for minute, causes in target.throttled.items():
        for cause, quanta in causes.items():
            throttled[cause][minute // step] += quanta / 60
    is_on_demand = target.capacity[0][1] == 0
    return Curves(
        step,
        tuple(run.start + timedelta(minutes=first) for first in firsts),
        tuple(demand),
        tuple(consumed),
        {cause: tuple(values) for cause, values in throttled.items()},
        None if is_on_demand else _steps(run, [(at, units) for at, units in target.capacity]),
        None if is_on_demand else _steps(run, [(at, floor) for at, floor, _ in target.bounds]),
        None if is_on_demand else _steps(run, [(at, ceiling) for at, _, ceiling in target.bounds]),
    )


def _steps(run: Run, changes: list[tuple[int, int]]) -> Step:
    times = [run.start + timedelta(seconds=at) for at, _ in changes] + [run.start + timedelta(minutes=run.minutes)]
    values = [units for _, units in changes] + [changes[-1][1]]
    return Step(tuple(times), tuple(values))


def write_picture(rehearsal: Rehearsal, path: Path) -> None:
    """Write the run of the policy `declared` to *path* as a PNG. Raises `OSError`."""
    run = rehearsal.declared
    title = (
        f"{rehearsal.setup.name} under {rehearsal.traffic.name}: {share_text(run)} throttled, "
        f"${run.bill.per_month:,.0f} a month"
    )
    write_run(run, title, path)


def write_run(run: Run, title: str, path: Path) -> None:
    """Write one run to *path* as a PNG with this title. Raises `OSError`."""
    from matplotlib import dates

    plt = load_pyplot()

    targets = shown_targets(run)
    figure, panels = plt.subplots(
        2 * len(targets),
        1,
        figsize=(11, 4.2 * len(targets) + 0.5),
        sharex=True,
        squeeze=False,
        layout="constrained",
        height_ratios=[3, 1] * len(targets),
    )
    for number, target in enumerate(targets):
        drawn = curves(run, target, most_points=1_500)
        rates, throttles = panels[2 * number, 0], panels[2 * number + 1, 0]
        rates.plot(drawn.times, drawn.demand, color="#8a8f98", linewidth=0.8, label="demand")
        rates.fill_between(drawn.times, drawn.consumed, color="#1f77b4", alpha=0.35, linewidth=0, label="consumed")
        if drawn.provisioned is not None and drawn.floor is not None:
            rates.step(
                drawn.provisioned.times, drawn.provisioned.values, where="post", color="#c0392b", label="provisioned"
            )
            rates.step(drawn.floor.times, drawn.floor.values, where="post", color="#27ae60", linewidth=1, label="floor")
        rates.set_title(drawable(target.label), loc="left", fontsize=10)
        rates.set_ylabel("units/s", fontsize=8)
        rates.set_ylim(bottom=0)
        rates.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        rates.grid(alpha=0.25)
        rates.legend(loc="upper right", fontsize=8, ncols=4, frameon=False)
        below = [0.0] * len(drawn.times)
        width = timedelta(minutes=drawn.minutes_per_point)
        for cause, units in drawn.throttled.items():
            throttles.bar(drawn.times, units, width=width, align="edge", bottom=below, label=str(cause))
            below = [a + b for a, b in zip(below, units, strict=True)]
        throttles.set_ylabel("throttled", fontsize=8)
        throttles.set_ylim(bottom=0, top=None if drawn.throttled else 1)
        throttles.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        throttles.grid(alpha=0.25)
        if drawn.throttled:
            throttles.legend(loc="upper right", fontsize=8, frameon=False)
    panels[-1, 0].xaxis.set_major_formatter(dates.ConciseDateFormatter(panels[-1, 0].xaxis.get_major_locator()))
    panels[-1, 0].set_xlim(run.start, run.start + timedelta(minutes=run.minutes))
    figure.suptitle(drawable(title), fontsize=12)
    _write(figure, path)


def write_curve(recommendation: Recommendation, advised: Candidate, title: str, path: Path) -> None:
    """Write the trade-off curve to *path* as a PNG; a star marks the plan that is *advised*. Raises `OSError`."""
    plt = load_pyplot()

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    curve = recommendation.curve
    costs = [candidate.cost_per_month for candidate in curve]
    throttles = [candidate.throttled_percent for candidate in curve]
    axes.plot(costs, throttles, marker="o", color="#1f77b4", drawstyle="steps-post", linewidth=1)
    for candidate in curve:
        axes.annotate(
            candidate.summary,
            (candidate.cost_per_month, candidate.throttled_percent),
            xytext=(6, 6),
            textcoords="offset points",
            fontsize=7,
        )
    axes.plot([advised.cost_per_month], [advised.throttled_percent], marker="*", markersize=16, color="#c0392b")
    axes.set_xlabel("USD a month")
    axes.set_ylabel("throttled, % of the requested units")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.2, y=0.15)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.25)
    axes.set_title(drawable(title), loc="left", fontsize=11)
    _write(figure, path)


def _write(figure: Any, path: Path) -> None:
    picture = io.BytesIO()
    with quiet_about_glyphs():
        figure.savefig(picture, dpi=110, format="png")
    replace_file(path, picture.getvalue())
    load_pyplot().close(figure)
