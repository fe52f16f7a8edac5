"""High-water marks during a deploy: raised step by step, and capacity that was provisioned for it restored."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import tables, tags
from highwater.aws.autoscaling import read_targets
from highwater.aws.tables import (
    DecreaseRefusedError,
    ForbiddenError,
    OvertakenError,
    TableBusyError,
    TableNotFoundError,
)
from highwater.core.names import TargetName
from highwater.core.units import Dimension, Units
from highwater.handlers.deploy.response import Outcome, failure, success
from highwater.handlers.deploy.waiting import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient


logger = logging.getLogger("highwater")


_NO_UNITS = Units(0, 0)


class TableOutOfReachError(Exception):
    """Nothing of the table can be changed until somebody restores the table or its key."""

    def __init__(self, table: str, status: str) -> None:
        super().__init__(f"table {table} is {status}, so its capacity and marks cannot be changed")


class Phase(StrEnum):
    """The phase of the work on an event."""

    CLEARING = "clearing"  # restore the capacity that an earlier event noted
    RAISING = "raising"  # raise the marks
    LOWERING = "lowering"  # restore the capacity that this event noted


@dataclass(slots=True)
class Progress:
    """The progress that an invocation passes on to the invocation that continues its work."""

    phase: Phase = Phase.CLEARING
    raising_invocations: int = 0
    raised: list[str] = field(default_factory=list)
    failure: str | None = None
    building: list[str] = field(default_factory=list)  # indexes left out, because they are being built
    blocking: list[str] = field(default_factory=list)  # all indexes that are being built: changes may be refused
    awaited: list[str] = field(default_factory=list)  # indexes that earlier invocations left out
    awaiting_invocations: int = 0

    @classmethod
    def of(cls, event: dict[str, Any]) -> Progress:
        """Return the progress in a continued event; an event from CloudFormation has none and starts anew."""
        progress = event.get("HighwaterProgress")
        return cls(**(progress | {"phase": Phase(progress["phase"])})) if progress else cls()


@dataclass(slots=True)
class Job:
    """The work on one table for one event."""

    dynamodb: DynamoDBClient
    autoscaling: ApplicationAutoScalingClient
    table: str
    progress: Progress
    patience: Patience

    def attempt(self, change: Callable[[], None]) -> bool:
        """Try a change once; return false if DynamoDB refused it and the table must be described again."""
        try:
            self.patience.until_permitted(change)
        except (TableBusyError, DecreaseRefusedError, OvertakenError) as refused:
            logger.info("waiting: %s", refused)
            return False
        return True

    def describe(self) -> tables.DescribedTable:
        """Describe the table; raises `TableOutOfReachError` if nothing of it can be changed."""
        described = self.patience.until_accepted(partial(tables.describe_table, self.dynamodb, self.table))
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
        # DynamoDB shows a note some seconds late
        self.patience.pause()
        while (described := self.describe()).building.intersection(names):
            self.patience.pause()
        read = partial(tags.read_awaiting, self.dynamodb, described.arn)
        if self.patience.until_accepted(read) != deploy:
            return False
        self.patience.until_accepted(partial(tags.clear_awaiting, self.dynamodb, described.arn))
        return True

    def note_awaiting(self, deploy: str) -> None:
        """Note in a tag that marks of *deploy* wait for indexes, until a later deploy changes or removes them."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(tags.write_awaiting, self.dynamodb, arn, deploy))

    def forget_awaiting(self) -> None:
        """Have earlier deploys no longer raise what they left for later."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(tags.clear_awaiting, self.dynamodb, arn))

    def too_low(self, described: tables.DescribedTable, wanted: dict[str | None, Units]) -> dict[str | None, Units]:
        """The marks of *wanted* that are too low, except those of indexes that are being built."""
        return {
            index: units
            for index, units in wanted.items()
            if index not in described.building and not _mark(described, index).covers(units)
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

    def provision(self, wanted: dict[str | None, Units], before: dict[str | None, Units]) -> None:
        """Note the present capacity, then provision each mark that is too low until DynamoDB shows the mark.

        Where DynamoDB shows no marks, a mark is reached once the capacity is. The marks *before*, which an earlier
        event of the same table has raised, then count as reached.
        """
        while True:
            described = self.wait_until_active(wanted)
            too_low = {
                index: units
                for index, units in self.too_low(described, wanted).items()
                if _shows_mark(described, index) or not before.get(index, _NO_UNITS).covers(units)
            }
            if not too_low:
                return
            note = self.patience.until_accepted(partial(tags.read_raised_from, self.dynamodb, described.arn)) or {}
            unnoted = {index: described.capacities[index] for index in too_low if index not in note}
            if unnoted:
                write = partial(tags.write_raised_from, self.dynamodb, described.arn, note | unnoted)
                self.patience.until_accepted(write)
                self.wait_for_note(described.arn, note | unnoted)
            for index, units in too_low.items():
                capacity = units.at_least(described.capacities[index])
                if capacity == described.capacities[index]:
                    continue
                is_raised = self.attempt(partial(tables.set_capacity, self.dynamodb, self.table, index, capacity))
                if is_raised and mark_text(index, units) not in self.progress.raised:
                    self.progress.raised.append(mark_text(index, units))
            if not self.has_marks(too_low):
                self.patience.pause()

    def has_marks(self, wanted: dict[str | None, Units]) -> bool:
        """Whether every mark of the table is at least as high as *wanted*."""
        described = self.wait_until_active(wanted)
        return all(_mark(described, index).covers(units) for index, units in wanted.items())

    def restore_capacity(self) -> bool:
        """Restore the noted capacity and remove the note; return whether there was a note."""
        had_note = False
        while True:
            described = self.describe()
            noted = self.patience.until_accepted(partial(tags.read_raised_from, self.dynamodb, described.arn))
            if noted is None:
                return had_note
            if not described.is_active:
                self.patience.pause()
                continue
            had_note = True
            to_lower = self.capacities_to_lower(described, noted)
            if not to_lower:
                self.patience.until_accepted(partial(tags.clear_raised_from, self.dynamodb, described.arn))
                self.wait_for_note(described.arn, None)
                return True
            accepted = [
                self.attempt(partial(tables.set_capacity, self.dynamodb, self.table, index, units))
                for index, units in to_lower.items()
            ]
            if not all(accepted):
                self.patience.pause()

    def wait_for_note(self, arn: str, expected: dict[str | None, Units] | None) -> None:
        """Wait until the note can be read as written, because DynamoDB shows changes of tags some seconds late."""
        while self.patience.until_accepted(partial(tags.read_raised_from, self.dynamodb, arn)) != expected:
            self.patience.pause()

    def capacities_to_lower(
        self, described: tables.DescribedTable, noted: dict[str | None, Units]
    ) -> dict[str | None, Units]:
        """The resources above their noted capacity, each with the units to set: never below its present floors."""
        names = [TargetName(self.table, index, dimension) for index in noted for dimension in Dimension]
        floors = self.patience.until_accepted(partial(read_targets, self.autoscaling, names))
        to_lower = {}
        for index, units in noted.items():
            provisioned = described.capacities.get(index)
            if provisioned is None or provisioned == Units(0, 0):  # deleted, or on demand by now
                continue
            read = floors.of(TargetName(self.table, index, Dimension.READ))
            write = floors.of(TargetName(self.table, index, Dimension.WRITE))
            goal = units.at_most(provisioned).at_least(Units(read.min if read else 0, write.min if write else 0))
            if goal != provisioned:
                to_lower[index] = goal
        return to_lower


def _shows_mark(described: tables.DescribedTable, index: str | None) -> bool:
    """Whether DynamoDB shows warm throughput; in some partitions of AWS it has none to show."""
    return described.marks[index] != _NO_UNITS


def _mark(described: tables.DescribedTable, index: str | None) -> Units:
    return described.marks[index] if _shows_mark(described, index) else described.capacities[index]


def mark_text(index: str | None, units: Units) -> str:
    """A mark in answers: `the table to 400 RCU and 90 WCU`."""
    subject = "the table" if index is None else f"index {index!r}"
    return f"{subject} to {units.read} RCU and {units.write} WCU"


WARM_THROUGHPUT = "warm-throughput"
PROVISION_AND_LOWER = "provision-and-lower"

# A raise is given up after this many invocations of 15 minutes. Restoring capacity is never given up.
_MAX_RAISING_INVOCATIONS = 3


def serve(
    event: dict[str, Any],
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
    continue_later: Callable[[dict[str, Any]], None],
) -> Outcome | None:
    """Work on one event; return `None` if another invocation continues the work and answers CloudFormation."""
    table = event["ResourceProperties"]["TableName"]
    progress = Progress.of(event)
    job = Job(dynamodb, autoscaling, table, progress, patience)
    try:
        return _work(job, event, continue_later)
    except TableNotFoundError:
        if event["RequestType"] == "Delete":
            return success("the table does not exist any more")
        return failure(f"table {table} does not exist")
    except (ForbiddenError, TableOutOfReachError) as refused:
        if event["RequestType"] == "Delete":
            # the permission went with a table that was replaced, or the table may never be within reach again;
            # CloudFormation would keep the stack for ever
            return success(f"capacity is left as it is: {refused}")
        raise
    except TimeIsUpError:
        return _continue_later(job, event, continue_later)


def _work(job: Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]) -> Outcome:
    progress = job.progress
    if progress.awaited:
        if not job.wait_for_indexes(progress.awaited, event["RequestId"]):
            return success("nothing is raised: a later deploy changed or removed the marks")
        progress.awaited = []
    elif not event.get("HighwaterProgress"):
        # what an earlier deploy left to be raised is not declared any more, or this event raises it
        job.forget_awaiting()
    if progress.phase is Phase.CLEARING:
        had_note = job.restore_capacity()
        if event["RequestType"] == "Delete":
            return success("capacity is restored" if had_note else "nothing to undo: a high-water mark never falls")
        progress.phase = Phase.RAISING
    if progress.phase is Phase.RAISING:
        try:
            _raise(job, event)
        except (TimeIsUpError, TableNotFoundError):
            raise
        except Exception as error:
            logger.exception("the raise failed")
            progress.failure = str(error) or type(error).__name__
        progress.phase = Phase.LOWERING
    job.restore_capacity()
    if progress.failure is not None:
        return failure(progress.failure)
    done = _raised(progress) or "the table's marks are already as high or higher"
    if progress.building:
        return _await_indexes(job, event, continue_later, done)
    return success(done)


def _await_indexes(
    job: Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None], done: str
) -> Outcome:
    """Have another invocation raise the marks of the indexes that are being built, and let the deploy go on."""
    progress = job.progress
    awaited = progress.building or progress.blocking
    job.note_awaiting(event["RequestId"])
    awaiting = Progress(awaited=awaited, awaiting_invocations=progress.awaiting_invocations)
    continue_later(event | {"HighwaterProgress": asdict(awaiting), "HighwaterAnswered": True})
    names = ", ".join(repr(name) for name in awaited)
    return success(f"{done}; marks that are left are raised when indexes are no longer being built: {names}")


def _raise(job: Job, event: dict[str, Any]) -> None:
    properties, before = event["ResourceProperties"], event.get("OldResourceProperties", {})
    if properties["Strategy"] == PROVISION_AND_LOWER:
        is_same = before.get("TableName") == properties["TableName"]
        job.provision(_marks(properties), _marks(before) if is_same else {})
    else:
        job.raise_marks(_marks(properties))


def _marks(properties: dict[str, Any]) -> dict[str | None, Units]:
    return {mark["index"]: Units(int(mark["read"]), int(mark["write"])) for mark in json.loads(properties["Marks"])}


def _continue_later(
    job: Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]
) -> Outcome | None:
    """Start another invocation to continue the work; return an outcome if only restoring capacity is left."""
    progress = job.progress
    if progress.awaited:
        progress.awaiting_invocations += 1
        if progress.awaiting_invocations >= MAX_AWAITING_INVOCATIONS:
            return failure(f"indexes of {job.table} are still being built; their marks are left as they are")
        continue_later(event | {"HighwaterProgress": asdict(progress)})
        return None
    if progress.phase is not Phase.LOWERING and progress.blocking and event["RequestType"] != "Delete":
        # while an index is built, DynamoDB refuses some changes of the table, too; the deploy must not wait for them
        return _await_indexes(job, event, continue_later, _raised(progress) or "no mark could be raised so far")
    if progress.phase is Phase.RAISING:
        progress.raising_invocations += 1
        if progress.raising_invocations >= _MAX_RAISING_INVOCATIONS:
            progress.failure = f"the high-water mark of {job.table} did not rise in time; the capacity will be restored"
            progress.phase = Phase.LOWERING
    continued = event | {"HighwaterProgress": asdict(progress)}
    if progress.phase is not Phase.LOWERING or event.get("HighwaterAnswered"):
        continue_later(continued)
        return None
    # if a rollback deletes this resource, and then the function, the Delete event restores the capacity
    continue_later(continued | {"HighwaterAnswered": True})
    if progress.failure is not None:
        return failure(progress.failure)
    return success(f"{_raised(progress)}; the capacity will be restored as soon as DynamoDB accepts the decrease")


def _raised(progress: Progress) -> str:
    return f"raised {', '.join(progress.raised)}" if progress.raised else ""
