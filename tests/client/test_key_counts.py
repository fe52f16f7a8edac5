"""Counting keys under real clients and resources of boto3, against scripted answers over HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from typing import Any, cast

import boto3
import pytest
from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater import Meter
from highwater.calls.attempts import client_config
from highwater.client.hooks import Counts
from highwater.shards import KeyCounts, ShardError, count_keys
from tests.cdk_cli import ROOT
from tests.client.scripted import ARN, CONSUMED, ITEM, DynamoDB, throttled

SECRET = "a secret of the whole fleet"
NOON = 1_796_126_400
KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"


def hashed(key: str) -> str:
    # printf %s a | openssl dgst -sha256 -hmac "a secret of the whole fleet"
    return hmac.new(SECRET.encode(), key.encode(), hashlib.sha256).hexdigest()[:16]


class Counted:
    """A session whose keys are counted, and the lines that are logged."""

    def __init__(self, stage: tuple[DynamoDB, boto3.Session, str], caplog: pytest.LogCaptureFixture) -> None:
        self.server, self.session, self.url = stage
        self.now = NOON + 3.0
        self.caplog = caplog
        caplog.set_level(logging.INFO, "highwater.keys")
        self.counts = self.counting()
        self.client = self.session.client("dynamodb", endpoint_url=self.url, config=client_config(3))

    def counting(self, **more: Any) -> KeyCounts:
        attributes = {"orders": "pk", "carts": "pk"}
        made = KeyCounts(attributes=attributes, secret=SECRET.encode(), clock=lambda: self.now, **more)
        made.install(self.session)
        return made

    def answer(self, *answers: tuple[int, dict[str, Any]]) -> None:
        self.server.answers = list(answers)

    def lines(self) -> list[dict[str, Any]]:
        self.counts.stop()
        return [json.loads(record.getMessage()) for record in self.caplog.records if record.name == "highwater.keys"]

    def told(self, *names: str) -> dict[tuple[str, str], Any]:
        """What the lines say, by table and key."""
        plain = {hashed(key): key for key in "abcdef"}
        return {
            (line["table"], plain[line["key_hash"]]): tuple(line[name] for name in names)
            if len(names) > 1
            else line[names[0]]
            for line in self.lines()
        }


@pytest.fixture
def counted(dynamodb: tuple[DynamoDB, boto3.Session, str], caplog: pytest.LogCaptureFixture) -> Counted:
    return Counted(dynamodb, caplog)


def test_line_has_the_keyed_hash_and_the_units_of_the_table_and_its_local_indexes(counted: Counted) -> None:
    answer = counted.client.put_item(TableName="orders", Item=ITEM)
    assert "ConsumedCapacity" not in answer
    assert counted.lines() == [
        {
            "highwater": "hot-key",
            "minute": "2026-12-01T12:00:00Z",
            "region": "eu-central-1",
            "table": "orders",
            "dimension": "write",
            "key_hash": hashed("a"),
            "secret": hashed("highwater.keys")[:8],
            "units": 4.5,
            "units_error": 0.0,
            "table_units": 4.5,
            "throttled": 0,
            "key_range_throttled": 0,
        }
    ]
    assert [record.levelname for record in counted.caplog.records] == ["INFO"]


def test_answer_has_what_the_caller_asked_for_whoever_else_counts(counted: Counted) -> None:
    counts = Counts()
    Meter(counts).install(counted.session)
    client = counted.session.client("dynamodb", endpoint_url=counted.url)
    answer = client.put_item(TableName=ARN, Item=ITEM, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": "orders", "CapacityUnits": 7.0}
    assert sum(counts.peek("orders").values()) == 7.0
    assert counted.told("units") == {("orders", "a"): 4.5}


def test_resources_are_counted_like_clients(counted: Counted) -> None:
    table = counted.session.resource("dynamodb", endpoint_url=counted.url).Table("orders")
    table.put_item(Item={"pk": "b"})
    counted.answer((200, {"ConsumedCapacity": CONSUMED, "Items": [], "Count": 0, "ScannedCount": 0}))
    table.query(KeyConditionExpression=Key("pk").eq("a") & Key("sk").lt("z"))
    assert {(line["dimension"], line["key_hash"], line["units"]) for line in counted.lines()} == {
        ("write", hashed("b"), 4.5),
        ("read", hashed("a"), 4.5),
    }


def test_units_of_a_batch_are_shared_by_the_items_that_were_written(counted: Counted) -> None:
    units = [{"TableName": "orders", "CapacityUnits": 6.0}, {"TableName": "carts", "CapacityUnits": 5.0}]
    put: Any = {key: {"PutRequest": {"Item": {"pk": {"S": key}}}} for key in "abcd"}
    counted.answer((200, {"ConsumedCapacity": units, "UnprocessedItems": {"orders": [put["b"]]}}))
    counted.client.batch_write_item(RequestItems={"orders": [put["a"], put["b"], put["c"]], "carts": [put["d"]]})
    assert counted.told("units", "throttled", "key_range_throttled") == {
        ("orders", "a"): (3.0, 0, 0),
        ("orders", "b"): (0.0, 1, 0),
        ("orders", "c"): (3.0, 0, 0),
        ("carts", "d"): (5.0, 0, 0),
    }


def test_keys_that_a_batch_did_not_read_are_throttled(counted: Counted) -> None:
    left = {"orders": {"Keys": [{"pk": {"S": "b"}}]}}
    counted.answer((200, {"ConsumedCapacity": [CONSUMED], "UnprocessedKeys": left, "Responses": {}}))
    asked: Any = {"orders": {"Keys": [{"pk": {"S": "a"}}, {"pk": {"S": "b"}}]}, "other": {"Keys": [{"pk": {"S": "e"}}]}}
    counted.client.batch_get_item(RequestItems=asked)
    assert counted.told("units", "throttled") == {("orders", "a"): (4.5, 0), ("orders", "b"): (0.0, 1)}


def test_request_of_a_hot_key_counts_as_throttled_once_and_is_a_warning(counted: Counted) -> None:
    refused = throttled(KEY_RANGE, code="ThrottlingException")
    counted.answer(throttled(), refused, (200, {"ConsumedCapacity": CONSUMED}))
    counted.client.put_item(TableName="orders", Item=ITEM)
    assert len(counted.server.asked) == 3
    assert counted.told("units", "throttled", "key_range_throttled") == {("orders", "a"): (4.5, 1, 1)}
    assert [record.levelname for record in counted.caplog.records if record.name == "highwater.keys"] == ["WARNING"]


@pytest.mark.parametrize(
    ("reason", "resource", "by_key_range"),
    [
        (KEY_RANGE, ARN, 1),
        ("IndexWriteKeyRangeThroughputExceeded", f"{ARN}/index/by_status", 0),
        ("TableWriteProvisionedThroughputExceeded", ARN, 0),
        (None, ARN, 0),
    ],
)
def test_only_the_limit_of_the_tables_own_partition_is_the_keys(
    counted: Counted, reason: str | None, resource: str, by_key_range: int
) -> None:
    counted.answer(throttled(reason, resource))
    with pytest.raises(ClientError):
        counted.client.put_item(TableName="orders", Item=ITEM)
    assert counted.told("units", "throttled", "key_range_throttled") == {("orders", "a"): (0.0, 1, by_key_range)}


def test_batch_that_is_rejected_counts_for_the_table_that_was_throttled(counted: Counted) -> None:
    counted.answer(throttled(KEY_RANGE))
    put: Any = {key: {"PutRequest": {"Item": {"pk": {"S": key}}}} for key in "ab"}
    with pytest.raises(ClientError):
        counted.client.batch_write_item(RequestItems={"orders": [put["a"]], "carts": [put["b"]]})
    assert counted.told("key_range_throttled") == {("orders", "a"): 1}


def test_item_of_a_batch_that_was_throttled_and_then_left_unprocessed_counts_as_throttled_once(
    counted: Counted,
) -> None:
    put: Any = {key: {"PutRequest": {"Item": {"pk": {"S": key}}}} for key in "abc"}
    left = {"orders": [put["b"]], "carts": [put["c"]]}
    counted.answer(throttled(KEY_RANGE), (200, {"UnprocessedItems": left}))
    counted.client.batch_write_item(RequestItems={"orders": [put["a"], put["b"]], "carts": [put["c"]]})
    assert counted.told("units", "throttled", "key_range_throttled") == {
        ("orders", "a"): (1.0, 1, 1),
        ("orders", "b"): (0.0, 1, 1),
        ("carts", "c"): (0.0, 1, 0),
    }


def test_items_of_a_canceled_transaction_that_were_throttled_count(counted: Counted) -> None:
    reasons = [{"Code": "None"}, {"Code": "ThrottlingError"}, {"Code": "ProvisionedThroughputExceeded"}]
    canceled = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": reasons,
    }
    counted.answer((400, canceled | {"message": "canceled"}))
    put = [{"Put": {"TableName": "orders", "Item": {"pk": {"S": key}}}} for key in "abc"]
    with pytest.raises(ClientError):
        counted.client.transact_write_items(TransactItems=cast("Any", put))
    assert counted.told("units", "throttled") == {("orders", "b"): (0.0, 1), ("orders", "c"): (0.0, 1)}


@pytest.mark.parametrize(("code", "units"), [("ConditionalCheckFailedException", 1.0), ("ValidationException", None)])
def test_failed_condition_is_a_unit_and_another_error_is_none(counted: Counted, code: str, units: float | None) -> None:
    counted.answer((400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}))
    with pytest.raises(ClientError, match=code):
        counted.client.put_item(TableName="orders", Item=ITEM)
    assert counted.told("units") == ({} if units is None else {("orders", "a"): units})


def test_answer_without_consumption_counts_a_unit_for_each_item(counted: Counted) -> None:
    counted.answer((200, {}))
    counted.client.put_item(TableName="orders", Item=ITEM)
    counted.client.scan(TableName="orders")
    counted.client.put_item(TableName="other", Item=ITEM)
    assert "ReturnConsumedCapacity" not in counted.server.asked[2]
    assert counted.told("units") == {("orders", "a"): 1.0}


def test_regions_are_told_apart(counted: Counted) -> None:
    other = counted.session.client("dynamodb", endpoint_url=counted.url, region_name="eu-west-1")
    for client in (counted.client, other, other):
        client.put_item(TableName="orders", Item=ITEM)
    assert {(line["region"], line["units"]) for line in counted.lines()} == {("eu-central-1", 4.5), ("eu-west-1", 9.0)}


def test_names_are_logged_only_of_the_tables_for_which_they_were_asked(
    dynamodb: tuple[DynamoDB, boto3.Session, str], caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counted(dynamodb, caplog)
    counted.counts.stop()
    counted.counts = counted.counting(plain_tables=frozenset({"carts"}))
    client = counted.session.client("dynamodb", endpoint_url=counted.url)
    for table, key in (("orders", "ANNA@EXAMPLE.COM"), ("carts", "BEN@EXAMPLE.COM\n\u2028")):
        counted.answer((200, {}))
        client.put_item(TableName=table, Item={"pk": {"S": key}})
    plain, hidden = sorted(counted.lines(), key=lambda line: str(line["table"]))
    assert (plain["key"], "key_hash" in plain, "secret" in plain) == ("BEN@EXAMPLE.COM\n\u2028", False, False)
    assert (hidden["key_hash"], "key" in hidden) == (hashed("ANNA@EXAMPLE.COM"), False)
    texts = [record.getMessage() for record in caplog.records if record.name == "highwater.keys"]
    assert not any("ANNA" in text for text in texts)
    # one line, whatever is in the key
    assert all(text.isascii() and text.isprintable() for text in texts)
    assert "fleet" not in repr(counted.counts)


def test_minute_is_logged_once_by_the_first_request_of_the_next_one(counted: Counted) -> None:
    for second in (3, 59.9, 60, 59.8, 119, 300):
        counted.now = NOON + second
        counted.client.put_item(TableName="orders", Item=ITEM)
    assert [(line["minute"][11:16], line["units"]) for line in counted.lines()] == [
        ("12:00", 9.0),
        # a clock that goes back by some seconds ends no minute twice
        ("12:01", 13.5),
        ("12:05", 4.5),
    ]


def test_what_stopped_counts_and_logs_no_more(counted: Counted) -> None:
    counted.client.put_item(TableName="orders", Item=ITEM)
    assert len(counted.lines()) == 1
    counted.now += 60
    counted.client.put_item(TableName="orders", Item=ITEM)
    assert "ReturnConsumedCapacity" not in counted.server.asked[-1]
    assert len(counted.lines()) == 1


class Lines(logging.Handler):
    """Collects what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(record.getMessage()))


def _event(counts: KeyCounts, number: int, table: str, units: float) -> None:
    """Pass a request through the hooks, without a client."""
    model = type("Model", (), {"name": "PutItem"})
    context: dict[str, Any] = {"client_region": "eu-central-1"}
    counts._begin(params={"TableName": table, "Item": {"pk": {"S": str(number)}}}, model=model, context=context)
    counts._end(parsed={"ConsumedCapacity": {"TableName": table, "CapacityUnits": units}}, context=context)


REQUESTS = st.tuples(
    st.sampled_from((0.0,) * 20 + (0.25, 7.5, 31.0, 200.0)),
    st.integers(0, 30),
    st.sampled_from(("orders", "carts", "day")),
    st.integers(1, 9),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(REQUESTS, min_size=20, max_size=80))
def test_a_minute_has_ten_lines_at_most_and_the_hottest_keys_are_in_them(requests: list[Any]) -> None:
    handler, logger, now = Lines(), logging.getLogger("highwater.keys"), [float(NOON)]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        attributes = dict.fromkeys(("orders", "carts", "day"), "pk")
        counts = KeyCounts(attributes=attributes, secret=b"", plain_tables=frozenset(attributes), clock=lambda: now[0])
        true: Counter[tuple[int, str, str]] = Counter()
        for seconds, number, table, units in requests:
            now[0] += seconds
            _event(counts, number, table, float(units))
            true[int(now[0]) // 60 - NOON // 60, table, str(number)] += units
        counts.stop()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    by_minute: dict[int, list[Any]] = {}
    for line in handler.found:
        minute = int(line["minute"][14:16]) + 60 * (int(line["minute"][11:13]) - 12)
        by_minute.setdefault(minute, []).append(line["units"])
        assert true[minute, line["table"], line["key"]] == line["units"]
    for minute, units in by_minute.items():
        # fewer keys than counters: nothing is lost but what is below a hundredth of its table
        assert len(units) <= 10
        assert units[0] == max(count for (at, _, _), count in true.items() if at == minute)
        assert units == sorted(units, reverse=True)
    assert set(by_minute) == {at for at, _, _ in true}


def test_threads_lose_nothing(counted: Counted) -> None:
    def put(number: int) -> None:
        for _ in range(300):
            _event(counted.counts, number % 2, "orders", 1.0)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line["units"] for line in counted.lines()] == [900.0, 900.0]


def _story(name: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.client.key_stories", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_forked_process_logs_what_it_counted_itself_by_the_same_secret() -> None:
    child, parent = _story("fork_while_another_thread_counts")
    assert (child["who"], child["units"]) == ("child", 2.0)
    # the request of the thread, and the one that left its sum to it
    assert (parent["who"], parent["units"]) == ("parent", 4.0)
    assert child["key_hash"] == parent["key_hash"]


def test_signal_handler_counts_without_waiting_for_the_request_that_it_interrupts() -> None:
    (line,) = _story("signal_while_counting")
    assert line["units"] == 3.0


def test_processes_draw_secrets_of_their_own() -> None:
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    made = [count_keys(session, keys={"orders": "pk"}) for _ in range(2)]
    assert made[0].secret != made[1].secret
    assert min(len(each.secret) for each in made) >= 16
    given_text = count_keys(session, keys={"orders": "pk"}, secret=SECRET)
    assert given_text.secret == SECRET.encode()
    for each in (*made, given_text):
        each.stop()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": {}}, 'keys: got {}, allowed: at least one table, such as {"orders": "pk"}'),
        (
            {"keys": {"orders": ""}},
            "keys: got {'orders': ''}, allowed: a table's name and the name of its partition key, such as "
            '{"orders": "pk"}',
        ),
        (
            {"keys": {ARN: "pk"}},
            f"keys: got '{ARN}', allowed: a table's name; write 'orders', which counts requests by name and by ARN",
        ),
        (
            {"keys": {"orders": "pk", "carts": "pk"}, "plain_tables": ["order"]},
            "plain_tables: got 'order', allowed: tables of keys, carts, orders; did you mean orders?",
        ),
        (
            {"keys": {"orders": "pk"}, "secret": "opensesame"},
            "secret: got 10 bytes, allowed: 16 or more; draw one with `openssl rand -hex 32`",
        ),
    ],
)
def test_argument_that_is_not_valid_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ShardError, match=f"^{re.escape(f'count_keys: {message}')}$"):
        count_keys(boto3.Session(region_name="eu-central-1"), **arguments)


def test_session_that_is_not_boto3s_is_named() -> None:
    with pytest.raises(TypeError, match=r"^count_keys: session_or_client: got str, allowed: "):
        count_keys("orders", keys={"orders": "pk"})
