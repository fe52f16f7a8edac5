"""What is wrong or doubtful about a plan: every conflict of a table, told together."""

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
    """Every finding about *plan*, errors first, otherwise in the plan's order.

    Later checks run only on what earlier ones found readable: a window in an unknown zone is told once.

    Args:
        plan: The plan to judge.
        as_of: Tell of one-off windows that were over by this instant. By default none are looked for.
        has_actions: Whether scheduled actions hold the windows, which cannot say every mix. By default they do; the
            scaler and a loop of one's own can hold any.
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
    # once each: a window that several indexes share would be told for each
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: list(Severity).index(finding.severity)))


def errors_of(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings that synth refuses."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def checked(plan: Plan, where: str = "plan") -> Plan:
    """*plan* itself, once it is known to have no errors; raises `PlanError` with all of them otherwise."""
    if errors := errors_of(check(plan)):
        raise PlanError(errors, where)
    return plan


def _has_errors(findings: list[Finding]) -> bool:
    return bool(errors_of(tuple(findings)))
