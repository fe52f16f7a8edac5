"""What an app's constructs add up to, and the quotas for it: resources, alarms, the size of a role's policies."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

import aws_cdk as cdk
import jsii
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct, IValidation

from cdk_highwater.support.nag import annotate_at_end
from highwater.core import Finding, Target
from highwater.core.findings import caution, conflict, remark

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
        annotate_at_end(construct, construct, lambda: _too_many_alarms(alarms[place]))
    alarms[place] = alarms.get(place, 0) + added


def _too_many_alarms(alarms: int) -> list[Finding]:
    if alarms <= _MOST_ALARMS:
        return []
    problem = (
        f"target tracking and the scalers have {alarms:,} alarms there, and an account may have "
        f"{_MOST_ALARMS:,} in a region unless AWS has raised its quota"
    )
    fix = (
        "ask AWS for more alarms before the deploy, or use tagged tables of a ThrottleAwareScaler, which have "
        "no alarm of the scaler; docs/fleets.md tells how"
    )
    return [caution("tooManyAlarms", "the app's tables in the region of this one", problem, fix)]


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


def role_room_findings(role: iam.Role, policies: Collection[iam.Policy]) -> list[Finding]:
    """Return the finding about policies that IAM would reject in the middle of the deploy.

    Args:
        role: The role.
        policies: Its policies except its default policy.
    """
    if len(policies) <= _FEW_POLICIES:
        return []
    default = role.node.try_find_child("DefaultPolicy")
    of_role = [*policies, *([default] if isinstance(default, iam.Policy) else [])]
    stack = cdk.Stack.of(role)
    written = (_written(stack.resolve(policy.document), stack.stack_name) for policy in of_role)
    characters = sum(len(json.dumps(document, separators=(",", ":"))) for document in written)
    return [_no_room(characters)] if characters > _MOST_CHARACTERS else []


def _written(value: Any, stack: str) -> Any:
    """Return a part of a resolved policy as CloudFormation would write it; unknown values at their longest."""
    if isinstance(value, list):
        return [_written(each, stack) for each in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name)}:
            return _PSEUDO.get(name) or _generated_name(name, stack)
        case {"Fn::GetAtt": [str(name), *_]}:
            return f"arn:aws-us-gov:dynamodb:ap-southeast-1:{'1' * 12}:table/{_generated_name(name, stack)}"
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(str(_written(part, stack)) for part in parts)
        case {"Fn::ImportValue": _}:
            return "x" * _LONGEST_NAME
    return {name: _written(each, stack) for name, each in value.items()}


def _generated_name(logical_id: str, stack: str) -> str:
    """Return a name as long as the one that CloudFormation generates from a logical id in the stack of that name."""
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


# For each stack, the constructs whose resources count
_ADDED: WeakKeyDictionary[cdk.Stack, set[Construct]] = WeakKeyDictionary()


def count_added(stack: cdk.Stack, *constructs: Construct) -> None:
    """Count the resources below *constructs* among those that managed tables and scalers add to *stack*.

    The first call for a stack annotates the stack at the end of synth, where all of them are counted from the construct
    tree, each once.
    """
    if stack not in _ADDED:
        _ADDED[stack] = set()
        annotate_at_end(constructs[0], stack, lambda: _added(_ADDED[stack]))
    _ADDED[stack].update(constructs)


def _resources_below(constructs: Iterable[Construct]) -> Iterator[IConstruct]:
    below = {each for construct in constructs for each in construct.node.find_all()}
    return (each for each in below if isinstance(each, cdk.CfnResource))


def _added(constructs: Iterable[Construct]) -> list[Finding]:
    resources = list(_resources_below(constructs))
    if not resources:
        # CloudFormation itself scales global tables
        return []
    alarms = sum(isinstance(each, cloudwatch.CfnAlarm) for each in resources)
    policies = sum(isinstance(each, autoscaling.CfnScalingPolicy) for each in resources)
    problem = f"managed tables and scalers add {len(resources):,} resources"
    if alarms:
        problem += f", {alarms:,} of them alarms"
    if policies:
        problem += f", and target tracking makes {policies * TRACKING_ALARMS:,} alarms of its own"
    # Amazon CloudWatch pricing, us-east-1, read 2026-11
    fix = "each alarm costs 0.10 USD a month; " if alarms or policies else ""
    fix += (
        "where AWS Config records continuously, each change of capacity is an item of the table, and two of each alarm "
        "of target tracking: highwater rehearse counts them, and docs/cost.md tells what to leave out"
    )
    return [remark("added", "the stack", problem, fix)]
