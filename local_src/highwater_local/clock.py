"""The cloud's clock: it runs, in real time or faster, or it is driven and stands still until it is moved."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from highwater_local.ministack import setting


class CloudClock:
    """Runs in real time, or *speed* times faster, from the time to which it was last moved; monotonic.

    With *driven_from*, it stands still at that time, and only `hold` moves it.

    Attributes:
        speed: How many times faster than real time it runs; 0 for a driven clock.
    """

    def __init__(self, speed: int = 1, driven_from: datetime | None = None) -> None:
        self.is_driven = driven_from is not None
        self.speed = 0 if self.is_driven else speed
        self._since = self._origin = datetime.now(UTC)
        self._held = driven_from

    def now(self) -> datetime:
        """The cloud's time, in UTC."""
        return self._held or self._running()

    def second(self) -> int:
        """The cloud's time in whole seconds since 1970."""
        return int(self.now().timestamp())

    def hold(self, at: datetime) -> None:
        """Stand still at *at*, not before `now`, until `release`; a driven clock until the next `hold`."""
        self._held = max(at, self.now())

    def release(self) -> None:
        """Resume running from the time of `hold`; a driven clock still stands still."""
        if self._held is not None and not self.is_driven:
            self._run_from(max(self._held, self._running()))
            self._held = None

    def run_at(self, speed: int) -> None:
        """Run *speed* times faster than real time from now on; not for a driven clock."""
        self._run_from(self.now())
        self.speed = speed

    def _running(self) -> datetime:
        return self._origin + (datetime.now(UTC) - self._since) * self.speed

    def _run_from(self, at: datetime) -> None:
        self._since, self._origin = datetime.now(UTC), at


class CloudTime:
    """Replaces the module `time` in MiniStack's services: `time` is this cloud's time, all other functions are real."""

    def __init__(self, clock: CloudClock) -> None:
        self._clock = clock

    def time(self) -> float:
        """The cloud's time in seconds since 1970."""
        return self._clock.now().timestamp()

    def __getattr__(self, name: str) -> Any:
        """Return any other member of the real module `time`."""
        return getattr(time, name)


class EitherTime(CloudTime):
    """The cloud's time inside `cloud_time`, and real time elsewhere: for a service that also waits in real time."""

    def __init__(self, clock: CloudClock) -> None:
        super().__init__(clock)
        self._is_cloud_time: ContextVar[bool] = ContextVar("is_cloud_time", default=False)

    def time(self) -> float:
        """The cloud's time in seconds since 1970 within `cloud_time`, real time outside."""
        return super().time() if self._is_cloud_time.get() else time.time()

    def cloud_time(self) -> AbstractContextManager[None]:
        """Let the code of a block see the cloud's time."""
        return setting(self._is_cloud_time, True)
