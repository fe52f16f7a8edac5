"""`highwater.queues.BufferedProducer`: sends actions to the queue of `BufferedWrites`, and says when it has to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Literal, Self

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.bulk.budget import TRIES, may_pass
from highwater.bulk.items import Delete, Put, Values
from highwater.bulk.send import Rejected, job_of
from highwater.calls.attempts import ONCE, PAID_REQUEST, client_config
from highwater.client.sessions import check_session
from highwater.core.errors import HighwaterError
from highwater.core.findings import is_whole, shown
from highwater.core.units import NANOSECONDS
from highwater.queues.messages import MOST_ENTRIES, MOST_MESSAGE_BYTES, body_of, in_tens

# Seconds for a connection, and for an answer
_TIMEOUTS: Final = (2, 10)
# those that wait, and those that are written now or come back later, which the function does by their visibility
_COUNTS: Final = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


class BufferedWriteError(HighwaterError):
    """An action cannot be sent: no message expresses it, or the queue refuses it or does not answer.

    Attributes:
        bodies: The messages that the queue refused for good; they are not held any longer.
    """

    def __init__(self, message: str, bodies: tuple[str, ...] = ()) -> None:
        self.bodies = bodies
        super().__init__(message)


class BufferFullError(BufferedWriteError):
    """A put or delete with `wait=False` would have to wait; its action was not taken.

    Attributes:
        seconds: The seconds until it is worth trying again.
    """

    def __init__(self, message: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)


@dataclass(eq=False)
class BufferedProducer:
    """Sends puts and deletes to the queue of a `BufferedWrites`, up to ten in a request; for one thread.

    Messages are held until there are ten, or 1 MiB of them (SQS's limits for a request, of SendMessageBatch in its API
    Reference); the next put or delete sends those before its own action is taken, so one that raises has not taken it.
    What fails for a time is sent again after 50 ms to 20 s. Meanwhile up to *max_pending* messages are held, and then a
    put waits, or raises `BufferFullError`. As an answer may be lost, a message may be sent twice.

    The end of the `with` block sends the rest, as `flush` does. If an exception ends the block, the rest is tried once
    without waiting; messages that were not sent then are in `unsent`, and a note at the exception has their number.

    Attributes:
        queue_url: The queue's URL, `buffered.queue.queue_url` in the CDK app.
        session: A boto3 session of the queue's region. By default a new one.
        max_pending: The most messages that are held, 1 or more; each has up to 1 MiB. By default 100.
        max_queued: While the queue has more messages than this, 0 or more, puts send nothing. Messages that come back
            later count. The number is SQS's estimate, and needs `sqs:GetQueueAttributes`. By default there is no limit.
        count_seconds: The seconds between two questions for that number, more than 0. By default 10.
        clock: Monotonic clock, in nanoseconds.
        pause: Sleeps for the given number of seconds.
        connect: Makes the SQS client. By default from the session.

    Raises:
        TypeError: The session is no boto3 session.
        ValueError: Another argument is not valid.
        BufferedWriteError: At the end of the block, as for `flush`.

    Example:
        ```python
        with highwater.queues.BufferedProducer(queue_url) as orders:
            orders.put({"order_id": "o-1", "total": Decimal("12.5"), "version": 7})
            orders.delete({"order_id": "o-2", "version": 8})
        ```
    """

    queue_url: str
    _: KW_ONLY
    session: Any = None
    max_pending: int = 100
    max_queued: int | None = None
    count_seconds: float = 10.0
    clock: Callable[[], int] = lambda: time.monotonic_ns()
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    connect: Callable[[], Any] | None = None
    # messages with their sizes, the oldest first
    _held: list[tuple[str, int]] = field(default_factory=list, init=False)
    # messages that the queue refused, with the reasons, until an error reports them
    _refused: list[tuple[str, str]] = field(default_factory=list, init=False)
    _why: str = field(default="", init=False)
    _failures: int = field(default=0, init=False)
    _retries_at: int | None = field(default=None, init=False)
    _counts_at: int | None = field(default=None, init=False)
    _queued: int = field(default=0, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value that is not allowed, `TypeError` for another session."""
        check_session(self.session, "producer: session")
        is_url = isinstance(self.queue_url, str) and self.queue_url.startswith(("https://", "http://"))
        _check("queue_url", self.queue_url, is_url, "the queue's URL; give buffered.queue.queue_url")
        is_count = is_whole(self.max_pending) and self.max_pending >= 1
        _check("max_pending", self.max_pending, is_count, "a whole number, 1 or more; give 1 to hold one message")
        is_limit = self.max_queued is None or (is_whole(self.max_queued) and self.max_queued >= 0)
        _check("max_queued", self.max_queued, is_limit, "a whole number, 0 or more; leave it out for no limit")
        is_time = isinstance(self.count_seconds, int | float) and self.count_seconds > 0
        _check("count_seconds", self.count_seconds, is_time, "seconds, more than 0; leave it out for 10")

    def put(self, item: Values, *, wait: bool = True) -> None:
        """Have an item put; it replaces an item with the same key.

        Args:
            item: Python values, as boto3's resources take them, but neither binary values nor sets; up to 400 KB.
            wait: Whether to wait where `would_block`; without, only answers of the queue are waited for.

        Raises:
            BufferFullError: *wait* is false, and the call would have to wait.
            BufferedWriteError: No message expresses the item; or the queue refused earlier messages for good, rejects
                all requests, or failed eight times in a row.

        Example:
            ```python
            try:
                orders.put(order, wait=False)
            except highwater.queues.BufferFullError as full:
                reply(503, retry_after=full.seconds)
            ```
        """
        self._take("put", Put(item), wait=wait)

    def delete(self, key: Values, *, wait: bool = True) -> None:
        """Have the item with a key deleted.

        Args:
            key: The key's attributes, and the version where the queue has one, as Python values.
            wait: As for `put`.

        Raises:
            BufferFullError: As for `put`.
            BufferedWriteError: As for `put`.

        Example:
            ```python
            orders.delete({"order_id": "o-1", "version": 8})
            ```
        """
        self._take("delete", Delete(key), wait=wait)

    def flush(self) -> None:
        """Send all messages that are held, whatever *max_queued*; returns when the queue has them.

        Raises:
            BufferedWriteError: The queue refused messages for good, and has the others; or it rejects all requests or
                failed eight times in a row, and `unsent` has the messages.

        Example:
            ```python
            orders.flush()
            ```
        """
        while self._held:
            if left := self._seconds_until(self._retries_at):
                self._wait(left)
            else:
                self._send()
        self._raise_for_refused()

    @property
    def would_block(self) -> bool:
        """Whether the next put or delete would have to wait, as far as is known; asks nobody.

        It would while *max_pending* messages are held, and either the queue refused some a moment ago, or it had more
        than *max_queued* when it was asked.
        """
        return len(self._held) >= self.max_pending and self._seconds_held_back > 0

    @property
    def unsent(self) -> tuple[str, ...]:
        """The bodies of the messages that the queue does not have, without those that an error has already reported."""
        return (*(body for body, _ in self._refused), *(body for body, _ in self._held))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        if error is None:
            self.flush()
            return
        left = len(self._held) + 1
        with suppress(BufferedWriteError):
            while 0 < len(self._held) < left:
                left = len(self._held)
                self._send()
        if lost := len(self.unsent):
            error.add_note(f"{self._where}: messages that were not sent: {lost:,}: {self._why}; they are in unsent")

    def _take(self, what: Literal["put", "delete"], action: Put | Delete, *, wait: bool) -> None:
        if self._is_closed:
            raise BufferedWriteError(f"{self._where}: {what}: its block has ended; begin another one")
        body, size = _message_of(what, action)
        while self._is_full_before(size):
            self._count()
            left = self._seconds_held_back
            if not left:
                self._send()
                self._raise_for_refused()
            elif len(self._held) < self.max_pending:
                break
            elif wait:
                self._wait(left)
            else:
                held = f"messages held: got {len(self._held):,}, allowed: {self.max_pending:,} (max_pending)"
                why = f"SQS did not take some ({self._why})"
                if not self._seconds_until(self._retries_at):
                    why = f"the queue has about {self._queued:,}, more than max_queued, {self.max_queued:,}"
                raise BufferFullError(f"{self._where}: {what}: {held}; {why}; try again in {left:.3g} s", left)
        self._held.append((body, size))

    def _is_full_before(self, size: int) -> bool:
        """Whether a request is full without one more message of *size*, or nothing more may be held."""
        most = min(self.max_pending, MOST_ENTRIES)
        return len(self._held) >= most or sum(held for _, held in self._held) + size > MOST_MESSAGE_BYTES

    @property
    def _seconds_held_back(self) -> float:
        is_queue_full = self.max_queued is not None and self._queued > self.max_queued
        return max(self._seconds_until(self._retries_at), self._seconds_until(self._counts_at) * is_queue_full)

    def _seconds_until(self, at: int | None) -> float:
        return 0.0 if at is None else max(at - self.clock(), 0) / NANOSECONDS

    def _wait(self, seconds: float) -> None:
        """Wait; raises instead after eight failures in a row."""
        if self._failures >= TRIES:
            self._raise_for_refused()
            problem = f"messages that are not sent: {len(self._held):,}: {self._why} (tried {self._failures} times)"
            self._failures = 0
            raise BufferedWriteError(f"{self._where}: {problem}; they are held, and flush tries again")
        self.pause(seconds)

    def _send(self) -> None:
        """Send the oldest messages in one request; those that fail for a time stay held."""
        oldest = self._held[:MOST_ENTRIES]
        batch = in_tens(oldest, [size for _, size in oldest], MOST_MESSAGE_BYTES)[0]
        entries = [{"Id": str(number), "MessageBody": body} for number, (body, _) in enumerate(batch)]
        try:
            answer = self._client.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            self._why = " ".join(str(error).split())
            if not may_pass(error):
                fix = "check the URL, the session's region, and grant_send"
                raise BufferedWriteError(f"{self._where}: nothing is sent: {self._why}; {fix}") from error
            answer = {}
        done = {int(entry["Id"]) for entry in answer.get("Successful", ())}
        self._queued += len(done)
        for entry in answer.get("Failed", ()):
            self._why = f"{entry.get('Code', '')} {entry.get('Message', '')}".strip()
            if entry.get("SenderFault"):
                done.add(int(entry["Id"]))
                self._refused.append((batch[int(entry["Id"])][0], self._why))
        kept = [message for number, message in enumerate(batch) if number not in done]
        self._held[: len(batch)] = kept
        self._failures = (0 if done else self._failures) + bool(kept)
        pause = round(PAID_REQUEST.seconds(self._failures) * NANOSECONDS)
        self._retries_at = self.clock() + pause if kept else None

    def _raise_for_refused(self) -> None:
        if refused := tuple(self._refused):
            self._refused.clear()
            body, why = refused[0]
            problem = f"messages that were refused: {len(refused):,}, the first for {why}: {shown(body)}"
            bodies = tuple(each for each, _ in refused)
            raise BufferedWriteError(f"{self._where}: {problem}; mend and put them again", bodies)

    def _count(self) -> None:
        """Ask how many messages the queue has, if there is a limit, and it is time."""
        if self.max_queued is None or self._seconds_until(self._counts_at):
            return
        try:
            found = self._client.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=list(_COUNTS))
            self._queued = sum(int(found["Attributes"][name]) for name in _COUNTS)
        except (ClientError, BotoCoreError) as error:
            if not may_pass(error):
                fix = 'allow it: buffered.queue.grant(role, "sqs:GetQueueAttributes")'
                raise BufferedWriteError(f"{self._where}: max_queued: cannot count: {error}; {fix}") from error
        self._counts_at = self.clock() + round(self.count_seconds * NANOSECONDS)

    @property
    def _where(self) -> str:
        return f"queue {self.queue_url.rsplit('/', 1)[-1]}"

    @cached_property
    def _client(self) -> Any:
        if self.connect is not None:
            return self.connect()
        return (self.session or boto3.Session()).client("sqs", config=client_config(ONCE, _TIMEOUTS))


def _message_of(what: Literal["put", "delete"], action: Put | Delete) -> tuple[str, int]:
    """Return the message for an action, and its size in bytes."""
    try:
        body = body_of(what, action.item if isinstance(action, Put) else action.key)
    except ValueError as error:
        raise BufferedWriteError(str(error)) from None
    job = job_of(0, action)
    if isinstance(job, Rejected):
        raise BufferedWriteError(f"{what}: {job.why}")
    if (size := len(body.encode())) > MOST_MESSAGE_BYTES:
        got = f"the message has {size:,} bytes, allowed: {MOST_MESSAGE_BYTES:,} (1 MiB)"
        raise BufferedWriteError(f"{what}: {got}; control characters take six bytes each")
    return body, size


def _check(name: str, got: object, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        message = f"producer: {name}: got {shown(got)}, allowed: {allowed}"
        raise ValueError(message)
