"""Jobs that wait for their capacity do not have Systems Manager read at each of their questions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Capacity
from highwater.core.scaler import Mode
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers.boost_world import PLAN, World

SECOND = timedelta(seconds=1)


def _reads(world: World) -> list[Any]:
    return [body["Names"] for body in world.stage.wire.bodies("GetParameters")]


def _release(world: World) -> None:
    name = world.stage.parameter("orders")
    document = json.loads(world.stage.account.parameters[name])
    world.stage.account.parameters[name] = json.dumps(document | {"released": True})


def test_a_job_that_asks_every_two_seconds_has_the_plan_read_twice_a_minute(world: World) -> None:
    world.ask()
    # once for the request, once for the scaler's turn, which sets the floor
    assert len(_reads(world)) == 2
    for _ in range(30):
        world.stage.advance(2 * SECOND)
        world.ask("status")
    assert len(_reads(world)) == 4


def test_a_boost_is_granted_by_the_plan_of_a_deploy_that_has_just_ended(world: World) -> None:
    world.ask("list")
    world.stage.table("orders", replace(PLAN, write=Capacity.autoscaled(max_capacity=50)), Mode.BOOSTS)
    world.stage.advance(2 * SECOND)
    (granted,) = world.ask(write=400)["targets"]
    assert granted["units"] < 50
    assert len(_reads(world)) == 3, "for the list, for the request, and for the turn"
    world.ask("status")
    assert len(_reads(world)) == 3, "what the request read is kept"


def test_a_table_that_leaves_is_refused_after_half_a_minute(world: World) -> None:
    world.ask("list")
    _release(world)
    world.stage.advance(29 * SECOND)
    assert world.ask("list")["boosts"] == []
    world.stage.advance(SECOND)
    with pytest.raises(RefusedError) as told:
        world.ask("list")
    assert str(told.value) == "orders: no such table here; the coordinator has: none; add the table to it and deploy"


def test_a_table_that_was_just_added_or_taken_up_again_is_found_at_once(world: World) -> None:
    name = world.stage.parameter("orders")
    plan = world.stage.account.parameters.pop(name)
    with pytest.raises(RefusedError):
        world.ask("list")
    world.stage.account.parameters[name] = plan
    _release(world)
    with pytest.raises(RefusedError):
        world.ask("list")
    world.stage.account.parameters[name] = plan
    assert world.ask("list")["boosts"] == []


def test_each_table_has_its_own_plan(world: World) -> None:
    world.stage.table("items", PLAN)
    asked = ["orders", "items", "orders"]
    assert [world.ask("list", table=table)["table"] for table in asked] == asked
    assert _reads(world) == [[world.stage.parameter(table)] for table in ("orders", "items")]
