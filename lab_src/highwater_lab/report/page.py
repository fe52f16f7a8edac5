"""A rehearsal as one self-contained HTML page: the verdict, the plan and what it costs, and charts to zoom into."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.files import replace_file
from highwater_lab.rehearse import Passed, Rehearsal
from highwater_lab.rehearse.rehearsal import WITHOUT_QUEUE
from highwater_lab.report.pages import fill_page
from highwater_lab.report.picture import Curves, curves, shown_targets
from highwater_lab.report.plan import declared_text, plan_lines, zone_of
from highwater_lab.report.terminal import advice, config_text, figures, shard_lines, share_text, span_text, work_lines
from highwater_lab.simulation import QueueRun, Run, TargetRun
from highwater_lab.simulation.run import EventKind

# A fortnight has a point for each minute
_MOST_POINTS: Final = 14 * 1440


def write_page(rehearsal: Rehearsal, path: Path, passed: Sequence[Passed] = ()) -> None:
    """Write the HTML report of a rehearsal to *path*; *passed* are the limits exceeded. Raises `OSError`."""
    run, setup = rehearsal.declared, rehearsal.setup
    data = json.dumps(_data(rehearsal), separators=(",", ":")).encode()
    shown = shown_targets(run)
    page = fill_page(
        "rehearsal.html",
        f"{setup.name} under {rehearsal.traffic.name}",
        name=setup.name,
        declared=run,
        verdict=_verdict(rehearsal),
        throttled=_throttled,
        passed=passed,
        span=_span(rehearsal),
        notes=setup.notes,
        runs=[_shown_run(rehearsal, each) for each in rehearsal.runs],
        shards=shard_lines(rehearsal),
        schedule=plan_lines(setup),
        shown=[each.label for each in shown],
        idle=[each.label for each in run.targets if each not in shown],
        data=base64.b64encode(zlib.compress(data, 9)).decode(),
    )
    replace_file(path, page)


def _verdict(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return whether the queue is late, what the declared plan throttles, and what would cost less."""
    run, others = rehearsal.declared, [run for run in rehearsal.runs[1:] if run.policy != "clairvoyant"]
    at_once = None
    if is_late := run.queue is not None and run.queue.is_late:
        # its dollars are for other work than those with the queue
        at_once = next((each for each in others if each.policy == WITHOUT_QUEUE), None)
        others = [each for each in others if each.queue and each.queue.left_units <= run.queue.left_units]
    better = [
        each
        for each in others
        if each.bill.per_month < run.bill.per_month and each.throttled_per_million <= run.throttled_per_million
    ]
    return {
        "is_late": is_late,
        "worst": _worst(run),
        "at_once": at_once,
        "better": min(better, key=lambda each: each.bill.per_month, default=None),
        "is_cheapest": bool(others) and not better and not is_late,
    }


def _throttled(run: Run) -> str:
    """Return the throttled share of a run in words."""
    return "nothing" if run.worst_minute() is None else f"{share_text(run)} of the requested units"


def _worst(run: Run) -> str:
    """Return the number of throttled minutes and the worst of them, empty if nothing is throttled."""
    worst, minutes = run.worst_minute(), len(run.throttled_minutes())
    if worst is None:
        return ""
    at = run.start + timedelta(minutes=worst[0])
    return f"{minutes:,} minute{'s' * (minutes > 1)}, worst {at:%a %Y-%m-%d %H:%M} UTC"


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


def _shown_run(rehearsal: Rehearsal, run: Run) -> dict[str, Any]:
    """Return a policy's row in the first table, the lines below it, and what each part of the plan costs."""
    own, queue = figures(run), run.queue
    unwritten = {"unwritten": f"{queue.left_units:,}" if queue else ""} if rehearsal.declared.queue else {}
    once = {"once, $": own.pop("once")}
    usd, throttled, minutes = own.pop("$/month"), own.pop("throttled"), own.pop("minutes")
    cells = {"$/month": f"${usd}", "throttled": throttled, **unwritten, "minutes": minutes, **once, **own}
    parts = [
        (target.label, cost, declared_text(rehearsal.setup, target), share_text(target), _peak(target))
        for target, cost in zip(run.targets, run.bill.targets_per_month, strict=True)
    ]
    if run.bill.scaler_per_month:
        parts.append(("alarms and metrics", run.bill.scaler_per_month, "", "", ""))
    if run.bill.has_config_recorder:
        parts.append(("AWS Config", run.bill.config_per_month, "", "", ""))
    return {
        "policy": run.policy,
        "cells": cells,
        "lines": [*work_lines(run), *(advice(run) or ["nothing is throttled"])],
        "parts": [*parts, (run.policy, run.bill.per_month, "", share_text(run), "")],
    }


def _peak(target: TargetRun) -> str:
    return f"{most:,}" if (most := max(units for _, units in target.capacity)) else ""


def _data(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return what the charts draw; times are seconds from the start, but those of points, which are numbered."""
    traffic = rehearsal.traffic
    return {
        "start": int(traffic.start.timestamp()),
        "minutes": traffic.minutes,
        "step": -(-traffic.minutes // _MOST_POINTS),
        "zone": zone_of(rehearsal.setup),
        "runs": [{"name": run.policy} for run in rehearsal.runs],
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
