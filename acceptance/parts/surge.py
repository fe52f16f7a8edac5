"""A surge of ten times the usual load on two equal tables, one of them with the scaler; and the delay of metrics."""

from __future__ import annotations

import statistics
from typing import Final

from acceptance.sending import CALM, PEAK, check_sent, load_of, watch_datapoints, whole_minute, writes
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import CEILING
from highwater.core import Dimension
from highwater_lab.local.load import LoadReport

_LEVELS: Final = ((4, CALM), (12, PEAK))
_MINUTES: Final = sum(minutes for minutes, _ in _LEVELS)
# Calm minutes before, so that the alarms of target tracking have a history
_LEAD: Final = 20
# How late a datapoint may come, in minutes
_LATE: Final = 5
_FEWEST_DATAPOINTS: Final = 10


@part(minutes=50, units=2 * (5 + CEILING))
def surge(stage: Stage) -> None:
    """A surge with and without the scaler; the delay of metrics."""
    names = stage.deploy("Surge")
    native, scaled = (next(name.table for name in names if f"-{kind}" in name.table) for kind in ("Native", "Scaled"))
    start = whole_minute(stage.now() + _LEAD * MINUTE)
    stage.wait_until(start, "no traffic, as alarms need a history")
    stage.check("alarms of the scaler that are in ALARM without traffic", [], _alarms(stage))
    ends = start + (_MINUTES + _LATE) * MINUTE
    loads = [load_of(stage, table, writes(_LEVELS, start)) for table in (native, scaled)]
    with stage.busy(f"{_MINUTES} minutes of traffic on both tables, from {CALM} to {PEAK} writes/s"):
        *reports, delays = stage.place.side_by_side(loads, lambda: watch_datapoints(stage, native, ends))
    _compare(stage, *reports)
    seen = len(delays)
    stage.check("minutes whose datapoint was seen to come", "10 or more", seen, holds=seen >= _FEWEST_DATAPOINTS)
    if delays:
        stage.measure("metric_delay_median_seconds", round(statistics.median(delays)), assumed="150")
        stage.measure("metric_delay_most_seconds", round(max(delays)), assumed="150")


def _alarms(stage: Stage) -> list[str]:
    pages = stage.place.client("cloudwatch").get_paginator("describe_alarms")
    found = pages.paginate(AlarmNamePrefix=stage.cdk.full_name("Surge"), StateValue="ALARM")
    return sorted(alarm["AlarmName"] for page in found for alarm in page["MetricAlarms"])


def _compare(stage: Stage, native: LoadReport, scaled: LoadReport) -> None:
    throttled = [report.total(Dimension.WRITE, "throttled") for report in (native, scaled)]
    stage.check(
        "throttled units with the scaler, compared with target tracking alone",
        f"less than half of {throttled[0]:,.0f}",
        f"{throttled[1]:,.0f}",
        holds=throttled[0] > 0 and throttled[1] < throttled[0] / 2,
    )
    for kind, report, units in zip(("native", "scaled"), (native, scaled), throttled, strict=True):
        check_sent(stage, report, _LEVELS, f"the {kind} table")
        stage.measure(f"surge_throttled_{kind}", round(units), assumed="what a run on the local cloud shows")
