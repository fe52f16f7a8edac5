"""Clients side by side in lock-step with a driven clock: one works at a time, and the clock moves when all wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from highwater_lab.local.control import CloudControl, CloudError

NANOSECONDS: Final = 10**9
# how to sleep in this thread, if it is a job's
_ROUTE: Final = threading.local()
# one `play` at a time in a process: it replaces `time.sleep`
_PLAYING: Final = threading.Lock()


class SeatClock:
    """The clock of one job, and its sleep: what a client needs that takes a clock.

    The time is the cloud's at the job's last sleep, as the clock stands still while the job works.
    """

    def __init__(self, cloud: CloudControl, seat: int) -> None:
        self._cloud = cloud
        self.seat = seat
        self._now = cloud.status().now

    def time(self) -> float:
        """Seconds since 1970, as `time.time` gives them."""
        return self._now.timestamp()

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        return self.time()

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never goes back, exact to the microsecond."""
        return round(self.time() * 10**6) * 1_000

    def sleep(self, seconds: float) -> None:
        """Wait until the cloud's clock has moved by *seconds*; less than a microsecond is one."""
        self._now = self._cloud.wait(max(seconds, 1e-6) if seconds else 0, self.seat)


def play(cloud: CloudControl, jobs: Sequence[Callable[[SeatClock], Any]]) -> list[Any]:
    """Run *jobs* in threads, in lock-step with the cloud's driven clock; what they return."""
    if cloud.status().speed:
        raise CloudError("jobs can be played only on a driven clock; start the cloud with clock='driven'")
    if not jobs:
        return []
    results: list[Any] = [None] * len(jobs)
    failures: list[BaseException] = []
    clocks = [SeatClock(cloud, seat) for seat in cloud.take_seats(len(jobs))]

    def run(number: int) -> None:
        clock = clocks[number]
        _ROUTE.sleep = clock.sleep
        try:
            # all are there before the first begins, and they begin in their order
            clock.sleep(0)
            results[number] = jobs[number](clock)
        except BaseException as failure:
            failures.append(failure)
        finally:
            with suppress(CloudError):
                cloud.leave(clock.seat)

    with _PLAYING, _sleep_of_jobs():
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            # after an interrupt, the clock waits for none of them
            with suppress(CloudError):
                for clock in clocks:
                    cloud.leave(clock.seat)
    if failures:
        raise failures[0]
    return results


@contextmanager
def _sleep_of_jobs() -> Iterator[None]:
    """Have `time.sleep` wait for the cloud's clock in threads of jobs, and for real time in all others."""
    real = time.sleep

    def sleep(seconds: Any) -> None:
        (getattr(_ROUTE, "sleep", None) or real)(seconds)

    time.sleep = sleep
    try:
        yield
    finally:
        time.sleep = real
