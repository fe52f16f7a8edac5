"""Who decides about a table decides from the same input: the scaler's ticks, the coordinator's turns, `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws.coordinator_table import LeaseTable
from highwater.aws.observe import Kept
from highwater.cli.situation import Situation, read_situations
from highwater.core.scaler import Mode, ScaledPlan
from highwater.core.scaler.decision import decision_document
from tests.core.leases import lease
from tests.handlers.test_pulsed_turn import PLAN, WRITE, World
from tests.memory_aws.leases import MemoryDynamo
from tests.memory_aws.stage import NOW


class NoLogs:
    """CloudWatch Logs without a log group."""

    def get_paginator(self, operation: str) -> NoLogs:
        assert operation == "describe_log_groups"
        return self

    def paginate(self, **_: str) -> Iterator[dict[str, Any]]:
        yield {"logGroups": []}


def explained(world: World, mode: Mode, kept: Kept | None) -> Situation:
    scaled = ScaledPlan(table="orders", mode=mode, plan=PLAN)
    found = list(read_situations(scaled, world.stage.region_of(None), NoLogs(), kept))
    return next(each for each in found if isinstance(each, Situation) and each.target.key == WRITE)


@pytest.mark.parametrize("mode", [Mode.FLOOR, Mode.DIRECT])
@pytest.mark.parametrize("event", ["tick", "boost"])
@pytest.mark.parametrize("jump", [0, 900])
def test_explain_says_what_the_next_turn_does_for_a_fleet_that_pulses(mode: Mode, event: str, jump: int) -> None:
    world = World(mode)
    client: Any = MemoryDynamo()
    leases = LeaseTable("leases", client)
    boost = lease(units=70, start=NOW - timedelta(minutes=1), end=NOW + timedelta(minutes=9))
    leases.change("orders", lambda _: (None, [boost]), NOW)
    world.stage.kept = replace(world.stage.kept, leases=leases)
    if jump:
        world.jump(jump)
    situation = explained(world, mode, world.stage.kept)
    assert situation.decision is not None
    assert situation.notes == ()
    assert situation.boosts == (boost,)
    assert situation.decision.boosted == 70
    outcome = world.stage.serve({"highwater": event, "tables": ["orders"]})
    (decided,) = [each for each in outcome.decisions if each["target"] == "table write"]
    assert decision_document(situation.decision).items() <= decided.items()
    # without the fleet's pulses it would be another
    blind = explained(World(mode), mode, Kept())
    assert blind.decision is not None
    assert blind.decision.reason != decided["reason"]


def test_explain_says_what_it_could_not_read_and_decides_without_it() -> None:
    world = World(Mode.FLOOR)
    world.pulses.refuses = "query"
    situation = explained(world, Mode.FLOOR, world.stage.kept)
    assert situation.notes == (
        "orders: its fleet's pulses could not be read: An error occurred (InternalServerError) when calling the query "
        "operation: it rests",
    )
    assert situation.document()["notes"] == list(situation.notes)
    assert situation.decision is not None
    assert situation.decision.granted == 90
