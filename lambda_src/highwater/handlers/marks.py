"""Raising high-water marks during a deploy, and never leaving a table at the price of one.

A mark only rises: what is live already, or higher, is left alone. Strategy `warm-throughput` asks DynamoDB for it.
Strategy `provision-and-lower` provisions the mark once and goes back. Before it raises, it notes on the table, in
tags, where it came from; as long as the note is there, every event of the resource, whether create, update, rollback
or delete, first of all finishes the way down.

Every step looks at the table and does what is still missing, so that it does not matter who else changed it, what
was refused, or in which invocation it runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from highwater.aws import tables
from highwater.aws.autoscaling import RegisteredTargets, read_targets
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableBusyError, TableNotFoundError
from highwater.core.names import TargetName
from highwater.core.units import Dimension, Units
from highwater.handlers.cloudformation import Outcome, failure, success
from highwater.handlers.patience import Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger("highwater")

T = TypeVar("T")

WARM_THROUGHPUT = "warm-throughput"
PROVISION_AND_LOWER = "provision-and-lower"

# A raise that has not come through after so many invocations of a quarter of an hour is given up; going down is not
_MAX_RAISING_INVOCATIONS = 3


class _Phase(StrEnum):
    """Where an event's work stands."""

    CLEARING = "clearing"  # finishing what an earlier event left under way
    RAISING = "raising"
    LOWERING = "lowering"


@dataclass(slots=True)
class _Progress:
    """What a continuation needs to know of the invocations before it."""

    phase: _Phase = _Phase.CLEARING
    raising_invocations: int = 0
    raised: list[str] = field(default_factory=list)
    failure: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any]) -> _Progress:
        """The progress that the event carries, a new one for CloudFormation's own events."""
        carried = event.get("HighwaterProgress")
        return cls(**(carried | {"phase": _Phase(carried["phase"])})) if carried else cls()


@dataclass(slots=True)
class _Job:
    """One event's work on one table."""

    dynamodb: DynamoDBClient
    targets: ApplicationAutoScalingClient
    table: str
    progress: _Progress
    patience: Patience

    def patiently(self, call: Callable[[], T]) -> T:
        """Make a call until it is not turned away for the moment."""
        while True:
            try:
                return call()
            except TableBusyError as refused:
                logger.info("waiting: %s", refused)
                self.patience.pause()

    def attempt(self, change: Callable[[], None]) -> bool:
        """Try a change; whether it was taken, or must be looked at and decided anew."""
        try:
            change()
        except (TableBusyError, DecreaseRefusedError, OvertakenError) as refused:
            logger.info("waiting: %s", refused)
            return False
        return True

    def see_active(self, wanted: dict[str | None, Units]) -> tables.DescribedTable:
        """The table, once nothing is being changed, and having every resource that is *wanted*."""
        while not (seen := self.patiently(partial(tables.describe_table, self.dynamodb, self.table))).is_active:
            self.patience.pause()
        for index in wanted:
            if index not in seen.marks:
                message = f"table {self.table} has no index {index!r}; take it out of the plan or add it to the table"
                raise ValueError(message)
        return seen

    def raise_marks(self, wanted: dict[str | None, Units]) -> None:
        """Ask for warm throughput wherever less is live; it comes within minutes, which a deploy need not wait for."""
        asked: set[str | None] = set()
        while True:
            seen = self.see_active(wanted)
            short = [index for index, units in wanted.items() if not seen.marks[index].covers(units)]
            missing = [index for index in short if index not in asked]
            if not missing:
                return
            for index in missing:
                mark = wanted[index].at_least(seen.marks[index])
                if self.attempt(partial(tables.set_mark, self.dynamodb, self.table, index, mark)):
                    asked.add(index)
                    self.progress.raised.append(_told(index, mark))
            if not asked.issuperset(missing):
                self.patience.pause()

    def provision(self, wanted: dict[str | None, Units]) -> None:
        """Provision up to the marks that are not live yet, until they are; note first where each came from."""
        while True:
            seen = self.see_active(wanted)
            short = {index: units for index, units in wanted.items() if not seen.marks[index].covers(units)}
            if not short:
                return
            note = self.patiently(partial(tables.read_raised_from, self.dynamodb, seen.arn)) or {}
            unnoted = {index: seen.capacities[index] for index in short if index not in note}
            if unnoted:
                write = partial(tables.write_raised_from, self.dynamodb, seen.arn, note | unnoted)
                self.patiently(write)
                self.see_note(seen.arn, note | unnoted)
            for index, units in short.items():
                capacity = units.at_least(seen.capacities[index])
                if capacity == seen.capacities[index]:
                    continue
                raised = self.attempt(partial(tables.set_capacity, self.dynamodb, self.table, index, capacity))
                if raised and _told(index, units) not in self.progress.raised:
                    self.progress.raised.append(_told(index, units))
            if not self.is_live(short):
                self.patience.pause()

    def is_live(self, wanted: dict[str | None, Units]) -> bool:
        """Whether every mark stands."""
        seen = self.see_active(wanted)
        return all(seen.marks[index].covers(units) for index, units in wanted.items())

    def go_down(self) -> bool:
        """Finish the way down of a raise, if one is under way; whether one was."""
        went_down = False
        while True:
            seen = self.see_active({})
            home = self.patiently(partial(tables.read_raised_from, self.dynamodb, seen.arn))
            if home is None:
                return went_down
            went_down = True
            above = self.still_above(seen, home)
            if not above:
                self.patiently(partial(tables.clear_raised_from, self.dynamodb, seen.arn))
                self.see_note(seen.arn, None)
                return True
            taken = [
                self.attempt(partial(tables.set_capacity, self.dynamodb, self.table, index, units))
                for index, units in above.items()
            ]
            if not all(taken):
                self.patience.pause()

    def see_note(self, arn: str, expected: dict[str | None, Units] | None) -> None:
        """Wait until the note reads as it was left: DynamoDB shows changes of tags some seconds late."""
        while self.patiently(partial(tables.read_raised_from, self.dynamodb, arn)) != expected:
            self.patience.pause()

    def still_above(self, seen: tables.DescribedTable, home: dict[str | None, Units]) -> dict[str | None, Units]:
        """What is above where it came from, and the units to go down to: never below a floor that rose meanwhile."""
        names = [TargetName(self.table, index, dimension) for index in home for dimension in Dimension]
        floors = self.patiently(partial(_see_floors, self.targets, names))
        above = {}
        for index, units in home.items():
            live = seen.capacities.get(index)
            if live is None or live == Units(0, 0):  # gone, or on demand by now
                continue
            read = floors.of(TargetName(self.table, index, Dimension.READ))
            write = floors.of(TargetName(self.table, index, Dimension.WRITE))
            goal = units.at_most(live).at_least(Units(read.min if read else 0, write.min if write else 0))
            if goal != live:
                above[index] = goal
        return above


def serve(
    event: dict[str, Any],
    dynamodb: DynamoDBClient,
    autoscaling: ApplicationAutoScalingClient,
    patience: Patience,
    continue_later: Callable[[dict[str, Any]], None],
) -> Outcome | None:
    """Work on one event; `None` where the work goes on in another invocation, which then answers."""
    table = event["ResourceProperties"]["TableName"]
    progress = _Progress.of(event)
    job = _Job(dynamodb, autoscaling, table, progress, patience)
    try:
        return _work(job, event)
    except TableNotFoundError:
        if event["RequestType"] == "Delete":
            return success("the table is gone")
        return failure(f"table {table} does not exist")
    except TimeIsUpError:
        return _hand_on(job, event, continue_later)


def _work(job: _Job, event: dict[str, Any]) -> Outcome:
    progress = job.progress
    if progress.phase is _Phase.CLEARING:
        went_down = job.go_down()
        if event["RequestType"] == "Delete":
            return success("capacity went back down" if went_down else "nothing to undo: a mark stays")
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
    job.go_down()
    if progress.failure is not None:
        return failure(progress.failure)
    return success(_raised(progress) or "the live marks are as high already, or higher")


def _raise(job: _Job, properties: dict[str, Any]) -> None:
    wanted = {mark["index"]: Units(int(mark["read"]), int(mark["write"])) for mark in json.loads(properties["Marks"])}
    if properties["Strategy"] == PROVISION_AND_LOWER:
        job.provision(wanted)
    else:
        job.raise_marks(wanted)


def _hand_on(job: _Job, event: dict[str, Any], continue_later: Callable[[dict[str, Any]], None]) -> Outcome | None:
    """Let another invocation go on, and answer already if only the way down is left."""
    progress = job.progress
    if progress.phase is _Phase.RAISING:
        progress.raising_invocations += 1
        if progress.raising_invocations >= _MAX_RAISING_INVOCATIONS:
            progress.failure = f"the high-water mark of {job.table} did not rise in time; capacity goes back down"
            progress.phase = _Phase.LOWERING
    carried = event | {"HighwaterProgress": asdict(progress)}
    if progress.phase is not _Phase.LOWERING or event.get("HighwaterAnswered"):
        continue_later(carried)
        return None
    # should a rollback delete this resource, and the function with it, the event of that deletion finishes the way down
    continue_later(carried | {"HighwaterAnswered": True})
    if progress.failure is not None:
        return failure(progress.failure)
    return success(f"{_raised(progress)}; capacity goes back down as soon as DynamoDB lets it")


def _see_floors(client: ApplicationAutoScalingClient, names: list[TargetName]) -> RegisteredTargets:
    return tables.translating(lambda: read_targets(client, names))


def _raised(progress: _Progress) -> str:
    return f"raised {', '.join(progress.raised)}" if progress.raised else ""


def _told(index: str | None, units: Units) -> str:
    subject = "the table" if index is None else f"index {index!r}"
    return f"{subject} to {units.read} RCU and {units.write} WCU"
