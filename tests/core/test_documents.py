"""JSON that somebody else wrote is read, or refused by one error, whatever it is."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.core.documents import DocumentError, read_document

HUGE = "1e9999999999999999999"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(JSON)
def test_what_json_writes_is_read(value: object) -> None:
    assert read_document(json.dumps(value)) == value
    assert read_document(json.dumps(value).encode(), has_decimals=True) == value


@given(st.text(alphabet='[]{}":,.-+0123456789eEInfityNaul\\ud8\x00 \ufeff') | st.binary(), st.booleans())
@example("[" * 200_000, False)
@example('{"a":' * 100_000, True)
@example("-" + "9" * 5_000, False)
@example(f"-{HUGE}", True)
@example('{"max": [1e999]}', False)
@example("-1E+400", False)
def test_nothing_but_one_error_comes_out_and_all_numbers_are_finite(text: str | bytes, has_decimals: bool) -> None:
    with suppress(DocumentError):
        json.dumps(read_document(text, has_decimals=has_decimals), allow_nan=False, default=str)


@pytest.mark.parametrize(
    ("text", "problem", "why"),
    [
        ("", "syntax", "is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ("[NaN]", "syntax", "is not JSON (NaN is not a number of JSON)"),
        ("-Infinity", "syntax", "is not JSON (-Infinity is not a number of JSON)"),
        (None, "syntax", "is not JSON (got None)"),
        (b"\xff", "syntax", "is not JSON ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte)"),
        ("[" * 201 + "]" * 201, "depth", "is nested too deeply"),
        ('{"a":' * 20_000 + "[]" + "}" * 20_000, "depth", "is nested too deeply"),
        (HUGE, "number", f"has a number that cannot be read: {HUGE}"),
        (f"1e{'9' * 5_000}", "number", f"has a number that cannot be read: 1e{'9' * 58}"),
    ],
    ids=["empty", "NaN", "infinity", "none", "bytes", "deep", "very deep", "huge", "long"],
)
def test_error_says_what_is_wrong(text: object, problem: str, why: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(text, has_decimals=True)
    assert (refused.value.problem, str(refused.value)) == (problem, why)


def test_limit_of_levels_is_the_same_in_all_versions_of_python() -> None:
    """Some read tens of thousands of levels, which what reads the document then cannot descend."""
    assert read_document("[" * 200 + "]" * 200) is not None
    assert read_document("[" + "[], " * 500 + "[]]") == [[]] * 501


def test_fractions_keep_their_digits_if_they_are_to() -> None:
    text = "[0.1234567890123456789012345678901234567, 5]"
    assert read_document(text, has_decimals=True) == [Decimal("0.1234567890123456789012345678901234567"), 5]
    assert read_document(text) == [0.12345678901234568, 5]


def test_number_above_those_of_floats_is_read_as_a_decimal_only() -> None:
    assert read_document("[1e999]", has_decimals=True) == [Decimal("1e999")]
    with pytest.raises(DocumentError) as refused:
        read_document("[1e999]")
    assert (refused.value.problem, str(refused.value)) == ("number", "has a number that cannot be read: 1e999")
