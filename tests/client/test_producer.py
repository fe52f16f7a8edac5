"""A producer for a queue of buffered writes, against a queue in memory, on a clock that is moved."""

from __future__ import annotations

import functools
import json
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from highwater.bulk.items import Put
from highwater.bulk.send import WriteJob, job_of
from highwater.queues import BufferedProducer, BufferedWriteError, BufferFullError
from highwater.queues.messages import BufferedAction, Message, read_action
from tests.client.memory_table import refused
from tests.client.virtual_clock import Clock

URL = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders"
MEBIBYTE = 1_048_576
# what fails for a time, and what never succeeds
BUSY = {"SenderFault": False, "Code": "InternalError", "Message": "later"}
INVALID = {"SenderFault": True, "Code": "InvalidMessageContents", "Message": "no such text"}


_error = functools.partial(refused, operation="SendMessageBatch")


@dataclass
class Queue:
    """A queue behind a client.

    Attributes:
        answers: For the next requests: the error that is raised, or the failures of messages by their position.
        always: What all requests after those are answered.
        counts: Its messages that are visible, and those that are not.
        count_error: Raised when it is asked for them.
    """

    answers: list[Exception | Mapping[int, Mapping[str, Any]]] = field(default_factory=list)
    always: Exception | Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    counts: tuple[int, int] = (0, 0)
    count_error: Exception | None = None
    batches: list[list[str]] = field(default_factory=list)
    requests: int = 0
    asked: int = 0

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert QueueUrl == URL
        assert 1 <= len(Entries) <= 10
        assert len({entry["Id"] for entry in Entries}) == len(Entries)
        assert sum(len(entry["MessageBody"].encode()) for entry in Entries) <= MEBIBYTE
        self.requests += 1
        answer = self.answers.pop(0) if self.answers else self.always
        if isinstance(answer, Exception):
            raise answer
        taken = [entry for number, entry in enumerate(Entries) if number not in answer]
        self.batches.append([entry["MessageBody"] for entry in taken])
        failed = [{"Id": Entries[number]["Id"], **why} for number, why in answer.items() if number < len(Entries)]
        successful = [{"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "5"} for entry in taken]
        return {"Successful": successful} | ({"Failed": failed} if failed else {})

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        assert QueueUrl == URL
        self.asked += 1
        if self.count_error is not None:
            raise self.count_error
        return {"Attributes": {name: str(count) for name, count in zip(AttributeNames, self.counts, strict=True)}}

    @property
    def numbers(self) -> list[list[int]]:
        """The numbers of the orders of each batch."""
        return [[json.loads(body)["put"]["n"] for body in batch] for batch in self.batches]


@dataclass
class Stage:
    """A queue, and a clock that moves where a producer waits."""

    queue: Queue = field(default_factory=Queue)
    clock: Clock = field(default_factory=Clock)
    pauses: list[float] = field(default_factory=list)

    def producer(self, **settings: Any) -> BufferedProducer:
        return BufferedProducer(
            URL, clock=lambda: self.clock.now, pause=self._pause, connect=lambda: self.queue, **settings
        )

    def _pause(self, seconds: float) -> None:
        assert seconds > 0
        self.pauses.append(seconds)
        self.clock.pause(seconds)


def _order(number: int) -> dict[str, Any]:
    return {"pk": f"o-{number}", "n": number}


def _put(producer: BufferedProducer, count: int, *, first: int = 0, wait: bool = True) -> None:
    for number in range(first, first + count):
        producer.put(_order(number), wait=wait)


def _fail_after(producer: BufferedProducer, count: int) -> None:
    with producer:
        _put(producer, count)
        raise KeyError("of the caller")


def _numbers(bodies: tuple[str, ...]) -> list[int]:
    return [json.loads(body)["put"]["n"] for body in bodies]


def _read(body: str, key: tuple[str, ...] = ("pk",), version: str | None = None) -> BufferedAction:
    action = read_action(Message("m", "receipt", body, 0), key, version)
    assert isinstance(action, BufferedAction), action
    return action


def _sent(item: dict[str, Any]) -> str:
    queue = Queue()
    with BufferedProducer(URL, connect=lambda: queue) as producer:
        producer.put(item)
    ((body,),) = queue.batches
    return body


NUMBERS = (
    st.integers(-(10**38) + 1, 10**38 - 1)
    | st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)
    | st.builds(
        lambda digits, power: Decimal(digits).scaleb(power), st.integers(-(10**20), 10**20), st.integers(-90, 90)
    )
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5), TEXT | NUMBERS)
def test_function_writes_the_item_that_was_put_digit_by_digit(item: dict[str, Any], key: Any) -> None:
    item["pk"] = key
    body = _sent(item)
    assert all(
        each in "\t\n\r" or " " <= each <= "\ud7ff" or "\ue000" <= each <= "\ufffd" or each > "\uffff" for each in body
    )
    action = _read(body)
    assert not action.is_delete
    given, written = job_of(0, Put(item)), job_of(0, Put(action.values))
    assert isinstance(given, WriteJob)
    assert isinstance(written, WriteJob)
    assert _without_zeros_sign(written.raw) == _without_zeros_sign(given.raw)


def _without_zeros_sign(raw: Any) -> Any:
    """A zero has no sign in DynamoDB."""
    if isinstance(raw, dict):
        return {
            name: value.lstrip("-") if name == "N" and isinstance(value, str) and not Decimal(value) else value
            for name, value in ((name, _without_zeros_sign(value)) for name, value in raw.items())
        }
    return [_without_zeros_sign(value) for value in raw] if isinstance(raw, list) else raw


@given(st.dictionaries(st.text(string.ascii_letters, min_size=1), TEXT | NUMBERS, min_size=1, max_size=2), NUMBERS)
def test_function_deletes_the_key_that_was_given(key: dict[str, Any], version: Any) -> None:
    stage = Stage()
    with stage.producer() as producer:
        producer.delete({**key, "the version": version})
    ((body,),) = stage.queue.batches
    action = _read(body, tuple(key), "the version")
    assert action.is_delete
    assert (action.values, action.version) == (key, version)


@pytest.mark.parametrize("word", ["put", "delete"])
def test_item_whose_one_attribute_is_a_word_of_messages_is_an_item(word: str) -> None:
    action = read_action(Message("m", "receipt", _sent({word: {"pk": 1}}), 0), (), None)
    assert isinstance(action, BufferedAction)
    assert (action.is_delete, action.values) == (False, {word: {"pk": 1}})


_ALLOWED = "allowed: text, Decimal, whole numbers, True, False, None, lists and maps"
_DEEP: list[Any] = []
_DEEP.append(_DEEP)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"total": 12.5}, f"put: total: got 12.5, {_ALLOWED}; write Decimal('12.5')"),
        ({"a": [{"b": {1}}]}, f"put: a[0]: b: got {{1}}, {_ALLOWED}; write a list, or the item to the table itself"),
        ({"a": b"x"}, f"put: a: got b'x', {_ALLOWED}; write it as text, or the item to the table itself"),
        ({"a": {1: "x"}}, "put: a: got 1 as a name, allowed: text; put it in quotes"),
        ({"a": _DEEP}, "put: the item is nested too deeply; allowed: 32 levels"),
        ({"a": Decimal("NaN")}, "put: Infinity and NaN not supported"),
        ({"a": 10**5_000}, "put: a number has more than 38 digits, or is beyond 1E+126 or below 1E-130"),
        ({"a": "x" * 410_000}, "put: the item has 410,001 bytes; allowed: 409,600 (400 KB)"),
        (
            {"a": "\u0001" * 200_000},
            "put: the message has 1,200,016 bytes, allowed: 1,048,576 (1 MiB); control characters take six bytes each",
        ),
        (
            {"a": "\ud800"},
            "put: 'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed",
        ),
        ({}, "put: got {}, allowed: a map of attributes; give a dict with the key"),
        ("o-1", "put: got 'o-1', allowed: a map of attributes; give a dict with the key"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_item_that_no_message_expresses_is_refused_and_not_held(item: Any, why: str) -> None:
    producer = Stage().producer()
    with pytest.raises(BufferedWriteError) as refused:
        producer.put(item)
    assert str(refused.value) == why
    assert producer.unsent == ()


def test_ten_messages_are_a_request_and_the_end_sends_the_rest() -> None:
    stage = Stage()
    with stage.producer() as producer:
        _put(producer, 10)
        assert stage.queue.numbers == []
        _put(producer, 13, first=10)
        assert stage.queue.numbers == [[*range(10)], [*range(10, 20)]]
        assert _numbers(producer.unsent) == [20, 21, 22]
    assert stage.queue.numbers == [[*range(10)], [*range(10, 20)], [20, 21, 22]]
    assert (producer.unsent, stage.pauses, stage.queue.asked) == ((), [], 0)


def test_a_mebibyte_is_a_request() -> None:
    stage = Stage()
    with stage.producer() as producer:
        for number in range(5):
            # two fit to the byte
            producer.put({**_order(number), "text": "x" * (400_000 - number % 2 * 1)})
    assert stage.queue.numbers == [[0, 1], [2, 3], [4]]


@given(st.lists(st.integers(0, 400_000), max_size=30), st.integers(1, 30))
def test_every_message_is_sent_once_in_order_and_no_more_are_held_than_allowed(sizes: list[int], most: int) -> None:
    stage = Stage()
    with stage.producer(max_pending=most) as producer:
        for number, size in enumerate(sizes):
            producer.put({**_order(number), "text": "x" * size})
            assert 1 <= len(producer.unsent) <= min(most, 10)
    assert [number for batch in stage.queue.numbers for number in batch] == [*range(len(sizes))]


def test_messages_that_failed_for_a_time_are_sent_again_after_a_pause_that_grows_and_before_later_ones() -> None:
    stage = Stage(Queue(answers=[{1: BUSY, 3: BUSY}, {0: BUSY, 1: BUSY}, _error("InternalFailure", 500)]))
    with stage.producer() as producer:
        _put(producer, 5)
    assert stage.queue.numbers == [[0, 2, 4], [], [1, 3]]
    assert stage.queue.requests == 4
    first, second, third = stage.pauses
    assert 0.05 <= first <= 0.1
    assert 0.1 <= second <= 0.2
    assert 0.2 <= third <= 0.4


@pytest.mark.parametrize(
    "error",
    [
        _error("RequestThrottled", 403),
        _error("KmsThrottled"),
        _error("TooMany", 429),
        _error("ServiceUnavailable", 503),
        ReadTimeoutError(endpoint_url=URL),
    ],
    ids=["throttled", "keys throttled", "too many", "unavailable", "no answer"],
)
def test_request_that_fails_for_a_time_is_sent_again(error: Exception) -> None:
    stage = Stage(Queue(answers=[error]))
    with stage.producer() as producer:
        _put(producer, 2)
    assert stage.queue.numbers == [[0, 1]]
    assert len(stage.pauses) == 1


def test_while_the_queue_fails_puts_do_not_wait_until_the_buffer_is_full() -> None:
    stage = Stage(Queue(always=_error("ServiceUnavailable", 503)))
    producer = stage.producer(max_pending=12)
    _put(producer, 11)
    assert (stage.queue.requests, producer.would_block) == (1, False)
    _put(producer, 1, first=11)
    assert (stage.queue.requests, producer.would_block, stage.pauses) == (1, True, [])
    with pytest.raises(BufferFullError) as full:
        producer.put(_order(12), wait=False)
    assert str(full.value) == (
        "queue orders: put: messages held: got 12, allowed: 12 (max_pending); SQS did not take some (An error occurred "
        "(ServiceUnavailable) when calling the SendMessageBatch operation: it rests); "
        f"try again in {full.value.seconds:.3g} s"
    )
    assert 0.05 <= full.value.seconds <= 0.1
    assert len(producer.unsent) == 12
    # the queue answers again
    stage.queue.always = {}
    stage.clock.pause(full.value.seconds)
    assert not producer.would_block
    producer.put(_order(12), wait=False)
    producer.flush()
    assert stage.queue.numbers == [[*range(10)], [10, 11, 12]]
    assert stage.pauses == []


def test_put_that_finds_the_buffer_full_waits_and_gives_up_after_eight_failures_without_losing_anything() -> None:
    stage = Stage(Queue(always=dict.fromkeys(range(10), BUSY)))
    producer = stage.producer(max_pending=3)
    _put(producer, 3)
    with pytest.raises(BufferedWriteError) as stopped:
        producer.put(_order(3))
    assert str(stopped.value) == (
        "queue orders: messages that are not sent: 3: InternalError later (tried 8 times); "
        "they are held, and flush tries again"
    )
    assert not isinstance(stopped.value, BufferFullError)
    assert (stage.queue.requests, len(stage.pauses)) == (8, 7)
    assert _numbers(producer.unsent) == [0, 1, 2]
    stage.queue.always = {}
    producer.put(_order(3))
    producer.flush()
    assert stage.queue.numbers[-2:] == [[0, 1, 2], [3]]


def test_end_of_the_block_gives_up_after_eight_failures_and_tells_what_was_not_sent() -> None:
    stage = Stage(Queue(always={0: BUSY}))
    producer = stage.producer()
    with pytest.raises(BufferedWriteError) as stopped, producer:
        _put(producer, 3)
    assert str(stopped.value) == (
        "queue orders: messages that are not sent: 1: InternalError later (tried 8 times); "
        "they are held, and flush tries again"
    )
    assert stage.queue.numbers[0] == [1, 2]
    assert stage.queue.requests == 8
    assert producer.unsent == ('{"put":{"pk":"o-0","n":0}}',)


def test_message_that_the_queue_refuses_for_good_is_told_with_its_reason_and_the_others_are_sent() -> None:
    stage = Stage(Queue(answers=[{1: INVALID, 2: BUSY}]))
    producer = stage.producer()
    with pytest.raises(BufferedWriteError) as refused, producer:
        _put(producer, 4)
    assert str(refused.value) == (
        "queue orders: messages that were refused: 1, the first for InvalidMessageContents no such text: "
        """'{"put":{"pk":"o-1","n":1}}'; mend and put them again"""
    )
    assert refused.value.bodies == ('{"put":{"pk":"o-1","n":1}}',)
    assert stage.queue.numbers == [[0, 3], [2]]
    assert producer.unsent == ()


def test_put_that_tells_of_a_refused_message_has_not_taken_its_own() -> None:
    stage = Stage(Queue(answers=[{0: INVALID}]))
    with stage.producer() as producer:
        _put(producer, 10)
        with pytest.raises(BufferedWriteError) as refused:
            producer.put(_order(10))
        assert _numbers(refused.value.bodies) == [0]
        assert producer.unsent == ()
        producer.put(_order(10))
    assert stage.queue.numbers == [[*range(1, 10)], [10]]


def test_request_that_is_rejected_raises_at_once_and_its_messages_stay() -> None:
    stage = Stage(Queue(always=_error("AccessDenied", 403)))
    producer = stage.producer()
    _put(producer, 2)
    with pytest.raises(BufferedWriteError) as rejected:
        producer.flush()
    assert str(rejected.value) == (
        "queue orders: nothing is sent: An error occurred (AccessDenied) when calling the SendMessageBatch operation: "
        "it rests; check the URL, the session's region, and grant_send"
    )
    assert (stage.queue.requests, stage.pauses) == (1, [])
    assert _numbers(producer.unsent) == [0, 1]


def test_exception_in_the_block_goes_on_after_what_was_taken_is_sent() -> None:
    stage = Stage()
    producer = stage.producer()
    with pytest.raises(KeyError) as failed:
        _fail_after(producer, 3)
    assert stage.queue.numbers == [[0, 1, 2]]
    assert producer.unsent == ()
    assert not hasattr(failed.value, "__notes__")


def test_exception_in_the_block_does_not_wait_for_a_queue_that_fails_and_notes_what_is_not_sent() -> None:
    down = _error("ServiceUnavailable", 503)
    stage = Stage(Queue(answers=[down, {1: BUSY, 2: INVALID}, down]))
    producer = stage.producer()
    with pytest.raises(KeyError) as failed:
        _fail_after(producer, 14)
    # one request fell into the block
    assert (stage.queue.requests, stage.pauses) == (3, [])
    assert failed.value.__notes__ == [
        "queue orders: messages that were not sent: 6: An error occurred (ServiceUnavailable) when calling the "
        "SendMessageBatch operation: it rests; they are in unsent"
    ]
    assert stage.queue.numbers == [[0, *range(3, 10)]]
    assert _numbers(producer.unsent) == [2, 1, 10, 11, 12, 13]


def test_exception_in_the_block_is_not_replaced_by_that_of_a_queue_that_rejects() -> None:
    stage = Stage(Queue(always=_error("AccessDenied", 403)))
    producer = stage.producer()
    with pytest.raises(KeyError):
        _fail_after(producer, 3)
    assert (stage.queue.requests, len(producer.unsent)) == (1, 3)


def test_after_its_block_nothing_is_taken() -> None:
    stage = Stage()
    with stage.producer() as producer:
        pass
    with pytest.raises(BufferedWriteError) as ended:
        producer.delete({"pk": "a"})
    assert str(ended.value) == "queue orders: delete: its block has ended; begin another one"


def test_queue_with_too_many_messages_gets_no_more_until_it_has_fewer() -> None:
    # those that come back later are not visible meanwhile
    stage = Stage(Queue(counts=(60, 41)))
    producer = stage.producer(max_pending=20, max_queued=100, count_seconds=30)
    _put(producer, 20, wait=False)
    assert (stage.queue.asked, stage.queue.requests, producer.would_block) == (1, 0, True)
    stage.clock.pause(10)
    with pytest.raises(BufferFullError) as full:
        producer.put(_order(20), wait=False)
    assert str(full.value) == (
        "queue orders: put: messages held: got 20, allowed: 20 (max_pending); "
        "the queue has about 101, more than max_queued, 100; try again in 20 s"
    )
    # it is asked every 30 seconds and no more often
    stage.queue.counts = (60, 40)
    producer.put(_order(20))
    assert (stage.pauses, stage.queue.asked) == ([20.0], 2)
    # what was sent since is added to the answer: one batch goes, and the next has to wait for another answer
    assert (stage.queue.numbers, producer.would_block) == ([[*range(10)]], False)
    _put(producer, 9, first=21)
    assert producer.would_block
    # a put waits for the queue as long as it takes
    stage.queue.counts = (1_000, 0)
    asked = []

    def empty_later(seconds: float) -> None:
        asked.append(seconds)
        stage.clock.pause(seconds)
        stage.queue.counts = (0, 0) if len(asked) == 50 else stage.queue.counts

    producer.pause = empty_later
    producer.put(_order(30))
    assert (asked, stage.queue.asked) == ([30.0] * 50, 52)


def test_flush_and_the_end_of_the_block_send_however_many_the_queue_has() -> None:
    stage = Stage(Queue(counts=(200, 0)))
    with stage.producer(max_queued=100) as producer:
        _put(producer, 15)
        assert stage.queue.numbers == []
        producer.flush()
        assert stage.queue.numbers == [[*range(10)], [*range(10, 15)]]
        _put(producer, 1, first=15)
    assert stage.queue.numbers[2:] == [[15]]
    assert (stage.queue.asked, stage.pauses) == (1, [])


def test_queue_that_cannot_be_counted_for_a_time_keeps_the_last_count_and_without_permission_the_put_fails() -> None:
    stage = Stage(Queue(counts=(5, 0)))
    producer = stage.producer(max_pending=1, max_queued=7)
    _put(producer, 2)
    stage.queue.count_error = _error("ServiceUnavailable", 503)
    stage.clock.pause(10)
    # with the one that was sent the queue has 6, then 7, then 8
    _put(producer, 2, first=2)
    assert (stage.queue.asked, stage.queue.numbers, producer.would_block) == (2, [[0], [1], [2]], True)
    stage.queue.count_error = _error("AccessDenied", 403)
    with pytest.raises(BufferedWriteError) as denied:
        producer.put(_order(4))
    assert str(denied.value) == (
        "queue orders: max_queued: cannot count: An error occurred (AccessDenied) when calling the SendMessageBatch "
        'operation: it rests; allow it: buffered.queue.grant(role, "sqs:GetQueueAttributes")'
    )
    assert _numbers(producer.unsent) == [3]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"queue_url": "orders"}, "queue_url: got 'orders', allowed: the queue's URL; give buffered.queue.queue_url"),
        ({"max_pending": 0}, "max_pending: got 0, allowed: a whole number, 1 or more; give 1 to hold one message"),
        (
            {"max_pending": True},
            "max_pending: got True, allowed: a whole number, 1 or more; give 1 to hold one message",
        ),
        ({"max_queued": -1}, "max_queued: got -1, allowed: a whole number, 0 or more; leave it out for no limit"),
        ({"count_seconds": 0}, "count_seconds: got 0, allowed: seconds, more than 0; leave it out for 10"),
        ({"count_seconds": "9"}, "count_seconds: got '9', allowed: seconds, more than 0; leave it out for 10"),
    ],
)
def test_setting_that_is_not_allowed_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        BufferedProducer(**({"queue_url": URL} | settings))
    assert str(refused.value) == f"producer: {why}"


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(TypeError) as refused:
        BufferedProducer(URL, session="eu-central-1")
    assert str(refused.value) == (
        "producer: session: got str, allowed: a boto3.Session; leave it out for the default one"
    )


def test_requests_are_those_that_boto3_knows() -> None:
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    producer = BufferedProducer(URL, session=session, max_pending=1, max_queued=0)
    client = producer._client
    assert (client.meta.region_name, client.meta.config.retries["total_max_attempts"]) == ("eu-central-1", 1)
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    bodies = ['{"put":{"pk":"o-0","n":0}}', '{"delete":{"pk":"o-0"}}']
    with Stubber(client) as stubbed:
        stubbed.add_response(
            "get_queue_attributes",
            {"Attributes": dict.fromkeys(names, "0")},
            {"QueueUrl": URL, "AttributeNames": names},
        )
        for body in bodies:
            stubbed.add_response(
                "send_message_batch",
                {"Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "5"}], "Failed": []},
                {"QueueUrl": URL, "Entries": [{"Id": "0", "MessageBody": body}]},
            )
        with producer:
            _put(producer, 1)
            producer.delete({"pk": "o-0"})
        stubbed.assert_no_pending_responses()
    assert producer.unsent == ()
