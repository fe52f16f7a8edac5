"""Draws the trade-off of a recommendation: cost against throttling."""

from __future__ import annotations

import io
from pathlib import Path

from highwater_lab.files import replace_file
from highwater_lab.pictures import drawable, load_pyplot, quiet_about_glyphs
from highwater_lab.recommend import Recommendation


def write_curve(recommendation: Recommendation, title: str, path: Path) -> None:
    """Write the trade-off curve to *path* as a PNG; a star marks the recommended plan. Raises `OSError`."""
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
    best = recommendation.best
    axes.plot([best.cost_per_month], [best.throttled_percent], marker="*", markersize=16, color="#c0392b")
    axes.set_xlabel("USD a month")
    axes.set_ylabel("throttled, % of the requested units")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.2, y=0.15)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.25)
    axes.set_title(drawable(title), loc="left", fontsize=11)
    picture = io.BytesIO()
    with quiet_about_glyphs():
        figure.savefig(picture, dpi=110, format="png")
    replace_file(path, picture.getvalue())
    plt.close(figure)
