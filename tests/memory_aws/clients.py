"""Boto3 clients in memory of what an account has beside tables and targets, each for what `highwater.aws` calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.exceptions import ClientError

from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_lab.services.timing import Timing
from tests.memory_aws.tables import Allowed, Document, is_denied, refused

if TYPE_CHECKING:
    from tests.memory_aws.account import Account

_ARN = "arn:aws:{service}:us-east-1:000000000000:{resource}"
# CloudWatch has the datapoint of a minute so long after the minute's begin.
LATE_SECONDS = 60 + Timing().metric_delay
# What one request consumes, for the number of requests.
REQUEST_UNITS = 98


def _check(allowed: Allowed, action: str, resource: str) -> None:
    arn = resource if resource == "*" else _ARN.format(service=action.partition(":")[0], resource=resource)
    if not allowed(action, arn):
        raise is_denied(action, arn)


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
    """CloudFormation."""

    account: Account
    allowed: Allowed

    def describe_stacks(self, *, StackName: str) -> Document:
        if not self.allowed("cloudformation:DescribeStacks", StackName):
            raise refused("AccessDeniedException", f"not authorized to perform: DescribeStacks on {StackName}")
        operation = self.account.stack_operation
        # as the client of the function for deploys adds it, whatever boto3 knows
        is_express = operation.get("DeploymentConfig", {}).get("Mode") == "EXPRESS"
        return {
            "Stacks": [{"StackStatus": self.account.stack_status()} | operation],
            "HighwaterIsExpress": is_express,
        }

    def get_paginator(self, operation: str) -> Stacks:
        assert operation == "list_stack_resources"
        return self

    def paginate(self, *, StackName: str) -> Iterator[Document]:
        if not self.allowed("cloudformation:ListStackResources", StackName):
            raise refused("AccessDeniedException", f"not authorized to perform: ListStackResources on {StackName}")
        for logical_id, physical_id in self.account.stack_resources().items():
            found = {"LogicalResourceId": logical_id, "PhysicalResourceId": physical_id}
            yield {"StackResourceSummaries": [found | {"ResourceStatus": "UPDATE_COMPLETE"}]}


class ParameterNotFoundError(ClientError):
    """What boto3 raises for a parameter that does not exist."""


@dataclass
class Parameters:
    """Systems Manager."""

    account: Account
    allowed: Allowed

    class exceptions:  # noqa: D106 - boto3's name
        ParameterNotFound = ParameterNotFoundError

    def get_parameter(self, *, Name: str) -> Document:
        _check(self.allowed, "ssm:GetParameter", f"parameter{Name}")
        if Name not in self.account.parameters:
            raise ParameterNotFoundError({"Error": {"Code": "ParameterNotFound", "Message": ""}}, "GetParameter")
        return {"Parameter": {"Name": Name, "Value": self.account.parameters[Name]}}

    def put_parameter(self, *, Name: str, Value: str, **_: Any) -> Document:
        _check(self.allowed, "ssm:PutParameter", f"parameter{Name}")
        self.account.parameters[Name] = Value
        return {}

    def get_parameters(self, *, Names: list[str]) -> Document:
        assert len(Names) <= 10, "GetParameters accepts up to ten names"
        for name in Names:
            _check(self.allowed, "ssm:GetParameters", f"parameter{name}")
        # a name may end with a version, which the answer's name does not
        wanted = {name.partition(":")[0] for name in Names}
        found = {name: value for name, value in self.account.parameters.items() if name in wanted}
        return {"Parameters": [{"Name": name, "Value": value} for name, value in found.items()]}

    def get_paginator(self, operation: str) -> Parameters:
        assert operation == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str, **_: Any) -> Iterator[Document]:
        _check(self.allowed, "ssm:GetParametersByPath", f"parameter{Path.rstrip('/')}")
        found = {name: value for name, value in self.account.parameters.items() if name.startswith(Path)}
        yield {"Parameters": [{"Name": name, "Value": value} for name, value in found.items()]}


@dataclass
class Tagging:
    """The Resource Groups Tagging API: tables with a tag, and functions with a tag."""

    account: Account

    def get_paginator(self, operation: str) -> Tagging:
        assert operation == "get_resources"
        return self

    def paginate(self, *, TagFilters: list[Document], ResourceTypeFilters: list[str]) -> Iterator[Document]:
        tagged = {table.arn: table.tags for table in self.account.tables.values()}
        if ResourceTypeFilters == ["lambda:function"]:
            tagged = {
                _ARN.format(service="lambda", resource=f"function:{name}"): tags
                for name, tags in self.account.functions.items()
            }
        yield {
            "ResourceTagMappingList": [
                {"ResourceARN": arn, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
                for arn, tags in tagged.items()
                if all(wanted["Key"] in tags for wanted in TagFilters)
            ]
        }


@cache
def _meta() -> SimpleNamespace:
    return SimpleNamespace(service_model=botocore.session.get_session().get_service_model("cloudwatch"))


@dataclass
class Metrics:
    """CloudWatch: alarms, and what targets consume and how often they throttle."""

    account: Account
    allowed: Allowed
    operation: str = ""

    @property
    def meta(self) -> SimpleNamespace:
        """The model of the service, where boto3's client has it."""
        return _meta()

    def get_paginator(self, operation: str) -> Metrics:
        return Metrics(self.account, self.allowed, operation)

    def paginate(self, **request: Any) -> Iterator[Document]:
        yield self._metric_data(request) if self.operation == "get_metric_data" else self.describe_alarms(**request)

    def put_metric_alarm(self, **alarm: Any) -> Document:
        _check(self.allowed, "cloudwatch:PutMetricAlarm", f"alarm:{alarm['AlarmName']}")
        self.account.alarms[alarm["AlarmName"]] = alarm
        return {}

    def describe_alarms(self, **request: Any) -> Document:
        _check(self.allowed, "cloudwatch:DescribeAlarms", "alarm:*")
        wanted, prefix = request.get("AlarmNames"), request.get("AlarmNamePrefix", "")
        assert wanted is None or len(wanted) <= 100, "DescribeAlarms accepts up to a hundred names"
        found = [
            {"StateValue": "OK"} | alarm
            for name, alarm in self.account.alarms.items()
            if (name in wanted if wanted is not None else name.startswith(prefix))
        ]
        return {"MetricAlarms": found}

    def _metric_data(self, request: Mapping[str, Any]) -> Document:
        _check(self.allowed, "cloudwatch:GetMetricData", "*")
        first = int(request["StartTime"].timestamp()) // 60
        after = min(int(request["EndTime"].timestamp()), self.account.now - LATE_SECONDS + 1)
        minutes = range(first, -(-after // 60))
        results = []
        for query in request["MetricDataQueries"]:
            points = self._points(query["MetricStat"], minutes)
            at = [60.0 * minute for minute in points]
            results.append({"Id": query["Id"], "Timestamps": at, "Values": list(points.values())})
        return {"MetricDataResults": results}

    def _points(self, wanted: Document, minutes: range) -> dict[int, float]:
        metric = wanted["Metric"]
        name = _target(metric["MetricName"], {each["Name"]: each["Value"] for each in metric["Dimensions"]})
        if metric["MetricName"].startswith("Provisioned"):
            # DynamoDB publishes it every five minutes; here, what it is now
            control = self.account.tables[name.table].resources[name.index]
            return {minute: float(control.units[name.dimension]) for minute in minutes if minute % 5 == 0}
        if not metric["MetricName"].startswith("Consumed"):
            is_by_key = "KeyRange" in metric["MetricName"]
            events = {} if is_by_key else self.account.throttles.get(name, {})
            return {minute: float(count) for minute, count in events.items() if minute in minutes}
        units = 60.0 * self.account.units.get(name, self.account.consumed_units)
        points = dict.fromkeys(minutes, units)
        points |= {minute: count for minute, count in self.account.surges.get(name, {}).items() if minute in minutes}
        if wanted["Stat"] != "SampleCount":
            return points
        # a sample for each request, and one of 0 (recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics)
        return {minute: value / REQUEST_UNITS + 1 for minute, value in points.items()}


def _target(metric: str, dimensions: Mapping[str, str]) -> TargetName:
    dimension = Dimension.READ if "Read" in metric else Dimension.WRITE
    return TargetName(dimensions["TableName"], dimensions.get("GlobalSecondaryIndexName"), dimension)
