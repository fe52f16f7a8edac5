"""Reads the app's stacks as they are deployed: their templates, the values of their parameters, and their resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater_lab.template import ListedApp, read_app
from highwater_lab.template.document import Template, parse_documents

_NESTED: Final = "AWS::CloudFormation::Stack"
_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"


@dataclass(frozen=True, slots=True)
class StackResource:
    """A resource of a deployed stack.

    Attributes:
        kind: Its type.
        physical: Its physical id, such as a table's name.
    """

    kind: str
    physical: str


@dataclass(frozen=True, slots=True)
class DeployedStack:
    """A stack, or a nested stack, as it is deployed.

    Attributes:
        body: Its template.
        parameters: The values of its parameters.
        resources: Its resources by logical id.
    """

    body: dict[str, Any]
    parameters: Mapping[str, str]
    resources: Mapping[str, StackResource]


class DeployedStacks:
    """The stacks of an app in one account and region, by the names in their `Environment.stacks`."""

    def __init__(self, cloudformation: Any, templates: Iterable[Template]) -> None:
        """Read the stacks of *templates*; one that is not deployed is left out."""
        self._cloudformation = cloudformation
        self.found: dict[tuple[str, ...], DeployedStack] = {}
        self.templates: list[Template] = []
        # a nested stack's names begin with those of its parent
        for template in sorted(templates, key=lambda each: len(each.environment.stacks)):
            names = template.environment.stacks
            stack = self._read(names)
            if stack is not None:
                self.found[names] = stack
                self.templates.append(replace(template, body=stack.body, doubled=()))

    def app(self) -> ListedApp | None:
        """Return what the deployed templates declare, `None` if no stack is deployed."""
        if not self.templates:
            return None
        given = {name: value for stack in self.found.values() for name, value in stack.parameters.items()}
        return read_app(self.templates, given)

    def physical(self, stacks: tuple[str, ...], logical_id: str | None) -> str | None:
        """Return the physical id of a resource of the stack with these names, `None` if it is not deployed."""
        stack = self.found.get(stacks)
        resource = None if stack is None or logical_id is None else stack.resources.get(logical_id)
        return None if resource is None else resource.physical

    def resources(self, kind: str) -> Iterator[str]:
        """Yield the physical ids of all resources of a type."""
        for stack in self.found.values():
            yield from (each.physical for each in stack.resources.values() if each.kind == kind)

    @property
    def targets(self) -> frozenset[str]:
        """The physical ids of the scalable targets."""
        return frozenset(self.resources(_TARGET))

    def _read(self, names: tuple[str, ...]) -> DeployedStack | None:
        *parents, last = names
        id = last
        if parents:
            outer = self.found.get(tuple(parents))
            nested = None if outer is None else outer.resources.get(last)
            if nested is None or nested.kind != _NESTED:
                return None
            id = nested.physical
        if not id:
            return None
        try:
            (described,) = self._cloudformation.describe_stacks(StackName=id)["Stacks"]
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        if described["StackStatus"] in ("REVIEW_IN_PROGRESS", "DELETE_COMPLETE"):
            # a change set that was never executed made the stack, which has no resource
            return None
        body = self._cloudformation.get_template(StackName=id, TemplateStage="Processed")["TemplateBody"]
        if isinstance(body, str):
            # boto3 parses JSON alone
            body = parse_documents(f"the template of stack {last}", body, is_json=False)[0].body
        pages = self._cloudformation.get_paginator("list_stack_resources").paginate(StackName=id)
        return DeployedStack(
            body=body,
            parameters={
                each["ParameterKey"]: each.get("ResolvedValue", each["ParameterValue"])
                for each in described.get("Parameters", [])
            },
            resources={
                each["LogicalResourceId"]: StackResource(each["ResourceType"], each.get("PhysicalResourceId", ""))
                for page in pages
                for each in page["StackResourceSummaries"]
            },
        )


def is_missing(error: ClientError) -> bool:
    """Whether CloudFormation says that there is no such stack."""
    found = error.response["Error"]
    return found.get("Code") == "ValidationError" and "does not exist" in found.get("Message", "")


def find_owner(cloudformation: Any, physical: str) -> str | None:
    """Return the name of the stack that has a resource of this physical id, `None` if none has."""
    try:
        found = cloudformation.describe_stack_resources(PhysicalResourceId=physical)["StackResources"]
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    return next((str(each["StackName"]) for each in found if each["PhysicalResourceId"] == physical), None)
