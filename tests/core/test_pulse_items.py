"""The items in which fleets add up their pulses, read and written."""

from __future__ import annotations

import fnmatch
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import (
    PULSE_SHARDS,
    Hint,
    Slots,
    amount_attribute,
    hints_of_shards,
    hints_of_text,
    hints_text,
    pulse_partition,
    pulse_partition_patterns,
    pulse_sort_key,
    slots_of_items,
)
from tests.core.examples import examples

READ, WRITE = Dimension.READ, Dimension.WRITE
law = settings(max_examples=examples(200))
_keys = st.tuples(st.none() | st.text(min_size=1, max_size=20), st.sampled_from([READ, WRITE]))


def test_keys_sort_by_minute_below_a_partition_of_the_tables_own() -> None:
    assert pulse_partition("eu-west-1/orders") == "pulse#eu-west-1/orders"
    assert pulse_partition("orders", 7) == "pulse#orders#7"
    assert pulse_sort_key(29_923_951) == "0029923951"


@pytest.mark.parametrize(
    ("slot", "key", "refused", "name"),
    [
        (600, (None, WRITE), False, "c0w"),
        (605, (None, READ), True, "t5r"),
        (603, ("by_status", WRITE), False, "c3w:by_status"),
    ],
)
def test_amounts_are_named_by_slot_and_target(slot: int, key: TargetKey, refused: bool, name: str) -> None:
    assert amount_attribute(slot, key, refused=refused) == name


def test_items_become_slots_of_each_target() -> None:
    found = slots_of_items(
        [(100, {"c4w": "12.5", "t5w": "3", "c5r": "0.5"}), (101, {"c0w": "7", "c1w": "9"})], 100, 606
    )
    assert found == {
        (None, WRITE): Slots(606, (None, None, None, None, 13, None, 7), (0, 0, 0, 0, 0, 3, 0)),
        (None, READ): Slots(606, (None, None, None, None, None, 1, None), (0,) * 7),
    }


@pytest.mark.parametrize("value", ["-1", "NaN", "Infinity", "1e13", "many", ""])
def test_what_no_fleet_can_have_asked_for_is_left_out(value: str) -> None:
    assert slots_of_items([(100, {"c0w": value, "c9w": "5", "x0w": "5", "c0": "5", "expires": "7"})], 100, 602) == {}


NO_HINTS = ["", "[]", "{", "[" * 100_000, '{"w":[1]}', '{"q":[1,2,3,4,5]}', '{"w":7}', f'{{"w":{"[" * 100_000}']
# beyond what a scaler can mean
NO_NUMBERS = [
    *('"a",2,3,4,5', "1,2,3,0,5", "1,2,3,101,5", "-1,2,3,4,5", "1,-2,3,4,5", "1,2,-3,4,5", "1,2,3,4,86401"),
    *("1,2,3,4,5,-6", "1,2,3,4,5,6,2", "1,1000000000000,3,4,5", "1,1e400,3,4,5", "1,Infinity,3,4,5", "1,NaN,3,4,5"),
    *("1,2.5,3,4,5", f"1,{'9' * 400},3,4,5", f"1,{'9' * 5_000},3,4,5"),
]


@pytest.mark.parametrize(
    "text", [*NO_HINTS, *(f'{{"w":[{numbers}]}}' for numbers in NO_NUMBERS)], ids=lambda text: text[:32]
)
def test_hints_that_make_no_sense_are_left_out(text: str) -> None:
    assert hints_of_text(text) == {}


def test_hints_are_short() -> None:
    assert (
        hints_text({(None, WRITE): Hint(179_543_707, 186, 11_160, 87, 17, 90)})
        == '{"w":[179543707,186,11160,87,17,90]}'
    )
    # of a scaler that did not know the last number, and of one that knows more
    assert hints_of_text('{"w":[179543707,186,11160,87,17,90,0,"new"]}') == {
        (None, WRITE): Hint(179_543_707, 186, 11_160, 87, 17, 90)
    }
    assert hints_of_text('{"w":[179543707,186,11160,87,17]}') == {
        (None, WRITE): Hint(179_543_707, 186, 11_160, 87, 17, 60)
    }


def test_hint_says_that_no_more_is_to_be_had() -> None:
    hint = Hint(179_543_707, 186, 11_160, 87, 17, 90, is_most=True)
    assert hints_text({(None, WRITE): hint}) == '{"w":[179543707,186,11160,87,17,90,1]}'
    for told in ("1", "true"):
        assert hints_of_text(f'{{"w":[179543707,186,11160,87,17,90,{told}]}}') == {(None, WRITE): hint}


def test_target_whose_hint_makes_no_sense_is_left_out_alone() -> None:
    assert hints_of_text('{"w":[1,2,3,0,5],"r":[1,2,3,4,5],"w:i":null}') == {(None, READ): Hint(1, 2, 3, 4, 5)}


_hints = st.builds(
    Hint,
    *(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**12), st.integers(1, 100)),
    *(st.integers(0, 86_400), st.integers(0, 3_600), st.booleans()),
)


@law
@given(st.dictionaries(_keys, _hints, max_size=4))
def test_hints_are_read_as_they_were_written(hints: dict[TargetKey, Hint]) -> None:
    assert hints_of_text(hints_text(hints)) == hints


@law
@given(
    st.dictionaries(
        st.tuples(st.integers(600, 640), _keys, st.booleans()), st.integers(0, 10**9), min_size=1, max_size=12
    )
)
def test_amounts_are_read_as_they_were_written(
    amounts: dict[tuple[int, TargetKey, bool], int],
) -> None:
    items: dict[int, dict[str, str]] = {}
    for (slot, key, refused), units in amounts.items():
        items.setdefault(slot // 6, {})[amount_attribute(slot, key, refused=refused)] = str(units)
    found = slots_of_items(items.items(), 100, 640)
    for (slot, key, refused), units in amounts.items():
        series = found[key].refused_units if refused else found[key].consumed_units
        assert series[slot - 600] == units
    assert set(found) == {key for _, key, _ in amounts}


def test_items_of_several_shards_add_up() -> None:
    found = slots_of_items([(100, {"c4w": "12.5", "t5w": "3"}), (100, {"c4w": "7.5", "t5w": "11"})], 100, 605)
    assert found == {(None, WRITE): Slots(605, (None, None, None, None, 21, None), (0, 0, 0, 0, 0, 14))}


@pytest.mark.parametrize("shard", range(PULSE_SHARDS))
def test_permission_covers_each_shard_of_a_table_and_no_other_table(shard: int) -> None:
    def is_covered(partition: str) -> bool:
        return any(fnmatch.fnmatchcase(partition, pattern) for pattern in pulse_partition_patterns("orders"))

    assert is_covered(pulse_partition("orders", shard))
    assert not is_covered(pulse_partition("orders2", shard))


@law
@given(st.dictionaries(st.integers(0, PULSE_SHARDS - 1), st.integers(1, 10**6)), st.integers(1, 100))
def test_demand_that_a_shard_knows_stands_for_the_fleets(units: dict[int, int], coverage: int) -> None:
    hint = Hint(600, 900, 0, coverage, 17)
    found = hints_of_shards({(None, WRITE): hint}, units)
    assert found[0] == {(None, WRITE): replace(hint, coverage_percent=found[0][None, WRITE].coverage_percent)}
    total = sum(units.values())
    for shard, hints in found.items():
        share = coverage if not units else coverage * units.get(shard, 0) / total
        # whole percents, rounded down twice, so that a process knows of too much rather than too little
        assert max(share - 2, 1) <= max(hints[None, WRITE].coverage_percent, 1) <= max(share, 1)
    assert {shard for shard, amount in units.items() if amount * 100 // total >= 5} <= set(found)
