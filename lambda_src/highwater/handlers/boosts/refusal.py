"""What the coordinator answers to a call that it does not carry out."""

from __future__ import annotations


class RefusedError(Exception):
    """A call is refused.

    Attributes:
        status: The status code of HTTP: 400 malformed, 403 not granted, 404 unknown, 409 of somebody else, 410 over,
            503 not to be answered now.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
