"""What the scaler knows of a table: plans that the constructs leave in a parameter, and plans told by tags."""

from __future__ import annotations

import pytest

from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan
from highwater.core.scaler import Mode, ScaledPlan, ScalerSettings
from highwater.core.scaler.plan import plan_of_tags

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


def test_price_of_a_throttled_unit_is_told_where_it_is_not_the_usual_one() -> None:
    usual = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN)
    dear = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN, throttle_price_requests=1_430)
    assert "throttle_price" not in usual.to_json()
    read = ScaledPlan.from_parameter("/highwater/plans/orders/orders", dear.to_json())
    assert read.settings == ScalerSettings(mode=Mode.FLOOR, throttle_price_requests=1_430)
    wrong = dear.to_json().replace("1430", "-3")
    message = r"\AValueError: throttle_price_requests must be from 0 to 1,000,000, got -3\Z"
    with pytest.raises(ValueError, match=message):
        ScaledPlan.from_parameter("/highwater/plans/orders/orders", wrong)


def test_indexes_that_the_table_has_follow_it() -> None:
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN, is_tagged=True).with_indexes(["by-day"])
    assert scaled.plan.indexes == (IndexCapacity(index_name="by-day"),)
    assert scaled.is_tagged


@pytest.mark.parametrize("value", ["[]", '{"mode": "often", "plan": {}}', '{"mode": "floor"}', "no json"])
def test_value_that_is_no_plan_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^(TypeError|ValueError|KeyError|DocumentError): "):
        ScaledPlan.from_parameter("/highwater/plans/orders", value)


TAGS = {
    "highwater:managed": "direct",
    "highwater:read-min": "7",
    "highwater:read-max": "900",
    "highwater:write-min": "21",
    "highwater:write-max": "500",
    "owner": "orders",
}


def test_tags_are_a_plan() -> None:
    scaled = plan_of_tags("orders", TAGS, "eu-west-1")
    assert (scaled.label, scaled.mode, scaled.is_tagged) == ("eu-west-1/orders", Mode.DIRECT, True)
    assert [(t.label, t.capacity.min_capacity, t.capacity.max_capacity) for t in scaled.plan.targets()] == [
        ("table read", 7, 900),
        ("table write", 21, 500),
    ]
    assert scaled.plan.mark == HighWaterMark.none(), "no deploy raises the table to a mark"


@pytest.mark.parametrize(
    ("tag", "value", "message"),
    [
        ("managed", "yes", "tag highwater:managed must be floor or direct, got 'yes'"),
        ("managed", None, "tag highwater:managed must be floor or direct, got no such tag"),
        ("read-max", None, "tag highwater:read-max must be whole units per second such as 40, got no such tag"),
        ("write-min", "12.5", "tag highwater:write-min must be whole units per second such as 40, got '12.5'"),
        ("write-min", "-3", "tag highwater:write-min must be whole units per second such as 40, got '-3'"),
        ("write-max", "20", "table write max_capacity: got 20, allowed: 21 (min_capacity) or more"),
        (
            "write-max",
            "1000000000",
            "tag highwater:write-max must be whole units per second such as 40, got '1000000000'",
        ),
        (
            "write-max",
            "100000000",
            "table write max_capacity: got 100000000, allowed: up to 40000, the account's quota for a table or index",
        ),
        ("read-min", "0", "table read min_capacity: got 0, allowed: whole units per second, 1 or more"),
    ],
)
def test_tags_that_are_none_are_refused(tag: str, value: str | None, message: str) -> None:
    tags = {key: told for key, told in TAGS.items() if key != f"highwater:{tag}"}
    if value is not None:
        tags[f"highwater:{tag}"] = value
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is below
        plan_of_tags("orders", tags)
    assert str(refused.value) == message


def test_every_bound_that_is_wrong_is_told_at_once() -> None:
    tags = TAGS | {"highwater:read-min": "0", "highwater:write-max": "20"}
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is below
        plan_of_tags("orders", tags)
    assert str(refused.value) == (
        "table read min_capacity: got 0, allowed: whole units per second, 1 or more; "
        "table write max_capacity: got 20, allowed: 21 (min_capacity) or more"
    )
