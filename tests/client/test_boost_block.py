"""The block of a boost against the coordinator's own code in memory: renewals, cancellation, lost answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from highwater import Boost, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.handlers.coordinator.call import Call, RefusedError
from tests.handlers.test_boost_coordinator import LOADER, World


@dataclass
class Wire(CoordinatorClient):
    """Carries requests to the coordinator, but for what *lose* loses."""

    world: World = field(default_factory=World)
    lose: Callable[[str], str] = lambda _: ""
    sent: list[str] = field(default_factory=list)

    def send(self, action: str, **members: Any) -> dict[str, Any]:
        self.sent.append(action)
        lost = self.lose(action)
        if lost == "request":
            raise CoordinatorUnavailableError("no answer")
        given = {name: value for name, value in members.items() if value is not None}
        try:
            answer = self.world.coordinator().serve(Call(LOADER, action, given))
        except RefusedError as refused:
            raise BoostRefusedError(refused.status, str(refused)) from refused
        if lost == "answer":
            raise CoordinatorUnavailableError("no answer")
        return answer


@dataclass
class Clock:
    """Seconds that pass as the block waits for them."""

    now: float = 0.0
    waited: list[float] = field(default_factory=list)


class Ended(threading.Event):
    """An event whose waits take no time; it is set once so many are over."""

    def __init__(self, clock: Clock, most: int) -> None:
        super().__init__()
        self._clock, self._most = clock, most

    def wait(self, timeout: float | None = None) -> bool:
        if self.is_set():
            return True
        self._clock.waited.append(timeout or 0.0)
        self._clock.now += timeout or 0.0
        if len(self._clock.waited) > self._most:
            self.set()
        return self.is_set()


def boost(wire: Wire, clock: Clock, most_waits: int = 100) -> Boost:
    return Boost(
        table="orders",
        members={"write": 100},
        minutes=10,
        client=wire,
        timeout=timedelta(minutes=5),
        clock=lambda: clock.now,
        _ended=Ended(clock, most_waits),
    )


def test_lease_is_renewed_when_a_third_is_left_and_a_lost_renewal_soon_again() -> None:
    losses = iter(["", "request", "request", "", ""])
    wire, clock = Wire(lose=lambda action: next(losses) if action == "renew" else ""), Clock()
    made = boost(wire, clock, most_waits=4)
    made.begin()
    # the capacity took its time, of which the lease knows
    clock.now += 150
    made.keep_renewed()
    assert made._renewer is not None
    made._renewer.join(10)
    assert clock.waited == [pytest.approx(250), pytest.approx(400), 60, 60, pytest.approx(400)]
    assert wire.sent == ["begin", "renew", "renew", "renew", "renew"]


def test_boost_that_is_over_is_renewed_no_longer() -> None:
    wire, clock = Wire(), Clock()
    made = boost(wire, clock)
    made.begin()
    wire.world.ask("release", id=made.id)
    made.keep_renewed()
    assert made._renewer is not None
    made._renewer.join(10)
    assert wire.sent == ["begin", "renew"]


def test_begin_whose_answer_is_lost_is_given_back() -> None:
    wire = Wire(lose=lambda action: "answer" if action == "begin" else "")
    with pytest.raises(CoordinatorUnavailableError), boost(wire, Clock()):
        pytest.fail("the block must not run")
    assert wire.sent == ["begin", "release"]
    assert wire.world.floor == 12


def test_refused_boost_is_not_given_back() -> None:
    wire = Wire()
    made = boost(wire, Clock())
    made.members["write"] = 0
    with pytest.raises(BoostRefusedError), made:
        pytest.fail("the block must not run")
    assert wire.sent == ["begin"]


def test_cancelled_block_gives_back_what_its_thread_still_asks_for() -> None:
    begun, go_on = threading.Event(), threading.Event()
    wire = Wire()

    def hold(action: str) -> str:
        if action == "begin":
            begun.set()
            go_on.wait(60)
        return ""

    wire.lose = hold
    made = boost(wire, Clock())

    async def cancel() -> None:
        async def enter() -> None:
            async with made:
                pytest.fail("the block must not run")

        task = asyncio.create_task(enter())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(cancel())
    # what runs in threads ends with the loop
    assert wire.sent.count("release") >= 1
    assert wire.world.tick() == 12
    assert made._renewer is None
