"""Alarms of the user's own: judged by the cloud's clock, and what they start."""

from __future__ import annotations

import itertools
import json
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import REGION
from tests.local.world import MINUTE, SECOND, World, create_function, keyed, unique

pytestmark = pytest.mark.xdist_group("cloud alarms")
_NUMBERS = itertools.count()
# a new alarm is judged first within this time
JUDGED = 88 * SECOND
HANDLER = """
import boto3

def handler(event, context):
    boto3.client("dynamodb").put_item(
        TableName="heard",
        Item={"id": {"S": event["alarmData"]["alarmName"]}, "state": {"S": event["alarmData"]["state"]["value"]},
              "time": {"S": event["time"]}, "source": {"S": event["source"]}},
    )
"""


def _throttle(world: World, table: str) -> None:
    """One write too many."""
    fill = "x" * 300_000
    for _ in range(3):
        try:
            world.dynamodb.put_item(TableName=table, Item={"id": {"S": "p"}, "fill": {"S": fill}})
        except world.dynamodb.exceptions.ProvisionedThroughputExceededException:
            return
    pytest.fail("nothing was throttled")


def _alarm(cloudwatch: Any, table: str, **more: Any) -> str:
    name = f"throttled-{next(_NUMBERS)}"
    plain = {
        "Namespace": "AWS/DynamoDB",
        "MetricName": "WriteThrottleEvents",
        "Dimensions": [{"Name": "TableName", "Value": table}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
    }
    cloudwatch.put_metric_alarm(AlarmName=name, **(plain | more))
    return name


@pytest.fixture
def cloudwatch(cloud: LocalCloud) -> Any:
    return cloud.client("cloudwatch")


def _state(cloudwatch: Any, name: str) -> str:
    return str(cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["StateValue"])


def _soon(found: Callable[[], Any]) -> Any:
    """What *found* answers once it does: what alarms notify runs beside the clock."""
    while not (answer := found()):
        pass
    return answer


def test_alarm_goes_off_once_the_datapoint_is_there_and_back_again(
    cloud: LocalCloud, world: World, cloudwatch: Any
) -> None:
    table, other = world.table(5, 1), world.table(5, 1)
    name, quiet = _alarm(cloudwatch, table), _alarm(cloudwatch, other)
    _throttle(world, table)
    cloud.advance(2 * MINUTE)
    assert _state(cloudwatch, name) == "OK", "metrics come late"
    cloud.advance(3 * MINUTE)
    assert (_state(cloudwatch, name), _state(cloudwatch, quiet)) == ("ALARM", "OK")
    cloud.advance(10 * MINUTE)
    assert _state(cloudwatch, name) == "OK"
    history = cloudwatch.describe_alarm_history(AlarmName=name, HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    assert {"Alarm updated from OK to ALARM", "Alarm updated from ALARM to OK"} <= {
        item["HistorySummary"] for item in history
    }


def test_action_of_an_alarm_follows_a_change_of_its_state_alone(
    cloud: LocalCloud, world: World, cloudwatch: Any
) -> None:
    """Neither the state that it has, set again, nor actions that are enabled in ALARM start one.

    Recorded: radkawar/stackd 9dc356f, cloudwatch/alarm_delivery.
    """
    topic = cloud.client("sns").create_topic(Name="once")["TopicArn"]
    name = _alarm(cloudwatch, world.table(5, 1), AlarmActions=[topic])

    def actions() -> int:
        return len(cloudwatch.describe_alarm_history(AlarmName=name, HistoryItemType="Action")["AlarmHistoryItems"])

    cloudwatch.disable_alarm_actions(AlarmNames=[name])
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="by hand")
    cloudwatch.enable_alarm_actions(AlarmNames=[name])
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="by hand, again")
    assert actions() == 0
    for state in ("OK", "ALARM"):
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="by hand")
    assert actions() == 1


def test_alarm_tells_topics_and_rules_and_starts_functions(cloud: LocalCloud, world: World, cloudwatch: Any) -> None:
    table = world.table(5, 1)
    sns, sqs, events = (cloud.client(name) for name in ("sns", "sqs", "events"))
    queues = {}
    for kind in ("topic", "rule"):
        address = sqs.create_queue(QueueName=f"{kind}-{next(_NUMBERS)}")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        queues[kind] = (address, arn)
    topic = sns.create_topic(Name="alarms")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queues["topic"][1])
    pattern = {"source": ["aws.cloudwatch"], "detail": {"state": {"value": ["ALARM"]}}}
    events.put_rule(Name="alarms", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="alarms", Targets=[{"Id": "queue", "Arn": queues["rule"][1]}])
    world.dynamodb.create_table(TableName="heard", **keyed("id"), BillingMode="PAY_PER_REQUEST")
    function = create_function(cloud.client("lambda"), "hears", HANDLER, Timeout=30)
    name = _alarm(cloudwatch, table, AlarmActions=[topic, function])
    _throttle(world, table)
    cloud.advance(5 * MINUTE)
    assert _state(cloudwatch, name) == "ALARM"

    def body(kind: str) -> Any:
        messages = sqs.receive_message(QueueUrl=queues[kind][0]).get("Messages")
        return json.loads(messages[0]["Body"]) if messages else None

    told = json.loads(_soon(lambda: body("topic"))["Message"])
    assert (told["AlarmName"], told["NewStateValue"], told["OldStateValue"]) == (name, "ALARM", "OK")
    event = _soon(lambda: body("rule"))
    assert (event["detail-type"], event["detail"]["alarmName"]) == ("CloudWatch Alarm State Change", name)
    heard = _soon(
        lambda: world.dynamodb.get_item(TableName="heard", Key={"id": {"S": name}}, ConsistentRead=True).get("Item")
    )
    assert (heard["state"]["S"], heard["source"]["S"]) == ("ALARM", "aws.cloudwatch")
    # the event carries the cloud's time
    assert heard["time"]["S"] > world.dynamodb.describe_table(TableName=table)["Table"]["CreationDateTime"].isoformat()
    world.dynamodb.delete_table(TableName="heard")


@pytest.mark.parametrize(
    ("treatment", "periods", "needed", "state"),
    [
        ("notBreaching", 3, 1, "ALARM"),
        ("notBreaching", 3, 2, "OK"),
        ("missing", 3, 3, "ALARM"),
        ("breaching", 3, 3, "ALARM"),
    ],
)
def test_missing_datapoints_are_treated_as_asked_for(
    cloud: LocalCloud, world: World, cloudwatch: Any, treatment: str, periods: int, needed: int, state: str
) -> None:
    table = world.table(5, 1)
    _throttle(world, table)
    settings = {"EvaluationPeriods": periods, "DatapointsToAlarm": needed, "TreatMissingData": treatment}
    name = _alarm(cloudwatch, table, **settings)
    cloud.advance(5 * MINUTE)
    assert _state(cloudwatch, name) == state


def test_alarm_that_ignores_missing_datapoints_keeps_its_state_while_they_could_decide(
    cloud: LocalCloud, cloudwatch: Any
) -> None:
    name = unique("ignoring")
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        Namespace="Mine",
        MetricName=name,
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=3,
        DatapointsToAlarm=3,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
    )

    def put(value: float) -> None:
        cloudwatch.put_metric_data(
            Namespace="Mine", MetricData=[{"MetricName": name, "Value": value, "Timestamp": cloud.status().now}]
        )
        cloud.advance(MINUTE)

    put(7)
    assert _state(cloudwatch, name) == "INSUFFICIENT_DATA"
    put(7)
    put(7)
    cloud.advance(MINUTE)
    assert _state(cloudwatch, name) == "ALARM"
    cloud.advance(20 * MINUTE)
    assert _state(cloudwatch, name) == "ALARM"
    put(0)
    cloud.advance(MINUTE)
    assert _state(cloudwatch, name) == "OK"


def test_alarm_without_datapoints_knows_nothing(cloud: LocalCloud, cloudwatch: Any) -> None:
    name = _alarm(cloudwatch, "nowhere", ActionsEnabled=False)
    cloudwatch.put_metric_alarm(
        AlarmName=f"{name}-missing",
        Namespace="Mine",
        MetricName="Orders",
        Statistic="Average",
        Period=60,
        EvaluationPeriods=2,
        Threshold=7,
        ComparisonOperator="LessThanThreshold",
    )
    cloud.advance(5 * MINUTE)
    assert _state(cloudwatch, name) == "OK"
    assert _state(cloudwatch, f"{name}-missing") == "INSUFFICIENT_DATA"


WARM_UP: dict[str, Any] = {"WarmUpPeriodDurationInMinutes": 8}


def _heartbeat(name: str, **more: Any) -> dict[str, Any]:
    """The members of an alarm that goes off where nothing is heard."""
    heard = {"AlarmName": name, "Namespace": "Mine", "MetricName": name, "Statistic": "Sum", "Period": 60}
    silent = {"EvaluationPeriods": 3, "Threshold": 1, "ComparisonOperator": "LessThanThreshold"}
    return heard | silent | {"TreatMissingData": "breaching"} | more


def test_new_alarm_waits_out_its_warm_up_and_is_judged_then(cloud: LocalCloud, cloudwatch: Any) -> None:
    """Also after a change of a threshold; one that has been judged has no warm-up any more."""
    name, cold = f"warm-{next(_NUMBERS)}", f"cold-{next(_NUMBERS)}"
    cloudwatch.put_metric_alarm(**_heartbeat(name, WarmUpConfiguration=WARM_UP))
    cloudwatch.put_metric_alarm(**_heartbeat(cold))
    assert (_state(cloudwatch, name), _state(cloudwatch, cold)) == ("INSUFFICIENT_DATA", "INSUFFICIENT_DATA")
    cloud.advance(JUDGED)
    assert (_state(cloudwatch, name), _state(cloudwatch, cold)) == ("INSUFFICIENT_DATA", "ALARM")
    described = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["WarmUpConfiguration"]
    assert described == WARM_UP | {"OnlyStartEvaluatingAfterWarmUpPeriodEnds": False}
    cloud.advance(8 * MINUTE - JUDGED - SECOND)
    assert _state(cloudwatch, name) == "INSUFFICIENT_DATA"
    # each alarm is judged at a second of its own
    cloud.advance(MINUTE + SECOND)
    assert _state(cloudwatch, name) == "ALARM"
    cloudwatch.put_metric_alarm(**_heartbeat(name, WarmUpConfiguration=WARM_UP))
    assert _state(cloudwatch, name) == "ALARM"


@pytest.mark.parametrize(("is_whole", "state"), [(False, "OK"), (True, "INSUFFICIENT_DATA")])
def test_warm_up_ends_with_a_full_window_unless_the_whole_of_it_is_asked_for(
    cloud: LocalCloud, cloudwatch: Any, is_whole: bool, state: str
) -> None:
    name = f"full-{next(_NUMBERS)}"
    warm_up = WARM_UP | {"OnlyStartEvaluatingAfterWarmUpPeriodEnds": is_whole}
    cloudwatch.put_metric_alarm(**_heartbeat(name, WarmUpConfiguration=warm_up))
    for beats in (1, 2, 3):
        cloudwatch.put_metric_data(Namespace="Mine", MetricData=[{"MetricName": name, "Value": 1}])
        cloud.advance(MINUTE)
        assert _state(cloudwatch, name) == "INSUFFICIENT_DATA", f"{beats} of 3 at most are there"
    cloud.advance(MINUTE)
    assert _state(cloudwatch, name) == state
    cloud.advance(10 * MINUTE)
    assert _state(cloudwatch, name) == "ALARM", "nothing was heard for the length of the window"


def test_request_in_the_form_of_a_query_has_a_warm_up_too(cloud: LocalCloud, cloudwatch: Any) -> None:
    """As older clients write it."""
    name = f"query-{next(_NUMBERS)}"
    fields = {
        "Action": "PutMetricAlarm",
        "Version": "2010-08-01",
        **_heartbeat(name),
        "WarmUpConfiguration.WarmUpPeriodDurationInMinutes": 8,
        "WarmUpConfiguration.OnlyStartEvaluatingAfterWarmUpPeriodEnds": "true",
    }
    scope = f"Credential=test/20261125/{REGION}/monitoring/aws4_request"
    request = urllib.request.Request(  # noqa: S310 - the local cloud
        cloud.endpoint,
        urllib.parse.urlencode(fields).encode(),
        {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the local cloud
        assert answer.status == 200
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert alarm["WarmUpConfiguration"] == WARM_UP | {"OnlyStartEvaluatingAfterWarmUpPeriodEnds": True}
    assert alarm["StateValue"] == "INSUFFICIENT_DATA"


def test_alarm_that_counts_missing_datapoints_as_zero_leaves_alarm_and_waits_for_the_first(
    cloud: LocalCloud, world: World, cloudwatch: Any
) -> None:
    """Deployed as the CDK writes `FILL(m, 0)`: without any datapoint the expression has no value."""
    table, other = world.table(5, 1), world.table(5, 1)

    def alarm(table: str, comparison: str, missing: str = "ignore", **more: Any) -> dict[str, Any]:
        metric = {
            "Namespace": "AWS/DynamoDB",
            "MetricName": "WriteThrottleEvents",
            "Dimensions": [{"Name": "TableName", "Value": table}],
        }
        return {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "AlarmName": f"filled-{comparison[:4]}-{missing}-{table}",
                "ComparisonOperator": comparison,
                "EvaluationPeriods": 6,
                "DatapointsToAlarm": 6 if comparison.startswith("Less") else 1,
                "Threshold": 1,
                "TreatMissingData": missing,
                "Metrics": [
                    {"Id": "expr_1", "Expression": "FILL(m, 0)"},
                    {
                        "Id": "m",
                        "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"},
                        "ReturnData": False,
                    },
                ],
                **more,
            },
        }

    resources = {
        "High": alarm(table, "GreaterThanOrEqualToThreshold"),
        "Low": alarm(table, "LessThanThreshold"),
        "Never": alarm(other, "LessThanThreshold"),
        "Silent": alarm(other, "LessThanThreshold", "breaching", WarmUpConfiguration=WARM_UP),
        "Heard": alarm(table, "LessThanThreshold", "breaching", WarmUpConfiguration=WARM_UP),
    }
    formation = cloud.client("cloudformation")
    formation.create_stack(StackName="filled", TemplateBody=json.dumps({"Resources": resources}))
    names = [each["Properties"]["AlarmName"] for each in resources.values()]
    high, low, never, silent, heard = names
    _soon(lambda: len(cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]) == 5)
    cloud.advance(5 * MINUTE)
    assert [_state(cloudwatch, name) for name in names] == ["INSUFFICIENT_DATA"] * 5
    _throttle(world, table)
    cloud.advance(5 * MINUTE)
    assert (_state(cloudwatch, high), _state(cloudwatch, low), _state(cloudwatch, heard)) == ("ALARM", "OK", "OK")
    cloud.advance(4 * MINUTE)
    assert (_state(cloudwatch, high), _state(cloudwatch, low)) == ("OK", "ALARM")
    assert (_state(cloudwatch, silent), _state(cloudwatch, heard)) == ("ALARM", "ALARM")
    assert _state(cloudwatch, never) == "INSUFFICIENT_DATA"


def test_datapoints_of_a_large_request_which_boto3_compresses_are_taken(cloudwatch: Any, world: World) -> None:
    at = world.now()
    data = [
        {"MetricName": f"Measured{number}", "Value": 7.0 * number, "Unit": "Count", "Timestamp": at}
        for number in range(400)
    ]
    cloudwatch.put_metric_data(Namespace="Shop", MetricData=data)
    found = cloudwatch.get_metric_statistics(
        Namespace="Shop",
        MetricName="Measured311",
        StartTime=at - MINUTE,
        EndTime=at + MINUTE,
        Period=60,
        Statistics=["Sum"],
    )
    assert [point["Sum"] for point in found["Datapoints"]] == [7.0 * 311]
