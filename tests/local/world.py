"""What the tests of the local cloud share: real clients, tables of their own, refusals, and the texts AWS writes."""

from __future__ import annotations

import io
import itertools
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT

READ = "dynamodb:table:ReadCapacityUnits"
WRITE = "dynamodb:table:WriteCapacityUnits"
INDEX_READ = "dynamodb:index:ReadCapacityUnits"
INDEX_WRITE = "dynamodb:index:WriteCapacityUnits"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# a scheduled action has run so long after its time
LATE = MINUTE
# by then a low alarm has seen its fifteen minutes: the last of their zeros come six minutes late, and now and then a
# minute has none
IDLE = 26 * MINUTE
NIGHTLY = "cron(0 3 * * ? *)"
_numbers = itertools.count(1)


def client(cloud: LocalCloud, service: str) -> Any:
    """A client that sends what it is told, valid or not, and shows the first answer."""
    plain = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    # typed by service name, which is not known here
    make: Any = boto3.client
    return make(service, config=plain, **cloud.client_arguments())


@contextmanager
def refused(code: str, text: str) -> Iterator[None]:
    """The call inside is answered with that error code and that whole text."""
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert (error["Code"], error["Message"]) == (code, text)


@contextmanager
def told(kind: type[Exception], text: str) -> Iterator[None]:
    """The block raises that error, with that whole text."""
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == text


def stack_status(cloudformation: Any, stack: str, *wanted: str) -> str:
    """The status of a stack as soon as nothing is under way, or as soon as it is one of *wanted*.

    One that is gone is DELETE_COMPLETE. It asks again at once, as the cloud answers each time.
    """
    while True:
        try:
            status = str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        except ClientError:
            status = "DELETE_COMPLETE"
        if status in wanted if wanted else not status.endswith("PROGRESS"):
            return status


class Stack:
    """One stack, created, updated and deleted; each waits until it is done and returns the status."""

    def __init__(self, cloudformation: Any) -> None:
        self._cloudformation = cloudformation
        self.name = unique("stack")
        self._is_there = False

    def create(self, **resources: Any) -> str:
        """Create it with these resources by logical id."""
        self._is_there = True
        return self._carry_out(self._cloudformation.create_stack, resources)

    def update(self, **resources: Any) -> str:
        """Update it to these resources."""
        return self._carry_out(self._cloudformation.update_stack, resources)

    def deploy(self, **resources: Any) -> tuple[str, list[str]]:
        """Create it, or update it if it is there; return also its `failures`."""
        return (self.update if self._is_there else self.create)(**resources), self.failures()

    def delete(self) -> str:
        """Delete it."""
        found = self._cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]["StackId"]
        self._cloudformation.delete_stack(StackName=self.name)
        return self._wait(found)

    def physical_id(self, logical_id: str) -> str:
        """The physical id of a resource."""
        answer = self._cloudformation.describe_stack_resource(StackName=self.name, LogicalResourceId=logical_id)
        return str(answer["StackResourceDetail"]["PhysicalResourceId"])

    def outputs(self) -> dict[str, str]:
        """What Ref of each target and policy gives."""
        found = self._cloudformation.describe_stacks(StackName=self.name)["Stacks"][0].get("Outputs", [])
        return {output["OutputKey"]: output["OutputValue"] for output in found}

    def failures(self) -> list[str]:
        """Why resources failed, newest first."""
        events = self._cloudformation.describe_stack_events(StackName=self.name)["StackEvents"]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        return [event.get("ResourceStatusReason", "") for event in failed]

    def reasons(self) -> str:
        """Why resources failed, a line each, newest first."""
        return "\n".join(self.failures())

    def _carry_out(self, operation: Any, resources: dict[str, Any]) -> str:
        operation(StackName=self.name, TemplateBody=_template(resources), Capabilities=["CAPABILITY_NAMED_IAM"])
        return self._wait()

    def _wait(self, name: str | None = None) -> str:
        return stack_status(self._cloudformation, name or self.name)


def _template(resources: dict[str, Any]) -> str:
    outputs = {
        name: {"Value": {"Ref": name}} for name, one in resources.items() if "ApplicationAutoScaling" in one["Type"]
    }
    return json.dumps({"Resources": resources, **({"Outputs": outputs} if outputs else {})})


def creation_failure(cloudformation: Any, kind: str, properties: dict[str, Any]) -> str:
    """Create a stack of one resource and delete it; why the resource could not be created, or nothing."""
    stack = Stack(cloudformation)
    stack.create(Named={"Type": kind, "Properties": properties})
    failed = stack.failures()
    stack.delete()
    return failed[-1] if failed else ""


def unique(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{next(_numbers)}"


def budget_text(decreases: int, last: datetime) -> str:
    """UpdateTable's refusal of a decrease, after that many today, the last one at *last*."""
    last = datetime.fromtimestamp(math.ceil(last.timestamp()), UTC)
    midnight = datetime(last.year, last.month, last.day, tzinfo=UTC) + DAY
    return (
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the "
        "first 4 decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 "
        f"seconds. Number of decreases today: {decreases}. Last decrease at {_long(last)}. Next decrease can be made "
        f"at {_long(min(last + HOUR, midnight))}."
    )


def _long(at: datetime) -> str:
    hour = at.strftime("%I").lstrip("0")
    return at.strftime(f"%A, %B {at.day}, %Y at {hour}:%M:%S %p Coordinated Universal Time")


def next_change(after: datetime, zone: ZoneInfo, forward: bool) -> datetime:
    """The next instant at which the zone's clocks go forward (or back)."""
    at = after.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    for _ in range(24 * 800):
        step = _offset(at + HOUR, zone) - _offset(at, zone)
        at += HOUR
        if step and (step > timedelta(0)) == forward:
            return at
    raise AssertionError(f"{zone} has no such clock change")


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


@dataclass
class World:
    """A cloud with clients, and the tables that one test makes in it."""

    cloud: LocalCloud
    autoscaling: Any
    dynamodb: Any
    made: list[str] = field(default_factory=list)

    def table(self, read: int, write: int, indexes: Mapping[str, tuple[int, int]] | None = None, **more: Any) -> str:
        """Make a table of its own name."""
        name = unique("table")
        members = keyed("id", others=["city"] if indexes else []) | {"ProvisionedThroughput": units(read, write)}
        if indexes:
            members["GlobalSecondaryIndexes"] = [index_definition(index, *pair) for index, pair in indexes.items()]
        # a member given as None is left out
        given = {member: value for member, value in (members | more).items() if value is not None}
        self.dynamodb.create_table(TableName=name, **given)
        self.made.append(name)
        return name

    def resource(self, read: int = 40, write: int = 41) -> str:
        """Make a table, and name it as Application Auto Scaling does."""
        return f"table/{self.table(read, write)}"

    def described(self, table: str, index: str | None = None) -> dict[str, Any]:
        """The table's or index's description."""
        description: dict[str, Any] = self.dynamodb.describe_table(TableName=table)["Table"]
        if index is None:
            return description
        return next(gsi for gsi in description["GlobalSecondaryIndexes"] if gsi["IndexName"] == index)

    def capacity(self, table: str, index: str | None = None) -> tuple[int, int]:
        """Provisioned reads and writes."""
        throughput = self.described(table, index)["ProvisionedThroughput"]
        return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]

    def decreases(self, table: str, index: str | None = None) -> int:
        """Decreases that count today."""
        return int(self.described(table, index)["ProvisionedThroughput"]["NumberOfDecreasesToday"])

    def last_decrease(self, table: str, index: str | None = None) -> datetime:
        """When the last decrease was accepted."""
        at: datetime = self.described(table, index)["ProvisionedThroughput"]["LastDecreaseDateTime"]
        return at.astimezone(UTC)

    def has_recovery(self, table: str) -> bool:
        """Whether point-in-time recovery is on."""
        backups = self.dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
        return bool(backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED")

    def warm(self, table: str, index: str | None = None) -> tuple[int, int]:
        """Warm reads and writes."""
        warm = self.described(table, index)["WarmThroughput"]
        return warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]

    def change(self, table: str, read: int, write: int, index: str | None = None) -> None:
        """Change capacity by UpdateTable."""
        self.update(table, {index: {"ProvisionedThroughput": units(read, write)}})

    def update(self, table: str, changes: Mapping[str | None, dict[str, Any]]) -> None:
        """One UpdateTable for the table (`None`) and its indexes (by name)."""
        members: dict[str, Any] = dict(changes.get(None, {}))
        updates = [{"Update": {"IndexName": name, **change}} for name, change in changes.items() if name is not None]
        if updates:
            members["GlobalSecondaryIndexUpdates"] = updates
        self.dynamodb.update_table(TableName=table, **members)

    def use_decreases(self, table: str, count: int = 4, index: str | None = None) -> None:
        """Use up decreases by lowering reads by one each."""
        for _ in range(count):
            read, write = self.capacity(table, index)
            self.change(table, read - 1, write, index)

    def register(self, resource: str, minimum: int | None, maximum: int | None, dim: str = READ, **more: Any) -> None:
        """Register or update a target; `None` leaves a bound out."""
        bounds = {"MinCapacity": minimum, "MaxCapacity": maximum}
        given = {member: units for member, units in bounds.items() if units is not None}
        self.autoscaling.register_scalable_target(**key(resource, dim), **given, **more)

    def target(self, resource: str, dim: str = READ) -> dict[str, Any]:
        """The one target of that resource and dimension."""
        found = self.autoscaling.describe_scalable_targets(
            ServiceNamespace="dynamodb", ResourceIds=[resource], ScalableDimension=dim
        )["ScalableTargets"]
        assert len(found) == 1
        return dict(found[0])

    def bounds(self, resource: str, dim: str = READ) -> tuple[int, int]:
        """The target's minimum and maximum."""
        target = self.target(resource, dim)
        return target["MinCapacity"], target["MaxCapacity"]

    def put_action(
        self,
        resource: str,
        name: str,
        schedule: str | None,
        minimum: int | None = None,
        maximum: int | None = None,
        dim: str = READ,
        **more: Any,
    ) -> None:
        """Put a scheduled action."""
        bounds = {"MinCapacity": minimum, "MaxCapacity": maximum}
        action = {member: units for member, units in bounds.items() if units is not None}
        members = {"ScalableTargetAction": action} if action else {}
        if schedule is not None:
            members["Schedule"] = schedule  # type: ignore[assignment]
        self.autoscaling.put_scheduled_action(**key(resource, dim), ScheduledActionName=name, **members, **more)

    def action(self, resource: str, name: str) -> dict[str, Any]:
        """A scheduled action as described."""
        found = self.autoscaling.describe_scheduled_actions(
            ServiceNamespace="dynamodb", ResourceId=resource, ScheduledActionNames=[name]
        )["ScheduledActions"]
        assert len(found) == 1
        return dict(found[0])

    def put_policy(self, resource: str, name: str, target_value: float = 70, dim: str = READ, **more: Any) -> Any:
        """Put a target tracking policy on utilization."""
        kind = "Read" if "Read" in dim else "Write"
        predefined = {"PredefinedMetricSpecification": {"PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"}}
        return self.autoscaling.put_scaling_policy(
            **key(resource, dim),
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={"TargetValue": target_value, **predefined, **more},
        )

    def policies(self, resource: str) -> dict[str, Any]:
        """The scaling policies of a resource by name."""
        found = self.autoscaling.describe_scaling_policies(ServiceNamespace="dynamodb", ResourceId=resource)
        return {policy["PolicyName"]: policy for policy in found["ScalingPolicies"]}

    def activities(self, resource: str, **more: Any) -> list[dict[str, Any]]:
        """Scaling activities as described, one page."""
        return list(
            self.autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb", ResourceId=resource, **more)[
                "ScalingActivities"
            ]
        )

    def now(self) -> datetime:
        """The cloud's time."""
        return self.cloud.status().now

    def advance_to(self, at: datetime) -> None:
        """Move the clock to *at* (up to a second past it), which is still to come."""
        ahead = at - self.now()
        assert ahead > timedelta(0), f"{at} is past"
        self.cloud.advance(ahead)

    def start_a_day(self) -> datetime:
        """Move on to 02:00 UTC of the next day: no counter of the day is used, and midnight is far."""
        at = self.now().replace(hour=2, minute=0, second=0) + DAY
        self.advance_to(at)
        return at

    def forget(self) -> None:
        """Deregister and delete what the test made."""
        pages = self.autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb")
        for target in [target for page in pages for target in page["ScalableTargets"]]:
            self.autoscaling.deregister_scalable_target(**key(target["ResourceId"], target["ScalableDimension"]))
        for name in self.dynamodb.list_tables()["TableNames"]:
            self.dynamodb.delete_table(TableName=name)


class SessionAt:
    """A session of boto3 whose clients are those of a cloud."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._session: Any = boto3.Session()
        self._arguments = cloud.client_arguments()

    def client(self, service: str, **more: Any) -> Any:
        """Return a client of that service."""
        return self._session.client(service, **self._arguments | more)


def world_of(cloud: LocalCloud) -> World:
    """A world on a cloud."""
    return World(cloud, client(cloud, "application-autoscaling"), client(cloud, "dynamodb"))


def key(resource: str, dim: str = READ) -> dict[str, str]:
    """The three members that name a target."""
    return {"ServiceNamespace": "dynamodb", "ResourceId": resource, "ScalableDimension": dim}


def wording(resource: str, dim: str = READ) -> str:
    """How errors of Application Auto Scaling name a target."""
    return f"service namespace: dynamodb, resource ID: {resource}, scalable dimension: {dim}"


Unmet = tuple[str | None, str, str]


def invalid(*unmet: Unmet) -> str:
    """AWS's text for values that do not satisfy their constraints: a value or `None`, its place, and what it must."""
    told = []
    for value, place, what in unmet:
        shown = "null" if value is None else f"'{value}'"
        told.append(f"Value {shown} at '{place}' failed to satisfy constraint: Member must {what}")
    return f"{len(told)} validation error{'s' if len(told) > 1 else ''} detected: {'; '.join(told)}"


def create_tables(dynamodb: Any, throughput: Mapping[str, int], **keys: Sequence[str]) -> None:
    """Create tables by their names, each with its partition key and perhaps a sort key, which are texts."""
    for table, key in keys.items():
        dynamodb.create_table(TableName=table, **keyed(*key), ProvisionedThroughput=throughput)


def keyed(*key: str, others: Sequence[str] = ()) -> dict[str, Any]:
    """The members of a table with that key, and with definitions of *others*, as in `attributes`."""
    return {"KeySchema": key_schema(*key), "AttributeDefinitions": attributes(*key, *others)}


def key_schema(*key: str) -> list[dict[str, str]]:
    """A partition key, and perhaps a sort key."""
    names = (name.partition(":")[0] for name in key)
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]


def attributes(*names: str) -> list[dict[str, str]]:
    """Definitions of attributes: texts, or numbers as in `rank:N`."""
    split = (name.partition(":") for name in names)
    return [{"AttributeName": name, "AttributeType": kind or "S"} for name, _, kind in split]


def projecting(name: str, *key: str, to: Any = "ALL", **more: Any) -> dict[str, Any]:
    """An index with that key on all attributes, on keys alone (`KEYS_ONLY`), or also on those that are listed."""
    included = {"ProjectionType": "INCLUDE", "NonKeyAttributes": to}
    projection = {"ProjectionType": to} if isinstance(to, str) else included
    return {"IndexName": name, "KeySchema": key_schema(*key), "Projection": projection, **more}


def create_function(functions: Any, name: str, code: str, **more: Any) -> str:
    """Create a function in Python, whose source has a function `handler`; return its ARN."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", code)
    members = {"Runtime": "python3.12", "Role": f"arn:aws:iam::{ACCOUNT}:role/{name}", "Handler": "index.handler"}
    code_member = {"ZipFile": packed.getvalue()}
    return str(functions.create_function(FunctionName=name, Code=code_member, **members | more)["FunctionArn"])


def units(read: int, write: int) -> dict[str, int]:
    """Provisioned throughput."""
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def warmth(read: int, write: int) -> dict[str, int]:
    """Warm throughput."""
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write}


def index_definition(name: str, read: int, write: int) -> dict[str, Any]:
    """An index on the attribute `city`."""
    return projecting(name, "city", ProvisionedThroughput=units(read, write))


def at_expression(at: datetime) -> str:
    """The `at` expression of an instant, in UTC."""
    return f"at({at.astimezone(UTC):%Y-%m-%dT%H:%M:%S})"


def metric(cloud: LocalCloud, name: str, statistic: str = "Sum", **dimensions: str) -> list[tuple[datetime, float]]:
    """DynamoDB's metric of the last three hours, by minutes, zeros left out."""
    with_names = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    now = cloud.status().now
    answer = client(cloud, "cloudwatch").get_metric_data(
        MetricDataQueries=[
            {
                "Id": "asked",
                "MetricStat": {
                    "Metric": {"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": with_names},
                    "Period": 60,
                    "Stat": statistic,
                },
            }
        ],
        StartTime=now - 3 * HOUR,
        EndTime=now,
        ScanBy="TimestampAscending",
    )["MetricDataResults"][0]
    return [(at, value) for at, value in zip(answer["Timestamps"], answer["Values"], strict=True) if value]


def written(cloud: LocalCloud, table: str) -> float:
    """Write units that a table consumed, as CloudWatch has it once its datapoints are there."""
    cloud.advance(5 * MINUTE)
    return sum(value for _, value in metric(cloud, "ConsumedWriteCapacityUnits", TableName=table))


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """A policy of these statements, which allow where they do not say otherwise."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow"} | each for each in statements]}


def trusting(**principal: Any) -> dict[str, Any]:
    """The trust policy of a role that the principal may assume."""
    return policy({"Principal": principal, "Action": "sts:AssumeRole"})


# A role with this trust policy may be assumed by whoever asks.
TRUST: Final = trusting(AWS=ACCOUNT)
OF_LAMBDA: Final = trusting(Service="lambda.amazonaws.com")


def dynamodb_as(cloud: LocalCloud, sts: Any, role: str) -> Any:
    """A client of DynamoDB with the credentials of the role of that name, which tries each call once."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    given = sts.assume_role(RoleArn=arn, RoleSessionName="session")["Credentials"]
    credentials = {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }
    make: Any = boto3.client
    once = Config(retries={"total_max_attempts": 1})
    return make("dynamodb", config=once, **(cloud.client_arguments() | credentials))
