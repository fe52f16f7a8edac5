"""Plans told by tags."""

from __future__ import annotations

import pytest

from highwater.core import HighWaterMark
from highwater.core.scaler import Mode
from highwater.core.scaler.plan import plan_of_tags

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
