"""A recommendation's trade-off as one self-contained HTML page: a click on a plan shows its code."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from highwater_lab.files import replace_file
from highwater_lab.recommend import Candidate, Recommendation
from highwater_lab.report.page import fill_page, word

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 400, 66, 380, 44, 350
# Between the middles of two plans, so that each can be seen and clicked
_APART: Final = 24
# What throttles less is drawn at the bottom, in percent of the requested units
_LEAST_PERCENT: Final = 0.0001
_SCRIPT: Final = """
const choose = row => {
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== row;
  for (const part of plans) part.setAttribute("aria-selected", part.dataset.row === row);
};
const plans = document.querySelectorAll("[data-row]");
for (const part of plans) {
  part.addEventListener("click", () => choose(part.dataset.row));
  part.addEventListener("keydown", event => { if (event.key === "Enter") choose(part.dataset.row); });
}
"""


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
    mark = "recommended" if recommendation.is_within_limit else "throttles least"
    body = "\n".join(
        [
            f"<h1>{html.escape(title)}</h1>",
            f"<p class='verdict'>{html.escape(lines[0])}</p>",
            *(f"<p>{html.escape(line)}</p>" for line in lines[1:]),
            "<p>Each number is a plan: click it, here or in the table, to see its code.</p>",
            _drawing([each for _, each in rows], chosen, limit, len(rows) - len(recommendation.scaled)),
            _table(rows, chosen, mark),
            *(
                f"<section data-of='{number}'{' hidden' * (number != chosen)}><h2>{number + 1}. "
                f"{html.escape(_name(policy, each))}</h2><pre>"
                f"{html.escape(code_of(policy, each))}</pre></section>"
                for number, (policy, each) in enumerate(rows)
            ),
        ]
    )
    replace_file(path, fill_page(title, body, _SCRIPT))


def _name(policy: str, candidate: Candidate) -> str:
    return f"{policy}: {candidate.summary}" if policy else candidate.summary


def _percent(percent: float) -> str:
    return f"{percent:.2f} %" if percent >= 1 else f"{percent:.2g} %"


def _table(rows: Sequence[tuple[str, Candidate]], chosen: int, mark: str) -> str:
    heads = "".join(f"<th>{word(name)}</th>" for name in ("plan", "$/month", "throttled", "used"))
    lines = []
    for number, (policy, each) in enumerate(rows):
        used = each.utilization_percent
        name = word(policy) + ": " + html.escape(each.summary) if policy else word(each.summary)
        lines.append(
            f"<tr data-row='{number}' tabindex='0' aria-selected='{str(number == chosen).lower()}'>"
            f"<td>{number + 1}. {name}{f' <b>← {mark}</b>' * (number == chosen)}</td>"
            f"<td class='usd'>{each.cost_per_month:,.2f}</td><td>{_percent(each.throttled_percent)}</td>"
            f"<td>{'' if used is None else f'{used:.0f} %'}</td></tr>"
        )
    return (
        f"<div class='scroll'><table id='plans'><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        "</div>"
    )


def _drawing(plans: Sequence[Candidate], chosen: int, limit: float, scaled: int) -> str:
    """Return cost against throttling as SVG; the plans from number *scaled* on are the scaler's."""
    costs = [each.cost_per_month for each in plans]
    low, high = min(costs) * 0.97, max(costs) * 1.03 + 1
    most = max(*(each.throttled_percent for each in plans), limit, 10 * _LEAST_PERCENT)

    def place_x(usd: float) -> float:
        return _LEFT + (usd - low) / (high - low) * (_RIGHT - _LEFT)

    def place_y(percent: float) -> float:
        part = math.log(max(percent, _LEAST_PERCENT) / _LEAST_PERCENT) / math.log(most / _LEAST_PERCENT)
        return _BOTTOM - part * (_BOTTOM - _TOP)

    parts = [f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='cost against throttling' font-size='13'>"]
    for power in range(-4, 3):
        if 10.0**power <= most:
            y = place_y(10.0**power)
            text = "0 %" if power == -4 else f"{10.0**power:g} %"
            parts.append(f"<path d='M{_LEFT} {y:.1f}H{_RIGHT}' stroke='#e4e8ec'/>")
            parts.append(f"<text x='{_LEFT - 8}' y='{y + 4:.1f}' text-anchor='end' fill='#57606a'>{text}</text>")
    y = place_y(limit)
    parts.append(f"<path d='M{_LEFT} {y:.1f}H{_RIGHT}' stroke='#b42318' stroke-dasharray='5 4'/>")
    parts.append(f"<text x='{_LEFT + 4}' y='{y - 5:.1f}' fill='#b42318'>limit {limit:g} %</text>")
    for number in range(5):
        usd = low + (high - low) * number / 4
        anchor = "start" if number == 0 else "end" if number == 4 else "middle"
        parts.append(
            f"<text x='{place_x(usd):.1f}' y='{_BOTTOM + 26}' text-anchor='{anchor}' fill='#57606a'>${usd:,.0f}</text>"
        )
    parts.append(f"<text x='{_RIGHT}' y='{_BOTTOM + 44}' text-anchor='end' fill='#57606a'>USD a month</text>")
    parts.append("<text x='4' y='14' fill='#57606a'>throttled</text>")
    exact = [(place_x(each.cost_per_month), place_y(each.throttled_percent)) for each in plans]
    places = _spread(exact, chosen)
    for (own_x, own_y), (x, y) in zip(exact, places, strict=True):
        if (x, y) != (own_x, own_y):
            parts.append(f"<path d='M{own_x:.1f} {own_y:.1f}L{x:.1f} {y:.1f}' stroke='#57606a'/>")
            parts.append(f"<circle cx='{own_x:.1f}' cy='{own_y:.1f}' r='3' fill='#57606a'/>")
    # the chosen plan is drawn last, over the others
    for number, each in sorted(enumerate(plans), key=lambda item: item[0] == chosen):
        colour = "#c0392b" if number == chosen else "#7d3cba" if number >= scaled else "#1f6fb4"
        x, y = places[number]
        parts.append(
            f"<g data-row='{number}' tabindex='0' role='button' style='cursor:pointer'><title>"
            f"{html.escape(each.summary)}: ${each.cost_per_month:,.0f}, {_percent(each.throttled_percent)}</title>"
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='11' fill='{colour}' stroke='#fff'/>"
            f"<text x='{x:.1f}' y='{y + 4:.1f}' text-anchor='middle' fill='#fff'>{number + 1}</text></g>"
        )
    return "".join([*parts, "</svg>"])


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
