"""The function behind a `BufferedWrites` queue: writes its messages within a shared budget, and answers the queue.

A message is done when its action is written, or when the table or the batch has a newer one. One that could never be
written goes to the dead-letter queue at once. All others go back to the queue for as long as the budget needs.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.budgets.shared import SharedBudget
from highwater.bulk.budget import Pacer
from highwater.bulk.items import Delete, Put
from highwater.bulk.send import BatchSender, Rejected, WriteJob, batches_of, job_of
from highwater.bulk.sharing import WorkEndedError
from highwater.calls.attempts import ONCE, client_config
from highwater.core.documents import read_document
from highwater.core.errors import HighwaterError
from highwater.core.items import write_units_of
from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension
from highwater.queues.messages import (
    LONGEST_DELAY_SECONDS,
    MOST_MESSAGE_BYTES,
    BufferedAction,
    Message,
    Poison,
    delay_seconds,
    in_tens,
    newest_first,
    read_action,
)

_LOG: Final = logging.getLogger("highwater.buffered")
_TARGET: Final[TargetKey] = (None, Dimension.WRITE)
# Seconds. Nothing is sent to the table in the last ten of a run: a request under way may take five, which leaves time
# for the answers. In the last two, messages are left to the queue's own timeout.
_MARGIN, _ANSWER_MARGIN = 10.0, 2.0
_TIMEOUTS: Final = (2, 3)
# the limit of a request before August 2025: less than today's, so that it holds in every partition
_MOST_BATCH_BYTES: Final = 262_144
_MOST_REASON_CHARACTERS: Final = 500
REASON: Final = "HighwaterReason"
SOURCE: Final = "HighwaterMessageId"
OLDEST_RETURNED: Final = "OldestReturned"
_NEWER: Final = "attribute_not_exists(#version) OR #version < :version"


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the messages of an event of SQS; return those that are not done.

    Raises:
        HighwaterError: The table or the budget refuses everything, for another reason than throttling.
    """
    return _drain_of_environment().serve(event, lambda: context.get_remaining_time_in_millis() / 1_000)


@cache
def _drain_of_environment() -> Drain:
    """Return the drain with the settings of the function's environment; kept while the function is warm."""
    config = client_config(ONCE, _TIMEOUTS)
    run = FunctionRun()
    budget = SharedBudget(name=os.environ["HIGHWATER_BUDGET"], pause=run.pause)
    pacer = Pacer(starts_full=False, pause=run.pause, shared=budget)
    pacer.limit(os.environ["HIGHWATER_TABLE"], Dimension.WRITE, float(os.environ["HIGHWATER_WRITE"]))
    return Drain(
        table=os.environ["HIGHWATER_TABLE"],
        key=tuple(read_document(os.environ["HIGHWATER_KEY"])),
        version=os.environ.get("HIGHWATER_VERSION") or None,
        queue_url=os.environ["HIGHWATER_QUEUE_URL"],
        dead_letters_url=os.environ["HIGHWATER_DEAD_LETTERS_URL"],
        dynamodb=boto3.client("dynamodb", config=config),
        sqs=boto3.client("sqs", config=config),
        pacer=pacer,
        run=run,
        service=os.environ["AWS_LAMBDA_FUNCTION_NAME"],
    )


@dataclass(slots=True)
class FunctionRun:
    """One run of the function: how long it lasts, and how to wait in it.

    Attributes:
        sleep: Sleeps for the given number of seconds.
        remaining_seconds: The seconds until the function is ended.
    """

    sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    remaining_seconds: Callable[[], float] = lambda: 0.0

    def pause(self, seconds: float) -> None:
        """Wait; raises `WorkEndedError` instead if that would leave too little time for the answers."""
        if seconds > self.patience():
            raise WorkEndedError("the function's time is over")
        self.sleep(seconds)

    def patience(self) -> float:
        """Return the seconds that a request may wait, so that there is time for the answers."""
        return self.remaining_seconds() - _MARGIN

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be sent to the table."""
        return self.remaining_seconds() < _MARGIN

    @property
    def may_answer(self) -> bool:
        """Whether there is time for another request to the queue."""
        return self.remaining_seconds() >= _ANSWER_MARGIN


@dataclass(slots=True)
class _Outcome:
    """What became of the messages of an event.

    *returned* are actions that are to come back, in their order; those for one item together, the oldest first.
    """

    written: int = 0
    older: int = 0
    superseded: int = 0
    poison: list[Poison] = field(default_factory=list)
    returned: list[list[BufferedAction]] = field(default_factory=list)
    error: HighwaterError | None = None

    @property
    def has_settled_something(self) -> bool:
        return bool(self.written or self.older or self.poison)


@dataclass(slots=True, kw_only=True)
class Drain:
    """Writes messages of one queue to one table.

    Attributes:
        table: The table's name.
        key: The attributes of its key.
        version: The attribute with an item's version, `None` if there is none.
        queue_url: The queue's URL.
        dead_letters_url: That of the dead-letter queue.
        dynamodb: A DynamoDB client without retries.
        sqs: An SQS client.
        pacer: Has the budget, and waits with the run's `pause`.
        run: The present run.
        service: The name of the function, for its metric.
        wall: Seconds since 1970.
        report: Writes a line of the log.
    """

    table: str
    key: tuple[str, ...]
    version: str | None
    queue_url: str
    dead_letters_url: str
    dynamodb: Any
    sqs: Any
    pacer: Pacer
    run: FunctionRun
    service: str = "buffered-writes"
    wall: Callable[[], float] = lambda: time.time()
    report: Callable[[str], None] = lambda line: print(line)

    def serve(self, event: Mapping[str, Any], remaining_seconds: Callable[[], float]) -> dict[str, Any]:
        """Write the messages of an event, and return Lambda's answer for those that are not done.

        Raises `HighwaterError` if nothing could be done for another reason than throttling: Lambda counts it as an
        error of the function, and the messages come back after the queue's own timeout.
        """
        self.run.remaining_seconds = remaining_seconds
        # one that would wait longer than the run lasts goes back to the queue at once
        self.pacer.patience = self.run.patience
        try:
            outcome = self._write([_message_of(record) for record in event["Records"]])
            waits = self._waits(outcome.returned)
        finally:
            # a function that waits for its next event is frozen, and would keep its share until the lease ends
            self.pacer.give_back()
        if outcome.error is not None:
            _LOG.error("%s", outcome.error)
            if not outcome.has_settled_something:
                raise outcome.error
        kept = self._bury(outcome.poison)
        # after an error nothing is known about when to try again but the queue's own timeout
        delayed = 0 if outcome.error is not None else self._delay(outcome.returned, waits)
        failed = [*kept, *(action.message for group in outcome.returned for action in group)]
        self._report(outcome, len(kept), delayed)
        return {"batchItemFailures": [{"itemIdentifier": message.id} for message in failed]}

    def _write(self, messages: Sequence[Message]) -> _Outcome:
        outcome = _Outcome()
        actions: list[BufferedAction] = []
        for message in messages:
            read = read_action(message, self.key, self.version)
            if isinstance(read, Poison):
                outcome.poison.append(read)
            else:
                actions.append(read)
        groups = newest_first(actions)
        while groups and outcome.error is None:
            groups = self._write_newest(groups, outcome)
        for group in groups:
            self._put_back(group, outcome)
        return outcome

    def _write_newest(self, groups: list[list[BufferedAction]], outcome: _Outcome) -> list[list[BufferedAction]]:
        """Write the newest action of each group; return the groups whose newest one turned out to be poison."""
        done: set[int] = set()
        rejected: dict[int, str] = {}
        jobs: list[WriteJob] = []
        for number, group in enumerate(groups):
            job = self._job(number, group[0])
            if isinstance(job, Rejected):
                rejected[number] = job.why
            else:
                jobs.append(job)
        sender = BatchSender(
            self.dynamodb,
            self.pacer,
            self.table,
            goes_on="its messages stay in the queue",
            on_written=lambda job: done.add(job.number),
        )
        older: set[int] = set()
        try:
            for batch in batches_of(jobs):
                if self.run.is_over:
                    break
                sent = sender.send(batch)
                rejected |= {each.number: each.why for each in sent.rejected}
                if sent.unmet:
                    older.add(batch[0].number)
        except WorkEndedError:
            pass
        except HighwaterError as error:
            outcome.error = error
        left = []
        for number, group in enumerate(groups):
            if number in rejected:
                outcome.poison.append(Poison(group[0].message, rejected[number]))
                if group[1:]:
                    left.append(group[1:])
            elif number in done or number in older:
                outcome.written += number in done
                outcome.older += number in older
                outcome.superseded += len(group) - 1
            else:
                self._put_back(group, outcome)
        return left

    @staticmethod
    def _put_back(group: Sequence[BufferedAction], outcome: _Outcome) -> None:
        """Return all actions for an item to the queue, as it may turn out that the newest can never be written."""
        outcome.returned.append([*reversed(group)])

    def _job(self, number: int, action: BufferedAction) -> WriteJob | Rejected:
        asked = Delete(action.values) if action.is_delete else Put(action.values)
        job = job_of(number, asked)
        if isinstance(job, Rejected) or action.version is None:
            return job
        condition = {
            "ConditionExpression": _NEWER,
            "ExpressionAttributeNames": {"#version": self.version},
            "ExpressionAttributeValues": {":version": {"N": str(action.version)}},
        }
        return WriteJob(job.number, job.action, job.raw, job.size_bytes, condition)

    def _waits(self, returned: Sequence[Sequence[BufferedAction]]) -> list[float]:
        """Return the seconds until the budget has room for each of the actions, one after another."""
        waits: list[float] = []
        rate = self.pacer.rate(self.table, *_TARGET) or 1.0
        units = 0.0
        for action in chain.from_iterable(returned):
            # the text of an item is about as long as the item
            cost = write_units_of(len(action.message.body.encode(errors="replace")))
            first = self.pacer.seconds_until({(self.table, _TARGET): float(cost)})
            waits.append(first + units / rate)
            units += cost
        return waits

    def _bury(self, poison: Sequence[Poison]) -> list[Message]:
        """Send poison to the dead-letter queue; return the messages that it did not take, which stay in their queue."""
        entries = [_letter(number, each) for number, each in enumerate(poison)]
        kept: list[Message] = []
        for batch in in_tens(entries, [_letter_bytes(entry) for entry in entries], _MOST_BATCH_BYTES):
            numbers = {int(entry["Id"]) for entry in batch}
            refused = self._ask("send_message_batch", self.dead_letters_url, batch)
            kept += [poison[number].message for number in sorted(refused)]
            for number in sorted(numbers - refused):
                _LOG.warning("message %s is poison: %s", poison[number].message.id, _printable(poison[number].why))
        return kept

    def _delay(self, returned: Sequence[Sequence[BufferedAction]], waits: Sequence[float]) -> int:
        """Have messages come back after their waits; return for how many the queue took that.

        A newer one for an item comes back after the older ones, so that it is the last to be written. Those for which
        the queue does not take it come back after the queue's own timeout.
        """
        now, left = self.wall(), iter(waits)
        entries: list[dict[str, Any]] = []
        for group in returned:
            least = 0
            for action in group:
                delay = max(delay_seconds(next(left), now - action.message.sent_ms / 1_000), least)
                handle = action.message.receipt
                entries.append({"Id": str(len(entries)), "ReceiptHandle": handle, "VisibilityTimeout": delay})
                least = min(delay + 1, LONGEST_DELAY_SECONDS)
        delayed = 0
        for batch in in_tens(entries, [0] * len(entries), _MOST_BATCH_BYTES):
            delayed += len(batch) - len(self._ask("change_message_visibility_batch", self.queue_url, batch))
        return delayed

    def _ask(self, operation: str, url: str, batch: Sequence[Mapping[str, Any]]) -> set[int]:
        """Send one batch to a queue; return the numbers of the entries that it did not take."""
        numbers = {int(entry["Id"]) for entry in batch}
        if not self.run.may_answer:
            return numbers
        try:
            failed = getattr(self.sqs, operation)(QueueUrl=url, Entries=batch).get("Failed", [])
        except (ClientError, BotoCoreError) as error:
            _LOG.warning("%s of %d messages failed: %s", operation, len(numbers), error)
            return numbers
        for entry in failed:
            _LOG.warning("%s of a message failed: %s %s", operation, entry.get("Code", ""), entry.get("Message", ""))
        return {int(entry["Id"]) for entry in failed}

    def _report(self, outcome: _Outcome, kept: int, delayed: int) -> None:
        """Log the counts; the age of what is returned is a metric, as SQS's own leaves out what comes back often."""
        document: dict[str, Any] = {
            "table": self.table,
            "written": outcome.written,
            "older": outcome.older,
            "superseded": outcome.superseded,
            "poison": len(outcome.poison),
            "poisonKept": kept,
            "returned": sum(map(len, outcome.returned)),
            "delayed": delayed,
        }
        if outcome.returned:
            oldest = min(action.message.sent_ms for action in chain.from_iterable(outcome.returned))
            metric = {
                "Namespace": "Highwater",
                "Dimensions": [["service"]],
                "Metrics": [{"Name": OLDEST_RETURNED, "Unit": "Seconds"}],
            }
            document |= {
                "service": self.service,
                OLDEST_RETURNED: max(round(self.wall() - oldest / 1_000), 0),
                "_aws": {"Timestamp": round(self.wall() * 1_000), "CloudWatchMetrics": [metric]},
            }
        self.report(json.dumps(document))


def _message_of(record: Mapping[str, Any]) -> Message:
    sent = int(record.get("attributes", {}).get("SentTimestamp", "0"))
    return Message(record["messageId"], record["receiptHandle"], record["body"], sent)


def _letter(number: int, poison: Poison) -> dict[str, Any]:
    """Return the entry for the dead-letter queue: the message as it was, with the reason where there is room for it."""
    attributes = {REASON: _printable(poison.why), SOURCE: poison.message.id}
    told = {name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()}
    entry = {"Id": str(number), "MessageBody": poison.message.body}
    whole = entry | {"MessageAttributes": told}
    return whole if _letter_bytes(whole) <= MOST_MESSAGE_BYTES else entry


def _printable(why: str) -> str:
    """Return a reason, which quotes the message, without what SQS does not allow and a log would act on."""
    return "".join(each if each.isprintable() else "?" for each in why)[:_MOST_REASON_CHARACTERS]


def _letter_bytes(entry: Mapping[str, Any]) -> int:
    parts = [entry["MessageBody"]]
    for name, value in entry.get("MessageAttributes", {}).items():
        parts += [name, *value.values()]
    return sum(len(part.encode(errors="replace")) for part in parts)
