"""A queue in front of a table's writes: what waits, since when, and what is written in each second."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import replace
from typing import Final, NamedTuple

from highwater.core import Dimension
from highwater.core.pacing.brake import Brake
from highwater.core.units import NANOSECONDS
from highwater.queues.messages import delay_seconds
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.simulation.background import MinuteMeter, look_seconds
from highwater_lab.simulation.setup import Buffer, QueueRun
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.traffic.series import Stream, Traffic

_WRITES: Final = Stream(None, Dimension.WRITE)


class _Part(NamedTuple):
    """Writes that were sent one after another, *rate* quanta a second, the last of them at second *end*."""

    end: int
    rate: int
    quanta: int

    @property
    def sent(self) -> int:
        """When the first of them was sent, to the second before."""
        return self.end - -(-self.quanta // self.rate)

    def split(self, quanta: int) -> tuple[_Part, _Part]:
        """Return the first *quanta* of them, and the others."""
        others = self.quanta - quanta
        return _Part(self.end - others // self.rate, self.rate, quanta), self._replace(quanta=others)


class WaitingWrites:
    """The writes that wait in a queue, in quanta. They are written in the order in which they were sent.

    Attributes:
        quanta: All that wait, with those that the table refused and that have not come back yet.
    """

    def __init__(self) -> None:
        self.quanta = 0
        self._ready: list[_Part] = []
        self._ready_quanta = 0
        self._returned: list[tuple[int, _Part]] = []
        self._taken: list[_Part] = []

    def step(self, at: int, seconds: int, arriving: int, most: int) -> int:
        """Advance by *seconds* from *at*; return how much is written in each of them.

        Args:
            at: The second.
            seconds: How many, 1 or more.
            arriving: Quanta that are sent to the queue in each second.
            most: The quanta that may be written in each second.
        """
        while self._returned and self._returned[0][0] < at + seconds:
            self._make_ready(heapq.heappop(self._returned)[1])
        if arriving:
            self.quanta += arriving * seconds
            self._make_ready(_Part(at + seconds, arriving, arriving * seconds))
        written = min(most, self._ready_quanta // seconds)
        left = written * seconds
        self.quanta -= left
        self._ready_quanta -= left
        while left:
            part = heapq.heappop(self._ready)
            if part.quanta > left:
                part, others = part.split(left)
                heapq.heappush(self._ready, others)
            self._taken.append(part)
            left -= part.quanta
        return written

    def settle(self, at: int, refused: int) -> None:
        """Have *refused* quanta of what was taken since the last call come back, the newest of it.

        They come back when the runtime lets them: after a tenth of their age, and a second at least.
        """
        self.quanta += refused
        while refused:
            part = self._taken.pop()
            if part.quanta > refused:
                part = part.split(part.quanta - refused)[1]
            refused -= part.quanta
            heapq.heappush(self._returned, (at + delay_seconds(0, at - part.sent), part))
        self._taken.clear()

    def oldest_seconds(self, at: int) -> int:
        """Return the age of the oldest write that waits; 0 if less than a unit waits."""
        if self.quanta < QUANTA_PER_UNIT:
            return 0
        return at - min([each.sent for each in (*self._ready[:1], *(part for _, part in self._returned))])

    def _make_ready(self, part: _Part) -> None:
        heapq.heappush(self._ready, part)
        self._ready_quanta += part.quanta


def drained(buffer: Buffer, traffic: Traffic) -> Traffic:
    """Return the traffic as a queue lets it through, if the table refuses nothing.

    The writes of each index that has a column of its own follow those of the table.
    """
    arrivals = traffic.rates.get(_WRITES)
    if arrivals is None:
        return traffic
    # as `WaitingWrites` does it where nothing is refused; only amounts matter here
    written, waiting, most = array("q"), 0, buffer.units * QUANTA_PER_UNIT
    for arriving in arrivals:
        waiting += arriving * traffic.bin_seconds
        rate = min(most, waiting // traffic.bin_seconds)
        waiting -= rate * traffic.bin_seconds
        written.append(rate)
    total = sum(arrivals)
    rates = {
        stream: array("q", [rate * sum(series) // total for rate in written]) if _is_tied(stream) and total else series
        for stream, series in traffic.rates.items()
    }
    return replace(traffic, rates=rates | {_WRITES: written}, counts=None)


def _is_tied(stream: Stream) -> bool:
    return stream.dimension is Dimension.WRITE and stream.index is not None


class RunningQueue:
    """The queue of a table in a simulation: writes what its budget and its brake let it, and again what was refused.

    Args:
        buffer: The queue.
        table: The table, under the traffic that `drained` returns.
        traffic: What is sent to the queue.
    """

    def __init__(self, buffer: Buffer, table: SimulatedTable, traffic: Traffic) -> None:
        self._buffer = buffer
        self._table = table
        self._arrivals = traffic.rates[_WRITES]
        total = sum(self._arrivals)
        self._planned: list[tuple[array[int], array[int], int, int]] = []
        for target in table.targets:
            if target.dimension is Dimension.WRITE and target.rates is not None:
                own = traffic.rates.get(Stream(target.index, Dimension.WRITE))
                part, whole = (table.write_share_percent(target.index), 100) if own is None else (sum(own), total or 1)
                # jobs add to the first; the second stays what `drained` gave it
                self._planned.append((target.rates, array("q", target.rates), part, whole))
        self._waiting = WaitingWrites()
        self._brake = Brake()
        self._meter = MinuteMeter(table.targets[1])
        self._period = look_seconds(table)
        self._asked = self._written = self._refused = 0
        self._most = self._most_at = self._oldest = self._oldest_at = 0
        self._empty_at: int | None = None
        self._ages = array("q", [0] * traffic.minutes)
        table.at(0, self._look)

    def result(self, end: int) -> QueueRun:
        """What became of it until second *end*, when the traffic ends."""
        self._account(end)
        return QueueRun(
            buffer=self._buffer,
            most_units=self._most // QUANTA_PER_UNIT,
            most_at=self._most_at,
            oldest_seconds=self._oldest,
            oldest_at=self._oldest_at,
            empty_at=self._empty_at,
            left_units=self._waiting.quanta // QUANTA_PER_UNIT,
            written_units=self._written / QUANTA_PER_UNIT,
            throttled_units=self._refused / QUANTA_PER_UNIT,
            ages=self._ages,
        )

    def _look(self, at: int) -> None:
        now = (self._table.base + at) * NANOSECONDS
        if self._account(at):
            self._brake.press(now)
        else:
            self._brake.recover(now)
        most = self._buffer.units * self._brake.percent * QUANTA_PER_UNIT // 100
        seconds = self._table.bin_seconds
        first = at // seconds
        end = min(first + self._period // seconds, len(self._arrivals))
        for number in range(first, end):
            written = self._waiting.step(number * seconds, seconds, self._arrivals[number], most)
            self._asked += written * seconds
            for rates, planned, part, whole in self._planned:
                rates[number] += written * part // whole - planned[number]
            self._record((number + 1) * seconds)
        if end < len(self._arrivals):
            self._table.at(at + self._period, self._look)

    def _account(self, at: int) -> bool:
        """Count what passed since the last look, and have the rest come back; whether there is any."""
        passed, refused, _ = self._meter.split(at, self._asked)
        self._written += passed
        self._refused += refused
        self._asked = 0
        self._waiting.settle(at, refused)
        self._record(at)
        return refused > 0

    def _record(self, at: int) -> None:
        quanta = self._waiting.quanta
        if quanta > self._most:
            self._most, self._most_at = quanta, at
        oldest = self._ages[max(0, at - 1) // 60] = self._waiting.oldest_seconds(at)
        if oldest > self._oldest:
            self._oldest, self._oldest_at = oldest, at
        if quanta >= QUANTA_PER_UNIT:
            self._empty_at = None
        elif self._empty_at is None:
            self._empty_at = at


def start_queue(buffer: Buffer, table: SimulatedTable, traffic: Traffic) -> RunningQueue | None:
    """Have a queue begin; `None` if nothing is written."""
    return RunningQueue(buffer, table, traffic) if _WRITES in traffic.rates else None
