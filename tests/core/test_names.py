"""Names of targets, alarms and kept plans: other parts, and users, look for these very texts."""

from __future__ import annotations

import pytest

from highwater.core import Dimension
from highwater.core.names import TargetName, names_of_parameter, plan_parameter, table_label


@pytest.mark.parametrize(
    ("name", "resource", "dimension", "alarm"),
    [
        pytest.param(
            TargetName("orders", None, Dimension.READ),
            "table/orders",
            "dynamodb:table:ReadCapacityUnits",
            "Highwater orders read",
            id="reads of a table",
        ),
        pytest.param(
            TargetName("orders", None, Dimension.WRITE),
            "table/orders",
            "dynamodb:table:WriteCapacityUnits",
            "Highwater orders write",
            id="writes of a table",
        ),
        pytest.param(
            TargetName("orders", "by_status", Dimension.READ),
            "table/orders/index/by_status",
            "dynamodb:index:ReadCapacityUnits",
            "Highwater orders/by_status read",
            id="reads of an index",
        ),
        pytest.param(
            TargetName("orders", "by_status", Dimension.WRITE),
            "table/orders/index/by_status",
            "dynamodb:index:WriteCapacityUnits",
            "Highwater orders/by_status write",
            id="writes of an index",
        ),
    ],
)
def test_target_has_the_names_of_auto_scaling_and_of_its_alarm(
    name: TargetName, resource: str, dimension: str, alarm: str
) -> None:
    assert (name.resource_id, name.scalable_dimension, name.alarm) == (resource, dimension, alarm)


@pytest.mark.parametrize(
    ("region", "label", "parameter"),
    [
        pytest.param(None, "orders", "/highwater/plans/Prod-Scaler/orders", id="where the scaler runs"),
        pytest.param(
            "eu-west-1", "eu-west-1/orders", "/highwater/plans/Prod-Scaler/eu-west-1/orders", id="in another region"
        ),
    ],
)
def test_plan_of_a_table_is_kept_under_its_name_and_region_and_found_again(
    region: str | None, label: str, parameter: str
) -> None:
    assert table_label("orders", region) == label
    assert plan_parameter("Prod-Scaler", "orders", region) == parameter
    assert names_of_parameter(parameter) == ("Prod-Scaler", "orders", region)


@pytest.mark.parametrize("index", [None, "by-day"])
@pytest.mark.parametrize("dimension", Dimension)
def test_target_is_found_by_the_names_that_auto_scaling_has_for_it(index: str | None, dimension: Dimension) -> None:
    name = TargetName("orders", index, dimension)
    assert TargetName.find(name.resource_id, name.scalable_dimension) == name


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
