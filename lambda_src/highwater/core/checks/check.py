"""Validation of a whole plan: all conflicts of a table and its indexes are reported together."""

from __future__ import annotations

from datetime import datetime

from highwater.core.checks.capacity import bounds_findings, capacity_findings, index_name_findings, mark_findings
from highwater.core.checks.schedule import action_findings, decrease_findings, index_findings, schedule_findings
from highwater.core.checks.windows import window_findings
from highwater.core.errors import PlanError
from highwater.core.findings import Finding, Severity
from highwater.core.plan.plan import Plan
from highwater.core.plan.zones import aware


def check(plan: Plan, as_of: datetime | None = None, *, has_actions: bool = True) -> tuple[Finding, ...]:
    """Return every finding about *plan*: errors first, then warnings, each in the plan's order.

    Later checks run only if the earlier ones found no error, so that one mistake is reported once.

    Args:
        plan: The plan to validate.
        as_of: Warn about one-off windows that ended by this instant. By default, no such warning.
        has_actions: Whether scheduled actions open and close the windows. Scheduled actions cannot express every
            combination of windows, and the scaler can. By default true.
    """
    as_of = None if as_of is None else aware(as_of)
    findings = [*capacity_findings(plan), *window_findings(plan), *index_name_findings(plan), *mark_findings(plan)]
    if not _has_errors(findings):
        findings += bounds_findings(plan)
    if not _has_errors(findings):
        if has_actions:
            findings += action_findings(plan, as_of)
        findings += schedule_findings(plan, as_of)
        findings += index_findings(plan)
        findings += decrease_findings(plan)
    # without duplicates: a window that several indexes share has the same finding for each of them
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: list(Severity).index(finding.severity)))


def errors_of(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings of severity ERROR, which make synth fail."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def checked(plan: Plan, where: str = "plan") -> Plan:
    """Return *plan* if `check` finds no error; raise `PlanError` with all errors otherwise."""
    if errors := errors_of(check(plan)):
        raise PlanError(errors, where)
    return plan


def _has_errors(findings: list[Finding]) -> bool:
    return bool(errors_of(tuple(findings)))
