"""Waiting inside a Lambda invocation, which ends at a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from highwater.aws.tables import ForbiddenError, TableBusyError, TableNotFoundError, translating

T = TypeVar("T")

# After half a day, in invocations of 15 minutes, waiting for an index to be built ends.
MAX_AWAITING_INVOCATIONS = 48
_POLL_SECONDS = 5.0
# Seconds before the end of an invocation at which waiting stops, so that it can still answer or start another
_MARGIN_SECONDS = 30.0
# IAM needs some seconds, at times a minute, until a changed policy is in effect everywhere (IAM User Guide, "Changes
# that I make are not always immediately visible", read 2026-11)
_PAUSES_FOR_PERMISSIONS = 24
# DescribeTable may not find a table that was just created, and in express mode CloudFormation does not wait until it
# does (Amazon DynamoDB API Reference, DescribeTable; CloudFormation User Guide, "express mode"; read 2026-11)
_PAUSES_FOR_NEW_TABLES = 12


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

    def until_permitted(self, call: Callable[[], T]) -> T:
        """Repeat *call*, with pauses, while AWS denies it because a permission is missing, for up to two minutes.

        CloudFormation invokes the function seconds after it changed the function's role.

        Raises:
            Exception: The errors of `translating`. `ForbiddenError` means that AWS still denies the call, or that the
                invocation has no time left to wait.
        """
        return self._despite(ForbiddenError, _PAUSES_FOR_PERMISSIONS, lambda: translating(call))

    def until_found(self, call: Callable[[], T]) -> T:
        """Repeat *call*, with pauses, while its table is not found, for up to a minute; else as `until_accepted`.

        Raises:
            Exception: The errors of `until_accepted`. `TableNotFoundError` means that the table is still not found, or
                that the invocation has no time left to wait.
        """
        return self._despite(TableNotFoundError, _PAUSES_FOR_NEW_TABLES, lambda: self.until_accepted(call))

    def until_accepted(self, call: Callable[[], T]) -> T:
        """Repeat *call*, with pauses, while AWS is busy; while a permission is missing, for up to two minutes.

        Raises:
            Exception: The errors of `translating`, except `TableBusyError`.
            TimeIsUpError: The invocation has no time left to wait.
        """
        while True:
            try:
                return self.until_permitted(call)
            except TableBusyError:
                self.pause()

    def _despite(self, kind: type[Exception], pauses: int, call: Callable[[], T]) -> T:
        """Repeat *call* after errors of one kind, with so many pauses at most, and then raise the error."""
        for _ in range(pauses):
            try:
                return call()
            except kind as error:
                try:
                    self.pause()
                except TimeIsUpError:
                    # not `TimeIsUpError`: another invocation would then wait again, and so on for ever
                    raise error from None
        return call()
