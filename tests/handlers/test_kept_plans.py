"""Jobs that wait for their capacity do not have Systems Manager read at each of their questions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from highwater.core import Capacity, Units
from highwater.core.scaler import Mode
from highwater.handlers.boosts.refusal import RefusedError
from tests.handlers.test_boost_coordinator import PLAN, World

SECOND = timedelta(seconds=1)


def reads(world: World) -> int:
    return sum(call == "read_plans_of boosts orders" for call in world.region.calls)


def test_a_job_that_asks_every_two_seconds_has_the_plan_read_twice_a_minute() -> None:
    world = World()
    world.ask()
    # once for the request, once for the scaler's turn, which sets the floor
    assert reads(world) == 2
    for _ in range(30):
        world.region.now += 2 * SECOND
        world.ask("status")
    assert reads(world) == 4


def test_a_boost_is_granted_by_the_plan_of_a_deploy_that_has_just_ended() -> None:
    world = World()
    world.ask("list")
    world.region.plans[0] = replace(
        world.region.plans[0], plan=replace(PLAN, write=Capacity.autoscaled(max_capacity=50))
    )
    (granted,) = world.ask(write=400)["targets"]
    assert granted["units"] < 50
    assert reads(world) == 3, "for the list, for the request, and for the turn"
    world.ask("status")
    assert reads(world) == 3, "what the request read is kept"


def test_a_table_that_leaves_is_refused_after_half_a_minute() -> None:
    world = World()
    world.ask("list")
    world.region.plans[0] = replace(world.region.plans[0], is_released=True)
    world.region.now += 29 * SECOND
    assert world.ask("list")["boosts"] == []
    world.region.now += SECOND
    with pytest.raises(RefusedError) as told:
        world.ask("list")
    assert str(told.value) == "orders: no plan of this coordinator; add the table to it and deploy"


def test_a_table_that_was_just_added_or_taken_up_again_is_found_at_once() -> None:
    world = World()
    left = world.region.plans.pop()
    with pytest.raises(RefusedError):
        world.ask("list")
    world.region.plans.append(replace(left, is_released=True))
    with pytest.raises(RefusedError):
        world.ask("list")
    world.region.plans[0] = left
    assert world.ask("list")["boosts"] == []


def test_each_table_has_its_own_plan() -> None:
    world = World()
    world.region.add_table("items", PLAN, Units(5, 5), Mode.FLOOR)
    assert [world.ask("list", table=table)["table"] for table in ("orders", "items", "orders")] == [
        "orders",
        "items",
        "orders",
    ]
    assert [call for call in world.region.calls if call.startswith("read_plans_of")] == [
        "read_plans_of boosts orders",
        "read_plans_of boosts items",
    ]
