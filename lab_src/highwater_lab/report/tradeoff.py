"""A recommendation's trade-off as one self-contained HTML page: a click on a plan shows its code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import replace_file
from highwater_lab.recommend import Candidate, Recommendation
from highwater_lab.report.pages import fill_page

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 400, 66, 380, 44, 350
# Between the middles of two plans, so that each can be seen and clicked
_APART: Final = 24
# What throttles less is drawn at the bottom, in percent of the requested units
_LEAST_PERCENT: Final = 0.0001


def write_tradeoff(
    recommendation: Recommendation,
    advised: Candidate,
    title: str,
    lines: Sequence[str],
    limit: float,
    code_of: Callable[[str, Candidate], str],
    path: Path,
) -> None:
    """Write the trade-off to *path* as HTML. Raises `OSError`.

    Args:
        recommendation: What was found.
        advised: Its candidate that is marked, and whose code is shown first.
        title: The title, text.
        lines: The verdict, a line each, and where the traffic and the prices are from.
        limit: The limit of throttling, in percent of the requested units.
        code_of: Returns the code of a row, by its name and its candidate.
        path: The file.
    """
    rows = recommendation.rows
    chosen = next(number for number, (_, each) in enumerate(rows) if each is advised)
    scaled = len(rows) - len(recommendation.scaled)
    plans = [
        {
            "row": row,
            "policy": policy,
            "summary": each.summary,
            "usd": each.cost_per_month,
            "share": _percent(each.throttled_percent),
            "used": "" if each.utilization_percent is None else f"{each.utilization_percent:.0f} %",
            "code": code_of(policy, each),
            "kind": "advised" if each is advised else "scaled" if row >= scaled else "plan",
        }
        for row, (policy, each) in enumerate(rows)
    ]
    page = fill_page(
        "tradeoff.html",
        title,
        lines=lines,
        plans=plans,
        mark="recommended" if recommendation.is_within_limit else "throttles least",
        drawing=_drawing([each for _, each in rows], chosen, limit),
    )
    replace_file(path, page)


def _percent(percent: float) -> str:
    return f"{percent:.2f} %" if percent >= 1 else f"{percent:.2g} %"


def _drawing(plans: Sequence[Candidate], chosen: int, limit: float) -> dict[str, Any]:
    """Return the places of cost against throttling: of the axes, of the limit, and of each plan."""
    costs = [each.cost_per_month for each in plans]
    low, high = min(costs) * 0.97, max(costs) * 1.03 + 1
    most = max(*(each.throttled_percent for each in plans), limit, 10 * _LEAST_PERCENT)

    def place_x(usd: float) -> float:
        return _LEFT + (usd - low) / (high - low) * (_RIGHT - _LEFT)

    def place_y(percent: float) -> float:
        part = math.log(max(percent, _LEAST_PERCENT) / _LEAST_PERCENT) / math.log(most / _LEAST_PERCENT)
        return _BOTTOM - part * (_BOTTOM - _TOP)

    powers = [10.0**power for power in range(-4, 3) if 10.0**power <= most]
    exact = [(place_x(each.cost_per_month), place_y(each.throttled_percent)) for each in plans]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _RIGHT,
        "bottom": _BOTTOM,
        "shares": [(place_y(percent), "0 %" if percent == powers[0] else f"{percent:g} %") for percent in powers],
        "limit": (place_y(limit), f"limit {limit:g} %"),
        "costs": [(place_x(usd), usd) for usd in (low + (high - low) * number / 4 for number in range(5))],
        "places": list(zip(exact, _spread(exact, chosen), strict=True)),
    }


def _spread(exact: Sequence[tuple[float, float]], chosen: int) -> list[tuple[float, float]]:
    """Return where each plan is drawn: the chosen one at its place, the others as near to theirs as there is room."""
    steps = [step * _APART for step in range(-12, 13)]
    shifts = sorted(((x, y) for x in steps for y in steps), key=lambda shift: math.hypot(*shift))
    places = {chosen: exact[chosen]}
    for number, (x, y) in enumerate(exact):
        spots = ((x + right, y + down) for right, down in shifts)
        places[number] = places.get(number) or next(
            spot
            for spot in spots
            if _LEFT <= spot[0] <= _WIDTH - 12
            and 12 <= spot[1] <= _BOTTOM
            and all(math.dist(spot, other) >= _APART - 1 for other in places.values())
        )
    return [places[number] for number in range(len(exact))]
