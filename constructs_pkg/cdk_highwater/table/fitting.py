"""Whether a plan fits the table that it is for: what synth finds of both together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater.table.subject import Subject
from highwater.core import Dimension, Finding, Plan, Target
from highwater.core.findings import caution, conflict

_REMEDY = (
    "remove the call; the plan says how the dimension is scaled. If the call is deployed already, first deploy without "
    "both, because CloudFormation creates the plan's target before it deletes this one"
)
_NO_INDEXES = "the table has no global secondary indexes"


def unmanaged_findings(plan: Plan) -> list[Finding]:
    """Return a warning for each index that the plan leaves to itself."""
    problem = "nothing scales it, and it keeps its initial units while the table's traffic grows"
    fix = "once it is there, leave out is_managed=False and deploy"
    unmanaged = (index.index_name for index in plan.indexes if not index.is_managed)
    return [caution("indexUnmanaged", f"index {name!r}", problem, fix) for name in unmanaged]


def unscaled_indexes(subject: Subject, plan: Plan) -> list[Finding]:
    """Return a finding for each index that was added after the plan was made: nothing would scale it."""
    planned = {index.index_name for index in plan.indexes}
    return [_unscaled(name) for name in subject.index_names() if name not in planned]


def changed_replicas(subject: Subject, planned: int) -> list[Finding]:
    """Return the finding about replicas added after the plan, when there were *planned*: the CDK then reorders all."""
    replicas = subject.replica_count()
    if replicas == planned:
        return []
    problem = (
        f"the table has {replicas} replicas, and had {planned} when its capacity was declared, so the "
        "capacity is that of other replicas"
    )
    fix = "add all replicas before manage_capacity"
    return [conflict("replicaNotScaled", "replicas", problem, fix)]


def second_targets(subject: Subject) -> list[Finding]:
    """Return a finding for each call of `auto_scale_*` on a table whose plan makes the same scalable targets."""
    table = subject.construct
    if not isinstance(table, dynamodb.Table):
        return []
    calls = [
        f"auto_scale_{dimension}_capacity()"
        if index is None
        else f"auto_scale_global_secondary_index_{dimension}_capacity({index!r})"
        for index in (None, *subject.index_names())
        for dimension in Dimension
        # the ids that aws-cdk-lib gives to these children
        if table.node.try_find_child(f"{index or ''}{dimension.title()}Scaling") is not None
    ]
    return [second_target(call, _REMEDY) for call in calls]


def second_target(call: str, fix: str) -> Finding:
    """Return the finding about a call that creates a scalable target for a dimension that the plan scales."""
    problem = "the plan already has a scalable target for this dimension, and AWS allows only one"
    return conflict("secondTarget", call, problem, fix)


def place_findings(subject: Subject, stack: cdk.Stack, *, may_be_in_any_region: bool = False) -> list[Finding]:
    """Return the findings about a table of another account or region than *stack*, which has the scalable targets."""
    found = [*_multi_account_findings(subject), *account_findings(subject, stack)]
    return found if may_be_in_any_region else [*found, *_elsewhere(subject, stack, "region")]


def account_findings(subject: Subject, stack: cdk.Stack) -> list[Finding]:
    """Return the finding about a table of another account than *stack*, whose functions are to set its capacity."""
    return _elsewhere(subject, stack, "account")


def _elsewhere(subject: Subject, stack: cdk.Stack, what: Literal["account", "region"]) -> list[Finding]:
    of_table, of_stack = getattr(subject, what), getattr(stack, what)
    is_here = subject.template is not None and subject.stack == stack
    if is_here or cdk.Token.is_unresolved(of_table) or of_table == of_stack:
        return []
    if cdk.Token.is_unresolved(of_stack):
        problem = (
            f"the table's ARN names {what} {of_table}, and the stack's {what} is known only at deploy time; in another "
            f"{what}, a table of the same name would be scaled"
        )
        return [caution(f"{what}Unknown", "the table", problem, "give the stack an env")]
    problem = (
        f"the table is in {what} {of_table} and the stack in {of_stack}, where a table of the same name would be scaled"
    )
    return [conflict(f"other{what.title()}", "the table", problem, f"manage the table in a stack of its own {what}")]


def _multi_account_findings(subject: Subject) -> list[Finding]:
    """Return the finding about a table whose settings DynamoDB copies between accounts."""
    # Amazon DynamoDB Developer Guide, "DynamoDB multi-account global tables", read 2026-11
    if not subject.is_multi_account:
        return []
    problem = (
        "it belongs to a global table of several accounts, whose capacity DynamoDB copies from account to account, so "
        "that floors set in one account would change the others'"
    )
    fix = "use a global table of one account, or leave the capacity of this one to on-demand mode"
    name = subject.literal_name or subject.construct.node.path
    return [conflict("multiAccountTable", f"the table {name}", problem, fix)]


def _unscaled(name: str) -> Finding:
    return conflict(
        "indexNotScaled",
        f"index {name!r}",
        "the index was added after the table's capacity was declared, so nothing scales it",
        "pass the index to HighWaterTable in indexes=; with manage_capacity, add the index before the call",
    )


def fitting_findings(
    plan: Plan, subject: Subject, index_names: tuple[str, ...], *, are_windows_held: bool = False
) -> list[Finding]:
    """Return the findings about a plan that does not fit its table.

    Args:
        plan: The plan.
        subject: The table.
        index_names: The names of the table's indexes in the template.
        are_windows_held: Whether a scaler opens and closes the windows. By default scheduled actions do.
    """
    findings = []
    if subject.is_on_demand:
        findings.append(
            conflict(
                "provisionedOnDemand",
                "billing mode",
                "the table is on demand (PAY_PER_REQUEST), and read, write and windows are for provisioned capacity",
                "set the table's billing mode to PROVISIONED, or declare no capacity for it",
            )
        )
    if subject.has_vector_indexes:
        findings.append(
            conflict(
                "vectorIndexes",
                "the table",
                "it has vector indexes, which DynamoDB allows on on-demand tables only",
                "leave the table on demand and declare no capacity for it, or move its vector indexes to another table",
            )
        )
    if are_windows_held:
        findings += [_fixed_window(target) for target in plan.targets() if _is_fixed_with_windows(target)]
    elif subject.is_global and plan.all_windows():
        names = ", ".join(repr(window.name) for window in plan.all_windows())
        findings.append(
            conflict(
                "globalTableWindows",
                f"windows {names}",
                "CloudFormation itself creates the scalable targets of a TableV2, and they cannot have scheduled "
                "actions",
                "let a ThrottleAwareScaler open and close the windows with windows_held_by=, or use HighWaterTable or "
                "dynamodb.Table",
            )
        )
    findings += unmanaged_findings(plan)
    findings += unknown_indexes(subject, index_names, (index.index_name for index in plan.indexes))
    return findings


def unknown_indexes(subject: Subject, present: tuple[str, ...], named: Iterable[str]) -> list[Finding]:
    """Return a finding for each of *named* that is not among the indexes *present*; none for an imported table."""
    if subject.template is None:
        return []
    names = ", ".join(repr(name) for name in sorted(present))
    problem = f"the table has no index of this name; its indexes are {names}" if present else _NO_INDEXES
    fix = "correct the name, or add the index to the table first"
    return [conflict("unknownIndex", f"index {name!r}", problem, fix) for name in named if name not in present]


def _is_fixed_with_windows(target: Target) -> bool:
    return bool(target.windows) and not target.capacity.is_autoscaled


def _fixed_window(target: Target) -> Finding:
    return conflict(
        "fixedWindowsNotHeld",
        target.label,
        "windows_held_by= lets a scaler open and close the windows, but a scaler changes only autoscaled capacity, and "
        "this capacity is fixed",
        "give Capacity.autoscaled(max_capacity=), or remove windows_held_by= to use scheduled actions",
    )
