"""Transforms: every item is changed, within two budgets, and on again from where they were."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import highwater
from highwater import Delete, PacedWorkError, Put, ScanProgress, Update, WriteProgress
from highwater.bulk.items import Action
from tests.client.memory_table import MemoryTable, refused
from tests.client.memory_writes import MemoryWrites
from tests.client.virtual_clock import SECOND, Clock


@dataclass
class Orders(MemoryWrites):
    """A table that is read and written; what is read has 900 bytes an item."""

    reads: MemoryTable = field(default_factory=lambda: MemoryTable({}))

    @classmethod
    def of(cls, count: int) -> Orders:
        keys = [f"order-{number:04}" for number in range(count)]
        return cls(items={key: {"pk": {"S": key}} for key in keys}, reads=MemoryTable(dict.fromkeys(keys, 900)))

    def describe_table(self, TableName: str) -> dict[str, Any]:
        table = self.reads.describe_table(TableName)["Table"]
        return {"Table": table | super().describe_table(TableName)["Table"]}

    def scan(self, **request: Any) -> dict[str, Any]:
        return self.reads.scan(**request)

    def state(self) -> dict[str, str | None]:
        return {key: item.get("state", {}).get("S") for key, item in self.items.items()}


def archive(item: dict[str, Any]) -> Update:
    return Update({"pk": item["pk"]}, "SET #s = :state", names={"#s": "state"}, values={":state": "archived"})


def transform(table: Orders, change: Any, **more: Any) -> WriteProgress:
    arguments: dict[str, Any] = {"read": 500, "write": 2_000, "session": table, "pacer": Clock().pacer()}
    return highwater.transform("orders", change, **arguments | more)


def test_every_item_is_changed_once_and_both_budgets_hold() -> None:
    table, clock = Orders.of(1_200), Clock()
    told: list[tuple[int, int]] = []

    def seen(scan: ScanProgress, write: WriteProgress) -> None:
        told.append((scan.scanned, write.done))

    done = transform(table, archive, write=60, pacer=clock.pacer(), progress=seen)
    assert set(table.state().values()) == {"archived"}
    assert done == WriteProgress(done=1_200, units=1_200.0)
    assert (1_200 - 60) / 60 <= clock.now / SECOND <= 1_200 / 60 + 5
    # what is told as read is written too
    assert all(scanned == written for scanned, written in told)
    assert told[-1] == (1_200, 1_200)


def test_items_may_become_nothing_several_actions_or_another_item() -> None:
    table = Orders.of(30)

    def change(item: dict[str, Any]) -> Iterable[Action] | Action | None:
        number = int(item["pk"][-4:])
        if number % 3 == 0:
            return None
        if number % 3 == 1:
            return [Put({"pk": f"new-{number}"}), Delete({"pk": item["pk"]})]
        return archive(item)

    assert transform(table, change).done == 30
    found = table.state()
    assert sorted(key for key in found if key.startswith("new-")) == sorted(f"new-{n}" for n in range(1, 30, 3))
    assert {key for key in found if found[key] == "archived"} == {f"order-{n:04}" for n in range(2, 30, 3)}
    assert {key for key in found if found[key] is None and key.startswith("order")} == {
        f"order-{n:04}" for n in range(0, 30, 3)
    }


# threads and files take their time
@settings(max_examples=40)
@given(st.integers(0, 300), st.lists(st.integers(0, 40), max_size=5))
def test_transform_that_is_cut_off_anywhere_goes_on_and_misses_nothing(count: int, cuts: list[int]) -> None:
    table = Orders.of(count)
    with tempfile.TemporaryDirectory() as folder:
        _cut_off(table, Path(folder) / "checkpoint", cuts)
    assert all(state == "archived" for state in table.state().values())


def _cut_off(table: Orders, place: Path, cuts: list[int]) -> None:
    for cut in [*cuts, 10**9]:
        left = [cut]

        def before(operation: str, _: dict[str, Any], left: list[int] = left) -> None:
            assert operation == "update_item"
            left[0] -= 1
            if left[0] < 0:
                raise refused("ExpiredTokenException")

        table.before = before
        try:
            transform(table, archive, checkpoint=place, segments=3)
        except PacedWorkError:
            continue
        break
    assert not place.exists()


def test_change_that_fails_ends_the_work_with_its_own_error_and_keeps_its_place(tmp_path: Path) -> None:
    table, place = Orders.of(50), tmp_path / "checkpoint"

    def change(item: dict[str, Any]) -> Update:
        if item["pk"] == "order-0031":
            message = "no such state"
            raise KeyError(message)
        return archive(item)

    with pytest.raises(KeyError, match="no such state") as failed:
        transform(table, change, checkpoint=place)
    assert place.exists()
    # also for who holds on to the error, whose traceback holds on to the work
    transform(table, archive, checkpoint=place)
    assert failed.value.args == ("no such state",)
    assert set(table.state().values()) == {"archived"}
