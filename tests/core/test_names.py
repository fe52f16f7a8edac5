"""Names of targets and alarms: other parts, and users, look for these very texts."""

from __future__ import annotations

import pytest

from highwater.core import Dimension
from highwater.core.names import TargetName


@pytest.mark.parametrize(
    ("index", "dimension", "resource", "scalable", "alarm"),
    [
        (None, Dimension.READ, "table/orders", "dynamodb:table:ReadCapacityUnits", "orders read"),
        (None, Dimension.WRITE, "table/orders", "dynamodb:table:WriteCapacityUnits", "orders write"),
        ("by_x", Dimension.READ, "table/orders/index/by_x", "dynamodb:index:ReadCapacityUnits", "orders/by_x read"),
        ("by_x", Dimension.WRITE, "table/orders/index/by_x", "dynamodb:index:WriteCapacityUnits", "orders/by_x write"),
        ("b.x-y", Dimension.READ, "table/orders/index/b.x-y", "dynamodb:index:ReadCapacityUnits", "orders/b.x-y read"),
    ],
)
def test_target_has_the_names_of_auto_scaling_and_of_its_alarm(
    index: str | None, dimension: Dimension, resource: str, scalable: str, alarm: str
) -> None:
    name = TargetName("orders", index, dimension)
    assert (name.resource_id, name.scalable_dimension, name.alarm) == (resource, scalable, f"Highwater {alarm}")
    assert TargetName.find(resource, scalable) == name


@pytest.mark.parametrize(
    ("resource_id", "scalable_dimension"),
    [
        ("service/cluster/web", "ecs:service:DesiredCount"),
        ("table/orders", "ecs:service:DesiredCount"),
        ("cluster/orders", "dynamodb:table:ReadCapacityUnits"),
    ],
)
def test_target_of_another_service_is_not_found(resource_id: str, scalable_dimension: str) -> None:
    assert TargetName.find(resource_id, scalable_dimension) is None
