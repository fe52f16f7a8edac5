"""Pacing under real clients, resources and batch writers of boto3, with a clock that moves where somebody waits."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import boto3
import botocore
import pytest
from botocore.exceptions import ClientError

import highwater
from highwater import Meter, PaceError, Pacer
from highwater.calls.attempts import client_config
from highwater.client.hooks import Counts
from highwater.core import Dimension
from tests.client.scripted import ARN, CONSUMED, ITEM, DynamoDB, throttled
from tests.client.virtual_clock import SECOND, Clock

READ, WRITE = Dimension.READ, Dimension.WRITE


@dataclass
class Paced:
    """A paced client against a scripted DynamoDB."""

    server: DynamoDB
    session: boto3.Session
    url: str
    clock: Clock = field(default_factory=lambda: Clock(now=5_000 * SECOND))

    def __post_init__(self) -> None:
        self.pacer = self.clock.pacer()

    def pace(self, **budget: Any) -> Any:
        """A client of the session, paced."""
        highwater.pace(self.session, pacer=self.pacer, **budget)
        return self.client()

    def client(self) -> Any:
        return self.session.client("dynamodb", endpoint_url=self.url, config=client_config(3))

    def answers(self, units: float, **more: Any) -> None:
        consumed = {"TableName": "orders", "CapacityUnits": units}
        self.server.answers = [(200, {"ConsumedCapacity": consumed} | more)]


@pytest.fixture
def paced(dynamodb: tuple[DynamoDB, boto3.Session, str]) -> Paced:
    return Paced(*dynamodb)


def test_requests_wait_for_what_those_before_consumed(paced: Paced) -> None:
    client = paced.pace(write=5)
    paced.answers(2.0)
    for _ in range(6):
        client.put_item(TableName="orders", Item=ITEM)
    # five units at once, then two each 0.4 s; the first was expected to cost one
    assert paced.clock.waited == [0.2, 0.4, 0.4, 0.4]
    client.close()


def test_answers_stay_as_they_are_and_other_operations_are_not_touched(paced: Paced) -> None:
    client = paced.pace(write=5)
    assert "ConsumedCapacity" not in client.put_item(TableName="orders", Item=ITEM)
    paced.server.answers = [(200, {"Table": {"TableName": "orders"}})]
    client.describe_table(TableName="orders")
    assert "ReturnConsumedCapacity" not in paced.server.asked[-1]
    paced.answers(70.0)
    client.get_item(TableName="orders", Key=ITEM)
    client.get_item(TableName="orders", Key=ITEM)
    assert paced.clock.waited == [], "reads have no limit"
    client.close()


def test_debt_is_paid_however_long_it_takes(paced: Paced) -> None:
    client = paced.pace(read=0.5)
    paced.answers(128.0, Items=[], Count=0, ScannedCount=0)
    client.scan(TableName="orders", Limit=1)
    paced.answers(1.0)
    client.scan(TableName="orders", Limit=1)
    # 127.5 units of debt, and half a unit to begin with, at half a unit a second
    assert paced.clock.waited == [256.0]
    client.close()


def test_each_index_has_a_budget_of_its_own(paced: Paced) -> None:
    client = paced.pace(write=9, table="orders", indexes={"by_status": 2.5})
    paced.server.answers = [(200, {"ConsumedCapacity": CONSUMED})]
    client.put_item(TableName="orders", Item=ITEM)
    client.put_item(TableName="orders", Item=ITEM)
    client.put_item(TableName="orders", Item=ITEM)
    # 2.5 units each for the index, which refills in a second; the table's 4.5 would not wait for the second
    assert paced.clock.waited == [1.0, 1.0]
    assert (paced.pacer.rate("orders", "by_status", WRITE), paced.pacer.rate("orders", None, WRITE)) == (2.5, 9.0)
    assert paced.pacer.rate("others", None, WRITE) is None
    client.close()


def test_attempts_that_are_refused_wait_each_cost_nothing_and_slow_down(paced: Paced) -> None:
    client = paced.pace(write=10)
    consumed = {"TableName": "orders", "CapacityUnits": 1.0}
    paced.server.answers = [throttled(), throttled(), (200, {"ConsumedCapacity": consumed})]
    client.put_item(TableName="orders", Item=ITEM)
    assert len(paced.server.asked) == 3
    assert paced.pacer.rate("orders", None, WRITE) == 7.0
    paced.clock.now += 21 * SECOND
    assert paced.pacer.rate("orders", None, WRITE) == 8.0
    client.close()


def test_clients_that_say_nothing_of_retries_send_a_request_as_often_as_the_pages_say(
    paced: Paced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 times since botocore 1.44 and 10 times before, with the pauses of docs/model.md."""
    pauses: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pauses.append))
    is_standard = tuple(int(part) for part in botocore.__version__.split(".")[:2]) >= (1, 44)
    most = [1, 2, 4] if is_standard else [0.05 * 2**number for number in range(9)]
    client = paced.session.client("dynamodb", endpoint_url=paced.url)
    paced.server.answers = [throttled()]
    with pytest.raises(ClientError):
        client.put_item(TableName="orders", Item=ITEM)
    assert len(paced.server.asked) == len(most) + 1
    assert all(pause <= longest for pause, longest in zip(pauses, most, strict=True))
    client.close()


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
@pytest.mark.parametrize("reason", ["TableWriteProvisionedThroughputExceeded", "TableWriteMoodExceeded", None])
def test_batch_that_is_refused_slows_down_with_either_error_and_whatever_the_reason(
    paced: Paced, code: str, reason: str | None
) -> None:
    client = paced.pace(write=10)
    paced.server.answers = [throttled(reason, code=code), (200, {"UnprocessedItems": {}})]
    paced.pacer.limit("orders", WRITE, 10)
    client.batch_write_item(RequestItems={"orders": [{"PutRequest": {"Item": ITEM}}]})
    assert paced.pacer.rate("orders", None, WRITE) == 7.0
    client.close()


def test_hot_key_slows_nothing_down(paced: Paced) -> None:
    client = paced.pace(write=10)
    paced.server.answers = [throttled("TableWriteKeyRangeThroughputExceeded"), (200, {})]
    client.put_item(TableName="orders", Item=ITEM)
    assert paced.pacer.rate("orders", None, WRITE) == 10.0
    client.close()


def test_limit_of_the_account_slows_every_budget_of_that_dimension(paced: Paced) -> None:
    client = paced.pace(write=10, read=20)
    paced.answers(1.0)
    client.put_item(TableName="orders", Item=ITEM)
    client.get_item(TableName="orders", Key=ITEM)
    paced.server.answers = [throttled("TableWriteAccountLimitExceeded"), (200, {})]
    client.put_item(TableName="orders", Item=ITEM)
    assert [paced.pacer.rate("orders", None, each) for each in (WRITE, READ)] == [7.0, 20.0]
    client.close()


def test_batch_writer_is_paced_and_what_is_left_slows_down(paced: Paced) -> None:
    highwater.pace(paced.session, write=25, pacer=paced.pacer)
    resource = paced.session.resource("dynamodb", endpoint_url=paced.url)
    left = {"orders": [{"PutRequest": {"Item": ITEM}}]}
    consumed = {"TableName": "orders", "CapacityUnits": 24.0}
    paced.server.answers = [
        (200, {"ConsumedCapacity": [consumed], "UnprocessedItems": left}),
        (200, {"ConsumedCapacity": [consumed], "UnprocessedItems": {}}),
    ]
    with resource.Table("orders").batch_writer() as batch:
        for number in range(25):
            batch.put_item(Item={"pk": str(number)})
    assert paced.pacer.rate("orders", None, WRITE) == 17.5
    resource.meta.client.close()


def test_transaction_that_is_canceled_for_want_of_capacity_slows_down_that_table(paced: Paced) -> None:
    client = paced.pace(write=10)
    name = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    reasons = [{"Code": "None"}, {"Code": "ProvisionedThroughputExceeded"}]
    paced.server.answers = [(400, {"__type": name, "message": "canceled", "CancellationReasons": reasons})]
    items: Any = [{"Put": {"TableName": each, "Item": ITEM}} for each in ("orders", "carts")]
    with pytest.raises(ClientError):
        client.transact_write_items(TransactItems=items)
    assert [paced.pacer.rate(each, None, WRITE) for each in ("orders", "carts")] == [10.0, 7.0]
    client.close()


@pytest.mark.parametrize("operation", ["transact_write_items", "execute_transaction", "batch_write_item"])
def test_request_of_two_tables_that_is_refused_as_a_whole_slows_down_the_table_that_was_out_of_capacity(
    paced: Paced, operation: str
) -> None:
    """Throttled transactions are mostly ProvisionedThroughputExceededException at the top level, and seldom canceled.

    Recorded: radkawar/stackd 9dc356f, dynamodb/write_throttling, 2026-09 (16 of 24, and 5 canceled).
    """
    client = paced.pace(write=10)
    put: Any = {"PutRequest": {"Item": ITEM}}
    requests: dict[str, Any] = {
        "transact_write_items": {
            "TransactItems": [{"Put": {"TableName": t, "Item": ITEM}} for t in ("carts", "orders")]
        },
        "execute_transaction": {
            "TransactStatements": [{"Statement": 'DELETE FROM "carts"'}, {"Statement": 'DELETE FROM "orders"'}]
        },
        "batch_write_item": {"RequestItems": {"carts": [put], "orders": [put, put]}},
    }
    paced.server.answers = [throttled(), (200, {})]
    getattr(client, operation)(**requests[operation])
    assert len(paced.server.asked) == 2, "it was sent again"
    assert [paced.pacer.rate(each, None, WRITE) for each in ("carts", "orders")] == [10.0, 7.0]
    client.close()


def test_batch_of_reads_that_is_refused_as_a_whole_slows_down_the_table_that_was_out_of_capacity(paced: Paced) -> None:
    """BatchGetItem is refused at the top level, and was never answered in part.

    Recorded: radkawar/stackd 9dc356f, dynamodb/read_throttling, 2026-09 (79 of 192 refused, 113 complete).
    """
    client = paced.pace(read=20)
    paced.server.answers = [throttled("TableReadProvisionedThroughputExceeded"), (200, {})]
    client.batch_get_item(RequestItems={"carts": {"Keys": [ITEM]}, "orders": {"Keys": [ITEM]}})
    assert [paced.pacer.rate(each, None, READ) for each in ("carts", "orders")] == [20.0, 14.0]
    client.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ThrottlingException", "TableWriteMaxOnDemandThroughputExceeded"),
        ("ProvisionedThroughputExceededException", "IndexWriteMaxOnDemandThroughputExceeded"),
        ("ThrottlingException", "IndexWriteMaxOnDemandThroughputExceeded"),
    ],
)
def test_maximum_on_demand_slows_down_whatever_its_error(paced: Paced, code: str, reason: str) -> None:
    """For writes of an index the error is ProvisionedThroughputExceededException, and in a transaction the other one.

    Recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits, 2026-09.
    """
    client = paced.pace(write=10)
    paced.answers(1.0)
    client.put_item(TableName="orders", Item=ITEM)
    paced.server.answers = [throttled(reason, f"{ARN}/index/by_status", code), (200, {})]
    client.put_item(TableName="orders", Item=ITEM)
    assert paced.pacer.rate("orders", None, WRITE) == 7.0
    client.close()


def test_pacing_and_meter_see_the_same_requests(paced: Paced) -> None:
    counts = Counts()
    highwater.pace(paced.session, write=10, pacer=paced.pacer)
    Meter(counts, clock=lambda: 60.0).install(paced.session)
    client = paced.client()
    paced.server.answers = [(200, {"ConsumedCapacity": CONSUMED})]
    assert "ConsumedCapacity" not in client.put_item(TableName="orders", Item=ITEM)
    assert sum(counts.peek("orders").values()) == 7.0
    client.put_item(TableName="orders", Item=ITEM)
    client.put_item(TableName="orders", Item=ITEM)
    assert paced.clock.waited == [0.35]
    answer = client.put_item(TableName="orders", Item=ITEM, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": "orders", "CapacityUnits": 7.0}
    client.close()


def test_rate_may_change_while_requests_are_under_way_and_stop_ends_it(paced: Paced) -> None:
    pacing = highwater.pace(paced.session, write=10, pacer=paced.pacer)
    client = paced.client()
    paced.answers(10.0)
    client.put_item(TableName="orders", Item=ITEM)
    paced.pacer.limit(None, WRITE, 2)
    client.put_item(TableName="orders", Item=ITEM)
    # the bucket is empty and now holds two
    assert paced.clock.waited == [1.0]
    pacing.stop()
    fresh = paced.client()
    fresh.put_item(TableName="orders", Item=ITEM)
    assert paced.clock.waited == [1.0]
    for each in (client, fresh):
        each.close()


def test_session_that_is_paced_already_gets_further_budgets_and_other_rates(paced: Paced) -> None:
    """As in a Lambda function, whose handler may pace the default session at each invocation."""
    pacing = highwater.pace(paced.session, write=10, table="orders", pacer=paced.pacer)
    assert highwater.pace(paced.session, write=4, table="carts") is pacing
    assert highwater.pace(paced.session, write=20, table="orders") is pacing
    client = paced.client()
    for table in ("orders", "carts"):
        paced.server.answers = [(200, {"ConsumedCapacity": {"TableName": table, "CapacityUnits": 20.0}})]
        for _ in range(3):
            client.put_item(TableName=table, Item=ITEM)
    # what the first one costs is known after it; a dearer one than a second of the rate waits for that second
    assert paced.clock.waited == [1.0, 1.0, 5.0, 5.0]
    client.close()


def test_client_of_a_paced_session_may_have_a_budget_besides(paced: Paced) -> None:
    highwater.pace(paced.session, write=1_000, pacer=paced.pacer)
    client, other = paced.client(), paced.client()
    highwater.pace(client, write=5, pacer=paced.clock.pacer())
    paced.answers(5.0)
    for _ in range(2):
        client.put_item(TableName="orders", Item=ITEM)
    assert paced.clock.waited == [1.0]
    other.put_item(TableName="orders", Item=ITEM)
    assert paced.clock.waited == [1.0]
    for each in (client, other):
        each.close()


def test_session_that_nobody_uses_any_more_leaves_nothing() -> None:
    """A Lambda function may make a session at each invocation."""
    left = []
    for _ in range(3):
        session = boto3.Session(region_name="eu-central-1")
        highwater.pace(session, write=5)
        left.append(weakref.ref(session.events))
        del session
    gc.collect()
    assert [events() for events in left] == [None, None, None]


def test_session_cannot_have_two_pacers(paced: Paced) -> None:
    highwater.pace(paced.session, write=5, pacer=paced.pacer)
    with pytest.raises(PaceError) as refused:
        highwater.pace(paced.session, write=5, pacer=Pacer())
    assert str(refused.value) == (
        "pace: another pacer has the budgets of this session or client; stop its pacing first"
    )


@pytest.mark.parametrize(
    ("statement", "dimension"),
    [
        ("""INSERT INTO "orders" VALUE {'pk': '7'}""", "write"),
        ("""update orders set paid = true where pk = '7'""", "write"),
        ("""DELETE FROM "orders" WHERE pk = '7'""", "write"),
        ("""SELECT * FROM "orders"."by_status" WHERE status = 'open'""", "read"),
    ],
)
def test_statements_are_paced(paced: Paced, statement: str, dimension: str) -> None:
    client = paced.pace(**{dimension: 5})
    paced.answers(5.0)
    for _ in range(2):
        client.execute_statement(Statement=statement)
    assert paced.clock.waited == [1.0]
    # the other dimension has no budget
    client.execute_statement(Statement="SELECT * FROM orders" if dimension == "write" else "DELETE FROM orders")
    assert paced.clock.waited == [1.0]
    consumed = [{"TableName": "orders", "CapacityUnits": 10.0}]
    paced.server.answers = [(200, {"ConsumedCapacity": consumed})]
    client.batch_execute_statement(Statements=[{"Statement": statement}] * 2)
    paced.answers(5.0)
    client.execute_statement(Statement=statement)
    # nothing is known of batches: two units are paid, and the eight others by the statement after it
    assert paced.clock.waited == [1.0, 0.4, 2.6]
    client.close()


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({}, "pace: give read or write, in units per second"),
        ({"write": 5, "indexes": {"by_status": 2}}, "pace: indexes belong to a table; give table too"),
        (
            {"read": 0},
            "read rate: got 0, allowed: 0.001 or more units per second; leave it out for no limit",
        ),
        (
            {"write": float("nan")},
            "write rate: got nan, allowed: 0.001 or more units per second; leave it out for no limit",
        ),
        (
            {"write": float("inf")},
            "write rate: got infinity, allowed: a number of units per second; leave it out for no limit",
        ),
        (
            {"write": 1e308},
            "write rate: got 1e+308, allowed: a number of units per second; leave it out for no limit",
        ),
        (
            {"write": Decimal("NaN")},
            "write rate: got NaN, allowed: 0.001 or more units per second; leave it out for no limit",
        ),
        (
            {"table": "orders", "indexes": {"by_status": -2}},
            "write rate of index 'by_status': got -2, allowed: 0.001 or more units per second; leave it out for no "
            "limit",
        ),
    ],
)
def test_budgets_that_cannot_be(paced: Paced, budget: dict[str, Any], message: str) -> None:
    with pytest.raises(PaceError) as refused:
        paced.pace(**budget)
    assert str(refused.value) == message
