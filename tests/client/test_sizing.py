"""Sizes from a deadline."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from highwater import read_units_for_scan, write_units_for_load
from highwater.core.boosts import LeaseError

MINUTE = timedelta(minutes=1)


def _session(**described: Any) -> Any:
    """A session whose client describes every table so."""
    client = SimpleNamespace(describe_table=lambda TableName: {"Table": described | {"TableName": TableName}})
    return SimpleNamespace(client=lambda _: client)


@pytest.fixture
def orders() -> Any:
    index = {"IndexName": "by_day", "ItemCount": 100, "IndexSizeBytes": 8_192_000}
    local = {"IndexName": "by_hour", "ItemCount": 100, "IndexSizeBytes": 16_384_000}
    kinds: dict[str, Any] = {"GlobalSecondaryIndexes": [index], "LocalSecondaryIndexes": [local]}
    return _session(ItemCount=100_000, TableSizeBytes=819_200_000, **kinds)


def test_load_is_done_in_the_time_that_is_left_once_the_capacity_is_there() -> None:
    # two units for each item of 1,025 bytes, in 38 of 40 minutes
    assert write_units_for_load(2_280_000, 1_025, 40 * MINUTE) == 2_000
    assert write_units_for_load(2_280_000, 1_025, 40 * MINUTE, until_ready=21 * MINUTE) == 4_000


def test_scan_is_sized_by_what_dynamodb_knows_of_the_table(orders: Any) -> None:
    # 8 KB a unit: 100,000 units in 1,000 seconds
    within = timedelta(seconds=1_120)
    assert read_units_for_scan("orders", within, session=orders) == 100
    assert read_units_for_scan("orders", within, is_consistent=True, session=orders) == 200
    assert read_units_for_scan("orders", within, index="by_day", session=orders) == 1
    assert read_units_for_scan("orders", within, index="by_hour", session=orders) == 2


@pytest.mark.parametrize(
    ("described", "index", "message"),
    [
        ({}, None, "orders: is empty by DynamoDB's figures, which may be six hours old; give the units yourself"),
        ({"ItemCount": 5, "TableSizeBytes": 9}, "by_x", "orders: has no index 'by_x'; it has none"),
    ],
)
def test_scan_that_cannot_be_sized_is_refused(described: dict[str, Any], index: str | None, message: str) -> None:
    with pytest.raises(LeaseError) as refused:
        read_units_for_scan("orders", 40 * MINUTE, index=index, session=_session(**described))
    assert str(refused.value) == message
