"""What a check finds: where, what, the problem, the likely fix."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: an ERROR cannot work, a WARNING will hurt, an INFO is good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One conflict or remark about a plan.

    Attributes:
        id: Public and stable, such as `highwater:windowAboveCeiling`; acknowledged and searched for by it.
        severity: Whether synth refuses, warns or only informs.
        subject: What it is about, in the user's names: `window 'bulk-load' write_min`.
        problem: What is wrong: the value that was given and those that are allowed, or a sentence.
        fix: The likeliest remedy.
    """

    id: str
    severity: Severity
    subject: str
    problem: str
    fix: str

    def text(self, where: str) -> str:
        """The whole message, on one line; *where* is the construct's path or the plan's name."""
        return f"{where}: {self.subject}: {self.problem}; {self.fix} [{self.id}]"


def error(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """A value out of its range, which synth refuses; *id* without the prefix."""
    return _finding(id, Severity.ERROR, subject, f"got {got}, allowed: {allowed}", fix)


def warning(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """A value that works and will hurt; *id* without the prefix."""
    return _finding(id, Severity.WARNING, subject, f"got {got}, allowed: {allowed}", fix)


def conflict(id: str, subject: str, problem: str, fix: str) -> Finding:
    """A situation that synth refuses, in a sentence of what is wrong and one of what to do; *id* without the prefix."""
    return _finding(id, Severity.ERROR, subject, problem, fix)


def caution(id: str, subject: str, problem: str, fix: str) -> Finding:
    """A situation that works and will hurt, likewise."""
    return _finding(id, Severity.WARNING, subject, problem, fix)


def remark(id: str, subject: str, problem: str, fix: str) -> Finding:
    """A situation that is good to know, likewise."""
    return _finding(id, Severity.INFO, subject, problem, fix)


def _finding(id: str, severity: Severity, subject: str, problem: str, fix: str) -> Finding:
    return Finding(id=f"highwater:{id}", severity=severity, subject=subject, problem=problem, fix=fix)


def is_whole(value: object) -> bool:
    """Whether *value* is a whole number; `True` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def deploy_time_units(subject: str, remedy: str = "write the number, or read it from context instead") -> Finding:
    """The finding about a number that only CloudFormation will know, where synth must know it."""
    problem = "the number is known only at deploy time, and synth has to know it"
    return conflict("deployTimeUnits", subject, problem, remedy)


def name_missing(subject: str, name: object) -> Finding:
    """The finding about something without a name."""
    return error("nameMissing", subject, f"{name!r}", "a text of at least one character", "give it a name in quotes")


def units_not_positive(subject: str, units: object) -> Finding:
    """The finding about units that are not a whole number of 1 or more."""
    fix = "give 1 for as little as possible" if is_whole(units) else "write a whole number"
    return error("unitsNotPositive", subject, f"{units!r}", "whole units per second, 1 or more", fix)
