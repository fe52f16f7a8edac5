"""What the constructs leave in a parameter for the scaler, read back."""

from __future__ import annotations

import pytest

from highwater.core import Capacity, IndexCapacity, Plan
from highwater.core.scaler import Mode, ScaledPlan

PLAN = Plan(read=Capacity.fixed(7), write=Capacity.autoscaled(min_capacity=12, max_capacity=400))


@pytest.mark.parametrize(
    ("region", "parameter", "label"),
    [
        (None, "/highwater/plans/Prod-Scaler/orders", "orders"),
        ("eu-west-1", "/highwater/plans/Prod-Scaler/eu-west-1/orders", "eu-west-1/orders"),
    ],
)
def test_plan_is_read_back_from_its_parameter(region: str | None, parameter: str, label: str) -> None:
    scaled = ScaledPlan(table="orders", mode=Mode.DIRECT, plan=PLAN, region=region, scaler="Prod-Scaler")
    assert (scaled.parameter, scaled.label) == (parameter, label)
    assert ScaledPlan.from_parameter(scaled.parameter, scaled.to_json()) == scaled


def test_indexes_that_the_table_has_follow_it() -> None:
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN, is_tagged=True).with_indexes(["by-day"])
    assert scaled.plan.indexes == (IndexCapacity(index_name="by-day"),)
    assert scaled.is_tagged


@pytest.mark.parametrize("value", ["[]", '{"mode": "often", "plan": {}}', '{"mode": "floor"}', "no json"])
def test_value_that_is_no_plan_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^(TypeError|ValueError|KeyError|JSONDecodeError): "):
        ScaledPlan.from_parameter("/highwater/plans/orders", value)
