"""Deletes what a run created and looks for what is left of it, at the run's end or later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from acceptance.ledger import Ledger
from acceptance.place import Place, open_account
from highwater.core import HighwaterError

AGAIN: Final = "make acceptance CLEAN=yes"
_POLL: Final = timedelta(seconds=5)
# Application Auto Scaling deletes its alarms some time after it has answered that a target is deregistered
_SETTLES_WITHIN: Final = timedelta(minutes=5)
# A stack is created or deleted within minutes; a table whose index is built may take half an hour
_MOST: Final = timedelta(hours=1)
# DynamoDB refuses to delete a table whose index is built, and says ACTIVE of it; CloudFormation gives up before
_AGAIN_FOR, _AGAIN_EVERY = timedelta(minutes=15), timedelta(minutes=1)
# CloudFormation goes on to list a stack that is deleted
_GONE, _FAILED = "DELETE_COMPLETE", "DELETE_FAILED"
# kind, service, operation, the list in its answer, and what names an entry; nothing where an entry is the name
_LISTS: Final = (
    ("table", "dynamodb", "list_tables", "TableNames"),
    ("function", "lambda", "list_functions", "Functions", "FunctionName"),
    ("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("role", "iam", "list_roles", "Roles", "RoleName"),
    ("parameter", "ssm", "describe_parameters", "Parameters", "Name"),
    ("alarm", "cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("dashboard", "cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    ("topic", "sns", "list_topics", "Topics", "TopicArn"),
    ("queue", "sqs", "list_queues", "QueueUrls"),
    ("schedule", "scheduler", "list_schedules", "Schedules", "Name"),
)


class CleanupError(HighwaterError):
    """Something could not be deleted; the message says what, and how to try again."""


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Deletes the stacks that a ledger lists, and nothing else; what has been deleted is removed from the ledger."""

    place: Place
    ledger: Ledger
    console: Console

    def run(self) -> None:
        """Delete everything that can be deleted; then raise `CleanupError` if there is something else."""
        left = []
        for stack in reversed(self.ledger.stacks):
            try:
                self._delete_stack(stack)
                self.ledger.remove(stack)
            except (BotoCoreError, ClientError, CleanupError) as error:
                left.append(f"{stack}: {error}")
        if left:
            raise CleanupError(f"not deleted: {'; '.join(left)}; try again with: {AGAIN}")
        self._deregister_targets()

    def _delete_stack(self, stack: str) -> None:
        self._wait(lambda: not self._is_updating(stack), "come to rest")
        if self.place.seconds_until(lambda: self._is_deleted(stack), _AGAIN_FOR, _AGAIN_EVERY) is None:
            minutes = _AGAIN_FOR // timedelta(minutes=1)
            raise CleanupError(f"{_FAILED} for {minutes} minutes of trying; its events in the console say why")

    def _is_deleted(self, stack: str) -> bool:
        """Whether a stack is gone, after one more try to delete it if it is not."""
        if self._status(stack) == _GONE:
            return True
        self.place.client("cloudformation").delete_stack(StackName=stack)
        # a terminal or pipe that is gone raises OSError, and rich ends the program for it
        with contextlib.suppress(OSError, SystemExit):
            self.console.print(f"delete stack {stack}", highlight=False)
        self._wait(lambda: self._status(stack) in (_GONE, _FAILED), "be deleted")
        return self._status(stack) == _GONE

    def _is_updating(self, stack: str) -> bool:
        """Whether CloudFormation would refuse to delete it now; a stack that is being created can be deleted."""
        status = self._status(stack)
        return status.endswith("_IN_PROGRESS") and status not in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")

    def _deregister_targets(self) -> None:
        """Deregister what parts have registered themselves, of tables that are gone with their stacks."""
        for target in _scalable_targets(self.place):
            if self.ledger.prefix in target["ResourceId"]:
                request = {name: target[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
                self.place.client("application-autoscaling").deregister_scalable_target(**request)

    def _status(self, stack: str) -> str:
        try:
            described = self.place.client("cloudformation").describe_stacks(StackName=stack)
            return str(described["Stacks"][0]["StackStatus"])
        except ClientError as missing:
            if "does not exist" in str(missing):
                return _GONE
            raise

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        if self.place.seconds_until(is_done, _MOST, _POLL) is None:
            raise CleanupError(f"waited an hour for it to {what}")


def find_leftovers(place: Place, prefix: str) -> list[str]:
    """Look for everything whose name shows that a run with *prefix* made it; return kind and name, sorted."""
    return sorted({f"{kind} {name}" for kind, name in _names(place) if prefix in name})


def wait_for_nothing(place: Place, prefix: str) -> list[str]:
    """Look until nothing of a run is left; return what is left when the place has settled, as `find_leftovers` does."""
    left = list[str]()

    def is_nothing() -> bool:
        left[:] = find_leftovers(place, prefix)
        return not left

    place.seconds_until(is_nothing, _SETTLES_WITHIN, _POLL)
    return left


def _names(place: Place) -> Iterator[tuple[str, str]]:
    for target in _scalable_targets(place):
        yield "scalable target", f"{target['ResourceId']} {target['ScalableDimension']}"
    for kind, service, operation, pages, *names in _LISTS:
        for page in place.client(service).get_paginator(operation).paginate():
            for each in page.get(pages, ()):
                yield kind, "/".join(str(each[name]) for name in names) if names else str(each)
    for page in place.client("cloudformation").get_paginator("list_stacks").paginate():
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != _GONE:
                yield "stack", str(stack["StackName"])


def _scalable_targets(place: Place) -> list[dict[str, Any]]:
    pages = place.client("application-autoscaling").get_paginator("describe_scalable_targets")
    return [target for page in pages.paginate(ServiceNamespace="dynamodb") for target in page["ScalableTargets"]]


def clean_earlier_runs(
    console: Console, build: Path, open_place: Callable[[str, str, str], Place] = open_account
) -> int:
    """Delete what the ledgers of earlier runs list, each whatever becomes of the others; return the exit status."""
    ledgers = Ledger.unfinished(build)
    if not ledgers:
        console.print(f"no ledger of an unfinished run below {build}; no account was looked at", highlight=False)
        return 0
    left: list[str] = []
    for ledger in ledgers:
        try:
            left += [ledger.unreadable] if ledger.unreadable else _clean_one(console, ledger, open_place)
        except (BotoCoreError, ClientError, HighwaterError) as error:
            left.append(f"{ledger.prefix}: {error}")
    for what in left:
        console.print(f"left: {what}", style="red", markup=False, highlight=False)
    if not left:
        console.print("nothing is left of earlier runs")
    return 1 if left else 0


def _clean_one(console: Console, ledger: Ledger, open_place: Callable[[str, str, str], Place]) -> list[str]:
    with ledger.locked() as is_ours:
        if not is_ours:
            return [f"{ledger.prefix}: its run goes on in another terminal; wait for its end, or interrupt it there"]
        place = open_place(ledger.profile, ledger.account, ledger.region)
        console.print(f"{ledger.prefix} in {place.title}", highlight=False)
        Cleanup(place, ledger, console).run()
        found = wait_for_nothing(place, ledger.prefix)
        if not found:
            ledger.finish()
        return [f"{what}: no ledger lists it; delete it yourself, then: {AGAIN}" for what in found]


def tell_unfinished(console: Console, build: Path) -> None:
    """Print what the ledgers of runs in accounts still list, and how to delete it."""
    for ledger in Ledger.unfinished(build):
        stacks = ", ".join(ledger.stacks) or "what the report names"
        said = f"not deleted in account {ledger.account}, {ledger.region}: {stacks}; run: {AGAIN}"
        console.print(ledger.unreadable or said, style="red", markup=False, highlight=False)
