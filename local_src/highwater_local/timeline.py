"""The moments that clients and functions wait for, and what moves a driven clock to them.

A driven clock moves when nobody is at work: every function that runs waits, and so does every client. It then goes to
the next moment: what falls due in the cloud, or the first waiter, which is woken alone. So everything happens in one
order, at its own time, however fast the machine is.

Clients that work side by side take a seat each: the clock moves only when all of them wait. A client without a seat is
taken to be alone. Functions that somebody waits for, such as a synchronous invocation or a custom resource of a stack,
take their caller's part: when such a function waits, its caller does. Functions in the background, which an event, an
alarm or a schedule started, never move the clock, but it waits until they have ended or wait themselves.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from highwater_local.agenda import Agenda
from highwater_local.clock import CloudClock

# in real time; only a client that neither waits nor leaves, or a function that hangs, can take so long
_PATIENCE: Final = timedelta(minutes=5)
_LONGEST_PAUSE: Final = timedelta(seconds=0.05)


class StuckError(Exception):
    """The clock cannot move; the message says for whom it waits."""


@dataclass(order=True, slots=True)
class _Waiter:
    """Who waits for a moment: a client's seat, a run of a function, or a client alone; in the order of waking."""

    due: datetime
    # at the same moment functions go before clients, clients by their seats
    rank: tuple[int, int]
    seat: int | None = field(compare=False, default=None)
    run: str | None = field(compare=False, default=None)
    woken: asyncio.Future[None] = field(compare=False, kw_only=True)


class Timeline:
    """Everybody who waits for a time of this cloud's clock."""

    def __init__(self, clock: CloudClock, agenda: Agenda) -> None:
        self._clock = clock
        self._agenda = agenda
        self._waiters: list[_Waiter] = []
        self._numbers = itertools.count(1)
        self._seats: set[int] = set()
        # whether they are in the background, by run; changed by threads of functions
        self._runs: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._stacks = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()

    async def drive(self) -> None:
        """Move a driven clock whenever nobody is at work, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            while self._waiters and self._is_calm():
                self._move()
                # whoever was woken or started gets its turn
                await asyncio.sleep(0)
            await self._changed.wait()

    async def wait(self, length: timedelta, *, seat: int | None = None, run: str | None = None) -> None:
        """Return when *length* has passed on the clock; who waits has a *seat*, is a *run* of a function, or is alone.

        Raises:
            StuckError: The clock did not move for five minutes of real time.
        """
        due = self._clock.now() + length
        if not self._clock.is_driven:
            while (left := due - self._clock.now()) > timedelta(0):
                await asyncio.sleep(min(left / self._clock.speed, _LONGEST_PAUSE).total_seconds())
            return
        rank = (0, next(self._numbers)) if run is not None else (1, seat if seat is not None else next(self._numbers))
        waiter = _Waiter(due, rank, seat, run, woken=asyncio.get_running_loop().create_future())
        bisect.insort(self._waiters, waiter)
        self._changed.set()
        try:
            while not waiter.woken.done():
                before = self._clock.now()
                await asyncio.wait([waiter.woken], timeout=_PATIENCE.total_seconds())
                if not waiter.woken.done() and self._clock.now() == before:
                    raise StuckError(self._obstacle())
        finally:
            self._waiters = [each for each in self._waiters if each is not waiter]

    def sleep(self, length: timedelta, run: str) -> None:
        """Wait in a thread of the server, as a *run* of a function."""
        assert self._loop is not None  # noqa: S101 - functions run only while the cloud serves
        asyncio.run_coroutine_threadsafe(self.wait(length, run=run), self._loop).result()

    def take_seats(self, number: int) -> list[int]:
        """Seats for clients that work side by side from now on; at the same moment the first is woken first."""
        taken = [next(self._numbers) for _ in range(number)]
        self._seats.update(taken)
        return taken

    @property
    def has_seats(self) -> bool:
        """Whether clients work side by side now."""
        return bool(self._seats)

    def leave(self, seat: int) -> None:
        """Wait for this client no longer."""
        self._seats.discard(seat)
        self._changed.set()

    @contextmanager
    def running(self, run: str, *, is_background: bool) -> Iterator[None]:
        """A run of a function; called in the server's threads too."""
        self.begin(run, is_background=is_background)
        try:
            yield
        finally:
            self.end(run)

    def begin(self, run: str, *, is_background: bool) -> None:
        """A run of a function begins."""
        with self._lock:
            self._runs[run] = is_background

    def end(self, run: str) -> None:
        """A run of a function has ended."""
        with self._lock:
            self._runs.pop(run, None)
        self._notice()

    @contextmanager
    def changing_stack(self) -> Iterator[None]:
        """Count an operation on a stack as a caller that waits: functions that sleep meanwhile move the clock."""
        self._stacks += 1
        self._notice()
        try:
            yield
        finally:
            self._stacks -= 1

    def _notice(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    def _move(self) -> None:
        first = self._waiters[0]
        if self._agenda.next_due() <= first.due:
            self._agenda.run_next()
            return
        self._waiters.pop(0)
        self._clock.hold(first.due)
        if not first.woken.done():
            first.woken.set_result(None)

    def _is_calm(self) -> bool:
        """Whether nobody is at work, and somebody waits whom the clock moves for."""
        waiting = {waiter.run for waiter in self._waiters if waiter.run is not None}
        with self._lock:
            runs = dict(self._runs)
        if any(run not in waiting for run in runs):
            return False
        # of a stack's operation, the function that it waits for may be one that goes on in the background
        called = max(sum(not runs.get(run, True) for run in waiting), self._stacks)
        if self._seats:
            return len({waiter.seat for waiter in self._waiters} & self._seats) + called >= len(self._seats)
        return called > 0 or any(waiter.run is None for waiter in self._waiters)

    def _obstacle(self) -> str:
        waiting = {waiter.seat for waiter in self._waiters}
        absent = sorted(self._seats - waiting)
        with self._lock:
            runs = len(self._runs)
        clients = f"{len(absent)} of {len(self._seats)} clients neither wait nor have left" if absent else ""
        functions = f"{runs} runs of functions have not ended" if runs else ""
        why = " and ".join(filter(None, (clients, functions))) or "nothing else is known"
        return f"the cloud's clock has not moved for {_PATIENCE.seconds // 60} minutes of real time: {why}"
