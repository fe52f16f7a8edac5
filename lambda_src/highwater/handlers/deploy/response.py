"""The response of a custom resource to CloudFormation."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

# CloudFormation rejects longer responses (User Guide, "Custom resource response objects", read 2026-11)
_LONGEST_ANSWER_BYTES = 4096
# Addresses of an AWS emulator on this machine, which may receive responses over plain HTTP
_LOOPBACK = (("http", "localhost"), ("http", "127.0.0.1"))


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """Whether an event succeeded, and a sentence with the reason."""

    ok: bool
    reason: str

    @property
    def line(self) -> dict[str, Any]:
        """The outcome as JSON-ready values for the log."""
        return {"ok": self.ok, "reason": self.reason}


def success(reason: str) -> EventOutcome:
    """Return the outcome with which CloudFormation continues."""
    return EventOutcome(True, reason)


def failure(reason: str) -> EventOutcome:
    """Return the outcome on which CloudFormation rolls back."""
    return EventOutcome(False, reason)


def answer(event: dict[str, Any], outcome: EventOutcome) -> None:
    """Send the outcome to the response URL of the event.

    Raises:
        ValueError: The URL is neither https nor a loopback address.
        OSError: The URL cannot be reached or rejects the response.
    """
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


def physical_id(event: dict[str, Any]) -> str:
    """Return the id of the custom resource, which changes only when its table was replaced by another.

    CloudFormation then sends a Delete event for the old id, once the deploy cannot be rolled back any more.
    """
    present, before = (event.get(key, {}).get("TableName") for key in ("ResourceProperties", "OldResourceProperties"))
    if before is not None and present != before:
        return f"{event['LogicalResourceId']}-{present}"
    return str(event.get("PhysicalResourceId") or event["LogicalResourceId"])


def _body(event: dict[str, Any], outcome: EventOutcome) -> bytes:
    """The response as JSON. The reason is shortened until the response has at most 4,096 bytes."""
    reason = outcome.reason
    while True:
        document = {
            "Status": "SUCCESS" if outcome.ok else "FAILED",
            "Reason": reason,
            "PhysicalResourceId": physical_id(event),
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        }
        body = json.dumps(document, ensure_ascii=False).encode()
        if len(body) <= _LONGEST_ANSWER_BYTES or not reason:
            return body
        reason = reason[: len(reason) * 9 // 10]
