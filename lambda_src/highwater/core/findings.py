"""Findings: the results of validating a plan, each with its subject, its problem and the likely fix."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_LONGEST_SHOWN: Final = 200


class Severity(StrEnum):
    """The severity of a finding.

    ERROR: the plan cannot work, and synth fails. WARNING: the plan works, with a disadvantage. INFO: for information.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One conflict or remark about a plan.

    Attributes:
        id: Public and stable identifier for acknowledgements and searches, such as `highwater:windowAboveCeiling`.
        severity: Whether synth fails, warns or only informs.
        subject: The part of the plan that has the problem, in the user's names: `window 'bulk-load' write_min`.
        problem: The given value and the allowed values, or a sentence that describes the problem.
        fix: The likely remedy.
    """

    id: str
    severity: Severity
    subject: str
    problem: str
    fix: str

    def text(self, where: str) -> str:
        """Return the whole message on one line; *where* is the construct's path or the plan's name."""
        return f"{where}: {self.subject}: {self.problem}; {self.fix} [{self.id}]"


def error(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """Create an ERROR about a value out of its range; *id* lacks the prefix `highwater:`."""
    return _finding(id, Severity.ERROR, subject, f"got {got}, allowed: {allowed}", fix)


def warning(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """Create a WARNING about a value out of its recommended range; *id* lacks the prefix `highwater:`."""
    return _finding(id, Severity.WARNING, subject, f"got {got}, allowed: {allowed}", fix)


def conflict(id: str, subject: str, problem: str, fix: str) -> Finding:
    """Create an ERROR about a situation; *problem* and *fix* are sentences, *id* lacks the prefix `highwater:`."""
    return _finding(id, Severity.ERROR, subject, problem, fix)


def caution(id: str, subject: str, problem: str, fix: str) -> Finding:
    """Create a WARNING about a situation; *problem* and *fix* are sentences, *id* lacks the prefix `highwater:`."""
    return _finding(id, Severity.WARNING, subject, problem, fix)


def remark(id: str, subject: str, problem: str, fix: str) -> Finding:
    """Create an INFO about a situation; *problem* and *fix* are sentences, *id* lacks the prefix `highwater:`."""
    return _finding(id, Severity.INFO, subject, problem, fix)


def _finding(id: str, severity: Severity, subject: str, problem: str, fix: str) -> Finding:
    return Finding(id=f"highwater:{id}", severity=severity, subject=subject, problem=problem, fix=fix)


def is_whole(value: object) -> bool:
    """Whether *value* is a whole number. `True` and `False` are not, although Python's `bool` is an `int`."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return *value* for a message: its `repr`, or its class if the `repr` would be a memory address."""
    kind = type(value)
    has_text = kind.__repr__ is not object.__repr__ and not isinstance(value, Iterator)
    return repr(value)[:_LONGEST_SHOWN] if has_text else f"{kind.__module__}.{kind.__qualname__}"


def deploy_time_units(subject: str, remedy: str = "write the number, or read it from context instead") -> Finding:
    """Create the finding about a number that synth needs but only CloudFormation knows."""
    problem = "the number is known only at deploy time, but synth needs it"
    return conflict("deployTimeUnits", subject, problem, remedy)


def name_missing(subject: str, name: object) -> Finding:
    """Create the finding about a window or index without a name."""
    return error("nameMissing", subject, f"{name!r}", "a text of at least one character", "give it a name in quotes")


def units_not_positive(subject: str, units: object) -> Finding:
    """Create the finding about units that are not a whole number of 1 or more."""
    fix = "give 1 for the lowest capacity" if is_whole(units) else "write a whole number"
    return error("unitsNotPositive", subject, f"{units!r}", "whole units per second, 1 or more", fix)


def above_quota(subject: str, units: float, quota_units: int) -> Finding:
    """Create the finding about units above the account's quota."""
    return error(
        "aboveQuota",
        subject,
        f"{units}",
        f"up to {quota_units}, the account's quota for a table or index",
        "lower the value, or request a higher quota from AWS and give it as table_quota_units",
    )
