"""Which minute a decrease was sized by, as the capacity after it shows."""

from __future__ import annotations

import pytest

from acceptance.parts.scale_in import _sized_by, _way_of


def test_each_way_of_sizing_a_decrease_comes_to_units_of_its_own() -> None:
    # 60, 60, 90 four times and 27 nine times, at 70 %
    assert _sized_by() == {
        86: "the first of the fifteen minutes",
        129: "the highest of the fifteen minutes",
        39: "the last of the fifteen minutes",
        69: "the average of the fifteen minutes",
    }


@pytest.mark.parametrize(("units", "way"), [(40, "last"), (131, "highest"), (88, "first"), (66, "average")])
def test_request_that_slipped_into_another_minute_changes_nothing(units: int, way: str) -> None:
    assert _way_of(units) == f"the {way} of the fifteen minutes"


def test_other_units_are_something_else() -> None:
    assert _way_of(200) == "something else"
