"""What CloudWatch knows of functions: their runs, their errors, and the metrics that they print."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import Stack, create_function

pytestmark = pytest.mark.xdist_group("cloud-functions")
CLOUD = {"has_instant_updates": False}
HANDLER = """
import json

def handler(event, context):
    directive = {
        "Namespace": "Shop",
        "Dimensions": [["stage"], ["stage", "table"]],
        "Metrics": [{"Name": "Sold", "Unit": "Count"}, {"Name": "Waits", "Unit": "Seconds"}],
    }
    printed = {"_aws": {"Timestamp": 1, "CloudWatchMetrics": [directive]}, "stage": "prod", "table": "orders"}
    print(json.dumps(printed | {"Sold": event["sold"], "Waits": [2.5, 4]}))
    print('{"_aws": "no metrics"}')
    print("plain text")
    if event["sold"] > 40:
        raise ValueError("too many")
"""


LOGGING = """
import logging

def handler(event, context):
    logging.info("not shown")
    logging.warning("%s left", event["left"])
    logger = logging.getLogger("shop")
    logger.setLevel(logging.INFO)
    logger.info("sold")
    try:
        1 / event["left"]
    except ZeroDivisionError:
        logger.exception("failed")
    return context.aws_request_id
"""


@pytest.fixture(scope="module", autouse=True)
def _function(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda")
    create_function(functions, "sells", HANDLER)
    # the clock of the cloud is far from the machine's
    cloud.advance(timedelta(days=3))
    for sold in (7, 41):
        functions.invoke(FunctionName="sells", Payload=json.dumps({"sold": sold}).encode())


def _sum(cloud: LocalCloud, namespace: str, name: str, statistic: str = "Sum", **dimensions: str) -> float:
    now = cloud.status().now
    points: Any = cloud.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - timedelta(minutes=9),
        EndTime=now + timedelta(minutes=1),
        Period=600,
        Statistics=[statistic],
    )["Datapoints"]
    return float(sum(point[statistic] for point in points))


CHAIN = """
import json

import boto3

def handler(event, context):
    if event["left"] == 0:
        print("the chain has ended")
        return
    payload = json.dumps({"left": event["left"] - 1})
    boto3.client("lambda").invoke(FunctionName=context.function_name, InvocationType="Event", Payload=payload)
"""


@pytest.mark.parametrize(("recursion", "ends"), [("Allow", True), ("Terminate", False)])
def test_function_of_a_stack_invokes_itself_as_often_as_its_template_allows(
    cloud: LocalCloud, recursion: str, ends: bool
) -> None:
    """Lambda by default ends a chain after 16 invocations."""
    name = f"chain-{recursion}"
    properties = {
        "FunctionName": name,
        "Runtime": "python3.12",
        "Role": f"arn:aws:iam::{ACCOUNT}:role/any",
        "Handler": "index.handler",
        "Code": {"ZipFile": CHAIN},
        "Timeout": 60,
    }
    stack = Stack(cloud.client("cloudformation"))
    for each, status in (
        (properties, "CREATE_COMPLETE"),
        (properties | {"RecursiveLoop": recursion}, "UPDATE_COMPLETE"),
    ):
        assert stack.deploy(Chain={"Type": "AWS::Lambda::Function", "Properties": each}) == (status, [])
    cloud.client("lambda").invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps({"left": 20}).encode())
    cloud.step(0)
    events = cloud.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
    said = " ".join(event["message"] for event in events)
    assert ("the chain has ended" in said) is ends


def test_log_of_a_function_that_somebody_deleted_is_made_again_only_where_lambda_makes_it(cloud: LocalCloud) -> None:
    """A function that may only write to its own group cannot make it again."""
    functions, logs = cloud.client("lambda"), cloud.client("logs")
    create_function(functions, "shop", "def handler(event, context):\n    print('open')\n")
    for group in ("/aws/lambda/shop", "/shop/log"):
        if group == "/shop/log":
            logs.create_log_group(logGroupName=group)
            functions.update_function_configuration(FunctionName="shop", LoggingConfig={"LogGroup": group})
        functions.invoke(FunctionName="shop")
        logs.delete_log_group(logGroupName=group)
        functions.invoke(FunctionName="shop")
    groups = {group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]}
    assert "/aws/lambda/shop" in groups
    assert "/shop/log" not in groups


def test_log_of_a_function_carries_the_time_of_the_clouds_clock(cloud: LocalCloud) -> None:
    since = cloud.status().now - timedelta(minutes=9)
    events = cloud.client("logs").filter_log_events(
        logGroupName="/aws/lambda/sells", startTime=int(since.timestamp() * 1000), filterPattern='"plain text"'
    )["events"]
    assert [event["message"] for event in events] == ["plain text", "plain text"]
    assert all(0 <= event["timestamp"] / 1000 - since.timestamp() <= 600 for event in events)


def test_runs_and_errors_are_counted_by_the_clouds_clock(cloud: LocalCloud) -> None:
    assert _sum(cloud, "AWS/Lambda", "Invocations", FunctionName="sells") == 2
    assert _sum(cloud, "AWS/Lambda", "Errors", FunctionName="sells") == 1
    assert _sum(cloud, "AWS/Lambda", "Duration", FunctionName="sells") > 0


def test_printed_metrics_are_there_with_each_set_of_dimensions(cloud: LocalCloud) -> None:
    assert _sum(cloud, "Shop", "Sold", stage="prod") == 48
    assert _sum(cloud, "Shop", "Sold", stage="prod", table="orders") == 48
    assert _sum(cloud, "Shop", "Waits", stage="prod") == 13
    assert _sum(cloud, "Shop", "Waits", "SampleCount", stage="prod") == 4


def test_runs_that_a_schedule_starts_are_counted(cloud: LocalCloud) -> None:
    create_function(cloud.client("lambda"), "ticks", "def handler(event, context): pass")
    cloud.client("scheduler").create_schedule(
        Name="ticks",
        FlexibleTimeWindow={"Mode": "OFF"},
        ScheduleExpression="rate(1 minute)",
        Target={
            "Arn": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:ticks",
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/ticks",
            "Input": "{}",
        },
    )
    cloud.step(timedelta(minutes=2))
    assert _sum(cloud, "AWS/Lambda", "Invocations", FunctionName="ticks") == 2
    cloud.client("scheduler").delete_schedule(Name="ticks")
    assert _sum(cloud, "AWS/Lambda", "Errors", FunctionName="ticks") == 0


def test_lines_of_pythons_logging_are_in_the_functions_log_as_lambda_writes_them(cloud: LocalCloud) -> None:
    functions = cloud.client("lambda")
    create_function(functions, "logs", LOGGING)
    requests = [
        json.loads(functions.invoke(FunctionName="logs", Payload=json.dumps({"left": left}).encode())["Payload"].read())
        for left in (7, 0)
    ]
    found = cloud.client("logs").filter_log_events(logGroupName="/aws/lambda/logs")["events"]
    lines = [event["message"].split("\t") for event in found if event["message"].startswith("[")]
    assert [(level, request, text) for level, _, request, text in lines] == [
        ("[WARNING]", requests[0], "7 left"),
        ("[INFO]", requests[0], "sold"),
        ("[WARNING]", requests[1], "0 left"),
        ("[INFO]", requests[1], "sold"),
        ("[ERROR]", requests[1], "failed"),
    ]
    assert requests[0] != requests[1]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line[1]) for line in lines)
    assert any(event["message"].startswith("ZeroDivisionError") for event in found)


NAPS = """
import time

def handler(event, context):
    began = time.time()
    for _ in range(event["times"]):
        time.sleep(event["nap"])
    return [event["nap"], time.time() - began]
"""


@pytest.mark.parametrize("mode", ["INLINE", "DISTRIBUTED"])
def test_functions_of_a_map_run_at_the_same_time_each_by_its_own_pauses(cloud: LocalCloud, mode: str) -> None:
    """The clock waits for all of them, not for the first that sleeps."""
    create_function(cloud.client("lambda"), f"naps-{mode}", NAPS, Timeout=60)
    work = {"Type": "Task", "Resource": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:naps-{mode}", "End": True}
    processor = {"ProcessorConfig": {"Mode": mode}, "StartAt": "Nap", "States": {"Nap": work}}
    naps = {"Type": "Map", "ItemsPath": "$.naps", "ItemProcessor": processor, "Next": "Rest"}
    rest = {"Type": "Wait", "Seconds": 5, "End": True}
    states = cloud.client("stepfunctions")
    machine = states.create_state_machine(
        name=f"naps-{mode}",
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/any",
        definition=json.dumps({"StartAt": "Naps", "States": {"Naps": naps, "Rest": rest}}),
    )["stateMachineArn"]
    asked = [{"nap": 7, "times": 2}, {"nap": 3, "times": 4}, {"nap": 11, "times": 1}]
    run = states.start_execution(stateMachineArn=machine, input=json.dumps({"naps": asked}))["executionArn"]
    cloud.step(18.5)
    assert states.describe_execution(executionArn=run)["status"] == "RUNNING"
    cloud.step(1)
    done = states.describe_execution(executionArn=run)
    assert done["status"] == "SUCCEEDED"
    assert [(nap, round(took, 1)) for nap, took in json.loads(done["output"])] == [(7, 14.0), (3, 12.0), (11, 11.0)]


def test_function_that_fails_is_retried_while_the_clock_runs() -> None:
    with LocalCloud(speed=1_000) as cloud:
        functions, logs = cloud.client("lambda"), cloud.client("logs")
        create_function(functions, "fails", "def handler(event, context):\n    raise ValueError(event['sold'])\n")
        functions.invoke(FunctionName="fails", InvocationType="Event", Payload=json.dumps({"sold": 43}).encode())
        starts: list[Any] = []
        # one and two minutes of the cloud are a fifth of a second; pytest's time limit ends this if they never pass
        while len(starts) < 3:
            groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
            events = [event for name in groups for event in logs.filter_log_events(logGroupName=name)["events"]]
            starts = [event for event in events if event["message"].startswith("START")]
        assert len(starts) == 3
