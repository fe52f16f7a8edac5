"""Draws the run of the policy `declared` as a PNG: for each target a panel of rates and one of throttled units."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

from highwater_lab.files import replace_file
from highwater_lab.pictures import drawable, load_pyplot, quiet_about_glyphs
from highwater_lab.rehearse import Rehearsal
from highwater_lab.report.curves import curves, shown_targets
from highwater_lab.report.terminal import share_text
from highwater_lab.simulation import Run


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
    picture = io.BytesIO()
    with quiet_about_glyphs():
        figure.savefig(picture, dpi=110, format="png")
    replace_file(path, picture.getvalue())
    plt.close(figure)
