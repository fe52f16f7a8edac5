"""CloudFormation in memory: what it does to the resources of a template, and in which order.

A deploy creates and updates first, each resource after those that it depends on. If one fails, what was changed is
changed back in the same order, and what was created is deleted. Only then is deleted what the template no longer has,
each resource before those that it depended on (AWS CloudFormation User Guide, "DependsOn attribute", "Understand update
behaviors of stack resources" and "Choose how to handle failures", read 2026-11).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any, Protocol

Document = dict[str, Any]
Template = Mapping[str, Document]


class FailedError(Exception):
    """An operation on a resource failed."""


class Provider(Protocol):
    """Creates, updates and deletes resources."""

    def create(self, logical_id: str, kind: str, properties: Document) -> str:
        """Create a resource and return its physical id."""

    def update(self, logical_id: str, kind: str, physical_id: str, before: Document, after: Document) -> str:
        """Update a resource; return another physical id if it was replaced."""

    def delete(self, logical_id: str, kind: str, physical_id: str, properties: Document) -> None:
        """Delete a resource."""


@dataclass(frozen=True)
class Resource:
    """A resource that exists."""

    kind: str
    physical_id: str
    properties: Document
    needs: frozenset[str]
    is_retained: bool


@dataclass
class Stack:
    """A stack, and what it has.

    Attributes:
        provider: Does the work.
        resources: What exists, by logical id.
        status: As DescribeStacks tells it.
    """

    provider: Provider
    resources: dict[str, Resource] = field(default_factory=dict)
    status: str = "CREATE_COMPLETE"

    def deploy(self, template: Template, fails_at: int | None = None) -> str | None:
        """Bring the stack to a template; the failure's text if it was rolled back.

        Args:
            template: Resources by logical id.
            fails_at: The operation that fails, counted from 0, for a reason of its own.
        """
        before = dict(self.resources)
        self.status = "UPDATE_IN_PROGRESS"
        leftovers: list[tuple[str, Resource]] = []
        operations = itertools.count()
        changed: dict[str, Document] = {}
        try:
            for logical_id in _order({key: _needs(document) for key, document in template.items()}):
                document = template[logical_id]
                properties = self._resolved(document.get("Properties", {}))
                old = self.resources.get(logical_id)
                if old is not None and old.properties == properties:
                    self.resources[logical_id] = _resource(document, old.physical_id, properties)
                    continue
                if next(operations) == fails_at:
                    raise FailedError(f"{logical_id}: somebody else's resource is in the way")
                if old is not None:
                    changed[logical_id] = properties
                self._create_or_update(logical_id, document, old, properties, leftovers)
        except FailedError as failed:
            self.status = ROLLING_BACK
            self._roll_back(before, changed, leftovers)
            self.status = "UPDATE_ROLLBACK_COMPLETE"
            return str(failed)
        self.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
        gone = {key: resource for key, resource in before.items() if key not in template}
        self._delete({**gone})
        for logical_id, resource in reversed(leftovers):
            self._delete_one(logical_id, resource)
        self.status = "UPDATE_COMPLETE"
        return None

    def delete(self) -> None:
        """Delete the stack."""
        self._delete(dict(self.resources))

    def _create_or_update(
        self,
        logical_id: str,
        document: Document,
        old: Resource | None,
        properties: Document,
        leftovers: list[tuple[str, Resource]],
    ) -> None:
        kind = document["Type"]
        if old is None:
            physical_id = self.provider.create(logical_id, kind, properties)
        else:
            physical_id = self.provider.update(logical_id, kind, old.physical_id, old.properties, properties)
            if physical_id != old.physical_id:
                leftovers.append((logical_id, old))
        self.resources[logical_id] = _resource(document, physical_id, properties)

    def _roll_back(
        self, before: dict[str, Resource], changed: dict[str, Document], leftovers: list[tuple[str, Resource]]
    ) -> None:
        replaced = {logical_id for logical_id, _ in leftovers}
        during = dict(self.resources)
        for logical_id in _order({key: resource.needs for key, resource in before.items()}):
            old = before[logical_id]
            self.resources[logical_id] = old
            if logical_id in changed and logical_id not in replaced:
                self.provider.update(logical_id, old.kind, old.physical_id, changed[logical_id], old.properties)
        new_ones = {key: resource for key, resource in during.items() if key not in before or key in replaced}
        kept = {key: before[key] for key in before}
        self.status = ROLLED_BACK_BUT_FOR_CLEANUP
        self._delete(new_ones)
        self.resources = kept

    def _delete(self, resources: dict[str, Resource]) -> None:
        for logical_id in reversed(list(_order({key: resource.needs for key, resource in resources.items()}))):
            self._delete_one(logical_id, resources[logical_id])
            self.resources.pop(logical_id, None)

    def _delete_one(self, logical_id: str, resource: Resource) -> None:
        if not resource.is_retained:
            self.provider.delete(logical_id, resource.kind, resource.physical_id, resource.properties)

    def _resolved(self, value: Any) -> Any:
        match value:
            case {"Ref": str(name)}:
                return _PSEUDO[name] if name in _PSEUDO else self.resources[name].physical_id
            case {"Fn::GetAtt": [str(name), str()]}:
                return arn_of(name, self.resources[name])
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(str(self._resolved(part)) for part in parts)
            case dict():
                return {key: self._resolved(part) for key, part in value.items()}
            case list():
                return [self._resolved(part) for part in value]
            case _:
                return value


ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
ROLLED_BACK_BUT_FOR_CLEANUP = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
STACK_ID = "arn:aws:cloudformation:us-east-1:000000000000:stack/Shop/1"
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::AccountId": "000000000000",
    "AWS::Region": "us-east-1",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackId": STACK_ID,
}


def arn_of(logical_id: str, resource: Resource) -> str:
    """The ARN of a resource: that of a table or function as it is, that of anything else made up."""
    if resource.kind == "AWS::DynamoDB::Table":
        return f"arn:aws:dynamodb:us-east-1:000000000000:table/{resource.physical_id}"
    return f"arn:aws:any:us-east-1:000000000000:{logical_id}"


def _resource(document: Document, physical_id: str, properties: Document) -> Resource:
    is_retained = document.get("DeletionPolicy") == "Retain"
    return Resource(document["Type"], physical_id, properties, frozenset(_needs(document)), is_retained)


def _needs(document: Document) -> set[str]:
    return set(_referred(document.get("Properties", {}))) | set(document.get("DependsOn", []))


def _referred(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)}:
            yield from () if name.startswith("AWS::") else (name,)
        case {"Fn::GetAtt": [str(name), str()]}:
            yield name
        case dict():
            for part in value.values():
                yield from _referred(part)
        case list():
            for part in value:
                yield from _referred(part)


def _order(needs: Mapping[str, set[str] | frozenset[str]]) -> Iterator[str]:
    """Every resource after those of *needs* that it depends on."""
    # sorted, as the order of a set is another one in every process
    known = {key: sorted(each for each in wanted if each in needs) for key, wanted in needs.items()}
    return iter(tuple(TopologicalSorter(known).static_order()))
