"""A place in memory: its clock moves only when somebody waits, and its clients are what a test gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from rich.console import Console

from acceptance.account import AccountClock
from acceptance.cdk import Cdk
from acceptance.ledger import Ledger
from acceptance.record import Record
from acceptance.stage import Stage


def refusal(code: str, message: str, operation: str = "Call", status: int = 400) -> ClientError:
    """An error of AWS."""
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


@dataclass
class FakePlace:
    """An account whose services are *clients*, by name."""

    clients: dict[str, Any] = field(default_factory=dict)
    at: datetime = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)
    is_real: bool = True
    title: str = "account 123456789012, eu-west-1"
    settles_within: timedelta = timedelta(minutes=5)
    account: str = "123456789012"
    region: str = "eu-west-1"

    def status(self) -> AccountClock:
        return AccountClock(self.at)

    def client(self, service: str, config: Any = None) -> Any:
        del config
        return self.clients[service]

    def environment(self) -> dict[str, str]:
        return {}

    def wait_until(self, at: datetime) -> None:
        self.at = max(self.at, at)

    def let_pass(self, time_there: timedelta) -> None:
        self.at += time_there


class Pages:
    """Any paginator of a client: the pages that a test gives by operation, otherwise one without entries."""

    def __init__(self, pages: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self.pages = pages or {}

    def get_paginator(self, operation: str) -> Paginator:
        return Paginator(self.pages.get(operation, [{"ScalableTargets": [], "StackSummaries": []}]))


@dataclass
class Paginator:
    """The pages of one operation."""

    pages: list[dict[str, Any]]

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return self.pages


class Stacks(Pages):
    """CloudFormation: each stack fails to be deleted as often as its number says."""

    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__()
        self.failures = failures
        self.status = dict.fromkeys(failures, "CREATE_COMPLETE")
        self.deleted: list[str] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status[StackName]}]}

    def delete_stack(self, StackName: str) -> None:
        self.deleted.append(StackName)
        self.failures[StackName] -= 1
        self.status[StackName] = "DELETE_FAILED" if self.failures[StackName] >= 0 else "DELETE_COMPLETE"


class Tables(Pages):
    """DynamoDB: tables that are gone as soon as they are deleted; those of *refused* may not be deleted."""

    class exceptions:
        """The errors that the suite knows."""

        class ResourceNotFoundException(ClientError):
            """No such table."""

        class ResourceInUseException(ClientError):
            """A change is under way."""

    def __init__(self, names: list[str], refused: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.names = names
        self.refused = refused

    def describe_table(self, TableName: str) -> dict[str, Any]:
        if TableName not in self.names:
            raise self.exceptions.ResourceNotFoundException({"Error": {"Code": "None"}}, "DescribeTable")
        return {"Table": {"TableStatus": "ACTIVE"}}

    def delete_table(self, TableName: str) -> None:
        if TableName in self.refused:
            raise refusal("AccessDeniedException", "not allowed", "DeleteTable")
        self.names.remove(TableName)


def place_of(stacks: Stacks, tables: Tables) -> FakePlace:
    """A place with these, and nothing in all other services."""
    services = ("application-autoscaling", "lambda", "logs", "iam", "ssm", "cloudwatch", "sns", "sqs", "scheduler")
    return FakePlace({name: Pages() for name in services} | {"cloudformation": stacks, "dynamodb": tables})


def stage_of(place: FakePlace, folder: Path) -> Stage:
    """A stage that prints nothing."""
    ledger = Ledger.begin(folder, place.at, account=place.account, region=place.region, profile="trial")
    return Stage(place, Cdk(place, ledger.prefix, folder), ledger, Record(), Console(quiet=True), part="any")


def resources(**names: str) -> Pages:
    """CloudFormation, whose stack has resources of these types, such as `Logs_LogGroup`, with these names."""
    found = [
        {"LogicalResourceId": kind, "PhysicalResourceId": name, "ResourceType": f"AWS::{kind.replace('_', '::')}"}
        for kind, name in names.items()
    ]
    return Pages({"list_stack_resources": [{"StackResourceSummaries": found}]})
