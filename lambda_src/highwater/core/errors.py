"""The errors of the core.

HighwaterError
└── PlanError (also a ValueError): a plan cannot work; has the findings as an attribute
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from highwater.core.findings import Finding


class HighwaterError(Exception):
    """The root of every error that Highwater raises on purpose."""


class PlanError(HighwaterError, ValueError):
    """A plan cannot work as declared.

    Attributes:
        findings: The conflicts of severity ERROR, in the order of the plan.
    """

    def __init__(self, findings: tuple[Finding, ...], where: str = "plan") -> None:
        self.findings = findings
        super().__init__("\n".join(finding.text(where) for finding in findings))
