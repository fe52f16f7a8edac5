"""The way back from a dead-letter queue: SQS knows the source of what it moved itself, and of nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import refused, unique

pytestmark = pytest.mark.xdist_group("cloud queue alarms")
REASON = {"HighwaterReason": {"DataType": "String", "StringValue": "not JSON"}}


def _queues(sqs: Any) -> tuple[str, str, str, str]:
    """The URLs and ARNs of a queue and its dead-letter queue."""

    def make(name: str, **attributes: str) -> tuple[str, str]:
        url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    name = unique("redrive")
    letters, letters_arn = make(f"{name}-letters")
    policy = json.dumps({"deadLetterTargetArn": letters_arn, "maxReceiveCount": "1"})
    queue, queue_arn = make(name, RedrivePolicy=policy, VisibilityTimeout="30")
    return queue, queue_arn, letters, letters_arn


def _received(sqs: Any, url: str) -> list[tuple[str, dict[str, Any]]]:
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get("Messages", [])
    return [(each["Body"], each.get("MessageAttributes", {})) for each in found]


def test_message_that_was_sent_to_a_dead_letter_queue_needs_a_destination(cloud: LocalCloud) -> None:
    """As the function of `BufferedWrites` sends what can never be written."""
    sqs = cloud.client("sqs")
    queue, queue_arn, letters, letters_arn = _queues(sqs)
    sqs.send_message(QueueUrl=letters, MessageBody="{", MessageAttributes=REASON)

    assert sqs.start_message_move_task(SourceArn=letters_arn)["TaskHandle"]
    (failed,) = sqs.list_message_move_tasks(SourceArn=letters_arn)["Results"]
    assert (failed["Status"], failed["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert (failed["ApproximateNumberOfMessagesMoved"], failed["ApproximateNumberOfMessagesToMove"]) == (0, 1)
    assert _received(sqs, queue) == []

    sqs.start_message_move_task(SourceArn=letters_arn, DestinationArn=queue_arn)
    done, before = sqs.list_message_move_tasks(SourceArn=letters_arn, MaxResults=10)["Results"]
    assert (done["Status"], done["ApproximateNumberOfMessagesMoved"], before["Status"]) == ("COMPLETED", 1, "FAILED")
    assert _received(sqs, queue) == [("{", REASON)]
    assert _received(sqs, letters) == []


def test_message_that_sqs_moved_itself_goes_back_to_its_queue(cloud: LocalCloud) -> None:
    sqs = cloud.client("sqs")
    queue, _, letters, letters_arn = _queues(sqs)
    sqs.send_message(QueueUrl=queue, MessageBody="late")
    assert _received(sqs, queue) == [("late", {})]
    cloud.step(60)
    # the second receive is one too many
    assert _received(sqs, queue) == []
    sqs.start_message_move_task(SourceArn=letters_arn)
    assert sqs.list_message_move_tasks(SourceArn=letters_arn)["Results"][0]["Status"] == "COMPLETED"
    assert (_received(sqs, letters), _received(sqs, queue)) == ([], [("late", {})])


def test_only_a_dead_letter_queue_is_moved_from(cloud: LocalCloud) -> None:
    sqs = cloud.client("sqs")
    _, queue_arn, _, letters_arn = _queues(sqs)
    with refused("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."):
        sqs.start_message_move_task(SourceArn=queue_arn)
    with refused(
        "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."
    ):
        sqs.start_message_move_task(SourceArn=letters_arn, DestinationArn=f"{queue_arn}-gone")
