"""Rules of AWS that have only been read: sizes, rates, refusals and states, each asked for by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from botocore.config import Config

from acceptance.callers import outputs_of
from acceptance.cdk import App
from acceptance.parts.part import Part
from acceptance.refusal import ACCEPTED, words_of
from acceptance.stage import Stage
from highwater.core.names import plan_parameter

_APP: Final = App("acceptance/parts/rules_app.py", "Rules")
_MANY, _FEW = 24, 1
_STANDARD_BYTES: Final = 4_096
_ONCE: Final = Config(retries={"mode": "standard", "total_max_attempts": 1}, max_pool_connections=16)
_CALLERS: Final = 16
# Beyond the 16 after which Lambda by default ends a chain
_LINKS: Final = 20
_MOST_POLICIES: Final = 10_240
_MINUTE: Final = timedelta(minutes=1)
_KIB_ITEM: Final = "x" * 900
# A table of 1 WCU can have saved up 300 units
_MOST_WRITES: Final = 2_000
_THROTTLES: Final = 5


def _run(stage: Stage) -> None:
    (table,) = stage.deploy(_APP, _context(stage))
    outputs = outputs_of(stage, _APP)
    parameter = plan_parameter(outputs["ScalerName"], table.table)
    _shrink_the_plan(stage, parameter)
    _fill_a_role(stage, outputs["FullRole"])
    _call_fast(stage, parameter, outputs["ThrottlesAlarm"])
    _invoke_itself(stage, outputs["ChainFunction"], outputs["ChainLogGroup"])
    _read_in_vain(stage, table.table)
    _watch_an_alarm(stage, outputs["ThrottledTable"], outputs["ThrottlesAlarm"])
    _fetch_prices(stage)


def _context(_: Stage, windows: int = _MANY) -> dict[str, str]:
    return {"windows": str(windows)}


def _shrink_the_plan(stage: Stage, parameter: str) -> None:
    def size() -> int:
        return len(str(stage.place.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]).encode())

    long = size()
    stage.check("a plan of more than 4,096 bytes", True, long > _STANDARD_BYTES)
    stage.deploy(_APP, _context(stage, _FEW))
    short = size()
    stage.check("the plan shrinks below 4,096 bytes in a deploy", True, short < _STANDARD_BYTES)
    tier = stage.place.client("ssm").describe_parameters(
        ParameterFilters=[{"Key": "Name", "Option": "Equals", "Values": [parameter]}]
    )["Parameters"][0]["Tier"]
    stage.measure(
        "shrunk_parameter_tier",
        f"{tier}, from {long:,} to {short:,} bytes",
        question="tier of a plan's parameter that has shrunk:",
        assumed="Advanced",
    )


def _fill_a_role(stage: Stage, role: str) -> None:
    iam = stage.place.client("iam")
    pages = iam.get_paginator("list_role_policies").paginate(RoleName=role)
    names = [name for page in pages for name in page["PolicyNames"]]
    documents = [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names]
    characters = sum(len(json.dumps(document, separators=(",", ":"))) for document in documents)
    stage.check(
        "characters of a role's policies that a deploy makes",
        f"more than nine tenths of {_MOST_POLICIES:,}",
        f"{characters:,}",
        holds=_MOST_POLICIES * 0.9 < characters <= _MOST_POLICIES,
    )
    big = json.dumps({"Version": "2012-10-17", "Statement": _statement_of(_MOST_POLICIES - characters + 1)})
    named = {"RoleName": role, "PolicyName": "one-too-many"}
    said = words_of(partial(iam.put_role_policy, **named, PolicyDocument=big))
    if said == ACCEPTED:
        iam.delete_role_policy(**named)
    stage.measure(
        "role_policies_refusal",
        said,
        question="one policy more than 10,240 characters:",
        assumed=f"LimitExceeded: Maximum policy size of 10240 bytes exceeded for role {role}",
    )


def _statement_of(characters: int) -> dict[str, str]:
    """A statement of at least so many characters, which allows nothing: only its resource's name makes it long."""
    resource = f"arn:aws:dynamodb:*:*:table/{'x' * characters}"
    return {"Effect": "Deny", "Action": "dynamodb:PutItem", "Resource": resource}


def _call_fast(stage: Stage, parameter: str, alarm: str) -> None:
    """Ask for more than AWS accepts, without retries."""
    cloudwatch, ssm = (stage.place.client(service, _ONCE) for service in ("cloudwatch", "ssm"))
    described = cloudwatch.describe_alarms(AlarmNames=[alarm])["MetricAlarms"][0]
    members = (
        "AlarmName",
        "Namespace",
        "MetricName",
        "Dimensions",
        "Statistic",
        "Period",
        "EvaluationPeriods",
        "Threshold",
        "ComparisonOperator",
        "TreatMissingData",
    )
    same = {name: described[name] for name in members if name in described}
    for name, call, calls, assumed in (
        ("put_metric_alarm_per_second", lambda: cloudwatch.put_metric_alarm(**same), 90, "3 a second"),
        ("parameter_reads_per_second", lambda: ssm.get_parameter(Name=parameter), 1_200, "40 a second"),
    ):
        accepted, seconds, refusal = _accepted(stage, call, calls)
        stage.measure(
            name,
            f"{accepted / max(seconds, 1):.1f} a second, {accepted} of {calls} in {seconds:.0f} s; others: {refusal}",
            question=f"calls accepted, of {calls} as fast as {_CALLERS} callers can:",
            assumed=assumed,
        )


def _accepted(stage: Stage, call: Callable[[], object], calls: int) -> tuple[int, float, str]:
    """How many of *calls* are accepted, in how many seconds of the place's clock, and the words of a refusal."""
    began = stage.now()
    with ThreadPoolExecutor(_CALLERS) as callers:
        answers = list(callers.map(words_of, [call] * calls))
    seconds = (stage.now() - began).total_seconds()
    refusal = next((answer for answer in answers if answer != ACCEPTED), "none")
    return answers.count(ACCEPTED), seconds, refusal


def _invoke_itself(stage: Stage, function: str, log_group: str) -> None:
    stage.place.client("lambda").invoke(
        FunctionName=function, InvocationType="Event", Payload=json.dumps({"left": _LINKS}).encode()
    )

    def has_ended() -> bool:
        pages = stage.place.client("logs").get_paginator("filter_log_events").paginate(logGroupName=log_group)
        return any("the chain has ended" in event["message"] for page in pages for event in page["events"])

    took = stage.passed_until(has_ended, 10 * _MINUTE, f"a function invokes itself {_LINKS} times")
    stage.check(f"a function that invokes itself {_LINKS} times is not stopped", True, took is not None)


def _read_in_vain(stage: Stage, table: str) -> None:
    """Read what an index does not have; an application may compare the texts of the refusals."""
    dynamodb = stage.place.client("dynamodb")
    query = {
        "TableName": table,
        "IndexName": "keys",
        "KeyConditionExpression": "visitor = :v",
        "ExpressionAttributeValues": {":v": {"S": "any"}},
    }
    invalid = "ValidationException: One or more parameter values were invalid: "
    for name, more, what, assumed in (
        (
            "refused_select",
            {"Select": "ALL_ATTRIBUTES"},
            "all attributes of an index of keys",
            f"{invalid}Select type ALL_ATTRIBUTES is not supported for global secondary index keys because its "
            "projection type is not ALL",
        ),
        (
            "refused_projection",
            {"ProjectionExpression": "amount"},
            "an attribute that an index does not project",
            f"{invalid}Global secondary index keys does not project [amount]",
        ),
        (
            "refused_filter",
            {"FilterExpression": "visitor = :v"},
            "a filter on a key",
            "ValidationException: Filter Expression can only contain non-primary key attributes: "
            "Primary key attribute: visitor",
        ),
    ):
        said = words_of(partial(dynamodb.query, **query, **more))
        stage.measure(name, said, question=f"a query for {what}:", assumed=assumed)


def _watch_an_alarm(stage: Stage, table: str, alarm: str) -> None:
    dynamodb, cloudwatch = stage.place.client("dynamodb", _ONCE), stage.place.client("cloudwatch")
    throttled = 0
    for number in range(_MOST_WRITES):
        try:
            dynamodb.put_item(TableName=table, Item={"id": {"S": f"{number}"}, "text": {"S": _KIB_ITEM}})
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            throttled += 1
            if throttled == _THROTTLES:
                break
    stage.check("writes beyond the capacity of 1 unit are throttled", _THROTTLES, throttled)

    def state() -> str:
        return str(cloudwatch.describe_alarms(AlarmNames=[alarm])["MetricAlarms"][0]["StateValue"])

    rang = stage.seconds_until(lambda: state() == "ALARM", 15 * _MINUTE, "the alarm on throttles")
    stage.check("an alarm on throttles goes off", True, rang is not None)
    back = stage.seconds_until(lambda: state() == "OK", 15 * _MINUTE, "the alarm is OK again")
    stage.measure(
        "alarm_without_fill",
        "stays in ALARM" if back is None else f"OK after {back} s",
        question="an alarm on throttles without FILL, once there are none:",
        assumed="stays in ALARM, or is OK within minutes: the sources differ",
    )


def _fetch_prices(stage: Stage) -> None:
    if not stage.place.is_real:
        stage.tell("  AWS's price list is not asked for: the local cloud has none")
        return
    out = stage.cdk.folder.parent / "prices.json"
    command = [str(Path(sys.executable).parent / "highwater"), "prices", "--fetch", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    stage.check("AWS's price list is read", 0, done.returncode)
    last = (done.stderr or done.stdout).strip().splitlines()
    stage.measure("prices_fetched", last[-1] if last else "", question="highwater prices --fetch:", assumed="regions")


RULES: Final = Part(
    name="rules",
    title="sizes, rates, refusals and states that have only been read",
    minutes=35,
    app=_APP,
    context=_context,
    # the table that is throttled
    bare_units=2,
    run=_run,
)
