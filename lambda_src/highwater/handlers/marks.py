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
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from highwater.aws.tables import ForbiddenError, TableNotFoundError
from highwater.core.units import Units
from highwater.handlers.cloudformation import Outcome, failure, success
from highwater.handlers.patience import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError
from highwater.handlers.raising import Job, Phase, Progress, TableOutOfReachError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger("highwater")

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
