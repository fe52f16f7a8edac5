"""Environments of the function behind one queue, which Lambda starts and rests as it likes: what they write together.

`make benchmark NAME=turns` prints the figures.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from highwater.queues.drain import Drain, FunctionRun
from tests.client.budget_world import BudgetWorld
from tests.client.memory_budget import BEGAN, SECOND
from tests.client.memory_writes import MemoryWrites

BUDGET, SECONDS = 100, 20


class Queue:
    """Takes what it is asked for."""

    def change_message_visibility_batch(self, **_: Any) -> dict[str, Any]:
        return {}


@dataclass
class Table(MemoryWrites):
    """Answers a batch after eight milliseconds, and notes it."""

    world: BudgetWorld = field(default_factory=BudgetWorld)

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        self.world.sent.append((self.world.now, len(request["RequestItems"]["orders"])))
        self.world.pause(0.008)
        return super().batch_write_item(**request)


def _environment(world: BudgetWorld, table: Table) -> Drain:
    pacer = world.pacer()
    run = FunctionRun(sleep=world.pause)
    pacer.pause = run.pause
    return Drain(
        table="orders",
        key=("pk",),
        version=None,
        queue_url="queue",
        dead_letters_url="dead letters",
        dynamodb=table,
        sqs=Queue(),
        pacer=pacer,
        run=run,
        wall=world.wall,
        report=lambda _: None,
    )


def _record(number: int) -> dict[str, Any]:
    sent = {"SentTimestamp": str(round(BEGAN * 1_000))}
    body = json.dumps({"put": {"pk": f"o-{number}"}})
    return {"messageId": f"m{number}", "receiptHandle": "r", "body": body, "attributes": sent}


@pytest.mark.parametrize("choice", ["random", "newest", "oldest"])
@pytest.mark.parametrize(("arriving", "batch"), [(300, 25), (1_000, 100)])
@pytest.mark.parametrize("environments", [5, 20])
def test_environments_write_the_budget_together(environments: int, arriving: int, batch: int, choice: str) -> None:
    """All have served an event before, and rested. Which of those that rest Lambda takes is not documented."""
    world = BudgetWorld(budget=BUDGET)
    table = Table(world=world)
    idle = [_environment(world, table) for _ in range(environments)]
    chosen = random.Random(7)  # noqa: S311 - not for security

    def serve(drain: Drain, number: int, size: int) -> None:
        ends = world.now + 60 * SECOND
        records = [_record(number * batch + each) for each in range(size)]
        drain.serve({"Records": records}, lambda: (ends - world.now) / SECOND)
        idle.append(drain)

    def queue() -> None:
        for number, drain in enumerate([idle.pop() for _ in range(environments)]):
            serve(drain, number, 2)
        world.pause(5)
        world.sent.clear()
        began = world.now
        for number in range(arriving * SECONDS // batch):
            world.pause(max(began / SECOND + number * batch / arriving - world.now / SECOND, 0.0))
            while not idle:
                world.pause(0.05)
            if world.now - began > SECONDS * SECOND:
                break
            place = {"random": chosen.randrange(len(idle)), "newest": -1, "oldest": 0}[choice]
            drain = idle.pop(place)
            world.start(lambda drain=drain, number=number: serve(drain, number + environments, batch))  # type: ignore[misc]

    world.run(queue)
    # after the last event came, leases of those that are done stay unused for a while
    mean = sum(units for at, units in world.sent if at - world.sent[0][0] < SECONDS * SECOND) / SECONDS
    worst = world.worst(under_way=25)
    print(f"{environments:2} environments, {choice:6}, {arriving:5}/s arrive: {mean:5.1f}/s of {BUDGET}/s, ", end="")
    print(f"the worst window has {worst:.0%} of its bound")
    assert worst <= 1
    assert mean >= BUDGET * 0.8
