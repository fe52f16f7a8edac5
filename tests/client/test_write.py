"""Paced writes: everything arrives once it is said to, in order for each key, within the budget."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

import highwater
from highwater import Delete, PacedWorkError, Put, Rejected, Update, WriteProgress
from highwater.bulk.budget import TRIES
from highwater.bulk.items import Action
from highwater.bulk.send import BatchSender, Sent, batches_of
from highwater.bulk.write import PacedWrite, _laps, refuse
from highwater.core import Dimension
from highwater.core.items import item_bytes, write_units_of
from tests.client.memory_table import refused
from tests.client.memory_writes import MemoryWrites, jobs_of
from tests.client.virtual_clock import SECOND, Clock

REASON = {"reason": "TableWriteProvisionedThroughputExceeded", "resource": "arn"}


def write(table: MemoryWrites, actions: Any, **more: Any) -> WriteProgress:
    arguments: dict[str, Any] = {"write": 200, "workers": 1, "session": table, "pacer": Clock().pacer()}
    return highwater.write("orders", actions, **arguments | more)


def puts(count: int) -> list[Action]:
    return [Put({"pk": f"order-{number}", "n": number}) for number in range(count)]


def test_items_arrive_in_batches_and_in_another_order_than_they_were_given_in() -> None:
    table = MemoryWrites()
    told: list[WriteProgress] = []
    done = write(table, puts(2_130), progress=told.append)
    assert sorted(table.items) == sorted(f"order-{number}" for number in range(2_130))
    assert table.items["order-7"] == {"pk": {"S": "order-7"}, "n": {"N": "7"}}
    assert done == WriteProgress(done=2_130, units=2_130.0)
    # the first block is small, as nobody knows yet what an item costs
    assert [each.done for each in told] == [100, 1_100, 2_100, 2_130]
    assert table.requests == [("batch", 25)] * 85 + [("batch", 5)]
    second = table.order[100:1_100]
    assert second != [f"put order-{number}" for number in range(100, 1_100)]
    assert sorted(second) == sorted(f"put order-{number}" for number in range(100, 1_100))


def test_writes_keep_to_their_budget() -> None:
    clock = Clock()
    write(MemoryWrites(), puts(3_000), write=40, pacer=clock.pacer())
    assert (3_000 - 40) / 40 <= clock.now / SECOND <= 3_000 / 40


def test_block_of_large_items_is_what_five_seconds_write() -> None:
    told: list[WriteProgress] = []
    items = (Put({"pk": f"order-{number}", "x": "y" * 39_000}) for number in range(160))
    write(MemoryWrites(units_per_item=39.0), items, write=200, progress=told.append)
    # a thousand units are 25.6 items
    assert [each.done for each in told] == [100, 126, 152, 160]


def test_several_threads_write_everything_too() -> None:
    table = MemoryWrites()
    highwater.write("orders", puts(2_000), write=1e9, workers=8, session=table)
    assert len(table.items) == 2_000


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["put", "delete", "update"])), max_size=60),
    # one request may fail seven times; the eighth failure in a row stops the work
    st.lists(st.one_of(st.integers(0, 25), st.just("throttled"), st.just("failed")), max_size=30).filter(
        lambda fates: fates.count("failed") < TRIES
    ),
)
def test_nothing_that_comes_back_is_lost_and_each_key_ends_as_its_last_action_says(
    given_actions: list[tuple[int, str]], fates: list[int | str]
) -> None:
    table = MemoryWrites()
    left = list(fates)

    def before(operation: str, _: dict[str, Any]) -> None:
        if left and isinstance(left[0], str):
            if left.pop(0) == "throttled":
                raise refused("ProvisionedThroughputExceededException", ThrottlingReasons=[REASON])
            if operation != "update_item":
                raise ReadTimeoutError(endpoint_url="")

    def leaves(size: int) -> int:
        return int(left.pop(0)) % (size + 1) if left and isinstance(left[0], int) else 0

    table.before, table.leaves = before, leaves
    actions: list[Action] = []
    expected: dict[str, str | None] = {}
    for number, (key, kind) in enumerate(given_actions):
        name = f"order-{key}"
        match kind:
            case "put":
                actions.append(Put({"pk": name, "state": str(number)}))
                expected[name] = str(number)
            case "delete":
                actions.append(Delete({"pk": name}))
                expected[name] = None
            case _:
                actions.append(
                    Update({"pk": name}, "SET #s = :state", names={"#s": "state"}, values={":state": str(number)})
                )
                expected[name] = str(number)
    clock = Clock()
    sender = BatchSender(table, clock.pacer(), "orders")
    sender.pacer.limit("orders", Dimension.WRITE, 1_000)
    for lap in _laps(jobs_of(actions), ("pk",)):
        for batch in batches_of(lap):
            assert sender.send(batch).rejected == ()
    found: dict[str, str | None] = {name: item["state"]["S"] for name, item in table.items.items()}
    assert found == {name: state for name, state in expected.items() if state is not None}


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
@pytest.mark.parametrize("reason", ["TableWriteProvisionedThroughputExceeded", "TableWriteMoodExceeded", None])
def test_batch_that_is_refused_with_either_error_is_sent_again_whatever_the_reason(
    code: str, reason: str | None
) -> None:
    table, left = MemoryWrites(), [12]
    member = "throttlingReasons" if code == "ThrottlingException" else "ThrottlingReasons"
    more: dict[str, Any] = {member: [{"reason": reason, "resource": "arn"}]} if reason else {}

    def throttle(_: str, __: dict[str, Any]) -> None:
        if left[0]:
            left[0] -= 1
            raise refused(code, **more)

    table.before = throttle
    clock = Clock()
    sender = BatchSender(table, clock.pacer(), "orders")
    assert sender.send(jobs_of(puts(7))).rejected == ()
    assert (len(table.items), left) == (7, [0])


def test_update_whose_condition_does_not_hold_is_counted_and_no_error() -> None:
    table = MemoryWrites(items={"order-1": {"pk": {"S": "order-1"}}})
    members: dict[str, Any] = {"expression": "SET #s = :state", "names": {"#s": "state"}, "values": {":state": "paid"}}
    updates = [Update({"pk": f"order-{n}"}, condition="attribute_exists(pk)", **members) for n in range(3)]
    assert write(table, updates) == WriteProgress(done=3, units=3.0, unmet=2)
    assert table.items == {"order-1": {"pk": {"S": "order-1"}, "state": {"S": "paid"}}}


@pytest.mark.parametrize(
    ("code", "operation", "actions"),
    [
        ("TransactionConflictException", "update_item", [Update({"pk": "a"}, "SET n = :state", values={":state": 1})]),
        ("TransactionConflictException", "put_item", puts(1)),
        ("TransactionConflictException", "delete_item", [Delete({"pk": "order-0"})]),
        ("ReplicatedWriteConflictException", "put_item", puts(1)),
        ("ReplicatedWriteConflictException", "batch_write_item", puts(5)),
    ],
)
def test_conflicts_with_writes_of_others_are_waited_for_at_an_unchanged_rate(
    code: str, operation: str, actions: list[Action]
) -> None:
    clock, asked = Clock(), list[str]()
    pacer = clock.pacer()
    pacer.limit("orders", Dimension.WRITE, 200)

    def before(name: str, _: dict[str, Any]) -> None:
        asked.append(name)
        if len(asked) <= 40:
            raise refused(code)

    sender = BatchSender(MemoryWrites(before=before), pacer, "orders")
    assert sender.send(jobs_of(actions)) == Sent(units=float(len(actions)))
    assert asked == [operation] * 41
    # each attempt counts as consumed, and the pauses grow to between ten and twenty seconds
    assert pacer.spent("orders", None, Dimension.WRITE) == (41 * len(actions) * 1_000, 0)
    assert pacer.rate("orders", None, Dimension.WRITE) == 200
    assert 31 * 10 <= clock.now / SECOND <= 40 * 20


def test_item_that_dynamodb_does_not_take_is_named_and_the_others_of_its_batch_are_written() -> None:
    table = MemoryWrites()

    def before(_: str, request: dict[str, Any]) -> None:
        members = request.get("RequestItems", {}).get("orders") or [{"PutRequest": request}]
        if any("bad" in member["PutRequest"]["Item"] for member in members):
            raise refused("ValidationException")

    table.before = before
    actions = [
        *puts(10),
        Put({"pk": "b", "bad": True}),
        Put({"pk": "large", "x": "y" * 409_600}),
        Put({"pk": "f", "x": 0.5}),
    ]
    rejected: list[Rejected] = []
    done = write(table, actions, reject=rejected.append)
    assert (done.done, done.rejected) == (13, 3)
    assert sorted(table.items) == sorted(f"order-{number}" for number in range(10))
    assert [(each.number, each.why) for each in rejected] == [
        (10, "it rests"),
        (11, "the item has 409,608 bytes; allowed: 409,600 (400 KB)"),
        (12, "Float types are not supported. Use Decimal types instead."),
    ]
    with pytest.raises(PacedWorkError) as told:
        write(MemoryWrites(), actions[11:])
    why = "the item has 409,608 bytes; allowed: 409,600 (400 KB)"
    assert str(told.value) == f"write: action 0: {why}; give reject to go on without such actions"


def test_writes_that_stop_go_on_after_the_last_whole_block(tmp_path: Path) -> None:
    table, place = MemoryWrites(), tmp_path / "orders.checkpoint"

    def before(*_: Any) -> None:
        if len(table.requests) == 45:
            raise refused("ExpiredTokenException")

    table.before = before
    with pytest.raises(PacedWorkError) as told:
        write(table, puts(3_000), checkpoint=place)
    why = "An error occurred (ExpiredTokenException) when calling the Scan operation: it rests"
    assert str(told.value) == f"writes to orders stopped: {why}; start it again with the same checkpoint to go on"
    read: list[int] = []

    def again() -> Iterator[Action]:
        for number, action in enumerate(puts(3_000)):
            read.append(number)
            yield action

    table.before = lambda *_: None
    sent = sum(number for _, number in table.requests)
    done = write(table, again(), checkpoint=place)
    assert (done.done, done.units) == (3_000, 1_900.0)
    assert sum(number for _, number in table.requests) == sent + 1_900
    assert len(table.items) == 3_000
    assert not place.exists()


def test_checkpoint_is_one_process_s(tmp_path: Path) -> None:
    place = tmp_path / "orders.checkpoint"

    def look(_: WriteProgress) -> None:
        with pytest.raises(PacedWorkError, match="another process goes on from it now"):
            write(MemoryWrites(), puts(5), checkpoint=place)

    assert write(MemoryWrites(), puts(300), checkpoint=place, progress=look).done == 300
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        # how Python names the character differs by version
        ("orders\0.checkpoint", "orders\0.checkpoint: cannot be written: .*embedded null .*"),
        ("", r"\.: cannot be read: Is a directory"),
    ],
    ids=["NUL", "empty"],
)
def test_path_that_no_checkpoint_can_have_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PacedWorkError, match=f"^checkpoint {why}$"):
        write(MemoryWrites(), puts(5), checkpoint=path)
    assert list(tmp_path.iterdir()) == []


WHOLE: dict[str, Any] = {
    **{"format": 1, "kind": "writes", "table": "eu-central-1 orders"},
    **{"table_id": None, "done": 0, "actions": "0f"},
}


def test_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "orders.checkpoint"
    place.write_text(
        '{"format": 1, "kind": "writes", "table": "eu-central-1 orders", "table_id": null, "done": 12, "actions": "0f"}'
    )
    with pytest.raises(PacedWorkError) as fewer:
        write(MemoryWrites(), puts(5), checkpoint=place)
    assert str(fewer.value) == (
        f"checkpoint {place}: is of 12 actions that are through, but 5 were given; give the same ones, or another file"
    )
    place.write_text('{"format": 1, "kind": "writes", "table": "us-east-1 orders", "done": 12}')
    with pytest.raises(PacedWorkError) as other:
        write(MemoryWrites(), puts(5), checkpoint=place)
    assert str(other.value) == f"checkpoint {place}: is of writes to us-east-1 orders, not to eu-central-1 orders"
    place.write_text('{"format": 1, "kind": "a scan"}')
    with pytest.raises(PacedWorkError) as scan:
        write(MemoryWrites(), puts(5), checkpoint=place)
    assert str(scan.value) == f"checkpoint {place}: is no checkpoint of writes; give another file"


CHANGED = {
    "in front": lambda given: [Put({"pk": "new"}), *given],
    "in between": lambda given: [*given[:50], Put({"pk": "new"}), *given[50:]],
    "left out": lambda given: [*given[:50], *given[51:]],
    "in another order": lambda given: [*reversed(given)],
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_actions_that_are_others_when_writes_are_resumed_are_refused(
    tmp_path: Path, change: Callable[[list[Action]], list[Action]]
) -> None:
    place, table = tmp_path / "orders.checkpoint", MemoryWrites()
    is_stopped = threading.Event()
    work = PacedWrite(
        table="orders", write=200, session=table, pacer=Clock().pacer(), checkpoint=place, is_stopped=is_stopped
    )
    work.run(puts(1_500), refuse, lambda _: is_stopped.set())
    done = json.loads(place.read_text())["done"]
    assert 50 < done < 1_500
    with pytest.raises(PacedWorkError) as refused:
        write(table, change(puts(1_500)), checkpoint=place)
    assert str(refused.value) == (
        f"checkpoint {place}: is of other actions: the first {done:,} are not those that are through; give the same "
        "ones, or another file"
    )
    assert len(table.items) == done
    # what is not of the key may be another: the time at which an item was copied, for example
    assert write(table, [Put({"pk": f"order-{n}", "n": -n}) for n in range(1_500)], checkpoint=place).done == 1_500
    assert len(table.items) == 1_500


def test_resumed_load_compares_contents_and_sets_have_no_order(tmp_path: Path) -> None:
    place, table = tmp_path / "orders.checkpoint", MemoryWrites()

    def run(given: list[Action], *, stops: bool = False) -> WriteProgress:
        work = PacedWrite(
            table="orders",
            write=200,
            session=table,
            pacer=Clock().pacer(),
            checkpoint=place,
            is_same_by="content",
        )
        return work.run(given, refuse, lambda _: work.is_stopped.set() if stops else None)

    def given(tags: list[str], total: int = 5) -> list[Action]:
        return [Put({"pk": f"order-{n}", "tags": set(tags), "more": {"b": b"x", "total": total}}) for n in range(1_500)]

    run(given(["x", "y", "z"]), stops=True)
    with pytest.raises(PacedWorkError, match="is of other actions"):
        run(given(["x", "y", "z"], total=6))
    assert run(given(["z", "y", "x"])).done == 1_500


DAMAGE = [
    {"done": -1},
    {"done": 0.5},
    {"done": True},
    {"done": "12"},
    {"done": 10**400},
    {"done": None},
    {"actions": ..., "done": 12},
    {"table": ...},
    {"table_id": ...},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_damaged_checkpoint_is_refused_in_a_line(tmp_path: Path, damage: dict[str, Any]) -> None:
    place = tmp_path / "orders.checkpoint"
    whole = {
        "format": 1,
        "kind": "writes",
        "table": "eu-central-1 orders",
        "table_id": None,
        "done": 0,
        "actions": "0f",
    } | damage
    place.write_text(json.dumps({name: value for name, value in whole.items() if value is not ...}))
    with pytest.raises(PacedWorkError) as refused:
        write(MemoryWrites(), puts(50), checkpoint=place)
    told = str(refused.value)
    assert told.startswith(f"checkpoint {place}: is damaged (")
    assert told.endswith("; delete it to begin anew, or give another file")


def test_checkpoint_of_a_table_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "orders.checkpoint"
    place.write_text(json.dumps(WHOLE | {"table_id": "7"}))
    with pytest.raises(PacedWorkError) as refused:
        write(MemoryWrites(), puts(50), checkpoint=place)
    why = "is of writes to another eu-central-1 orders, which was deleted since; delete it to begin anew"
    assert str(refused.value) == f"checkpoint {place}: {why}"


def test_link_beside_a_checkpoint_leads_nowhere(tmp_path: Path) -> None:
    place, other = tmp_path / "orders.checkpoint", tmp_path / "mine"
    other.write_text("mine")
    place.with_name("orders.checkpoint.new").symlink_to(other)
    assert write(MemoryWrites(), puts(5), checkpoint=place).done == 5
    assert other.read_text() == "mine"


def test_writes_that_cannot_be() -> None:
    with pytest.raises(PacedWorkError) as none:
        highwater.write("others", [], write=5, session=MemoryWrites())
    assert str(none.value) == "write: there is no table 'others' in eu-central-1; give its name and region"
    with pytest.raises(PacedWorkError) as workers:
        write(MemoryWrites(), [], workers=0)
    assert str(workers.value) == "write: workers: got 0, allowed: 1 to 64"


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"pk": {"S": "naïve"}}, 2 + 6),
        ({"n": {"N": "-123.45"}}, 1 + 5),
        ({"n": {"N": "1000"}}, 1 + 2),
        ({"b": {"B": b"\x00\x01\x02"}}, 1 + 3),
        ({"b": {"B": "AP8="}}, 1 + 2),
        ({"t": {"BOOL": True}, "u": {"NULL": True}}, 2 + 2),
        ({"s": {"SS": ["ab", "cde"]}}, 1 + 5),
        ({"s": {"NS": ["7", "12"]}, "t": {"BS": [b"ab"]}}, 1 + 4 + 1 + 2),
        ({"l": {"L": [{"S": "ab"}, {"N": "5"}]}}, 1 + 3 + 2 + 2 + 2),
        ({"m": {"M": {"ab": {"S": "cd"}}}}, 1 + 3 + 1 + 4),
    ],
)
def test_items_weigh_what_the_guide_says(item: dict[str, Any], size: int) -> None:
    assert item_bytes(item) == size


def test_a_kilobyte_begun_is_a_unit_and_values_become_dynamodbs() -> None:
    assert [write_units_of(size) for size in (0, 1_024, 1_025, 409_600)] == [1, 1, 2, 400]
    assert Put({"n": Decimal("1.50"), "s": {"a"}}).raw() == {"n": {"N": "1.50"}, "s": {"SS": ["a"]}}
    assert Delete({"pk": {"S": "a"}}, is_raw=True).raw() == {"pk": {"S": "a"}}


def _nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (
            Put({"pk": "a", "n": Decimal("1e400")}),
            "a number has more than 38 digits, or is beyond 1E+126 or below 1E-130",
        ),
        (
            Put({"pk": "a", "n": Decimal("1" * 39)}),
            "a number has more than 38 digits, or is beyond 1E+126 or below 1E-130",
        ),
        (Put({"pk": "a", "n": 1.5}), "Float types are not supported. Use Decimal types instead."),
        (Put({"pk": "a", "n": _nested(3_000)}), "the item is nested too deeply; allowed: 32 levels"),
        (
            Update({"pk": "a"}, "SET n = :n", values={":n": 1.5}),
            "Float types are not supported. Use Decimal types instead.",
        ),
        (
            Update({"pk": "a"}, "SET n = :n", values={":n": Decimal("1e-200")}),
            "a number has more than 38 digits, or is beyond 1E+126 or below 1E-130",
        ),
    ],
)
def test_values_that_dynamodb_has_no_room_for_are_rejected_and_the_rest_is_written(action: Action, why: str) -> None:
    table, rejected = MemoryWrites(), list[Rejected]()
    done = write(table, [*puts(3), action], reject=rejected.append)
    assert [(each.number, each.why) for each in rejected] == [(3, why)]
    assert (done.done, done.rejected, len(table.items)) == (4, 1, 3)
