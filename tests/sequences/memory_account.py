"""An AWS account in memory: its clock, and clients that act as a role whose policies are in force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, cast

from botocore.exceptions import ClientError

from highwater.aws.region import AwsRegion, Clients
from highwater.handlers.cloudformation import Outcome
from highwater.handlers.deployment import Deployment
from highwater.handlers.patience import Patience
from highwater.handlers.scaler.handler import Scaler
from highwater.handlers.scaler.outcome import Outcome as Turn
from highwater.handlers.scaler.region import Region
from highwater.handlers.scaler.run import Options
from tests.sequences.memory_autoscaling import Autoscaling, AutoscalingClient
from tests.sequences.memory_tables import Allowed, Document, Table, TablesClient, refused

# Units a second that each table and index consumes all the time: less than any floor.
CONSUMED = 3
_INVOCATION_SECONDS = 900
_METRICS_LATE_SECONDS = 150
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


@dataclass
class Account:
    """Tables, targets, plans and alarms, and the two functions at work on them.

    Attributes:
        now: The time, in seconds since 1970.
        roles: The roles of the functions, by the names `deployment` and `scaler`.
        stack_status: Tells the status of the stack.
        wrap: Stands in front of each client of the function for deploys.
        scaler_name: The name that the scaler's function was given.
        scaler: The name of the scaler that runs, `None` while none does.
        waiting: Events that were handed to a function and not served yet.
        answers: What CloudFormation was answered.
    """

    now: int
    tables: dict[str, Table] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, Document] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=lambda: {"deployment": Role(), "scaler": Role()})
    waiting: list[tuple[str, Document]] = field(default_factory=list)
    answers: list[tuple[Document, Outcome]] = field(default_factory=list)
    stack_status: Callable[[], str] = lambda: "UPDATE_IN_PROGRESS"
    wrap: Callable[[Any], Any] = lambda client: client
    scaler_name: str = ""
    scaler: str | None = None

    def __post_init__(self) -> None:
        self.autoscaling = Autoscaling(self.tables)

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
                self.autoscaling.track(CONSUMED, due)
                tracked += _TRACKED_EVERY
        self.now = end

    def serve(self, event: Document) -> None:
        """Invoke the function for deploys."""
        allowed = self.roles["deployment"].allows
        tables, targets = self._tables(allowed), self._targets(allowed)
        deployment = Deployment(
            dynamodb=lambda _: self.wrap(tables),
            autoscaling=lambda _: self.wrap(targets),
            cloudwatch=lambda _: self.wrap(Metrics(self, allowed)),
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
        allowed = self.roles["scaler"].allows
        region = AwsRegion(
            None,
            Clients(
                *(cast(Any, each) for each in (self._tables(allowed), self._targets(allowed), Metrics(self, allowed)))
            ),
        )
        region.ssm = cast(Any, Parameters(self, allowed))
        turns: list[Turn] = []
        scaler = Scaler(
            Options(name=self.scaler),
            region_of=lambda _: cast(Region, region),
            hand_on=lambda event: self.waiting.append(("scaler", event)),
            report=lambda turn, _: turns.append(turn),
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

    def _tables(self, allowed: Allowed) -> TablesClient:
        return TablesClient(self.tables, lambda: self.now, allowed)

    def _targets(self, allowed: Allowed) -> AutoscalingClient:
        return AutoscalingClient(self.autoscaling, lambda: self.now, allowed)


@dataclass
class Functions:
    """Lambda, for what the function for deploys has other invocations do."""

    account: Account

    def invoke(self, function: str, event: Document) -> None:
        """Keep the event for a function; the name and the role are those of the model."""
        name = "deployment" if "Deployment" in function else "scaler"
        if not self.account.roles["deployment"].allows("lambda:InvokeFunction", function):
            raise refused("AccessDeniedException", f"not authorized to perform: lambda:InvokeFunction on {function}")
        self.account.waiting.append((name, json.loads(json.dumps(event))))


@dataclass
class Stacks:
    """A boto3 client of CloudFormation, for what `highwater.aws.stacks` calls."""

    account: Account
    allowed: Allowed

    def describe_stacks(self, *, StackName: str) -> Document:
        if not self.allowed("cloudformation:DescribeStacks", StackName):
            raise refused("AccessDeniedException", f"not authorized to perform: DescribeStacks on {StackName}")
        return {"Stacks": [{"StackStatus": self.account.stack_status()}]}


class ParameterNotFoundError(ClientError):
    """What boto3 raises for a parameter that does not exist."""


@dataclass
class Parameters:
    """A boto3 client of Systems Manager, for what `highwater.aws.plans` calls."""

    account: Account
    allowed: Allowed

    class exceptions:  # noqa: D106 - boto3's name
        ParameterNotFound = ParameterNotFoundError

    def get_parameter(self, *, Name: str) -> Document:
        self._check("ssm:GetParameter", Name)
        if Name not in self.account.parameters:
            raise ParameterNotFoundError({"Error": {"Code": "ParameterNotFound", "Message": ""}}, "GetParameter")
        return {"Parameter": {"Name": Name, "Value": self.account.parameters[Name]}}

    def put_parameter(self, *, Name: str, Value: str, **_: Any) -> None:
        self._check("ssm:PutParameter", Name)
        self.account.parameters[Name] = Value

    def get_parameters(self, *, Names: list[str]) -> Document:
        for name in Names:
            self._check("ssm:GetParameters", name)
        found = {name: value for name, value in self.account.parameters.items() if name in Names}
        return {"Parameters": [{"Name": name, "Value": value} for name, value in found.items()]}

    def get_paginator(self, operation: str) -> Parameters:
        assert operation == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str, **_: Any) -> Iterator[Document]:
        self._check("ssm:GetParametersByPath", Path.rstrip("/"))
        found = {name: value for name, value in self.account.parameters.items() if name.startswith(Path)}
        yield {"Parameters": [{"Name": name, "Value": value} for name, value in found.items()]}

    def _check(self, action: str, name: str) -> None:
        arn = f"arn:aws:ssm:us-east-1:000000000000:parameter{name}"
        if not self.allowed(action, arn):
            raise refused("AccessDeniedException", f"not authorized to perform: {action} on resource: {arn}")


@dataclass
class Metrics:
    """A boto3 client of CloudWatch, for what `highwater.aws.metrics` and `alarms` call; every minute is alike."""

    account: Account
    allowed: Allowed
    operation: str = ""

    def get_paginator(self, operation: str) -> Metrics:
        return Metrics(self.account, self.allowed, operation)

    def paginate(self, **request: Any) -> Iterator[Document]:
        yield self._metric_data(request) if self.operation == "get_metric_data" else self._alarms(request)

    def put_metric_alarm(self, **alarm: Any) -> None:
        self._check(
            "cloudwatch:PutMetricAlarm", f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{alarm['AlarmName']}"
        )
        self.account.alarms[alarm["AlarmName"]] = alarm

    def _alarms(self, request: Mapping[str, Any]) -> Document:
        self._check("cloudwatch:DescribeAlarms", "arn:aws:cloudwatch:us-east-1:000000000000:alarm:*")
        wanted, prefix = request.get("AlarmNames"), request.get("AlarmNamePrefix", "")
        found = [
            {"StateValue": "OK"} | alarm
            for name, alarm in self.account.alarms.items()
            if (name in wanted if wanted is not None else name.startswith(prefix))
        ]
        return {"MetricAlarms": found}

    def _metric_data(self, request: Mapping[str, Any]) -> Document:
        self._check("cloudwatch:GetMetricData", "*")
        first = int(request["StartTime"].timestamp())
        last = min(int(request["EndTime"].timestamp()), self.account.now - _METRICS_LATE_SECONDS)
        minutes = [float(at) for at in range(first, last, 60)]
        results = []
        for query in request["MetricDataQueries"]:
            consumed = query["MetricStat"]["Metric"]["MetricName"].startswith("Consumed")
            values = [60.0 * CONSUMED] * len(minutes) if consumed else []
            results.append({"Id": query["Id"], "Timestamps": minutes if consumed else [], "Values": values})
        return {"MetricDataResults": results}

    def _check(self, action: str, arn: str) -> None:
        if not self.allowed(action, arn):
            raise refused("AccessDeniedException", f"not authorized to perform: {action} on resource: {arn}")


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
