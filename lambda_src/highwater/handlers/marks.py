"""Raising high-water marks during a deploy, and always restoring capacity that was provisioned for a raise.

A mark only rises: a mark that is already as high or higher is not changed. Strategy `warm-throughput` requests warm
throughput from DynamoDB. Strategy `provision-and-lower` provisions the mark once and then restores the capacity. Before
it raises, it notes the present capacity in tags of the table. While this note exists, every event of the custom
resource (create, update, rollback, delete) first restores the noted capacity and removes the note.

Every step describes the table and does only what is still missing. So the result does not depend on other changes to
the table, on refused calls, or on the invocation in which a step runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import tables
from highwater.aws.autoscaling import RegisteredTargets, read_targets
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableBusyError, TableNotFoundError
from highwater.core.names import TargetName
from highwater.core.units import Dimension, Units
from highwater.handlers.cloudformation import Outcome, failure, success
from highwater.handlers.patience import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger("highwater")

WARM_THROUGHPUT = "warm-throughput"
PROVISION_AND_LOWER = "provision-and-lower"

# A raise is given up after this many invocations of 15 minutes. Restoring capacity is never given up.
_MAX_RAISING_INVOCATIONS = 3


class _Phase(StrEnum):
    """The phase of the work on an event."""

    CLEARING = "clearing"  # restore the capacity that an earlier event noted
    RAISING = "raising"  # raise the marks
    LOWERING = "lowering"  # restore the capacity that this event noted


@dataclass(slots=True)
class _Progress:
    """The progress that an invocation passes on to the invocation that continues its work."""

    phase: _Phase = _Phase.CLEARING
    raising_invocations: int = 0
    raised: list[str] = field(default_factory=list)
    failure: str | None = None
    building: list[str] = field(default_factory=list)  # indexes left out, because they are being built
    awaited: list[str] = field(default_factory=list)  # indexes that earlier invocations left out
    awaiting_invocations: int = 0

    @classmethod
    def of(cls, event: dict[str, Any]) -> _Progress:
        """Return the progress in a continued event; an event from CloudFormation has none and starts anew."""
        progress = event.get("HighwaterProgress")
        return cls(**(progress | {"phase": _Phase(progress["phase"])})) if progress else cls()


@dataclass(slots=True)
class _Job:
    """The work on one table for one event."""

    dynamodb: DynamoDBClient
    autoscaling: ApplicationAutoScalingClient
    table: str
    progress: _Progress
    patience: Patience

    def attempt(self, change: Callable[[], None]) -> bool:
        """Try a change once; return false if DynamoDB refused it and the table must be described again."""
        try:
            self.patience.until_permitted(change)
        except (TableBusyError, DecreaseRefusedError, OvertakenError) as refused:
            logger.info("waiting: %s", refused)
            return False
        return True

    def wait_until_active(self, wanted: dict[str | None, Units]) -> tables.DescribedTable:
        """Describe the table until it is ACTIVE; raises `ValueError` if it lacks an index of *wanted*."""
        while not (
            described := self.patience.until_accepted(partial(tables.describe_table, self.dynamodb, self.table))
        ).is_active:
            self.patience.pause()
        for index in wanted:
            if index not in described.marks:
                message = f"table {self.table} has no index {index!r}; remove it from the plan or add it to the table"
                raise ValueError(message)
        if wanted:
            self.progress.building = sorted(described.building.intersection(index for index in wanted if index))
        return described

    def wait_for_indexes(self, names: list[str]) -> None:
        """Wait until none of these indexes is being built."""
        describe = partial(tables.describe_table, self.dynamodb, self.table)
        while self.patience.until_accepted(describe).building.intersection(names):
            self.patience.pause()

    def too_low(self, described: tables.DescribedTable, wanted: dict[str | None, Units]) -> dict[str | None, Units]:
        """The marks of *wanted* that are too low, except those of indexes that are being built."""
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
                    self.progress.raised.append(_mark_text(index, mark))
            if not requested.issuperset(missing):
                self.patience.pause()

    def provision(self, wanted: dict[str | None, Units]) -> None:
        """Note the present capacity, then provision each mark that is too low until DynamoDB shows the mark."""
        while True:
            described = self.wait_until_active(wanted)
            too_low = self.too_low(described, wanted)
            if not too_low:
                return
            note = self.patience.until_accepted(partial(tables.read_raised_from, self.dynamodb, described.arn)) or {}
            unnoted = {index: described.capacities[index] for index in too_low if index not in note}
            if unnoted:
                write = partial(tables.write_raised_from, self.dynamodb, described.arn, note | unnoted)
                self.patience.until_accepted(write)
                self.wait_for_note(described.arn, note | unnoted)
            for index, units in too_low.items():
                capacity = units.at_least(described.capacities[index])
                if capacity == described.capacities[index]:
                    continue
                is_raised = self.attempt(partial(tables.set_capacity, self.dynamodb, self.table, index, capacity))
                if is_raised and _mark_text(index, units) not in self.progress.raised:
                    self.progress.raised.append(_mark_text(index, units))
            if not self.has_marks(too_low):
                self.patience.pause()

    def has_marks(self, wanted: dict[str | None, Units]) -> bool:
        """Whether every mark of the table is at least as high as *wanted*."""
        described = self.wait_until_active(wanted)
        return all(described.marks[index].covers(units) for index, units in wanted.items())

    def restore_capacity(self) -> bool:
        """Restore the noted capacity and remove the note; return whether there was a note."""
        had_note = False
        while True:
            described = self.wait_until_active({})
            noted = self.patience.until_accepted(partial(tables.read_raised_from, self.dynamodb, described.arn))
            if noted is None:
                return had_note
            had_note = True
            to_lower = self.capacities_to_lower(described, noted)
            if not to_lower:
                self.patience.until_accepted(partial(tables.clear_raised_from, self.dynamodb, described.arn))
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
        while self.patience.until_accepted(partial(tables.read_raised_from, self.dynamodb, arn)) != expected:
            self.patience.pause()

    def capacities_to_lower(
        self, described: tables.DescribedTable, noted: dict[str | None, Units]
    ) -> dict[str | None, Units]:
        """The resources above their noted capacity, each with the units to set: never below its present floors."""
        names = [TargetName(self.table, index, dimension) for index in noted for dimension in Dimension]
        floors = self.patience.until_accepted(partial(_read_floors, self.autoscaling, names))
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


def serve(
    event: dict[str, Any],
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
    continue_later: Callable[[dict[str, Any]], None],
) -> Outcome | None:
    """Work on one event; return `None` if another invocation continues the work and answers CloudFormation."""
    table = event["ResourceProperties"]["TableName"]
    progress = _Progress.of(event)
    job = _Job(dynamodb, autoscaling, table, progress, patience)
    try:
        return _work(job, event, continue_later)
    except TableNotFoundError:
        if event["RequestType"] == "Delete":
            return success("the table does not exist any more")
        return failure(f"table {table} does not exist")
    except TimeIsUpError:
        return _continue_later(job, event, continue_later)


def _work(job: _Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]) -> Outcome:
    progress = job.progress
    if progress.awaited:
        job.wait_for_indexes(progress.awaited)
        progress.awaited = []
    if progress.phase is _Phase.CLEARING:
        had_note = job.restore_capacity()
        if event["RequestType"] == "Delete":
            return success("capacity is restored" if had_note else "nothing to undo: a high-water mark never falls")
        progress.phase = _Phase.RAISING
    if progress.phase is _Phase.RAISING:
        try:
            _raise(job, event["ResourceProperties"])
        except (TimeIsUpError, TableNotFoundError):
            raise
        except Exception as error:
            logger.exception("the raise failed")
            progress.failure = str(error) or type(error).__name__
        progress.phase = _Phase.LOWERING
    job.restore_capacity()
    if progress.failure is not None:
        return failure(progress.failure)
    done = _raised(progress) or "the table's marks are already as high or higher"
    if progress.building:
        return _await_indexes(progress, event, continue_later, done)
    return success(done)


def _await_indexes(
    progress: _Progress, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None], done: str
) -> Outcome:
    """Have another invocation raise the marks of the indexes that are being built, and let the deploy go on."""
    awaiting = _Progress(awaited=progress.building, awaiting_invocations=progress.awaiting_invocations)
    continue_later(event | {"HighwaterProgress": asdict(awaiting), "HighwaterAnswered": True})
    names = ", ".join(repr(name) for name in progress.building)
    return success(f"{done}; marks of indexes that are still being built are raised when they are ready: {names}")


def _raise(job: _Job, properties: dict[str, Any]) -> None:
    wanted = {mark["index"]: Units(int(mark["read"]), int(mark["write"])) for mark in json.loads(properties["Marks"])}
    if properties["Strategy"] == PROVISION_AND_LOWER:
        job.provision(wanted)
    else:
        job.raise_marks(wanted)


def _continue_later(
    job: _Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]
) -> Outcome | None:
    """Start another invocation to continue the work; return an outcome if only restoring capacity is left."""
    progress = job.progress
    if progress.awaited:
        progress.awaiting_invocations += 1
        if progress.awaiting_invocations >= MAX_AWAITING_INVOCATIONS:
            return failure(f"indexes of {job.table} are still being built; their marks are left as they are")
        continue_later(event | {"HighwaterProgress": asdict(progress)})
        return None
    if progress.phase is _Phase.RAISING and progress.building:
        # while an index is built, DynamoDB refuses some changes of the table, too; the deploy must not wait for them
        return _await_indexes(progress, event, continue_later, _raised(progress) or "no mark could be raised so far")
    if progress.phase is _Phase.RAISING:
        progress.raising_invocations += 1
        if progress.raising_invocations >= _MAX_RAISING_INVOCATIONS:
            progress.failure = f"the high-water mark of {job.table} did not rise in time; the capacity will be restored"
            progress.phase = _Phase.LOWERING
    continued = event | {"HighwaterProgress": asdict(progress)}
    if progress.phase is not _Phase.LOWERING or event.get("HighwaterAnswered"):
        continue_later(continued)
        return None
    # if a rollback deletes this resource, and then the function, the Delete event restores the capacity
    continue_later(continued | {"HighwaterAnswered": True})
    if progress.failure is not None:
        return failure(progress.failure)
    return success(f"{_raised(progress)}; the capacity will be restored as soon as DynamoDB accepts the decrease")


def _read_floors(client: ApplicationAutoScalingClient, names: list[TargetName]) -> RegisteredTargets:
    return tables.translating(lambda: read_targets(client, names))


def _raised(progress: _Progress) -> str:
    return f"raised {', '.join(progress.raised)}" if progress.raised else ""


def _mark_text(index: str | None, units: Units) -> str:
    subject = "the table" if index is None else f"index {index!r}"
    return f"{subject} to {units.read} RCU and {units.write} WCU"
