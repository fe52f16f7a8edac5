"""The tables that a stack manages: their names in the account, the plans that they were deployed from, their state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptance.place import Place
from highwater.core import Plan, Target
from highwater.core.names import TargetName


@dataclass(frozen=True, slots=True)
class Deployed:
    """A table and its plan."""

    table: str
    plan: Plan

    def name_of(self, target: Target) -> TargetName:
        """How Application Auto Scaling names one of its targets."""
        return TargetName(self.table, target.index, target.dimension)


def target_request(name: TargetName) -> dict[str, str]:
    """The scalable target in requests of Application Auto Scaling."""
    return {
        "ServiceNamespace": "dynamodb",
        "ResourceId": name.resource_id,
        "ScalableDimension": name.scalable_dimension,
    }


def plans_of(template: Path) -> list[tuple[Any, Plan]]:
    """Read the plans of a template, each with its table: a name, or the reference to a table of the template."""
    resources: Mapping[str, Any] = json.loads(template.read_text())["Resources"]
    return [
        (resource["Properties"]["TableName"], Plan.from_document(json.loads(resource["Properties"]["Plan"])))
        for resource in resources.values()
        if resource["Type"] == "Custom::HighwaterFloors"
    ]


def find_deployed(place: Place, stack: str, template: Path) -> list[Deployed]:
    """The tables that the deployed stack manages."""
    physical = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in _resources(place, stack)}
    return [
        Deployed(table if isinstance(table, str) else physical[table["Ref"]], plan)
        for table, plan in plans_of(template)
    ]


def names_of_type(place: Place, stack: str, kind: str) -> list[str]:
    """The physical names of a deployed stack's resources of one type, such as `AWS::Logs::LogGroup`."""
    return [str(each["PhysicalResourceId"]) for each in _resources(place, stack) if each["ResourceType"] == kind]


def _resources(place: Place, stack: str) -> list[dict[str, Any]]:
    pages = place.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    return [each for page in pages for each in page["StackResourceSummaries"] if "PhysicalResourceId" in each]


@dataclass(frozen=True, slots=True)
class State:
    """One dimension of a table or index as DynamoDB and Application Auto Scaling have it.

    Attributes:
        floor: The scalable target's minimum, `None` where no target is registered.
        ceiling: The scalable target's maximum, likewise.
        units: Provisioned units per second.
        is_active: Whether no change of the table or index is under way.
    """

    floor: int | None
    ceiling: int | None
    units: int
    is_active: bool


def read_state(place: Place, name: TargetName) -> State:
    """Read the state of one dimension."""
    found = place.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[name.resource_id], ScalableDimension=name.scalable_dimension
    )["ScalableTargets"]
    resource = read_resource(place, name.table, name.index)
    return State(
        found[0]["MinCapacity"] if found else None,
        found[0]["MaxCapacity"] if found else None,
        int(resource["ProvisionedThroughput"][f"{name.dimension.title()}CapacityUnits"]),
        resource.get("TableStatus", resource.get("IndexStatus")) == "ACTIVE",
    )


def read_resource(place: Place, table: str, index: str | None) -> dict[str, Any]:
    """Describe a table, or one of its indexes."""
    described: dict[str, Any] = place.client("dynamodb").describe_table(TableName=table)["Table"]
    if index is None:
        return described
    return next(each for each in described["GlobalSecondaryIndexes"] if each["IndexName"] == index)


def read_schedules(place: Place, name: TargetName) -> list[str]:
    """Read the schedules of the target's scheduled actions, sorted."""
    pages = (
        place.client("application-autoscaling")
        .get_paginator("describe_scheduled_actions")
        .paginate(**target_request(name))
    )
    return sorted(action["Schedule"] for page in pages for action in page["ScheduledActions"])
