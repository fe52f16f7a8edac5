"""A floor that is raised while a block runs: what each raise met, and that it ends with the block."""

from __future__ import annotations

from typing import Any

import pytest

from acceptance.tables import raising
from highwater.core import Dimension
from highwater.core.names import TargetName
from tests.acceptance.fake_place import FakePlace, refusal


class _Targets:
    """Application Auto Scaling, which may refuse what is registered."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.bounds: list[tuple[int, int]] = []

    def register_scalable_target(self, MinCapacity: int, MaxCapacity: int, **key: Any) -> None:
        assert key["ResourceId"] == "table/orders"
        if self.refuses:
            raise refusal("ConcurrentUpdateException", "You already have a pending update to an Auto Scaling resource.")
        self.bounds.append((MinCapacity, MaxCapacity))


@pytest.mark.parametrize(
    ("refuses", "answer", "bounds"), [(False, "accepted", [(46, 70)]), (True, "ConcurrentUpdateException", [])]
)
def test_raises_end_with_their_block_and_a_refused_one_is_counted(
    refuses: bool, answer: str, bounds: list[tuple[int, int]]
) -> None:
    targets = _Targets(refuses=refuses)
    place = FakePlace({"application-autoscaling": targets})
    with raising(place, TargetName("orders", None, Dimension.WRITE), range(46, 70), 70) as met:
        pass
    # the second raise would be due after a quarter of a minute
    assert (met, targets.bounds) == ([answer], bounds)
