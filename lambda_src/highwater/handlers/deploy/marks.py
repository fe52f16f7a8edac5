"""High-water marks during a deploy: warm throughput is requested for each mark that is too low."""

from __future__ import annotations

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
from highwater.core.documents import read_document
from highwater.core.units import Units
from highwater.handlers.deploy.response import EventOutcome, failure, success
from highwater.handlers.deploy.waiting import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


logger = logging.getLogger("highwater")

# Raising a mark is abandoned after this many invocations of 15 minutes.
_MAX_RAISING_INVOCATIONS = 3
# DynamoDB lists a new tag some seconds after it was written: 6 were seen (recorded: radkawar/stackd 9dc356f,
# dynamodb/controls, 2026-09).
_PAUSES_FOR_TAGS = 3


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
        event: The event.
        dynamodb: The client.
        patience: The time that is left.
        continue_later: Starts another invocation for an event.
        table: The table's name.
        progress: What earlier invocations did.
    """

    event: dict[str, Any]
    dynamodb: DynamoDBClient
    patience: Patience
    continue_later: Callable[[dict[str, Any]], None]
    table: str = field(init=False)
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        """Read the table's name and the progress from the event."""
        self.table = self.event["ResourceProperties"]["TableName"]
        self.progress = Progress.of(self.event)

    @property
    def awaiting_tag(self) -> str:
        """The key of the tag that names the deploy whose marks wait."""
        return tags.awaiting_tag(self.event["StackId"], self.event["LogicalResourceId"])

    @property
    def is_deletion(self) -> bool:
        """Whether CloudFormation deletes the resource."""
        return bool(self.event["RequestType"] == "Delete")

    @property
    def is_continued(self) -> bool:
        """Whether another invocation began the work."""
        return bool(self.event.get("HighwaterProgress"))

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
        # a table that has just been created may not be found yet
        is_new = not self.is_deletion and not self.is_continued
        until = self.patience.until_found if is_new else self.patience.until_accepted
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

    def wait_for_indexes(self) -> bool:
        """Wait until none of the awaited indexes is being built; return false if a later deploy took over."""
        for _ in range(_PAUSES_FOR_TAGS):
            self.patience.pause()
        while (described := self.describe()).building.intersection(self.progress.awaited):
            self.patience.pause()
        read = partial(tags.read_awaiting, self.dynamodb, described.arn, self.awaiting_tag)
        if self.patience.until_accepted(read) != self.event["RequestId"]:
            return False
        self.patience.until_accepted(partial(tags.clear_awaiting, self.dynamodb, described.arn, self.awaiting_tag))
        return True

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

    def work(self) -> EventOutcome:
        """Raise the marks; raises `TimeIsUpError` if that takes longer than the invocation."""
        progress = self.progress
        if progress.awaited:
            if not self.wait_for_indexes():
                return success("nothing is raised: a later deploy changed or removed the marks")
            progress.awaited = []
        elif not self.is_continued:
            # marks that an earlier deploy deferred are not declared any more, or this event raises them
            clear = partial(tags.clear_awaiting, self.dynamodb, self.describe().arn, self.awaiting_tag)
            self.patience.until_accepted(clear)
        if self.is_deletion:
            return success("nothing to undo: a high-water mark never falls")
        marks = read_document(self.event["ResourceProperties"]["Marks"])
        self.raise_marks({mark["index"]: Units(int(mark["read"]), int(mark["write"])) for mark in marks})
        done = self._raised("the table's marks are already as high or higher")
        return self.await_indexes(done) if progress.building else success(done)

    def await_indexes(self, done: str) -> EventOutcome:
        """Start another invocation to raise the marks of indexes that are being built, and let the deploy continue."""
        progress = self.progress
        awaited = progress.building or progress.blocking
        # in a tag, until a later deploy changes or removes the marks
        arn, deploy = self.describe().arn, self.event["RequestId"]
        note = partial(tags.write_awaiting, self.dynamodb, arn, self.awaiting_tag, deploy)
        self.patience.until_accepted(note)
        awaiting = Progress(awaited=awaited, awaiting_invocations=progress.awaiting_invocations)
        self.continue_later(self.event | {"HighwaterProgress": asdict(awaiting), "HighwaterAnswered": True})
        names = ", ".join(repr(name) for name in awaited)
        return success(f"{done}; marks that are left are raised when indexes are no longer being built: {names}")

    def go_on_later(self) -> EventOutcome | None:
        """Start another invocation to continue the work; return an outcome if the deploy can continue or has failed."""
        progress = self.progress
        if progress.awaited:
            progress.awaiting_invocations += 1
            if progress.awaiting_invocations >= MAX_AWAITING_INVOCATIONS:
                return failure(f"indexes of {self.table} are still being built; their marks are left as they are")
        elif not self.is_deletion:
            if progress.blocking:
                # while an index is built, DynamoDB rejects some changes of its table too; the deploy must not wait
                return self.await_indexes(self._raised("no mark could be raised so far"))
            progress.raising_invocations += 1
            if progress.raising_invocations >= _MAX_RAISING_INVOCATIONS:
                return failure(f"the high-water mark of {self.table} did not rise in time")
        self.continue_later(self.event | {"HighwaterProgress": asdict(progress)})
        return None

    def _raised(self, otherwise: str) -> str:
        raised = self.progress.raised
        return f"raised {', '.join(raised)}" if raised else otherwise


def mark_text(index: str | None, units: Units) -> str:
    """A mark in answers: `the table to 400 RCU and 90 WCU`."""
    subject = "the table" if index is None else f"index {index!r}"
    return f"{subject} to {units.read} RCU and {units.write} WCU"


def serve(
    event: dict[str, Any],
    dynamodb: DynamoDBClient,
    patience: Patience,
    continue_later: Callable[[dict[str, Any]], None],
) -> EventOutcome | None:
    """Work on one event; return `None` if another invocation continues the work and answers CloudFormation."""
    job = MarksJob(event, dynamodb, patience, continue_later)
    try:
        return job.work()
    except TableNotFoundError:
        if job.is_deletion:
            return success("the table does not exist any more")
        return failure(f"table {job.table} does not exist; deploy again when it does")
    except (ForbiddenError, TableOutOfReachError) as refused:
        if job.is_deletion:
            # The permission was deleted with a table that was replaced, or the table may stay out of reach for ever. A
            # failure here would keep the stack from ever being deleted.
            return success(f"the marks are left as they are: {refused}")
        raise
    except TimeIsUpError:
        return job.go_on_later()
