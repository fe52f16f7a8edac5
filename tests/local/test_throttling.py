"""Tables of the local cloud run out of capacity: who is held back, when, and what clients are told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import Throttles
from highwater_lab.physics.partitions import HASHES, hash_of
from tests.local.world import MINUTE, keyed, metric, projecting, refused, units, written

pytestmark = pytest.mark.xdist_group("cloud")
_NUMBERS = itertools.count()
OF_TABLE = (
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning "
    "level with the UpdateTable API."
)
OF_INDEX = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table was "
    "exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes with the "
    "UpdateTable API"
)
FILL = "x" * 40_000


@pytest.fixture
def dynamodb(clients: dict[str, Any]) -> Any:
    return clients["dynamodb"]


def _table(dynamodb: Any, read: int, write: int, index_write: int | None = None, **more: Any) -> str:
    """A table, with an index over `status` where it is given capacity."""
    name = f"throttled-{next(_NUMBERS)}"
    if index_write is not None:
        index = projecting("by_status", "status", to="KEYS_ONLY", ProvisionedThroughput=units(1, index_write))
        more.setdefault("GlobalSecondaryIndexes", [index])
    if more.get("BillingMode") != "PAY_PER_REQUEST":
        more["ProvisionedThroughput"] = units(read, write)
    dynamodb.create_table(TableName=name, **keyed("pk", others=[] if index_write is None else ["status"]), **more)
    return name


def _until_throttled(send: Any, most: int = 2_000) -> tuple[int, dict[str, Any]]:
    """How many calls went through, and the answer that the next one got."""
    for number in range(most):
        try:
            send(number)
        except ClientError as refused:
            return number, dict(refused.response)
    pytest.fail(f"{most} calls went through")


def _reasons(answer: dict[str, Any]) -> list[tuple[str, str]]:
    told = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or []
    return [(reason["reason"], reason["resource"].split(":table/")[1]) for reason in told]


def test_table_holds_five_minutes_of_its_capacity_and_then_what_each_second_adds(
    cloud: LocalCloud, dynamodb: Any
) -> None:
    table = _table(dynamodb, 1, 1)

    def put(number: int) -> None:
        dynamodb.put_item(TableName=table, Item={"pk": {"S": str(number)}})

    sent, answer = _until_throttled(put)
    assert 300 <= sent <= 305, "and a unit for each second of sending"
    assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_TABLE}
    assert _reasons(answer) == [("TableWriteProvisionedThroughputExceeded", table)]
    cloud.advance(MINUTE)
    again, _ = _until_throttled(put)
    assert 60 <= again <= 62
    assert written(cloud, table) == sent + again
    events = metric(cloud, "WriteThrottleEvents", TableName=table)
    assert [value for _, value in events] == [1, 1]
    assert metric(cloud, "WriteProvisionedThroughputThrottleEvents", TableName=table) == events
    assert metric(cloud, "ThrottledRequests", TableName=table, Operation="PutItem") == events
    assert metric(cloud, "ReadThrottleEvents", TableName=table) == []


def test_throttles_have_datapoints_in_their_minutes_alone(cloud: LocalCloud, dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/throttle_metrics."""
    table = _table(dynamodb, 1, 1)
    began = cloud.status().now
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "quiet"}})
    cloud.advance(2 * MINUTE)
    _until_throttled(lambda _: dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}, "fill": {"S": FILL}}))
    cloud.advance(9 * MINUTE)
    found = {}
    for name, more in (("WriteThrottleEvents", {}), ("ThrottledRequests", {"Operation": "PutItem"})):
        answer = cloud.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in {"TableName": table, **more}.items()],
            StartTime=began - MINUTE,
            EndTime=began + 12 * MINUTE,
            Period=60,
            Statistics=["Sum"],
        )
        found[name] = [point["Sum"] for point in answer["Datapoints"]]
    assert found == {"WriteThrottleEvents": [1.0], "ThrottledRequests": [1.0]}


def test_reads_have_a_bucket_of_their_own(dynamodb: Any) -> None:
    table = _table(dynamodb, 2, 300)
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}, "fill": {"S": FILL}})
    sent, answer = _until_throttled(
        lambda _: dynamodb.get_item(TableName=table, Key={"pk": {"S": "p"}}, ConsistentRead=True)
    )
    assert 60 <= sent <= 66, "600 units, ten for each read"
    assert _reasons(answer) == [("TableReadProvisionedThroughputExceeded", table)]


def test_index_holds_its_table_back(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 2_000, index_write=1)
    sent, answer = _until_throttled(
        lambda n: dynamodb.put_item(TableName=table, Item={"pk": {"S": str(n)}, "status": {"S": str(n)}})
    )
    assert 300 <= sent <= 320
    assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_INDEX}
    assert _reasons(answer) == [("IndexWriteProvisionedThroughputExceeded", f"{table}/index/by_status")]
    # what does not touch the index goes through
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "none"}})
    assert written(cloud, table) == sent + 1
    of_index = metric(cloud, "WriteThrottleEvents", TableName=table, GlobalSecondaryIndexName="by_status")
    assert [value for _, value in of_index] == [1]
    (throttles,) = (each for each in cloud.control.throttles() if each.table == table)
    reason = "IndexWriteProvisionedThroughputExceeded"
    assert throttles == Throttles(table=table, index="by_status", reason=reason, requests=1)


def test_hot_key_is_held_back_by_its_partition(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 9_000)
    cloud.advance(MINUTE)

    def batch(pk: str) -> dict[str, Any]:
        items = [{"PutRequest": {"Item": {"pk": {"S": f"{pk}{n}"}, "fill": {"S": "x" * 399_000}}}} for n in range(10)]
        answer: dict[str, Any] = dynamodb.batch_write_item(RequestItems={table: items})
        return answer

    # 390 units each: a partition takes two of them in a second, evenly spread keys ten
    spread = batch("")
    assert spread["UnprocessedItems"] == {} or len(spread["UnprocessedItems"][table]) < 6
    cloud.advance(MINUTE)
    hot, answer = _until_throttled(
        lambda n: dynamodb.update_item(
            TableName=table,
            Key={"pk": {"S": "0"}},
            UpdateExpression="SET n = :n",
            ExpressionAttributeValues={":n": {"N": str(n)}},
        )
    )
    assert 2 <= hot <= 6, "two in a second"
    assert _reasons(answer) == [("TableWriteKeyRangeThroughputExceeded", table)]


def test_batch_hands_back_what_is_held_back(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 3)
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(n)}, "fill": {"S": FILL}}}} for n in range(25)]
    answer = dynamodb.batch_write_item(RequestItems={table: puts}, ReturnConsumedCapacity="TOTAL")
    left = answer["UnprocessedItems"][table]
    # 900 units are 22 items of 40
    assert left == puts[22:]
    assert answer["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 880.0}]
    with pytest.raises(ClientError) as refused:
        dynamodb.batch_write_item(RequestItems={table: puts})
    assert refused.value.response["Error"] == {
        "Code": "ProvisionedThroughputExceededException",
        "Message": OF_TABLE,
    }
    cloud.advance(MINUTE)
    assert dynamodb.scan(TableName=table, Select="COUNT", Limit=1)["Count"] == 1


def test_batch_of_reads_is_refused_whole_by_its_only_table(cloud: LocalCloud, dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/throughput_boundaries: of 79 throttled batches none in part."""
    table, other = _table(dynamodb, 1, 3), _table(dynamodb, 900, 3)
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(n)}, "fill": {"S": FILL}}}} for n in range(22)]
    dynamodb.batch_write_item(RequestItems={table: puts})
    cloud.advance(5 * MINUTE)
    keys = {"Keys": [{"pk": {"S": str(n)}} for n in range(22)], "ConsistentRead": True}
    # 220 units of 300
    assert len(dynamodb.batch_get_item(RequestItems={table: keys})["Responses"][table]) == 22
    with pytest.raises(ClientError) as refused:
        dynamodb.batch_get_item(RequestItems={table: keys})
    answer = dict(refused.value.response)
    assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_TABLE}
    assert _reasons(answer) == [("TableReadProvisionedThroughputExceeded", table)]
    # AWS documents that a batch fails if all of its tables refuse
    found = dynamodb.batch_get_item(RequestItems={table: keys, other: keys})
    assert (found["UnprocessedKeys"], found["Responses"]) == ({table: keys}, {other: []})


def test_throttled_transaction_is_refused_whole_with_the_exception_of_a_write(cloud: LocalCloud, dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/throughput_boundaries: 16 of 24, and nothing of them applied."""
    table, other = _table(dynamodb, 1, 1), _table(dynamodb, 900, 900)

    def puts(mark: str) -> list[dict[str, Any]]:
        items = [{"pk": {"S": str(n)}, "fill": {"S": FILL}, "mark": {"S": mark}} for n in range(3)]
        return [
            {"Put": {"TableName": name, "Item": item}} for name, item in zip((table, table, other), items, strict=True)
        ]

    dynamodb.transact_write_items(TransactItems=puts("second"))
    for put in puts("second")[:2]:
        dynamodb.put_item(**put["Put"])
    statements = [
        {
            "Statement": f'UPDATE "{name}" SET mark=? WHERE pk=?',  # noqa: S608 - a local cloud's
            "Parameters": [{"S": "third"}, {"S": key}],
        }
        for name, key in ((table, "0"), (other, "2"))
    ]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: dynamodb.transact_write_items(TransactItems=puts("third")),
        lambda: dynamodb.execute_transaction(TransactStatements=statements),
    )
    for call in calls:
        with pytest.raises(ClientError) as refused:
            call()
        answer = dict(refused.value.response)
        assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_TABLE}
        assert _reasons(answer) == [("TableWriteProvisionedThroughputExceeded", table)]
        assert "CancellationReasons" not in answer
    get = [{"Get": {"TableName": name, "Key": {"pk": {"S": n}}}} for name, n in ((table, "0"), (other, "2"))]
    found = dynamodb.transact_get_items(TransactItems=get)["Responses"]
    assert [each["Item"]["mark"]["S"] for each in found] == ["second"] * 2
    _, answer = _until_throttled(lambda _: dynamodb.transact_get_items(TransactItems=get))
    assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_TABLE}
    cloud.advance(10 * MINUTE)
    dynamodb.execute_transaction(TransactStatements=statements)
    assert dynamodb.transact_get_items(TransactItems=get)["Responses"][1]["Item"]["mark"] == {"S": "third"}


def test_exhausted_index_refuses_writes_that_leave_it_as_it_is(dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/write_throttling: an INCLUDE projection left as it is."""
    index = projecting("by_status", "status", to=["shown"], ProvisionedThroughput=units(1, 1))
    table = _table(dynamodb, 900, 900, 1, GlobalSecondaryIndexes=[index])

    def update(attribute: str, value: str) -> dict[str, Any]:
        return {
            "TableName": table,
            "Key": {"pk": {"S": "p"}},
            "UpdateExpression": f"SET {attribute} = :v",
            "ExpressionAttributeValues": {":v": {"S": value}},
        }

    dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}, "status": {"S": "open"}, "shown": {"S": ""}})
    # what the index does not have costs it nothing
    told = dynamodb.update_item(**update("unseen", "before"), ReturnConsumedCapacity="INDEXES")["ConsumedCapacity"]
    assert told == {"TableName": table, "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}}
    _until_throttled(lambda n: dynamodb.update_item(**update("shown", str(n))))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: dynamodb.update_item(**update("unseen", "after")),
        lambda: dynamodb.transact_write_items(TransactItems=[{"Update": update("unseen", "after")}]),
    )
    for call in calls:
        with pytest.raises(ClientError) as refused:
            call()
        answer = dict(refused.value.response)
        assert answer["Error"] == {"Code": "ProvisionedThroughputExceededException", "Message": OF_INDEX}
        assert _reasons(answer) == [("IndexWriteProvisionedThroughputExceeded", f"{table}/index/by_status")]
    assert dynamodb.get_item(TableName=table, Key={"pk": {"S": "p"}})["Item"]["unseen"] == {"S": "before"}


def test_invalid_transaction_is_rejected_and_not_throttled(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 1)
    put = [{"Put": {"TableName": table, "Item": {"pk": {"S": str(n)}, "fill": {"S": FILL}}}} for n in range(3)]
    dynamodb.transact_write_items(TransactItems=put)
    condition = {"ConditionExpression": "attribute_not_exists(pk)"}
    for items, code, text in (
        ([put[0], put[0]], "ValidationException", "Transaction request cannot include multiple operations on one item"),
        (
            [{"Put": put[0]["Put"] | {"Item": {"pk": {"S": "big"}, "fill": {"S": "x" * 420_000}}}}],
            "ValidationException",
            "Item size has exceeded the maximum allowed size",
        ),
        # a condition that fails is looked at after the capacity
        (
            [{"Put": put[0]["Put"] | condition}],
            "ProvisionedThroughputExceededException",
            OF_TABLE,
        ),
        (put, "ProvisionedThroughputExceededException", OF_TABLE),
    ):
        with refused(code, text):
            dynamodb.transact_write_items(TransactItems=items, ClientRequestToken="once")
    # what was throttled has not used up its token, and nothing of it was written
    cloud.advance(10 * MINUTE)
    assert dynamodb.scan(TableName=table)["Count"] == 3
    dynamodb.transact_write_items(TransactItems=put, ClientRequestToken="once", ReturnConsumedCapacity="TOTAL")


def test_statement_of_a_batch_is_held_back_by_itself(dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 1)
    statement = f"INSERT INTO \"{table}\" VALUE {{'pk': ?, 'fill': ?}}"
    many = [{"Statement": statement, "Parameters": [{"S": str(n)}, {"S": FILL}]} for n in range(10)]
    answers = dynamodb.batch_execute_statement(Statements=many)["Responses"]
    assert [answer.get("Error", {}).get("Code") for answer in answers] == [None] * 7 + [
        "ProvisionedThroughputExceeded"
    ] * 3


def test_on_demand_takes_what_it_is_warm_for_and_then_says_so(dynamodb: Any) -> None:
    table = _table(dynamodb, 0, 0, BillingMode="PAY_PER_REQUEST", OnDemandThroughput={"MaxWriteRequestUnits": 100})
    sent, answer = _until_throttled(
        lambda n: dynamodb.put_item(TableName=table, Item={"pk": {"S": str(n)}, "fill": {"S": FILL}})
    )
    assert sent >= 2
    text = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
    assert answer["Error"] == {"Code": "ThrottlingException", "Message": text}
    assert _reasons(answer) == [("TableWriteMaxOnDemandThroughputExceeded", table)]


def test_maximum_on_demand_is_that_of_the_last_update_and_an_index_has_its_own(dynamodb: Any) -> None:
    def admitted(table: str, **more: Any) -> int:
        # some more are admitted in each second that begins meanwhile
        return _until_throttled(lambda n: dynamodb.put_item(TableName=table, Item={"pk": {"S": f"{n}"}, **more}))[0]

    table = _table(dynamodb, 0, 0, BillingMode="PAY_PER_REQUEST")
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "first"}})
    dynamodb.update_table(TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": 7})
    assert 0 < admitted(table) < 200
    index = projecting("by_status", "status", OnDemandThroughput={"MaxWriteRequestUnits": 7})
    indexed = _table(dynamodb, 0, 0, 1, BillingMode="PAY_PER_REQUEST", GlobalSecondaryIndexes=[index])
    assert 0 < admitted(indexed, status={"S": "open"}) < 200


ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST", "OnDemandThroughput": {"MaxWriteRequestUnits": 100}}


def test_maximum_of_an_index_has_another_code_for_single_writes_than_for_the_rest(dynamodb: Any) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/on_demand_limits."""
    index = projecting("by_status", "status", OnDemandThroughput={"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 7})
    table = _table(dynamodb, 0, 0, 1, BillingMode="PAY_PER_REQUEST", GlobalSecondaryIndexes=[index])
    item = {"pk": {"S": "p"}, "status": {"S": "open"}, "fill": {"S": FILL}}
    statement = {"Statement": f"UPDATE \"{table}\" SET fill='x' WHERE pk='p'"}  # noqa: S608 - a local cloud's
    calls: dict[str, Any] = {
        "PutItem": lambda _: dynamodb.put_item(TableName=table, Item=item),
        "TransactWriteItems": lambda _: dynamodb.transact_write_items(
            TransactItems=[{"Put": {"TableName": table, "Item": item}}]
        ),
        "ExecuteTransaction": lambda _: dynamodb.execute_transaction(TransactStatements=[statement]),
        "Query": lambda _: dynamodb.query(
            TableName=table,
            IndexName="by_status",
            KeyConditionExpression="#s = :s",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":s": {"S": "open"}},
        ),
    }
    answers = {name: _until_throttled(call)[1] for name, call in calls.items()}
    text = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
    single, together = "ProvisionedThroughputExceededException", "ThrottlingException"
    assert {name: (answer["Error"]["Code"], answer["Error"]["Message"]) for name, answer in answers.items()} == {
        "PutItem": (single, text),
        "TransactWriteItems": (together, text),
        "ExecuteTransaction": (together, text),
        "Query": (together, text),
    }
    assert not any("CancellationReasons" in answer for answer in answers.values())
    assert _reasons(answers["PutItem"]) == [("IndexWriteMaxOnDemandThroughputExceeded", f"{table}/index/by_status")]
    assert _reasons(answers["Query"]) == [("IndexReadMaxOnDemandThroughputExceeded", f"{table}/index/by_status")]
    _until_throttled(calls["PutItem"])
    told = dynamodb.batch_execute_statement(Statements=[statement])["Responses"]
    assert [each.get("Error", {}).get("Code") for each in told] == ["ThrottlingError"]


@pytest.mark.parametrize(
    ("capacity", "more", "code", "limit"),
    [
        (0, ON_DEMAND, "ThrottlingException", "MaxOnDemandThroughputExceeded"),
        (1, {}, "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded"),
    ],
    ids=["on-demand", "provisioned"],
)
def test_batch_of_which_nothing_is_processed_gets_one_of_two_errors_with_its_reason(
    dynamodb: Any, capacity: int, more: dict[str, Any], code: str, limit: str
) -> None:
    table = _table(dynamodb, capacity, capacity, **more)
    put = {"PutRequest": {"Item": {"pk": {"S": "p"}, "fill": {"S": FILL}}}}
    _, answer = _until_throttled(lambda _: dynamodb.batch_write_item(RequestItems={table: [put]}))
    assert (answer["Error"]["Code"], _reasons(answer)) == (code, [(f"TableWrite{limit}", table)])


def test_more_capacity_helps_from_the_next_second_on(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 1)
    put = {"TableName": table, "Item": {"pk": {"S": "p"}, "fill": {"S": FILL}}}
    _until_throttled(lambda _: dynamodb.put_item(**put))
    dynamodb.update_table(TableName=table, ProvisionedThroughput=units(1, 900))
    cloud.step(1)
    for _ in range(20):
        dynamodb.put_item(**put)


def test_raise_keeps_what_was_saved_up_and_adds_nothing_to_it(cloud: LocalCloud, dynamodb: Any) -> None:
    """That it is not emptied follows from a published figure; that it is neither scaled nor filled is assumed."""
    table = _table(dynamodb, 1, 1)

    def put(number: int) -> None:
        dynamodb.put_item(TableName=table, Item={"pk": {"S": str(number)}})

    for number in range(200):
        put(number)
    dynamodb.update_table(TableName=table, ProvisionedThroughput=units(1, 20))
    cloud.step(3)
    sent, _ = _until_throttled(put)
    assert 100 <= sent <= 100 + 20 * 5, "100 of 300 are left, and 20 come with each second"


def test_throttles_are_remembered_when_the_billing_mode_changes(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 1)
    _until_throttled(lambda _: dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}, "fill": {"S": FILL}}))

    def requests() -> list[int]:
        return [each.requests for each in cloud.control.throttles() if each.table == table]

    assert requests() == [1]
    dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    assert requests() == [1]


def test_partition_that_stays_too_hot_is_split(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 1, 1_500)
    # four keys in the first of two partitions
    made = ({"S": f"hot-{number}"} for number in itertools.count())
    keys = list(itertools.islice((key for key in made if hash_of(key) < HASHES // 2), 4))
    puts = [{"PutRequest": {"Item": {"pk": key, "fill": {"S": "x" * 390_000}}}} for key in keys]

    def is_held_back() -> bool:
        """Ask for 1,524 units of one partition in one second of a new minute; whether it was too much."""
        cloud.advance(MINUTE)
        answer = dynamodb.batch_write_item(RequestItems={table: puts})
        return bool(answer["UnprocessedItems"])

    # ten whole minutes in a row, and then two keys have a partition of their own
    assert [is_held_back() for _ in range(14)] == [True] * 10 + [False] * 4
    events = metric(cloud, "WriteKeyRangeThroughputThrottleEvents", TableName=table)
    assert sum(value for _, value in events) > 0


def test_on_demand_takes_twice_its_previous_peak_after_half_an_hour(cloud: LocalCloud, dynamodb: Any) -> None:
    table = _table(dynamodb, 0, 0, BillingMode="PAY_PER_REQUEST")
    described = dynamodb.describe_table(TableName=table)["Table"]
    assert described["WarmThroughput"]["WriteUnitsPerSecond"] == 4_000
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}})
    cloud.advance(35 * MINUTE)
    assert written(cloud, table) == 1
    # back to provisioned capacity: what was measured stays
    dynamodb.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=units(1, 1))
    sent, answer = _until_throttled(lambda n: dynamodb.put_item(TableName=table, Item={"pk": {"S": str(n)}}))
    assert 300 <= sent <= 305
    assert _reasons(answer) == [("TableWriteProvisionedThroughputExceeded", table)]
    assert written(cloud, table) == 1 + sent
