"""The functions: boosts, from the call to capacity and to the lease's end; surges, with pulses and with the scaler."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from acceptance.sending import CALM, PEAK, check_sent, load_of, watch_datapoints, whole_minute, writes
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import CEILING, FLOOR, GRANTED, read_floor, read_units
from highwater import Boost, BoostRefusedError, CoordinatorClient, Pulse
from highwater import boost as make_boost
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_lab.local.load import LoadReport

_PERMITTED_WITHIN: Final = 3 * MINUTE
_READY_WITHIN: Final = 10 * MINUTE
_ASKED: Final = 40
_LEASE_MINUTES: Final = 3
# A lease's end is seen by a schedule of a minute, and a surge by pulses of ten seconds; auto scaling needs five minutes
_SOON: Final = 2 * MINUTE
# DynamoDB keeps the unused capacity of five minutes
_FILLED_WITHIN: Final = 5 * MINUTE
_CALM_MINUTES: Final = 4
_SURGE_MINUTES: Final = 6
_LEVELS: Final = ((_CALM_MINUTES, CALM), (_SURGE_MINUTES, PEAK))
_SCALER_LEVELS: Final = ((4, CALM), (12, PEAK))
_SCALER_MINUTES: Final = sum(minutes for minutes, _ in _SCALER_LEVELS)
# Calm minutes before, so that the alarms of target tracking have a history
_LEAD: Final = 20
# How late a datapoint may come, in minutes
_LATE: Final = 5
_FEWEST_DATAPOINTS: Final = 10


class _Caller:
    """Calls a stack's coordinator with the credentials of the role that the stack made for it."""

    def __init__(self, stage: Stage, stack: str, action: str, table: str) -> None:
        """IAM needs a while until a role that was just made can be taken and may call; a check says how long."""
        outputs = stage.cdk.outputs(stack)
        self.url, self.lease_table = outputs["Url"], outputs["LeaseTable"]

        def is_permitted() -> bool:
            try:
                self.session = _take_role(stage, outputs["CallerRole"])
                self.client = CoordinatorClient(coordinator=self.url, session=self.session, attempts=1)
                self.client.send(action, table=table)
            except (BoostRefusedError, ClientError) as error:
                why = error.status if isinstance(error, BoostRefusedError) else error.response["Error"]["Code"]
                if why not in (403, "AccessDenied"):
                    raise
                return False
            return True

        took = stage.seconds_until(is_permitted, _PERMITTED_WITHIN)
        stage.check("the role may call the coordinator", "within 3 minutes", took, holds=took is not None)

    def pulse(self, stage: Stage) -> Pulse:
        """As `highwater.pulse` makes it, but that the part calls `beat`, as a local cloud's clock waits for that."""
        self.client.pulse_table = self.lease_table
        endpoint = stage.place.client("dynamodb").meta.endpoint_url
        # no retries, as a pulse whose answer was lost may have been added already
        retries: Any = {"mode": "standard", "total_max_attempts": 1}
        config = Config(connect_timeout=2, read_timeout=3, retries=retries)
        dynamodb = self.session.client("dynamodb", endpoint_url=endpoint, config=config)
        return Pulse(dynamodb=dynamodb, coordinator=self.client, has_thread=False)


def _take_role(stage: Stage, role: str) -> boto3.Session:
    given = stage.place.client("sts").assume_role(RoleArn=role, RoleSessionName="highwater-acceptance")
    keys: Any = given["Credentials"]
    return boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], stage.place.region)


def _find(names: list[TargetName], kind: str) -> TargetName:
    return next(name for name in names if f"-{kind}" in name.table)


@part(minutes=15, units=5 + CEILING)
def boosts(stage: Stage) -> None:
    """Boosts: seconds from the call to capacity, caps, and a lease that ends by itself."""
    name = _find(stage.deploy("Boosts"), "Boosted")
    caller = _Caller(stage, "Boosts", "list", name.table)
    _boost_and_release(stage, name, caller)
    job = _job(name, caller, GRANTED + 1)
    answer = job.begin()
    job.release()
    stage.check("units granted to a job that asks for too many", [GRANTED], [each.units for each in answer.targets])
    _let_lease_end(stage, name, caller)


def _job(name: TargetName, caller: _Caller, units: int) -> Boost:
    return make_boost(
        name.table,
        write=units,
        minutes=_LEASE_MINUTES,
        reason="acceptance",
        coordinator=caller.url,
        session=caller.session,
    )


def _boost_and_release(stage: Stage, name: TargetName, caller: _Caller) -> None:
    job = _job(name, caller, _ASKED)
    began, call = stage.now(), time.monotonic()
    answer = job.begin()
    took = round(time.monotonic() - call, 2)
    stage.check(f"units granted to a job that asks for {_ASKED}", [_ASKED], [each.units for each in answer.targets])
    stage.measure("boost_answer_seconds", took, assumed="under 2")
    is_ready = stage.seconds_until(lambda: job.state().is_ready, _READY_WITHIN) is not None
    seconds = round((stage.now() - began).total_seconds()) if is_ready else None
    stage.measure("boost_ready_seconds", seconds, assumed="35")
    stage.settle("floor in the lease", FLOOR + _ASKED, read_floor, name)
    stage.settle("capacity in the lease", FLOOR + _ASKED, read_units, name)
    job.release()
    stage.settle("floor once the boost is given back", FLOOR, read_floor, name)


def _let_lease_end(stage: Stage, name: TargetName, caller: _Caller) -> None:
    """A job that dies: nobody gives the boost back."""
    end = _job(name, caller, _ASKED).begin().end
    stage.settle("floor while the lease is live", FLOOR + _ASKED, read_floor, name)
    within = _LEASE_MINUTES * MINUTE + _READY_WITHIN
    is_over = stage.seconds_until(lambda: read_floor(stage.place, name) == FLOOR, within)
    seconds = None if is_over is None else round((stage.now() - end).total_seconds())
    stage.measure("boost_over_seconds", seconds, assumed="60")
    stage.check("a lease that nobody gives back ends by itself", "within 2 minutes", seconds, holds=_is_soon(seconds))


def _is_soon(seconds: int | None) -> bool:
    return seconds is not None and seconds <= _SOON.total_seconds()


@part(minutes=25, units=5 + CEILING)
def pulses(stage: Stage) -> None:
    """Pulses: seconds from a jump to capacity."""
    name = _find(stage.deploy("Pulses"), "Pulsed")
    pulse = _Caller(stage, "Pulses", "pulse", name.table).pulse(stage)
    start = whole_minute(stage.now() + _FILLED_WITHIN)
    stage.wait_until(start, "burst capacity is saved")
    jump = start + _CALM_MINUTES * MINUTE

    def tell() -> None:
        while stage.now() < jump + _SURGE_MINUTES * MINUTE:
            pulse.beat()
            stage.place.let_pass(timedelta(seconds=1))

    def see_capacity() -> int | None:
        stage.place.wait_until(jump)
        return stage.seconds_until(lambda: read_units(stage.place, name) >= PEAK, 5 * MINUTE)

    load = load_of(stage, name.table, writes(_LEVELS, start), prepare=pulse.meter.install)
    report, _, seconds = stage.place.side_by_side([load], tell, see_capacity)
    pulse.stop()
    check_sent(stage, report, _LEVELS, "a table whose fleet pulses")
    stage.check("capacity for the surge", "within 2 minutes", seconds, holds=_is_soon(seconds))
    stage.measure("pulse_raised_seconds", seconds, assumed="60")
    throttled = round(report.total(Dimension.WRITE, "throttled"))
    stage.measure("pulse_throttled", throttled, assumed="what a run on the local cloud shows")


@part(minutes=50, units=2 * (5 + CEILING))
def surge(stage: Stage) -> None:
    """A surge with and without the scaler; the delay of metrics."""
    names = stage.deploy("Surge")
    native, scaled = (_find(names, kind).table for kind in ("Native", "Scaled"))
    start = whole_minute(stage.now() + _LEAD * MINUTE)
    stage.wait_until(start, "no traffic, as alarms need a history")
    stage.check("alarms of the scaler that are in ALARM without traffic", [], _alarms(stage))
    ends = start + (_SCALER_MINUTES + _LATE) * MINUTE
    loads = [load_of(stage, table, writes(_SCALER_LEVELS, start)) for table in (native, scaled)]
    with stage.busy(f"{_SCALER_MINUTES} minutes of traffic on both tables, from {CALM} to {PEAK} writes/s"):
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
        check_sent(stage, report, _SCALER_LEVELS, f"the {kind} table")
        stage.measure(f"surge_throttled_{kind}", round(units), assumed="what a run on the local cloud shows")
