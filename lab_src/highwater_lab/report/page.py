"""A rehearsal as one self-contained HTML page: curves to zoom into, with a reason for each change of capacity."""

from __future__ import annotations

import html
import json
import re
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import replace_file
from highwater_lab.physics import Cause
from highwater_lab.rehearse import Rehearsal
from highwater_lab.report.picture import Curves, Step, curves, shown_targets
from highwater_lab.report.terminal import advice, job_lines, share_text, span_text
from highwater_lab.simulation import Run, TargetRun
from highwater_lab.simulation.run import EventKind

_COLOURS: Final = {"demand": "#8a8f98", "consumed": "#1f77b4", "provisioned": "#c0392b", "band": "rgba(39,174,96,0.10)"}
_CAUSE_COLOURS: Final = {
    "provisioned": "#e67e22",
    "key-range": "#8e44ad",
    "index": "#d4ac0d",
    "account": "#2c3e50",
    "max-on-demand": "#16a085",
}


def write_page(rehearsal: Rehearsal, path: Path) -> None:
    """Write the HTML report of a rehearsal to *path*; the reader chooses the run to show. Raises `OSError`."""
    from plotly.offline import get_plotlyjs

    template = resources.files("highwater_lab.report").joinpath("page.html").read_text(encoding="utf-8")
    figures = [_figure(run) for run in rehearsal.runs]
    title = f"{rehearsal.setup.name} under {rehearsal.traffic.name}"
    parts = {
        "TITLE": html.escape(title),
        "SUBTITLE": html.escape(_subtitle(rehearsal)),
        "NOTES": "".join(f"<p class='note'>{html.escape(note)}</p>" for note in rehearsal.setup.notes),
        "OPTIONS": "".join(
            f"<option value='{number}'>{html.escape(run.policy)}</option>" for number, run in enumerate(rehearsal.runs)
        ),
        "ROWS": "".join(_row(number, run) for number, run in enumerate(rehearsal.runs)),
        # a "</script>" inside a string would end the script
        "FIGURES": json.dumps(figures).replace("<", "\\u003c"),
        "PLOTLY": get_plotlyjs(),
    }
    # all placeholders in one pass: a table's name that looks like a placeholder must not be replaced
    page = re.sub(r"@@([A-Z]+)@@", lambda match: parts[match[1]], template)
    replace_file(path, page.encode("utf-8", "replace"))


def _subtitle(rehearsal: Rehearsal) -> str:
    traffic = rehearsal.traffic
    point = -(-traffic.minutes // 3_000)
    thinned = f" Each point shows the busiest of {point} minutes." if point > 1 else ""
    coarse = (
        f" The traffic has bins of {traffic.source_bin_seconds // 60} minutes, which hide shorter bursts."
        if traffic.is_coarse
        else ""
    )
    return (
        f"{span_text(traffic.minutes)} from {traffic.start:%Y-%m-%d %H:%M} UTC; "
        f"{rehearsal.prices.name}.{thinned}{coarse}"
    )


def _row(number: int, run: Run) -> str:
    used = run.utilization_percent
    cells = (
        html.escape(run.policy),
        share_text(run),
        f"{len(run.throttled_minutes()):,}",
        f"{run.bill.per_month:,.2f}",
        f"{run.bill.warm_up:,.2f}" if run.bill.warm_up else "",
        "" if used is None else f"{used:.0f} %",
        f"{run.decreases:,}",
        f"{run.refused_decreases:,}",
    )
    return f"<tr data-run='{number}'>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _figure(run: Run) -> dict[str, Any]:
    """Return the Plotly figure of a run: for each target a panel of rates, and below it one of throttled units."""
    targets = shown_targets(run)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "margin": {"l": 60, "r": 16, "t": 40, "b": 40},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "barmode": "stack",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "title": {"text": "UTC"}, "anchor": f"y{2 * len(targets)}"},
        "annotations": [],
    }
    share = 1 / len(targets)
    named: set[Cause] = set()
    for number, target in enumerate(targets):
        top = 1 - number * share
        rates, throttles = f"y{2 * number + 1}" if number else "y", f"y{2 * number + 2}"
        layout[f"yaxis{rates[1:]}"] = {
            "domain": [top - 0.70 * share, top - 0.06 * share],
            "title": {"text": "units/s"},
            "rangemode": "tozero",
        }
        layout[f"yaxis{throttles[1:]}"] = {
            "domain": [top - 0.94 * share, top - 0.76 * share],
            "title": {"text": "throttled"},
            "rangemode": "tozero",
        }
        layout["annotations"].append(
            {
                "text": html.escape(target.label),
                "xref": "paper",
                "yref": "paper",
                "x": 0,
                "y": top - 0.055 * share,
                "showarrow": False,
                "yanchor": "bottom",
                "font": {"size": 14},
            }
        )
        drawn = curves(run, target)
        data.extend(_traces(run, target, drawn, rates, throttles, named))
        named |= drawn.throttled.keys()
    return {
        "data": data,
        "layout": layout,
        "height": 430 * len(targets) + 60,
        "advice": [html.escape(line) for line in (*job_lines(run), *(advice(run) or ["nothing is throttled"]))],
    }


def _traces(
    run: Run, target: TargetRun, drawn: Curves, rates: str, throttles: str, named: set[Cause]
) -> list[dict[str, Any]]:
    """Return the traces of a target; *named* are the causes that already have an entry in the legend."""
    is_first = rates == "y"
    times = [_text(at) for at in drawn.times]
    traces = []
    if drawn.provisioned is not None and drawn.floor is not None and drawn.ceiling is not None:
        # a ceiling above the other curves would flatten them; it is hidden until the reader clicks on its legend
        highest = max(*drawn.demand, *drawn.provisioned.values)
        is_near = max(drawn.ceiling.values) <= 1.25 * highest
        band = {"fill": "tonexty", "fillcolor": _COLOURS["band"]} if is_near else {}
        ceiling = {} if is_near else {"visible": "legendonly"}
        traces.append(_step("ceiling", drawn.ceiling, rates, "rgba(39,174,96,0.5)", is_first) | ceiling)
        traces.append(_step("floor", drawn.floor, rates, "#27ae60", is_first) | band)
    traces.append(_rates("consumed", drawn.consumed, drawn, rates, is_first))
    traces.append(_rates("demand", drawn.demand, drawn, rates, is_first))
    if drawn.provisioned is not None:
        provisioned = _step("provisioned", drawn.provisioned, rates, _COLOURS["provisioned"], is_first)
        traces.append(provisioned | {"line": {"width": 2, "color": _COLOURS["provisioned"], "shape": "hv"}})
        traces.append(_events(run, target, rates, is_first))
    for cause, units in drawn.throttled.items():
        traces.append(
            {
                "type": "bar",
                "name": f"throttled: {cause}",
                "legendgroup": f"throttled {cause}",
                "showlegend": cause not in named,
                "x": times,
                "y": [round(value, 1) for value in units],
                "yaxis": throttles,
                "marker": {"color": _CAUSE_COLOURS[cause], "line": {"width": 1, "color": _CAUSE_COLOURS[cause]}},
                "hovertemplate": f"throttled, {cause}: %{{y:,.0f}} units<extra></extra>",
            }
        )
    if not drawn.throttled:
        # Plotly does not draw an axis without a trace
        traces.append(
            {"type": "bar", "x": times[:1], "y": [0], "yaxis": throttles, "showlegend": False, "hoverinfo": "skip"}
        )
    return traces


def _rates(name: str, values: tuple[float, ...], drawn: Curves, axis: str, is_first: bool) -> dict[str, Any]:
    """Return a line of rates.

    The hover text of demand shows capacity and bounds too, because their own lines have points only at changes.
    """
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": is_first,
        "x": [_text(at) for at in drawn.times],
        "y": [round(value, 2) for value in values],
        "yaxis": axis,
        "line": {"width": 1, "color": _COLOURS[name]},
        "hovertemplate": f"{name} %{{y:,.0f}}/s<extra></extra>",
    }
    if name == "consumed":
        return trace | {"fill": "tozeroy", "fillcolor": "rgba(31,119,180,0.15)"}
    if drawn.provisioned is None or drawn.floor is None or drawn.ceiling is None:
        return trace
    lines = (drawn.provisioned, drawn.floor, drawn.ceiling)
    columns = [line.at_each(drawn.times) for line in lines]
    trace["customdata"] = [list(row) for row in zip(*columns, strict=True)]
    trace["hovertemplate"] = (
        "demand %{y:,.0f}/s<br>provisioned %{customdata[0]:,}/s<br>floor %{customdata[1]:,}, ceiling %{customdata[2]:,}"
        "<extra></extra>"
    )
    return trace


def _step(name: str, step: Step, axis: str, colour: str, is_first: bool) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": is_first,
        "x": [_text(at) for at in step.times],
        "y": list(step.values),
        "yaxis": axis,
        "line": {"width": 1, "color": colour, "shape": "hv"},
        "hoverinfo": "skip",
    }


def _events(run: Run, target: TargetRun, axis: str, is_first: bool) -> dict[str, Any]:
    """Return a marker at each change of capacity and each refusal, with the event's explanation as hover text."""
    events = [
        event
        for event in run.events
        if event.index == target.index
        and event.dimension in (None, target.dimension)
        and event.kind is not EventKind.BOUNDS
    ]
    heights, units = [], 0
    changes = iter([*target.capacity, (run.minutes * 60 + 1, 0)])
    at, following = next(changes)
    for event in events:
        while at <= event.at:
            units, (at, following) = following, next(changes)
        heights.append(units)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "why",
        "legendgroup": "why",
        "showlegend": is_first,
        "x": [_text(run.start + timedelta(seconds=event.at)) for event in events],
        "y": heights,
        "yaxis": axis,
        "text": [html.escape(f"{event.kind}: {event.text}") for event in events],
        "marker": {"size": 6, "color": _COLOURS["provisioned"], "symbol": "diamond"},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
