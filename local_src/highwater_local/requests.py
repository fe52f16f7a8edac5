"""Requests to the cloud before a service sees them: bodies, members of a wrong type, and faults of a service."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.exceptions import UnknownServiceError
from botocore.model import OperationNotFoundError, ServiceModel
from botocore.validate import ParamValidator

# AWS's JSON protocols carry an object. Python's parser gives up somewhere above this many levels
_DEEP: Final = 900


async def read_body(receive: Any) -> bytes:
    """The whole body of a request."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def again(body: bytes, receive: Any) -> Any:
    """Receive a body that was read already, and then what else comes, such as the end of the connection."""
    is_read = False

    async def receive_again() -> Any:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def is_object(body: bytes) -> bool:
    """Whether a body of AWS's JSON protocols is a JSON object, as far as this cloud can read it; none is an empty one.

    A service looks at the rest. Parsing every body twice would cost more than most requests do, so that only those are
    parsed here that may be nested too deeply.
    """
    text = body.lstrip()
    if not text:
        return True
    if not text.startswith(b"{"):
        return False
    if text.count(b"[") + text.count(b"{") > _DEEP:
        try:
            json.loads(text)
        except (RecursionError, ValueError):
            return False
    return True


_FAULT: Final = 500


class HeldFaults:
    """Sends an answer on, but holds back one that says that the service failed.

    Attributes:
        has_begun: Whether an answer was sent on.
        held: The messages held back.
    """

    def __init__(self, send: Any) -> None:
        self._send = send
        self.has_begun = False
        self.held: list[Any] = []

    async def __call__(self, message: Any) -> None:
        """Send one message of an answer, or hold it back."""
        if self.held or (message["type"] == "http.response.start" and message["status"] >= _FAULT):
            self.held.append(message)
            return
        self.has_begun = True
        await self._send(message)

    async def release(self) -> None:
        """Send what was held back."""
        for message in self.held:
            await self._send(message)


_PREFIXES: Final = {
    "AnyScaleFrontendService": "application-autoscaling",
    "AmazonSSM": "ssm",
    "AWSEvents": "events",
    "AWSStepFunctions": "stepfunctions",
    "DynamoDBStreams_20120810": "dynamodbstreams",
    "DynamoDB_20120810": "dynamodb",
    "GraniteServiceVersion20100801": "cloudwatch",
    "Logs_20140328": "logs",
}


def malformed(target: str, body: bytes) -> dict[str, Any] | None:
    """Return what AWS answers, with status 400, to a request that its model does not allow; `None` for any other.

    *target* is the header `X-Amz-Target`, *body* a JSON object.
    """
    document = json.loads(body or b"{}")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return {"__type": "SerializationException", "message": "the request holds half of a character"}
    prefix, _, operation = target.rpartition(".")
    model = _model(_PREFIXES.get(prefix, ""))
    if model is None:
        # MiniStack knows services by how their prefixes begin
        is_misspelt = any(prefix.startswith(known.split("_")[0]) for known in _PREFIXES)
        return _unknown(target) if is_misspelt else None
    try:
        shape = model.operation_model(operation).input_shape
    except OperationNotFoundError:
        return _unknown(target)
    if shape is None:
        return None
    lines = ParamValidator().validate(document, shape).generate_report().splitlines()
    # AWS leaves members alone that it does not know, so they are to blame only where nothing else is
    wrong = sorted(lines, key=lambda line: line.startswith("Unknown parameter"))
    if not wrong:
        return None
    is_type = wrong[0].startswith("Invalid type")
    return {"__type": "SerializationException" if is_type else "ValidationException", "message": wrong[0][:400]}


def _unknown(target: str) -> dict[str, Any]:
    return {"__type": "UnknownOperationException", "message": f"{target[:100]} is no operation"}


@cache
def _model(service: str) -> ServiceModel | None:
    try:
        return botocore.session.get_session().get_service_model(service) if service else None
    except UnknownServiceError:
        return None
