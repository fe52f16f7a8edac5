"""A shared budget whose workers take turns, overlap, stop, are killed and begin cold: never more than its rate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.client.budget_world import BUDGET, BudgetWorld
from tests.client.memory_budget import SECOND

# One stretch of work: idle seconds before it, the number of requests, the units of each, the part of them that is known
# before, and how it ends: with the share given back, kept, or by a kill, after which another process begins.
STRETCH = st.tuples(
    st.sampled_from([0.0, 0.01, 0.3, 2.0, 7.0, 70.0]),
    st.integers(1, 12),
    st.sampled_from([1, 60, 150, 1_500]),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from(["gives back", "keeps", "is killed"]),
)
WARM = [(3.0, 10, 60, 1.0, "gives back")] * 4


@given(st.lists(st.lists(STRETCH, min_size=1, max_size=4), min_size=1, max_size=6), st.booleans())
@example([WARM] * 5, False)
@example([[(0.0, 1, 1_500, 1.0, "gives back")] * 3] * 4, True)
@example([[(0.0, 1, 60, 1.0, "keeps"), (70.0, 10, 60, 1.0, "keeps")]] * 5, True)
def test_workers_never_consume_more_than_the_rate_together(
    stretches: list[list[tuple[float, int, int, float, str]]], starts_full: bool
) -> None:
    world = BudgetWorld()

    def worker(mine: list[tuple[float, int, int, float, str]]) -> Callable[[], None]:
        def work() -> None:
            pacer = world.pacer(starts_full=starts_full)
            for idle, count, units, known, end in mine:
                world.pause(idle)
                for _ in range(count):
                    world.send(pacer, units, units * known)
                if end == "gives back":
                    pacer.give_back()
                elif end == "is killed":
                    pacer = world.pacer(starts_full=starts_full)

        return work

    world.run(*(worker(mine) for mine in stretches))
    largest = max(units for mine in stretches for _, _, units, *_ in mine)
    assert world.worst(under_way=largest * world.pacers) <= 1


@pytest.mark.parametrize("workers", [1, 2, 5, 20, 50])
@pytest.mark.parametrize("count", [1, 10])
def test_workers_in_turn_share_the_rate_however_many_have_rested(workers: int, count: int) -> None:
    world = BudgetWorld()
    pacers = [world.pacer() for _ in range(workers)]

    def work() -> None:
        for pacer in pacers:
            world.send(pacer, 1)
            pacer.give_back()
        world.pause(5)
        world.sent.clear()
        began = world.now
        while world.now - began < 20 * SECOND:
            pacer = pacers.pop(0)
            for _ in range(count):
                world.send(pacer, 60)
            pacer.give_back()
            pacers.append(pacer)

    world.run(work)
    seconds = (world.now - world.sent[0][0]) / SECOND
    mean = sum(units for _, units in world.sent) / seconds
    # what nobody leases between two turns is lost: some 20 ms of each
    assert BUDGET * 0.8 <= mean <= BUDGET * 1.01
    assert world.worst(under_way=60) <= 1


def test_debt_is_paid_under_leases_only() -> None:
    world = BudgetWorld()
    pacers = [world.pacer() for _ in range(10)]

    def work() -> None:
        for _ in range(6):
            for pacer in pacers:
                # a request of three seconds of the rate, sent once the bucket has one of them
                world.send(pacer, 3 * BUDGET)
                pacer.give_back()

    world.run(work)
    seconds = (world.now - world.sent[0][0]) / SECOND
    assert sum(units for _, units in world.sent) <= BUDGET * (seconds + 1) + 10 * 3 * BUDGET


def test_request_that_waits_for_long_renews_its_lease_and_wastes_nothing() -> None:
    world = BudgetWorld()
    pacer = world.pacer()

    def work() -> None:
        for _ in range(4):
            world.send(pacer, 20 * BUDGET)

    world.run(work)
    assert world.now - world.sent[0][0] == pytest.approx(61 * SECOND, rel=0.03)


def test_workers_that_wait_through_renewals_keep_their_shares() -> None:
    world = BudgetWorld()
    ended: list[int] = []

    def work() -> None:
        pacer = world.pacer()
        for _ in range(6):
            # each waits for twenty seconds of half of the rate
            world.send(pacer, 10 * BUDGET)
        ended.append(world.now)

    world.run(work, work)
    # after each of the last requests there is a debt
    assert [(at - world.sent[0][0]) / SECOND for at in ended] == pytest.approx([100, 100], rel=0.1)
