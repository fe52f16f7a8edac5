"""Partitions: how many, what they refuse, how they split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT, KeyDistribution, Partitions
from highwater_lab.physics.partitions import HASHES, WHOLE, partitions_for

WRITE, READ = Dimension.WRITE, Dimension.READ
DISTRIBUTIONS = st.one_of(
    st.just(KeyDistribution.uniform()),
    st.just(KeyDistribution.rolling()),
    st.builds(KeyDistribution.single_hot_key, st.integers(1, 100), st.integers(1, 30)),
    st.builds(KeyDistribution.zipf, st.sampled_from([0.5, 0.99, 1.5]), st.sampled_from([10, 1_000])),
)


def _units(quanta: int) -> float:
    return quanta / QUANTA_PER_UNIT


@pytest.mark.parametrize(
    ("read", "write", "size_gb", "count"),
    [
        pytest.param(1_000, 1_000, 0, 2, id="the developer guide's first example"),
        pytest.param(5_000, 2_000, 0, 4, id="its second"),
        pytest.param(1, 1, 0, 1, id="never none"),
        pytest.param(3_000, 1_000, 0, 2, id="exactly two"),
        pytest.param(3_000, 1_001, 0, 3, id="one unit more"),
        pytest.param(1, 1, 35, 4, id="by size"),
    ],
)
def test_partitions_for_throughput_and_size(read: int, write: int, size_gb: int, count: int) -> None:
    assert partitions_for(read, write, size_gb) == count


def test_growth_doubles_until_it_is_enough() -> None:
    partitions = Partitions(4, KeyDistribution.uniform())
    partitions.grow(5)
    assert partitions.count == 8
    partitions.grow(17)
    assert partitions.count == 32
    partitions.grow(3)
    assert partitions.count == 32, "partitions are never merged"


def test_growth_by_size_splits_one_after_another() -> None:
    partitions = Partitions(8, KeyDistribution.uniform())
    partitions.grow_by_size(81)
    assert partitions.count == 9


def test_evenly_spread_keys_are_refused_above_the_sum_of_all_partitions() -> None:
    partitions = Partitions(4, KeyDistribution.uniform())
    assert partitions.refused(4_000 * QUANTA_PER_UNIT, WRITE) == 0
    assert _units(partitions.refused(5_000 * QUANTA_PER_UNIT, WRITE)) == 1_000
    assert _units(partitions.refused(13_000 * QUANTA_PER_UNIT, READ)) == 1_000


def test_hot_key_is_refused_above_one_partition_however_many_there_are() -> None:
    for count in (1, 2, 64):
        partitions = Partitions(count, KeyDistribution.single_hot_key(100))
        assert _units(partitions.refused(1_700 * QUANTA_PER_UNIT, WRITE)) == 700
        assert partitions.split_for_heat(1_700 * QUANTA_PER_UNIT, WRITE) == 0 or count < 64


def test_splits_for_heat_isolate_a_hot_key_and_leave_only_what_it_itself_cannot_have() -> None:
    partitions = Partitions(1, KeyDistribution.single_hot_key(40))
    rate = 2_000 * QUANTA_PER_UNIT
    assert _units(partitions.refused(rate, WRITE)) == 1_000
    for _ in range(50):
        partitions.split_for_heat(rate, WRITE)
    assert partitions.refused(rate, WRITE) == 0, "800/s on the key, 1,200/s beside it"
    for _ in range(50):
        partitions.split_for_heat(4_000 * QUANTA_PER_UNIT, WRITE)
    assert _units(partitions.refused(4_000 * QUANTA_PER_UNIT, WRITE)) == pytest.approx(600, abs=1)


@given(st.integers(1, 100), st.integers(1, 200))
def test_shards_have_the_share_of_their_key_and_differ_by_a_millionth(percent: int, shards: int) -> None:
    sharded, plain = KeyDistribution.single_hot_key(percent, shards), KeyDistribution.single_hot_key(percent)
    weights = [weight for _, weight in sharded.heavy]
    assert (sum(weights), len(weights)) == (percent * WHOLE // 100, shards)
    assert max(weights) - min(weights) <= 1
    assert sharded.without_shards() == plain.without_shards() == plain


def test_shards_share_partitions_by_chance_until_these_are_split() -> None:
    keys = KeyDistribution.single_hot_key(100, 10)
    partitions = Partitions(8, keys)
    rate = 5_000 * QUANTA_PER_UNIT
    # 500 a second for each shard, so a partition has room for two
    by_partition = [partitions.find(at) for at, _ in keys.heavy]
    above = sum(max(by_partition.count(place) - 2, 0) for place in range(8))
    assert _units(partitions.refused(rate, WRITE)) == 500 * above
    for _ in range(10):
        partitions.split_for_heat(rate, WRITE)
    assert partitions.refused(rate, WRITE) == 0


def test_keys_that_roll_with_time_are_never_split() -> None:
    partitions = Partitions(16, KeyDistribution.rolling())
    assert partitions.split_for_heat(9_000 * QUANTA_PER_UNIT, WRITE) == 0
    assert _units(partitions.refused(9_000 * QUANTA_PER_UNIT, WRITE)) == 8_000


@given(DISTRIBUTIONS, st.integers(1, 40))
def test_shares_of_all_partitions_are_the_whole(keys: KeyDistribution, count: int) -> None:
    shares = [keys.share(HASHES * n // count, HASHES * (n + 1) // count) for n in range(count)]
    assert WHOLE - count <= sum(shares) <= WHOLE


@given(DISTRIBUTIONS, st.integers(1, 40), st.integers(0, 60_000), st.sampled_from(list(Dimension)))
def test_never_more_is_refused_than_asked_and_a_split_never_refuses_more(
    keys: KeyDistribution, count: int, units: int, dimension: Dimension
) -> None:
    partitions = Partitions(count, keys)
    rate = units * QUANTA_PER_UNIT
    refused = partitions.refused(rate, dimension)
    assert 0 <= refused <= rate
    assert (refused > 0) <= (rate > partitions.hot_rate[dimension])
    partitions.split_for_heat(rate, dimension)
    # shares are whole millionths
    assert partitions.refused(rate, dimension) <= refused + rate * partitions.count // WHOLE


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KeyDistribution.single_hot_key(40, 0), "a hot key has from 1 to 1,000 shards, got 0"),
        (lambda: KeyDistribution.single_hot_key(40, 1_001), "a hot key has from 1 to 1,000 shards, got 1,001"),
        (lambda: KeyDistribution.single_hot_key(0), "the hot key's share must be between 1 and 100 percent, got 0"),
        (
            lambda: KeyDistribution.zipf(0.0),
            "zipf needs an exponent above 0 and at most 4 and at least one key, got exponent 0.0 and 100000 keys",
        ),
    ],
)
def test_distribution_refuses_what_is_none(make: object, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        make()  # type: ignore[operator]
    assert str(refused.value) == message
