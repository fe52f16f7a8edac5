"""Reads synthesized templates by the field's nouns, so that no test digs in JSON or names a hashed id."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import cx_api

from cdk_highwater import Capacity, HighWaterTable

AS_OF = "2027-02-03T04:05:00+00:00"
READ = Capacity.autoscaled(min_capacity=3, max_capacity=30)
WRITE = Capacity.autoscaled(min_capacity=41, max_capacity=4_000)
E = TypeVar("E", bound=Exception)
_TAGS = re.compile(r"( \[ack: [^\]]+\])+$| \([^()]+::[^()]+\)$")


def key(name: str = "pk") -> dynamodb.Attribute:
    """A string attribute."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def arn(service: str, resource: str) -> dict[str, list[object]]:
    """An ARN of the stack's own partition, region and account, as CloudFormation puts it together."""
    partition, region, account = ({"Ref": f"AWS::{name}"} for name in ("Partition", "Region", "AccountId"))
    return {"Fn::Join": ["", ["arn:", partition, f":{service}:", region, ":", account, f":{resource}"]]}


# what a function may do that sets floors, beside changing its tables
BOUNDS_STATEMENTS: list[dict[str, Any]] = [
    {
        "Action": "application-autoscaling:DescribeScalableTargets",
        "Effect": "Allow",
        "Resource": "*",
    },
    {
        "Action": "application-autoscaling:RegisterScalableTarget",
        "Condition": {"StringEquals": {"application-autoscaling:service-namespace": "dynamodb"}},
        "Effect": "Allow",
        "Resource": arn("application-autoscaling", "scalable-target/*"),
    },
    {
        "Action": ["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
        "Effect": "Allow",
        "Resource": arn("cloudwatch", "alarm:*"),
    },
]


def joined(value: Any) -> str:
    """A text that CloudFormation puts together, with `<>` in the place of each reference."""
    return "".join(part if isinstance(part, str) else "<>" for part in value["Fn::Join"][1])


def resolved(value: Any, ref: Callable[[str], str], attribute: Callable[[str], str]) -> Any:
    """A part of a template with what *ref* and *attribute* give of the names in the place of its references."""
    if isinstance(value, list):
        return [resolved(item, ref, attribute) for item in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return ref(value["Ref"])
    if "Fn::GetAtt" in value:
        return attribute(value["Fn::GetAtt"][0])
    if "Fn::Join" in value:
        return value["Fn::Join"][0].join(resolved(part, ref, attribute) for part in value["Fn::Join"][1])
    return {name: resolved(item, ref, attribute) for name, item in value.items()}


def depended_on(template: dict[str, Any], name: str) -> set[str]:
    """What a resource waits for: its dependencies, and those that its properties refer to."""
    resource = template["Resources"][name]
    found = set(resource.get("DependsOn", []))

    def search(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                search(item)
        elif isinstance(value, dict):
            if "Ref" in value:
                found.add(value["Ref"])
            if "Fn::GetAtt" in value:
                found.add(value["Fn::GetAtt"][0])
            for item in value.values():
                search(item)

    search(resource.get("Properties", {}))
    return found & set(template["Resources"])


def all_before(template: dict[str, Any], name: str, seen: tuple[str, ...] = ()) -> set[str]:
    """All that is created before a resource; fails in a circle."""
    assert name not in seen, f"circle: {' -> '.join([*seen, name])}"
    return {
        each for other in depended_on(template, name) for each in (other, *all_before(template, other, (*seen, name)))
    }


def listed(value: str | list[str]) -> list[str]:
    """What an IAM statement gives as one or as several."""
    return [value] if isinstance(value, str) else value


@contextmanager
def refused(kind: type[E], told: str) -> Iterator[pytest.ExceptionInfo[E]]:
    """The block is refused with an error of that kind, and with that whole text."""
    with pytest.raises(kind) as caught:
        yield caught
    assert str(caught.value) == told


# how the information ends that synth has of every managed table
EVERY_TABLE_SAYS = ("[highwater:added]", "[highwater:drift]", "[highwater:leastCharge]")


def new_app(as_of: str = AS_OF, **more: Any) -> cdk.App:
    """An app with synth's time pinned, which writes only what tests read."""
    return cdk.App(context={"highwater:asOf": as_of}, tree_metadata=False, **more)


def new_stack(name: str = "Shop") -> cdk.Stack:
    """A stack in an app of its own, for an account and a region that only a deploy knows."""
    return cdk.Stack(new_app(), name)


def placed_stack(
    app: cdk.App | None = None, name: str = "Shop", region: str = "eu-west-1", account: str = "111122223333"
) -> cdk.Stack:
    """A stack for a given account and region, by default in an app of its own."""
    return cdk.Stack(app or new_app(), name, env=cdk.Environment(account=account, region=region))


def scalable_table(stack: cdk.Stack, id: str = "Jobs", **more: Any) -> HighWaterTable:
    """A table that target tracking scales."""
    return HighWaterTable(stack, id, **{"partition_key": key(), "read": READ, "write": WRITE, **more})


def global_table(
    stack: cdk.Stack, id: str = "World", *, read: dynamodb.Capacity | None = None, **more: Any
) -> dynamodb.TableV2:
    """A `TableV2` with provisioned capacity."""
    billing = dynamodb.Billing.provisioned(
        read_capacity=read or dynamodb.Capacity.fixed(5),
        write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10),
    )
    return dynamodb.TableV2(stack, id, partition_key=key(), billing=billing, **more)


def _synthesized(stack: cdk.Stack) -> cx_api.CloudFormationStackArtifact:
    """The stack after a synth of its app. The app keeps it, so all stacks of an app are made before one is read."""
    app = cdk.Stage.of(stack)
    assert app is not None
    return app.synth().get_stack_artifact(stack.artifact_id)


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
        self._stack = stack
        self.template: dict[str, Any] = _synthesized(stack).template
        self._resources: dict[str, Any] = self.template.get("Resources", {})

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Resources of a CloudFormation type, whole."""
        return [resource for resource in self._resources.values() if resource["Type"] == kind]

    def named(self, kind: str) -> dict[str, Any]:
        """Resources of a CloudFormation type by logical id, whole."""
        return {name: resource for name, resource in self._resources.items() if resource["Type"] == kind}

    def properties_of(self, kind: str, prefix: str = "") -> dict[str, Any]:
        """The properties of the one resource of a type whose logical id begins with *prefix*."""
        found = [each for name, each in self.named(kind).items() if name.startswith(prefix)]
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

    def statements(self, prefix: str = "") -> list[dict[str, Any]]:
        """Every IAM statement of the stack's policies and roles whose logical ids begin with *prefix*."""
        policies = {name: [each["Properties"]] for name, each in self.named("AWS::IAM::Policy").items()}
        in_roles = {name: each["Properties"].get("Policies", []) for name, each in self.named("AWS::IAM::Role").items()}
        return [
            statement
            for name, documents in (policies | in_roles).items()
            if name.startswith(prefix)
            for document in documents
            for statement in document["PolicyDocument"]["Statement"]
        ]

    def by_actions(self, prefix: str) -> dict[str, list[dict[str, Any]]]:
        """The same by what they allow: the names of their actions in order."""
        found: dict[str, list[dict[str, Any]]] = {}
        for statement in self.statements(prefix):
            found.setdefault(" ".join(sorted(listed(statement["Action"]))), []).append(statement)
        return found

    @property
    def machine(self) -> dict[str, Any]:
        """The definition of the stack's state machine."""
        definition = self.properties_of("AWS::StepFunctions::StateMachine")["DefinitionString"]
        machine: dict[str, Any] = json.loads(joined(definition))
        return machine

    def messages(self, kind: str) -> list[str]:
        """The stack's findings, as `messages` gives them."""
        return messages(self._stack, kind)


def watched_metric(alarm: dict[str, Any]) -> str:
    """The metric of an alarm's properties, also where the alarm counts missing datapoints as 0."""
    if "MetricName" in alarm:
        return str(alarm["MetricName"])
    (metric,) = [query["MetricStat"]["Metric"] for query in alarm["Metrics"] if "MetricStat" in query]
    return str(metric["MetricName"])


def messages(stack: cdk.Stack, kind: str) -> list[str]:
    """The whole texts of a stack's findings of `error`, `warning` or `info`, in order of place.

    As the CDK CLI prints them, which is without the tags that the CDK finds them by.
    """
    level = cx_api.SynthesisMessageLevel[kind.upper()]
    texts = [str(message.entry.data) for message in _synthesized(stack).messages if message.level is level]
    return [_TAGS.sub("", text) for text in texts]
