"""Looks for anything that a run has left, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from acceptance.place import Place

# CloudFormation goes on to list a stack that is deleted
GONE: Final = "DELETE_COMPLETE"
_POLL: Final = timedelta(seconds=5)


def wait_for_nothing(place: Place, prefix: str) -> list[str]:
    """Look until nothing of a run is left; return what is left when the place has settled, as `find_leftovers` does."""
    began = place.status().now
    while left := find_leftovers(place, prefix):
        if place.status().now - began > place.settles_within:
            break
        place.let_pass(_POLL)
    return left


def find_leftovers(place: Place, prefix: str) -> list[str]:
    """Look for everything whose name shows that a run with *prefix* made it; return kind and name, sorted."""
    return sorted({f"{kind} {name}" for kind, name in _names(place) if prefix in name})


def scalable_targets(place: Place) -> list[dict[str, Any]]:
    """All scalable targets of DynamoDB."""
    pages = (
        place.client("application-autoscaling")
        .get_paginator("describe_scalable_targets")
        .paginate(ServiceNamespace="dynamodb")
    )
    return [target for page in pages for target in page["ScalableTargets"]]


def _names(place: Place) -> Iterator[tuple[str, str]]:
    for target in scalable_targets(place):
        yield "scalable target", f"{target['ResourceId']} {target['ScalableDimension']}"
    for kind, service, operation, pages, *names in _LISTS:
        for page in place.client(service).get_paginator(operation).paginate():
            for each in page.get(pages, ()):
                yield kind, "/".join(str(each[name]) for name in names) if names else str(each)
    stacks = place.client("cloudformation").get_paginator("list_stacks").paginate()
    for page in stacks:
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != GONE:
                yield "stack", str(stack["StackName"])


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
    # a boost's schedule has a hash as its name, and only its group is named after the stack
    ("schedule group", "scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
    ("schedule", "scheduler", "list_schedules", "Schedules", "GroupName", "Name"),
)
