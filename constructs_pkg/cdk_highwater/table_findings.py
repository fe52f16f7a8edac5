"""What is wrong between a plan and the very table that it is for."""

from __future__ import annotations

import jsii
from constructs import IValidation

from cdk_highwater.annotations import annotate
from cdk_highwater.subject import Subject
from highwater.core import Finding, Plan, Target
from highwater.core.findings import conflict, error


@jsii.implements(IValidation)
class EveryIndexIsScaled:
    """Looks at the end of synth for indexes that came after the plan: nothing would scale them."""

    def __init__(self, subject: Subject, plan: Plan) -> None:
        self._subject = subject
        self._planned = {index.index_name for index in plan.indexes}

    def validate(self) -> list[str]:
        """Annotate what is missing; called by the CDK at the end of synth."""
        missing = [name for name in self._subject.index_names() if name not in self._planned]
        # annotated rather than returned: the CDK CLI prints annotations as lines, and returned errors as a traceback
        annotate(self._subject.construct, [_unscaled(name) for name in missing])
        return []


def _unscaled(name: str) -> Finding:
    return conflict(
        "indexNotScaled",
        f"index {name!r}",
        "it was added after the table's capacity was declared, so nothing scales it",
        "give it to HighWaterTable in indexes=; with manage_capacity, add the index before the call",
    )


def fitting_findings(
    plan: Plan, subject: Subject, index_names: tuple[str, ...], *, are_windows_held: bool = False
) -> list[Finding]:
    """Where the plan does not go with the table that it is for.

    Args:
        plan: What is declared.
        subject: The table.
        index_names: The indexes that it has in the template.
        are_windows_held: Whether a scaler holds the windows. By default scheduled actions do.
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
                "CloudFormation keeps the scalable targets of a TableV2 to itself, so they can have no scheduled "
                "actions",
                "have a ThrottleAwareScaler hold the windows with windows_held_by=, or use HighWaterTable or "
                "dynamodb.Table",
            )
        )
    if subject.template is not None:
        findings += [
            error(
                "unknownIndex",
                f"index {index.index_name!r}",
                "a name that the table has no index of",
                ", ".join(repr(name) for name in sorted(index_names)) or "none: the table has no indexes",
                "correct the name, or add the index to the table first",
            )
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
        "windows_held_by= leaves its windows to a scaler, which looks after autoscaled capacity alone, and this is "
        "fixed",
        "give Capacity.autoscaled(max_capacity=), or leave the windows to scheduled actions",
    )
