"""Pulses: a fleet that tells what it asks for, from the jump to capacity."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

import boto3

from acceptance.callers import outputs_of, parameter_value, session_as, wait_for_permission
from acceptance.cdk import App
from acceptance.deployed import read_state
from acceptance.parts.part import Part
from acceptance.place import clock_of
from acceptance.sending import check_sent, load_of, sending
from acceptance.stage import Stage
from highwater import CoordinatorClient, Pulse
from highwater.core import Dimension
from highwater.core.names import TargetName, coordinator_parameter, pulses_parameter
from highwater_lab.local.load import LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.template import find_table, load_templates
from highwater_lab.traffic import Stream, Traffic

_APP: Final = App("examples/side_by_side/app.py", "SideBySide")
_MINUTE: Final = timedelta(minutes=1)
_CALM, _SURGE = 27, 270
_CALM_MINUTES, _SURGE_MINUTES = 4, 6
# Calm minutes before, in the simulator: auto scaling's alarms have a history
_LEAD: Final = 20


def _run(stage: Stage) -> None:
    table = next(each for each in stage.deploy(_APP) if "-Pulsed" in each.table)
    name = TargetName(table.table, None, Dimension.WRITE)
    outputs = outputs_of(stage, _APP)
    pulse_table = parameter_value(stage, pulses_parameter(outputs["Teller"]))
    session = session_as(stage, outputs["CrawledRole"])
    coordinator = CoordinatorClient(
        coordinator=parameter_value(stage, coordinator_parameter(outputs["Teller"])), session=session, attempts=1
    )
    coordinator.pulse_table = pulse_table
    wait_for_permission(stage, coordinator, "pulse", name.table)
    stage.wait_until((stage.now() + _MINUTE).replace(second=0, microsecond=0), "the traffic begins on a whole minute")
    start = stage.now()
    pulse = _pulse(stage, session, coordinator)
    jump = start + _CALM_MINUTES * _MINUTE
    threads = 24 if stage.place.is_real else 4
    load = load_of(stage, name.table, _traffic(start, 0), threads=threads, prepare=pulse.meter.install)
    with sending(load) as running:
        raised = stage.passed_until(
            lambda: read_state(stage.place, name).units >= _SURGE, jump + 5 * _MINUTE - start, "capacity for the surge"
        )
        report = running[0].result()
    pulse.stop()
    asked = 60 * (_CALM_MINUTES * _CALM + _SURGE_MINUTES * _SURGE)
    check_sent(stage, report, asked, "a table whose fleet pulses")
    _compare(stage, report, raised, jump, _told(stage, pulse_table, name.table))


def _pulse(stage: Stage, session: boto3.Session, coordinator: CoordinatorClient) -> Pulse:
    """As `highwater.pulse` makes it, by the place's clock, which may run faster and is not moved ahead from now on."""
    speed = stage.place.status().speed
    return Pulse(
        dynamodb=session.client("dynamodb", endpoint_url=stage.place.client("dynamodb").meta.endpoint_url),
        coordinator=coordinator,
        clock=clock_of(stage.place),
        pause=lambda seconds: time.sleep(seconds / speed),
    )


def _traffic(start: datetime, lead: int) -> Traffic:
    counts = [_CALM * 60.0] * (lead + _CALM_MINUTES) + [_SURGE * 60.0] * _SURGE_MINUTES
    stream = {Stream(None, Dimension.WRITE): counts}
    return Traffic.from_counts("surge", stream, bin_seconds=60, start=start - lead * _MINUTE)


def _told(stage: Stage, pulse_table: str, table: str) -> float:
    """The write units that the fleet told of as consumed."""
    found = stage.place.client("dynamodb").query(
        TableName=pulse_table,
        ConsistentRead=True,
        KeyConditionExpression="#table = :table",
        ExpressionAttributeNames={"#table": "table"},
        ExpressionAttributeValues={":table": {"S": f"pulse#{table}"}},
    )
    return sum(
        float(value["N"])
        for item in found["Items"]
        for name, value in item.items()
        if name.startswith("c") and name.endswith("w")
    )


def _compare(stage: Stage, report: LoadReport, raised: datetime | None, jump: datetime, told: float) -> None:
    granted = report.total(Dimension.WRITE, "granted")
    stage.check("units that the fleet told of", f"{granted:,.0f}", f"{told:,.0f}", holds=told == granted)
    seconds = None if raised is None else round((raised - jump).total_seconds())
    stage.check("capacity for the surge", "within 2 minutes", seconds, holds=seconds is not None and seconds <= 120)
    stage.measure(
        "pulse_raised_seconds", seconds, "s", question="seconds from the jump to capacity for it:", assumed="60 s"
    )
    templates = load_templates(stage.cdk.folder / _APP.stack)
    simulated = run_policy(
        "highwater-floor-pulse", find_table(templates, name="Pulsed"), _traffic(jump - _CALM_MINUTES * _MINUTE, _LEAD)
    )
    stage.measure(
        "pulse_throttled",
        round(report.total(Dimension.WRITE, "throttled")),
        "units",
        question="throttled units of the table Pulsed:",
        assumed=f"{simulated.throttled_units:,.0f} units, simulated",
    )


PULSES: Final = Part(
    name="pulses",
    title="pulses: seconds from a jump to capacity, and what the fleet told",
    minutes=25,
    app=_APP,
    reaches_ceiling=True,
    run=_run,
)
