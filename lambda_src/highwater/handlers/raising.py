"""The steps of raising the marks of one table and of restoring its capacity, each repeated until AWS accepts it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from highwater.aws import notes, tables
from highwater.aws.autoscaling import read_targets
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableBusyError
from highwater.core.names import TargetName
from highwater.core.units import Dimension, Units
from highwater.handlers.patience import Patience

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
        read = partial(notes.read_awaiting, self.dynamodb, described.arn)
        if self.patience.until_accepted(read) != deploy:
            return False
        self.patience.until_accepted(partial(notes.clear_awaiting, self.dynamodb, described.arn))
        return True

    def note_awaiting(self, deploy: str) -> None:
        """Note in a tag that marks of *deploy* wait for indexes, until a later deploy changes or removes them."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(notes.write_awaiting, self.dynamodb, arn, deploy))

    def forget_awaiting(self) -> None:
        """Have earlier deploys no longer raise what they left for later."""
        arn = self.describe().arn
        self.patience.until_accepted(partial(notes.clear_awaiting, self.dynamodb, arn))

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
            note = self.patience.until_accepted(partial(notes.read_raised_from, self.dynamodb, described.arn)) or {}
            unnoted = {index: described.capacities[index] for index in too_low if index not in note}
            if unnoted:
                write = partial(notes.write_raised_from, self.dynamodb, described.arn, note | unnoted)
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
            noted = self.patience.until_accepted(partial(notes.read_raised_from, self.dynamodb, described.arn))
            if noted is None:
                return had_note
            if not described.is_active:
                self.patience.pause()
                continue
            had_note = True
            to_lower = self.capacities_to_lower(described, noted)
            if not to_lower:
                self.patience.until_accepted(partial(notes.clear_raised_from, self.dynamodb, described.arn))
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
        while self.patience.until_accepted(partial(notes.read_raised_from, self.dynamodb, arn)) != expected:
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
