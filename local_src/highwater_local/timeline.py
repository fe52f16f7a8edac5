"""Moves a driven clock to the next moment for which a client or function waits, or at which an event is due.

A driven clock moves when nothing is working: every running function waits, and so does every client. It then moves to
the next moment: an event that falls due in the cloud, or the first waiter, which is woken alone. So everything happens
in one order, at its own time, however fast the machine is.

Concurrent clients take a seat each: the clock moves only when all of them wait. A client without a seat is assumed to
be the only one. A function whose caller waits for it, such as a synchronous invocation or a custom resource of a stack,
counts as its caller: when such a function waits, its caller does. Functions in the background, which an event, an alarm
or a schedule started, never move the clock, but the clock waits until they have ended or wait themselves.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from highwater_local import ministack
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.clock import CloudClock
from highwater_local.cloudwatch import Alarms
from highwater_local.ministack import Document

_SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"


def _invoke_with_time(own: Callable[..., Any], target: Document, event: Document, *more: Any) -> Any:
    """Invoke a schedule's target, with the scheduled time filled in where its input has this context attribute."""
    text = target.get("Input")
    if event.get("Source") == "aws.scheduler" and isinstance(text, str) and _SCHEDULED_TIME in text:
        at = datetime.fromtimestamp(int(event["Time"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        target = target | {"Input": text.replace(_SCHEDULED_TIME, at)}
    return own(target, event, *more)


class Due(Protocol):
    """What has a time at which it has to run."""

    def next_due(self) -> datetime | None:
        """Return that time, `None` if nothing has to."""

    def run_next(self) -> None:
        """Run what is due at that time, as the clock is there."""


_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
# The second of each minute in which the metrics of queues are taken
_QUEUES_SECOND: Final = 40
_SHORTEST_TICK = 0.005


class Agenda:
    """Runs everything that falls due, for every account and region; *services* may gain members at any time."""

    def __init__(self, clock: CloudClock, services: Mapping[tuple[str, str], AutoScaling], alarms: Alarms) -> None:
        # schedules are run from here: MiniStack's own thread is not started
        ministack.start_scheduler.replace(lambda: None)
        ministack.invoke_target.wrap(_invoke_with_time)
        self._clock = clock
        self._scheduled_minute = clock.second() // 60
        self._services = services
        self._alarms = alarms
        self._ran_until = clock.now()
        self._mappings: Due | None = None

    def follow(self, mappings: Due) -> None:
        """Give the batches of queues to their functions when they are due; with a driven clock only."""
        self._mappings = mappings

    async def follow_clock(self) -> None:
        """With a running clock, run what falls due, every second of the cloud if possible, until cancelled."""
        while True:
            await asyncio.sleep(max(_SHORTEST_TICK, 1 / self._clock.speed))
            self._run_until(self._clock.now(), hold=False)
            self._run_schedules()

    def next_due(self) -> datetime:
        """Return when something falls due next: a minute's schedules, an alarm, a scheduled action, or a batch."""
        batch = None if self._mappings is None else self._mappings.next_due()
        return self._next_event() if batch is None else min(self._next_event(), batch)

    def _next_event(self) -> datetime:
        next_minute = datetime.fromtimestamp((self._scheduled_minute + 1) * 60, UTC)
        return min([next_minute, self._next_queues(), *self._next_actions(), *self._next_alarm()])

    def _next_alarm(self) -> list[datetime]:
        due = self._alarms.next_due()
        return [] if due is None else [due]

    def _next_actions(self) -> list[datetime]:
        """Return when each service's next scheduled action is due."""
        ran = int(self._ran_until.timestamp())
        runs = [due for service in self._services.values() if (due := service.next_run(ran)) is not None]
        return [datetime.fromtimestamp(due, UTC) for due in runs]

    def run_next(self) -> None:
        """Move the clock to `next_due`, and run what falls due then."""
        at, event = self.next_due(), self._next_event()
        self._run_until(at, hold=True)
        if self._mappings is not None and at < event:
            # what falls due at the same time comes first, and this is called again
            self._mappings.run_next()
        self._run_schedules()

    async def advance(self, ahead: timedelta) -> None:
        """Move the clock ahead; everything due on the way runs at its own time."""
        goal = self._clock.now() + ahead
        try:
            while self._ran_until < goal:
                self._run_until(min(goal, self._ran_until + _DAY), hold=True)
                # lets other requests run between days
                await asyncio.sleep(0)
            self._clock.hold(goal)
        finally:
            self._clock.release()
        self._run_schedules()

    def _run_schedules(self) -> None:
        """Start the due schedules of EventBridge Scheduler, if the clock has reached a new minute."""
        if self._clock.second() // 60 > self._scheduled_minute:
            self._scheduled_minute = self._clock.second() // 60
            ministack.run_schedules()
            # rates count from whole minutes, or a slightly early run would be left out
            ministack.round_last_runs()

    def _next_queues(self) -> datetime:
        """Return when the metrics of queues are taken next."""
        minute = self._ran_until.replace(second=_QUEUES_SECOND, microsecond=0)
        return minute if minute > self._ran_until else minute + _MINUTE

    def _run_until(self, end: datetime, hold: bool) -> None:
        # nothing that runs here puts a scheduled action
        actions = min(self._next_actions(), default=None)
        while self._ran_until < end:
            queues, due = self._next_queues(), self._next_alarm()
            at = min(end, queues, *due, *([] if actions is None else [actions]))
            if hold:
                self._clock.hold(at)
            if at == queues:
                self._alarms.publish_queues()
            if at == actions:
                for scope, service in self._services.items():
                    with ministack.request_scope(*scope):
                        service.run_due(int(at.timestamp()))
            self._alarms.run_due(at)
            self._ran_until = max(at, self._ran_until)
            if at == actions:
                actions = min(self._next_actions(), default=None)


# in real time; only a client that neither waits nor leaves, or a function that hangs, can take so long
_PATIENCE: Final = timedelta(minutes=5)
_LONGEST_PAUSE: Final = timedelta(seconds=0.05)


class StuckError(Exception):
    """The clock cannot move; the message says what it waits for."""


@dataclass(order=True, slots=True)
class _Waiter:
    """A waiter for a moment: a client's seat, a run of a function, or a single client; sorted by order of waking."""

    due: datetime
    # at the same moment functions are woken before clients, and clients in the order of their seats
    rank: tuple[int, int]
    seat: int | None = field(compare=False, default=None)
    run: str | None = field(compare=False, default=None)
    woken: asyncio.Future[None] = field(compare=False, kw_only=True)


class Timeline:
    """All clients and functions that wait for a time of this cloud's clock."""

    def __init__(self, clock: CloudClock, agenda: Agenda) -> None:
        self._clock = clock
        self._agenda = agenda
        self._waiters: list[_Waiter] = []
        self._numbers = itertools.count(1)
        self._seats: set[int] = set()
        # by run, whether it is in the background; changed by threads of functions
        self._runs: dict[str, bool] = {}
        # by run of a branch, the run that waits for it
        self._within: dict[str, str] = {}
        self._lock = threading.Lock()
        self._stacks = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()

    def run_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let threads of the server wait in *loop*; call this before the first function runs."""
        self._loop = loop

    async def drive(self) -> None:
        """Move a driven clock whenever nothing is working, until cancelled."""
        while True:
            self._changed.clear()
            while self._waiters and self._is_calm():
                self._move()
                # lets the woken or started task run
                await asyncio.sleep(0)
            await self._changed.wait()

    async def wait(self, length: timedelta, *, seat: int | None = None, run: str | None = None) -> None:
        """Return when *length* has passed on the clock, for a client's *seat*, a function's *run*, or a single client.

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
        """Take seats for concurrent clients; at the same moment, the one with the first seat is woken first."""
        taken = [next(self._numbers) for _ in range(number)]
        self._seats.update(taken)
        return taken

    @property
    def has_seats(self) -> bool:
        """Whether there are concurrent clients now."""
        return bool(self._seats)

    def leave(self, seat: int) -> None:
        """Remove a client's seat: the clock no longer waits for it."""
        self._seats.discard(seat)
        self._changed.set()

    @contextmanager
    def running(self, run: str, *, is_background: bool, within: str | None = None) -> Iterator[None]:
        """Register a run of a function for the length of the block; called in the server's threads too."""
        self.begin(run, is_background=is_background, within=within)
        try:
            yield
        finally:
            self.end(run)

    def begin(self, run: str, *, is_background: bool, within: str | None = None) -> None:
        """Record that a run of a function begins; the run that it is *within* waits for its end."""
        with self._lock:
            self._runs[run] = is_background
            if within is not None:
                self._within[run] = within

    def end(self, run: str) -> None:
        """Record that a run of a function has ended."""
        with self._lock:
            self._runs.pop(run, None)
            self._within.pop(run, None)
        self._notice()

    @contextmanager
    def changing_stack(self) -> Iterator[None]:
        """Count an operation on a stack as a waiting caller: functions that sleep meanwhile move the clock."""
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
        """Whether nothing is working, and there is a waiter for which the clock moves."""
        waiting = {waiter.run for waiter in self._waiters if waiter.run is not None}
        with self._lock:
            runs = dict(self._runs)
            waiting.update(self._within.values())
        if any(run not in waiting for run in runs):
            return False
        # a stack's operation may wait for a function that continues in the background
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
