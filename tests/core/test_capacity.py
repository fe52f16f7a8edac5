"""Capacity: what the two factories make."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Capacity, Dimension
from highwater.core.plan.capacity import is_deploy_time
from tests.core.plans_to_check import DEPLOY_TIME


def test_autoscaled_by_default_tracks_70_percent_without_cooldowns() -> None:
    capacity = Capacity.autoscaled(min_capacity=3, max_capacity=14)
    assert (capacity.min_capacity, capacity.max_capacity, capacity.target_utilization_percent) == (3, 14, 70)
    assert (capacity.scale_in_cooldown, capacity.scale_out_cooldown) == (timedelta(0), timedelta(0))
    assert capacity.is_autoscaled
    assert not capacity.disable_scale_in


def test_autoscaled_may_fall_to_a_single_unit_by_default() -> None:
    assert Capacity.autoscaled(max_capacity=14).min_capacity == 1


def test_fixed_has_equal_bounds_and_no_policy() -> None:
    capacity = Capacity.fixed(17)
    assert (capacity.min_capacity, capacity.max_capacity) == (17, 17)
    assert not capacity.is_autoscaled


def test_on_demand_has_its_maxima_by_dimension() -> None:
    capacity = Capacity.on_demand(max_read=1, max_write=2_000)
    assert (capacity.of(Dimension.READ), capacity.of(Dimension.WRITE)) == (1, 2_000)
    assert Capacity.on_demand().of(Dimension.READ) is None


@pytest.mark.parametrize("units", [0, -3, 2.5, True, "70"])
@pytest.mark.parametrize("name", ["max_read", "max_write"])
def test_maximum_on_demand_that_is_none_is_refused(name: str, units: Any) -> None:
    told = (
        f"Capacity.on_demand: {name}: got {units!r}, allowed: whole units per second, 1 or more; leave it out for the "
        "account's quota"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        Capacity.on_demand(**{name: units})


def test_capacities_declared_alike_are_equal() -> None:
    assert Capacity.autoscaled(min_capacity=3, max_capacity=14) == Capacity.autoscaled(
        min_capacity=3, max_capacity=14, target_utilization_percent=70
    )
    assert Capacity.autoscaled(min_capacity=14, max_capacity=14) != Capacity.fixed(14)


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        pytest.param(Capacity.autoscaled(min_capacity=DEPLOY_TIME, max_capacity=9), True, id="floor"),
        pytest.param(Capacity.autoscaled(min_capacity=1, max_capacity=DEPLOY_TIME), True, id="ceiling"),
        pytest.param(Capacity.fixed(DEPLOY_TIME), True, id="fixed units"),
        pytest.param(Capacity.autoscaled(min_capacity=1, max_capacity=9), False, id="whole numbers"),
    ],
)
def test_capacity_is_deploy_time_when_a_bound_is(capacity: Capacity, expected: bool) -> None:
    assert capacity.is_deploy_time is expected


@pytest.mark.parametrize("value", [0, 70, -1.5, float("nan"), float("inf"), float("-inf"), "70", None, True])
def test_is_deploy_time_of_what_anyone_could_write_is_false(value: object) -> None:
    assert not is_deploy_time(value)


def test_dimensions_are_told_by_their_names() -> None:
    assert [str(dimension) for dimension in Dimension] == ["read", "write"]
