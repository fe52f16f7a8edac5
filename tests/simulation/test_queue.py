"""A queue in front of a table: what waits, for how long, and that nothing is lost or written too fast."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.queues.messages import delay_seconds
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.queues.queue import WaitingWrites, drained
from highwater_lab.simulation import Buffer, QueueRun, ResourceSetup, Run, TargetSetup, simulate
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import START, WRITE, table, tracked, writes

ROOMY = TargetSetup.fixed(2_000)


def _run(traffic: Traffic, buffer: Buffer, write: TargetSetup = ROOMY, **more: Any) -> tuple[Run, QueueRun]:
    run = simulate(table(write, buffer=buffer, **more), traffic, Declared())
    assert run.queue is not None
    return run, run.queue


def test_surge_waits_and_is_written_at_the_rate_of_the_budget() -> None:
    # 400 a second above the rate for two minutes, and then 120 below it
    run, queue = _run(writes(310, 900, 900, *[380] * 8), Buffer(units=500))
    assert (queue.most_units, queue.most_at) == (48_000, 180)
    # 12,000 of the 22,800 units of the minute before are written then: the next was sent 28 s before its end
    assert (queue.oldest_seconds, queue.oldest_at) == (60 + 29, 300)
    assert (list(queue.ages[:5]), list(queue.ages[-2:])) == ([0, 27, 54, 80, 89], [0, 0])
    assert (queue.empty_at, queue.left_units) == (600, 0)
    assert queue.throttled_units == 0
    consumed = [quanta // 3_600 for quanta in run.target(WRITE).consumed]
    assert consumed == [310, *[500] * 8, 460, 380]


def test_queue_is_empty_from_the_minute_on_in_which_the_last_write_is_done() -> None:
    _, queue = _run(writes(310, 900, *[300] * 5), Buffer(units=500))
    assert (queue.most_units, queue.most_at, queue.empty_at, queue.left_units) == (24_000, 120, 240, 0)
    _, idle = _run(writes(310, 499), Buffer(units=500))
    assert (idle.most_units, idle.oldest_seconds, idle.empty_at) == (0, 0, 0)


def test_seconds_of_a_trace_are_kept() -> None:
    counts = [0] * 10 + [1_300] * 7 + [0] * 43
    traffic = Traffic.from_counts("seconds", {Stream(None, WRITE): counts}, bin_seconds=1, start=START)
    _, queue = _run(traffic, Buffer(units=400))
    # 900 a second more than are written, and the last of 9,100 is written 22.75 s after the first
    assert (queue.most_units, queue.most_at, queue.empty_at) == (6_300, 17, 33)
    # 400 of the last second's 1,300 are written in the last second but one: the others were sent 16 s before
    assert (queue.oldest_seconds, queue.oldest_at) == (16, 32)


def test_table_that_refuses_gets_its_writes_again_and_none_is_lost() -> None:
    run, queue = _run(writes(*[450] * 90, *[0] * 120), Buffer(units=500), TargetSetup.fixed(370))
    assert queue.throttled_units > 0
    assert queue.throttled_units == run.throttled_units
    assert queue.written_units == run.target(WRITE).consumed_units == 450 * 60 * 90
    assert (queue.left_units, queue.empty_at is not None) == (0, True)


def test_refused_write_comes_back_when_the_runtime_lets_it() -> None:
    waiting = WaitingWrites()
    assert waiting.step(0, 1, 70, 50) == 50
    for second in range(1, 400):
        assert waiting.step(second, 1, 0, 0) == 0
    waiting.settle(400, 50)
    # sent at the first second, so it waits for a tenth of its age
    assert delay_seconds(0, 400) == 40
    assert [waiting.step(second, 1, 0, 90) for second in range(400, 442)] == [20, *[0] * 39, 50, 0]


def test_indexes_get_their_part_of_what_is_written() -> None:
    by_day = ResourceSetup(index="by_day", read=TargetSetup.fixed(5), write=ROOMY, write_share_percent=50)
    by_user = replace(by_day, index="by_user")
    counts = {Stream(None, WRITE): [54_000, 54_000, 0], Stream("by_user", WRITE): [9_000, 27_000, 0]}
    traffic = Traffic.from_counts("both", counts, bin_seconds=60, start=START)
    run, _ = _run(traffic, Buffer(units=600), indexes=(by_day, by_user))
    by_minute = {
        target.index: [quanta // 3_600 for quanta in target.consumed]
        for target in run.targets
        if target.dimension is WRITE
    }
    # by_user has a column: a third of the table's writes over all of the traffic
    assert by_minute == {None: [600, 600, 600], "by_day": [300, 300, 300], "by_user": [200, 200, 200]}


def test_capacity_that_is_chosen_before_is_that_of_what_the_queue_lets_through() -> None:
    setup, traffic = table(tracked(), buffer=Buffer(units=490)), writes(1_700, 900, *[0] * 118)
    declared, fixed, bound = (run_policy(name, setup, traffic) for name in ("declared", "fixed", "clairvoyant"))
    assert declared.target(WRITE).capacity[0] == (0, 700)
    assert fixed.target(WRITE).capacity == ((0, 490),)
    assert bound.target(WRITE).consumed_units == (1_700 + 900) * 60


def test_queue_without_writes_does_nothing() -> None:
    reads = Traffic.from_counts("reads", {Stream(None, WRITE.READ): [60]}, bin_seconds=60, start=START)
    run = simulate(table(ROOMY, buffer=Buffer(units=500)), reads, Declared())
    assert run.queue is None


AMOUNTS = st.integers(0, 900)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 100)), min_size=1, max_size=40), st.sampled_from([1, 60]))
def test_law_what_was_sent_is_written_or_waits_and_no_second_is_above_the_rate(
    steps: list[tuple[int, int, int]], seconds: int
) -> None:
    """For any arrivals, rates and refusals."""
    waiting = WaitingWrites()
    sent = done = 0
    for number, (arriving, most, refused_percent) in enumerate(steps):
        at = number * seconds
        written = waiting.step(at, seconds, arriving, most)
        assert 0 <= written <= most
        refused = written * seconds * refused_percent // 100
        waiting.settle(at + seconds, refused)
        sent += arriving * seconds
        done += written * seconds - refused
        assert sent == done + waiting.quanta
        age = waiting.oldest_seconds(at + seconds)
        assert 0 <= age <= at + seconds
        assert (age == 0) == (waiting.quanta < QUANTA_PER_UNIT)


@given(st.lists(st.integers(0, 1_500), min_size=1, max_size=30), st.integers(1, 1_200))
def test_law_table_that_refuses_nothing_gets_what_drained_says(rates: list[int], units: int) -> None:
    traffic = writes(*rates)
    setup = table(ROOMY, buffer=Buffer(units=units))
    run = simulate(setup, traffic, Declared())
    assert run.queue is not None
    let_through = drained(Buffer(units=units), traffic).rates[Stream(None, WRITE)]
    assert [quanta // 60 for quanta in run.target(WRITE).consumed] == list(let_through)
    assert run.queue.written_units + run.queue.left_units == sum(rates) * 60


def test_age_of_a_backlog_is_that_at_the_end_of_each_bin() -> None:
    _, queue = _run(writes(*[700] * 30, *[0] * 60), Buffer(units=350))
    # what is written in the last minute of the hour was sent in the last half minute of the first half hour
    assert (queue.oldest_seconds, queue.oldest_at) == (3_540 - 1_770, 3_540)
    assert queue.empty_at == 3_600
