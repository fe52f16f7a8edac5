"""What is wrong between a plan and the very table that it is for."""

from __future__ import annotations

from collections.abc import Callable

import jsii
from constructs import IValidation

from cdk_highwater.annotations import annotate
from cdk_highwater.subject import Subject
from highwater.core import Finding, Plan, Severity, Target


@jsii.implements(IValidation)
class EveryIndexIsScaled:
    """Looks at the end of synth for indexes that came after the plan: nothing would scale them."""

    def __init__(self, subject: Subject, plan: Plan) -> None:
        self._subject = subject
        self._planned = {index.name for index in plan.indexes}

    def validate(self) -> list[str]:
        """Annotate what is missing; called by the CDK at the end of synth."""
        missing = [name for name in self._subject.index_names() if name not in self._planned]
        # annotated rather than returned: the CDK CLI prints annotations as lines, and returned errors as a traceback
        annotate(self._subject.construct, [_unscaled(name) for name in missing])
        return []


def _is_fixed_with_windows(target: Target) -> bool:
    return bool(target.windows) and not target.capacity.is_autoscaled


def _fixed_window(label: str) -> Finding:
    return Finding(
        id="highwater:fixedWindowsNotHeld",
        severity=Severity.ERROR,
        subject=label,
        got="windows over fixed capacity with scaler_holds_windows",
        allowed="autoscaled capacity, which alone a scaler looks after",
        fix="give Capacity.autoscaled(min=, max=), or leave windows to scheduled actions",
    )


def _unscaled(name: str) -> Finding:
    return Finding(
        id="highwater:indexNotScaled",
        severity=Severity.ERROR,
        subject=f"index {name!r}",
        got="an index that nothing scales, added after the capacity was declared",
        allowed="indexes that the plan knows",
        fix="give it to HighWaterTable as a GlobalIndex; with manage_capacity, add the index before",
    )


@jsii.implements(IValidation)
class ScalerHoldsWindows:
    """Looks at the end of synth whether a scaler was given the windows that no scheduled action holds."""

    def __init__(self, subject: Subject, plan: Plan, is_scaled: Callable[[], bool]) -> None:
        self._subject = subject
        self._names = ", ".join(repr(name) for name in dict.fromkeys(window.name for window in plan.all_windows()))
        self._is_scaled = is_scaled

    def validate(self) -> list[str]:
        """Annotate what is missing; called by the CDK at the end of synth."""
        if not self._is_scaled():
            annotate(
                self._subject.construct,
                [
                    Finding(
                        id="highwater:windowsNotHeld",
                        severity=Severity.ERROR,
                        subject=f"windows {self._names}",
                        got="scaler_holds_windows, and no scaler that looks after the table",
                        allowed="a ThrottleAwareScaler whose manage() was called with it",
                        fix="call scaler.manage with the table, or leave windows to scheduled actions",
                    )
                ],
            )
        return []


def fitting_findings(
    plan: Plan, subject: Subject, index_names: tuple[str, ...], *, scaler_holds_windows: bool = False
) -> list[Finding]:
    """Where the plan does not go with the table that it is for."""
    findings = []
    if subject.is_on_demand:
        findings.append(
            Finding(
                id="highwater:provisionedOnDemand",
                severity=Severity.ERROR,
                subject="billing mode",
                got="PAY_PER_REQUEST with read, write and windows",
                allowed="PROVISIONED",
                fix="set the table's billing mode to PROVISIONED, or take the managed capacity away: an on-demand "
                "table has none",
            )
        )
    if scaler_holds_windows:
        findings += [_fixed_window(target.label) for target in plan.targets() if _is_fixed_with_windows(target)]
    elif subject.is_global and plan.all_windows():
        names = ", ".join(repr(window.name) for window in plan.all_windows())
        findings.append(
            Finding(
                id="highwater:globalTableWindows",
                severity=Severity.ERROR,
                subject=f"windows {names}",
                got="windows on a TableV2, whose targets CloudFormation keeps to itself",
                allowed="capacities and a high-water mark",
                fix="have a ThrottleAwareScaler hold them, with scaler_holds_windows=True and scaler.manage; or use "
                "HighWaterTable or dynamodb.Table",
            )
        )
    if subject.template is not None:
        known = set(index_names)
        findings += [
            Finding(
                id="highwater:unknownIndex",
                severity=Severity.ERROR,
                subject=f"index {index.name!r}",
                got="a name that the table has no index of",
                allowed=", ".join(repr(name) for name in sorted(known)) or "none: the table has no indexes",
                fix="correct the name, or add the index to the table first",
            )
            for index in plan.indexes
            if index.name not in known
        ]
    return findings
