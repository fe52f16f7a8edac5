"""Requests under way at once: enough for the budget at each latency, never more than allowed, none after the end."""

from __future__ import annotations

import heapq
import threading
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any

import boto3
import pytest

import highwater
from highwater import PacedWorkError, Pacer, Put, TableScan
from highwater.bulk.budget import paced_client
from highwater.bulk.in_flight import InFlight
from highwater.bulk.scan import SegmentPages
from highwater.bulk.send import BatchSender, PageReader, Sent, WriteJob
from highwater.bulk.sharing import WorkEndedError
from highwater.bulk.write import BlockWriter
from highwater.core import Dimension
from highwater.core.pacing.pages import PageSize
from tests.client.memory_budget import AT, GONE, Record
from tests.client.memory_table import MemoryTable, refused
from tests.client.memory_writes import MemoryWrites, jobs_of
from tests.client.virtual_clock import SECOND, Clock

BUDGETS = [(1_000, 25), (300, 15), (1_000, 1), (50, 12.5)]
LATENCIES = [5, 30, 100, 200]


def sent_times(rate: int, units: float, milliseconds: int, seconds: int) -> list[int]:
    """When requests were sent that take so long each, as many at once as are wanted, from the first second on."""
    clock = Clock()
    pacer = clock.pacer()
    pacer.starts_full = False
    pacer.limit("orders", Dimension.WRITE, rate)
    in_flight = InFlight(lambda: float(rate), 1)
    under_way: list[tuple[int, int, Any]] = []
    sent: list[int] = []
    while clock.now < seconds * SECOND:
        now = clock.now
        while len(under_way) < in_flight.limit:
            clock.now = now
            paid = pacer.wait({AT: units})
            sent.append(clock.now)
            heapq.heappush(under_way, (clock.now + milliseconds * 1_000_000, len(sent), paid))
        clock.now, _, paid = heapq.heappop(under_way)
        pacer.settle(paid, {AT: units})
        in_flight.note(milliseconds / 1_000, units, has_waited=paid.has_waited)
    return sent


@pytest.mark.parametrize(("rate", "units"), BUDGETS)
@pytest.mark.parametrize("milliseconds", LATENCIES)
def test_budget_is_reached_at_each_latency_and_never_exceeded(rate: int, units: float, milliseconds: int) -> None:
    sent = sent_times(rate, units, milliseconds, 60)
    reached = units * sum(1 for at in sent if at < 60 * SECOND) / 60
    # more than 64 requests are never under way
    possible = min(rate, 64 * units * 1_000 / milliseconds)
    assert reached == pytest.approx(possible, rel=0.03)
    for width in (1, 10):
        most = max(bisect_left(sent, first + width * SECOND) - number for number, first in enumerate(sent))
        assert most * units <= rate * (width + 1) + units


def test_number_rises_when_the_budget_is_not_used_up_and_falls_when_half_is_enough() -> None:
    in_flight = InFlight(lambda: 1_000.0, 2)
    in_flight.note(0.2, 25.0, has_waited=True)
    assert in_flight.limit == 2, "the budget is used up by two"
    in_flight.note(0.2, 25.0, has_waited=False)
    assert in_flight.limit == 12, "eight, and half as many to spare"
    in_flight.note(0.19, 25.0, has_waited=False)
    assert in_flight.limit == 12
    for _ in range(30):
        in_flight.note(0.005, 25.0, has_waited=True)
    assert in_flight.limit == 3, "two are wanted, which is more than half of three"
    for _ in range(30):
        in_flight.note(0.0, 25.0, has_waited=True)
    assert in_flight.limit == 3, "and never fewer than in the beginning"
    in_flight.note(600.0, 25.0, has_waited=False)
    assert in_flight.limit == 64


def test_number_without_a_budget_or_a_cost_and_one_that_is_given() -> None:
    unlimited = InFlight(lambda: None, 3)
    unlimited.note(0.1, 25.0, has_waited=False)
    assert unlimited.limit == 64
    unknown = InFlight(lambda: 1_000.0, 3)
    unknown.note(0.1, 0.0, has_waited=False)
    assert unknown.limit == 3
    given = InFlight(lambda: 1_000.0, 3, 3)
    given.note(10.0, 25.0, has_waited=False)
    assert given.limit == 3


def test_latency_of_pages_and_of_writes_is_measured() -> None:
    clock = Clock()
    pacer = clock.pacer()
    pacer.limit("orders", Dimension.READ, 300)
    pacer.limit("orders", Dimension.WRITE, 1_000)
    reading, writing = InFlight(lambda: 300.0, 1), InFlight(lambda: 1_000.0, 1)
    table = MemoryTable({f"order-{n:03}": 8_000 for n in range(400)}, before=lambda _: clock.pause(0.2))
    arguments = {"TotalSegments": 1, "ConsistentRead": False, "TableName": "orders"}
    size = PageSize(300_000, is_consistent=False, item_bytes=8_000_000)
    PageReader(table, pacer, "orders", None, size, arguments, reading).read(0, None)
    # a page of 25 units
    assert reading.limit == 4
    writes = MemoryWrites(before=lambda *_: clock.pause(0.2))
    BatchSender(writes, pacer, "orders", writing).send(jobs(25))
    assert writing.limit == 12


def jobs(count: int) -> list[WriteJob]:
    return jobs_of([Put({"pk": f"order-{n}"}) for n in range(count)])


class Gate:
    """Lets requests through once so many are under way at once, and knows the most that were."""

    def __init__(self, at_once: int) -> None:
        self._full = threading.Barrier(at_once)
        self._lock = threading.Lock()
        self._now = self.most = 0

    def through(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        with suppress(threading.BrokenBarrierError):
            self._full.wait()
        with self._lock:
            self._now -= 1

    def open(self) -> None:
        """Hold nothing any more."""
        self._full.abort()


class GatedSender(BatchSender):
    """Sends nothing; all of its batches go through a gate."""

    __slots__ = ("gate",)
    gate: Gate

    def send(self, batch: Sequence[WriteJob]) -> Sent:
        self.gate.through()
        return Sent(units=float(len(batch)))


def test_as_many_batches_are_under_way_as_the_number_says_and_no_more() -> None:
    sender = GatedSender(MemoryWrites(), Clock().pacer(), "orders", in_flight=InFlight(lambda: 1_000.0, 8))
    sender.gate = Gate(8)
    with ThreadPoolExecutor(64) as pool:
        writer = BlockWriter(sender, ("pk",), pool, threading.Event())
        sent = writer.write([Put({"pk": f"order-{n}"}) for n in range(1_000)], 0, lambda _: None)
    assert sent == Sent(units=1_000.0)
    assert sender.gate.most == 8


def test_threads_that_read_are_added_while_a_scan_runs() -> None:
    limit, gate, read_by = [1], Gate(6), list[int]()

    def read(_: int, key: Any) -> dict[str, Any]:
        if limit[0] == 1:
            read_by.append(threading.get_ident())
            limit[0] = 6 if len(read_by) == 20 else 1
        else:
            gate.through()
        done = 1 + (0 if key is None else key["done"])
        return {} if done == 20 else {"LastEvaluatedKey": {"done": done}}

    pages = SegmentPages(read, dict.fromkeys(range(60)), lambda: limit[0])
    # the other pages are read by six at once, or not at all
    assert len(list(islice(pages, 20 + 6 * 50))) == 320
    gate.open()
    pages.stop()
    assert (len(set(read_by)), len(read_by), gate.most) == (1, 20, 6)


def test_threads_end_when_fewer_are_needed_and_the_others_read_the_rest() -> None:
    limit, gate, read_by = [6], Gate(6), list[int]()

    def read(_: int, key: Any) -> dict[str, Any]:
        done = 1 + (0 if key is None else key["done"])
        if done == 1:
            gate.through()
            limit[0] = 1
        else:
            read_by.append(threading.get_ident())
        return {} if done == 40 else {"LastEvaluatedKey": {"done": done}}

    pages = SegmentPages(read, dict.fromkeys(range(6)), lambda: limit[0])
    assert len(list(pages)) == 240
    # each of the six may have begun with one more page
    assert len(set(read_by[6:])) == 1


def test_nothing_is_sent_once_the_work_has_ended_and_its_budget_is_paid_back() -> None:
    clock, table, writes = Clock(), MemoryTable({"order-1": 900}), MemoryWrites()
    pacer = clock.pacer()
    for dimension in (Dimension.READ, Dimension.WRITE):
        pacer.limit("orders", dimension, 10)
    arguments = {"TotalSegments": 1, "ConsistentRead": False, "TableName": "orders"}
    stopped = threading.Event()
    stopped.set()
    size = PageSize(10_000, is_consistent=False)
    reader = PageReader(table, pacer, "orders", None, size, arguments, is_stopped=stopped)
    sender = BatchSender(writes, pacer, "orders", is_stopped=stopped)
    with pytest.raises(WorkEndedError) as reading:
        reader.read(0, None)
    with pytest.raises(WorkEndedError) as writing:
        sender.send(jobs(5))
    assert str(reading.value) == str(writing.value) == "the work has ended"
    assert (table.asked, writes.requests) == ([], [])
    assert pacer.spent("orders", None, Dimension.WRITE) == (0, 0)
    assert not pacer.wait({AT: 10.0}).has_waited


@pytest.mark.parametrize("shared", [False, True])
def test_request_that_waits_for_its_budget_hears_within_a_second_that_the_work_has_ended(*, shared: bool) -> None:
    record, is_stopped, waits = Record(), threading.Event(), list[float]()

    def pause(seconds: float) -> None:
        waits.append(seconds)
        record.pause(seconds)
        if len(waits) == 3:
            is_stopped.set()

    pacer = Pacer(clock=lambda: record.now, pause=pause)
    if shared:
        # nobody answers, so there is no share to be had
        record.error = GONE
        pacer.shared = record.worker()
        pacer.shared.pause = pause
    pacer.limit("orders", Dimension.WRITE, 1)
    writes = MemoryWrites()
    sender = BatchSender(writes, pacer, "orders", is_stopped=is_stopped)
    if not shared:
        # the debt of ten minutes
        pacer.settle(pacer.wait({AT: 1.0}), {AT: 600.0})
    with pytest.raises(WorkEndedError):
        sender.send(jobs(5))
    assert (len(waits), writes.requests) == (3, [])
    assert max(waits) <= 1


def test_one_batch_that_fails_keeps_the_others_from_being_sent() -> None:
    writes = MemoryWrites()

    def fail(*_: Any) -> None:
        raise refused("ExpiredTokenException")

    writes.before = fail
    is_stopped = threading.Event()
    sender = BatchSender(writes, Clock().pacer(), "orders", is_stopped=is_stopped)
    puts = [Put({"pk": f"order-{n}"}) for n in range(500)]
    with ThreadPoolExecutor(4) as pool, pytest.raises(PacedWorkError, match="ExpiredTokenException"):
        BlockWriter(sender, ("pk",), pool, is_stopped).write(puts, 0, lambda _: None)
    assert writes.requests == [("batch", 25)]
    assert is_stopped.is_set()


def test_connections_are_as_many_as_requests_may_be_under_way() -> None:
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    assert paced_client(session).meta.config.max_pool_connections == 64


@pytest.mark.parametrize(
    ("megabytes", "more", "segments"),
    [
        (1, {}, 4),
        # each costs half a unit, together half a percent
        (8, {}, 10),
        (800, {}, 24),
        (800, {"workers": 1}, 4),
        (8_000, {}, 32),
    ],
)
def test_table_has_segments_enough_for_slow_answers(megabytes: int, more: dict[str, Any], segments: int) -> None:
    table = MemoryTable({f"order-{n}": 1_048_576 for n in range(megabytes)})
    assert TableScan(table="orders", read=300, request={}, session=table, **more).plan.segments == segments


def test_writes_with_any_number_of_threads_arrive() -> None:
    table = MemoryWrites()
    highwater.write("orders", [Put({"pk": f"order-{n}"}) for n in range(3_000)], write=1e9, session=table)
    assert len(table.items) == 3_000
