"""Concurrent clients in lock-step with a driven clock: one works at a time, and the clock moves when all wait."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

from highwater_lab.local.control import CloudControl, CloudError

# the clock of the job that this context belongs to; `asyncio.to_thread` copies the context
_CLOCK: Final[ContextVar[SeatClock | None]] = ContextVar("_CLOCK", default=None)
# one `play` at a time in a process, as the module `time` is shared by the process
_PLAYING: Final = threading.Lock()


class SeatClock:
    """The clock of one job, with `sleep`, for clients that accept a clock.

    Its time is the cloud's time after the job's last sleep, as the clock stands still while the job works.
    """

    def __init__(self, cloud: CloudControl, seat: int) -> None:
        self._cloud = cloud
        self.seat = seat
        self._now = cloud.status().now
        self._idle: list[http.client.HTTPConnection] = []

    def time(self) -> float:
        """Return seconds since 1970, like `time.time`."""
        return self._now.timestamp()

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock."""
        return self.time()

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a monotonic clock, exact to the microsecond."""
        return round(self.time() * 10**6) * 1_000

    def sleep(self, seconds: float) -> None:
        """Wait until the cloud's clock has moved by *seconds*, at least a microsecond; 0 only yields to other jobs."""
        # several threads of a job may wait at the same time
        connection = self._idle.pop() if self._idle else self._cloud.connect()
        try:
            self._now = self._cloud.wait(connection, max(seconds, 1e-6) if seconds else 0, self.seat)
        finally:
            self._idle.append(connection)

    def leave(self) -> None:
        """Leave the seat: the clock moves without this job."""
        while self._idle:
            self._idle.pop().close()
        with suppress(CloudError):
            self._cloud.leave(self.seat)


def play(cloud: CloudControl, jobs: Sequence[Callable[[SeatClock], Any]]) -> list[Any]:
    """Run *jobs* in threads, in lock-step with the cloud's driven clock; return their results."""
    if cloud.status().speed:
        raise CloudError("jobs can be played only on a driven clock; start the cloud with clock='driven'")
    if not jobs:
        return []
    results: list[Any] = [None] * len(jobs)
    failures: list[BaseException] = []
    clocks = [SeatClock(cloud, seat) for seat in cloud.take_seats(len(jobs))]

    def run(number: int) -> None:
        clock = clocks[number]
        _CLOCK.set(clock)
        try:
            # no job begins before all threads run, and jobs begin in their order
            clock.sleep(0)
            results[number] = jobs[number](clock)
        except BaseException as failure:
            failures.append(failure)
        finally:
            clock.leave()

    with _cloud_time():
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            # after an interrupt, the clock must not wait for any job
            for clock in clocks:
                clock.leave()
    if failures:
        raise failures[0]
    return results


@contextmanager
def take_part(cloud: CloudControl, seat: int) -> Iterator[SeatClock]:
    """Make this thread a job for the length of the block, with a seat that another process took for it."""
    clock = SeatClock(cloud, seat)
    with _cloud_time():
        token = _CLOCK.set(clock)
        try:
            clock.sleep(0)
            yield clock
        finally:
            _CLOCK.reset(token)
            clock.leave()


@contextmanager
def _cloud_time() -> Iterator[None]:
    """Make the module `time`, and waits with a timeout, use the cloud's clock in jobs, and the machine's elsewhere."""
    names = ("sleep", "time", "monotonic", "monotonic_ns")
    with _PLAYING:
        before = {name: getattr(time, name) for name in names}
        wait = threading.Event.wait
        for name, real in before.items():
            setattr(time, name, _routed(name, real))
        setattr(threading.Event, "wait", _routed_wait(wait))  # noqa: B010 - a method is replaced
        try:
            yield
        finally:
            setattr(threading.Event, "wait", wait)  # noqa: B010
            for name, real in before.items():
                setattr(time, name, real)


def _routed(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def routed(*arguments: Any) -> Any:
        clock = _CLOCK.get()
        # an event loop needs a clock that moves while it waits
        if clock is None or asyncio._get_running_loop() is not None:
            return real(*arguments)
        return getattr(clock, name)(*arguments)

    return routed


def _routed_wait(real: Callable[..., bool]) -> Callable[..., bool]:
    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        clock = _CLOCK.get()
        if clock is None or timeout is None or event.is_set():
            return real(event, timeout)
        clock.sleep(timeout)
        return event.is_set()

    return wait
