"""Waiting inside a Lambda invocation, which ends at a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_POLL_SECONDS = 5.0
# Time that an invocation keeps for answering or handing on: what is left when waiting ends
_MARGIN_SECONDS = 30.0


class TimeIsUpError(Exception):
    """The invocation must end."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an invocation may still wait.

    Attributes:
        remaining_seconds: Asked before each pause: seconds until the invocation is ended.
        sleep: Waits the seconds given.
    """

    remaining_seconds: Callable[[], float]
    sleep: Callable[[float], None] = time.sleep

    def pause(self) -> None:
        """Wait a little; raises `TimeIsUpError` where the invocation has no time for that."""
        if self.remaining_seconds() < _MARGIN_SECONDS + _POLL_SECONDS:
            raise TimeIsUpError("the invocation has no time left to wait")
        self.sleep(_POLL_SECONDS)
