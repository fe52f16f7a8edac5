"""Value types as JSON objects: what is written is read back, and members that are left out have their usual value."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.codec import INSTANT, MINUTES, SECONDS, WHOLE, Codec, Field, many, one_of, or_none


@dataclass(frozen=True)
class Part:
    """A value within another."""

    dimension: Dimension
    units: int = 7


@dataclass(frozen=True)
class Whole:
    """A value with each form."""

    name: str
    at: datetime
    lead: timedelta
    cooldown: timedelta
    parts: tuple[Part, ...]
    ended: datetime | None


PART = Codec(Part, Field("dimension", "for", one_of(Dimension)), Field("units", form=WHOLE, left_out=7))
CODEC = Codec(
    Whole,
    Field("name"),
    Field("at", form=INSTANT),
    Field("lead", "lead_minutes", MINUTES),
    Field("cooldown", "cooldown_seconds", SECONDS, timedelta(0)),
    Field("parts", form=many(PART)),
    Field("ended", form=or_none(INSTANT)),
)
AT = datetime(2027, 3, 4, 5, 6, tzinfo=UTC)
DOCUMENT: dict[str, Any] = {
    "name": "a",
    "at": "2027-03-04T05:06:00+00:00",
    "lead_minutes": 11,
    "cooldown_seconds": 90,
    "parts": [{"for": "read", "units": 12}, {"for": "write"}],
    "ended": None,
}
_PAIR = (Part(Dimension.READ, 12), Part(Dimension.WRITE))
VALUE = Whole("a", AT, timedelta(minutes=11), timedelta(seconds=90), _PAIR, None)
_PARTS = st.builds(Part, st.sampled_from(Dimension), st.integers())
_INSTANTS = st.datetimes(timezones=st.just(UTC))
_TIMES = st.integers(0, 10**6)


def test_document_has_each_member_under_its_name() -> None:
    assert CODEC.write(VALUE) == DOCUMENT
    assert list(CODEC.write(VALUE)) == list(DOCUMENT)


@given(
    st.builds(
        Whole,
        st.text(),
        _INSTANTS,
        _TIMES.map(lambda minutes: timedelta(minutes=minutes)),
        _TIMES.map(lambda seconds: timedelta(seconds=seconds)),
        st.lists(_PARTS).map(tuple),
        st.none() | _INSTANTS,
    )
)
def test_what_is_written_is_read_back(value: Whole) -> None:
    assert CODEC.read(json.loads(json.dumps(CODEC.write(value)))) == value


def test_members_of_a_later_version_are_left_out() -> None:
    assert CODEC.read(DOCUMENT | {"later": 5}) == VALUE


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"at": "2027-03-04T05:06"}, ValueError("'2027-03-04T05:06' has no zone")),
        ({"parts": [{"units": 3}]}, KeyError("for")),
        ({"parts": [{"for": "both"}]}, ValueError("'both' is not a valid Dimension")),
        ({"parts": ["read"]}, TypeError("string indices must be integers, not 'str'")),
        ({"parts": None}, TypeError("'NoneType' object is not iterable")),
    ],
    ids=str,
)
def test_document_that_is_not_as_it_was_written_is_an_error(change: dict[str, Any], error: Exception) -> None:
    with pytest.raises(type(error)) as found:
        CODEC.read(DOCUMENT | change)
    assert str(found.value) == str(error)


@given(st.sampled_from(["lead_minutes", "cooldown_seconds", "units"]), st.integers() | st.floats())
@example("lead_minutes", 10**30)
@example("cooldown_seconds", 1e300)
@example("units", float("inf"))
def test_number_that_a_value_cannot_have_is_one_of_the_documented_errors(member: str, number: float) -> None:
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        CODEC.read(DOCUMENT | {member: number, "parts": [{"for": "read", member: number}]})
