"""The room that the policies of a role have, and what they take of it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from constructs import Construct, IValidation

from cdk_highwater.annotations import annotate
from highwater.core import Finding
from highwater.core.findings import conflict

# Inline policies of a role may have so many characters together, spaces not counted (IAM User Guide, "IAM and AWS STS
# quotas", read 2026-11).
_MOST_CHARACTERS: Final = 10_240
# With fewer policies there is always room.
_FEW_POLICIES: Final = 10
# What only a deploy knows, at its longest: partitions, regions and accounts; ids of stacks; names and ARNs of resources
_PSEUDO: Final = {
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "ap-southeast-1",
    "AWS::AccountId": "1" * 12,
    "AWS::StackId": "x" * 200,
}
# The random part that CloudFormation puts behind the names of a stack and a resource, with both hyphens
_RANDOM_CHARACTERS: Final = 16
_LONGEST_NAME: Final = 255


@jsii.implements(IValidation)
class PoliciesFitTheRole:
    """Reports, at the end of synth, policies that IAM would refuse in the middle of the deploy.

    Args:
        construct: The construct that is told.
        role: The role.
        policies: Its policies beside its default policy; more may be added until the end of synth.
    """

    def __init__(self, construct: Construct, role: iam.Role, policies: Collection[iam.Policy]) -> None:
        self._construct = construct
        self._stack = cdk.Stack.of(construct)
        self._role = role
        self._policies = policies

    def validate(self) -> list[str]:
        """Annotate the construct with an error if its role has no room; the CDK calls this at the end of synth."""
        if len(self._policies) > _FEW_POLICIES:
            characters = sum(map(self._characters, self._of_role()))
            if characters > _MOST_CHARACTERS:
                annotate(self._construct, [_no_room(characters)])
        return []

    def _of_role(self) -> list[iam.Policy]:
        default = self._role.node.try_find_child("DefaultPolicy")
        return [*self._policies, *([default] if isinstance(default, iam.Policy) else [])]

    def _characters(self, policy: iam.Policy) -> int:
        written = self._written(self._stack.resolve(policy.document))
        return len(json.dumps(written, separators=(",", ":")))

    def _written(self, value: Any) -> Any:
        """A part of a resolved policy as CloudFormation would write it, where that is known, else at its longest."""
        if isinstance(value, list):
            return [self._written(each) for each in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"Ref": str(name)}:
                return _PSEUDO.get(name) or self._name(name)
            case {"Fn::GetAtt": [str(name), *_]}:
                return f"arn:aws-us-gov:dynamodb:ap-southeast-1:{'1' * 12}:table/{self._name(name)}"
            case {"Fn::Join": [str(between), list(parts)]}:
                return between.join(str(self._written(part)) for part in parts)
            case {"Fn::ImportValue": _}:
                return "x" * _LONGEST_NAME
        return {name: self._written(each) for name, each in value.items()}

    def _name(self, logical_id: str) -> str:
        """A name as long as the one that CloudFormation makes of a logical id."""
        stack = self._stack.stack_name
        of_stack = 128 if cdk.Token.is_unresolved(stack) else len(stack)
        return "x" * min(_LONGEST_NAME, of_stack + len(logical_id) + _RANDOM_CHARACTERS)


def _no_room(characters: int) -> Finding:
    problem = (
        f"the permissions for the managed tables of the stack take up to {characters:,} characters, and IAM allows the "
        f"policies of one role {_MOST_CHARACTERS:,}"
    )
    fix = (
        "manage fewer tables in a stack, and give each stack a scaler of its own, as a scaler's stack has permissions "
        "for all its tables; docs/fleets.md tells how"
    )
    return conflict("tooManyTables", "tables of the stack", problem, fix)
