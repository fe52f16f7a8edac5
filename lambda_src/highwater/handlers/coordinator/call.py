"""Calls of the coordinator: a signed request to its URL, or an event; and the caller, as AWS authenticated it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from highwater.core.boosts import Caller
from highwater.core.documents import read_document
from highwater.core.pulses import PULSE_SOURCE, pulse_detail_type
from highwater.handlers.coordinator import refusals

DETAIL_TYPE = "Highwater Boost"
_LONGEST_BODY = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        caller: The identity that sent it.
        action: The requested action: `begin`, `renew`, `release`, `status`, `list`, `log` or `pulse`.
        document: The other members of the request.
    """

    caller: Caller
    action: str
    document: dict[str, Any]


def is_request(event: dict[str, Any]) -> bool:
    """Whether the event is a request to the function's URL."""
    return "requestContext" in event


def is_pulse_event(event: dict[str, Any]) -> bool:
    """Whether the event is from EventBridge and asks for help for a table whose fleet pulses."""
    return event.get("source") == PULSE_SOURCE


def read_pulse_event(event: dict[str, Any]) -> str:
    """Return the table of an event that asks for help; raises `RefusedError` for an invalid one.

    IAM decides by the detail type who may put events for which table, so the two have to agree.
    """
    table = _member(event, "detail", "table")
    if not isinstance(table, str) or not table or event.get("detail-type") != pulse_detail_type(table):
        raise refusals.other_detail_type(str(event.get("detail-type"))[:60], table)
    return table


def is_boost_event(event: dict[str, Any]) -> bool:
    """Whether the event is from EventBridge and requests a boost."""
    return event.get("detail-type") == DETAIL_TYPE


def read_request(event: dict[str, Any]) -> Call:
    """Parse a request to the URL; raises `RefusedError` for one without an identity or with an invalid body.

    The caller is the one that Lambda authenticated (AWS Lambda Developer Guide, "Invoking Lambda function URLs",
    request payload, `authorizer.iam`, read 2026-11). An identity in the request's body is ignored.
    """
    identity = _member(event, "requestContext", "authorizer", "iam", "userArn")
    caller = Caller.of_arn(identity) if isinstance(identity, str) else None
    if caller is None:
        raise refusals.no_identity(identity)
    method = _member(event, "requestContext", "http", "method")
    if method != "POST":
        raise refusals.other_method(method)
    return _call(caller, _body(event))


def read_boost_event(event: dict[str, Any]) -> Call:
    """Parse an event of EventBridge; raises `RefusedError` for an invalid one.

    The caller is the event's source: the rule passes only granted sources, and IAM decides which identities may put
    events with them. If the detail has no id, the boost gets the event's id, which is the same when an event is
    delivered twice. Its lease lasts from the event's time: one that comes late, from a dead-letter queue or an archive,
    gets what is left.
    """
    detail = event.get("detail")
    if not isinstance(detail, dict):
        raise refusals.no_json("boost: detail is no JSON object")
    return _call(
        Caller.of_events(str(event.get("source"))), {"id": str(event.get("id")), **detail, "sent": event.get("time")}
    )


def _member(document: Any, *path: str) -> Any:
    """Return a member of a document, `None` where there is none."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _body(event: dict[str, Any]) -> Any:
    text = event.get("body") or ""
    if not isinstance(text, str):
        raise refusals.no_json()
    if len(text) > _LONGEST_BODY:
        raise refusals.body_too_long(len(text), _LONGEST_BODY)
    try:
        if event.get("isBase64Encoded"):
            text = base64.b64decode(text, validate=True).decode()
        return read_document(text)
    except (ValueError, binascii.Error):
        raise refusals.no_json() from None


def _call(caller: Caller, document: Any) -> Call:
    if not isinstance(document, dict):
        raise refusals.no_json("the body is no JSON object")
    action = document.get("do", "begin")
    return Call(caller, str(action), {name: value for name, value in document.items() if name != "do"})
