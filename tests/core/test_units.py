"""Pairs of read and write units: each dimension is judged by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Dimension, Units
from highwater.core.units import as_timedelta

BUSY_READS, BUSY_WRITES = Units(read=31, write=12), Units(read=14, write=23)


def test_at_least_takes_the_higher_of_each_dimension() -> None:
    assert BUSY_READS.at_least(BUSY_WRITES) == BUSY_WRITES.at_least(BUSY_READS) == Units(read=31, write=23)


def test_units_of_a_dimension_are_its_own() -> None:
    assert (BUSY_READS.of(Dimension.READ), BUSY_READS.of(Dimension.WRITE)) == (31, 12)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, Units(31, 12), id="none given"),
        pytest.param({Dimension.READ: 47}, Units(47, 12), id="reads"),
        pytest.param({Dimension.WRITE: 58}, Units(31, 58), id="writes"),
        pytest.param({Dimension.WRITE: 58, Dimension.READ: 47}, Units(47, 58), id="both"),
    ],
)
def test_with_units_replaces_just_the_dimensions_given(given: dict[Dimension, int], expected: Units) -> None:
    assert BUSY_READS.with_units(given) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(Units(31, 12), True, id="the same"),
        pytest.param(Units(30, 11), True, id="less of both"),
        pytest.param(Units(30, 12), True, id="less of one"),
        pytest.param(Units(32, 12), False, id="more reads"),
        pytest.param(Units(31, 13), False, id="more writes"),
        pytest.param(Units(1, 13), False, id="more writes and fewer reads"),
        pytest.param(Units(32, 1), False, id="more reads and fewer writes"),
    ],
)
def test_units_cover_others_when_neither_dimension_is_below_theirs(other: Units, expected: bool) -> None:
    assert BUSY_READS.covers(other) is expected


class Length:
    """As a `Duration` of the CDK is, which the core does not import."""

    def to_seconds(self) -> int:
        return 95


def test_length_of_time_of_the_cdk_becomes_a_timedelta() -> None:
    assert as_timedelta(Length()) == timedelta(seconds=95)


def test_timedelta_stays_and_so_does_what_is_no_length_of_time() -> None:
    assert as_timedelta(timedelta(minutes=7)) == timedelta(minutes=7)
    wrong: Any = 5
    assert as_timedelta(wrong) == 5, "`check` reports it"
