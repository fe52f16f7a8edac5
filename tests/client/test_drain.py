"""The function behind a queue of buffered writes, against a table and queues in memory, on a clock that is moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater import PacedWorkError, Pacer
from highwater.core.units import Dimension
from highwater.queues.drain import Drain, FunctionRun
from tests.client.memory_budget import RATE, Record
from tests.client.memory_table import refused
from tests.client.memory_writes import MemoryWrites
from tests.client.virtual_clock import SECOND, Clock

# a Friday
BEGAN = 1_805_000_000
THROTTLED = refused("ProvisionedThroughputExceededException")


@dataclass
class Queues:
    """Both queues behind one client: what they were asked, and what they refuse.

    Attributes:
        refuses: The ids of entries that come back as failed.
        error: Raised by every request.
    """

    delays: dict[str, int] = field(default_factory=dict)
    letters: list[dict[str, Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    error: Exception | None = None

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert QueueUrl == "queue"
        return self._answer(
            Entries, lambda entry: self.delays.__setitem__(entry["ReceiptHandle"], entry["VisibilityTimeout"])
        )

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert QueueUrl == "dead letters"
        return self._answer(Entries, self.letters.append)

    def _answer(self, entries: list[dict[str, Any]], take: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        assert 1 <= len(entries) <= 10
        if self.error is not None:
            raise self.error
        self.sizes.append(len(entries))
        for entry in entries:
            if entry["Id"] not in self.refuses:
                take(entry)
        failed = [
            {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError", "Message": "later"}
            for entry in entries
            if entry["Id"] in self.refuses
        ]
        return {"Successful": [], "Failed": failed} if failed else {"Successful": []}


@dataclass
class Stage:
    """A drain, its table and its queues. A run lasts a minute of the clock."""

    table: MemoryWrites = field(default_factory=MemoryWrites)
    queues: Queues = field(default_factory=Queues)
    clock: Clock = field(default_factory=Clock)
    rate: float = 1_000
    version: str | None = None
    pacer: Pacer | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)
    _drain: Drain | None = None

    def serve(self, *records: dict[str, Any], seconds: float = 60) -> list[str]:
        """Serve an event with these messages; the ids of those that are not done."""
        if self._drain is None:
            self._drain = self._made()
        ends = self.clock.now + seconds * SECOND
        answer = self._drain.serve({"Records": list(records)}, lambda: (ends - self.clock.now) / SECOND)
        assert set(answer) == {"batchItemFailures"}
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]

    def counts(self) -> dict[str, Any]:
        """The counts of the last run that are not 0."""
        names = ("written", "older", "superseded", "poison", "poisonKept", "returned", "delayed")
        return {name: self.lines[-1][name] for name in names if self.lines[-1][name]}

    def _made(self) -> Drain:
        run = FunctionRun(sleep=self.clock.pause)
        pacer = self.pacer or Pacer(clock=lambda: self.clock.now, starts_full=False)
        pacer.pause = run.pause
        pacer.limit("orders", Dimension.WRITE, self.rate)
        return Drain(
            table="orders",
            key=("pk",),
            version=self.version,
            queue_url="queue",
            dead_letters_url="dead letters",
            dynamodb=self.table,
            sqs=self.queues,
            pacer=pacer,
            run=run,
            service="Shop-Orders",
            wall=lambda: BEGAN + self.clock.now / SECOND,
            report=lambda line: self.lines.append(json.loads(line)),
        )


def _record(id: str, body: object, *, sent: float = 0.0) -> dict[str, Any]:
    """A message as Lambda has it; *sent* is in seconds after the beginning."""
    return {
        "messageId": id,
        "receiptHandle": f"receipt of {id}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"SentTimestamp": str(round((BEGAN + sent) * 1_000)), "ApproximateReceiveCount": "1"},
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
    }


def _puts(count: int) -> list[dict[str, Any]]:
    return [_record(f"m{number}", {"put": {"pk": f"o-{number}", "total": number}}) for number in range(count)]


def test_messages_are_written_in_batches_and_are_done() -> None:
    stage = Stage(table=MemoryWrites(items={"old": {"pk": {"S": "old"}}}))
    assert stage.serve(*_puts(30), _record("d", {"delete": {"pk": "old"}})) == []
    assert stage.table.requests == [("batch", 25), ("batch", 6)]
    assert stage.table.items.keys() == {f"o-{number}" for number in range(30)}
    assert stage.table.items["o-7"] == {"pk": {"S": "o-7"}, "total": {"N": "7"}}
    assert stage.counts() == {"written": 31}
    assert "_aws" not in stage.lines[-1]


def test_writes_keep_to_the_rate() -> None:
    stage = Stage(rate=10)
    assert stage.serve(*_puts(100)) == []
    # the last batch of 25 may be sent when the bucket, one second of the rate, is full
    assert 7.5 <= stage.clock.now / SECOND <= 10


def test_what_the_budget_has_no_room_for_comes_back_when_it_has_and_none_of_it_is_sent() -> None:
    stage = Stage(rate=1)
    failed = stage.serve(*_puts(100))
    # 50 of the 60 seconds are for writing
    written = len(stage.table.items)
    assert written in (50, 75)
    assert failed == [f"m{number}" for number in range(written, 100)]
    assert stage.clock.now <= 50 * SECOND
    delays = [stage.queues.delays[f"receipt of {id}"] for id in failed]
    # one after another, a second for each, and none before what is owed is paid
    assert delays == sorted(delays)
    assert len(failed) - 1 <= delays[-1] <= len(failed) + 75
    assert max(stage.queues.sizes) == 10
    assert stage.counts() == {"written": written, "returned": len(failed), "delayed": len(failed)}
    # what was not sent was not paid for: the rest is written in about its own time
    began = stage.clock.now
    rest = [record for record in _puts(100) if record["messageId"] in failed]
    stage.clock.pause(delays[-1])
    assert stage.serve(*rest) == []
    assert len(stage.table.items) == 100
    assert stage.clock.now - began <= (delays[-1] + 50) * SECOND


def test_throttled_messages_go_back_before_the_functions_end_and_what_was_written_does_not() -> None:
    table = MemoryWrites(leaves=lambda size: min(size, 5))
    stage = Stage(table=table)
    failed = stage.serve(*_puts(25))
    assert failed == [f"m{number}" for number in range(20, 25)]
    assert table.items.keys() == {f"o-{number}" for number in range(20)}
    assert stage.clock.now <= 50 * SECOND
    assert stage.counts() == {"written": 20, "returned": 5, "delayed": 5}
    # the table's own metric: how old the oldest is that goes back
    assert stage.lines[-1]["OldestReturned"] == round(stage.clock.now / SECOND)
    assert stage.lines[-1]["service"] == "Shop-Orders"
    assert stage.lines[-1]["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": "Highwater",
            "Dimensions": [["service"]],
            "Metrics": [{"Name": "OldestReturned", "Unit": "Seconds"}],
        }
    ]


def test_batch_that_is_refused_whole_is_tried_again_and_goes_back_at_the_end() -> None:
    def refuse(*_: Any) -> None:
        raise THROTTLED

    stage = Stage(table=MemoryWrites(before=refuse))
    assert stage.serve(*_puts(2)) == ["m0", "m1"]
    assert len(stage.table.requests) > 3
    assert stage.queues.delays.keys() == {"receipt of m0", "receipt of m1"}


def test_old_message_comes_back_after_a_tenth_of_its_age() -> None:
    stage = Stage(rate=0.001)
    assert stage.serve(_record("m", {"pk": "a", "note": "x" * 2_000}, sent=-3_600_000)) == []
    assert stage.serve(_record("n", {"pk": "a"}, sent=-3_600_000)) == ["n"]
    assert stage.queues.delays["receipt of n"] == 42_300


def test_messages_whose_delay_the_queue_does_not_take_are_left_to_its_own_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(rate=0.001, queues=Queues(refuses={"1"}))
    stage.serve(*_puts(1))
    assert stage.serve(*_puts(3)) == ["m0", "m1", "m2"]
    assert stage.queues.delays.keys() == {"receipt of m0", "receipt of m2"}
    assert stage.counts() == {"returned": 3, "delayed": 2}
    assert caplog.messages == ["change_message_visibility_batch of a message failed: InternalError later"]


def test_queue_that_does_not_answer_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    error = ClientError({"Error": {"Code": "RequestThrottled", "Message": "slow down"}}, "SendMessageBatch")
    stage = Stage(rate=0.001, queues=Queues(error=error))
    stage.serve(*_puts(1))
    assert stage.serve(_record("poison", "?"), *_puts(1)) == ["poison", "m0"]
    assert stage.counts() == {"poison": 1, "poisonKept": 1, "returned": 1}
    why = "An error occurred (RequestThrottled) when calling the SendMessageBatch operation: slow down"
    assert caplog.messages == [
        f"send_message_batch of 1 messages failed: {why}",
        f"change_message_visibility_batch of 1 messages failed: {why}",
    ]


def test_run_without_time_left_for_answers_leaves_all_to_the_queues_own_timeout() -> None:
    stage = Stage()
    assert stage.serve(_record("poison", "?"), *_puts(2), seconds=1) == ["poison", "m0", "m1"]
    assert (stage.table.requests, stage.queues.sizes) == ([], [])


def test_poison_goes_to_the_dead_letter_queue_with_its_reason_and_the_rest_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    large = _record("large", {"pk": "large", "text": "x" * 500_000})
    assert stage.serve(_record("text", "{"), large, _record("good", {"pk": "a"})) == []
    assert stage.table.items.keys() == {"a"}
    (text, too_large) = stage.queues.letters
    why = (
        "body: is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); "
        "send one action as JSON"
    )
    assert text == {
        "Id": "0",
        "MessageBody": "{",
        "MessageAttributes": {
            "HighwaterReason": {"DataType": "String", "StringValue": why},
            "HighwaterMessageId": {"DataType": "String", "StringValue": "text"},
        },
    }
    assert too_large["MessageBody"] == large["body"]
    assert too_large["MessageAttributes"]["HighwaterReason"]["StringValue"] == (
        "the item has 500,011 bytes; allowed: 409,600 (400 KB)"
    )
    # together they are more than one request to the queue may be
    assert stage.queues.sizes == [1, 1]
    assert stage.counts() == {"written": 1, "poison": 2}
    assert caplog.messages[0] == f"message text is poison: {why}"


def test_item_that_dynamodb_refuses_is_poison_and_those_of_its_batch_are_written() -> None:
    def refuse(_: str, request: dict[str, Any]) -> None:
        members = request.get("RequestItems", {}).get("orders") or [{"PutRequest": request}]
        if any(member["PutRequest"]["Item"]["pk"] == {"S": ""} for member in members):
            raise refused("ValidationException")

    stage = Stage(table=MemoryWrites(before=refuse))
    assert stage.serve(*_puts(3), _record("empty", {"pk": ""})) == []
    assert stage.table.items.keys() == {"o-0", "o-1", "o-2"}
    assert [letter["MessageAttributes"]["HighwaterReason"]["StringValue"] for letter in stage.queues.letters] == [
        "it rests"
    ]


def test_poison_that_the_dead_letter_queue_does_not_take_stays_in_its_queue() -> None:
    stage = Stage(queues=Queues(refuses={"1"}))
    records = [_record(f"p{number}", "?") for number in range(12)]
    assert stage.serve(*records) == ["p1"]
    assert len(stage.queues.letters) == 11
    assert stage.queues.sizes == [10, 2]
    # its delay is the queue's own: the dead-letter queue, not the table, is what it waits for
    assert stage.queues.delays == {}


def test_letter_without_room_for_the_reason_is_the_message_alone_and_control_characters_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    body = "x" * 1_048_576
    stage.serve(_record("long", body), _record("control", {"delete": {"pk": "a", "b\u0007\ud800": 1}}))
    assert {"Id": "0", "MessageBody": body} in stage.queues.letters
    reasons = [letter.get("MessageAttributes", {}).get("HighwaterReason", {}) for letter in stage.queues.letters]
    assert {"DataType": "String", "StringValue": "delete: b??: is no part of the key, allowed: pk; leave it out"} in (
        reasons
    )
    assert "message control is poison: delete: b??: is no part of the key, allowed: pk; leave it out" in caplog.messages


def test_of_several_messages_for_one_item_the_one_sent_last_is_written() -> None:
    stage = Stage(table=MemoryWrites(items={"b": {"pk": {"S": "b"}}}))
    records = [
        _record("last", {"pk": "a", "n": 1}, sent=9),
        _record("first", {"pk": "a", "n": 2}, sent=3),
        _record("put", {"pk": "b"}, sent=3),
        _record("delete", {"delete": {"pk": "b"}}, sent=4),
    ]
    assert stage.serve(*records) == []
    assert stage.table.items == {"a": {"pk": {"S": "a"}, "n": {"N": "1"}}}
    assert stage.counts() == {"written": 2, "superseded": 2}


def test_poison_does_not_take_the_older_message_for_its_item_with_it() -> None:
    stage = Stage()
    newest = _record("newest", {"pk": "a", "text": "x" * 500_000}, sent=9)
    assert stage.serve(_record("older", {"pk": "a", "n": 2}, sent=3), newest) == []
    assert stage.table.items == {"a": {"pk": {"S": "a"}, "n": {"N": "2"}}}
    assert len(stage.queues.letters) == 1


HUGE = "1e9999999999999999999"


def test_number_that_nothing_can_represent_is_poison_and_the_rest_is_written() -> None:
    stage = Stage()
    assert stage.serve(*_puts(9), _record("bad", f'{{"put": {{"pk": "a", "n": {HUGE}}}}}')) == []
    assert stage.counts() == {"written": 9, "poison": 1}
    (letter,) = stage.queues.letters
    assert letter["MessageAttributes"]["HighwaterReason"]["StringValue"] == (
        f"body: has a number that cannot be read: {HUGE}; send one action as JSON"
    )


def test_older_message_is_not_deleted_before_the_newer_one_is_written() -> None:
    stage = Stage()

    def throttle_or_reject(_: str, request: dict[str, Any]) -> None:
        if not stage.lines:
            raise THROTTLED
        items = [request["Item"]] if "Item" in request else []
        items += [each["PutRequest"]["Item"] for each in request.get("RequestItems", {}).get("orders", ())]
        # an index has a text as its key there
        if any(item["status"] == {"N": "1"} for item in items):
            raise refused("ValidationException")

    stage.table.before = throttle_or_reject
    older = _record("older", {"pk": "a", "status": "paid"}, sent=-500)
    newer = _record("newer", {"pk": "a", "status": 1}, sent=-2)
    assert sorted(stage.serve(newer, older)) == ["newer", "older"]
    assert stage.counts() == {"returned": 2, "delayed": 2}
    # the newer one comes back behind it, although it is young
    delays = stage.queues.delays
    assert delays["receipt of newer"] == delays["receipt of older"] + 1
    assert stage.serve(newer, older) == []
    assert stage.counts() == {"written": 1, "poison": 1}
    assert stage.table.items == {"a": {"pk": {"S": "a"}, "status": {"S": "paid"}}}
    assert [each["MessageBody"] for each in stage.queues.letters] == [newer["body"]]


def test_run_that_cannot_wait_for_its_budget_ends_at_once_if_the_budget_is_shared() -> None:
    record = Record()
    run_pacer = Pacer(clock=lambda: record.now, starts_full=False, shared=record.worker())
    stage = Stage(table=MemoryWrites(units_per_item=100), pacer=run_pacer, rate=1)
    stage.clock.now = record.now

    def both(seconds: float) -> None:
        record.pause(seconds)
        stage.clock.now = record.now

    stage.clock.pause = both  # type: ignore[method-assign] # one clock for both
    began = record.now
    # the first consumes a hundred units at one a second, so that the next one's turn is after the end of the run
    assert stage.serve(*_puts(3)) == ["m1", "m2"]
    assert record.now - began < 5 * SECOND


def test_newer_version_is_written_and_an_older_one_is_done_without() -> None:
    stage = Stage(version="v")
    assert stage.serve(_record("m5", {"pk": "a", "v": 5})) == []
    assert stage.serve(_record("m4", {"pk": "a", "v": 4}), _record("b", {"pk": "b", "v": 1})) == []
    assert stage.counts() == {"written": 1, "older": 1}
    assert stage.serve(_record("m5", {"pk": "a", "v": 5})) == []
    assert stage.counts() == {"older": 1}
    assert stage.serve(_record("m6", {"pk": "a", "v": 6.5}), _record("m10", {"pk": "a", "v": 10})) == []
    assert stage.table.items["a"] == {"pk": {"S": "a"}, "v": {"N": "10"}}
    # a request for many items has no conditions
    assert {operation for operation, _ in stage.table.requests} == {"put_item"}


def test_delete_with_a_version_deletes_only_what_is_older() -> None:
    stage = Stage(version="v")
    stage.serve(_record("m5", {"pk": "a", "v": 5}))
    assert stage.serve(_record("d", {"delete": {"pk": "a", "v": 5}})) == []
    assert stage.table.items.keys() == {"a"}
    assert stage.serve(_record("d", {"delete": {"pk": "a", "v": 6}})) == []
    assert stage.table.items == {}


@pytest.mark.parametrize("version", ["v", None])
def test_older_messages_go_back_with_the_newest_and_come_back_before_it(version: str | None) -> None:
    stage = Stage(version=version, rate=0.001)
    stage.serve(_record("m0", {"pk": "o", "v": 1}))
    records = [_record("m1", {"pk": "a", "v": 1}, sent=1), _record("m2", {"pk": "a", "v": 2}, sent=2)]
    assert stage.serve(*records) == ["m1", "m2"]


def test_table_that_refuses_everything_fails_the_function(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: Any) -> None:
        raise refused("AccessDeniedException")

    stage = Stage(table=MemoryWrites(before=refuse))
    with pytest.raises(PacedWorkError) as stopped:
        stage.serve(*_puts(2))
    assert str(stopped.value) == (
        "writes to orders stopped: An error occurred (AccessDeniedException) when calling the Scan operation: "
        "it rests; its messages stay in the queue"
    )
    assert caplog.messages == [str(stopped.value)]


def test_table_that_stops_answering_leaves_the_rest_to_the_queues_own_timeout() -> None:
    stage = Stage()

    def refuse(*_: Any) -> None:
        if len(stage.table.requests) > 1:
            raise refused("AccessDeniedException")

    stage.table.before = refuse
    assert stage.serve(*_puts(30)) == [f"m{number}" for number in range(25, 30)]
    assert stage.queues.delays == {}
    assert stage.counts() == {"written": 25, "returned": 5}


def test_share_of_the_budget_is_given_back_before_the_function_is_frozen() -> None:
    record = Record()
    clock = Clock(now=record.now)
    worker = record.worker()
    stage = Stage(clock=clock, rate=RATE / 1_000, pacer=Pacer(clock=lambda: clock.now, shared=worker))
    stage.table.before = lambda *_: shares.append(sum(member.share for member in record.members))
    shares: list[int] = []
    assert stage.serve(*_puts(2)) == []
    assert (shares, record.members) == ([RATE], [])


def test_request_that_is_given_up_while_it_waits_costs_nothing() -> None:
    clock = Clock()
    pacer = Pacer(clock=lambda: clock.now, pause=clock.pause, starts_full=False)
    pacer.limit("orders", Dimension.WRITE, 10)
    at = ("orders", (None, Dimension.WRITE))
    pacer.wait({at: 10.0})
    assert pacer.seconds_until({at: 10.0}) == pytest.approx(1.0)
    assert pacer.seconds_until({("carts", (None, Dimension.WRITE)): 10.0}) == 0.0

    def give_up(_: float) -> None:
        raise KeyboardInterrupt

    pacer.pause = give_up
    with pytest.raises(KeyboardInterrupt):
        pacer.wait({at: 500.0})
    assert pacer.seconds_until({at: 10.0}) == pytest.approx(1.0)
