"""Waiting inside a Lambda invocation, which ends at a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_POLL_SECONDS = 5.0
# Seconds before the end of an invocation at which waiting stops, so that it can still answer or start another
_MARGIN_SECONDS = 30.0


class TimeIsUpError(Exception):
    """The invocation has no time left to wait."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Pauses between attempts, limited by the time that an invocation has left.

    Attributes:
        remaining_seconds: Returns the seconds until Lambda ends the invocation; called before each pause.
        sleep: Waits for the given seconds.
    """

    remaining_seconds: Callable[[], float]
    sleep: Callable[[float], None] = time.sleep

    def pause(self) -> None:
        """Wait for five seconds; raises `TimeIsUpError` if the invocation would have less than 30 seconds left then."""
        if self.remaining_seconds() < _MARGIN_SECONDS + _POLL_SECONDS:
            raise TimeIsUpError("the invocation has no time left to wait")
        self.sleep(_POLL_SECONDS)
