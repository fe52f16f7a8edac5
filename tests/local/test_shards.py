"""A hot key is throttled, spread over shards it is not, and its items are read as before."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import highwater.shards
from highwater.shards import KeyCounts, ShardedKey, Shards
from highwater.shards.key import shards_needed
from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT
from tests.local.world import MINUTE, SECOND, keyed, metric, units

pytestmark = pytest.mark.xdist_group("cloud")
WRITTEN = datetime(2026, 12, 1, tzinfo=UTC)
SECONDS, BATCHES, IN_BATCH, UNITS = 5, 8, 25, 25
FILL = "x" * (UNITS * 1024 - 100)


def _table(dynamodb: Any, name: str, write: int = 20_000, sort: str = "N") -> str:
    dynamodb.create_table(
        TableName=name,
        **keyed("pk", f"sk:{sort}", others=["day", "status", "shard:N"]),
        GlobalSecondaryIndexes=[
            {
                "IndexName": name,
                "KeySchema": [
                    *({"AttributeName": each, "KeyType": "HASH"} for each in keys),
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": units(1_000, write),
            }
            for name, keys in (("by-day", ["day"]), ("by-status", ["status", "shard"]))
        ],
        ProvisionedThroughput=units(1_000, write),
    )
    return name


def _written_at_5_000_units_a_second(cloud: LocalCloud, dynamodb: Any, table: str, key: ShardedKey | None) -> int:
    """Write to one key for some seconds; return how many of its puts were throttled."""
    throttled, numbers = 0, itertools.count()
    cloud.advance(MINUTE)
    for _ in range(SECONDS):
        cloud.advance(SECOND)
        for _ in range(BATCHES):
            puts = []
            for number in itertools.islice(numbers, IN_BATCH):
                name = "TENANT#1" if key is None else key.key_for("TENANT#1", at=WRITTEN, hashed=number)
                item = {"pk": {"S": name}, "sk": {"N": str(number)}, "fill": {"S": FILL}}
                puts.append({"PutRequest": {"Item": item}})
            try:
                left = dynamodb.batch_write_item(RequestItems={table: puts})["UnprocessedItems"].get(table, ())
            except dynamodb.exceptions.ProvisionedThroughputExceededException:
                # none of them went through
                left = puts
            throttled += len(left)
    return throttled


def test_hot_key_of_5_000_writes_a_second_is_throttled_and_logged_and_its_shards_are_not(
    cloud: LocalCloud, clients: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "highwater.keys")
    dynamodb = clients["dynamodb"]
    tables = {"hot-plain": "pk", "hot-spread": "pk"}
    counts = KeyCounts(attributes=tables, secret=b"", plain_tables=frozenset(tables), clock=lambda: 0.0)
    counts.install(dynamodb)
    plain, spread = _table(dynamodb, "hot-plain"), _table(dynamodb, "hot-spread")
    # twice as many as are needed: some are in the same partition until it is split
    number = 2 * shards_needed(5_000, 1_000, 50)
    key = ShardedKey((Shards(number),), unsharded_until=None)
    puts = SECONDS * BATCHES * IN_BATCH
    assert _written_at_5_000_units_a_second(cloud, dynamodb, plain, None) == puts - SECONDS * 1_000 // UNITS
    assert _written_at_5_000_units_a_second(cloud, dynamodb, spread, key) == 0
    counts.stop()
    (line,) = [json.loads(record.getMessage()) for record in caplog.records if record.name == "highwater.keys"]
    assert (line["table"], line["key"], line["units"]) == ("hot-plain", "TENANT#1", SECONDS * 1_000.0)
    # DynamoDB gives no reason for items that it leaves unprocessed, but for batches of which it accepts none
    assert line["throttled"] == puts - SECONDS * 1_000 // UNITS
    assert 0 < line["key_range_throttled"] <= line["throttled"]
    cloud.advance(5 * MINUTE)
    throttles = [metric(cloud, "WriteKeyRangeThroughputThrottleEvents", TableName=table) for table in (plain, spread)]
    assert throttles[0]
    assert throttles[1] == []

    found = highwater.shards.scatter_query(
        dynamodb,
        spread,
        key,
        "TENANT#1",
        partition_key="pk",
        sort_key="sk",
        now=WRITTEN,
        is_consistent=True,
        ProjectionExpression="sk",
    )
    assert [int(item["sk"]["N"]) for item in found] == [*range(puts)]
    # a megabyte a page, 4 KB a unit, each page rounded up
    assert puts * 25 / 4 <= found.units <= puts * 25 / 4 + found.requests


def test_query_of_real_requests_goes_on_at_its_cursor(clients: dict[str, Any]) -> None:
    dynamodb = clients["dynamodb"]
    table = _table(dynamodb, "orders", write=1_000)
    begun = WRITTEN + timedelta(days=1)
    key = ShardedKey((Shards(3, since=WRITTEN), Shards(5, since=begun)), unsharded_until=begun + timedelta(days=9))
    of_attributes = replace(key, unsharded_until=None)
    for number in range(60):
        at = WRITTEN + timedelta(hours=number - 20)
        item = {
            "pk": {"S": key.key_for("TENANT#1", at=at, hashed=number)},
            "sk": {"N": str(number - 30)},
            "day": {"S": key.key_for("2026-12-01", at=at, hashed=number)},
            "status": {"S": "open"},
            "shard": {"N": str(of_attributes.shard_for(at=at, hashed=number))},
            "is_even": {"BOOL": number % 2 == 0},
        }
        dynamodb.put_item(TableName=table, Item=item)
    asked: dict[str, Any] = {
        "sort_key": "sk",
        "now": begun,
        "is_forward": False,
        "limit": 7,
        "page_items": 2,
        "sort_condition": "#sk BETWEEN :low AND :high",
        "FilterExpression": "is_even = :yes",
        "ProjectionExpression": "is_even",
        "ExpressionAttributeNames": {"#sk": "sk"},
        "ExpressionAttributeValues": {":low": {"N": "-25"}, ":high": {"N": "28.5"}, ":yes": {"BOOL": True}},
    }
    of_index = {"partition_key": "day", "index": "by-day", "table_keys": ("pk", "sk")}
    of_two: dict[str, Any] = of_index | {"partition_key": ("status", "shard"), "index": "by-status"}
    for declared, plain, more in (
        (key, "TENANT#1", {"partition_key": "pk"}),
        (key, "2026-12-01", of_index),
        (of_attributes, "open", of_two),
    ):
        more = asked | more | {"ProjectionExpression": "is_even, sk"}
        numbers: list[int] = []
        cursor = None
        while True:
            found = highwater.shards.scatter_query(dynamodb, table, declared, plain, cursor=cursor, **more)
            page = [int(item["sk"]["N"]) for item in found]
            assert len(page) <= 7
            numbers += page
            cursor = found.cursor
            if cursor is None:
                break
        assert numbers == [*range(28, -25, -2)]
    names: dict[str, Any] = {"partition_key": "pk", "now": begun}
    got = [
        highwater.shards.scatter_get(
            dynamodb, table, key, "TENANT#1", sort={"sk": {"N": str(n - 30)}}, hashed=n, **names
        )
        for n in (0, 25, 59, 77)
    ]
    assert [None if each is None else each["pk"]["S"] for each in got] == [
        "TENANT#1",
        key.key_of("TENANT#1", key.shard_for(at=WRITTEN, hashed=25)),
        key.key_of("TENANT#1", key.shard_for(at=begun, hashed=59)),
        None,
    ]


def test_functions_of_the_page_do_what_it_says(clients: dict[str, Any]) -> None:
    dynamodb = clients["dynamodb"]
    _table(dynamodb, "orders-of-page", write=100, sort="S")
    page: dict[str, Any] = {}
    for code in re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/sharding.md").read_text(), re.MULTILINE | re.DOTALL
    ):
        exec(code.replace('"orders"', '"orders-of-page"'), page)  # noqa: S102 - the project's own page

    class Table:
        def put_item(self, Item: dict[str, str]) -> None:
            item = {name: {"S": value} for name, value in Item.items()} | {"version": {"N": "1"}}
            dynamodb.put_item(TableName="orders-of-page", Item=item)

    begun = page["orders"].periods[0].since
    for number in range(60):
        page["put"](Table(), f"o-{number:02d}", begun + timedelta(hours=number - 5))
    page["close"](dynamodb, "o-00")
    page["close"](dynamodb, "o-59")
    old = {"pk": {"S": "TENANT#1"}, "sk": {"S": "o-01"}}
    page["move"](dynamodb, dynamodb.get_item(TableName="orders-of-page", Key=old)["Item"])
    assert "Item" not in dynamodb.get_item(TableName="orders-of-page", Key=old)
    first, cursor = page["newest"](dynamodb)
    rest, end = page["newest"](dynamodb, cursor)
    assert [item["sk"]["S"] for item in first + rest] == [f"o-{number:02d}" for number in reversed(range(60))]
    assert [item["sk"]["S"] for item in first + rest if "state" in item] == ["o-59", "o-00"]
    assert sum(item["pk"]["S"] == "TENANT#1" for item in rest) == 4
    assert end is None
    for number in range(30):
        page["place"](dynamodb, f"p-{number:02d}", begun + timedelta(hours=number - 5))
    assert [item["sk"]["S"] for item in page["open_orders"](dynamodb)] == [f"p-{number:02d}" for number in range(30)]
    moved = ShardedKey(page["orders"].periods, unsharded_until=None)
    names: dict[str, Any] = {"partition_key": "pk", "sort": {"sk": old["sk"]}, "hashed": "o-01"}
    found = highwater.shards.scatter_get(
        dynamodb, "orders-of-page", moved, "TENANT#1", at=begun - timedelta(hours=4), **names
    )
    assert found is not None


def test_index_key_of_several_attributes_is_one_partition_key_and_its_shards_are_spread(
    cloud: LocalCloud, clients: dict[str, Any]
) -> None:
    dynamodb = clients["dynamodb"]
    dynamodb.create_table(
        TableName="several",
        **keyed("pk", others=["tenant", "shard", "day", "hour"]),
        GlobalSecondaryIndexes=[
            {
                "IndexName": name,
                "KeySchema": [
                    *({"AttributeName": each, "KeyType": "HASH"} for each in keys),
                    {"AttributeName": "day", "KeyType": "RANGE"},
                    {"AttributeName": "hour", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": units(1_000, 20_000),
            }
            for name, keys in (("by-tenant", ["tenant"]), ("by-shard", ["tenant", "shard"]))
        ],
        ProvisionedThroughput=units(1_000, 20_000),
    )

    def put_60(**more: str) -> None:
        for number in range(60):
            item = {"pk": str(number), "tenant": "t", "shard": str(number % 20), "day": "2026-12-01", "fill": FILL}
            item |= {name: value.format(number) for name, value in more.items()}
            dynamodb.put_item(TableName="several", Item={name: {"S": value} for name, value in item.items()})

    cloud.advance(MINUTE)
    # without an hour an item is in no index
    put_60()
    cloud.advance(SECOND)
    with pytest.raises(dynamodb.exceptions.ProvisionedThroughputExceededException) as error:
        put_60(hour="{:02d}")
    (reason,) = error.value.response["ThrottlingReasons"]
    assert reason["reason"] == "IndexWriteKeyRangeThroughputExceeded"
    assert reason["resource"].endswith(":table/several/index/by-tenant"), "not the one with the shards"

    dynamodb.update_table(TableName="several", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-tenant"}}])
    cloud.advance(MINUTE)
    put_60(hour="{:02d}")
    values = {":t": {"S": "t"}, ":s": {"S": "7"}, ":d": {"S": "2026-12-01"}, ":h": {"S": "10"}}
    asked: dict[str, Any] = {
        "TableName": "several",
        "IndexName": "by-shard",
        "KeyConditionExpression": "tenant = :t AND #s = :s AND #d = :d AND #h > :h",
        "ExpressionAttributeNames": {"#s": "shard", "#d": "day", "#h": "hour"},
        "ExpressionAttributeValues": values,
        "ReturnConsumedCapacity": "INDEXES",
    }
    answer = dynamodb.query(**asked)
    assert [item["hour"]["S"] for item in answer["Items"]] == ["27", "47"]
    assert answer["ConsumedCapacity"]["GlobalSecondaryIndexes"]["by-shard"]["CapacityUnits"] == 6.5
