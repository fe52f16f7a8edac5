"""Reads synthesized templates by the field's nouns, so that no test digs in JSON or names a hashed id."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Annotations, Match, Template

AS_OF = "2027-02-03T04:05:00+00:00"


def key(name: str = "pk") -> dynamodb.Attribute:
    """A string attribute."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def arn(service: str, resource: str) -> dict[str, list[object]]:
    """An ARN of the stack's own partition, region and account, as CloudFormation puts it together."""
    partition, region, account = ({"Ref": f"AWS::{name}"} for name in ("Partition", "Region", "AccountId"))
    return {"Fn::Join": ["", ["arn:", partition, f":{service}:", region, ":", account, f":{resource}"]]}


def new_stack(name: str = "Shop") -> cdk.Stack:
    """A stack in an app of its own, with synth's time pinned."""
    return cdk.Stack(cdk.App(context={"highwater:asOf": AS_OF}), name)


@dataclass(frozen=True)
class TargetView:
    """A scalable target of the template."""

    properties: dict[str, Any]

    @property
    def bounds(self) -> tuple[int, int]:
        """Min and max."""
        return self.properties["MinCapacity"], self.properties["MaxCapacity"]

    @property
    def actions(self) -> dict[str, tuple[int, int]]:
        """Schedule with zone, and the bounds it sets."""
        return {
            f"{action['Schedule']} {action['Timezone']}": (
                action["ScalableTargetAction"]["MinCapacity"],
                action["ScalableTargetAction"]["MaxCapacity"],
            )
            for action in self.properties.get("ScheduledActions", [])
        }


class TemplateView:
    """A stack's template."""

    def __init__(self, stack: cdk.Stack) -> None:
        self.template = Template.from_stack(stack)
        self._resources: dict[str, Any] = self.template.to_json().get("Resources", {})

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Resources of a CloudFormation type, whole."""
        return [resource for resource in self._resources.values() if resource["Type"] == kind]

    def named(self, kind: str) -> dict[str, Any]:
        """Resources of a CloudFormation type by logical id, whole."""
        return {name: resource for name, resource in self._resources.items() if resource["Type"] == kind}

    def properties_of(self, kind: str) -> dict[str, Any]:
        """The properties of the one resource of a type."""
        found = self.of_type(kind)
        assert len(found) == 1, f"{len(found)} resources of {kind}"
        properties: dict[str, Any] = found[0].get("Properties", {})
        return properties

    @property
    def targets(self) -> dict[str, TargetView]:
        """Scalable targets by `table write` or `index-name read`."""
        views = {}
        for resource in self.of_type("AWS::ApplicationAutoScaling::ScalableTarget"):
            properties = resource["Properties"]
            resource_id = json.dumps(properties["ResourceId"])
            index = resource_id.split("/index/")[1].split('"')[0] if "/index/" in resource_id else "table"
            dimension = "read" if "Read" in properties["ScalableDimension"] else "write"
            views[f"{index} {dimension}"] = TargetView(properties)
        return views

    @property
    def policies(self) -> list[dict[str, Any]]:
        """Target tracking configurations."""
        return [
            resource["Properties"]["TargetTrackingScalingPolicyConfiguration"]
            for resource in self.of_type("AWS::ApplicationAutoScaling::ScalingPolicy")
        ]

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that the floors' custom resource carries."""
        plan: dict[str, Any] = json.loads(self.properties_of("Custom::HighwaterFloors")["Plan"])
        return plan

    @property
    def marks(self) -> dict[str | None, tuple[int, int]]:
        """Marks by index name."""
        marks = json.loads(self.properties_of("Custom::HighwaterMarks")["Marks"])
        return {mark["index"]: (mark["read"], mark["write"]) for mark in marks}

    def statements(self) -> list[dict[str, Any]]:
        """Every IAM statement of the stack's policies."""
        return [
            statement
            for resource in self.of_type("AWS::IAM::Policy")
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        ]


def watched_metric(alarm: dict[str, Any]) -> str:
    """The metric of an alarm's properties, also where the alarm counts missing datapoints as 0."""
    if "MetricName" in alarm:
        return str(alarm["MetricName"])
    (metric,) = [query["MetricStat"]["Metric"] for query in alarm["Metrics"] if "MetricStat" in query]
    return str(metric["MetricName"])


def messages(stack: cdk.Stack, kind: str) -> list[str]:
    """The whole texts of a stack's annotations of `error`, `warning` or `info`, in order of place."""
    annotations = Annotations.from_stack(stack)
    find: dict[str, Callable[..., Any]] = {
        "error": annotations.find_error,
        "warning": annotations.find_warning,
        "info": annotations.find_info,
    }
    return [str(message.entry.data) for message in find[kind]("*", Match.any_value())]
