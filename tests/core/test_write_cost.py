"""What writing new items costs a table and its indexes."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.core.items import nesting_of
from highwater.core.pacing.writes import IndexParts, WriteCost

KEYS = frozenset({"pk", "state"})
EVERYTHING = IndexParts("by_state", frozenset({"state"}), None, is_local=False)
KEYS_ALONE = IndexParts("keys", frozenset({"state"}), KEYS, is_local=False)
LOCAL = IndexParts("local", frozenset({"pk", "state"}), KEYS | {"city"}, is_local=True)


def _item(state: str | None, fill: int) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": "a"}, "x": {"S": "y" * fill}}
    return item | ({} if state is None else {"state": {"S": state}})


def test_each_index_pays_for_the_part_that_it_has() -> None:
    cost = WriteCost([EVERYTHING, KEYS_ALONE, LOCAL])
    # 3 bytes of the key, 1 of a name and 8 of the state
    cost.add(_item("new", 5_000))
    cost.add(_item(None, 2_000))
    assert cost.items == 2
    assert cost.size_bytes == 5_012 + 2_004
    assert cost.table_units == (5 + 1) + 2
    assert cost.index_units == {"by_state": 5, "keys": 1}
    assert cost.units == 14


def test_kilobytes_begun_are_paid_for() -> None:
    cost = WriteCost([])
    cost.add(_item(None, 1_024 - 4))
    assert cost.units == 1
    cost.add(_item(None, 1_024 - 3))
    assert cost.units == 3


@pytest.mark.parametrize(("rate", "seconds"), [(5.0, 2), (6.0, 1), (2.5, 3), (0.001, 6_000), (1_000.0, 1)])
def test_the_dearest_of_table_and_indexes_sets_the_time(rate: float, seconds: int) -> None:
    cost = WriteCost([EVERYTHING, LOCAL])
    cost.add(_item("new", 5_000))
    assert cost.table_units == 6
    assert cost.units_by_target == {None: 6, "by_state": 5}
    assert cost.seconds_at({None: rate, "by_state": 999.0}) == seconds


def test_an_index_with_a_lower_rate_sets_the_time() -> None:
    cost = WriteCost([EVERYTHING, LOCAL])
    cost.add(_item("new", 5_000))
    assert cost.seconds_at({None: 6.0, "by_state": 0.5}) == 10


def test_nothing_to_write_takes_no_time() -> None:
    assert WriteCost([EVERYTHING]).seconds_at({None: 7.0, "by_state": 7.0}) == 0


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        ({"S": "flat"}, 0),
        ({"L": []}, 0),
        ({"L": [{"N": "1"}]}, 1),
        ({"M": {"a": {"L": [{"M": {"b": {"S": "c"}}}]}, "z": {"S": "y"}}}, 3),
    ],
)
def test_nesting_is_how_many_lists_and_maps_lie_within_each_other(value: Any, levels: int) -> None:
    assert nesting_of({"pk": {"S": "a"}, "value": value}) == levels
