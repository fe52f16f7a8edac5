"""A place in memory: its clock moves only when somebody waits, and its clients are what a test gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from rich.console import Console

from acceptance.cdk import Cdk
from acceptance.ledger import Ledger
from acceptance.place import AccountClock, Place
from acceptance.report import Report
from acceptance.stage import Stage


def refusal(code: str, message: str, operation: str = "Call", status: int = 400) -> ClientError:
    """An error of AWS."""
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


AT = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)
ACCOUNT, REGION = "123456789012", "eu-west-1"


def ledger_of(build: Path, *stacks: str, profile: str = "trial", at: datetime = AT) -> Ledger:
    """The ledger of a run that began then and has these stacks."""
    ledger = Ledger.begin(build, at, account=ACCOUNT, region=REGION, profile=profile)
    for stack in stacks:
        ledger.add(stack)
    return ledger


class FakePlace(Place):
    """An account whose services are *clients*, by name."""

    def __init__(self, clients: dict[str, Any] | None = None) -> None:
        super().__init__(ACCOUNT, REGION, self.client)
        self.clients = clients or {}
        self.at = AT

    def client(self, service: str, config: Any = None) -> Any:
        del config
        return self.clients[service]

    def status(self) -> AccountClock:
        return AccountClock(self.at)

    def environment(self) -> dict[str, str]:
        return {}

    def let_pass(self, time_there: timedelta) -> None:
        self.at += time_there


class Pages:
    """Any paginator of a client: the pages that a test gives by operation, otherwise one without entries."""

    def __init__(self, pages: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self.pages = pages or {}

    def get_paginator(self, operation: str) -> Paginator:
        return Paginator(self.pages.get(operation, [{"StackSummaries": []}]))


@dataclass
class Paginator:
    """The pages of one operation."""

    pages: list[dict[str, Any]]

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return self.pages


class Stacks(Pages):
    """CloudFormation: each stack fails to be deleted as often as its number says; *refused* may not be deleted."""

    def __init__(self, failures: dict[str, int], refused: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.failures = failures
        self.refused = refused
        self.status = dict.fromkeys(failures, "CREATE_COMPLETE")
        self.deleted: list[str] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status[StackName]}]}

    def delete_stack(self, StackName: str) -> None:
        if StackName in self.refused:
            raise refusal("AccessDenied", "not allowed", "DeleteStack")
        self.deleted.append(StackName)
        self.failures[StackName] -= 1
        self.status[StackName] = "DELETE_FAILED" if self.failures[StackName] >= 0 else "DELETE_COMPLETE"


@dataclass
class Targets(Pages):
    """Application Auto Scaling, with targets of these tables."""

    tables: list[str] = field(default_factory=list)

    def get_paginator(self, operation: str) -> Paginator:
        assert operation == "describe_scalable_targets"
        common = {"ServiceNamespace": "dynamodb", "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
        return Paginator([{"ScalableTargets": [common | {"ResourceId": f"table/{name}"} for name in self.tables]}])

    def deregister_scalable_target(self, ServiceNamespace: str, ResourceId: str, ScalableDimension: str) -> None:
        assert (ServiceNamespace, ScalableDimension) == ("dynamodb", "dynamodb:table:WriteCapacityUnits")
        self.tables.remove(ResourceId.removeprefix("table/"))


def place_of(stacks: Stacks) -> FakePlace:
    """A place with these, and nothing in all other services."""
    services = ("dynamodb", "lambda", "logs", "iam", "ssm", "cloudwatch", "sns", "sqs", "scheduler")
    others: dict[str, Any] = {name: Pages() for name in services}
    return FakePlace(others | {"cloudformation": stacks, "application-autoscaling": Targets()})


def stage_of(place: FakePlace, folder: Path) -> Stage:
    """A stage that prints nothing."""
    ledger = ledger_of(folder, at=place.at)
    report = Report(where=place.title, account=place.account, begun=place.at)
    return Stage(place, Cdk(place, ledger.prefix, folder), ledger, report, Console(quiet=True), part="any")


def resources(**names: str) -> Pages:
    """CloudFormation, whose stack has resources of these types, such as `Logs_LogGroup`, with these names."""
    found = [
        {"LogicalResourceId": kind, "PhysicalResourceId": name, "ResourceType": f"AWS::{kind.replace('_', '::')}"}
        for kind, name in names.items()
    ]
    return Pages({"list_stack_resources": [{"StackResourceSummaries": found}]})
