"""Create, update and delete of every custom resource while AWS answers badly at random."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from highwater.core import Bounds, Capacity, Dimension, Plan, Units
from highwater.core.names import plan_parameter
from highwater.core.scaler import Mode, ScaledPlan
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import EventOutcome
from tests.memory_aws.account import Account
from tests.memory_aws.deploys import ask, custom_resource_event, role_for_deploys
from tests.memory_aws.stage import WITH_WINDOW
from tests.memory_aws.tables import Document, Table, refused
from tests.memory_aws.wire import Call, Fault, Wire

# Of each kind of custom resource.
_RUNS = int(os.environ.get("HIGHWATER_FAULT_RUNS", "500"))
_HOUR = 3600
_MARK = 390
_FAULTS = (
    lambda: refused("ThrottlingException", "Rate exceeded"),
    lambda: refused("ConcurrentUpdateException", "You already have a pending update"),
    lambda: refused("ResourceInUseException", "Attempt to change a resource which is still in use"),
    lambda: refused("LimitExceededException", "Subscriber limit exceeded: too many simultaneous table operations"),
    lambda: refused("InternalServerError", "Internal server error"),
    lambda: refused("AccessDeniedException", "not authorized to perform"),
    lambda: refused("ValidationException", "something is wrong"),
    lambda: EndpointConnectionError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com"),
    lambda: ReadTimeoutError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com"),
)


# What only UpdateTable answers.
_NO_DECREASE = refused(
    "LimitExceededException", "Subscriber limit exceeded: Provisioned throughput decreases are limited"
)


@dataclass
class Weather:
    """How badly AWS answers: storms of faults, with calm in between.

    Attributes:
        random: Where chance comes from.
        left: How many faults are still to come.
        storm: In so many of the next calls there is a fault.
    """

    random: Random
    left: int
    storm: int = 0

    def strikes(self) -> bool:
        """Whether the next call has a fault."""
        if self.left and not self.storm and self.random.random() < 0.2:
            self.storm = min(self.left, self.random.choice([1, 1, 1, 2, 5, 20]))
        if not self.storm:
            return False
        self.storm -= 1
        self.left -= 1
        return True


def _in(weather: Weather) -> Fault:
    """A fault of each call in bad weather: it fails before it is carried out, or its answer is lost."""

    def fault(call: Call) -> Any:
        if not weather.strikes():
            return None
        error = weather.random.choice(_FAULTS)()
        if call.operation == "UpdateTable" and weather.random.random() < 0.2:
            raise _NO_DECREASE
        if isinstance(error, ReadTimeoutError):
            call.send()
        raise error

    return fault


HIGHER = replace(WITH_WINDOW, write=Capacity.autoscaled(min_capacity=31, max_capacity=500))
PARAMETER = plan_parameter("scaler", "orders")


def _marks(units: int) -> Document:
    listed = f'[{{"index": null, "read": 9, "write": {units}}}, {{"index": "by_day", "read": 8, "write": {units}}}]'
    return {"TableName": "orders", "Marks": listed}


def _floors(plan: Plan) -> Document:
    return {"TableName": "orders", "Plan": plan.to_json(), "Actions": "5b1f", "ScalerPlan": PARAMETER}


def _scaled(plan: Plan) -> Document:
    return {"TableName": "orders", "Plan": plan.to_json(), "Scaler": "arn:of:the:scaler", "Parameter": PARAMETER}


def _units(write: int) -> Document:
    return {"Tables": {"Orders": [["PROVISIONED", 9, write]]}}


# The properties of the first deploy and of the second.
KINDS: dict[str, tuple[Document, Document]] = {
    deployment.MARKS_TYPE: (_marks(300), _marks(_MARK)),
    deployment.FLOORS_TYPE: (_floors(WITH_WINDOW), _floors(HIGHER)),
    deployment.AFTERMATH_TYPE: (_floors(WITH_WINDOW), _floors(HIGHER)),
    deployment.UNITS_TYPE: (
        {"Tables": {"Orders": [["PROVISIONED", 9, 9]]}},
        {"Tables": {"Orders": [["PROVISIONED", 9, 8]]}},
    ),
    deployment.SCALED_TYPE: (_scaled(WITH_WINDOW), _scaled(HIGHER)),
}


@dataclass
class Run:
    """One custom resource from its creation to its deletion."""

    kind: str
    seed: int

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - no secret
        self.account = Account(int(datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC).timestamp()))
        self.account.roles["deployment"] = role_for_deploys()
        self.account.tables["orders"] = Table.provisioned("orders", dict.fromkeys([None, "by_day"], Units(9, 140)))
        self.account.register("orders", WITH_WINDOW, Bounds(7, 900))
        self.account.parameters[PARAMETER] = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=WITH_WINDOW).to_json()
        status = self.random.choice(["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"])
        self.account.stack_status = lambda: status
        self.account.stack_resources = lambda: {"Orders": "orders"}

    def live(self) -> None:
        """Create, update, perhaps roll back, and delete, each in weather of its own; then let AWS recover."""
        before, after = KINDS[self.kind]
        is_created = self.ask("Create", before, None).ok
        if is_created:
            is_updated = self.ask("Update", after, before).ok
            if not is_updated or self.random.random() < 0.3:
                # CloudFormation goes on with a rollback whatever comes of an update in it
                self.ask("Update", before, after)
        if not self.ask("Delete", after, None).ok:
            # somebody deletes the stack again
            deleted = self.ask("Delete", after, None, faults=0)
            assert deleted.ok, f"the stack cannot be deleted: {deleted.reason}"

    def ask(
        self, request: str, properties: Document, before: Document | None, faults: int | None = None
    ) -> EventOutcome:
        """Ask for one thing, and wait for the one answer."""
        event = custom_resource_event(self.kind, request, properties, before)
        weather = Weather(self.random, self.random.choice([0, 1, 3, 10, 40]) if faults is None else faults)
        self.account.wrap = Wire(fault=_in(weather)).around
        answer = ask(self.account, event)
        # what goes on after the answer ends before the next deploy, or meets it
        while self.account.waiting and self.random.random() < 0.8:
            self.account.serve_waiting()
        return answer

    def settle(self) -> None:
        """What was handed on ends, in good weather."""
        self.account.wrap = lambda client: client
        while self.account.waiting:
            self.account.serve_waiting()

    def check(self) -> None:
        """Nothing is provisioned at a mark's price, and nothing is lowered."""
        table = self.account.tables["orders"]
        for index, control in table.resources.items():
            assert control.granted[Dimension.WRITE] not in (300, _MARK), f"{index} is left at its mark"
            assert control.granted[Dimension.WRITE] >= 140, f"{index} has less than before"


@pytest.mark.parametrize("kind", KINDS)
def test_custom_resource_is_answered_and_leaves_nothing_whatever_aws_answers(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "HighwaterDeployment")
    for seed in range(_RUNS):
        run = Run(kind, seed)
        try:
            run.live()
            run.settle()
            run.check()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
