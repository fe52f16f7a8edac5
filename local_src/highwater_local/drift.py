"""CloudFormation's drift-aware change sets, which `cdk deploy --revert-drift` asks for (`REVERT_DRIFT`).

They give resources that were changed behind the stack's back the properties of the template again. Compared are the
properties that Highwater changes: capacity, bounds, thresholds of alarms, values of parameters. Capacity of a table
that a scalable target of the same stack scales is managed by AWS, and is left as it is; that AWS does so for indexes is
not documented, so theirs is reverted here. Source: AWS CloudFormation User Guide, "Using drift-aware change sets", read
2026-11.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_local import ministack
from highwater_local.autoscaling.records import TargetKey
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.cloudformation import TARGET, target_of
from highwater_local.dynamodb.resources import UNITS, resource_of
from highwater_local.ministack import Document, first

_REVERT: Final = "REVERT_DRIFT"
_RECORD: Final = "_reverts_drift"
_PARAMETER: Final = "AWS::SSM::Parameter"


class Drift:
    """Creates and executes drift-aware change sets; in effect as soon as this is created."""

    def __init__(self, autoscaling: Callable[[], AutoScaling]) -> None:
        self._autoscaling = autoscaling
        ministack.STACK_REQUESTS.wrap("CreateChangeSet", self._prepare)
        ministack.STACK_REQUESTS.wrap("ExecuteChangeSet", self._execute)

    def _prepare(self, own: Callable[[Document], Any], request: Document) -> Any:
        answer = own(request)
        found = _change_set(request)
        if answer[0] >= 400 or found is None or first(request.get("DeploymentMode", "")) != _REVERT:
            return answer
        stack = ministack.find_stack(found["StackName"])
        found[_RECORD] = True
        listed = {change["ResourceChange"]["LogicalResourceId"] for change in found["Changes"]}
        resources = found["_template"]["Resources"]
        drifted = [name for name, _ in self._drifted(stack) if name in resources and name not in listed]
        found["Changes"] += [_modification(name, stack["_resources"][name]) for name in drifted]
        if drifted and found["ExecutionStatus"] == "UNAVAILABLE":
            found |= {"Status": "CREATE_COMPLETE", "ExecutionStatus": "AVAILABLE", "StatusReason": ""}
        return answer

    def _execute(self, own: Callable[[Document], Any], request: Document) -> Any:
        found = _change_set(request)
        if found is not None and found.get(_RECORD) and found["ExecutionStatus"] == "AVAILABLE":
            stack = ministack.find_stack(found["StackName"])
            # the engine changes what differs from these, and goes back to them if the deploy fails
            for name, live in list(self._drifted(stack)):
                stack["_resources"][name]["Properties"] = live
        return own(request)

    def _drifted(self, stack: Document) -> Iterator[tuple[str, Document]]:
        """Yield the names of resources that were changed, each with its properties as they are now."""
        for name, resource in stack.get("_resources", {}).items():
            live = self._live(resource, stack)
            if live != resource["Properties"]:
                yield name, live

    def _live(self, resource: Document, stack: Document) -> Document:
        kind, id, declared = resource["ResourceType"], resource["PhysicalResourceId"], resource["Properties"]
        live: Document = copy.deepcopy(declared)
        if kind == ministack.TABLE and (table := ministack.find_table(id)) is not None:
            _set_capacity(live, table, _scaled(stack))
        elif kind == TARGET and (target := self._autoscaling().targets.get(target_of(id))) is not None:
            _set(live, {"MinCapacity": target.floor, "MaxCapacity": target.ceiling})
        elif kind == ministack.ALARM and id in ministack.alarms_by_name():
            _set(live, {"Threshold": ministack.alarms_by_name()[id]["Threshold"]})
        elif kind == _PARAMETER and id in ministack.parameters():
            _set(live, {"Value": ministack.parameters()[id]["Value"]})
        return live


def _change_set(request: Document) -> Document | None:
    found: Document | None = ministack.find_change_set(
        first(request.get("ChangeSetName", "")), first(request.get("StackName", ""))
    )[1]
    return found


def _scaled(stack: Document) -> set[TargetKey]:
    """Return the scalable targets of a stack."""
    resources = stack["_resources"].values()
    return {target_of(each["PhysicalResourceId"]) for each in resources if each["ResourceType"] == TARGET}


def _set_capacity(live: Document, table: Document, scaled: set[TargetKey]) -> None:
    """Put a table's present units into its properties, but those of the table itself that are in *scaled*."""
    for index in (None, *(each["IndexName"] for each in live.get("GlobalSecondaryIndexes") or [])):
        declared, present = resource_of(live, index), resource_of(table, index)
        if declared is None or present is None or "ProvisionedThroughput" not in declared:
            continue
        units = present.get("ProvisionedThroughput") or {}
        for dimension in Dimension:
            name = TargetName(table["TableName"], index, dimension)
            is_managed = index is None and TargetKey(name.resource_id, name.scalable_dimension) in scaled
            if units.get(UNITS[dimension]) and not is_managed:
                _set(declared["ProvisionedThroughput"], {UNITS[dimension]: units[UNITS[dimension]]})


def _set(properties: Document, live: Document) -> None:
    """Set the members that are declared and have another value now; a template may have numbers as text."""
    for name, value in live.items():
        if name in properties and _text(properties[name]) != _text(value):
            properties[name] = value


def _text(value: object) -> str:
    try:
        return str(float(str(value)))
    except ValueError:
        return str(value)


def _modification(name: str, resource: Document) -> Document:
    """Return the member of a change set for a resource that gets the template's properties again."""
    return {
        "ResourceChange": {
            "Action": "Modify",
            "LogicalResourceId": name,
            "PhysicalResourceId": resource["PhysicalResourceId"],
            "ResourceType": resource["ResourceType"],
            "Replacement": "False",
            "Scope": ["Properties"],
            "Details": [],
        }
    }
