"""Records that many processes write: in whatever order they call, no update is lost and no condition holds twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from greenlet import getcurrent, greenlet
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.calls.records import Item, Records
from tests.memory_aws.leases import MemoryDynamo, refused

KEY = ("orders", "leases")


@dataclass
class Turns:
    """Writers of one table, one of which runs at a time: *order* says which goes on at each of their calls."""

    order: list[int]
    dynamodb: MemoryDynamo = field(default_factory=MemoryDynamo)
    lost: int = 0

    def run(self, *writers: Callable[[Records], None]) -> None:
        hub = getcurrent()
        self.dynamodb.before = lambda _: hub.switch() if getcurrent() is not hub else None
        records = Records("leases", self.dynamodb)
        waiting = [greenlet(writer) for writer in writers]
        order = list(self.order)
        while waiting:
            at = order.pop() % len(waiting) if order else 0
            waiting[at].switch(records) if not waiting[at] else waiting[at].switch()
            waiting = [each for each in waiting if not each.dead]

    def again(self, _: int) -> None:
        self.lost += 1

    def adds(self, name: str, times: int) -> Callable[[Records], None]:
        """Return a writer that adds its name to the record a number of times."""

        def changed(item: Item) -> tuple[str, Item]:
            text = item.get("names", {"S": ""})["S"] + name
            return text, {"names": {"S": text}}

        def write(records: Records) -> None:
            for _ in range(times):
                assert records.change(KEY, changed, self.again).endswith(name)

        return write


@given(st.lists(st.integers(0, 11), max_size=60))
@example([])
@example([0, 1] * 12)
def test_no_update_is_lost_whatever_the_order_of_calls(order: list[int]) -> None:
    turns = Turns(order)
    turns.run(turns.adds("a", 3), turns.adds("b", 2), turns.adds("c", 4))
    assert sorted(turns.dynamodb.items[KEY]["names"]["S"]) == sorted("a" * 3 + "b" * 2 + "c" * 4)


def test_writers_by_turns_do_overtake_each_other() -> None:
    turns = Turns([0, 1] * 12)
    turns.run(turns.adds("a", 3), turns.adds("b", 3))
    assert turns.lost > 0


@given(st.lists(st.integers(0, 11), max_size=30))
def test_one_of_those_that_stand_for_election_is_elected(order: list[int]) -> None:
    turns, elected = Turns(order), []
    condition = "attribute_not_exists(turned_at) OR turned_at <= :before OR turned_at > :now"

    def stand(records: Records) -> None:
        values = {"now": {"N": "7"}, "before": {"N": "5"}}
        elected.append(records.update(KEY, "SET turned_at = :now", condition, values))

    turns.run(*[stand] * 5)
    assert sorted(elected, key=str) == [None] * 4 + [{}] or sorted(elected, key=str) == [{}] + [None] * 4


@pytest.mark.parametrize("version", [{"N": "-3"}, {"N": "2.5"}, {"S": "7"}, {"BOOL": True}])
def test_version_that_another_program_wrote_is_replaced(version: dict[str, Any]) -> None:
    dynamodb = MemoryDynamo({KEY: {"version": version, "names": {"S": "x"}}})
    turns = Turns([], dynamodb)
    turns.run(turns.adds("a", 2))
    assert dynamodb.items[KEY]["version"]["N"].isdigit()
    assert dynamodb.items[KEY]["names"] == {"S": "xaa"}


@pytest.mark.parametrize("begins_again", [{}, {KEY: {"version": {"S": "7"}}}], ids=["deleted", "strange-version"])
def test_writer_that_read_a_record_before_it_began_again_does_not_write_over_it(begins_again: dict[Any, Item]) -> None:
    dynamodb = MemoryDynamo()
    records = Records("leases", dynamodb)
    records.change(KEY, lambda _: (None, {"names": {"S": "old"}}))
    known = records.read(KEY)["version"]
    dynamodb.items = dict(begins_again)
    records.change(KEY, lambda _: (None, {"names": {"S": "new"}}))
    assert not records.replace(KEY, known, {"names": {"S": "late"}})
    assert dynamodb.items[KEY]["names"] == {"S": "new"}


def test_what_is_not_to_be_written_is_only_read() -> None:
    asked: list[str] = []
    dynamodb = MemoryDynamo(before=asked.append)
    assert Records("leases", dynamodb).change(KEY, lambda item: (len(item), None)) == 0
    assert asked == ["get_item"]


def test_who_gives_up_ends_the_attempts() -> None:
    def overtaken(operation: str) -> None:
        if operation == "update_item":
            raise refused("ConditionalCheckFailedException", "UpdateItem")

    attempts: list[int] = []

    def again(attempt: int) -> None:
        attempts.append(attempt)
        if attempt == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        Records("leases", MemoryDynamo(before=overtaken)).change(KEY, lambda _: (None, {"names": {"S": "a"}}), again)
    assert attempts == [1, 2, 3]


def test_other_errors_are_those_of_botocore() -> None:
    def rest(operation: str) -> None:
        if operation == "update_item":
            raise refused("InternalServerError", "UpdateItem")

    with pytest.raises(ClientError, match="InternalServerError"):
        Records("leases", MemoryDynamo(before=rest)).change(KEY, lambda _: (None, {"names": {"S": "a"}}))


def test_each_answer_is_heard() -> None:
    heard: list[dict[str, Any]] = []
    records = Records("leases", MemoryDynamo({KEY: {"version": {"N": "4"}}}), heard.append)
    assert not records.replace(KEY, {"N": "3"}, {"names": {"S": "a"}})
    assert records.replace(KEY, {"N": "4"}, {"names": {"S": "a"}})
    assert [each.get("Error", {}).get("Code") for each in heard] == ["ConditionalCheckFailedException", None]
