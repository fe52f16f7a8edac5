"""High-water marks during a deploy: warm throughput is requested for each mark that is too low."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import tables, tags
from highwater.aws.tables import (
    ForbiddenError,
    OvertakenError,
    TableBusyError,
    TableNotFoundError,
)
from highwater.core.units import Units
from highwater.handlers.deploy.response import EventOutcome, failure, success
from highwater.handlers.deploy.waiting import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


logger = logging.getLogger("highwater")


class TableOutOfReachError(Exception):
    """The table cannot be changed until an operator restores the table or its key."""

    def __init__(self, table: str, status: str) -> None:
        super().__init__(f"table {table} is {status}, so its capacity and marks cannot be changed")


@dataclass(slots=True)
class Progress:
    """The progress that an invocation passes on to the invocation that continues its work."""

    raising_invocations: int = 0
    raised: list[str] = field(default_factory=list)
    building: list[str] = field(default_factory=list)  # indexes left out, because they are being built
    blocking: list[str] = field(default_factory=list)  # all indexes that are being built: changes may be refused
    awaited: list[str] = field(default_factory=list)  # indexes that earlier invocations left out
    awaiting_invocations: int = 0

    @classmethod
    def of(cls, event: dict[str, Any]) -> Progress:
        """Return the progress in a continued event; an event from CloudFormation has none yet."""
        progress = event.get("HighwaterProgress")
        return cls(**progress) if progress else cls()


@dataclass(slots=True)
class MarksJob:
    """The work on one table for one event.

    Attributes:
        dynamodb: The client.
        table: The table's name.
        progress: What earlier invocations did.
        patience: The time that is left.
        may_be_unseen: Whether the table may have been created so recently that DynamoDB does not find it yet.
    """

    dynamodb: DynamoDBClient
    table: str
    progress: Progress
    patience: Patience
    may_be_unseen: bool = False

    def attempt(self, change: Callable[[], None]) -> bool:
        """Try a change once; return false if DynamoDB rejected it and the table must be described again."""
        try:
            self.patience.until_permitted(change)
        except (TableBusyError, OvertakenError) as refused:
            logger.info("waiting: %s", refused)
            return False
        return True

    def describe(self) -> tables.DescribedTable:
        """Describe the table; raises `TableOutOfReachError` if it cannot be changed."""
        until = self.patience.until_found if self.may_be_unseen else self.patience.until_accepted
        described = until(partial(tables.describe_table, self.dynamodb, self.table))
        if described.out_of_reach:
            raise TableOutOfReachError(self.table, described.out_of_reach)
        self.progress.blocking = sorted(described.building)
        return described

    def wait_until_active(self, wanted: dict[str | None, Units]) -> tables.DescribedTable:
        """Describe the table until it is ACTIVE; raises `ValueError` if it lacks an index of *wanted*."""
        while not (described := self.describe()).is_active:
            self.patience.pause()
        for index in wanted:
            if index not in described.marks:
                message = f"table {self.table} has no index {index!r}; remove it from the plan or add it to the table"
                raise ValueError(message)
        if wanted:
            self.progress.building = sorted(described.building.intersection(index for index in wanted if index))
        return described

    def wait_for_indexes(self, names: list[str], deploy: str) -> bool:
        """Wait until none of these indexes is being built; return false if a later deploy than *deploy* took over."""
        # DynamoDB returns a new tag only after some seconds
        self.patience.pause()
        while (described := self.describe()).building.intersection(names):
            self.patience.pause()
        read = partial(tags.read_awaiting, self.dynamodb, described.arn)
        if self.patience.until_accepted(read) != deploy:
            return False
        self.patience.until_accepted(partial(tags.clear_awaiting, self.dynamodb, described.arn))
        return True

    def note_awaiting(self, deploy: str) -> None:
        """Record in a tag that marks of *deploy* wait for indexes, until a later deploy changes or removes them."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(tags.write_awaiting, self.dynamodb, arn, deploy))

    def forget_awaiting(self) -> None:
        """Stop earlier deploys from raising the marks that they deferred."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(tags.clear_awaiting, self.dynamodb, arn))

    def too_low(self, described: tables.DescribedTable, wanted: dict[str | None, Units]) -> dict[str | None, Units]:
        """Return the marks of *wanted* that are too low, except those of indexes that are being built."""
        return {
            index: units
            for index, units in wanted.items()
            if index not in described.building and not described.marks[index].covers(units)
        }

    def raise_marks(self, wanted: dict[str | None, Units]) -> None:
        """Request warm throughput for each mark that is too low. DynamoDB takes minutes; the deploy does not wait."""
        requested: set[str | None] = set()
        while True:
            described = self.wait_until_active(wanted)
            missing = [index for index in self.too_low(described, wanted) if index not in requested]
            if not missing:
                return
            for index in missing:
                mark = wanted[index].at_least(described.marks[index])
                if self.attempt(partial(tables.set_mark, self.dynamodb, self.table, index, mark)):
                    requested.add(index)
                    self.progress.raised.append(mark_text(index, mark))
            if not requested.issuperset(missing):
                self.patience.pause()


def mark_text(index: str | None, units: Units) -> str:
    """A mark in answers: `the table to 400 RCU and 90 WCU`."""
    subject = "the table" if index is None else f"index {index!r}"
    return f"{subject} to {units.read} RCU and {units.write} WCU"


# Raising a mark is abandoned after this many invocations of 15 minutes.
_MAX_RAISING_INVOCATIONS = 3


def serve(
    event: dict[str, Any],
    dynamodb: DynamoDBClient,
    patience: Patience,
    continue_later: Callable[[dict[str, Any]], None],
) -> EventOutcome | None:
    """Work on one event; return `None` if another invocation continues the work and answers CloudFormation."""
    table = event["ResourceProperties"]["TableName"]
    progress = Progress.of(event)
    is_new = event["RequestType"] != "Delete" and not event.get("HighwaterProgress")
    job = MarksJob(dynamodb, table, progress, patience, may_be_unseen=is_new)
    try:
        return _work(job, event, continue_later)
    except TableNotFoundError:
        if event["RequestType"] == "Delete":
            return success("the table does not exist any more")
        return failure(f"table {table} does not exist; deploy again when it does")
    except (ForbiddenError, TableOutOfReachError) as refused:
        if event["RequestType"] == "Delete":
            # The permission was deleted with a table that was replaced, or the table may stay out of reach for ever. A
            # failure here would keep the stack from ever being deleted.
            return success(f"the marks are left as they are: {refused}")
        raise
    except TimeIsUpError:
        return _continue_later(job, event, continue_later)


def _work(job: MarksJob, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]) -> EventOutcome:
    progress = job.progress
    if progress.awaited:
        if not job.wait_for_indexes(progress.awaited, event["RequestId"]):
            return success("nothing is raised: a later deploy changed or removed the marks")
        progress.awaited = []
    elif not event.get("HighwaterProgress"):
        # marks that an earlier deploy deferred are not declared any more, or this event raises them
        job.forget_awaiting()
    if event["RequestType"] == "Delete":
        return success("nothing to undo: a high-water mark never falls")
    job.raise_marks(_marks(event["ResourceProperties"]))
    done = _raised(progress) or "the table's marks are already as high or higher"
    if progress.building:
        return _await_indexes(job, event, continue_later, done)
    return success(done)


def _await_indexes(
    job: MarksJob, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None], done: str
) -> EventOutcome:
    """Start another invocation to raise the marks of indexes that are being built, and let the deploy continue."""
    progress = job.progress
    awaited = progress.building or progress.blocking
    job.note_awaiting(event["RequestId"])
    awaiting = Progress(awaited=awaited, awaiting_invocations=progress.awaiting_invocations)
    continue_later(event | {"HighwaterProgress": asdict(awaiting), "HighwaterAnswered": True})
    names = ", ".join(repr(name) for name in awaited)
    return success(f"{done}; marks that are left are raised when indexes are no longer being built: {names}")


def _marks(properties: dict[str, Any]) -> dict[str | None, Units]:
    return {mark["index"]: Units(int(mark["read"]), int(mark["write"])) for mark in json.loads(properties["Marks"])}


def _continue_later(
    job: MarksJob, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]
) -> EventOutcome | None:
    """Start another invocation to continue the work; return an outcome if the deploy can continue or has failed."""
    progress = job.progress
    if progress.awaited:
        progress.awaiting_invocations += 1
        if progress.awaiting_invocations >= MAX_AWAITING_INVOCATIONS:
            return failure(f"indexes of {job.table} are still being built; their marks are left as they are")
        continue_later(event | {"HighwaterProgress": asdict(progress)})
        return None
    if event["RequestType"] != "Delete":
        if progress.blocking:
            # while an index is built, DynamoDB rejects some changes of its table too; the deploy must not wait
            return _await_indexes(job, event, continue_later, _raised(progress) or "no mark could be raised so far")
        progress.raising_invocations += 1
        if progress.raising_invocations >= _MAX_RAISING_INVOCATIONS:
            return failure(f"the high-water mark of {job.table} did not rise in time")
    continue_later(event | {"HighwaterProgress": asdict(progress)})
    return None


def _raised(progress: Progress) -> str:
    return f"raised {', '.join(progress.raised)}" if progress.raised else ""
