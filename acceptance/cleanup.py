"""Deletes what a run created."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from acceptance.ledger import Ledger
from acceptance.leftovers import GONE, scalable_targets
from acceptance.place import Place
from highwater.core import HighwaterError

_POLL: Final = timedelta(seconds=5)
# A stack is created or deleted within minutes; a table that is built or warmed may take a quarter of an hour
_MOST: Final = timedelta(hours=1)
# DynamoDB refuses to delete a table whose warm throughput is raised or whose index is built, and says ACTIVE of it. 514
# s is the longest raise that was measured by others; CloudFormation gives up before
_AGAIN_FOR, _AGAIN_EVERY = timedelta(minutes=15), timedelta(minutes=1)
_FAILED: Final = "DELETE_FAILED"
AGAIN: Final = "make acceptance CLEAN=yes"


class CleanupError(HighwaterError):
    """Something could not be deleted; the message says what, and how to try again."""


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Deletes everything that a ledger lists, and nothing else.

    Attributes:
        place: Where it is.
        ledger: The list; what has been deleted is removed from it.
        tell: Prints a line. What it raises because nobody reads any more does not end the deletion.
    """

    place: Place
    ledger: Ledger
    tell: Callable[[str], None]

    def run(self) -> None:
        """Delete everything.

        What cannot be deleted does not keep the rest from being deleted; at the end `CleanupError` names all of it.
        """
        left = [f"stack {name}: {why}" for name in reversed(self.ledger.stacks) if (why := self._delete_stack(name))]
        left += [f"table {name}: {why}" for name in self.ledger.tables if (why := self._delete_table(name))]
        if left:
            raise CleanupError(f"{len(left)} not deleted: {'; '.join(left)}; try again with: {AGAIN}")

    def _delete_stack(self, stack: str) -> str:
        """Delete a stack; return why that was not possible, empty if it was."""
        return self._attempt(stack, lambda: self._see_stack_go(stack))

    def _delete_table(self, table: str) -> str:
        return self._attempt(table, lambda: self._see_table_go(table))

    def _attempt(self, name: str, delete: Callable[[], None]) -> str:
        try:
            delete()
        except (BotoCoreError, ClientError, CleanupError) as error:
            return str(error)
        self.ledger.remove(name)
        return ""

    def _see_stack_go(self, stack: str) -> None:
        cloudformation = self.place.client("cloudformation")
        self._wait(lambda: not self._is_updating(cloudformation, stack), "come to rest")
        if self._status(cloudformation, stack) == GONE:
            return
        began = self._now()
        while True:
            cloudformation.delete_stack(StackName=stack)
            self._say(f"delete stack {stack}")
            self._wait(lambda: self._status(cloudformation, stack) in (GONE, _FAILED), "be deleted")
            if (status := self._status(cloudformation, stack)) == GONE:
                return
            if self._now() - began >= _AGAIN_FOR:
                minutes = _AGAIN_FOR // timedelta(minutes=1)
                raise CleanupError(f"{status} for {minutes} minutes of trying; its events in the console say why")
            self.place.let_pass(_AGAIN_EVERY)

    def _is_updating(self, cloudformation: Any, stack: str) -> bool:
        """Whether CloudFormation would refuse to delete it now; a stack that is being created can be deleted."""
        status = self._status(cloudformation, stack)
        return status.endswith("_IN_PROGRESS") and status not in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")

    def _status(self, cloudformation: Any, stack: str) -> str:
        try:
            return str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        except ClientError as missing:
            if "does not exist" in str(missing):
                return GONE
            raise

    def _see_table_go(self, table: str) -> None:
        autoscaling = self.place.client("application-autoscaling")
        for target in scalable_targets(self.place):
            if target["ResourceId"].split("/")[1] == table:
                autoscaling.deregister_scalable_target(
                    ServiceNamespace="dynamodb",
                    ResourceId=target["ResourceId"],
                    ScalableDimension=target["ScalableDimension"],
                )
        dynamodb = self.place.client("dynamodb")

        def is_deleted() -> bool:
            try:
                if dynamodb.describe_table(TableName=table)["Table"]["TableStatus"] != "DELETING":
                    dynamodb.delete_table(TableName=table)
                    self._say(f"delete table {table}")
            except dynamodb.exceptions.ResourceNotFoundException:
                return True
            except dynamodb.exceptions.ResourceInUseException:
                pass  # a change is under way, which ends
            return False

        self._wait(is_deleted, "be deleted")

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        # of real time: a local cloud's clock runs ahead of a busy machine
        began, most = self._now(), _MOST * self.place.status().speed
        while not is_done():
            if self._now() - began > most:
                raise CleanupError(f"waited an hour for it to {what}")
            self.place.let_pass(_POLL)

    def _now(self) -> datetime:
        return self.place.status().now

    def _say(self, text: str) -> None:
        # a terminal or pipe that is gone raises OSError, and rich ends the program for it
        with contextlib.suppress(OSError, SystemExit):
            self.tell(text)
