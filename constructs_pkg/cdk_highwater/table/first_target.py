"""The first scalable target of a stack, which is registered before all others."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import aws_cdk as cdk
import jsii
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IValidation

# For each stack, its scalable targets with their tables' resources, `None` for tables of other stacks
_TARGETS: WeakKeyDictionary[cdk.Stack, list[tuple[autoscaling.CfnScalableTarget, cdk.CfnResource | None]]] = (
    WeakKeyDictionary()
)


def register_after_the_first(
    by: Construct, target: autoscaling.CfnScalableTarget, table: cdk.CfnResource | None
) -> None:
    """Have CloudFormation register *target* of *table* after the first target of its stack.

    In a new account the first registration creates the service-linked role of Application Auto Scaling, and others at
    the same time may be refused, as the role cannot be assumed yet: `Unable to assume IAM role` (Application Auto
    Scaling API Reference, RegisterScalableTarget; reported for Amazon ECS, aws-samples/amazon-bedrock-samples issue
    253; read 2026-11). CloudFormation does not retry that. All other targets depend on one, and none on another of
    these: a chain would make large deploys slow.
    """
    stack = cdk.Stack.of(target)
    if stack not in _TARGETS:
        _TARGETS[stack] = []
        by.node.add_validation(_FirstTarget(_TARGETS[stack]))
    _TARGETS[stack].append((target, table))


@jsii.implements(IValidation)
class _FirstTarget:
    """Adds the dependencies at the end of synth, when all others are known; never reports anything.

    The first target must not depend on another one, which an app can ask for by dependencies between its tables:
    CloudFormation would reject the circle.
    """

    def __init__(self, targets: Sequence[tuple[autoscaling.CfnScalableTarget, cdk.CfnResource | None]]) -> None:
        self._targets = targets

    def validate(self) -> list[str]:
        if len(self._targets) > 1:
            found = {target.node.path for target, _ in self._targets}
            first = next((target for target, table in self._targets if not _reaches(target, table, found)), None)
            for target, _ in self._targets:
                if first is not None and target.node.path != first.node.path:
                    target.add_resource_dependency(first)
        return []


def _reaches(target: autoscaling.CfnScalableTarget, table: cdk.CfnResource | None, others: set[str]) -> bool:
    """Whether *target*, or its table, depends on one of *others* by dependencies that are not references."""
    waiting: list[cdk.CfnElement] = [target, *([] if table is None else [table])]
    seen = {each.node.path for each in waiting}
    while waiting:
        resource = waiting.pop()
        if not isinstance(resource, cdk.CfnResource):
            continue
        for each in resource.obtain_dependencies():
            if not isinstance(each, cdk.CfnResource) or each.node.path in seen:
                continue
            if each.node.path in others:
                return True
            seen.add(each.node.path)
            waiting.append(each)
    return False
