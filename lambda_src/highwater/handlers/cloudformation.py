"""The answer that CloudFormation waits for from a custom resource."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

# CloudFormation refuses longer answers (User Guide, "Custom resource response objects", read 2026-11)
_LONGEST_ANSWER_BYTES = 4096
# Where a cloud on this machine waits for answers
_LOOPBACK = (("http", "localhost"), ("http", "127.0.0.1"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an event ended, with one sentence about it."""

    ok: bool
    reason: str

    @property
    def line(self) -> dict[str, Any]:
        """The outcome for the log."""
        return {"ok": self.ok, "reason": self.reason}


def success(reason: str) -> Outcome:
    """The resource is as asked for."""
    return Outcome(True, reason)


def failure(reason: str) -> Outcome:
    """It could not be made so; CloudFormation rolls back."""
    return Outcome(False, reason)


def answer(event: dict[str, Any], outcome: Outcome) -> None:
    """Put the answer where CloudFormation waits for it."""
    url = event["ResponseURL"]
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname) not in _LOOPBACK:
        message = f"refusing to answer at {parts.scheme}://{parts.hostname}: not an https address"
        raise ValueError(message)
    body = _body(event, outcome)
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        url, data=body, method="PUT", headers={"Content-Type": "", "Content-Length": str(len(body))}
    )
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        response.read()


def _body(event: dict[str, Any], outcome: Outcome) -> bytes:
    """The answer, its reason cut to what CloudFormation takes."""
    reason = outcome.reason
    while True:
        document = {
            "Status": "SUCCESS" if outcome.ok else "FAILED",
            "Reason": reason,
            # one resource for a table's lifetime: a new id would make CloudFormation delete the old one
            "PhysicalResourceId": event.get("PhysicalResourceId") or event["LogicalResourceId"],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        }
        body = json.dumps(document, ensure_ascii=False).encode()
        if len(body) <= _LONGEST_ANSWER_BYTES or not reason:
            return body
        reason = reason[: len(reason) * 9 // 10]
