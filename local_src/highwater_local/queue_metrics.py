"""The metrics of SQS's queues, in CloudWatch by the cloud's clock: once a minute, for queues that are in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from highwater_local import ministack

_NAMESPACE: Final = "AWS/SQS"
# Amazon SQS Developer Guide, "Available CloudWatch metrics" and "CloudWatch metrics for Amazon SQS", read 2026-11: a
# queue is active for six hours after it was used, and the age leaves out what was received more than three times
_ACTIVE_MINUTES: Final = 6 * 60
_MOST_RECEIVES: Final = 3


class QueueMetrics:
    """Publishes the numbers of messages in queues, the oldest's age, and how many were deleted.

    *second* returns the cloud's time in seconds since 1970.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        # by the queue's ARN
        self._deleted: Counter[str] = Counter()
        self._active: dict[str, int] = {}
        self._published: dict[str, int] = {}
        for name in ("DeleteMessage", "DeleteMessageBatch"):
            ministack.QUEUE_REQUESTS.wrap(name, partial(self._count, lambda data, url: data.get("QueueUrl", url)))
        ministack.delete_for_mapping.wrap(partial(self._count, lambda url, _: url))

    def publish(self) -> None:
        """Publish the present minute of each queue of the present account and region, once."""
        minute = self._second() // 60
        for queue in ministack.queues():
            arn = queue["attributes"]["QueueArn"]
            if queue["messages"] or self._deleted[arn]:
                self._active[arn] = minute
            if self._published.get(arn) == minute or minute - self._active.get(arn, 0) > _ACTIVE_MINUTES:
                continue
            self._published[arn] = minute
            messages, now = queue["messages"], self._second()
            visible = sum(message["visible_at"] <= now for message in messages)
            ages = [now - message["sent_at"] for message in messages if message["receive_count"] <= _MOST_RECEIVES]
            for name, value in (
                ("ApproximateNumberOfMessagesVisible", visible),
                ("ApproximateNumberOfMessagesNotVisible", len(messages) - visible),
                ("ApproximateAgeOfOldestMessage", max(ages, default=0)),
                ("NumberOfMessagesDeleted", self._deleted.pop(arn, 0)),
            ):
                dimensions = {"QueueName": arn.rpartition(":")[2]}
                ministack.put_datum(_NAMESPACE, name, dimensions, minute * 60, "None", value, None, None, None)

    def _count(self, url_of: Callable[..., str], own: Callable[..., Any], *arguments: Any) -> Any:
        """Delete messages as *own* does, and count them."""
        queue = ministack.queue_at(url_of(*arguments))
        before = len(queue["messages"])
        answer = own(*arguments)
        self._deleted[queue["attributes"]["QueueArn"]] += before - len(queue["messages"])
        return answer
