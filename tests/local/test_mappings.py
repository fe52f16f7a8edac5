"""Queues that start functions, on a driven clock: batches go by the cloud's time, one after another."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import create_function

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("driven clock")]
STARTS_AT = datetime(2026, 3, 2, 7, 59, 30, tzinfo=UTC)
CLOUD = {"starts_at": STARTS_AT, "has_instant_updates": False}
# tells what it was given and when, and does what the first message asks for
HANDLER = """
import json, time

def handler(event, context):
    asked = [json.loads(record["body"]) for record in event["Records"]]
    print(json.dumps(["took", time.time(), [each["n"] for each in asked]]))
    time.sleep(asked[0].get("sleeps", 0))
    if asked[0].get("fails"):
        raise ValueError("as asked")
    back = [record["messageId"] for record, each in zip(event["Records"], asked) if each.get("returns")]
    return {"batchItemFailures": [{"itemIdentifier": id} for id in back]}
"""


class Queue:
    """A queue that starts a function of its own, and the batches that the function was given."""

    def __init__(self, cloud: LocalCloud, name: str, attributes: dict[str, str], **mapping: Any) -> None:
        self._cloud, self._sqs = cloud, cloud.client("sqs")
        self._function = name.partition(".")[0]
        functions = cloud.client("lambda")
        create_function(functions, self._function, HANDLER, Timeout=90)
        self.url = self._sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.mapping = functions.create_event_source_mapping(
            EventSourceArn=f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}",
            FunctionName=self._function,
            FunctionResponseTypes=["ReportBatchItemFailures"],
            **mapping,
        )["UUID"]
        self.began = cloud.status().now.timestamp()

    def send(self, numbers: range, *, group: str | None = None, **asked: Any) -> None:
        """Send a message for each number, which asks the function for the same."""
        named = {} if group is None else {"MessageGroupId": group}
        for number in numbers:
            unique = {} if group is None else {"MessageDeduplicationId": str(number)}
            body = json.dumps({"n": number} | asked)
            self._sqs.send_message(QueueUrl=self.url, MessageBody=body, **named, **unique)

    def took(self) -> list[tuple[float, list[int]]]:
        """The batches, each with the seconds since the queue was made, to the millisecond."""
        pages = (
            self._cloud.client("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/aws/lambda/{self._function}")
        )
        lines = [event["message"] for page in pages for event in page["events"]]
        batches = [json.loads(line) for line in lines if line.startswith('["took"')]
        return sorted((round(at - self.began, 3), numbers) for _, at, numbers in batches)

    def left(self) -> int:
        """The messages in the queue, visible or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def close(self) -> None:
        """Have the queue start nothing more."""
        self._cloud.client("lambda").delete_event_source_mapping(UUID=self.mapping)


def test_batch_goes_when_it_is_full_or_the_window_has_passed_and_few_enough_are_under_way(cloud: LocalCloud) -> None:
    queue = Queue(
        cloud,
        "windows",
        {"VisibilityTimeout": "600"},
        BatchSize=25,
        MaximumBatchingWindowInSeconds=10,
        ScalingConfig={"MaximumConcurrency": 2},
    )
    queue.send(range(85), sleeps=17)
    cloud.step(100)
    assert queue.took() == [
        (0.0, list(range(25))),
        (0.001, list(range(25, 50))),
        # full too, but two are under way until then
        (17.0, list(range(50, 75))),
        # not full; the window has passed long ago
        (17.001, list(range(75, 85))),
    ]
    assert queue.left() == 0
    queue.send(range(85, 88))
    cloud.step(9.9)
    assert queue.left() == 3
    cloud.step(0.1)
    assert queue.left() == 0
    assert queue.took()[-1] == (110.0, [85, 86, 87])
    queue.close()


def test_step_of_nothing_gives_a_batch_that_is_due_to_the_function(cloud: LocalCloud) -> None:
    queue = Queue(cloud, "now", {})
    queue.send(range(3))
    assert queue.left() == 3
    cloud.step(0)
    assert (queue.left(), queue.took()) == (0, [(0.0, [0, 1, 2])])
    queue.close()


def test_failed_batch_comes_back_after_its_visibility_and_others_wait_for_a_second(cloud: LocalCloud) -> None:
    queue = Queue(cloud, "fails", {"VisibilityTimeout": "40"}, BatchSize=2)
    queue.send(range(2), fails=True)
    queue.send(range(2, 3))
    cloud.step(90)
    assert queue.took() == [(0.0, [0, 1]), (1.0, [2]), (40.0, [0, 1]), (80.0, [0, 1])]
    queue.close()


def test_returned_message_comes_back_after_its_visibility_and_at_the_end_to_the_other_queue(cloud: LocalCloud) -> None:
    sqs = cloud.client("sqs")
    letters = sqs.create_queue(QueueName="letters")["QueueUrl"]
    rules = {"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:letters", "maxReceiveCount": 3}
    queue = Queue(cloud, "returns", {"VisibilityTimeout": "7", "RedrivePolicy": json.dumps(rules)})
    queue.send(range(1), returns=True)
    queue.send(range(1, 3))
    cloud.step(60)
    assert queue.took() == [(0.0, [0, 1, 2]), (7.0, [0]), (14.0, [0])]
    (letter,) = sqs.receive_message(QueueUrl=letters)["Messages"]
    assert json.loads(letter["Body"]) == {"n": 0, "returns": True}
    queue.close()


def test_messages_that_are_returned_at_once_do_not_hold_the_clock(cloud: LocalCloud) -> None:
    queue = Queue(cloud, "again", {"VisibilityTimeout": "0"})
    queue.send(range(1), returns=True)
    cloud.step(0.005)
    assert queue.took() == [(number / 1_000, [0]) for number in range(6)]
    queue.close()


def test_groups_of_a_fifo_queue_keep_their_order(cloud: LocalCloud) -> None:
    queue = Queue(cloud, "groups.fifo", {"FifoQueue": "true", "VisibilityTimeout": "60"}, BatchSize=3)
    queue.send(range(5), group="one", sleeps=4)
    queue.send(range(5, 7), group="two")
    cloud.step(20)
    assert queue.took() == [(0.0, [0, 1, 2]), (4.0, [3, 4, 5]), (8.0, [6])]
    queue.close()


def test_same_run_gives_the_same_batches_twice() -> None:
    runs = []
    for _ in range(2):
        with LocalCloud(clock="driven", starts_at=STARTS_AT) as made:
            queue = Queue(made, "twice", {"VisibilityTimeout": "13"}, ScalingConfig={"MaximumConcurrency": 3})
            for second in range(5):
                queue.send(range(second * 40, second * 40 + 30), sleeps=1.7)
                queue.send(range(second * 40 + 30, second * 40 + 40), returns=second < 2)
                made.step(1)
            made.step(30)
            runs.append(queue.took())
            queue.close()
    assert runs[0] == runs[1]
    assert len(runs[0]) > 20


def test_advance_gives_what_has_become_due_to_the_function_at_its_end(cloud: LocalCloud) -> None:
    queue = Queue(cloud, "later", {"VisibilityTimeout": "60"}, MaximumBatchingWindowInSeconds=5, BatchSize=10)
    queue.send(range(2))
    cloud.advance(STARTS_AT - STARTS_AT.replace(hour=6))
    assert queue.left() == 0
    assert [numbers for _, numbers in queue.took()] == [[0, 1]]
    queue.close()
