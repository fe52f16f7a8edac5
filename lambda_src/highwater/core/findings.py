"""What a check finds: where, what, got, allowed, likely fix."""

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
        severity: Whether synth refuses, warns or only tells.
        subject: What it is about, in the user's names: `window 'bulk-load' write_min`.
        got: The value met, as the user wrote it.
        allowed: The range or the condition that would have been fine.
        fix: The likeliest remedy.
    """

    id: str
    severity: Severity
    subject: str
    got: str
    allowed: str
    fix: str

    def text(self, where: str) -> str:
        """The whole message, on one line; *where* is the construct's path or the plan's name."""
        if self.severity is Severity.INFO:
            return f"{where}: {self.subject}: {self.got}; {self.allowed}; {self.fix} [{self.id}]"
        return f"{where}: {self.subject}: got {self.got}, allowed: {self.allowed}; {self.fix} [{self.id}]"


def error(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """A finding that synth refuses; *id* without the prefix."""
    return Finding(id=f"highwater:{id}", severity=Severity.ERROR, subject=subject, got=got, allowed=allowed, fix=fix)


def warning(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    """A finding that works and will hurt; *id* without the prefix."""
    return Finding(id=f"highwater:{id}", severity=Severity.WARNING, subject=subject, got=got, allowed=allowed, fix=fix)


def is_whole(value: object) -> bool:
    """Whether *value* is a whole number; `True` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def deploy_time_units(subject: str, remedy: str = "write the number, or read it from context instead") -> Finding:
    """The finding about a number that only CloudFormation will know, where synth must know it."""
    return error(
        "deployTimeUnits", subject, "a number known only at deploy time", "a whole number known at synth", remedy
    )


def name_missing(subject: str, name: object) -> Finding:
    """The finding about something that has no name to be told by."""
    return error("nameMissing", subject, f"{name!r}", "a text of at least one character", "give it a name in quotes")


def units_not_positive(subject: str, units: object) -> Finding:
    """The finding about units that are no whole number from 1 on."""
    fix = "give 1 for as little as possible" if is_whole(units) else "write a whole number"
    return error("unitsNotPositive", subject, f"{units!r}", "whole units per second, 1 or more", fix)
