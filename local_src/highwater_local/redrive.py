"""SQS's way back from a dead-letter queue: tasks that move messages to their source, or to a queue that is named.

A task ends as soon as it has begun. One without a destination fails at the first message that SQS did not move itself:
of one that was sent to the dead-letter queue it knows no source. Source: Amazon SQS API Reference,
StartMessageMoveTask, and Developer Guide, "Troubleshoot dead-letter queue and DLQ redrive issues", read 2026-11. The
texts of its errors are not documented.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.autoscaling.records import uuid_of
from highwater_local.ministack import Document

_SOURCE: Final = "DeadLetterQueueSourceArn"
_NO_SOURCE: Final = "CouldNotDetermineMessageSource"
# as many of a queue's last tasks as SQS lists
_LISTED: Final = 10


class Redrives:
    """Starts and lists tasks that move messages; in effect as soon as this is created.

    *second* returns the cloud's time in seconds since 1970.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        # by the source's ARN, the newest first
        self._tasks: dict[str, list[Document]] = defaultdict(list)
        ministack.QUEUE_REQUESTS.add("StartMessageMoveTask", self._start)
        ministack.QUEUE_REQUESTS.add("ListMessageMoveTasks", self._list)

    def _start(self, request: Document, _url: str) -> Document:
        source, destination = str(request.get("SourceArn", "")), request.get("DestinationArn")
        queue = _found(source)
        if source not in map(_letters_of, ministack.queues()):
            raise ministack.queue_refusal(
                "InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."
            )
        if destination is not None:
            _found(destination)
        now = self._second()
        waiting = [each for each in queue["messages"] if each["visible_at"] <= now]
        task: Document = {"SourceArn": source, "StartedTimestamp": now * 1_000, "Status": "COMPLETED"}
        task |= {"ApproximateNumberOfMessagesToMove": len(waiting)}
        task |= {} if destination is None else {"DestinationArn": destination}
        moved = 0
        for message in waiting:
            target = destination or message["sys"].get(_SOURCE)
            if target is None:
                task |= {"Status": "FAILED", "FailureReason": _NO_SOURCE}
                break
            _send(_found(target), message)
            queue["messages"].remove(message)
            moved += 1
        handle = uuid_of(source, now, len(self._tasks[source]))
        self._tasks[source].insert(0, task | {"ApproximateNumberOfMessagesMoved": moved})
        return {"TaskHandle": handle}

    def _list(self, request: Document, _url: str) -> Document:
        most = min(int(request.get("MaxResults", 1)), _LISTED)
        source = str(request.get("SourceArn", ""))
        _found(source)
        return {"Results": self._tasks[source][:most]}


def _letters_of(queue: Document) -> object:
    """Return the ARN of a queue's dead-letter queue, `None` if it has none."""
    policy = queue["attributes"].get("RedrivePolicy")
    return json.loads(policy).get("deadLetterTargetArn") if isinstance(policy, str) and policy else None


def _found(arn: object) -> Document:
    """Return the queue with that ARN; raises SQS's error if there is none."""
    queue: Document | None = ministack.queue_of(str(arn))
    if queue is None:
        raise ministack.queue_refusal(
            "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."
        )
    return queue


def _send(queue: Document, message: Document) -> None:
    """Send a copy, which is a new message with the same attributes."""
    # what SQS keeps of a message are numbers and texts
    copy = json.loads(json.dumps({"MessageBody": message["body"], "MessageAttributes": message["message_attributes"]}))
    name = queue["attributes"]["QueueArn"].rpartition(":")[2]
    send: Callable[..., Any] = ministack.QUEUE_REQUESTS.now["SendMessage"]
    send(copy, name)
