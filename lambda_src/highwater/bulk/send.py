"""Sends paced requests and retries throttled ones: pages of a read, batches of puts and deletes, updates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from highwater.bulk.budget import GOES_ON, Costs, Pacer, Paid, Retries
from highwater.bulk.in_flight import InFlight
from highwater.bulk.items import TOO_DEEP, Action, Delete, Put, Update
from highwater.calls.attempts import PAID_REQUEST
from highwater.client.hooks import Throttle, refusals_of, units_of
from highwater.core.items import MOST_ITEM_BYTES, item_bytes, nesting_of, write_units_of
from highwater.core.pacing.pages import PageSize
from highwater.core.plan.plan import TargetKey
from highwater.core.throttles import ThrottleCause
from highwater.core.units import NANOSECONDS, Dimension


@dataclass(slots=True)
class PageReader:
    """Reads pages of one table or index; may be used from several threads.

    Attributes:
        client: A DynamoDB client without retries.
        pacer: Has the budget, and waits.
        table: The table's name.
        index: The index whose capacity is consumed; `None` for the table, and for a local index, which consumes its
            table's.
        size: Chooses the number of items of a page.
        arguments: The arguments that every request has.
        in_flight: Learns how long requests take. By default nothing does.
        is_stopped: Once set, nothing more is sent: `read` raises `WorkEndedError`. By default it goes on.
        goes_on: The end of messages of errors: how the work can go on.
    """

    client: Any
    pacer: Pacer
    table: str
    index: str | None
    size: PageSize
    arguments: Mapping[str, Any]
    in_flight: InFlight | None = None
    is_stopped: threading.Event | None = None
    goes_on: str = GOES_ON
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, segment: int, key: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the page of a segment after *key*, `None` for its first one.

        A throttled request is retried for as long as it takes. Raises `PacedWorkError` if DynamoDB rejects the request
        for another reason, or if it fails eight times.
        """
        start = {} if key is None else {"ExclusiveStartKey": key}
        at = (self.table, (self.index, Dimension.READ))
        retries = Retries(self._why)
        while True:
            rate = self.pacer.most_at_once(self.table, self.index, Dimension.READ, self.is_stopped)
            with self._lock:
                if rate < float("inf"):
                    # a share of a budget takes smaller pages
                    self.size.rate = max(round(rate * 1_000), 1)
                limit, expected = self.size.limit, self.size.milliunits / 1_000
            paid = self.pacer.wait({at: expected}, is_retry=retries.has_failed, is_stopped=self.is_stopped)
            sent_at = self.pacer.clock()
            try:
                page: dict[str, Any] = self.client.scan(
                    **self.arguments, **start, Segment=segment, Limit=limit, ReturnConsumedCapacity="TOTAL"
                )
            except (ClientError, BotoCoreError) as error:
                refusals = refusals_of(error.response) if isinstance(error, ClientError) else []
                if refusals:
                    self.pacer.refund(paid, self.table, Dimension.READ, refusals)
                self.pacer.pause(retries.pause_after(error, is_throttled=bool(refusals)))
            else:
                units = self.units_of(page)
                if self.in_flight is not None:
                    seconds = (self.pacer.clock() - sent_at) / NANOSECONDS
                    self.in_flight.note(seconds, units, has_waited=paid.has_waited)
                self.pacer.settle(paid, {at: units})
                with self._lock:
                    self.size.learn(units, int(page["ScannedCount"]))
                return page

    def units_of(self, page: Mapping[str, Any]) -> float:
        """Return the read units that a page consumed."""
        return float((page.get("ConsumedCapacity") or {}).get("CapacityUnits") or 0)

    def _why(self, error: Exception) -> str:
        return f"scan of {self.table} stopped: {error}; {self.goes_on}"


# DynamoDB API Reference, BatchWriteItem: up to 25 requests and 16 MB
MOST_IN_BATCH, _MOST_BATCH_BYTES = 25, 16 * 1024 * 1024
# Errors that concern one item, not the whole job
_OF_ONE_ITEM: Final = frozenset({"ValidationException", "ItemCollectionSizeLimitExceededException"})
# Another writer is changing the item: in a transaction, or in another region of a strongly consistent global table. The
# same request succeeds once that is over (DynamoDB API Reference, errors of UpdateItem, PutItem and DeleteItem, the
# second also of BatchWriteItem, read 2026-11)
_CONFLICTS: Final = frozenset({"TransactionConflictException", "ReplicatedWriteConflictException"})
_WRITE: Final = Dimension.WRITE
# DynamoDB allows 32 levels of lists and maps; botocore fails at some hundreds
_CERTAINLY_TOO_DEEP: Final = 40


@dataclass(frozen=True, slots=True)
class WriteJob:
    """An action that is to be sent.

    Attributes:
        number: Its number among the caller's actions, from 0 on.
        action: The caller's action.
        raw: Its item or key in DynamoDB's JSON.
        size_bytes: The size of that item or key.
        condition: The condition of a put or delete, as members of its request; such a job is sent alone.
    """

    number: int
    action: Action
    raw: dict[str, Any]
    size_bytes: int
    condition: Mapping[str, Any] | None = None

    @property
    def units(self) -> int:
        """Lower bound of the table's write units for this item."""
        return write_units_of(self.size_bytes)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An action that DynamoDB rejects.

    Attributes:
        number: Its number among the caller's actions, from 0 on.
        action: The caller's action.
        why: The reason.

    Example:
        ```python
        rejected = []
        highwater.write("orders", actions, write=150, reject=rejected.append)
        print([f"{each.number}: {each.why}" for each in rejected])
        ```
    """

    number: int
    action: Action
    why: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of sending some jobs.

    Attributes:
        units: Write units that they consumed, including those of indexes.
        rejected: The actions that DynamoDB rejected.
        unmet: The number of actions whose condition was false.
    """

    units: float = 0.0
    rejected: tuple[Rejected, ...] = ()
    unmet: int = 0

    def __add__(self, other: Sent) -> Sent:
        """Return the sum of both results."""
        return Sent(self.units + other.units, self.rejected + other.rejected, self.unmet + other.unmet)


def job_of(number: int, action: Action) -> WriteJob | Rejected:
    """Return the job of an action, or its rejection: for a value without a type, deep nesting, or more than 400 KB."""
    try:
        raw = action.raw()
        size = item_bytes(raw)
        is_too_deep = nesting_of(raw) > _CERTAINLY_TOO_DEEP
        if isinstance(action, Update):
            action.request()
    except (TypeError, ValueError, AttributeError) as error:
        return Rejected(number, action, " ".join(str(error).split()))
    except ArithmeticError:
        # raised by boto3 for numbers that DynamoDB cannot represent
        return Rejected(number, action, "a number has more than 38 digits, or is beyond 1E+126 or below 1E-130")
    except RecursionError:
        is_too_deep = True
    if is_too_deep:
        return Rejected(number, action, TOO_DEEP)
    if size > MOST_ITEM_BYTES:
        return Rejected(number, action, f"the item has {size:,} bytes; allowed: {MOST_ITEM_BYTES:,} (400 KB)")
    return WriteJob(number, action, raw, size)


def batches_of(jobs: Sequence[WriteJob]) -> Iterator[list[WriteJob]]:
    """Yield the jobs of each request: up to 25 puts and deletes and 16 MB, or one update or one with a condition."""
    batch: list[WriteJob] = []
    size = 0
    for job in jobs:
        if isinstance(job.action, Update) or job.condition is not None:
            yield [job]
            continue
        if len(batch) == MOST_IN_BATCH or size + job.size_bytes > _MOST_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += job.size_bytes
    if batch:
        yield batch


@dataclass(slots=True)
class BatchSender:
    """Sends batches; may be used from several threads.

    Attributes:
        client: A DynamoDB client without retries.
        pacer: Has the budget, and waits.
        table: The table's name.
        in_flight: Learns how long requests take. By default nothing does.
        is_stopped: Once set, nothing more is sent: `send` raises `WorkEndedError`. By default it goes on.
        goes_on: The end of messages of errors: how the work can go on.
        on_written: Called for each job that DynamoDB has written, also those of a batch that raises an error later.
    """

    client: Any
    pacer: Pacer
    table: str
    in_flight: InFlight | None = None
    is_stopped: threading.Event | None = None
    goes_on: str = GOES_ON
    on_written: Callable[[WriteJob], None] = lambda _: None

    def send(self, batch: Sequence[WriteJob]) -> Sent:
        """Send a batch until DynamoDB has written or rejected each of its actions.

        It is sent in parts if one second of the budget does not pay for all of it. Actions that are throttled, conflict
        with another writer or come back unprocessed are retried for as long as it takes. Raises `PacedWorkError` if the
        work cannot continue.
        """
        sent, left = Sent(), list(batch)
        while left:
            count = self._affordable(left)
            sent += self._send_part(left[:count])
            left = left[count:]
        return sent

    def _affordable(self, batch: Sequence[WriteJob]) -> int:
        """Return how many of the first jobs one second of the budget pays for, at least one."""
        if len(batch) == 1:
            return 1
        most, units = self.pacer.most_at_once(self.table, None, _WRITE, self.is_stopped), 0
        for number, job in enumerate(batch):
            units += job.units
            if units > most:
                return max(number, 1)
        return len(batch)

    def _send_part(self, batch: Sequence[WriteJob]) -> Sent:
        if len(batch) == 1:
            return self._send_one(batch[0])
        jobs, members = list(batch), [_member(job) for job in batch]
        sent, tries = Sent(), 0
        while members:
            try:
                requested = {self.table: members}
                answer = self._call("batch_write_item", _units_of(members), is_rest=tries > 0, RequestItems=requested)
            except _RefusedItemError:
                # DynamoDB validates the whole batch before it writes any of it; sent one by one, the invalid ones show
                return sum((self._send_one(job) for job in jobs), sent)
            sent += Sent(units=_units(answer))
            left = answer.get("UnprocessedItems", {}).get(self.table, [])
            # if at least one was written, the backoff starts again from the shortest pause
            tries = tries + 1 if len(left) == len(members) else 1
            members = left
            unprocessed = [job for job in jobs if _member(job) in left]
            # if DynamoDB writes a member in another way, it is not known which ones are left until none is
            if len(unprocessed) == len(left):
                for job in jobs:
                    if job not in unprocessed:
                        self.on_written(job)
                jobs = unprocessed
            if members:
                self.pacer.refund(Paid({}), self.table, _WRITE, [Throttle(ThrottleCause.PROVISIONED)])
                self.pacer.pause(PAID_REQUEST.seconds(tries))
        return sent

    def _send_one(self, job: WriteJob) -> Sent:
        operation = "put_item"
        members: dict[str, Any] = {"Item": job.raw}
        if isinstance(job.action, Delete):
            operation, members = "delete_item", {"Key": job.raw}
        elif isinstance(job.action, Update):
            operation, members = "update_item", job.action.request()
        try:
            answer = self._call(operation, job.units, TableName=self.table, **members, **(job.condition or {}))
        except _ConditionError:
            return Sent(units=float(job.units), unmet=1)
        except _RefusedItemError as error:
            return Sent(rejected=(Rejected(job.number, job.action, str(error)),))
        self.on_written(job)
        return Sent(units=_units(answer))

    def _call(self, operation: str, units: int, *, is_rest: bool = False, **members: Any) -> dict[str, Any]:
        """Pay for, send and settle one request; retry it while it is throttled, conflicts or fails.

        `is_rest` marks what an earlier request left unprocessed.
        """
        expected: Costs = {(self.table, (None, _WRITE)): float(units)}
        retries, conflicts = Retries(self._why), 0
        while True:
            is_retry = is_rest or conflicts > 0 or retries.has_failed
            paid = self.pacer.wait(expected, is_retry=is_retry, is_stopped=self.is_stopped)
            sent_at = self.pacer.clock()
            try:
                answer: dict[str, Any] = getattr(self.client, operation)(**members, ReturnConsumedCapacity="INDEXES")
            except ParamValidationError as error:
                # botocore rejects values that are not in DynamoDB's JSON, without sending them
                self.pacer.settle(paid, {})
                raise _RefusedItemError(" ".join(str(error).split())) from error
            except (ClientError, BotoCoreError) as error:
                response: Any = error.response if isinstance(error, ClientError) else {}
                refusals = refusals_of(response)
                code = response.get("Error", {}).get("Code")
                if code in _CONFLICTS:
                    # More capacity would not help, so nothing is slowed down. What such a request consumes is not
                    # documented: it is counted in full, like a successful one.
                    self.pacer.settle(paid, expected)
                    conflicts += 1
                    self.pacer.pause(PAID_REQUEST.seconds(conflicts))
                    continue
                if code == "ConditionalCheckFailedException":
                    # a write whose condition is false consumes units all the same
                    raise _ConditionError from error
                if code in _OF_ONE_ITEM:
                    # nothing was written
                    self.pacer.settle(paid, {})
                    raise _RefusedItemError(response["Error"].get("Message", code)) from error
                if refusals:
                    self.pacer.refund(paid, self.table, _WRITE, refusals)
                # a failed request may have succeeded, so the retry may repeat it
                self.pacer.pause(retries.pause_after(error, is_throttled=bool(refusals)))
            else:
                consumed = self._consumed(answer)
                if self.in_flight is not None:
                    # the table's budget or an index's, whichever the request used most of
                    most = max(consumed.values(), default=0.0)
                    seconds = (self.pacer.clock() - sent_at) / NANOSECONDS
                    self.in_flight.note(seconds, most, has_waited=paid.has_waited)
                self.pacer.settle(paid, consumed)
                return answer

    def _consumed(self, answer: Mapping[str, Any]) -> Costs:
        return {(self.table, key): units for key, units in _by_target(answer) if units}

    def _why(self, error: Exception) -> str:
        return f"writes to {self.table} stopped: {error}; {self.goes_on}"


class _RefusedItemError(Exception):
    """DynamoDB rejects an item."""


class _ConditionError(Exception):
    """An action's condition is false."""


def _member(job: WriteJob) -> dict[str, Any]:
    return {"PutRequest": {"Item": job.raw}} if isinstance(job.action, Put) else {"DeleteRequest": {"Key": job.raw}}


def _units_of(members: Sequence[Mapping[str, Any]]) -> int:
    """Return the lower bound of the table's write units for the members of a batch."""
    contents = (
        member["PutRequest"]["Item"] if "PutRequest" in member else member["DeleteRequest"]["Key"] for member in members
    )
    return sum(write_units_of(item_bytes(each)) for each in contents)


def _by_target(answer: Mapping[str, Any]) -> Iterator[tuple[TargetKey, float]]:
    consumed = answer.get("ConsumedCapacity") or []
    for each in consumed if isinstance(consumed, list) else [consumed]:
        yield from units_of(each, _WRITE)


def _units(answer: Mapping[str, Any]) -> float:
    return sum(units for _, units in _by_target(answer))
