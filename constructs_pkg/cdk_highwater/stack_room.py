"""The room that a stack has for resources, and how many it has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import aws_cdk as cdk
import jsii
from constructs import IValidation

from highwater.core.findings import conflict

# AWS CloudFormation User Guide, "Understand CloudFormation quotas", read 2026-11
_MOST_RESOURCES: Final = 500
# With fewer tables than this a stack is full for reasons of its own, which the CDK's own message tells. Counting the
# resources takes time that every synth would pay for.
_FEW_TABLES: Final = 10


@jsii.implements(IValidation)
class ResourcesFitTheStack:
    """Reports, at the end of synth, a stack with more resources than CloudFormation takes, and what to do about it.

    Args:
        stack: The stack.
        tables: What stands for the managed tables of the stack; more may be added until the end of synth.
    """

    def __init__(self, stack: cdk.Stack, tables: Collection[object]) -> None:
        self._stack = stack
        self._tables = tables

    def validate(self) -> list[str]:
        """Return the error, if there is one; the CDK calls this at the end of synth.

        An annotation would be lost, because the CDK refuses to write the template before it prints annotations.
        """
        if len(self._tables) < _FEW_TABLES or (resources := self._resources()) <= _MOST_RESOURCES:
            return []
        problem = (
            f"with {len(self._tables)} tables that are managed there it has {resources:,} resources, and "
            f"CloudFormation allows {_MOST_RESOURCES}"
        )
        fix = (
            "move tables to further stacks or to nested stacks, each with a scaler of its own if they have one; "
            "docs/fleets.md tells how many tables fit"
        )
        return [conflict("tooManyResources", "the stack", problem, fix).text(self._stack.node.path)]

    def _resources(self) -> int:
        everything = self._stack.node.find_all()
        nested = {
            below
            for construct in everything
            if isinstance(construct, cdk.Stack) and construct != self._stack
            for below in construct.node.find_all()
        }
        return sum(isinstance(construct, cdk.CfnResource) and construct not in nested for construct in everything)
