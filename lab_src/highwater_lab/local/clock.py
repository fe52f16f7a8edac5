"""The cloud's own clock: real time, moved ahead on request."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any


class CloudClock:
    """Runs as real time does, or *speed* times faster, from wherever it was last moved to; it never goes back."""

    def __init__(self, speed: int = 1) -> None:
        self.speed = speed
        self._begun = datetime.now(UTC)
        self._ahead = timedelta(0)
        self._held: datetime | None = None

    def now(self) -> datetime:
        """The cloud's time, in UTC."""
        return self._held or self._running() + self._ahead

    def second(self) -> int:
        """The cloud's time in whole seconds since 1970."""
        return int(self.now().timestamp())

    def _running(self) -> datetime:
        return self._begun + (datetime.now(UTC) - self._begun) * self.speed

    def hold(self, at: datetime) -> None:
        """Stand still at *at*, not before `now`, until `release`."""
        self._held = max(at, self.now())

    def release(self) -> None:
        """Run on from where the clock was held."""
        if self._held is not None:
            self._ahead = max(timedelta(0), self._held - self._running())
            self._held = None


class CloudTime:
    """What MiniStack's services take for the module `time`: this cloud's time, and real time for all that waits."""

    def __init__(self, clock: CloudClock) -> None:
        self._clock = clock

    def time(self) -> float:
        """The cloud's time in seconds since 1970."""
        return self._clock.now().timestamp()

    def __getattr__(self, name: str) -> Any:
        """Everything else is real time's."""
        return getattr(time, name)
