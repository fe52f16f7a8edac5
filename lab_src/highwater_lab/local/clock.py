"""The cloud's own clock: real time, moved ahead on request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class CloudClock:
    """Runs as real time does, from wherever it was last moved to; it never goes back."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)
        self._held: datetime | None = None

    def now(self) -> datetime:
        """The cloud's time, in UTC."""
        return self._held or datetime.now(UTC) + self._ahead

    def hold(self, at: datetime) -> None:
        """Stand still at *at*, not before `now`, until `release`."""
        self._held = max(at, self.now())

    def release(self) -> None:
        """Run on from where the clock was held."""
        if self._held is not None:
            self._ahead = max(timedelta(0), self._held - datetime.now(UTC))
            self._held = None
