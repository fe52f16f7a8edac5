"""Workers that share one budget on a driven clock: what they consume together, their shares, and what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

import highwater.budgets
from highwater.core.units import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.lockstep import SeatClock, play
from tests.local.world import create_tables, keyed, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("shared budgets")]
RATE = 120
# each write consumes twenty units
SIZE, COST = 19_600, 20
LANE = ("orders", None, Dimension.WRITE)
SETTLED_AFTER, MEASURED = 60, 40


@dataclass
class Worker:
    """Writes for some seconds as fast as its budget lets it, and notes what it consumed when.

    Attributes:
        cloud: The cloud.
        name: Its name.
        seconds: How long it works.
        skew: By how much its clock is off.
        acts: What to do before each write: gets the clock and the seconds since the start.
        estimate: The units that it pays for each write before it knows what was consumed.
        settles: Whether it replaces them afterwards by what was consumed.
        sent: The time, and the units, of each write.
    """

    cloud: LocalCloud
    name: str
    seconds: float = 120
    skew: float = 0.0
    acts: Callable[[Worker, SeatClock, float], None] = lambda *_: None
    estimate: float = COST
    settles: bool = True
    sent: list[tuple[float, float]] = field(default_factory=list)
    is_gone: bool = False
    control_writes: list[float] = field(default_factory=list)
    pacer: highwater.Pacer = field(init=False)

    def __call__(self, clock: SeatClock) -> None:
        dynamodb = self.cloud.client("dynamodb")
        record = _Record(self, self.cloud.client("dynamodb"), clock)
        budget = highwater.budgets.SharedBudget(
            name="nightly",
            clock=clock.monotonic_ns,
            wall=lambda: clock.time() + self.skew,
            pause=clock.sleep,
            table="leases",
            connect=lambda: record,
        )
        self.pacer = highwater.Pacer(clock=clock.monotonic_ns, pause=clock.sleep, starts_full=False, shared=budget)
        self.pacer.limit("orders", Dimension.WRITE, RATE)
        began = clock.time()
        while (since := clock.time() - began) < self.seconds:
            self.acts(self, clock, since)
            paid = self.pacer.wait({("orders", (None, Dimension.WRITE)): self.estimate})
            item = {"pk": {"S": f"{self.name}-{len(self.sent)}"}, "x": {"S": "y" * SIZE}}
            dynamodb.put_item(TableName="orders", Item=item)
            self.sent.append((clock.time(), COST))
            if self.settles:
                self.pacer.settle(paid, {("orders", (None, Dimension.WRITE)): float(COST)})


@dataclass
class _Record:
    """The client of a worker's record, which does not answer while the worker says so."""

    worker: Worker
    dynamodb: Any
    clock: SeatClock

    def get_item(self, **request: Any) -> Any:
        self._fail()
        return self.dynamodb.get_item(**request)

    def update_item(self, **request: Any) -> Any:
        self._fail()
        self.worker.control_writes.append(self.clock.time())
        return self.dynamodb.update_item(**request)

    def _fail(self) -> None:
        if self.worker.is_gone:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1/")


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as running:
        dynamodb = running.client("dynamodb")
        create_tables(dynamodb, units(10, 2_000), orders=["pk"])
        dynamodb.create_table(TableName="leases", **keyed("table", "item"), BillingMode="PAY_PER_REQUEST")
        yield running


def _check_bound(workers: list[Worker]) -> None:
    """In each window all workers together consume what the page on budgets says at most."""
    sent = sorted(each for worker in workers for each in worker.sent)
    under_way = sum(max((cost for _, cost in worker.sent), default=0.0) for worker in workers)
    for seconds in (1, 2, 5, 10, 30, 60):
        first, total = 0, 0.0
        for at, cost in sent:
            total += cost
            while sent[first][0] <= at - seconds:
                total -= sent[first][1]
                first += 1
            assert total <= RATE * (seconds + 1) + under_way, (seconds, at)


def _units(workers: list[Worker], begin: float, end: float) -> Counter[str]:
    start = min(worker.sent[0][0] for worker in workers if worker.sent)
    found: Counter[str] = Counter()
    for worker in workers:
        found[worker.name] += round(sum(cost for at, cost in worker.sent if begin <= at - start < end))
    return found


@pytest.mark.parametrize("count", [2, 20])
def test_workers_keep_within_one_budget_with_fair_shares_and_one_control_write_a_second(
    cloud: LocalCloud, count: int
) -> None:
    workers = [Worker(cloud, f"w{number:02}", seconds=SETTLED_AFTER + MEASURED) for number in range(count)]
    play(cloud.control, workers)
    _check_bound(workers)
    consumed = _units(workers, SETTLED_AFTER, SETTLED_AFTER + MEASURED)
    fair = RATE * MEASURED / count
    assert all(0.9 * fair <= each <= 1.1 * fair for each in consumed.values()), consumed
    assert sum(consumed.values()) >= 0.95 * RATE * MEASURED
    start = min(worker.control_writes[0] for worker in workers)
    writes = [at - start for worker in workers for at in worker.control_writes]
    settled = sum(SETTLED_AFTER <= at < SETTLED_AFTER + MEASURED for at in writes)
    assert 0.8 <= settled / MEASURED <= 1.4, settled


def test_share_of_a_worker_that_is_killed_is_used_by_the_others_after_its_lease(cloud: LocalCloud) -> None:
    workers = [Worker(cloud, name, seconds=20 if name == "killed" else 90) for name in ("a", "b", "killed")]
    play(cloud.control, workers)
    _check_bound(workers)
    consumed = _units(workers, 50, 85)
    assert consumed["killed"] == 0
    assert consumed["a"] + consumed["b"] >= 0.95 * RATE * 35


def test_worker_that_was_frozen_past_its_lease_sends_nothing_under_the_old_one(cloud: LocalCloud) -> None:
    def freeze(worker: Worker, clock: SeatClock, since: float) -> None:
        if since > 30:
            worker.acts = lambda *_: None
            clock.sleep(25)

    workers = [Worker(cloud, "a", seconds=110), Worker(cloud, "b", seconds=110)]
    workers.append(Worker(cloud, "frozen", seconds=110, acts=freeze))
    play(cloud.control, workers)
    _check_bound(workers)
    frozen = workers[-1]
    start = min(worker.sent[0][0] for worker in workers)
    woke = next(after for before, after in zip(frozen.sent, frozen.sent[1:], strict=False) if after[0] - before[0] > 20)
    renewal = max(at for at in frozen.control_writes if at <= woke[0])
    assert renewal >= start + 30 + 20, "it leases anew before it sends"
    assert _units(workers, 75, 105)["frozen"] >= 0.85 * RATE * 30 / 3


WRONG_BY_HALF = [COST * 0.5, COST * 1.5]


@pytest.mark.parametrize("estimate", WRONG_BY_HALF)
def test_worker_whose_estimates_are_wrong_has_its_share_and_keeps_within_the_bound_as_it_settles(
    cloud: LocalCloud, estimate: float
) -> None:
    workers = [Worker(cloud, "a", seconds=80), Worker(cloud, "wrong", seconds=80, estimate=estimate)]
    play(cloud.control, workers)
    _check_bound(workers)
    fair = RATE * 60 / 2
    assert all(0.9 * fair <= each <= 1.1 * fair for each in _units(workers, 20, 80).values())


@pytest.mark.parametrize("estimate", WRONG_BY_HALF)
def test_worker_that_never_settles_keeps_within_the_bound_by_its_estimates(cloud: LocalCloud, estimate: float) -> None:
    exact, wrong = Worker(cloud, "a", seconds=80), Worker(cloud, "wrong", seconds=80, estimate=estimate, settles=False)
    play(cloud.control, [exact, wrong])
    _check_bound([exact, Worker(cloud, "wrong", sent=[(at, estimate) for at, _ in wrong.sent])])
    consumed, fair = _units([exact, wrong], 20, 80), RATE * 60 / 2
    # what it consumes is its share, times the cost by the estimate; the other's share does not suffer
    assert 0.9 * fair <= consumed["wrong"] * estimate / COST <= 1.1 * fair
    assert 0.9 * fair <= consumed["a"] <= 1.1 * fair


@pytest.mark.parametrize("leases", [1.0, 1.5, 3.0])
def test_nobody_sends_without_a_lease_while_the_table_of_budgets_is_gone(cloud: LocalCloud, leases: float) -> None:
    length = 6.0  # for three workers

    class Losing(Worker):
        def __call__(self, clock: SeatClock) -> None:
            began, real = clock.time(), clock.sleep

            def sleep(seconds: float) -> None:
                real(seconds)
                self.is_gone = 30 <= clock.time() - began < 30 + leases * length

            clock.sleep = sleep  # type: ignore[method-assign] # the table is gone, and back, while the worker waits
            super().__call__(clock)

    workers: list[Worker] = [Losing(cloud, name, seconds=90) for name in ("a", "b", "c")]
    play(cloud.control, workers)
    _check_bound(workers)
    # at most what was leased before, and one request each that was under way
    assert sum(_units(workers, 30 + length, 30 + leases * length - 0.1).values()) <= 3 * COST
    assert sum(_units(workers, 30 + leases * length + length, 88).values()) >= 0.85 * RATE * (
        88 - 30 - leases * length - length
    )


def test_clocks_that_are_off_by_two_seconds_change_nothing(cloud: LocalCloud) -> None:
    workers = [Worker(cloud, f"{skew:+}", seconds=70, skew=skew) for skew in (-2.0, 0.0, 2.0)]
    play(cloud.control, workers)
    _check_bound(workers)
    consumed = _units(workers, 30, 70)
    assert all(0.9 * RATE * 40 / 3 <= each <= 1.1 * RATE * 40 / 3 for each in consumed.values()), consumed


# a process as a user writes it, in lock-step with the cloud
PROCESS = """
import json, sys, time
import boto3
import highwater
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import take_part
port, seat, seconds, rate, size = (int(each) for each in sys.argv[1:])
with take_part(CloudControl(port), seat):
    session = boto3.Session()
    pacing = highwater.pace(session, write=rate, table="orders", budget="nightly")
    dynamodb = session.client("dynamodb")
    began, sent = time.time(), []
    while time.time() < began + seconds:
        dynamodb.put_item(TableName="orders", Item={"pk": {"S": f"{seat}-{len(sent)}"}, "x": {"S": "y" * size}})
        sent.append(time.time())
    pacing.stop()
print(json.dumps(sent))
"""


def test_six_processes_that_pace_their_sessions_keep_within_one_budget(cloud: LocalCloud) -> None:
    seconds = SETTLED_AFTER + MEASURED
    environment = os.environ | cloud.environment() | {"HIGHWATER_PULSES": "leases"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, *map(str, (cloud.port, seat, seconds, RATE, SIZE))],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seat in cloud.control.take_seats(6)
    ]
    workers = []
    for number, process in enumerate(processes):
        said, failed = process.communicate()
        assert process.returncode == 0, failed
        workers.append(Worker(cloud, f"p{number}", sent=[(at, float(COST)) for at in json.loads(said)]))
    _check_bound(workers)
    consumed = _units(workers, SETTLED_AFTER - 20, SETTLED_AFTER + MEASURED - 5)
    fair = RATE * (MEASURED + 15) / 6
    assert all(0.9 * fair <= each <= 1.1 * fair for each in consumed.values()), consumed
