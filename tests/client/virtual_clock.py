"""A clock that moves where somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from highwater import Pacer

SECOND = 1_000_000_000


@dataclass
class Clock:
    """Moves where somebody waits; threads that wait at once each move it, so one worker is used with it.

    `waited` are the waits in seconds.
    """

    now: int = 0
    waited: list[float] = field(default_factory=list)

    def pacer(self) -> Pacer:
        """A pacer that goes by it."""
        return Pacer(clock=lambda: self.now, pause=self.pause)

    def pause(self, seconds: float) -> None:
        """Let so many seconds pass."""
        # a bucket's times are rounded up to a nanosecond
        if seconds > 1e-6:
            self.waited.append(round(seconds, 3))
        self.now += round(seconds * SECOND)
