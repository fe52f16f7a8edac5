"""Answers that say that a service failed, held back until it is known whether the request was to blame."""

from __future__ import annotations

from typing import Any, Final

_FAULT: Final = 500


class HeldFaults:
    """Sends an answer on, but holds back one that says that the service failed.

    Attributes:
        has_begun: Whether an answer was sent on.
        held: The messages held back.
    """

    def __init__(self, send: Any) -> None:
        self._send = send
        self.has_begun = False
        self.held: list[Any] = []

    async def __call__(self, message: Any) -> None:
        """Send one message of an answer, or hold it back."""
        if self.held or (message["type"] == "http.response.start" and message["status"] >= _FAULT):
            self.held.append(message)
            return
        self.has_begun = True
        await self._send(message)

    async def release(self) -> None:
        """Send what was held back."""
        for message in self.held:
            await self._send(message)
