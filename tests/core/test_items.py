"""The bytes of items and values, as the DynamoDB Developer Guide states them ("DynamoDB item sizes and formats")."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.core.items import bytes_per_unit, item_bytes, page_units, value_bytes, write_units_of


@pytest.mark.parametrize(
    ("value", "size"),
    [
        pytest.param({"S": "größe"}, 7, id="text in UTF-8"),
        pytest.param({"N": "0"}, 1, id="zero"),
        pytest.param({"N": "7"}, 2, id="digit"),
        pytest.param({"N": "12345"}, 4, id="two digits a byte"),
        pytest.param({"N": "-1234"}, 4, id="sign"),
        pytest.param({"N": "+1234"}, 3, id="sign of a positive number"),
        pytest.param({"N": "00123.4500"}, 4, id="zeros before and behind do not count"),
        pytest.param({"N": "12000"}, 2, id="nor do zeros of a whole number"),
        pytest.param({"N": "1.5E+100"}, 2, id="nor does the exponent"),
        pytest.param({"N": "-" + "123456789" * 4 + "12"}, 21, id="longest number"),
        pytest.param({"B": b"four"}, 4, id="bytes"),
        pytest.param({"B": bytearray(b"four!")}, 5, id="array of bytes"),
        pytest.param({"B": "Zm91cg=="}, 4, id="bytes in base 64"),
        pytest.param({"SS": ["a", "bcd"]}, 4, id="set of texts"),
        pytest.param({"NS": ["7", "-12345"]}, 7, id="set of numbers"),
        pytest.param({"BS": [b"four", b"six"]}, 7, id="set of bytes"),
        pytest.param({"BOOL": False}, 1, id="truth"),
        pytest.param({"NULL": True}, 1, id="null"),
        pytest.param({"L": []}, 3, id="empty list"),
        pytest.param({"L": [{"S": "ab"}, {"L": [{"S": "c"}]}]}, 3 + 1 + 2 + 1 + (3 + 1 + 1), id="list in a list"),
        pytest.param({"M": {}}, 3, id="empty map"),
        pytest.param({"M": {"key": {"S": "ab"}, "k": {"S": "c"}}}, 3 + 2 + 5 + 2, id="map"),
    ],
)
def test_bytes_of_a_value(value: dict[str, Any], size: int) -> None:
    assert value_bytes(value) == size
    assert item_bytes({"name": value, "größe": {"S": "a"}}) == 4 + size + 7 + 1


def test_units_of_bytes_are_rounded_up() -> None:
    assert [write_units_of(size) for size in (0, 1, 1_024, 1_025, 409_600)] == [1, 1, 1, 2, 400]
    assert [page_units(size, is_consistent=True) for size in (0, 4_096, 4_097)] == [1, 1, 2]
    assert [page_units(size, is_consistent=False) for size in (0, 4_096, 4_097)] == [0.5, 0.5, 1]
    assert (bytes_per_unit(is_consistent=True), bytes_per_unit(is_consistent=False)) == (4_096, 8_192)
