"""A surge of ten times the usual load on two equal tables, one of them with the scaler."""

from __future__ import annotations

import statistics
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from acceptance.cdk import App
from acceptance.deployed import Deployed
from acceptance.parts.part import Part
from acceptance.sending import check_sent, load_of, sending
from acceptance.stage import Stage
from highwater.core import Dimension
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.template import find_table, load_templates
from highwater_lab.traffic import Stream, Traffic

_APP: Final = App("examples/side_by_side/app.py", "SideBySide")
_MINUTE: Final = timedelta(minutes=1)
_CALM, _SURGE = 27, 270
_LEVELS: Final = ((4, _CALM), (14, _SURGE))
_MINUTES: Final = sum(minutes for minutes, _ in _LEVELS)
# Calm minutes before, so that the alarms of target tracking have a history
_LEAD: Final = 20
_POLL_SECONDS: Final = 0.25
_THREADS: Final = 24


class _Datapoints:
    """Sees when each minute's consumption comes to CloudWatch, in a thread while a block runs."""

    def __init__(self, stage: Stage, table: str) -> None:
        self._place = stage.place
        self._table = table
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._first_look: datetime | None = None
        self.delays: dict[datetime, float] = {}

    def __enter__(self) -> _Datapoints:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        cloudwatch = self._place.client("cloudwatch")
        while True:
            now = self._place.status().now
            self._first_look = self._first_look or now
            for point in self._points(cloudwatch, now):
                ended = point.astimezone(UTC) + _MINUTE
                # what was there before the first look came at a time that nobody saw
                if ended > self._first_look:
                    self.delays.setdefault(ended, (now - ended).total_seconds())
            # four real looks a second where the clock is fast; one each five seconds of AWS
            if self._is_over.wait(max(_POLL_SECONDS, 5 / self._place.status().speed)):
                return

    def _points(self, cloudwatch: Any, now: datetime) -> list[datetime]:
        answer = cloudwatch.get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName="ConsumedWriteCapacityUnits",
            Dimensions=[{"Name": "TableName", "Value": self._table}],
            StartTime=now - 10 * _MINUTE,
            EndTime=now,
            Period=60,
            Statistics=["Sum"],
        )
        return [point["Timestamp"] for point in answer["Datapoints"] if point["Sum"] > 0]


def _run(stage: Stage) -> None:
    tables = stage.deploy(_APP)
    native, scaled = (next(t for t in tables if f"-{kind}" in t.table) for kind in ("Native", "Scaled"))
    start = (stage.now() + _LEAD * _MINUTE).replace(second=0, microsecond=0) + _MINUTE
    with stage.busy(f"{_LEAD} minutes without traffic, as alarms need a history"):
        # not by moving a local cloud's clock ahead: the scaler would not run meanwhile, and its heartbeat would stop
        stage.place.let_pass(start - stage.now())
    stage.check("alarms of the scaler that are in ALARM without traffic", [], _alarms(stage))
    traffic = _traffic(start, 0)
    with (
        stage.busy(f"{_MINUTES} minutes of traffic on both tables, from {_CALM} to {_SURGE} writes/s"),
        _Datapoints(stage, native.table) as datapoints,
        sending(*(_load(stage, table, traffic) for table in (native, scaled))) as running,
    ):
        reports = [report.result() for report in running]
    _compare(stage, *reports)
    _compare_with_simulator(stage, reports, start)
    _tell_delay(stage, datapoints)


def _alarms(stage: Stage) -> list[str]:
    pages = (
        stage.place.client("cloudwatch")
        .get_paginator("describe_alarms")
        .paginate(AlarmNamePrefix=stage.cdk.stack_name(_APP), StateValue="ALARM")
    )
    return sorted(alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"])


def _load(stage: Stage, table: Deployed, traffic: Traffic) -> Load:
    return load_of(stage, table.table, traffic, threads=_THREADS if stage.place.is_real else 4)


def _traffic(start: datetime, lead: int) -> Traffic:
    counts = [0.0] * lead + [rate * 60.0 for minutes, rate in _LEVELS for _ in range(minutes)]
    stream = {Stream(None, Dimension.WRITE): counts}
    return Traffic.from_counts("surge", stream, bin_seconds=60, start=start - lead * _MINUTE)


def _compare(stage: Stage, native: LoadReport, scaled: LoadReport) -> None:
    throttled = [report.total(Dimension.WRITE, "throttled") for report in (native, scaled)]
    stage.check(
        "throttled units with the scaler, compared with target tracking alone",
        f"less than half of {throttled[0]:,.0f}",
        f"{throttled[1]:,.0f}",
        holds=throttled[0] > 0 and throttled[1] < throttled[0] / 2,
    )
    asked = sum(minutes * rate * 60 for minutes, rate in _LEVELS)
    for kind, report in (("native", native), ("scaled", scaled)):
        check_sent(stage, report, asked, f"the {kind} table")


def _compare_with_simulator(stage: Stage, reports: list[LoadReport], start: datetime) -> None:
    templates = load_templates(stage.cdk.folder / _APP.stack)
    policies = (("Native", "native:70"), ("Scaled", "highwater-floor"))
    for report, (logical, policy) in zip(reports, policies, strict=True):
        run = run_policy(policy, find_table(templates, name=logical), _traffic(start, _LEAD))
        stage.measure(
            f"surge_throttled_{logical.lower()}",
            round(report.total(Dimension.WRITE, "throttled")),
            "units",
            question=f"throttled units of the table {logical}:",
            assumed=f"{run.throttled_units:,.0f} units, simulated",
        )


def _tell_delay(stage: Stage, datapoints: _Datapoints) -> None:
    delays = sorted(datapoints.delays.values())
    stage.check("minutes whose datapoint was seen to come", "10 or more", len(delays), holds=len(delays) >= 10)
    if not delays:
        return
    for name, value in (("median", statistics.median(delays)), ("most", delays[-1])):
        stage.measure(
            f"metric_delay_{name}_seconds",
            round(value),
            "s",
            question=f"seconds from a minute's end to its datapoint, {name} of {len(delays)} minutes:",
            assumed="150 s",
        )


SURGE: Final = Part(
    name="surge",
    title="a surge with and without the scaler; the delay of metrics",
    minutes=50,
    app=_APP,
    reaches_ceiling=True,
    run=_run,
)
