"""The functions: boosts, from the call to capacity and to the lease's end; surges, with pulses and the scaler."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import pairwise
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from acceptance.sending import CALM, PEAK, check_sent, load_of, sums_of, watch_datapoints, whole_minute, writes
from acceptance.stage import MINUTE, Stage, part
from acceptance.tables import CEILING, FLOOR, GRANTED, read_floor, read_units
from highwater import Boost, BoostAnswer, BoostRefusedError, CoordinatorClient, Pulse
from highwater import boost as make_boost
from highwater.calls.attempts import ONCE, client_config
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_lab.local.load import LoadReport
from highwater_lab.services.timing import Timing

_PERMITTED_WITHIN, _READY_WITHIN = 3 * MINUTE, 10 * MINUTE
_ASKED, _LEASE_MINUTES = 40, 3
# A lease's end is seen by a tick of a minute, and a surge by pulses of ten seconds; auto scaling needs five minutes
_SOON_SECONDS: Final = 120
# DynamoDB keeps the unused capacity of five minutes
_FILLED_WITHIN: Final = 5 * MINUTE
_CALM_MINUTES, _SURGE_MINUTES = 4, 6
_LEVELS: Final = ((_CALM_MINUTES, CALM), (_SURGE_MINUTES, PEAK))
_SCALER_LEVELS: Final = ((4, CALM), (12, PEAK))
_SCALER_MINUTES: Final = sum(minutes for minutes, _ in _SCALER_LEVELS)
# Calm minutes before, so that the alarms of target tracking have a history
_LEAD: Final = 20
# How late a datapoint may come, in minutes
_LATE: Final = 5
_FEWEST_DATAPOINTS: Final = 10
# Of 4 units each, for a budget of one unit a second: more than a run of a minute writes, and less than the six minutes
# for which the queue itself hides what a run has not deleted
_MESSAGES, _TEXT, _DRAINED_WITHIN = 30, "x" * 3_900, 5 * MINUTE
# The worker that fails is called five times, after 75 seconds in all
_ENDS_WITHIN, _ROUNDS = 5 * MINUTE, 5


class _Caller:
    """Calls a stack's coordinator with the credentials of the role that the stack made for it."""

    def __init__(self, stage: Stage, stack: str, action: str, table: str) -> None:
        """IAM needs a while until a role that was just made can be taken and may call; a check says how long."""
        outputs = stage.cdk.outputs(stack)
        self.url, self.lease_table = outputs["Url"], outputs["LeaseTable"]

        def is_permitted() -> bool:
            try:
                role = {"RoleArn": outputs["CallerRole"], "RoleSessionName": "highwater-acceptance"}
                keys: Any = stage.place.client("sts").assume_role(**role)["Credentials"]
                secret, token = keys["SecretAccessKey"], keys["SessionToken"]
                self.session = boto3.Session(keys["AccessKeyId"], secret, token, stage.place.region)
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
        config = client_config(ONCE, (2, 3))
        dynamodb = self.session.client("dynamodb", endpoint_url=endpoint, config=config)
        return Pulse(dynamodb=dynamodb, coordinator=self.client, has_thread=False)


def _find(names: list[TargetName], kind: str) -> TargetName:
    return next(name for name in names if f"-{kind}" in name.table)


@part(minutes=15, units=5 + CEILING)
def boosts(stage: Stage) -> None:
    """Boosts: seconds from the call to capacity, caps, and a lease that ends by itself."""
    name = _find(stage.deploy("Boosts"), "Boosted")
    caller = _Caller(stage, "Boosts", "list", name.table)
    _boost_and_release(stage, name, caller)
    _begin(stage, name, caller, GRANTED + 1)[0].release()
    _let_lease_end(stage, name, caller)


def _begin(stage: Stage, name: TargetName, caller: _Caller, units: int) -> tuple[Boost, BoostAnswer]:
    more: Any = {"coordinator": caller.url, "session": caller.session, "reason": "acceptance"}
    job = make_boost(name.table, write=units, minutes=_LEASE_MINUTES, **more)
    answer = job.begin()
    granted = [each.units for each in answer.targets]
    stage.check(f"units granted to a job that asks for {units}", [min(units, GRANTED)], granted)
    return job, answer


def _boost_and_release(stage: Stage, name: TargetName, caller: _Caller) -> None:
    began, call = stage.now(), time.monotonic()
    job, _ = _begin(stage, name, caller, _ASKED)
    stage.measure("boost_answer_seconds", round(time.monotonic() - call, 2), assumed="under 2")
    is_ready = stage.seconds_until(lambda: job.state().is_ready, _READY_WITHIN) is not None
    seconds = round((stage.now() - began).total_seconds()) if is_ready else None
    stage.measure("boost_ready_seconds", seconds, assumed="5")
    stage.settle("floor in the lease", FLOOR + _ASKED, read_floor, name)
    stage.settle("capacity in the lease", FLOOR + _ASKED, read_units, name)
    job.release()
    stage.settle("floor once the boost is given back", FLOOR, read_floor, name)


def _let_lease_end(stage: Stage, name: TargetName, caller: _Caller) -> None:
    """A job that dies: nobody gives the boost back."""
    end = _begin(stage, name, caller, _ASKED)[1].end
    stage.settle("floor while the lease is live", FLOOR + _ASKED, read_floor, name)
    within = _LEASE_MINUTES * MINUTE + _READY_WITHIN
    is_over = stage.seconds_until(lambda: read_floor(stage.place, name) == FLOOR, within)
    seconds = None if is_over is None else round((stage.now() - end).total_seconds())
    stage.measure("boost_over_seconds", seconds, assumed="60")
    in_time = seconds is not None and seconds <= _SOON_SECONDS
    stage.check("a lease that nobody gives back ends by itself", "within 2 minutes", seconds, holds=in_time)


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
    in_time = seconds is not None and seconds <= _SOON_SECONDS
    stage.check("capacity for the surge", "within 2 minutes", seconds, holds=in_time)
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
    pages = stage.place.client("cloudwatch").get_paginator("describe_alarms")
    found = pages.paginate(AlarmNamePrefix=stage.cdk.full_name("Surge"), StateValue="ALARM")
    names_of_alarms = sorted(alarm["AlarmName"] for page in found for alarm in page["MetricAlarms"])
    stage.check("alarms of the scaler that are in ALARM without traffic", [], names_of_alarms)
    ends = start + (_SCALER_MINUTES + _LATE) * MINUTE
    loads = [load_of(stage, table, writes(_SCALER_LEVELS, start)) for table in (native, scaled)]
    with stage.busy(f"{_SCALER_MINUTES} minutes of traffic on both tables, from {CALM} to {PEAK} writes/s"):
        *reports, delays = stage.place.side_by_side(loads, lambda: watch_datapoints(stage, native, ends))
    _compare(stage, *reports)
    seen = len(delays)
    stage.check("minutes whose datapoint was seen to come", "10 or more", seen, holds=seen >= _FEWEST_DATAPOINTS)
    if delays:
        assumed = str(Timing().metric_delay)
        stage.measure("metric_delay_median_seconds", round(statistics.median(delays)), assumed=assumed)
        stage.measure("metric_delay_most_seconds", round(max(delays)), assumed=assumed)


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


@part(minutes=20, units=5 + CEILING)
def fleet(stage: Stage) -> None:
    """Messages that come back to a queue, a Distributed Map that is redriven, the dates of answers."""
    table = _find(stage.deploy("Fleet"), "Orders").table
    dynamodb, sqs, states = (stage.place.client(service) for service in ("dynamodb", "sqs", "stepfunctions"))
    queue = next(url for url in stage.cdk.names_of_type("Fleet", "AWS::SQS::Queue") if "DeadLetters" not in url)
    for number in range(_MESSAGES):
        sqs.send_message(QueueUrl=queue, MessageBody=f'{{"id": "{number}", "text": "{_TEXT}"}}')
    count = partial(dynamodb.scan, TableName=table, Select="COUNT")
    took = stage.seconds_until(lambda: bool(count()["Count"] == _MESSAGES), _DRAINED_WITHIN, MINUTE / 12)
    stage.check("messages that came back are written", "within 5 minutes", took, holds=took is not None)
    stage.measure("queue_drained_seconds", took, assumed="120")
    (machine,) = stage.cdk.names_of_type("Fleet", "AWS::StepFunctions::StateMachine")
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]
    look = partial(states.describe_execution, executionArn=execution)

    def see_end(fact: str, assumed: str) -> None:
        stage.seconds_until(lambda: bool(look()["status"] != "RUNNING"), _ENDS_WITHIN)
        answers = [dynamodb.get_item(TableName=table, Key={"id": {"S": f"seat-{seat}"}}) for seat in range(3)]
        runs = ", ".join(each["Item"]["runs"]["N"] if "Item" in each else "0" for each in answers)
        stage.measure(fact, runs, assumed=assumed)

    see_end("map_calls", "1, 1, 5")
    noted = dynamodb.get_item(TableName=table, Key={"id": {"S": "runtime"}}, ConsistentRead=True).get("Item", {})
    stage.measure("lambda_runtime", noted.get("versions", {}).get("S"), assumed="any boto3 of Python 3.14's runtime")
    dynamodb.put_item(TableName=table, Item={"id": {"S": "mended"}})
    try:
        states.redrive_execution(executionArn=execution)
        # until then the execution may be described as it was before
        stage.place.let_pass(MINUTE)
        see_end("redriven_map_calls", "1, 1, 6")
    except ClientError as refused:
        stage.measure("redriven_map_calls", refused.response["Error"]["Code"], assumed="1, 1, 6")
    targets, dates = stage.place.client("application-autoscaling"), []
    for _ in range(_ROUNDS):
        for call in (dynamodb.list_tables, partial(targets.describe_scalable_targets, ServiceNamespace="dynamodb")):
            dates.append(parsedate_to_datetime(call()["ResponseMetadata"]["HTTPHeaders"]["date"]))
    deleted = sums_of(stage, "AWS/SQS", "NumberOfMessagesDeleted", QueueName=queue.rpartition("/")[2])
    stage.measure("queue_idle_datapoints", [*deleted.values()].count(0), assumed="1 or more")
    back = max(before - date for before, date in pairwise(dates))
    stage.measure("dates_back_seconds", round(back.total_seconds()), assumed="0")
