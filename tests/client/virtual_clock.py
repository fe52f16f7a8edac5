"""A clock that moves where somebody waits."""

from __future__ import annotations

from dataclasses import dataclass

from highwater import Pacer

SECOND = 1_000_000_000


@dataclass
class Clock:
    """Moves where somebody waits; threads that wait at once each move it, so one worker is used with it."""

    now: int = 0

    def pacer(self) -> Pacer:
        """A pacer that goes by it."""
        return Pacer(clock=lambda: self.now, pause=self.pause)

    def pause(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.now += round(seconds * SECOND)
