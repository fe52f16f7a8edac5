"""The meter under real clients, resources and batch writers of boto3, against scripted answers over HTTP."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.hooks import HierarchicalEmitter
from pynamodb.attributes import UnicodeAttribute
from pynamodb.models import Model

import highwater
from highwater import Meter
from highwater.calls.attempts import client_config
from highwater.client.hooks import Counts
from highwater.core import Dimension
from tests.client.scripted import ARN, CONSUMED, ITEM, DynamoDB, driven_pulse, throttled, told_units
from tests.client.test_pulse import Coordinator

READ, WRITE = Dimension.READ, Dimension.WRITE
TABLE, STATUS = (None, WRITE), ("by_status", WRITE)
SLOT = 12_345
DELETES = {"orders": 'DELETE FROM "orders"', "carts": "delete from carts"}


class Metered:
    """A metered session and its counts."""

    def __init__(self, stage: tuple[DynamoDB, boto3.Session, str]) -> None:
        self.server, self.session, self.url = stage
        self.counts = Counts()
        self.meter = Meter(self.counts, clock=lambda: SLOT * 10.0 + 3)
        self.meter.install(self.session)
        self.client = self.session.client("dynamodb", endpoint_url=self.url, config=client_config(3))

    def told(self, table: str = "orders") -> dict[Any, float]:
        return {(key, refused): units for (_, key, refused), units in self.counts.peek(table).items()}


@pytest.fixture
def metered(dynamodb: tuple[DynamoDB, boto3.Session, str]) -> Metered:
    return Metered(dynamodb)


def test_consumed_units_are_counted_by_target_and_taken_out_of_the_answer(metered: Metered) -> None:
    answer = metered.client.put_item(TableName="orders", Item=ITEM)
    assert "ConsumedCapacity" not in answer
    assert metered.server.asked[0]["ReturnConsumedCapacity"] == "INDEXES"
    assert metered.told() == {(TABLE, False): 4.5, (STATUS, False): 2.5}
    assert {slot for slot, _, _ in metered.counts.peek("orders")} == {SLOT}


def test_caller_that_asks_for_totals_sees_totals(metered: Metered) -> None:
    answer = metered.client.put_item(TableName=ARN, Item=ITEM, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": "orders", "CapacityUnits": 7.0}
    assert metered.server.asked[0]["ReturnConsumedCapacity"] == "INDEXES"
    assert metered.told() == {(TABLE, False): 4.5, (STATUS, False): 2.5}
    metered.server.answers = [(200, {"ConsumedCapacity": [CONSUMED], "Responses": {}})]
    several = metered.client.batch_get_item(RequestItems={"orders": {"Keys": [ITEM]}}, ReturnConsumedCapacity="TOTAL")
    assert several["ConsumedCapacity"] == [{"TableName": "orders", "CapacityUnits": 7.0}]


def test_caller_that_asks_for_indexes_sees_all(metered: Metered) -> None:
    answer = metered.client.put_item(TableName="orders", Item=ITEM, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == CONSUMED


def test_models_of_pynamodb_are_metered_unchanged(metered: Metered) -> None:
    class Order(Model):
        class Meta:
            table_name = "orders"
            region = "eu-central-1"
            host = metered.url
            aws_access_key_id = "A"
            aws_secret_access_key = "B"

        pk = UnicodeAttribute(hash_key=True)

    connection = Order._get_connection().connection
    metered.meter.install(connection.client)
    Order(pk="a").save()
    assert metered.told() == {(TABLE, False): 4.5, (STATUS, False): 2.5}
    metered.server.answers = [(200, {"ConsumedCapacity": CONSUMED, "Item": ITEM})]
    assert Order.get("a").pk == "a"
    metered.server.answers = [(200, {"ConsumedCapacity": [CONSUMED], "UnprocessedItems": {}})]
    with Order.batch_write() as batch:
        batch.save(Order(pk="b"))
        batch.delete(Order(pk="c"))
    assert metered.told() == {
        (TABLE, False): 9.0,
        (STATUS, False): 5.0,
        ((None, READ), False): 4.5,
        (("by_status", READ), False): 2.5,
    }
    connection.client.close()


def test_request_that_was_refused_twice_counts_once_by_what_its_kind_consumes(metered: Metered) -> None:
    metered.client.put_item(TableName="orders", Item=ITEM)
    metered.server.answers = [throttled(), throttled(), (200, {"ConsumedCapacity": CONSUMED})]
    metered.client.put_item(TableName="orders", Item=ITEM)
    assert len(metered.server.asked) == 4
    assert metered.told() == {(TABLE, False): 9.0, (STATUS, False): 5.0, (TABLE, True): 4.5}


def test_refusal_of_an_index_counts_for_the_index(metered: Metered) -> None:
    refused = throttled("IndexWriteProvisionedThroughputExceeded", f"{ARN}/index/by_status")
    metered.server.answers = [refused, (200, {})]
    metered.client.put_item(TableName="orders", Item=ITEM)
    assert metered.told() == {(STATUS, True): 1.0}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ProvisionedThroughputExceededException", "TableWriteKeyRangeThroughputExceeded"),
        ("ProvisionedThroughputExceededException", "TableWriteAccountLimitExceeded"),
        # either error (recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits, 2026-09)
        ("ThrottlingException", "TableWriteMaxOnDemandThroughputExceeded"),
        ("ProvisionedThroughputExceededException", "IndexWriteMaxOnDemandThroughputExceeded"),
    ],
)
def test_refusals_that_capacity_does_not_help_are_not_counted(metered: Metered, code: str, reason: str) -> None:
    metered.server.answers = [throttled(reason, code=code), (200, {})]
    metered.client.put_item(TableName="orders", Item=ITEM)
    assert metered.told() == {}


def test_refusal_without_reasons_is_taken_for_one_of_the_table(metered: Metered) -> None:
    metered.server.answers = [throttled(None)]
    with pytest.raises(ClientError):
        metered.client.put_item(TableName="orders", Item=ITEM)
    assert metered.told() == {(TABLE, True): 1.0}


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
def test_batch_of_which_nothing_was_processed_counts_with_either_error(metered: Metered, code: str) -> None:
    """BatchWriteItem answers with one or the other (Amazon DynamoDB API Reference, read 2026-11)."""
    put: Any = {"PutRequest": {"Item": ITEM}}
    reason, index = "IndexWriteProvisionedThroughputExceeded", f"{ARN}/index/by_status"
    for refusal in (throttled(code=code), throttled(reason, index, code)):
        metered.server.answers = [refusal, refusal, (200, {"UnprocessedItems": {}})]
        metered.client.batch_write_item(RequestItems={"orders": [put, put, put]})
    metered.server.answers = [throttled("TableReadProvisionedThroughputExceeded", code=code), (200, {})]
    metered.client.batch_get_item(RequestItems={"orders": {"Keys": [ITEM]}})
    assert metered.told() == {(TABLE, True): 3.0, (STATUS, True): 3.0, ((None, READ), True): 1.0}


def test_request_of_two_tables_that_is_refused_as_a_whole_counts_for_the_table_that_was_out_of_capacity(
    metered: Metered,
) -> None:
    """A throttled transaction, or batch of reads, mostly fails at the top level.

    Recorded: radkawar/stackd 9dc356f, dynamodb/write_throttling and dynamodb/read_throttling, 2026-09.
    """
    carts, orders = cast(Any, [{"Put": {"TableName": each, "Item": ITEM}} for each in ("carts", "orders")])
    metered.server.answers = [throttled(), (200, {})]
    metered.client.transact_write_items(TransactItems=[carts, orders, orders])
    assert (metered.told("carts"), metered.told()) == ({}, {(TABLE, True): 2.0})
    metered.server.answers = [throttled("TableReadProvisionedThroughputExceeded"), (200, {})]
    metered.client.batch_get_item(RequestItems={"carts": {"Keys": [ITEM]}, "orders": {"Keys": [ITEM, ITEM, ITEM]}})
    assert (metered.told("carts"), metered.told()[(None, READ), True]) == ({}, 3.0)
    # without a name it may have been either
    metered.server.answers = [throttled(resource=""), (200, {})]
    metered.client.transact_write_items(TransactItems=[carts, orders])
    assert (metered.told("carts")[TABLE, True], metered.told()[TABLE, True]) == (1.0, 3.0)


def test_reason_that_is_not_known_yet_is_taken_for_none(metered: Metered) -> None:
    """It was throttled all the same."""
    codes = ("ProvisionedThroughputExceededException", "ThrottlingException")
    metered.server.answers = [*(throttled("TableWriteMoodExceeded", code=code) for code in codes), (200, {})]
    metered.client.put_item(TableName="orders", Item=ITEM)
    assert metered.told() == {(TABLE, True): 1.0}


def test_items_that_a_batch_leaves_are_counted_as_refused(metered: Metered) -> None:
    put: Any = {"PutRequest": {"Item": ITEM}}
    metered.server.answers = [
        (200, {"ConsumedCapacity": [{"TableName": "orders", "CapacityUnits": 6.0}], "UnprocessedItems": {}}),
        (
            200,
            {
                "ConsumedCapacity": [{"TableName": "orders", "CapacityUnits": 2.0}],
                "UnprocessedItems": {"orders": [put, put]},
            },
        ),
    ]
    for _ in range(2):
        answer = metered.client.batch_write_item(RequestItems={"orders": [put, put, put]})
        assert "ConsumedCapacity" not in answer
    assert metered.told() == {(TABLE, False): 8.0, (TABLE, True): 4.0}


def test_resources_batch_writers_and_paginators_are_metered_unchanged(metered: Metered) -> None:
    metered.server.answers = [
        (200, {"ConsumedCapacity": [{"TableName": "orders", "CapacityUnits": 2.0}], "UnprocessedItems": {}})
    ]
    table = metered.session.resource("dynamodb", endpoint_url=metered.url).Table("orders")
    with table.batch_writer() as batch:
        for number in range(30):
            batch.put_item(Item={"pk": str(number)})
    assert metered.told() == {(TABLE, False): 4.0}
    page = {"Items": [ITEM], "Count": 1, "ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 0.5}}
    metered.server.answers = [(200, page | {"LastEvaluatedKey": ITEM}), (200, page)]
    pages = list(metered.client.get_paginator("scan").paginate(TableName="orders"))
    assert [len(found["Items"]) for found in pages] == [1, 1]
    assert all("ConsumedCapacity" not in found for found in pages)
    assert metered.told()[(None, READ), False] == 1.0


def test_transactions_and_statements_are_counted_by_what_they_do(metered: Metered) -> None:
    metered.server.answers = [(200, {"ConsumedCapacity": [{"TableName": "orders", "CapacityUnits": 4.0}]})]
    metered.client.transact_write_items(TransactItems=[{"Put": {"TableName": "orders", "Item": ITEM}}])
    metered.server.answers = [(200, {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 3.0}})]
    metered.client.execute_statement(Statement=' select * from "orders"')
    metered.client.execute_statement(Statement='DELETE FROM "orders" WHERE pk = 1')
    assert metered.told() == {(TABLE, False): 7.0, ((None, READ), False): 3.0}


@pytest.mark.parametrize("operation", ["transact_write_items", "execute_transaction"])
def test_items_that_cancel_a_transaction_are_counted_as_refused(metered: Metered, operation: str) -> None:
    metered.client.put_item(TableName="orders", Item=ITEM)
    codes = ("ProvisionedThroughputExceeded", "None", "ThrottlingError", "ConditionalCheckFailed")
    name = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    canceled = {"__type": name, "message": "canceled", "CancellationReasons": [{"Code": code} for code in codes]}
    metered.server.answers = [(400, canceled)]
    tables = ("orders", "orders", "carts", "carts")
    requests: dict[str, Any] = {
        "transact_write_items": {"TransactItems": [{"Put": {"TableName": each, "Item": ITEM}} for each in tables]},
        "execute_transaction": {"TransactStatements": [{"Statement": DELETES[each]} for each in tables]},
    }
    with pytest.raises(ClientError):
        getattr(metered.client, operation)(**requests[operation])
    assert metered.told()[TABLE, True] == 4.5
    assert metered.told("carts") == {(TABLE, True): 1.0}


def test_statements_that_a_batch_answers_with_errors_are_counted_as_refused(metered: Metered) -> None:
    codes = ("ProvisionedThroughputExceeded", "ThrottlingError", "DuplicateItem")
    answers = [{"Error": {"Code": code}} for code in codes]
    consumed = [{"TableName": "orders", "CapacityUnits": 2.0}]
    metered.server.answers = [(200, {"Responses": [{"TableName": "orders"}, *answers], "ConsumedCapacity": consumed})]
    statements: Any = [{"Statement": DELETES[each]} for each in ("orders", "orders", "carts", "carts")]
    metered.client.batch_execute_statement(Statements=statements)
    # one of two statements was served
    assert metered.told() == {(TABLE, False): 2.0, (TABLE, True): 2.0}
    assert metered.told("carts") == {(TABLE, True): 1.0}


NUMBER: Any = 7
SHAPES: list[dict[str, Any]] = [
    {"ConsumedCapacity": NUMBER},
    {"ConsumedCapacity": [NUMBER, None]},
    {"ConsumedCapacity": {"TableName": NUMBER, "CapacityUnits": 1}},
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": "many"}},
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": float("nan")}},
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": float("inf")}},
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": -3}},
    {"ConsumedCapacity": {"TableName": "orders", "GlobalSecondaryIndexes": NUMBER}},
    {"UnprocessedItems": {"orders": NUMBER}},
    {"UnprocessedItems": NUMBER},
    {"Responses": NUMBER},
    {"Responses": [NUMBER]},
    {"Error": NUMBER},
    {"Error": {"Code": "ProvisionedThroughputExceededException"}, "ThrottlingReasons": NUMBER},
    {"Error": {"Code": "ProvisionedThroughputExceededException"}, "ThrottlingReasons": [NUMBER]},
    {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": NUMBER},
    {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [NUMBER]},
]


@pytest.mark.parametrize("parsed", SHAPES, ids=str)
def test_hooks_raise_for_no_answer_that_cannot_be(parsed: dict[str, Any]) -> None:
    counts, events = Counts(), HierarchicalEmitter()
    given: Any = SimpleNamespace(events=events, client=lambda: None, region_name="eu-central-1")
    Meter(counts, clock=lambda: 70.0).install(given)
    highwater.pace(given, write=1_000)
    model = SimpleNamespace(name="BatchExecuteStatement")
    for asked in ("NONE", "TOTAL", "INDEXES"):
        params: dict[str, Any] = {"Statements": [{"Statement": "DELETE FROM orders"}]}
        context: dict[str, Any] = {"client_region": "eu-central-1"}
        named = {"model": model, "context": context}
        more = {} if asked == "NONE" else {"ReturnConsumedCapacity": asked}
        events.emit("before-parameter-build.dynamodb.X", params=params | more, **named)
        events.emit("before-call.dynamodb.X", params={"url": NUMBER}, **named)
        events.emit("request-created.dynamodb.X", request=SimpleNamespace(context=context))
        events.emit("response-received.dynamodb.X", parsed_response=parsed, context=context)
        events.emit("after-call.dynamodb.X", parsed=dict(parsed), **named)
    assert all(units > 0 for table in counts.tables() for units in counts.peek(table).values())


def test_tables_that_nobody_tells_of_are_left_as_they_are(metered: Metered) -> None:
    metered.meter.is_told = lambda table: table == "orders"
    metered.client.put_item(TableName="others", Item=ITEM)
    assert "ReturnConsumedCapacity" not in metered.server.asked[0]
    assert metered.counts.tables() == []


def test_other_calls_and_malformed_ones_are_left_to_botocore(metered: Metered) -> None:
    metered.server.answers = [(200, {"TableNames": []})]
    metered.client.list_tables()
    assert metered.server.asked == [{}]
    for broken in ({"RequestItems": 7}, {"RequestItems": {"orders": 7}}):
        with pytest.raises(Exception, match="nvalid type"):
            metered.client.batch_write_item(**broken)


def test_meter_of_one_client_leaves_others_alone(dynamodb: tuple[DynamoDB, boto3.Session, str]) -> None:
    server, session, url = dynamodb
    counts = Counts()
    one, other = (session.client("dynamodb", endpoint_url=url) for _ in range(2))
    meter = Meter(counts, clock=lambda: 70.0)
    meter.install(one)
    other.put_item(TableName="orders", Item=ITEM)
    assert counts.tables() == []
    one.put_item(TableName="orders", Item=ITEM)
    assert counts.take("orders") == {(7, TABLE, False): 4.5, (7, STATUS, False): 2.5}
    assert len(server.asked) == 2


class HangingTable:
    """The coordinator's table, which does not answer until it is let go."""

    def __init__(self) -> None:
        self.has_begun, self.may_answer = threading.Event(), threading.Event()
        self.told = 0.0

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.has_begun.set()
        assert self.may_answer.wait(60)
        self.told += told_units(request)
        return {"Attributes": {}}


def test_requests_go_on_while_a_pulse_hangs_and_are_told_of_afterwards(
    dynamodb: tuple[DynamoDB, boto3.Session, str],
) -> None:
    _, session, url = dynamodb
    table, coordinator, now = HangingTable(), Coordinator(), [SLOT * 10.0 + 3]
    pulse = driven_pulse(table, coordinator, lambda: now[0])
    pulse.meter.install(session)
    client = session.client("dynamodb", endpoint_url=url)
    client.put_item(TableName="orders", Item=ITEM)
    now[0] += 60
    client.put_item(TableName="orders", Item=ITEM)
    assert table.has_begun.wait(60)
    for _ in range(20):
        client.put_item(TableName="orders", Item=ITEM)
    assert table.told == 0
    table.may_answer.set()
    pulse.stop()
    assert table.told == 22 * 7.0
    assert set(coordinator.woken) <= {"pulse orders"}
    client.close()
