"""Four scans of one table beside other traffic, each in its own way and within its own budget."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

import highwater
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady
from highwater_lab.local.lockstep import SeatClock
from tests.local.world import SessionAt, create_tables, units

pytestmark = pytest.mark.xdist_group("paced scans")
READ = Dimension.READ
CAPACITY, OTHERS, RATE = 260, 60, 40
_SECONDS = 60
_WAYS: list[dict[str, Any]] = [
    {"read": RATE},
    {
        "read": RATE,
        "FilterExpression": "n = :n",
        "ExpressionAttributeValues": {":n": {"N": "0"}},
    },
    {"read": RATE, "is_consistent": True},
    {"read": RATE, "segments": 64, "workers": 3},
]


def _fill(cloud: LocalCloud) -> int:
    """Make the table, with items from 100 bytes to 40 KB, some of them under one key; return how many there are."""
    dynamodb, numbers = cloud.client("dynamodb"), random.Random(20_261_123)  # noqa: S311 - the same items in each run
    create_tables(dynamodb, units(CAPACITY, 40_000), orders=["pk", "sk"])
    count = 4_000
    for first in range(0, count, 25):
        puts = []
        for number in range(first, first + 25):
            key = "hot" if number % 3 == 0 else f"order-{number}"
            size = min(int(numbers.lognormvariate(8.0, 1.2)) + 40, 40_000)
            item = {
                "pk": {"S": key},
                "sk": {"S": f"{number:05}"},
                "n": {"N": str(number % 1_000)},
                "x": {"S": "y" * size},
            }
            puts.append({"PutRequest": {"Item": item}})
        dynamodb.batch_write_item(RequestItems={"orders": puts})
    return count


def _scan(cloud: LocalCloud, clock: SeatClock, way: dict[str, Any]) -> tuple[float, int]:
    """Scan again and again for a minute; units per second, and how many items came."""
    session: Any = SessionAt(cloud)
    units, found, began = 0.0, 0, clock.time()
    while clock.time() < began + _SECONDS:
        for page in highwater.scan("orders", session=session, **way):
            units += page.units
            found += len(page.raw)
            if clock.time() >= began + _SECONDS:
                break
    return units / (clock.time() - began), found


def test_each_scan_keeps_within_its_budget_and_nobody_else_is_throttled() -> None:
    with LocalCloud(clock="driven", has_instant_updates=True) as cloud:
        count = _fill(cloud)
        traffic = steady(OTHERS, 0, timedelta(seconds=_SECONDS * 2), cloud.status().now)
        load = Load(cloud.control, "orders", traffic, requests_per_second=2)
        scans = [lambda clock, way=way: _scan(cloud, clock, way) for way in _WAYS]
        report, *scanned = cloud.play(load.run_on, *scans)
    assert report.total(READ, "throttled") == 0
    assert report.total(READ, "granted") == 2 * _SECONDS * OTHERS
    # a page is a quarter of a second of the budget; the first waits for its units, and when the minute ends each thread
    # has one page ready and reads one more
    page = RATE / 4
    for (rate, _), way in zip(scanned, _WAYS, strict=True):
        unseen = page * (2 * way.get("workers", 1) + 2)
        assert RATE * _SECONDS - unseen <= rate * _SECONDS <= RATE * _SECONDS + page, way
    rate, found = scanned[1]
    assert found <= count / 1_000 * 3
    assert rate * _SECONDS > 2_000, "what a filter leaves out is paid for"
