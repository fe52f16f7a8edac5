"""A rehearsal as one self-contained HTML page: the verdict, the plan and what it costs, and charts to zoom into."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.files import replace_file
from highwater_lab.rehearse import Passed, Rehearsal
from highwater_lab.rehearse.rehearsal import WITHOUT_QUEUE
from highwater_lab.report.picture import Curves, curves, shown_targets
from highwater_lab.report.plan import declared_text, plan_lines, zone_of
from highwater_lab.report.terminal import advice, config_text, figures, shard_lines, share_text, span_text, work_lines
from highwater_lab.simulation import QueueRun, Run, TargetRun
from highwater_lab.simulation.run import EventKind

# A fortnight has a point for each minute
_MOST_POINTS: Final = 14 * 1440
_COLOURS: Final = ("#c0392b", "#7d3cba", "#117a65", "#b9770e", "#2c3e50", "#d6338f", "#4e7d0e", "#2471a3")
_TIME: Final = re.compile(r"([A-Z][a-z]{2}) (\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC")
_WORDS: Final = {
    "declared": "What the template declares: its own capacity, auto scaling, windows and scaler.",
    "without queue": "What the template declares, but with all writes sent to the table at once.",
    "without shards": "What the template declares, but with one key in the place of its shards.",
    "native": "Application Auto Scaling alone, at this target utilization, without windows.",
    "on-demand": "On-demand capacity mode: nothing is provisioned, each request is paid for.",
    "fixed": "Constant capacity, which nothing scales.",
    "highwater-floor": "Highwater's scaler, which raises and lowers the floors of auto scaling.",
    "highwater-direct": "Highwater's scaler, which sets the capacity itself, without auto scaling.",
    "highwater-floor-pulse": "Highwater's scaler moves floors, and clients report their demand by pulses.",
    "highwater-direct-pulse": "Highwater's scaler sets the capacity, and clients report their demand by pulses.",
    "clairvoyant": "The cheapest hourly capacities that throttle nothing, with all demand known in advance: a lower "
    "bound of the cost, which nobody can deploy.",
    "$/month": "USD for a month of 730 hours of this traffic, without what is paid once.",
    "throttled": "The share of the requested units that DynamoDB refuses because capacity is missing.",
    "minutes": "The minutes in which anything is throttled.",
    "once, $": "USD paid once, for raising the high-water mark.",
    "unwritten": "Write units that still wait in the queue when the traffic ends. No cost is counted for them.",
    "used": "Consumed over provisioned units. Above 100 %, the burst bucket supplied the difference.",
    "decreases": "Decreases of capacity that DynamoDB accepted; it allows a limited number a day.",
    "refused": "Decreases of capacity that DynamoDB refused, because the day's allowed decreases were used up. "
    "Capacity stays high, and is paid for, until the next is allowed.",
    "peak": "The most units per second that were provisioned.",
}


def fill_page(title: str, body: str, script: str, connects: str = "'none'") -> bytes:
    """Return a page of the lab with this title (text), body and script, self-contained.

    *connects* is where its script may send requests, a source of a content security policy; by default nowhere.
    """
    template = resources.files("highwater_lab.report").joinpath("page.html").read_text(encoding="utf-8")
    parts = {"TITLE": html.escape(title), "BODY": body, "SCRIPT": script, "CONNECTS": connects}
    # all placeholders in one pass: a table's name that looks like a placeholder must not be replaced
    page = re.sub(r"@@([A-Z]+)@@", lambda match: parts[match[1]], template)
    return page.encode("utf-8", "replace")


def word(name: str, explained: Mapping[str, str] = _WORDS) -> str:
    """Return a word as HTML, with its explanation on hover or focus if there is one."""
    meaning = explained.get(name) or explained.get(name.partition(":")[0])
    text = html.escape(name)
    return text if meaning is None else f'<abbr data-tip="{html.escape(meaning)}">{text}</abbr>'


def write_page(rehearsal: Rehearsal, path: Path, passed: Sequence[Passed] = ()) -> None:
    """Write the HTML report of a rehearsal to *path*; *passed* are the limits exceeded. Raises `OSError`."""
    title = f"{rehearsal.setup.name} under {rehearsal.traffic.name}"
    data = json.dumps(_data(rehearsal), separators=(",", ":")).encode()
    compressed = base64.b64encode(zlib.compress(data, 9)).decode()
    body = "\n".join(
        [
            f"<h1>{html.escape(title)}</h1>",
            f"<p class='verdict'>{_verdict(rehearsal)}</p>",
            *(f"<p class='limit'>✗ {html.escape(each.text)}</p>" for each in passed),
            f"<p>{_times(_span(rehearsal))}</p>",
            *(f"<p class='note'>{html.escape(note)}</p>" for note in rehearsal.setup.notes),
            _policies(rehearsal),
            *(f"<p>{html.escape(line)}</p>" for line in shard_lines(rehearsal)),
            *(_advice(number, run) for number, run in enumerate(rehearsal.runs)),
            "<h2>The rehearsed plan, and what each part of it costs</h2>",
            _plan(rehearsal),
            *_charts(rehearsal),
            f"<script type='text/plain' id='data'>{compressed}</script>",
        ]
    )
    script = resources.files("highwater_lab.report").joinpath("charts.js").read_text(encoding="utf-8")
    replace_file(path, fill_page(title, body, script))


def _verdict(rehearsal: Rehearsal) -> str:
    """Return whether the queue is late, what the declared plan costs and throttles, and what would cost less."""
    run, others = rehearsal.declared, [run for run in rehearsal.runs[1:] if run.policy != "clairvoyant"]
    cost = run.bill.per_month
    name = html.escape(rehearsal.setup.name)
    sentences = [f"As declared, {name} costs <b>${cost:,.0f} a month</b> and throttles <b>{_throttled(run)}</b>."]
    if run.queue is not None and run.queue.is_late:
        sentences = [_lateness(run.queue), *sentences, *_at_once(others)]
        others = [each for each in others if each.queue and each.queue.left_units <= run.queue.left_units]
    better = [
        each
        for each in others
        if each.bill.per_month < cost and each.throttled_per_million <= run.throttled_per_million
    ]
    if better:
        best = min(better, key=lambda each: each.bill.per_month)
        usd = best.bill.per_month
        sentences.append(
            f"{word(best.policy)} would cost <b>${usd:,.0f}</b>, ${cost - usd:,.0f} less, and throttle "
            f"{_throttled(best, with_worst=False)}."
        )
    elif others and not (run.queue and run.queue.is_late):
        sentences.append("No compared policy costs less without throttling more.")
    return " ".join(sentences)


def _lateness(queue: QueueRun) -> str:
    oldest, drain = timedelta(seconds=queue.oldest_seconds), timedelta(seconds=queue.buffer.drain_seconds)
    if queue.ages[-1] < queue.buffer.drain_seconds:
        return f"The queue is late: <b>a write waits for up to {oldest}</b>, where {drain} is declared."
    return (
        f"The queue does not drain: <b>{queue.left_units:,} write units are unwritten</b> at the end, and the oldest "
        f"has waited for <b>{oldest}</b>, where {drain} is declared."
    )


def _at_once(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what the table would cost without the queue, whose dollars are for other work than those with it."""
    for run in runs:
        if run.policy == WITHOUT_QUEUE:
            yield (
                f"That leaves out what waits: {word(WITHOUT_QUEUE)}, all is written at once, for "
                f"<b>${run.bill.per_month:,.0f}</b>, with {_throttled(run, with_worst=False)} throttled."
            )


def _throttled(run: Run, *, with_worst: bool = True) -> str:
    worst = run.worst_minute()
    if worst is None:
        return "nothing"
    text = f"{share_text(run)} of the requested units"
    if not with_worst:
        return text
    minutes = len(run.throttled_minutes())
    at = run.start + timedelta(minutes=worst[0])
    worst_at = _times(f"{at:%a %Y-%m-%d %H:%M} UTC")
    return f"{text}</b> ({minutes:,} minute{'s' * (minutes > 1)}, worst {worst_at})<b>"


def _span(rehearsal: Rehearsal) -> str:
    traffic = rehearsal.traffic
    point = -(-traffic.minutes // _MOST_POINTS)
    end = traffic.start + timedelta(minutes=traffic.minutes)
    thinned = f" Each point of the charts is the busiest of {point} minutes." if point > 1 else ""
    coarse = (
        f" The traffic has bins of {traffic.source_bin_seconds // 60} minutes, which hide shorter bursts."
        if traffic.is_coarse
        else ""
    )
    return (
        f"{span_text(traffic.minutes)}, {traffic.start:%a %Y-%m-%d %H:%M} UTC to {end:%a %Y-%m-%d %H:%M} UTC; "
        f"{rehearsal.prices.name}{config_text(rehearsal.declared.bill)}.{thinned}{coarse}"
    )


def _policies(rehearsal: Rehearsal) -> str:
    unwritten = ("unwritten",) if rehearsal.declared.queue else ()
    heads = ("policy", "$/month", "throttled", *unwritten, "minutes", "once, $", "used", "decreases", "refused")
    rows = []
    for number, run in enumerate(rehearsal.runs):
        own = figures(run)
        first = (f"<b>${own.pop('$/month')}</b>", own.pop("throttled"))
        left = (f"{run.queue.left_units:,}" if run.queue else "",) if unwritten else ()
        cells = (*first, *left, *own.values())
        box = f"<input type='checkbox' checked style='accent-color:{_colour(number)}' aria-label='show in the charts'>"
        rows.append(
            f"<tr data-row='{number}'><td>{box} {word(run.policy)}</td>"
            + "".join(f"<td data-label='{head}'>{cell}</td>" for head, cell in zip(heads[1:], cells, strict=True))
            + "</tr>"
        )
    return _table("policies", heads, f"<tbody>{''.join(rows)}</tbody>")


def _table(name: str, heads: Sequence[str], bodies: str) -> str:
    head = "".join(f"<th>{word(each)}</th>" for each in heads)
    return f"<div class='scroll folds'><table id='{name}'><thead><tr>{head}</tr></thead>{bodies}</table></div>"


def _advice(number: int, run: Run) -> str:
    lines = [*work_lines(run), *(advice(run) or ["nothing is throttled"])]
    items = "".join(f"<li>{_times(line)}</li>" for line in lines)
    return f"<ul data-of='{number}'{' hidden' * (number > 0)}>{items}</ul>"


def _plan(rehearsal: Rehearsal) -> str:
    """Return the table of targets with what is declared and costs each policy, and the lines of the schedule."""
    heads = ("part", "$/month", "declared as", "throttled", "peak")
    bodies = []
    for number, run in enumerate(rehearsal.runs):
        hidden = " hidden" * (number > 0)
        parts = [
            (html.escape(target.label), declared_text(rehearsal.setup, target), usd, share_text(target), _peak(target))
            for target, usd in zip(run.targets, run.bill.targets_per_month, strict=True)
        ]
        if run.bill.scaler_per_month:
            parts.append(("alarms and metrics", "", run.bill.scaler_per_month, "", ""))
        if run.bill.has_config_recorder:
            parts.append(("AWS Config", "", run.bill.config_per_month, "", ""))
        parts.append((f"<b>{html.escape(run.policy)}</b>", "", run.bill.per_month, share_text(run), ""))
        rows = "".join(
            f"<tr><td>{part}</td><td class='usd'>{usd:,.2f}</td><td>{declared}</td>"
            f"<td data-label='throttled'>{share}</td><td data-label='peak'>{peak}</td></tr>"
            for part, declared, usd, share, peak in parts
        )
        bodies.append(f"<tbody data-of='{number}'{hidden}>{rows}</tbody>")
    lines = "".join(f"<li>{_times(line)}</li>" for line in plan_lines(rehearsal.setup))
    return _table("plan", heads, "".join(bodies)) + f"<ul id='schedule'>{lines}</ul>" * bool(lines)


def _peak(target: TargetRun) -> str:
    return f"{most:,}" if (most := max(units for _, units in target.capacity)) else ""


def _charts(rehearsal: Rehearsal) -> Iterator[str]:
    moves = (("in", "+"), ("out", "−"), ("back", "←"), ("on", "→"), ("all", "all"))
    queue = rehearsal.declared.queue
    blue = (
        "Blue is what was requested" if queue is None else "Blue is what was requested, dark blue what the queue writes"
    )
    yield (
        "<h2>Requested units and capacity, units per second</h2>"
        f"<p>{blue}; each policy is a line in its colour, laid over the others. Click a row of the "
        "first table for its floor and, where it is that low, its ceiling (green, dashed) and the reasons for its "
        "changes (diamonds). Drag to zoom, double-click to zoom out. "
        + " ".join(f"<button data-move='{move}'>{label}</button>" for move, label in moves)
        + "</p>"
    )
    if queue is not None:
        label = "queue: hours that the oldest write has waited"
        yield f"<h2>{label}</h2><canvas role='img' aria-label='{label}'></canvas>"
    for target in shown_targets(rehearsal.declared):
        label = html.escape(target.label)
        yield f"<h2>{label}</h2><canvas role='img' aria-label='{label}: requested units and capacity'></canvas>"
    shown = shown_targets(rehearsal.declared)
    if idle := [html.escape(each.label) for each in rehearsal.declared.targets if each not in shown]:
        yield f"<p>Nothing is requested of {', '.join(idle)}: without a chart, but what is provisioned is paid for.</p>"


def _data(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return what the charts draw; times are seconds from the start, but those of points, which are numbered."""
    traffic = rehearsal.traffic
    zone = zone_of(rehearsal.setup)
    return {
        "start": int(traffic.start.timestamp()),
        "minutes": traffic.minutes,
        "step": -(-traffic.minutes // _MOST_POINTS),
        "zone": zone,
        "runs": [{"name": run.policy, "colour": _colour(number)} for number, run in enumerate(rehearsal.runs)],
        "targets": [
            *([] if rehearsal.declared.queue is None else [_ages(rehearsal.runs, rehearsal.declared.queue)]),
            *(
                _target(rehearsal.runs, [run.target(target.dimension, target.index) for run in rehearsal.runs])
                for target in shown_targets(rehearsal.declared)
            ),
        ],
    }


def _target(runs: Sequence[Run], targets: Sequence[TargetRun]) -> dict[str, Any]:
    drawn = [curves(run, target, _MOST_POINTS) for run, target in zip(runs, targets, strict=True)]
    direct = [each for each, run in zip(drawn, runs, strict=True) if run.policy == WITHOUT_QUEUE]
    is_queued = bool(direct) and targets[0].dimension is Dimension.WRITE
    return {
        "unit": "/s",
        "demand": _most(direct if is_queued else drawn),
        "written": _most([each for each in drawn if each not in direct]) if is_queued else [],
        "runs": [
            {
                "units": [] if each.provisioned is None else target.capacity,
                "bounds": [] if each.provisioned is None else target.bounds,
                "throttled": [
                    [point, round(sum(units), 1), ", ".join(c for c, n in zip(each.throttled, units, strict=True) if n)]
                    for point, units in enumerate(zip(*each.throttled.values(), strict=True))
                    if any(units)
                ],
                "why": list(_reasons(run, target)),
            }
            for run, target, each in zip(runs, targets, drawn, strict=True)
        ],
    }


def _most(drawn: Sequence[Curves]) -> list[float]:
    """Return the highest demand at each point.

    Where the table throttles a write, it does not reach an index: the policy that lets most through knows the demand.
    """
    demand = (max(values) for values in zip(*(each.demand for each in drawn), strict=True))
    return [round(value) if value >= 100 else round(value, 1) for value in demand]


def _ages(runs: Sequence[Run], queue: QueueRun) -> dict[str, Any]:
    """Return the chart of how long the oldest write waits under each policy with the queue, in hours."""
    return {
        "unit": " h",
        "limit": queue.buffer.drain_seconds / 3600,
        "demand": [],
        "written": [],
        "runs": [
            {"units": _hours(run.queue.ages) if run.queue else [], "bounds": [], "throttled": [], "why": []}
            for run in runs
        ],
    }


def _hours(ages: Sequence[int]) -> list[tuple[int, float]]:
    hours = [round(age / 3600, 1) for age in ages]
    return [
        (60 * at, now) for at, (now, before) in enumerate(zip(hours, [None, *hours[:-1]], strict=True)) if now != before
    ]


def _reasons(run: Run, target: TargetRun) -> Iterator[tuple[int, str]]:
    """Yield when and why the capacity changed, or a change was refused."""
    for event in run.events:
        if (
            event.index == target.index
            and event.dimension in (None, target.dimension)
            and event.kind is not EventKind.BOUNDS
        ):
            yield event.at, f"{event.kind}: {event.text}"


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _times(text: str) -> str:
    """Return a text as HTML, with each instant marked: the page's script adds the local time to it."""
    return _TIME.sub(r"<time datetime='\2T\3Z'>\g<0></time>", html.escape(text))
