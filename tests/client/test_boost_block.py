"""The block of a boost against the coordinator's own code in memory: renewals, cancellation, lost answers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from highwater import Boost, BoostNotReadyError, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.handlers.coordinator.coordinator import Call
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers.boost_world import LOADER, World


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


def renew_to_the_end(made: Boost) -> None:
    """Renew the lease until the boost is over, or its waits are."""
    made.keep_renewed()
    assert made._renewer is not None
    made._renewer.join(10)


def test_lease_is_renewed_when_a_third_is_left_and_a_lost_renewal_soon_again() -> None:
    losses = iter(["", "request", "request", "", ""])
    wire, clock = Wire(lose=lambda action: next(losses) if action == "renew" else ""), Clock()
    made = boost(wire, clock, most_waits=4)
    made.begin()
    # the capacity took its time, of which the lease knows
    clock.now += 150
    renew_to_the_end(made)
    assert clock.waited == [pytest.approx(250), pytest.approx(400), 60, 60, pytest.approx(400)]
    assert wire.sent == ["begin", "renew", "renew", "renew", "renew"]


def test_renewals_go_on_after_an_error_of_any_kind() -> None:
    def fail(action: str) -> str:
        if action == "renew" and wire.sent.count("renew") == 1:
            raise RuntimeError("the provider of credentials failed")
        return ""

    wire, clock = Wire(lose=fail), Clock()
    made = boost(wire, clock, most_waits=3)
    made.begin()
    made._renew_on()
    assert wire.sent == ["begin", "renew", "renew", "renew"]


def test_boost_that_is_over_is_renewed_no_longer() -> None:
    wire, clock = Wire(), Clock()
    made = boost(wire, clock)
    made.begin()
    wire.world.ask("release", id=made.id)
    renew_to_the_end(made)
    assert wire.sent == ["begin", "renew", "begin"]
    assert wire.world.floor == 12


def test_boost_whose_lease_was_lost_with_its_table_is_begun_again() -> None:
    wire, clock = Wire(), Clock()
    made = boost(wire, clock, most_waits=2)
    made.begin()
    wire.world.dynamodb.items.clear()
    assert 12 in [wire.world.tick(1) for _ in range(5)]
    renew_to_the_end(made)
    assert wire.sent == ["begin", "renew", "begin", "renew"]
    assert wire.world.floor == 112


def test_boost_that_is_given_back_while_it_is_begun_again_is_released() -> None:
    def give_back(_action: str) -> str:
        if wire.sent.count("begin") == 2:
            made._ended.set()
        return ""

    wire, clock = Wire(lose=give_back), Clock()
    made = boost(wire, clock)
    made.begin()
    wire.world.dynamodb.items.clear()
    renew_to_the_end(made)
    assert wire.sent == ["begin", "renew", "begin", "release"]
    assert wire.world.floor == 12


def test_begin_whose_answer_is_lost_is_given_back() -> None:
    wire = Wire(lose=lambda action: "answer" if action == "begin" else "")
    with pytest.raises(CoordinatorUnavailableError), boost(wire, Clock()):
        pytest.fail("the block must not run")
    assert wire.sent == ["begin", "release"]
    assert wire.world.floor == 12


def test_failed_polls_are_not_yet_until_the_timeout() -> None:
    losses = iter([*["request"] * 4, ""])
    wire, clock = Wire(lose=lambda action: next(losses) if action == "status" else ""), Clock()
    made = boost(wire, clock)
    made.begin()
    assert made.wait().is_ready
    assert wire.sent == ["begin", *["status"] * 5]
    # 2 s, then half as long again each time, up to a quarter less or more
    for waited, seconds in zip(clock.waited, (2, 3, 4.5, 6.75), strict=True):
        assert 0.75 * seconds <= waited <= 1.25 * seconds
    assert len(set(clock.waited)) == 4


def test_polls_that_fail_until_the_timeout_are_told_with_their_last_error() -> None:
    wire, clock = Wire(lose=lambda action: "request" if action == "status" else ""), Clock()
    with pytest.raises(BoostNotReadyError) as missed, boost(wire, clock):
        pytest.fail("the block must not run")
    assert str(missed.value) == "orders: the capacity has not come in 0:05:00: no answer"
    # each poll sends one request, ten seconds apart in the end
    assert 30 <= wire.sent.count("status") <= 45
    assert max(clock.waited) <= 12.5
    assert clock.now <= 300
    assert wire.sent[-1] == "release"


def test_boost_that_is_over_while_it_is_waited_for_is_refused_at_once() -> None:
    wire, clock = Wire(), Clock()
    made = boost(wire, clock)
    made.begin()
    wire.world.ask("release", id=made.id)
    with pytest.raises(BoostRefusedError):
        made.wait()
    assert wire.sent == ["begin", "status"]


class Impatient(threading.Event):
    """An event whose waits end at once, and are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return self.is_set()


def test_end_of_the_block_waits_two_seconds_for_a_coordinator_that_hangs() -> None:
    may_answer, is_given_back = threading.Event(), threading.Event()

    def hang(action: str) -> str:
        if action == "release":
            assert may_answer.wait(60)
            is_given_back.set()
        return ""

    wire = Wire(lose=hang)
    made = boost(wire, Clock())
    made.members["hold"] = "start"
    released = Impatient()
    made._released = released
    with made:
        pass
    assert released.waited == [2.0]
    assert not is_given_back.is_set()
    # it is released all the same, once the coordinator answers
    may_answer.set()
    assert is_given_back.wait(60)


def test_client_that_asks_less_often_knows_what_was_found() -> None:
    client = CoordinatorClient(coordinator="https://one.example/")
    assert client.url == "https://one.example/"
    once = client.with_attempts(1)
    assert (once.attempts, client.attempts) == (1, 6)
    assert vars(once)["url"] == "https://one.example/"


def test_refused_boost_is_not_given_back() -> None:
    wire = Wire()
    made = boost(wire, Clock())
    made.members["write"] = 0
    with pytest.raises(BoostRefusedError), made:
        pytest.fail("the block must not run")
    assert wire.sent == ["begin"]


def test_boost_whose_poll_is_refused_is_given_back() -> None:
    wire = Wire()

    def refuse(action: str) -> str:
        if action == "status":
            # of a warm function that does not know the grant yet, or of credentials that have expired
            raise BoostRefusedError(403, "the caller may not boost orders")
        return ""

    wire.lose = refuse
    with pytest.raises(BoostRefusedError), boost(wire, Clock()):
        pytest.fail("the block must not run")
    assert wire.sent == ["begin", "status", "release"]
    assert wire.world.floor == 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_forked_process_that_leaves_the_block_does_not_give_its_parents_boost_back() -> None:
    wire = Wire()
    made = boost(wire, Clock())
    made.begin()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            made.__exit__(None, None, None)
            os.write(writing, " ".join(wire.sent).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"begin"
    os.close(reading)
    made.__exit__(None, None, None)
    assert wire.sent == ["begin", "release"]


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
