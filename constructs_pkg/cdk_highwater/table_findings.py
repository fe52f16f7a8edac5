"""Validation of a plan against the table that it is for."""

from __future__ import annotations

import jsii
from constructs import IValidation

from cdk_highwater.annotations import annotate
from cdk_highwater.subject import Subject
from highwater.core import Finding, Plan, Target
from highwater.core.findings import conflict

_NO_INDEXES = "the table has no global secondary indexes"


@jsii.implements(IValidation)
class EveryIndexIsScaled:
    """Reports, at the end of synth, indexes that were added after the plan was made: nothing would scale them."""

    def __init__(self, subject: Subject, plan: Plan) -> None:
        self._subject = subject
        self._planned = {index.index_name for index in plan.indexes}

    def validate(self) -> list[str]:
        """Annotate the table with an error for each missing index; the CDK calls this at the end of synth."""
        missing = [name for name in self._subject.index_names() if name not in self._planned]
        # annotated rather than returned: the CDK CLI prints annotations as lines, and returned errors as a traceback
        annotate(self._subject.construct, [_unscaled(name) for name in missing])
        return []


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
    if subject.template is not None:
        present = ", ".join(repr(name) for name in sorted(index_names))
        problem = f"the table has no index of this name; its indexes are {present}" if present else _NO_INDEXES
        fix = "correct the name, or add the index to the table first"
        findings += [
            conflict("unknownIndex", f"index {index.index_name!r}", problem, fix)
            for index in plan.indexes
            if index.index_name not in index_names
        ]
    return findings


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
