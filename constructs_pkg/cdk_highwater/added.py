"""What managed tables and scalers add to a stack, which one information tells at the end of synth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct, IConstruct

from cdk_highwater.nag import annotate_at_end
from cdk_highwater.quotas import TRACKING_ALARMS
from highwater.core import Finding
from highwater.core.findings import remark

# For each stack, the constructs whose resources count
_ADDED: WeakKeyDictionary[cdk.Stack, set[Construct]] = WeakKeyDictionary()


def count_added(stack: cdk.Stack, *constructs: Construct) -> None:
    """Count the resources below *constructs* among those that managed tables and scalers add to *stack*.

    The first call for a stack annotates the stack at the end of synth, where all of them are counted from the construct
    tree, each once.
    """
    if stack not in _ADDED:
        _ADDED[stack] = set()
        annotate_at_end(constructs[0], stack, lambda: _findings(_ADDED[stack]))
    _ADDED[stack].update(constructs)


def _resources(constructs: Iterable[Construct]) -> Iterator[IConstruct]:
    below = {each for construct in constructs for each in construct.node.find_all()}
    return (each for each in below if isinstance(each, cdk.CfnResource))


def _findings(constructs: Iterable[Construct]) -> list[Finding]:
    resources = list(_resources(constructs))
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
