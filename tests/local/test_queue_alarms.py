"""The alarms of `BufferedWrites` on a queue whose messages are sent and deleted by the test, a few in five minutes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import aws_cdk as cdk
import boto3
import pytest

from cdk_highwater import BoostCoordinator, BufferedWrites
from highwater_lab.local import LocalCloud
from tests.constructs.template_view import TemplateView, placed_stack, scalable_table
from tests.local.world import MINUTE, Stack, unique

pytestmark = pytest.mark.xdist_group("cloud queue alarms")
DRAIN_MINUTES = 60


def test_queue_that_nobody_watches_has_a_datapoint_for_each_minute(cloud: LocalCloud) -> None:
    # no alarm is in this region
    place: Any = cloud.client_arguments() | {"region_name": "ap-south-1"}
    sqs, cloudwatch = boto3.client("sqs", **place), boto3.client("cloudwatch", **place)
    name = unique("unwatched")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    began = cloud.status().now
    cloud.advance(7 * MINUTE)
    found = cloudwatch.get_metric_statistics(
        Namespace="AWS/SQS",
        MetricName="ApproximateNumberOfMessagesVisible",
        Dimensions=[{"Name": "QueueName", "Value": name}],
        StartTime=began - MINUTE,
        EndTime=began + 8 * MINUTE,
        Period=60,
        Statistics=["Maximum"],
    )["Datapoints"]
    assert [each["Maximum"] for each in found] == [1.0] * len(found)
    assert len(found) >= 7
    sqs.delete_queue(QueueUrl=url)


class Queue:
    """A queue with the alarms on its metrics; the test is the function that writes."""

    def __init__(self, cloud: LocalCloud, name: str, alarms: dict[str, str]) -> None:
        self._cloud = cloud
        self._sqs, self._cloudwatch = cloud.client("sqs"), cloud.client("cloudwatch")
        self._url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        self._alarms = alarms

    def send(self, number: int) -> None:
        for _ in range(number):
            self._sqs.send_message(QueueUrl=self._url, MessageBody="{}")

    def receive(self, number: int, hidden_seconds: int) -> list[Any]:
        """Receive so many messages, and hide them for that time."""
        asked = {"QueueUrl": self._url, "VisibilityTimeout": hidden_seconds}
        return [each for _ in range(number) for each in self._sqs.receive_message(**asked).get("Messages", ())]

    def write(self, number: int) -> None:
        for message in self.receive(number, 30):
            self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def pass_minutes(self, minutes: int, each_five: Callable[[], Any] = lambda: None) -> dict[str, int | None]:
        """Let minutes pass; return after how many each alarm was first in ALARM."""
        rang: dict[str, int | None] = dict.fromkeys(self._alarms)
        for minute in range(minutes):
            if minute % 5 == 0:
                each_five()
            self._cloud.advance(MINUTE)
            for id, state in self.states().items():
                if state == "ALARM" and rang[id] is None:
                    rang[id] = minute + 1
        return rang

    def states(self) -> dict[str, str]:
        found = self._cloudwatch.describe_alarms(AlarmNames=[*self._alarms.values()])["MetricAlarms"]
        states = {each["AlarmName"]: str(each["StateValue"]) for each in found}
        return {id: states[name] for id, name in self._alarms.items()}


@pytest.fixture(scope="module")
def alarms() -> dict[str, dict[str, Any]]:
    """The two alarms on the queue's own metrics, as they are synthesized."""
    stack = placed_stack()
    BufferedWrites(
        stack,
        "Buffered",
        table=scalable_table(stack, "Orders"),
        coordinator=BoostCoordinator(stack, "Boosts"),
        write=500,
        drain_time=cdk.Duration.minutes(DRAIN_MINUTES),
    )
    found = TemplateView(stack).named("AWS::CloudWatch::Alarm")
    wanted = {"Backlog": "BufferedBacklog", "Age": "BufferedAge"}
    return {id: next(each for name, each in found.items() if name[:-8] == prefix) for id, prefix in wanted.items()}


@pytest.fixture
def queue(cloud: LocalCloud, stack: Stack, alarms: dict[str, dict[str, Any]]) -> Iterator[Queue]:
    name = unique("queue")
    (dimension,) = alarms["Age"]["Properties"]["Dimensions"]
    named = json.loads(json.dumps(alarms).replace(json.dumps(dimension["Value"]), json.dumps(name)))
    for id, alarm in named.items():
        alarm["Properties"]["AlarmName"] = f"{name}-{id}"
    resources = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}, **named}
    assert stack.create(**resources) == "CREATE_COMPLETE"
    # a period begins: what is sent now is there for the whole of it
    now = cloud.status().now
    cloud.advance(5 * MINUTE - MINUTE * (now.minute % 5) - (now - now.replace(second=0, microsecond=0)))
    yield Queue(cloud, name, {id: f"{name}-{id}" for id in named})
    assert stack.delete() == "DELETE_COMPLETE"


def test_queue_that_grows_rings_ahead_of_the_drain_time_and_is_silent_once_it_is_empty(queue: Queue) -> None:
    def grow() -> None:
        queue.send(3)
        queue.write(1)

    # 12 messages, which take 60 minutes, are there from minute 25 on; the oldest message is 60 minutes old after 90
    rang = queue.pass_minutes(100, grow)
    assert rang == {"Backlog": 41, "Age": 96}
    queue.write(40)
    queue.pass_minutes(25)
    assert queue.states() == {"Backlog": "OK", "Age": "OK"}


def test_messages_that_come_back_because_the_table_throttles_count_while_they_are_hidden(queue: Queue) -> None:
    queue.send(30)

    def throttle() -> None:
        queue.write(1)
        queue.receive(10, 290)

    assert queue.pass_minutes(30, throttle)["Backlog"] == 16


def test_function_that_is_stopped_rings_in_a_quarter_of_an_hour_even_for_one_message(queue: Queue) -> None:
    queue.send(1)
    assert queue.pass_minutes(80) == {"Backlog": 16, "Age": 66}


def test_queue_that_keeps_up_never_rings(queue: Queue) -> None:
    def keep_up() -> None:
        queue.send(4)
        queue.pass_minutes(1)
        queue.write(4)

    assert queue.pass_minutes(60, keep_up) == {"Backlog": None, "Age": None}
    # a burst whose first period has no rate to go by
    queue.send(100)
    queue.pass_minutes(3)
    assert queue.pass_minutes(20, lambda: queue.write(25)) == {"Backlog": None, "Age": None}


def test_alarm_on_an_expression_that_is_not_evaluated_here_is_rejected(stack: Stack, alarms: dict[str, Any]) -> None:
    text = json.dumps(alarms["Backlog"]).replace("FILL(deleted, 0)", "ABS(deleted)")
    queue = {"Type": "AWS::SQS::Queue"}
    (dimension,) = alarms["Age"]["Properties"]["Dimensions"]
    alarm = json.loads(text.replace(json.dumps(dimension["Value"]), json.dumps({"Fn::GetAtt": ["Queue", "QueueName"]})))
    assert stack.create(Queue=queue, Alarm=alarm) == "ROLLBACK_COMPLETE"
    assert "(metric math) is not supported" in stack.reasons()
