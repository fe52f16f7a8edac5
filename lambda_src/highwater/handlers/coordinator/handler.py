"""The function of a `BoostCoordinator`: reads signed requests and events for boosts; other events go to the scaler."""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from highwater.aws import parameters
from highwater.aws.coordinator_table import LeaseTable
from highwater.aws.parameters import read_boost_caps
from highwater.core.boosts import BoostCap, Caller
from highwater.core.documents import read_document
from highwater.core.pulses import PULSE_SOURCE, pulse_detail_type
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.coordinator import refusals
from highwater.handlers.coordinator.coordinator import Call, Coordinator
from highwater.handlers.coordinator.refusals import RefusedError
from highwater.handlers.coordinator.state import Cache, KeptTables
from highwater.handlers.scaler import handler as scaler

logger = Logger(log_uncaught_exceptions=False)
# How long warm functions cache grants; a grant that is removed still counts for as long. Without the cache, many
# requests at once would exceed the rate at which parameters may be read.
_CAPS_KEPT_SECONDS = 30
_OVER, _UNAVAILABLE = 410, 500
DETAIL_TYPE = "Highwater Boost"
_LONGEST_BODY = 10_000


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request to the function's URL, an event that requests a boost, or an event of the scaler.

    A request is answered with a status code and a JSON object; a rejection has the member `error`.

    Raises:
        RefusedError: An event cannot be served now; Lambda retries it.
        Exception: An event failed; an event of the scaler raises the scaler's errors.
    """
    if is_pulse_event(event):
        return _help(event, context)
    if not is_request(event) and not is_boost_event(event):
        return scaler.handler(event, context)
    try:
        call = read_request(event) if is_request(event) else read_boost_event(event)
        answer = _coordinator(context).serve(call)
        # lists may have megabytes, and are asked for again and again
        told = {name: value for name, value in answer.items() if name not in ("boosts", "log")}
        logger.info("boost", extra={"boost": {"do": call.action, "caller": call.caller.name, **told}})
        _count_refusal(is_refused=answer.get("outcome") == "refused")
        return _answer(200, answer)
    except RefusedError as refused:
        logger.warning("boost refused", extra={"status": refused.status, "error": str(refused)})
        _count_refusal(is_refused=refused.status < _UNAVAILABLE and refused.status != _OVER)
        if is_boost_event(event) and refused.status >= _UNAVAILABLE:
            # Lambda retries the event, and then puts it into the dead-letter queue
            raise
        return _answer(refused.status, {"error": str(refused)})
    except Exception as error:
        logger.exception("boost failed")
        if is_boost_event(event):
            raise
        return _answer(500, {"error": f"the coordinator failed, its log says why: {type(error).__name__}"})


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


def _help(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve an event of a fleet that needs help; a fleet that still needs it puts another."""
    try:
        answer = _coordinator(context).help(read_pulse_event(event))
        logger.info("pulse", extra={"pulse": answer})
        return answer
    except RefusedError as refused:
        logger.warning("pulse refused", extra={"status": refused.status, "error": str(refused)})
        return {}


def _count_refusal(*, is_refused: bool) -> None:
    """Count a call for the alarm on refusals; one that is sent again, or for a boost that has ended, is none."""
    scaler.publish({ScalerMetric.BOOSTS_REFUSED: int(is_refused)}, os.environ["HIGHWATER_SCALER"])


def _answer(status: int, document: dict[str, Any]) -> dict[str, Any]:
    # Lambda's answers have up to 6 MB, and a list of boosts has a reason for each of their targets;
    # escaped, a character would take up to twelve bytes
    body = json.dumps(document, ensure_ascii=False)
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": body}


def _coordinator(context: Any) -> Coordinator:
    own = scaler.scaler_of_environment()

    def remaining_seconds() -> float:
        return float(context.get_remaining_time_in_millis()) / 1000

    return Coordinator(
        scaler=own.options.name,
        region_name=os.environ["AWS_REGION"],
        region_of=cache(own.region_of),
        tables=_TABLES,
        leases=own.kept.leases or LeaseTable(os.environ["HIGHWATER_LEASES"]),
        read_caps=_read_caps,
        turn=lambda label: own.serve({"highwater": "boost", "tables": [label]}, remaining_seconds),
        pause=time.sleep,
        remaining_seconds=remaining_seconds,
        now=lambda: datetime.now(UTC),
    )


_CAPS: Cache[tuple[BoostCap, ...]] = Cache(time.monotonic)


def _read_caps() -> Sequence[BoostCap]:
    """Return the grants, read again after half a minute."""
    coordinator = os.environ["HIGHWATER_COORDINATOR"]

    def read() -> tuple[BoostCap, ...]:
        found = read_boost_caps(parameters.client(), coordinator)
        for line in found.unreadable:
            logger.warning("a grant could not be read", extra={"grant": line})
        return found.caps

    return _CAPS.get(coordinator, _CAPS_KEPT_SECONDS, read)


_TABLES = KeptTables()
