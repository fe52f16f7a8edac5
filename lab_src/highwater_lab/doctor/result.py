"""What a check of the doctor says: a state, a sentence, and the fix; also where a check may not be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater_lab.audit.deviations import Deviation

# Error codes of a missing permission, as services spell them
_DENIED: Final = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "UnauthorizedOperation",
        "UnauthorizedException",
    }
)
# "User: ... is not authorized to perform: iam:GetRole on resource: ..." (IAM User Guide, "Troubleshoot access denied
# error messages", read 2026-11)
_ACTION: Final = re.compile(r"not authorized to perform: ([A-Za-z0-9-]+:[A-Za-z0-9]+)")
# an answer without a body does not say it (Amazon S3 API Reference, HeadBucket, read 2026-11)
_ACTIONS: Final = {"HeadBucket": "s3:ListBucket"}
_BY_ORGANIZATION: Final = "service control policy"


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the doctor.

    Attributes:
        check: The check's name.
        state: How it ended.
        text: A sentence without a period.
        fix: What to do; empty where all is well.
        details: What machines read besides, JSON-ready.
        deviation: What is left over or differs, where this is about one; `None` otherwise.
    """

    check: str
    state: State
    text: str
    fix: str = ""
    details: dict[str, Any] | None = None
    deviation: Deviation | None = None

    @property
    def line(self) -> str:
        """Return it in a line."""
        fix = f"; fix: {self.fix}" if self.fix else ""
        return f"{self.state:<7} {self.check}: {self.text}{fix}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "check": self.check,
            "state": str(self.state),
            "text": self.text,
            "fix": self.fix or None,
            **(self.details or {}),
            **({} if self.deviation is None else self.deviation.document()),
        }


def unread(check: str, error: Exception, *, if_denied: str = "") -> Result:
    """Return the warning of a check, or of a part of it, for which a request to AWS failed.

    *if_denied* is what a denial may mean besides a missing permission.
    """
    message = " ".join(str(error).split())
    if not isinstance(error, ClientError) or error.response["Error"].get("Code") not in _DENIED:
        return Result(check=check, state=State.WARNING, text=f"cannot be read: {message}", fix="run it again")
    match = _ACTION.search(message)
    action = match[1] if match else _ACTIONS.get(error.operation_name, error.operation_name)
    if _BY_ORGANIZATION in message:
        fix = f"ask those who run the organization: its service control policy denies {action}"
    else:
        fix = f"allow {action}; docs/doctor.md has the whole policy"
    also = f"; {if_denied}" if if_denied else ""
    return Result(check=check, state=State.WARNING, text=f"may not be read: {action} is denied{also}", fix=fix)
