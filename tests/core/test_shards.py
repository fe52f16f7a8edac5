"""Sharded keys: the form of the keys, the shard of an item and the shards to be read, as the schedule has them."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.shards.key import ShardedKey, ShardError, Shards, hash_of, shards_needed
from highwater.shards.merge import query_digest, rank_of, read_cursor, write_cursor

HOUR = timedelta(hours=1)
BEGUN = datetime(2026, 12, 1, tzinfo=UTC)
RAISED, MOVED = BEGUN + 24 * HOUR, BEGUN + 48 * HOUR
KEY = ShardedKey((Shards(4, since=BEGUN), Shards(8, since=RAISED)), unsharded_until=MOVED)
ALL_NEW = ShardedKey((Shards(4),), unsharded_until=None)


def _key(*periods: Shards, **more: Any) -> ShardedKey:
    return ShardedKey(periods, **({"unsharded_until": None} | more))


def _refused(call: Any) -> str:
    with pytest.raises(ShardError) as error:
        call()
    assert isinstance(error.value, ValueError)
    return str(error.value)


@pytest.mark.parametrize(
    ("value", "found"),
    # printf %s o-17 | sha256sum | cut -c1-8
    [
        ("o-17", 0x65B4898B),
        ("", 0xE3B0C442),
        ("a", 0xCA978112),
        ("é", 0x4A99557E),
        (b"\x00\xff", 0x06EB7D6A),
        (17, 0x4523540F),
        (-3, 0x615BDD17),
        (Decimal("17.0"), 0x4523540F),
    ],
)
def test_hash_is_the_same_for_ever(value: Any, found: int) -> None:
    assert hash_of(value) == found


@pytest.mark.parametrize("value", [1.5, Decimal("1.5"), True, None, ("a",)])
def test_value_without_one_form_has_no_hash(value: Any) -> None:
    told = f"sharded key: hashed: got {value!r}, allowed: a text, bytes or a whole number; give other values as text"
    assert _refused(lambda: hash_of(value)) == told


def test_hashes_spread_numbered_values_evenly() -> None:
    for number in (2, 3, 8, 10, 64):
        counts = Counter(hash_of(f"order-{each:06d}") % number for each in range(20_000))
        assert max(counts.values()) < 20_000 / number * 1.25


def test_keys_of_shards_are_vectors_too() -> None:
    assert KEY.key_for("TENANT#1", at=BEGUN, hashed="o-5") == "TENANT#1#s03"
    assert KEY.key_for("TENANT#1", at=RAISED, hashed="o-5") == "TENANT#1#s07"
    assert KEY.key_for("TENANT#1", at=BEGUN - HOUR, hashed="o-5") == "TENANT#1"
    wide = ShardedKey((Shards(1_000),), unsharded_until=None, separator="/", digits=3)
    assert wide.key_for("TENANT#1", at=BEGUN, hashed="o-5") == "TENANT#1/559"


def test_without_unsharded_items_the_first_period_is_from_the_beginning() -> None:
    moved = ShardedKey(KEY.periods, unsharded_until=None)
    assert moved.key_for("TENANT#1", at=BEGUN - HOUR, hashed="o-5") == "TENANT#1#s03"


def test_random_key_asks_for_a_number_below_that_of_its_shards() -> None:
    asked: list[int] = []

    def pick(number: int) -> int:
        asked.append(number)
        return number - 1

    key = ShardedKey(KEY.periods, unsharded_until=MOVED, is_random=True)
    assert [key.key_for("t", at=at, pick=pick) for at in (BEGUN - HOUR, BEGUN, RAISED)] == ["t", "t#s03", "t#s07"]
    assert asked == [4, 8]


@pytest.mark.parametrize(
    ("now", "span", "shards"),
    [
        (BEGUN, {}, (None, *range(8))),
        (MOVED - HOUR, {}, (None, *range(8))),
        (MOVED, {}, tuple(range(8))),
        (BEGUN, {"written_to": RAISED - HOUR}, (None, *range(4))),
        # clocks of writers are not all the same
        (BEGUN, {"written_to": RAISED - timedelta(minutes=5)}, (None, *range(8))),
        (MOVED, {"written_to": RAISED - timedelta(minutes=5, seconds=1)}, tuple(range(4))),
        (MOVED, {"written_from": RAISED}, tuple(range(8))),
        # what was moved is in the first period's shards
        (MOVED, {"written_to": BEGUN - 9 * HOUR}, tuple(range(4))),
    ],
)
def test_shards_to_read_are_those_that_were_in_use_in_the_span(now: datetime, span: Any, shards: Any) -> None:
    assert KEY.shards_of(now=now, **span) == shards


def test_shards_that_are_no_longer_in_use_are_read_for_what_was_written_to_them() -> None:
    fewer = _key(Shards(8), Shards(2, since=RAISED))
    assert fewer.shards_of(now=MOVED) == tuple(range(8))
    late = timedelta(minutes=5)
    assert fewer.shards_of(now=MOVED, written_from=RAISED + late) == tuple(range(8))
    assert fewer.shards_of(now=MOVED, written_from=RAISED + late + timedelta(seconds=1)) == (0, 1)


def test_one_item_is_in_one_shard_for_each_number_of_them() -> None:
    assert KEY.shards_with("o-5", now=RAISED) == (7, 3, None)
    assert KEY.shards_with("o-5", now=BEGUN) == (3, 7, None)
    assert KEY.shards_with("o-5", now=MOVED) == (7, 3)
    random = ShardedKey((Shards(3, since=BEGUN),), unsharded_until=MOVED, is_random=True)
    assert random.shards_with(None, now=BEGUN) == (0, 1, 2, None)


PLAIN = st.text(alphabet="ab#s019/", min_size=1, max_size=12)


@given(PLAIN, PLAIN, st.integers(0, 99), st.integers(0, 99))
def test_two_shards_have_one_key_only_if_they_are_the_same(one: str, other: str, first: int, second: int) -> None:
    try:
        keys = [ALL_NEW.key_of(one, first), ALL_NEW.key_of(other, second), ALL_NEW.key_of(one, None)]
    except ShardError:
        assert any(re.fullmatch(r".+#s\d\d", each, re.DOTALL) for each in (one, other))
        return
    assert (keys[0] == keys[1]) == ((one, first) == (other, second))
    assert keys[2] not in keys[:2] or keys[2] == keys[1] == one
    assert [ALL_NEW.split(key) for key in keys] == [(one, first), (other, second), (one, None)]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(-30, 60), st.integers(-30, 60), st.text(), st.booleans())
def test_shard_of_an_item_is_among_those_that_are_read(
    before: int, after: int, hour: int, seen: int, hashed: str, has_old: bool
) -> None:
    until = BEGUN + 70 * HOUR if has_old else None
    key = ShardedKey((Shards(before, since=BEGUN), Shards(after, since=RAISED)), unsharded_until=until)
    at, now = BEGUN + hour * HOUR, BEGUN + seen * HOUR
    shard = key.shard_for(at=at, hashed=hashed)
    assert shard in key.shards_of(now=now, written_from=at, written_to=at)
    assert shard in key.shards_of(now=now)
    assert shard in key.shards_with(hashed, now=now)


SHARDS = "allowed: 1 to 100 with 2 digits; a new key may have more digits"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: _key(Shards(101)), f"number of shards: got 101, {SHARDS}"),
        (lambda: _key(Shards(0)), f"number of shards: got 0, {SHARDS}"),
        (lambda: _key(), "periods: got none, allowed: at least one, such as Shards(8)"),
        (
            lambda: _key(Shards(2, since=RAISED), Shards(4, since=BEGUN)),
            "periods: got 2026-12-01T00:00:00+00:00 behind 2026-12-02T00:00:00+00:00, allowed: each later than the one "
            "before",
        ),
        (
            lambda: _key(Shards(2, since=datetime(2026, 12, 1))),  # noqa: DTZ001
            "since: got datetime.datetime(2026, 12, 1, 0, 0), allowed: a datetime with a time zone, such as UTC",
        ),
        (
            lambda: _key(Shards(2, since=BEGUN), unsharded_until=BEGUN),
            "unsharded_until: got 2026-12-01T00:00:00+00:00, allowed: later than the first period, "
            "2026-12-01T00:00:00+00:00; None if there are no unsharded items",
        ),
        (lambda: _key(Shards(2), separator=""), "separator: got '', allowed: at least one character, such as '#s'"),
        (lambda: _key(Shards(2), digits=5), "digits: got 5, allowed: 1 to 4"),
        (
            lambda: KEY.key_for("TENANT#s12", at=BEGUN, hashed="a"),
            "key 'TENANT#s12': is the key of a shard of 'TENANT'; give that key, or another separator",
        ),
        (lambda: KEY.key_for("", at=BEGUN, hashed="a"), "key: got '', allowed: a text that is not empty"),
        (
            lambda: KEY.key_for("k" * 2_045, at=BEGUN, hashed="a"),
            "key: got 2,049 bytes with the shard, allowed: 2,048; give a shorter key",
        ),
        (
            lambda: KEY.key_for("t", at=BEGUN),
            "hashed: got none, allowed: the value whose hash is the shard, such as the sort key",
        ),
        (
            lambda: _key(Shards(2), is_random=True).key_for("t", at=BEGUN, hashed="a"),
            "pick: got none, allowed for a random key: such as random.randrange",
        ),
        (
            lambda: KEY.shards_of(now=BEGUN, written_from=RAISED, written_to=BEGUN),
            "written_to: got 2026-12-01T00:00:00+00:00, allowed: not before written_from, 2026-12-02T00:00:00+00:00",
        ),
    ],
)
def test_what_is_not_valid_is_refused(make: Any, told: str) -> None:
    assert _refused(make) == f"sharded key: {told}"


def test_sort_keys_are_ordered_as_dynamodb_orders_them() -> None:
    numbers = ["-1E+10", "-2", "0", "0.5", "9", "10", "12345678901234567890123456789012345678"]
    texts = ["", "A", "a", "a\x00", "ab", "\u00e9", "\uffff", "\U0001f600"]
    binaries = [b"", b"\x00", b"\x7f", b"\x80", b"\xff"]
    for kind, values in (("N", numbers), ("S", texts), ("B", binaries)):
        ranks = [rank_of({kind: value}) for value in values]
        assert ranks == sorted(ranks)
        assert len(set(ranks)) == len(ranks)


def test_cursor_is_read_as_it_was_written() -> None:
    positions = {None: None, 3: {"sk": {"N": "1.50"}}, 7: {"sk": {"B": b"\x00\xff"}, "id": {"S": "é"}}}
    digest = query_digest({"plain": "t", "values": {":b": {"B": b"\xff"}}, "key": KEY.document()})
    assert read_cursor(write_cursor(digest, positions), digest) == positions
    written = write_cursor("d", {None: None, 3: {"sk": {"B": b"\xff"}}})
    assert written == '{"v":1,"query":"d","shards":{"plain":null,"3":{"sk":{"B":"/w=="}}}}'


def test_equal_declarations_have_equal_documents() -> None:
    east = timezone(timedelta(hours=2))
    same = ShardedKey(
        [Shards(4, since=BEGUN.astimezone(east)), Shards(8, since=RAISED)], unsharded_until=MOVED.astimezone(east)
    )
    assert query_digest(same.document()) == query_digest(KEY.document())
    assert query_digest(ALL_NEW.document()) != query_digest(KEY.document())


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "[1]",
        '{"v":1,"query":"d","shards":{"x":null}}',
        '{"v":1,"query":"d","shards":{"3":{"sk":{"M":{}}}}}',
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    told = f"scatter_query: cursor: got {cursor!r}, allowed: the cursor of an earlier scatter_query, unchanged"
    assert _refused(lambda: read_cursor(cursor, "d")) == told


@pytest.mark.parametrize(
    ("version", "query", "told"),
    [
        (2, "d", "got version 2, allowed: 1"),
        (1, "e", "is of another query, or the key's shards were declared otherwise since"),
    ],
)
def test_cursor_of_another_query_or_version_is_refused(version: int, query: str, told: str) -> None:
    cursor = f'{{"v":{version},"query":"{query}","shards":{{}}}}'
    message = f"scatter_query: cursor: {told}; begin the query without a cursor"
    assert _refused(lambda: read_cursor(cursor, "d")) == message


def test_number_of_shards_leaves_headroom() -> None:
    assert shards_needed(0, 1_000, 30) == 1
    assert shards_needed(700, 1_000, 30) == 1
    assert shards_needed(700.1, 1_000, 30) == 2
    assert shards_needed(5_000, 1_000, 30) == 8
    assert shards_needed(5_000, 3_000, 0) == 2
