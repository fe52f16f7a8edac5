"""Many state machines that start at one time: what their `BoostTask`s have the coordinator ask of AWS."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from highwater.client import task
from highwater.client.boost import BoostNotReadyError
from highwater.client.coordinator import BoostRefusedError, CoordinatorClient
from highwater.core.boosts import BoostCap, Caller
from highwater.core.scaler import Mode
from highwater.handlers.coordinator.coordinator import Call, Coordinator
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers.boost_world import World

JOBS: Final = 60
# of a `BoostTask`: tests/constructs/test_boost_task.py
FIRST, LAST, FACTOR = 3.0, 10.0, 1.5
# seconds until auto scaling has raised the capacity: docs/acceptance.md
READY_AFTER: Final = 35


@dataclass
class Night(World):
    """A coordinator for jobs that are callers of their own, as each `BoostTask` has a function of its own."""

    by_second: dict[int, Counter[str]] = field(default_factory=dict)

    def coordinator(self) -> Coordinator:
        caps = [BoostCap(caller=_caller(job).name, max_read=0, max_write=9) for job in range(JOBS)]
        return replace(super().coordinator(), read_caps=lambda: caps)

    def step(self, job: int, retries: int) -> None:
        """Run the first step of a job's state machine once, as often as Step Functions does until it has waited."""
        event = {
            "do": "begin",
            "table": "orders",
            "id": f"nightly-{job}",
            "retries": retries,
            "minutes": 30,
            "write": 5,
        }
        before = len(self.stage.wire.calls)
        with suppress(BoostNotReadyError):
            task.handler(event, None)
        made = [call.operation for call in self.stage.wire.calls[before:]]
        self.by_second.setdefault(self.stage.account.now, Counter()).update(made)


def _caller(job: int) -> Caller:
    return Caller(f"123456789012:role/Job{job}")


def _clients(world: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the functions of the jobs ask this coordinator, without the network between them."""

    class Client(CoordinatorClient):
        def send(self, action: str, **members: Any) -> dict[str, Any]:
            caller = _caller(int(members["id"].removeprefix("nightly-")))
            try:
                return world.coordinator().serve(Call(caller, action, members))
            except RefusedError as refused:
                raise BoostRefusedError(refused.status, str(refused)) from refused

    monkeypatch.setattr(task, "CoordinatorClient", Client)


def test_many_jobs_that_wait_cost_one_look_at_their_table_in_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    world, random_delays = Night(), random.Random(31)  # noqa: S311 - not for security
    _clients(world, monkeypatch)
    start = world.stage.account.now
    # when each job asks for the next time, and for how long it waits at most before it asks again
    asked = [(float(start), FIRST, job, 0) for job in range(JOBS)]
    while asked:
        at, delay, job, retries = heapq.heappop(asked)
        world.stage.advance(timedelta(seconds=int(at) - world.stage.account.now))
        world.step(job, retries)
        if at < start + READY_AFTER:
            heapq.heappush(asked, (at + random_delays.uniform(0, delay), min(delay * FACTOR, LAST), job, retries + 1))
    first, *polls = (counts for _, counts in sorted(world.by_second.items()))
    # a request each, and a turn that sets the floor: as many as there are jobs, also where they share a table
    assert first == {
        "GetParameters": 1 + JOBS,
        "DescribeTable": 1 + 2 * JOBS,
        "DescribeScalableTargets": 1 + 3 * JOBS,
        "RegisterScalableTarget": JOBS,
    }
    assert len(polls) >= READY_AFTER
    assert max(counts["GetParameters"] for counts in polls) <= 1
    # the function keeps a table's state for two seconds
    for operation in ("DescribeTable", "DescribeScalableTargets"):
        asked_in = [counts[operation] for counts in polls]
        assert max(asked_in) == 1
        assert sum(asked_in) <= len(polls) / 2 + 1
    assert {*first, *(name for counts in polls for name in counts)} == set(first)


@pytest.mark.parametrize(("mode", "metrics"), [(Mode.FLOOR, 4), (Mode.BOOSTS, 0)])
def test_each_minute_of_a_boost_costs_four_metrics_with_a_scaler_and_none_without(mode: Mode, metrics: int) -> None:
    world = World(mode=mode)
    world.ask(minutes=30)
    requested = []
    for _ in range(30):
        world.stage.wire.reset()
        world.tick(1)
        requested.append(sum(len(body["MetricDataQueries"]) for body in world.stage.wire.bodies("GetMetricData")))
    # the run at the lease's end is the thirtieth
    assert requested == [metrics] * 30
