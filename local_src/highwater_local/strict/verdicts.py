"""Why the policies of a role and its permissions boundary deny an action, in AWS's words.

An action needs an Allow of both, and a Deny in either counts (IAM User Guide, "Policy evaluation logic" and
"Troubleshoot access denied error messages", read 2026-11).
"""

from __future__ import annotations

from typing import Any

from highwater_local import ministack


def denial(context: Any, role: str, account: str) -> str | None:
    """Why the role may not do what the context says, `None` where it may."""
    kinds = [("n", "identity-based policy", ministack.role_policies(role, account))]
    # one boundary at most, in the shape of a list of policies
    bounds = ministack.role_boundary(ministack.iam_roles.now, role, account)
    kinds += [("", "permissions boundary", bound) for bound in bounds]
    verdicts = [(n, kind, ministack.evaluate_policies(context, policies).decision) for n, kind, policies in kinds]
    for n, kind, decision in verdicts:
        if decision == "Deny":
            return f"with an explicit deny in a{n} {kind}"
    for _, kind, decision in verdicts:
        if decision != "Allow":
            return f"because no {kind} allows the {context.action} action"
    return None
