"""The lowest floor during a deploy, seen by services that may refuse to answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from acceptance.tables import LowestFloor
from highwater.core import Dimension
from highwater.core.names import TargetName
from tests.acceptance.fake_place import FakePlace, refusal

NAME = TargetName("orders", None, Dimension.WRITE)
SECOND = timedelta(seconds=1)
THROTTLED = refusal("ThrottlingException", "Rate exceeded")


class _AutoScaling:
    """Answers with these floors, one after the other; a call of `None` is throttled."""

    def __init__(self, floors: list[int | None]) -> None:
        self._floors = iter(floors)

    def describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        if (floor := next(self._floors)) is None:
            raise THROTTLED
        return {"ScalableTargets": [{"MinCapacity": floor, "MaxCapacity": 100}]}


@pytest.mark.parametrize(
    ("floors", "lowest", "seconds"),
    [
        pytest.param([40, 10, 40], 10, 1, id="low-for-a-second"),
        pytest.param([40, None, 10, 40], 10, 1, id="a-refusal-is-left-out"),
        pytest.param([None, None, None], None, None, id="never-seen"),
        pytest.param([40, None, 45], 40, 0, id="never-too-low"),
    ],
)
def test_lowest_floor(floors: list[int | None], lowest: int | None, seconds: int | None) -> None:
    place = FakePlace({"application-autoscaling": _AutoScaling(floors)})
    seen = LowestFloor(place, NAME, 40)
    for _ in floors:
        before = place.at
        place.let_pass(SECOND)
        seen.look(before)
    assert (seen.floor, seen.seconds) == (lowest, seconds)
