"""On-demand: twice the previous peak, thirty minutes later; quota and own maximum."""

from __future__ import annotations

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT, KeyDistribution, OnDemandThroughput, Partitions

WRITE = Dimension.WRITE


def _table(**more: int) -> OnDemandThroughput:
    return OnDemandThroughput(WRITE, Partitions(8, KeyDistribution.uniform()), **more)


def test_new_table_takes_4000_writes_and_refuses_the_rest() -> None:
    table = _table()
    assert table.serve(4_000 * QUANTA_PER_UNIT, 10) == 40_000 * QUANTA_PER_UNIT
    assert table.refused == {}
    assert table.serve(4_300 * QUANTA_PER_UNIT, 10) == 40_000 * QUANTA_PER_UNIT
    assert table.refused == {ThrottleCause.KEY_RANGE: 3_000 * QUANTA_PER_UNIT}


def test_peak_counts_double_once_it_lies_thirty_minutes_back() -> None:
    table = _table()
    for minute in range(31):
        assert table.limit == 4_000 * QUANTA_PER_UNIT, minute
        table.end_minute(3_500 * QUANTA_PER_UNIT * 60 if minute == 0 else 0)
    assert table.limit == 7_000 * QUANTA_PER_UNIT
    assert table.serve(7_000 * QUANTA_PER_UNIT, 1) == 7_000 * QUANTA_PER_UNIT


def test_quota_and_own_maximum_have_causes_of_their_own() -> None:
    partitions = Partitions(64, KeyDistribution.uniform())
    by_quota = OnDemandThroughput(WRITE, partitions, 50_000)
    assert by_quota.available(45_000 * QUANTA_PER_UNIT) == (40_000 * QUANTA_PER_UNIT, ThrottleCause.ACCOUNT)
    by_maximum = OnDemandThroughput(WRITE, partitions, 50_000, 900)
    assert by_maximum.available(1_000 * QUANTA_PER_UNIT) == (900 * QUANTA_PER_UNIT, ThrottleCause.MAX_ON_DEMAND)


def test_hot_key_is_refused_by_its_partition() -> None:
    table = OnDemandThroughput(WRITE, Partitions(8, KeyDistribution.single_hot_key(100)))
    assert table.serve(1_500 * QUANTA_PER_UNIT, 2) == 2_000 * QUANTA_PER_UNIT
    assert table.refused == {ThrottleCause.KEY_RANGE: 1_000 * QUANTA_PER_UNIT}
