"""The errors of the core, and the likely name where an unknown one was given.

HighwaterError
└── PlanError (also a ValueError): a plan cannot work; has the findings as an attribute
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
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


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return a clause for the end of a message about an unknown *name*, such as `; did you mean indexes?`.

    It is empty if none of the *allowed* names is like it.
    """
    similar = difflib.get_close_matches(name, allowed, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""
