"""One region of an AWS account in memory: its clock, its state, and clients that act as a role."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from highwater.aws.cloudwatch import DatapointRate
from highwater.aws.region import AwsRegion
from highwater.core import Bounds, Plan
from highwater.core.names import TargetName
from highwater.handlers.deploy.handler import Deployment
from highwater.handlers.deploy.response import EventOutcome
from highwater.handlers.deploy.waiting import Patience
from highwater.handlers.scaler.gather import RunOutcome as Turn
from highwater.handlers.scaler.handler import Scaler
from highwater.handlers.scaler.run import Options
from tests.memory_aws.autoscaling import Autoscaling, AutoscalingClient
from tests.memory_aws.clients import Functions, Metrics, Parameters, Stacks, Tagging
from tests.memory_aws.tables import Allowed, Document, Table, TablesClient

_INVOCATION_SECONDS = 900
_TRACKED_EVERY = 3600
_ATTEMPTS = 3
# Pauses are longer than the function asks for, as nothing happens in most of them.
_PAUSES_IN_ONE = 6


@dataclass
class Role:
    """What a function may do: the statements of its policies, by policy."""

    policies: dict[str, list[Document]] = field(default_factory=dict)

    def allows(self, action: str, arn: str) -> bool:
        return any(
            action in _listed(statement["Action"])
            and any(fnmatchcase(arn, pattern) for pattern in _listed(statement["Resource"]))
            for statements in self.policies.values()
            for statement in statements
        )


class MemoryRegion(AwsRegion):
    """The scaler's own region, with clients in memory."""

    def __init__(self, account: Account, allowed: Allowed, name: str | None, wrap: Callable[[Any], Any]) -> None:
        super().__init__(
            name,
            dynamodb=wrap(account.tables_client(allowed)),
            autoscaling=wrap(account.targets_client(allowed)),
            cloudwatch=wrap(Metrics(account, allowed)),
            rate=DatapointRate(clock=lambda: 0.0, sleep=lambda _: None),
        )
        self.ssm = wrap(Parameters(account, allowed))
        self.tagging = wrap(Tagging(account))


@dataclass
class Account:
    """Tables, targets, plans and alarms, and the two functions at work on them.

    Attributes:
        now: The time, in seconds since 1970.
        functions: The tags of functions, by name.
        consumed_units: Units a second that each table and index consumes all the time.
        units: Likewise of single targets.
        surges: Units that targets consumed in single minutes.
        throttles: Requests of targets that were throttled in single minutes.
        roles: The roles of the functions, by the names `deployment` and `scaler`.
        wrap: Stands in front of each client of the function for deploys.
        scaler_name: The name that the scaler's function was given.
        scaler: The name of the scaler that runs, `None` while none does.
        stack_status: Tells the status of the stack that DescribeStacks returns.
        stack_resources: Tells the physical names of the stack's resources, by logical id.
        stack_operation: What that returns besides, such as `DeploymentConfig` and `LastUpdatedTime`.
        waiting: Events that were handed to a function and not served yet.
        answers: What CloudFormation was answered.
    """

    now: int
    tables: dict[str, Table] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, Document] = field(default_factory=dict)
    functions: dict[str, dict[str, str]] = field(default_factory=dict)
    consumed_units: int = 0
    units: dict[TargetName, int] = field(default_factory=dict)
    surges: dict[TargetName, dict[int, int]] = field(default_factory=dict)
    throttles: dict[TargetName, dict[int, int]] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=lambda: {"deployment": Role(), "scaler": Role()})
    waiting: list[tuple[str, Document]] = field(default_factory=list)
    answers: list[tuple[Document, EventOutcome]] = field(default_factory=list)
    stack_status: Callable[[], str] = lambda: "UPDATE_IN_PROGRESS"
    stack_resources: Callable[[], Mapping[str, str]] = dict
    stack_operation: Document = field(default_factory=dict)
    wrap: Callable[[Any], Any] = lambda client: client
    scaler_name: str = ""
    scaler: str | None = None

    def __post_init__(self) -> None:
        self.autoscaling = Autoscaling(self.tables)

    def register(self, table: str, plan: Plan, bounds: Bounds | None = None) -> None:
        """Register a plan's targets with these bounds, by default those that they have outside of windows."""
        for target in plan.targets():
            base = Bounds(int(target.capacity.min_capacity), int(target.capacity.max_capacity))
            self.autoscaling.register(TargetName(table, *target.key), bounds or base, self.now)

    def at(self) -> datetime:
        """The time as an instant."""
        return datetime.fromtimestamp(self.now, UTC)

    def advance(self, seconds: int) -> None:
        """Let time pass: scheduled actions run, and tracking lowers what is calm."""
        end = self.now + seconds
        tracked = self.now - self.now % _TRACKED_EVERY + _TRACKED_EVERY
        while True:
            run = self.autoscaling.next_run(self.now, end)
            due = min((at for at in (run, tracked) if at is not None and at <= end), default=None)
            if due is None:
                break
            self.now = due
            if due == run:
                self.autoscaling.run(due)
            if due == tracked:
                self.autoscaling.track(self.consumed_units, due)
                tracked += _TRACKED_EVERY
        self.now = end

    def serve(self, event: Document) -> None:
        """Invoke the function for deploys."""
        allowed = self.roles["deployment"].allows
        tables, targets = self.tables_client(allowed), self.targets_client(allowed)
        deployment = Deployment(
            dynamodb=lambda _: self.wrap(tables),
            autoscaling=lambda _: self.wrap(targets),
            ssm=lambda: self.wrap(Parameters(self, allowed)),
            stacks=lambda: self.wrap(Stacks(self, allowed)),
            answer=lambda event, outcome: self.answers.append((event, outcome)),
            invoke=self.wrap(Functions(self)).invoke,
        )
        ends = self.now + _INVOCATION_SECONDS
        deployment.serve(
            json.loads(json.dumps(event)),
            Patience(lambda: float(ends - self.now), lambda seconds: self.advance(int(seconds) * _PAUSES_IN_ONE)),
        )

    def turn(self, *tables: str) -> Turn | None:
        """Run the scaler for all tables or these, at the account's time, where there is one."""
        if self.scaler is None:
            return None
        scaler = Scaler(
            Options(name=self.scaler),
            region_of=lambda _: MemoryRegion(self, self.roles["scaler"].allows, None, lambda client: client),
            hand_on=lambda event: self.waiting.append(("scaler", event)),
            report=lambda *_: None,
        )
        event: Document = {"highwater": "tables", "tables": list(tables), "time": self.at().isoformat()}
        return scaler.serve(event, lambda: 300.0)

    def serve_waiting(self) -> None:
        """Serve one event that was handed to a function; Lambda tries one that fails three times."""
        function, event = self.waiting.pop(0)
        if function == "deployment":
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self.serve(event)
                    break
                except Exception:
                    self.advance(60 * attempt)
        elif event.get("attempt", 0) < 2:
            self.turn(*event["tables"])

    def tables_client(self, allowed: Allowed) -> TablesClient:
        return TablesClient(self.tables, lambda: self.now, allowed)

    def targets_client(self, allowed: Allowed) -> AutoscalingClient:
        return AutoscalingClient(self.autoscaling, lambda: self.now, allowed)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
