"""Deletes what a run created, and looks for anything that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from acceptance.ledger import Ledger
from acceptance.place import Place
from highwater.core import HighwaterError

_POLL_SECONDS: Final = {True: 5.0, False: 0.2}
# A stack is created or deleted within minutes; a table that is built or warmed may take a quarter of an hour
_MOST_SECONDS: Final = 3_600
_GONE: Final = "DELETE_COMPLETE"


class CleanupError(HighwaterError):
    """Something could not be deleted; the message says what, and how to try again."""


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Deletes everything that a ledger lists, and nothing else.

    Attributes:
        place: Where it is.
        ledger: The list; what has been deleted is removed from it.
        tell: Prints a line.
    """

    place: Place
    ledger: Ledger
    tell: Callable[[str], None]

    def run(self) -> None:
        """Delete everything. Raises `CleanupError` for what cannot be deleted."""
        for stack in reversed(self.ledger.stacks):
            self._delete_stack(stack)
            self.ledger.remove(stack)
        for table in self.ledger.tables:
            self._delete_table(table)
            self.ledger.remove(table)

    def _delete_stack(self, stack: str) -> None:
        cloudformation = self.place.client("cloudformation")
        self._wait(lambda: not self._is_updating(cloudformation, stack), f"stack {stack} to come to rest")
        if self._status(cloudformation, stack) == _GONE:
            return
        self.tell(f"delete stack {stack}")
        cloudformation.delete_stack(StackName=stack)
        self._wait(
            lambda: self._status(cloudformation, stack) in (_GONE, "DELETE_FAILED"), f"stack {stack} to be deleted"
        )
        if (status := self._status(cloudformation, stack)) != _GONE:
            raise CleanupError(
                f"stack {stack} is {status}; read its events in the console, then: make acceptance CLEAN=yes"
            )

    def _is_updating(self, cloudformation: Any, stack: str) -> bool:
        """Whether CloudFormation would refuse to delete it now; a stack that is being created can be deleted."""
        status = self._status(cloudformation, stack)
        return status.endswith("_IN_PROGRESS") and status not in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")

    def _status(self, cloudformation: Any, stack: str) -> str:
        try:
            return str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        except ClientError as missing:
            if "does not exist" in str(missing):
                return _GONE
            raise

    def _delete_table(self, table: str) -> None:
        self.tell(f"delete table {table}")
        autoscaling = self.place.client("application-autoscaling")
        for target in _targets(self.place):
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
            except dynamodb.exceptions.ResourceNotFoundException:
                return True
            except dynamodb.exceptions.ResourceInUseException:
                pass  # a change is under way, which ends
            return False

        self._wait(is_deleted, f"table {table} to be deleted")

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        began = time.monotonic()
        while not is_done():
            if time.monotonic() - began > _MOST_SECONDS:
                raise CleanupError(f"waited an hour for {what}; try again with: make acceptance CLEAN=yes")
            time.sleep(_POLL_SECONDS[self.place.is_real])


def wait_for_nothing(place: Place, prefix: str) -> list[str]:
    """Look until nothing of a run is left; return what is left when the place has settled, as `find_leftovers` does."""
    began = time.monotonic()
    while left := find_leftovers(place, prefix):
        if time.monotonic() - began > place.settles_within.total_seconds():
            break
        time.sleep(_POLL_SECONDS[place.is_real])
    return left


def find_leftovers(place: Place, prefix: str) -> list[str]:
    """Look for everything whose name shows that a run with *prefix* made it; return kind and name, sorted."""
    return sorted({f"{kind} {name}" for kind, name in _names(place) if prefix in name})


def _names(place: Place) -> Iterator[tuple[str, str]]:
    for target in _targets(place):
        yield "scalable target", f"{target['ResourceId']} {target['ScalableDimension']}"
    for kind, service, operation, pages, name in _LISTS:
        for page in place.client(service).get_paginator(operation).paginate():
            yield from ((kind, str(each[name] if name else each)) for each in page.get(pages, ()))
    stacks = place.client("cloudformation").get_paginator("list_stacks").paginate()
    for page in stacks:
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != _GONE:
                yield "stack", str(stack["StackName"])


# kind, service, operation, the list in its answer, and the name in an entry; empty where an entry is the name
_LISTS: Final = (
    ("table", "dynamodb", "list_tables", "TableNames", ""),
    ("function", "lambda", "list_functions", "Functions", "FunctionName"),
    ("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("role", "iam", "list_roles", "Roles", "RoleName"),
    ("parameter", "ssm", "describe_parameters", "Parameters", "Name"),
    ("alarm", "cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("dashboard", "cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    ("topic", "sns", "list_topics", "Topics", "TopicArn"),
    ("queue", "sqs", "list_queues", "QueueUrls", ""),
    ("schedule", "scheduler", "list_schedules", "Schedules", "Name"),
)


def _targets(place: Place) -> list[dict[str, Any]]:
    pages = (
        place.client("application-autoscaling")
        .get_paginator("describe_scalable_targets")
        .paginate(ServiceNamespace="dynamodb")
    )
    return [target for page in pages for target in page["ScalableTargets"]]
