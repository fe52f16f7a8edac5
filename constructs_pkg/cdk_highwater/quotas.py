"""Quotas that an app's constructs share: alarms of a region, resources of a stack, the size of a role's policies."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct, IValidation

from cdk_highwater.nag import annotate
from highwater.core import Finding, Target
from highwater.core.findings import caution, conflict

# AWS CloudFormation User Guide, "Understand CloudFormation quotas", read 2026-11
_MOST_RESOURCES: Final = 500
# A stack with fewer tables than this exceeds the quota because of other resources, which the CDK reports itself.
# Counting the resources would slow down every synth.
_FEW_TABLES: Final = 10


@jsii.implements(IValidation)
class ResourcesFitTheStack:
    """Reports, at the end of synth, a stack with more resources than CloudFormation allows, and the remedy.

    Args:
        stack: The stack.
        tables: One member for each managed table of the stack; more may be added until the end of synth.
    """

    def __init__(self, stack: cdk.Stack, tables: Collection[object]) -> None:
        self._stack = stack
        self._tables = tables

    def validate(self) -> list[str]:
        """Return the error, if there is one; the CDK calls this at the end of synth.

        An annotation would be lost, because the CDK fails to write the template before it prints annotations.
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


# By default; AWS raises it on request (Amazon CloudWatch User Guide, "CloudWatch service quotas", read 2026-11)
_MOST_ALARMS: Final = 5_000
# Application Auto Scaling watches a DynamoDB target with two alarms on consumption and two on provisioned capacity
# (Application Auto Scaling User Guide, "How target tracking scaling works", read 2026-11).
TRACKING_ALARMS: Final = 4

# For each app, the alarms by account and region
_ALARMS: WeakKeyDictionary[IConstruct, dict[tuple[str, str], int]] = WeakKeyDictionary()


def count_alarms(construct: Construct, place: tuple[str, str], targets: Iterable[Target], *, of_each: int) -> None:
    """Count *of_each* alarms for each autoscaled one of *targets* in *place*, an account and a region.

    If an app has more alarms in a place than the quota, the place's first construct is annotated at the end of synth.
    """
    added = of_each * sum(target.capacity.is_autoscaled for target in targets)
    alarms = _ALARMS.setdefault(construct.node.root, {})
    if place not in alarms:
        construct.node.add_validation(_AlarmsFitTheAccount(construct, place))
    alarms[place] = alarms.get(place, 0) + added


@jsii.implements(IValidation)
class _AlarmsFitTheAccount:
    def __init__(self, construct: Construct, place: tuple[str, str]) -> None:
        self._construct = construct
        self._place = place

    def validate(self) -> list[str]:
        alarms = _ALARMS[self._construct.node.root][self._place]
        if alarms > _MOST_ALARMS:
            problem = (
                f"target tracking and the scalers have {alarms:,} alarms there, and an account may have "
                f"{_MOST_ALARMS:,} in a region unless AWS has raised its quota"
            )
            fix = (
                "ask AWS for more alarms before the deploy, or use tagged tables of a ThrottleAwareScaler, which have "
                "no alarm of the scaler; docs/fleets.md tells how"
            )
            annotate(
                self._construct,
                [caution("tooManyAlarms", "the app's tables in the region of this one", problem, fix)],
            )
        return []


# The most characters of all inline policies of a role together, spaces not counted (IAM User Guide, "IAM and AWS STS
# quotas", read 2026-11).
_MOST_CHARACTERS: Final = 10_240
# Fewer policies never exceed the quota.
_FEW_POLICIES: Final = 10
# The longest values of what is known only at deploy time: partitions, regions, accounts, ids of stacks, names and ARNs
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
    """Reports, at the end of synth, policies that IAM would reject in the middle of the deploy.

    Args:
        construct: The construct to annotate.
        role: The role.
        policies: Its policies except its default policy; more may be added until the end of synth.
    """

    def __init__(self, construct: Construct, role: iam.Role, policies: Collection[iam.Policy]) -> None:
        self._construct = construct
        self._stack = cdk.Stack.of(construct)
        self._role = role
        self._policies = policies

    def validate(self) -> list[str]:
        """Annotate the construct with an error if the policies are too long; the CDK calls this at the end of synth."""
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
        """Return a part of a resolved policy as CloudFormation would write it; unknown values at their longest."""
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
        """Return a name as long as the one that CloudFormation generates from a logical id."""
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
