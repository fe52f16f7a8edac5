"""Event source mappings of queues on a driven clock: when a queue's messages go to its function, and how many.

A batch goes to the function when the queue has as many messages as a batch may have, or when its oldest visible one has
been so for the batching window, provided that fewer batches are under way than the mapping allows. Nothing is looked
for in between: the times at which messages are visible say when a batch is due.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from highwater_local import ministack
from highwater_local.clock import CloudClock
from highwater_local.functions import Invocations

Document = dict[str, Any]
# Seconds between two batches of one mapping. A function that returns messages at once would else get them for ever, as
# a driven clock stands still meanwhile.
_BETWEEN_BATCHES: Final = 0.001
# Seconds after which a mapping looks again at a queue that had nothing for it, such as the rest of a group under way
_AFTER_NOTHING: Final = 1.0
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class _Due:
    """A batch that is due: when, for which mapping, and of which queue."""

    at: float
    mapping: str
    queue: Document


class Mappings:
    """Replaces MiniStack's polls of queues, which go by real time; in effect as soon as this is created."""

    def __init__(self, clock: CloudClock, invocations: Invocations) -> None:
        self._clock = clock
        self._invocations = invocations
        self._under_way: Counter[str] = Counter()
        # by mapping, the time before which it takes nothing
        self._rests: dict[str, float] = {}
        self._taken: _Due | None = None
        # streams are still polled by MiniStack's own thread
        self._poll = ministack.poll_queues.replace(lambda: False)
        self._receive = ministack.receive_for_mapping.replace(self._receive_batch)
        ministack.start_batch.replace(self._start)

    def next_due(self) -> datetime | None:
        """Return when the next batch is due, `None` if no message waits; it may have been due before now."""
        due = self._next()
        if due is None:
            return None
        at = datetime.fromtimestamp(due.at, UTC)
        # rounded up: before its time a message is not visible
        return at if at.timestamp() >= due.at else at + _MICROSECOND

    def run_next(self) -> None:
        """Give the next due batch to its function: one at a time, so that functions work in one order."""
        self._taken = due = self._next()
        if due is None:
            return
        now = self._clock.now().timestamp()
        self._rests[due.mapping] = now + _AFTER_NOTHING
        with self._invocations.cloud_time():
            # of all mappings, only the one that is due gets messages
            self._poll()
        self._taken = None

    def _next(self) -> _Due | None:
        found = [due for scope in ministack.every_mapping() if (due := self._due(*scope)) is not None]
        return min(found, key=lambda due: due.at, default=None)

    def _due(self, account: str, region: str, mapping: Document) -> _Due | None:
        """Return the next batch of a mapping, `None` if it has no queue, no message, or no batch more is allowed."""
        queue = ministack.queue_of(mapping.get("EventSourceArn", ""))
        if queue is None or not queue["messages"] or not mapping.get("Enabled", True):
            return None
        id, size = mapping["UUID"], mapping.get("BatchSize", 10)
        with ministack.request_scope(account, region):
            function, settings = ministack.function_of_mapping(mapping["FunctionName"], mapping.get("Qualifier"))
            if function is None:
                return None
            if self._under_way[id] >= ministack.most_batches(mapping, function, settings, queue):
                return None
            rests = max(self._rests.get(id, 0.0), ministack.pauses_of_mappings.now.get(id, 0.0))
        visible = heapq.nsmallest(size, [message["visible_at"] for message in queue["messages"]])
        at = visible[0] + mapping.get("MaximumBatchingWindowInSeconds", 0)
        if len(visible) == size:
            at = min(at, visible[-1])
        return _Due(max(at, rests), id, queue)

    def _receive_batch(self, url: str, size: int) -> list[Document]:
        """Receive a whole batch for the mapping that is due, ten by ten as SQS has it, and nothing for others."""
        due = self._taken
        if due is None or due.queue["url"] != url or ministack.get_region() not in due.queue["attributes"]["QueueArn"]:
            return []
        self._taken = None
        batch: dict[str, Document] = {}
        received = -1
        # a queue that hides nothing would give the same ten again
        while received < len(batch) < size:
            received = len(batch)
            batch |= {message["id"]: message for message in self._receive(url, size - received)}
        if batch:
            self._rests[due.mapping] = self._clock.now().timestamp() + _BETWEEN_BATCHES
        return list(batch.values())

    def _start(self, mapping: str, work: Callable[..., None], *arguments: Any) -> None:
        """Give a batch to the function in the background, and answer the queue."""
        self._under_way[mapping] += 1

        def answer() -> None:
            try:
                work(*arguments)
            finally:
                self._under_way[mapping] -= 1

        self._invocations.run_apart(answer)
