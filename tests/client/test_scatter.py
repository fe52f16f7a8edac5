"""Queries of a sharded key against a plain sort of its items, whatever the pages, limits, cursors and schedules."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given, settings
from hypothesis import strategies as st

import highwater.shards
from highwater import PacedWorkError, Pacer
from highwater.core.units import Dimension
from highwater.shards import ScatterQuery, ShardedKey, ShardError, Shards
from tests.client.memory_shards import MemoryShards, Raw, order
from tests.client.memory_table import refused
from tests.client.virtual_clock import Clock
from tests.core.examples import examples

HOUR = timedelta(hours=1)
BEGUN = datetime(2026, 12, 1, tzinfo=UTC)
CHANGED = BEGUN + 24 * HOUR
NOW = BEGUN + 40 * HOUR
EIGHT = ShardedKey((Shards(8),), unsharded_until=None)


def _query(client: Any, key: ShardedKey = EIGHT, **more: Any) -> ScatterQuery:
    asked: dict[str, Any] = {"partition_key": "pk", "sort_key": "sk", "now": NOW, "workers": 2} | more
    return highwater.shards.scatter_query(client, "orders", key, "t", **asked)


def _numbered(count: int, key: ShardedKey = EIGHT) -> list[Raw]:
    """Items in the order of their sort keys."""
    return [
        {"pk": {"S": key.key_for("t", at=NOW, hashed=f"o-{n:03d}")}, "sk": {"S": f"o-{n:03d}"}, "n": {"N": str(n)}}
        for n in range(count)
    ]


VALUES = {
    "N": st.decimals(-1_000, 1_000, places=2).map(str),
    "S": st.text(st.characters(codec="utf-8"), max_size=4),
    "B": st.binary(max_size=4),
}


@st.composite
def _written(draw: Any) -> tuple[ShardedKey, list[Raw], timedelta]:
    """A key whose number of shards changes in the middle of writing, and items of before, between and after."""
    before, after = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    is_random = draw(st.booleans())
    has_old = draw(st.booleans())
    key = ShardedKey(
        (Shards(before, since=BEGUN), Shards(after, since=CHANGED)),
        unsharded_until=NOW + HOUR if has_old else None,
        is_random=is_random,
    )
    kind = draw(st.sampled_from(sorted(VALUES)))
    sort_keys = draw(st.lists(VALUES[kind], max_size=30, unique_by=lambda each: order({kind: each})))
    pick = draw(st.randoms(use_true_random=False)).randrange
    items: list[Raw] = []
    for number, value in enumerate(sort_keys):
        at = BEGUN + draw(st.integers(-10, 39)) * HOUR
        name = key.key_for("t", at=at, **({"pick": pick} if is_random else {"hashed": str(number)}))
        hour = str((at - BEGUN) // HOUR)
        items.append({"pk": {"S": name}, "sk": {kind: value}, "hour": {"N": hour}, "kind": {"S": hour[-1]}})
    return key, items, draw(st.integers(-10, 39)) * HOUR


def _plain(items: Sequence[Raw], *, is_forward: bool) -> list[Raw]:
    return sorted(items, key=lambda item: order(item["sk"]), reverse=not is_forward)


@settings(max_examples=examples(400))
@given(_written(), st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_query_is_the_plain_sort_of_all_items(written: Any, page: int, is_forward: bool, workers: int) -> None:
    key, items, _ = written
    client = MemoryShards(items, page)
    found = _query(client, key, is_forward=is_forward, workers=workers)
    assert [*found] == _plain(items, is_forward=is_forward)
    assert found.cursor is None
    assert (found.requests, found.units, found.scanned) == (len(client.asked), len(client.asked) * 0.5, len(items))


@settings(max_examples=examples(400))
@given(_written(), st.integers(1, 9), st.booleans(), st.data())
def test_cursor_continues_at_any_item_with_any_limit(written: Any, page: int, is_forward: bool, data: Any) -> None:
    key, items, _ = written
    asked: dict[str, Any] = {"is_forward": is_forward}
    if data.draw(st.booleans()):
        asked |= {"FilterExpression": "kind = :kind", "ExpressionAttributeValues": {":kind": {"S": "1"}}}
        items_wanted = [item for item in items if item["kind"] == {"S": "1"}]
    else:
        items_wanted = items
    got: list[Raw] = []
    cursor = None
    for _ in range(200):
        limit = data.draw(st.none() | st.integers(1, 6))
        page_items = data.draw(st.none() | st.integers(1, 6))
        found = _query(MemoryShards(items, page), key, limit=limit, page_items=page_items, cursor=cursor, **asked)
        # a consumer may also stop by itself
        taken = data.draw(st.integers(1, 6))
        got += itertools.islice(found, taken) if limit is None else [*found]
        cursor = found.cursor
        if cursor is None:
            break
    assert cursor is None
    assert got == _plain(items_wanted, is_forward=is_forward)


OF_INDEX: dict[str, Any] = {
    "partition_key": ("status", "shard"),
    "sort_key": ("day", "hour"),
    "index": "by-status",
    # the table's sort key is one of the index's, too
    "table_keys": ("pk", "hour"),
}


@st.composite
def _written_with_shard_attribute(draw: Any) -> tuple[ShardedKey, list[Raw]]:
    """Items of an index whose partition key is a status and a shard's number; days and hours come several times."""
    periods = (Shards(draw(st.integers(1, 6)), since=BEGUN), Shards(draw(st.integers(1, 6)), since=CHANGED))
    key = ShardedKey(periods, unsharded_until=None, is_random=draw(st.booleans()))
    pick = draw(st.randoms(use_true_random=False)).randrange
    items: list[Raw] = []
    for number in range(draw(st.integers(0, 30))):
        at = BEGUN + draw(st.integers(-10, 39)) * HOUR
        shard = key.shard_for(at=at, hashed=str(number), pick=pick)
        order_of = {"day": {"S": draw(st.sampled_from("AéZ"))}, "hour": {"N": str(draw(st.integers(-2, 11)))}}
        items.append({"pk": {"S": str(number)}, "status": {"S": "t#s01"}, "shard": {"N": str(shard)}, **order_of})
    return key, [*items, {"pk": {"S": "other"}, "status": {"S": "u"}, "shard": {"N": "0"}, **VERY_FIRST}]


VERY_FIRST = {"day": {"S": "A"}, "hour": {"N": "-9"}}


def _rank(item: Raw) -> list[Any]:
    return [order(item["day"]), order(item["hour"]), int(item["shard"]["N"])]


@settings(max_examples=examples(400))
@given(_written_with_shard_attribute(), st.integers(1, 9), st.booleans(), st.data())
def test_index_with_shards_in_an_attribute_of_their_own_is_read_in_order(
    written: Any, page: int, is_forward: bool, data: Any
) -> None:
    key, items = written
    client = MemoryShards(items, page, sort_keys=("day", "hour"), keys=("status", "shard", "day", "hour", "pk"))
    got: list[Any] = []
    cursor = None
    for _ in range(200):
        limit = data.draw(st.none() | st.integers(1, 6))
        found = highwater.shards.scatter_query(
            client, "orders", key, "t#s01", is_forward=is_forward, limit=limit, cursor=cursor, now=NOW, **OF_INDEX
        )
        got += itertools.islice(found, data.draw(st.integers(1, 6))) if limit is None else [*found]
        cursor = found.cursor
        if cursor is None:
            break
    assert cursor is None
    assert [_rank(item) for item in got] == sorted((_rank(item) for item in items[:-1]), reverse=not is_forward)
    assert sorted(item["pk"]["S"] for item in got) == sorted(item["pk"]["S"] for item in items[:-1])


def test_query_of_an_index_names_the_shard_in_its_condition_and_in_errors() -> None:
    client = MemoryShards([], sort_keys=("day", "hour"))

    def fail(*_: Any) -> None:
        raise refused("ValidationException")

    client.before = fail
    asked = OF_INDEX | {"sort_condition": "#day > :day", "ProjectionExpression": "pk", "limit": 3}
    asked |= {"ExpressionAttributeNames": {"#day": "day"}, "ExpressionAttributeValues": {":day": {"S": "2026"}}}
    with pytest.raises(PacedWorkError) as error:
        next(_query(client, ShardedKey((Shards(1),), unsharded_until=None), **asked))
    assert str(error.value) == (
        "scatter_query of orders, key 't', shard 0: An error occurred (ValidationException) when calling the Scan "
        "operation: it rests"
    )
    (request,) = client.asked
    assert {name: value for name, value in request.items() if "Expression" in name} == {
        "KeyConditionExpression": "#hw_key = :hw_key AND #hw_shard = :hw_shard AND (#day > :day)",
        "ProjectionExpression": "pk, #hw_0, #hw_1",
        "ExpressionAttributeNames": {
            "#day": "day",
            "#hw_0": "day",
            "#hw_1": "hour",
            "#hw_key": "status",
            "#hw_shard": "shard",
        },
        "ExpressionAttributeValues": {":day": {"S": "2026"}, ":hw_key": {"S": "t"}, ":hw_shard": {"N": "0"}},
    }


@settings(max_examples=examples(200))
@given(_written())
def test_query_of_a_span_has_all_items_that_were_written_in_it(written: Any) -> None:
    key, items, begin = written
    found = [*_query(MemoryShards(items), key, written_from=BEGUN + begin, written_to=BEGUN + begin + 5 * HOUR)]
    inside = [item for item in items if begin // HOUR <= int(item["hour"]["N"]) <= begin // HOUR + 5]
    assert [item for item in found if item in inside] == _plain(inside, is_forward=True)


def test_span_reads_only_the_shards_of_its_time() -> None:
    key = ShardedKey((Shards(8, since=BEGUN), Shards(2, since=CHANGED)), unsharded_until=None)
    client = MemoryShards([])
    assert [*_query(client, key, written_from=CHANGED + HOUR)] == []
    assert sorted(each["ExpressionAttributeValues"][":hw_key"]["S"] for each in client.asked) == ["t#s00", "t#s01"]


def test_plain_key_is_read_until_the_stated_time() -> None:
    key = ShardedKey((Shards(1, since=BEGUN),), unsharded_until=CHANGED)
    old: list[Raw] = [{"pk": {"S": "t"}, "sk": {"S": "old"}}]
    assert [*_query(MemoryShards(old), key, now=CHANGED - HOUR)] == old
    assert [*_query(MemoryShards(old), key, now=CHANGED)] == []


def test_requests_are_those_of_query() -> None:
    client = MemoryShards([*_numbered(3)])
    found = _query(
        client,
        index="by-tenant",
        table_keys=("id",),
        is_forward=False,
        limit=1,
        sort_condition="sk > :from",
        FilterExpression="n < :n",
        ExpressionAttributeValues={":from": {"S": "o"}, ":n": {"N": "9"}},
        ProjectionExpression="n, #s",
        ExpressionAttributeNames={"#s": "sk"},
        key=ShardedKey((Shards(1),), unsharded_until=None),
    )
    client.keys = ("pk", "sk", "id")
    client.items = [{"pk": {"S": "t#s00"}, "sk": {"S": "o-1"}, "n": {"N": "1"}, "id": {"S": "i"}, "x": {"S": "x"}}]
    assert [*found] == [{"n": {"N": "1"}, "sk": {"S": "o-1"}}]
    assert client.asked == [
        {
            "TableName": "orders",
            "IndexName": "by-tenant",
            "KeyConditionExpression": "#hw_key = :hw_key AND (sk > :from)",
            "FilterExpression": "n < :n",
            "ProjectionExpression": "n, #s, #hw_0",
            "ExpressionAttributeNames": {"#s": "sk", "#hw_0": "id", "#hw_key": "pk"},
            "ExpressionAttributeValues": {":from": {"S": "o"}, ":n": {"N": "9"}, ":hw_key": {"S": "t#s00"}},
            "ScanIndexForward": False,
            "ConsistentRead": False,
            "ReturnConsumedCapacity": "TOTAL",
            "Limit": 100,
        }
    ]


def test_consistent_query_reads_consistently() -> None:
    client = MemoryShards(_numbered(3))
    assert len([*_query(client, is_consistent=True)]) == 3
    assert {each["ConsistentRead"] for each in client.asked} == {True}


@pytest.mark.parametrize(
    ("limit", "shards", "page"), [(50, 8, 13), (5, 8, 5), (100, 1, 100), (10_000, 100, 200), (1, 1, 1)]
)
def test_limit_asks_each_shard_for_twice_its_part(limit: int, shards: int, page: int) -> None:
    client = MemoryShards(_numbered(3))
    list(_query(client, ShardedKey((Shards(shards),), unsharded_until=None), limit=limit))
    assert {each["Limit"] for each in client.asked} == {page}


def test_nothing_is_read_before_the_first_item_and_one_page_ahead_of_each_shard() -> None:
    client = MemoryShards(_numbered(400), 5)
    found = _query(client, workers=1)
    assert client.asked == []
    next(found)
    # one worker reads the pages in their order: of each shard the first, then the second
    found.close()
    assert len(client.asked) <= 16
    assert found.cursor is not None


def test_limit_has_no_page_read_ahead() -> None:
    one = ShardedKey((Shards(1),), unsharded_until=None)
    client = MemoryShards(_numbered(30, one), 10)
    assert len([*_query(client, one, limit=10, workers=1)]) == 10
    assert len(client.asked) == 1


def test_pages_that_a_filter_empties_are_passed_over() -> None:
    items: list[Raw] = [
        {**item, "kind": {"S": "last" if number > 36 else ""}} for number, item in enumerate(_numbered(40))
    ]
    wanted: dict[str, Any] = {"FilterExpression": "kind = :kind", "ExpressionAttributeValues": {":kind": {"S": "last"}}}
    found = _query(MemoryShards(items, 1), limit=3, **wanted)
    assert [*found] == items[37:]
    assert found.scanned == 40


def test_pages_of_several_shards_are_read_at_once() -> None:
    together = threading.Barrier(4)
    client = MemoryShards(_numbered(40))
    query = client.query

    def meet(**request: Any) -> dict[str, Any]:
        # passes only when four requests are under way
        together.wait(timeout=20)
        return query(**request)

    client.query = meet  # type: ignore[method-assign] # a slow network
    assert len([*_query(client, workers=4)]) == 40


def test_index_without_sort_key_is_read_shard_by_shard() -> None:
    items: list[Raw] = [
        {"gsi": {"S": f"t#s0{shard}"}, "pk": {"S": f"{shard}{n}"}} for shard in range(3) for n in range(4)
    ]
    client = MemoryShards(items, 2, sort_keys=(), keys=("gsi", "pk"))
    key = ShardedKey((Shards(3),), unsharded_until=None)
    asked: dict[str, Any] = {"partition_key": "gsi", "sort_key": None, "index": "by-gsi", "table_keys": ("pk",)}
    assert [*_query(client, key, **asked)] == items
    first = _query(client, key, limit=5, **asked)
    assert [*first, *_query(client, key, cursor=first.cursor, **asked)] == items


def test_attributes_that_only_the_merge_needs_are_not_given_out() -> None:
    client = MemoryShards(_numbered(9), 2)
    assert [*_query(client, ProjectionExpression="n")] == [{"n": {"N": str(n)}} for n in range(9)]


def test_shard_that_is_throttled_is_tried_again() -> None:
    client, clock = MemoryShards(_numbered(20)), Clock()
    left = [3]

    def throttle(_: str, request: dict[str, Any]) -> None:
        if request["ExpressionAttributeValues"][":hw_key"]["S"] == "t#s01" and left[0]:
            left[0] -= 1
            raise refused("ProvisionedThroughputExceededException")

    client.before = throttle
    found = _query(client, pacer=clock.pacer(), workers=1)
    assert len([*found]) == 20
    assert (left, found.requests, len(client.asked)) == ([0], 8, 11)
    assert 0.35 * 10**9 <= clock.now <= 0.7 * 10**9, "three pauses, each about twice as long as the one before"


@pytest.mark.parametrize(
    ("error", "told", "tries"),
    [
        (
            refused("ProvisionedThroughputExceededException"),
            "An error occurred (ProvisionedThroughputExceededException) when calling the Scan operation: it rests "
            "(tried 8 times)",
            8,
        ),
        (
            refused("InternalServerError", status=500),
            "An error occurred (InternalServerError) when calling the Scan operation: it rests (tried 8 times)",
            8,
        ),
        (
            EndpointConnectionError(endpoint_url="https://here"),
            'Could not connect to the endpoint URL: "https://here" (tried 8 times)',
            8,
        ),
        (
            refused("ValidationException"),
            "An error occurred (ValidationException) when calling the Scan operation: it rests",
            1,
        ),
    ],
)
def test_query_that_cannot_go_on_says_where_and_continues_there(error: Exception, told: str, tries: int) -> None:
    one = ShardedKey((Shards(1),), unsharded_until=None)
    items = _numbered(9, one)
    client = MemoryShards(items, 2)

    def fail(_: str, request: dict[str, Any]) -> None:
        if request.get("ExclusiveStartKey", {}).get("sk") == {"S": "o-005"}:
            raise error

    client.before = fail
    found = _query(client, one, pacer=Clock().pacer(), workers=1)
    got: list[Any] = []
    with pytest.raises(PacedWorkError) as raised:
        got.extend(iter(lambda: next(found), None))
    assert str(raised.value) == f"scatter_query of orders, key 't#s00': {told}"
    assert len(client.asked) == 3 + tries
    got += _query(MemoryShards(items), one, cursor=found.cursor)
    assert got == items


def test_budget_paces_the_query_and_has_throttles_retried_for_as_long_as_they_take() -> None:
    one = ShardedKey((Shards(1),), unsharded_until=None)
    client, clock = MemoryShards(_numbered(20, one), 1), Clock()
    left = [30]

    def throttle(*_: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "it rests"}}, "Query")

    client.before = throttle
    pacer = Pacer(clock=lambda: clock.now, pause=clock.pause, starts_full=False)
    pacer.limit("orders", Dimension.READ, 0.25)
    found = _query(client, one, pacer=pacer, page_items=1, workers=1)
    assert len([*found]) == 20
    assert clock.now >= 19 * 2 * 10**9, "half a unit each, a quarter of a unit a second"
    assert len(client.asked) == 20 + 30 + 1


KEY = ShardedKey((Shards(4, since=BEGUN), Shards(8, since=CHANGED)), unsharded_until=NOW + HOUR)


@pytest.fixture
def several() -> MemoryShards:
    """An item of each place that there was."""
    times = (BEGUN - HOUR, BEGUN, CHANGED)
    names = [KEY.key_for("t", at=at, hashed="o-5") for at in times]
    return MemoryShards([{"pk": {"S": name}, "sk": {"S": str(number)}} for number, name in enumerate(names)])


def _get(client: Any, key: ShardedKey, sort: str, **more: Any) -> dict[str, Any] | None:
    asked: dict[str, Any] = {"partition_key": "pk", "sort": {"sk": {"S": sort}}, "now": NOW} | more
    return highwater.shards.scatter_get(client, "orders", key, "t", **asked)


@pytest.mark.parametrize(
    ("sort", "more", "requests"),
    [
        ("2", {}, 1),
        ("1", {}, 2),
        ("0", {}, 3),
        ("none", {}, 3),
        ("2", {"at": CHANGED}, 1),
        ("1", {"at": BEGUN}, 1),
        ("0", {"at": BEGUN - HOUR}, 1),
    ],
)
def test_item_is_got_where_it_is(several: MemoryShards, sort: str, more: dict[str, Any], requests: int) -> None:
    found = _get(several, KEY, sort, hashed="o-5", **more)
    assert found == next((item for item in several.items if item["sk"]["S"] == sort), None)
    assert len(several.asked) == requests


def test_item_that_was_moved_is_got_by_its_time_too(several: MemoryShards) -> None:
    several.items[0] = {**several.items[0], "pk": {"S": KEY.key_for("t", at=BEGUN, hashed="o-5")}}
    assert _get(several, KEY, "0", hashed="o-5", at=BEGUN - HOUR) == several.items[0]


def test_item_of_a_random_key_is_looked_for_in_all_shards(several: MemoryShards) -> None:
    several.items.append({"pk": {"S": "t#s05"}, "sk": {"S": "r"}})
    key = replace(KEY, is_random=True)
    assert _get(several, key, "r", ProjectionExpression="sk") == several.items[-1]
    assert len(several.asked) == 6
    assert several.asked[-1] == {
        "TableName": "orders",
        "Key": {"pk": {"S": "t#s05"}, "sk": {"S": "r"}},
        "ProjectionExpression": "sk",
        "ConsistentRead": False,
        "ReturnConsumedCapacity": "TOTAL",
    }
    assert _get(several, key, "none") is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"limit": 0}, "limit: got 0, allowed: 1 or more"),
        ({"page_items": 0}, "page_items: got 0, allowed: 1 or more"),
        ({"workers": 65}, "workers: got 65, allowed: 1 to 64"),
        (
            {"index": "by-day"},
            "table_keys: got none with index 'by-day', allowed: the names of the table's key attributes, such as "
            "('pk', 'sk')",
        ),
        (
            OF_INDEX | {"partition_key": ("status", "shard", "day")},
            "partition_key: got 3 attributes, allowed: one, or for an index two, the key and the shard's number",
        ),
        (
            OF_INDEX | {"index": None},
            "partition_key: got two attributes without index=, allowed: one; only an index has two",
        ),
        (
            OF_INDEX | {"key": ShardedKey((Shards(8),), unsharded_until=NOW)},
            "key: got unsharded_until 2026-12-02T16:00:00+00:00, allowed for a partition key of two attributes: None, "
            "as items without a shard's number are not in the index; give them one",
        ),
        (
            {"FilterExpresion": "a = :a"},
            "FilterExpresion cannot be passed on; allowed: ExpressionAttributeNames, ExpressionAttributeValues, "
            "FilterExpression, ProjectionExpression; did you mean FilterExpression?",
        ),
    ],
)
def test_what_is_not_valid_is_refused_before_anything_is_read(more: dict[str, Any], told: str) -> None:
    client = MemoryShards([])
    with pytest.raises((ShardError, PacedWorkError)) as error:
        _query(client, **more)
    assert str(error.value) == f"scatter_query: {told}"
    assert client.asked == []


def test_get_passes_on_less() -> None:
    with pytest.raises(ShardError) as error:
        _get(MemoryShards([]), EIGHT, "a", hashed="a", FilterExpression="a = :a")
    assert str(error.value) == (
        "scatter_get: FilterExpression cannot be passed on; allowed: ExpressionAttributeNames, ProjectionExpression; "
        "did you mean ProjectionExpression?"
    )


def test_what_is_no_client_is_refused() -> None:
    resource = boto3.resource("dynamodb", region_name="eu-central-1", aws_access_key_id="A", aws_secret_access_key="B")
    hint = 'make one with session.client("dynamodb"); a table resource and its client have other values'
    for given_one, name in (
        (resource.Table("orders"), "boto3.resources.factory.dynamodb.Table"),
        ("orders", "builtins.str"),
    ):
        with pytest.raises(TypeError) as error:
            _query(given_one)
        assert str(error.value) == (f"scatter_query: client: got {name}, allowed: a DynamoDB client of boto3; {hint}")


OTHER = (
    "scatter_query: cursor: is of another query, or the key's shards were declared otherwise since; begin the query "
    "without a cursor"
)


@pytest.mark.parametrize(
    "more",
    [
        {"is_forward": False},
        {"sort_condition": "sk > :from", "ExpressionAttributeValues": {":from": {"S": "o"}}},
        {"key": ShardedKey((Shards(8), Shards(16, since=NOW + HOUR)), unsharded_until=None)},
        {"key": ShardedKey((Shards(8),), unsharded_until=NOW)},
        {"key": ShardedKey((Shards(8),), unsharded_until=None, separator="#t")},
        {"ProjectionExpression": "n"},
    ],
)
def test_cursor_of_another_query_or_schedule_is_refused(more: dict[str, Any]) -> None:
    first = _query(MemoryShards(_numbered(9)), limit=3)
    assert len([*first]) == 3
    with pytest.raises(ShardError) as error:
        _query(MemoryShards(_numbered(9)), cursor=first.cursor, **more)
    assert str(error.value) == OTHER


def test_cursor_holds_no_partition_key() -> None:
    first = _query(MemoryShards(_numbered(9)), limit=3)
    list(first)
    shards = json.loads(str(first.cursor))["shards"]
    assert len(shards) > 1
    assert {name for position in shards.values() for name in position or ()} == {"sk"}


def test_plain_key_is_no_shard() -> None:
    with pytest.raises(ShardError) as error:
        highwater.shards.scatter_query(
            MemoryShards([]), "orders", EIGHT, "t#s01", partition_key="pk", sort_key="sk", now=NOW
        )
    assert str(error.value) == (
        "sharded key: key 't#s01': is the key of a shard of 't'; give that key, or another separator"
    )
